//! Threads: what each thread that records keeps, and what others may read of it.
//!
//! Every thread has [`ThreadCells`] of its own, made with its first record and kept for good, so that a crash report or
//! a capture can look at it at any time: which scopes are open, which world it works for, how much time each subsystem
//! took. Only the thread itself writes them, with plain stores; whoever reads them sees each word whole and the words
//! of slightly different moments, which is all that a report needs. That is why every access here is relaxed unless it
//! says otherwise.
//!
//! Beginning and ending a scope costs two readings of the processor's counter and some stores to memory that is in the
//! cache: no lock, no allocation, no system call. One time in a thousand it takes another block from the pool.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use throng_platform::{threads, ticks};

pub use throng_capture::model::ThreadClass;

use crate::block::{CurrentBlock, Writer};
use crate::end_hook;
use crate::overruns::{self, Overrun};
use crate::record::{Record, SHORT_TICKS_MAX};
use crate::site::{SUBSYSTEMS_MAX, Site, SiteId, SubsystemId, budget_ticks_in, word_parts};
use crate::world_kind::{self, KIND_ROWS, KindNumber};
use crate::{is_recording, pool};

/// Scopes within scopes at most; deeper ones are not recorded, and counted. The last place catches them.
pub const DEPTH_MAX: usize = 64;

/// Threads at most over the life of the process; later ones do not record.
pub const THREADS_MAX: usize = 1024;

/// No world's number.
const NOWHERE: u32 = u32::MAX;

/// What a thread keeps for others to read. Written by the thread alone.
///
/// The first line of memory is what every scope touches. Between two scopes of a server's tick the thread goes through
/// more memory than its nearest cache holds, so that each line more is one to wait for.
#[repr(C, align(64))]
pub struct ThreadCells {
    /// Open scopes. `open[0]` stands for what is outside of every scope; the innermost one is `open[depth]`.
    depth: AtomicU32,
    /// The world that it works for, `NOWHERE` for none, and the tick of it.
    world: AtomicU32,
    tick: AtomicU32,
    block: CurrentBlock,
    /// When time was last charged to a subsystem (ticks).
    charged_at: AtomicU64,
    scopes: AtomicU64,
    allocations: AtomicU64,
    frees: AtomicU64,
    allocated_bytes: AtomicU64,
    /// The kind of the world that it works for: its row of `subsystem_ticks`.
    kind_row: AtomicU32,
    index: u32,
    open: [OpenScope; DEPTH_MAX],
    /// A row for each kind of world.
    subsystem_ticks: [AtomicU64; KIND_ROWS * SUBSYSTEMS_MAX],
    lock_wait_ticks: [AtomicU64; SUBSYSTEMS_MAX],
    tid: u32,
    name: Box<str>,
    class: AtomicU8,
    is_alive: AtomicBool,
    /// The last inputs that it took in, as a ring: client (32 bits), number (16), the world's last 16 bits. For crash
    /// reports.
    inputs: [AtomicU64; INPUTS_KEPT],
    inputs_count: AtomicU64,
}

/// Inputs that a thread remembers.
const INPUTS_KEPT: usize = 16;

/// A scope that has begun and not ended.
struct OpenScope {
    begin: AtomicU64,
    /// Number and subsystem, see `Site::word`, and whether it is a phase.
    word: AtomicU64,
    /// Of a phase: what its site may take (ticks).
    budget: AtomicU64,
    /// What it has allocated (lower half) and freed (upper half) by itself. Zero between scopes.
    blocks: AtomicU64,
    bytes: AtomicU64,
}

/// In an open scope's word, beside the subsystem: it is a phase, so whoever ends it asks here what it is by then.
const IS_PHASE: u64 = 1 << 63;

/// Just for this thread: where to write.
struct Local {
    cells: Cell<Option<&'static ThreadCells>>,
    writer: Writer,
}

thread_local! {
    // Without a destructor, so that the allocator can use it while the thread is being set up or torn down.
    static LOCAL: Local = const { Local { cells: Cell::new(None), writer: Writer::new() } };
    static FAREWELL: Farewell = const { Farewell };
}

/// Hands the last block in when its thread ends.
struct Farewell;

impl Drop for Farewell {
    fn drop(&mut self) {
        LOCAL.with(|local| {
            let Some(cells) = local.cells.get() else { return };
            cells.is_alive.store(false, Ordering::Relaxed);
            if let Some(pool) = crate::POOL.get() {
                local.writer.give_back(pool, &cells.block, ticks::now());
            }
        });
    }
}

static THREADS: Mutex<Vec<&'static ThreadCells>> = Mutex::new(Vec::new());

/// Length of `THREADS`. Written under its lock, read by the frame's thread once a frame without it.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// All threads that have ever recorded, by index. Allocates.
pub fn all() -> Vec<&'static ThreadCells> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// How many threads have ever recorded: when it has grown, [`all`] has new ones.
pub fn count() -> usize {
    COUNT.load(Ordering::Relaxed)
}

/// Says what the calling thread is for. Threads that never do are [`ThreadClass::Other`].
pub fn register(class: ThreadClass) {
    LOCAL.with(|local| {
        if let Some(cells) = local.cells_or_register() {
            cells.class.store(class_number(class), Ordering::Relaxed);
        }
    });
}

/// The calling thread's index, if it has recorded anything.
pub fn current_index() -> Option<u32> {
    cells().map(|cells| cells.index)
}

/// As [`current_index`], for a line of the log: while the recorder runs, a thread that has something to say becomes
/// known.
pub(crate) fn index_to_log_with() -> Option<u32> {
    if !is_recording() {
        return current_index();
    }
    LOCAL.with(|local| local.cells_or_register().map(ThreadCells::index))
}

/// The calling thread's innermost open scope.
pub fn current_site() -> Option<SiteId> {
    cells()?.innermost()
}

/// The world that the calling thread works for.
pub fn current_world() -> Option<u32> {
    LOCAL.with(|local| local.cells.get()?.world().map(|(world, _)| world))
}

/// The kind of the world that the calling thread works for.
pub fn current_kind_of_world() -> KindNumber {
    cells().map_or(KindNumber::NONE, ThreadCells::kind_of_world)
}

/// What the calling thread is for.
pub fn class() -> ThreadClass {
    cells().map_or(ThreadClass::Other, ThreadCells::class)
}

/// Charges an allocation to the calling thread's innermost scope. Never allocates; for the allocator's own use.
#[inline]
pub fn count_allocation(bytes: usize) {
    let Some(cells) = cells() else { return };
    add(&cells.allocations, 1);
    add(&cells.allocated_bytes, bytes as u64);
    let open = cells.innermost_open();
    add(&open.blocks, 1);
    add(&open.bytes, bytes as u64);
}

/// Charges a free, as [`count_allocation`].
#[inline]
pub fn count_free() {
    let Some(cells) = cells() else { return };
    add(&cells.frees, 1);
    add(&cells.innermost_open().blocks, 1 << 32);
}

/// Notes one large allocation of the calling thread. Never allocates.
pub fn record_large_allocation(bytes: u64) {
    record(|now| [Some(Record::large_allocation(now, bytes)), None]);
}

/// Notes the value of a counter. For values that change a few times a frame.
pub(crate) fn record_count(counter: u32, value: f32) {
    record(|now| [Some(Record::count(now, counter, value)), None]);
}

/// Notes that the calling thread waited for a lock, and for whom.
pub(crate) fn record_lock_wait(lock: u32, begin: u64, end: u64, holder: Option<(u32, Option<u32>, Option<u32>)>) {
    LOCAL.with(|local| {
        if let Some(cells) = local.cells.get() {
            let (_, subsystem) = word_parts(cells.innermost_open().word.load(Ordering::Relaxed));
            add(&cells.lock_wait_ticks[subsystem.0 as usize % SUBSYSTEMS_MAX], end.saturating_sub(begin));
        }
    });
    record(|_| {
        let wait = Record::lock_wait(lock, begin, end.saturating_sub(begin));
        [Some(wait), holder.map(|(thread, site, world)| Record::lock_holder(thread, site, world))]
    });
}

fn record(records: impl FnOnce(u64) -> [Option<Record>; 2]) {
    if !is_recording() {
        return;
    }
    LOCAL.with(|local| {
        let Some(cells) = local.cells.get() else { return };
        let now = ticks::now();
        for record in records(now).into_iter().flatten() {
            push_or_take_block(cells, record, now);
        }
    });
}

/// Remembers that the calling thread takes in an input for the world that it works for: crash reports name the last
/// ones.
pub fn note_input(client: u32, number: u16) {
    let Some(cells) = cells() else { return };
    let world = cells.world.load(Ordering::Relaxed) as u16;
    let count = cells.inputs_count.load(Ordering::Relaxed);
    let word = u64::from(client) << 32 | u64::from(number) << 16 | u64::from(world);
    cells.inputs[count as usize % INPUTS_KEPT].store(word, Ordering::Relaxed);
    cells.inputs_count.store(count + 1, Ordering::Relaxed);
}

/// The calling thread works for this world from now on, until the guard is dropped: every record says so.
pub fn enter_world(kind: KindNumber, world: u32, tick: u32) -> InWorld {
    set_world(kind, world.min(NOWHERE - 1), tick);
    InWorld(())
}

/// See [`enter_world`].
#[must_use = "the thread leaves the world when this is dropped"]
pub struct InWorld(());

impl Drop for InWorld {
    fn drop(&mut self) {
        set_world(KindNumber::NONE, NOWHERE, 0);
    }
}

fn set_world(kind: KindNumber, world: u32, tick: u32) {
    let is_recording = is_recording();
    // A thread that is known says its world in any case: recording may be switched while it is in one.
    let cells = if is_recording { cells().or_else(register_this_thread) } else { cells() };
    let Some(cells) = cells else { return };
    cells.world.store(world, Ordering::Relaxed);
    cells.tick.store(tick, Ordering::Relaxed);
    cells.kind_row.store(kind.row() as u32, Ordering::Relaxed);
    if is_recording {
        // Costs no reading of the clock: a world changes between two scopes, and the boundary of the last one is known.
        let now = cells.charged_at.load(Ordering::Relaxed);
        push_or_take_block(cells, Record::world(now, (world != NOWHERE).then_some(world), tick), now);
    }
}

/// A scope that has begun: what its guard keeps, most of it in registers.
#[derive(Copy, Clone)]
pub(crate) struct Begun {
    cells: &'static ThreadCells,
    site: &'static Site,
    /// The site's, see `Site::word`.
    word: u64,
    at: u64,
}

/// Begins a scope now. `None` if it is not recorded.
#[inline(always)]
pub(crate) fn begin(site: &'static Site) -> Option<Begun> {
    let cells = match cells() {
        Some(cells) => cells,
        None => register_this_thread()?,
    };
    let word = site.word();
    if word == 0 {
        return None;
    }
    cells.begin(site, word, ticks::now())
}

/// Ends the innermost scope now. What is not the rule has one way out, so that the rule stays small enough for the
/// compiler to inline it wherever a scope ends; a call instead would cost a quarter of what all of it does.
#[inline(always)]
pub(crate) fn end(begun: Begun) {
    let Begun { cells, site, word, at } = begun;
    // Without a counter this is 0, and then too long to be plain.
    let now = ticks::counter();
    let length = now.wrapping_sub(at);
    let depth = cells.depth.load(Ordering::Relaxed);
    let blocks = cells.open[depth as usize % DEPTH_MAX].blocks.load(Ordering::Relaxed);
    let is_long = length > site.budget_ticks().min(SHORT_TICKS_MAX);
    let (id, subsystem) = word_parts(word);
    if is_long | (blocks != 0) || !push(Record::short_scope(id.0, at, length)) {
        return end_slowly(cells, site, at, now);
    }
    cells.charge(subsystem, now);
    // Never below zero: every scope that ends has begun, in this thread.
    cells.depth.store(depth.wrapping_sub(1), Ordering::Relaxed);
}

/// Ends a scope that is long, too long, has allocated or finds its block full.
#[cold]
#[inline(never)]
fn end_slowly(cells: &'static ThreadCells, site: &'static Site, at: u64, now: u64) {
    let now = if now == 0 { ticks::now() } else { now };
    Begun { cells, site, word: site.word(), at }.end(now);
}

/// A phase that is open: what it is stands in the thread's cells, because it may be another one when it ends.
#[derive(Copy, Clone)]
pub(crate) struct OpenPhase {
    cells: &'static ThreadCells,
}

/// Begins a phase now. `None` if it is not recorded.
#[inline(always)]
pub(crate) fn begin_phase(site: &'static Site) -> Option<OpenPhase> {
    let cells = match cells() {
        Some(cells) => cells,
        None => register_this_thread()?,
    };
    let word = site.word();
    if word == 0 {
        return None;
    }
    cells.begin_phase(site, word, ticks::now())
}

/// Begins a scope and its first phase at the same moment. Without the scope there is no phase.
#[inline(always)]
pub(crate) fn begin_divided(site: &'static Site, first: &'static Site) -> (Option<Begun>, Option<OpenPhase>) {
    let Some(around) = begin(site) else { return (None, None) };
    let word = first.word();
    (Some(around), if word == 0 { None } else { around.cells.begin_phase(first, word, around.at) })
}

/// Ends the last phase, if there is one, and the scope around it at the same moment.
#[inline(always)]
pub(crate) fn end_divided(around: Begun, last: Option<OpenPhase>) {
    let now = ticks::now();
    let now = last.map_or(now, |last| last.end_at(now));
    around.end(now);
}

/// The calling thread's innermost scope, if it is a phase, whoever began it.
#[inline(always)]
pub(crate) fn open_phase() -> Option<OpenPhase> {
    let cells = cells()?;
    let is_phase = cells.innermost_open().word.load(Ordering::Relaxed) & IS_PHASE != 0;
    is_phase.then_some(OpenPhase { cells })
}

impl OpenPhase {
    /// Ends the phase and begins the next one at the same moment, in its place, so that the depth stays and nothing is
    /// charged to what is around them. Reads the clock once instead of twice. A site too many changes nothing.
    #[inline(always)]
    pub(crate) fn next(self, site: &'static Site) {
        let word = site.word();
        if word == 0 {
            return;
        }
        let now = ticks::now();
        let open = self.cells.innermost_open();
        let now = self.record(open, now);
        open.set_phase(site, word, now);
        add(&self.cells.scopes, 1);
    }

    /// What the phase has taken so far is this site's, and so is what follows.
    #[inline(always)]
    pub(crate) fn rename(self, site: &'static Site) {
        let word = site.word();
        if word != 0 {
            let open = self.cells.innermost_open();
            open.set_phase(site, word, open.begin.load(Ordering::Relaxed));
        }
    }

    #[inline(always)]
    pub(crate) fn end(self) {
        let _ = self.end_at(ticks::now());
    }

    #[inline(always)]
    fn end_at(self, now: u64) -> u64 {
        let depth = self.cells.depth.load(Ordering::Relaxed);
        let now = self.record(&self.cells.open[depth as usize % DEPTH_MAX], now);
        self.cells.depth.store(depth.wrapping_sub(1), Ordering::Relaxed);
        now
    }

    /// Returns when it has ended.
    #[inline(always)]
    fn record(self, open: &OpenScope, now: u64) -> u64 {
        let (id, subsystem) = word_parts(open.word.load(Ordering::Relaxed));
        let (at, budget) = (open.begin.load(Ordering::Relaxed), open.budget.load(Ordering::Relaxed));
        self.cells.record(open, (id, subsystem), budget, (at, now))
    }
}

impl OpenScope {
    #[inline(always)]
    fn set_phase(&self, site: &'static Site, word: u64, begin: u64) {
        self.word.store(word | IS_PHASE, Ordering::Relaxed);
        self.budget.store(site.budget_ticks(), Ordering::Relaxed);
        self.begin.store(begin, Ordering::Relaxed);
    }
}

/// The calling thread's cells. The closure is as small as can be, because only then the access is inlined to two
/// instructions.
#[inline(always)]
fn cells() -> Option<&'static ThreadCells> {
    LOCAL.with(|local| local.cells.get())
}

#[cold]
#[inline(never)]
fn register_this_thread() -> Option<&'static ThreadCells> {
    LOCAL.with(|local| local.cells_or_register())
}

impl Begun {
    #[inline(always)]
    fn end(self, now: u64) {
        let Begun { cells, site, word, at } = self;
        let depth = cells.depth.load(Ordering::Relaxed);
        let _ = cells.record(&cells.open[depth as usize % DEPTH_MAX], word_parts(word), site.budget_ticks(), (at, now));
        // Never below zero: every scope that ends has begun, in this thread.
        cells.depth.store(depth.wrapping_sub(1), Ordering::Relaxed);
    }
}

/// Records a scope that is long, too long, has allocated or finds its block full.
#[cold]
#[inline(never)]
fn record_slowly(
    cells: &'static ThreadCells,
    (id, subsystem): (SiteId, SubsystemId),
    budget: u64,
    at: u64,
    now: u64,
) -> u64 {
    let now = match end_hook::of_subsystem(subsystem.0) {
        Some(hook) => {
            (hook.act)(cells.subsystem_ticks_by(subsystem.0 as usize, now));
            let after = ticks::now();
            cells.charge(subsystem, after);
            after
        }
        None => now,
    };
    let length = now.saturating_sub(at);
    push_or_take_block(cells, Record::scope(id.0, at, length), now);
    let open = cells.innermost_open();
    let blocks = open.blocks.load(Ordering::Relaxed);
    if blocks != 0 {
        let bytes = open.bytes.load(Ordering::Relaxed);
        open.blocks.store(0, Ordering::Relaxed);
        open.bytes.store(0, Ordering::Relaxed);
        push_or_take_block(cells, Record::allocations(blocks as u32, (blocks >> 32) as u32, bytes), now);
    }
    if length > budget {
        let (world, kind) = (cells.world(), cells.kind_of_world());
        let allowed = budget_ticks_in(id, kind, budget);
        if length > allowed {
            overruns::note(Overrun { site: id, ticks: length, allowed, at: now, thread: cells.index, world, kind });
        }
    }
    now
}

/// False if the thread has no block, or a full one.
#[inline(always)]
fn push(record: Record) -> bool {
    let block = LOCAL.with(|local| local.writer.block());
    block.is_some_and(|block| block.push(record))
}

fn push_or_take_block(cells: &'static ThreadCells, record: Record, now: u64) {
    if !push(record) {
        LOCAL.with(|local| local.push_to_next_block(cells, record, now));
    }
}

impl Local {
    #[cold]
    #[inline(never)]
    fn push_to_next_block(&self, cells: &'static ThreadCells, record: Record, now: u64) {
        let pool = pool();
        let Some(block) = self.writer.take_block(pool, &cells.block, cells.index, now) else {
            return pool.count_lost();
        };
        // What came before this block may be gone when it is read: it says for itself which world it begins in.
        if let Some((world, tick)) = cells.world() {
            block.push(Record::world(now, Some(world), tick));
        }
        block.push(record);
    }

    #[cold]
    fn cells_or_register(&self) -> Option<&'static ThreadCells> {
        if let Some(cells) = self.cells.get() {
            return Some(cells);
        }
        let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.len() >= THREADS_MAX {
            return None;
        }
        let cells: &'static ThreadCells = Box::leak(Box::new(ThreadCells::new(threads.len() as u32)));
        threads.push(cells);
        COUNT.store(threads.len(), Ordering::Relaxed);
        drop(threads);
        self.cells.set(Some(cells));
        // Fails only while the thread is being torn down; its block then stays with it.
        let _ = FAREWELL.try_with(|_| {});
        Some(cells)
    }
}

impl ThreadCells {
    fn new(index: u32) -> ThreadCells {
        let zero = || AtomicU64::new(0);
        ThreadCells {
            index,
            tid: threads::this_thread_id(),
            name: std::thread::current().name().unwrap_or("unnamed").into(),
            class: AtomicU8::new(class_number(ThreadClass::Other)),
            is_alive: AtomicBool::new(true),
            depth: AtomicU32::new(0),
            open: std::array::from_fn(|_| OpenScope {
                begin: zero(),
                word: zero(),
                budget: zero(),
                blocks: zero(),
                bytes: zero(),
            }),
            world: AtomicU32::new(NOWHERE),
            tick: AtomicU32::new(0),
            kind_row: AtomicU32::new(0),
            block: CurrentBlock::new(),
            charged_at: AtomicU64::new(ticks::now()),
            subsystem_ticks: std::array::from_fn(|_| zero()),
            lock_wait_ticks: std::array::from_fn(|_| zero()),
            allocations: zero(),
            frees: zero(),
            allocated_bytes: zero(),
            scopes: zero(),
            inputs: std::array::from_fn(|_| zero()),
            inputs_count: zero(),
        }
    }

    /// Its place among all threads of the process.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The kernel's number for it.
    pub fn tid(&self) -> u32 {
        self.tid
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn class(&self) -> ThreadClass {
        CLASSES.get(self.class.load(Ordering::Relaxed) as usize).copied().unwrap_or_default()
    }

    pub fn is_alive(&self) -> bool {
        self.is_alive.load(Ordering::Relaxed)
    }

    /// World and tick that it works for.
    pub fn world(&self) -> Option<(u32, u32)> {
        let world = self.world.load(Ordering::Relaxed);
        (world != NOWHERE).then(|| (world, self.tick.load(Ordering::Relaxed)))
    }

    /// The kind of the world that it works for.
    pub fn kind_of_world(&self) -> KindNumber {
        KindNumber::of_row(self.kind_row.load(Ordering::Relaxed) as usize)
    }

    /// Open scopes with their beginnings (ticks), outermost first.
    pub fn open_scopes(&self) -> impl Iterator<Item = (SiteId, u64)> + '_ {
        let depth = (self.depth.load(Ordering::Relaxed) as usize).min(DEPTH_MAX - 1);
        self.open[1..=depth]
            .iter()
            .map(|open| (word_parts(open.word.load(Ordering::Relaxed)).0, open.begin.load(Ordering::Relaxed)))
    }

    /// Time of each subsystem since the thread began, without the scopes of others inside (ticks), by number. What an
    /// open scope has taken since its last boundary is not in it yet.
    pub fn subsystem_ticks(&self) -> impl Iterator<Item = u64> + '_ {
        let rows = 0..KIND_ROWS;
        (0..SUBSYSTEMS_MAX).map(move |number| {
            let of_kinds = rows.clone().map(|row| &self.subsystem_ticks[row * SUBSYSTEMS_MAX + number]);
            of_kinds.map(|ticks| ticks.load(Ordering::Relaxed)).sum::<u64>()
        })
    }

    /// The part of [`Self::subsystem_ticks`] that went by in worlds of a kind; for none, outside of all worlds.
    pub fn subsystem_ticks_of(&self, kind: KindNumber) -> impl Iterator<Item = u64> + '_ {
        let row = self.subsystem_ticks.iter().skip(kind.row() * SUBSYSTEMS_MAX).take(SUBSYSTEMS_MAX);
        row.map(|ticks| ticks.load(Ordering::Relaxed))
    }

    /// Time of one subsystem by `now` (ticks), with what its open scope has taken since its last boundary.
    pub(crate) fn subsystem_ticks_by(&self, number: usize, now: u64) -> u64 {
        let read = || {
            let at = self.charged_at.load(Ordering::Relaxed);
            let open = word_parts(self.innermost_open().word.load(Ordering::Relaxed)).1;
            let rows = self.subsystem_ticks.chunks_exact(SUBSYSTEMS_MAX).take(world_kind::rows());
            let charged: u64 = rows.map(|row| row[number % SUBSYSTEMS_MAX].load(Ordering::Relaxed)).sum();
            (at, charged + if open.0 as usize == number { now.saturating_sub(at) } else { 0 })
        };
        let (at, ticks) = read();
        // A boundary in between would be counted twice or not at all; another one right after it is no matter.
        if self.charged_at.load(Ordering::Relaxed) == at { ticks } else { read().1 }
    }

    /// Time that each subsystem waited for locks (ticks), by number.
    pub fn lock_wait_ticks(&self) -> impl Iterator<Item = u64> + '_ {
        self.lock_wait_ticks.iter().map(|ticks| ticks.load(Ordering::Relaxed))
    }

    /// Bytes that it has allocated since it began to record.
    pub fn allocated_bytes(&self) -> u64 {
        self.allocated_bytes.load(Ordering::Relaxed)
    }

    /// Blocks that it has allocated and freed since it began to record.
    pub fn allocations_and_frees(&self) -> (u64, u64) {
        (self.allocations.load(Ordering::Relaxed), self.frees.load(Ordering::Relaxed))
    }

    /// Scopes that it has recorded, or is recording.
    pub fn scopes(&self) -> u64 {
        self.scopes.load(Ordering::Relaxed)
    }

    /// Client and number of the last inputs that it took in for the world that it works for, newest first.
    pub fn last_inputs(&self) -> Vec<(u32, u16)> {
        let Some((world, _)) = self.world() else { return Vec::new() };
        let count = self.inputs_count.load(Ordering::Relaxed) as usize;
        let newest_first = (count.saturating_sub(INPUTS_KEPT)..count).rev();
        let words = newest_first.map(|place| self.inputs[place % INPUTS_KEPT].load(Ordering::Relaxed));
        words
            .filter(|word| *word as u16 == world as u16)
            .map(|word| ((word >> 32) as u32, (word >> 16) as u16))
            .collect()
    }

    /// The block that it writes now.
    pub(crate) fn block(&self) -> Option<u32> {
        self.block.get()
    }

    fn innermost(&self) -> Option<SiteId> {
        let (id, _) = word_parts(self.innermost_open().word.load(Ordering::Relaxed));
        (id.0 != 0).then_some(id)
    }

    #[inline(always)]
    fn innermost_open(&self) -> &OpenScope {
        &self.open[self.depth.load(Ordering::Relaxed) as usize % DEPTH_MAX]
    }

    #[inline(always)]
    fn begin(&'static self, site: &'static Site, word: u64, now: u64) -> Option<Begun> {
        let depth = self.depth.load(Ordering::Relaxed) as usize;
        if depth + 1 >= DEPTH_MAX {
            return too_deep();
        }
        let (outer, open) = (&self.open[depth], &self.open[depth + 1]);
        self.charge(word_parts(outer.word.load(Ordering::Relaxed)).1, now);
        open.word.store(word, Ordering::Relaxed);
        open.begin.store(now, Ordering::Relaxed);
        self.depth.store(depth as u32 + 1, Ordering::Relaxed);
        add(&self.scopes, 1);
        Some(Begun { cells: self, site, word, at: now })
    }

    #[inline(always)]
    fn begin_phase(&'static self, site: &'static Site, word: u64, now: u64) -> Option<OpenPhase> {
        self.begin(site, word | IS_PHASE, now)?;
        self.innermost_open().budget.store(site.budget_ticks(), Ordering::Relaxed);
        Some(OpenPhase { cells: self })
    }

    /// All that is known of a scope when it has ended. Returns when that was: later than `now` if there is an
    /// [`end_hook`].
    #[inline(always)]
    fn record(
        &'static self,
        open: &OpenScope,
        (id, subsystem): (SiteId, SubsystemId),
        budget: u64,
        (at, now): (u64, u64),
    ) -> u64 {
        self.charge(subsystem, now);
        // Should the counter ever go backwards, this is too long to be plain.
        let length = now.wrapping_sub(at);
        let is_long = length > budget.min(SHORT_TICKS_MAX);
        if is_long | (open.blocks.load(Ordering::Relaxed) != 0) || !push(Record::short_scope(id.0, at, length)) {
            return record_slowly(self, (id, subsystem), budget, at, now);
        }
        now
    }

    /// The time since the last boundary belongs to this subsystem.
    #[inline(always)]
    fn charge(&self, subsystem: SubsystemId, now: u64) {
        let since = now.wrapping_sub(self.charged_at.load(Ordering::Relaxed));
        self.charged_at.store(now, Ordering::Relaxed);
        let row = self.kind_row.load(Ordering::Relaxed) as usize;
        add(&self.subsystem_ticks[(row * SUBSYSTEMS_MAX + subsystem.0 as usize) % (KIND_ROWS * SUBSYSTEMS_MAX)], since);
    }
}

/// Scopes that were nested too deep to be recorded.
pub fn too_deep_count() -> u64 {
    TOO_DEEP.load(Ordering::Relaxed)
}

static TOO_DEEP: AtomicU64 = AtomicU64::new(0);

#[cold]
#[inline(never)]
fn too_deep() -> Option<Begun> {
    TOO_DEEP.fetch_add(1, Ordering::Relaxed);
    None
}

/// An addition by the only writer: two plain instructions, no locked one.
#[inline(always)]
fn add(cell: &AtomicU64, more: u64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

const CLASSES: [ThreadClass; 4] =
    [ThreadClass::Other, ThreadClass::Frame, ThreadClass::ShortTask, ThreadClass::LongTask];

fn class_number(class: ThreadClass) -> u8 {
    CLASSES.iter().position(|&other| other == class).unwrap_or_default() as u8
}

#[cfg(all(test, feature = "record", not(any(feature = "loom", feature = "shuttle"))))]
mod tests;
