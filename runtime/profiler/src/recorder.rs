//! The recorder, as the frame's thread sees it: a frame begins, a frame ends.
//!
//! At a frame's end it gives old blocks back, adds up what every subsystem took and waited, splits the frame's time of
//! each thread into running, waiting for a core and blocked, and looks at the triggers. That is a few microseconds;
//! nothing in it waits or formats, and nothing allocates once the threads are known. What is to be saved goes to the
//! recorder's own thread ([`crate::saver`]).

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use throng_capture::model::{FrameThread, SwitchSource, ThreadClass, TriggerKind};
use throng_platform::allocator;
use throng_platform::threads::{Priority, spawn_named};
use throng_platform::ticks::{self, Calibration};

use crate::capture_builder::FrameNote;
use crate::control::RecorderControl;
use crate::cores::CoreWatch;
use crate::hand_off::{HandOff, SwitchRecords};
use crate::pool::PoolSettings;
use crate::rules::{HISTORY_S, Rules};
use crate::settings::RecorderSettings;
use crate::site::SUBSYSTEMS_MAX;
use crate::switches::Switches;
use crate::thread::{self, ThreadCells};
use crate::tick_means::TickMeans;
use crate::triggers::{Cause, Fired, Triggers};
use crate::workers::{IDLE, WorkersSum, WorkersWatch};
use crate::world_kind::{self, KIND_ROWS, KindNumber};
use crate::{block::Block, memory, overruns, pool, saver, site, start_recording, switch_recording};
use crate::{log_category, log_warn};

log_category!(RECORDER = "profiler.recorder");

/// A recorder that runs. Owned by the frame's thread; recording stops when it is dropped.
pub struct Recorder {
    hand_off: Arc<HandOff>,
    saver: Option<JoinHandle<()>>,
    triggers: Triggers,
    rules_version: u64,
    switches: Switches,
    /// Follows who has our cores, where the host allows it and somebody wants it.
    cores: Option<CoreWatch>,
    /// As [`Recorder::switch_on`] and [`Recorder::rest`] have it.
    is_on: bool,
    rests: bool,
    has_told_what_is_missing: bool,
    calibration: Calibration,
    /// When the calibration was bound to the present (ticks).
    renewed_at: u64,
    threads: Vec<&'static ThreadCells>,
    threads_seen: usize,
    /// Sums of threads that have ended.
    ended: Box<Sums>,
    before: Box<Sums>,
    /// Kinds of worlds and periods for which sites know what their scopes may take, as counted there.
    kind_changes: usize,
    /// What each subsystem took in the frame in each kind of world (ticks), by its row and the subsystem's number.
    of_kinds: Box<[[u64; SUBSYSTEMS_MAX]; KIND_ROWS]>,
    figures: FrameFigures,
    frame: FrameNote,
    /// Of the frame under way, the latest of each kind of world.
    late_ticks: Vec<LateTick>,
    tick_means: TickMeans,
    workers: WorkersWatch,
}

/// What one frame's end adds up.
#[derive(Debug, Clone)]
pub struct FrameFigures {
    /// What each subsystem took on all threads, without others inside (ns), by number. See [`site::subsystems`].
    pub subsystem_ns: [u64; SUBSYSTEMS_MAX],
    /// What each subsystem waited for locks (ns).
    pub lock_wait_ns: [u64; SUBSYSTEMS_MAX],
    /// The wall time of the frame's threads, split.
    pub running_ns: u64,
    pub waiting_ns: u64,
    pub blocked_ns: u64,
    /// Scopes recorded in the frame.
    pub scopes: u64,
}

/// Sums over threads since the start, in ticks.
#[derive(Clone)]
struct Sums {
    /// By the row of the kind of world.
    subsystem: [[u64; SUBSYSTEMS_MAX]; KIND_ROWS],
    lock_wait: [u64; SUBSYSTEMS_MAX],
    scopes: u64,
}

impl Recorder {
    /// Starts recording and the recorder's own thread. Also counts allocations from now on, where the program has the
    /// counting allocator. Fails when the host has no room for another thread. Takes about 20 ms.
    pub fn start(settings: RecorderSettings) -> io::Result<Recorder> {
        let calibration = Calibration::get();
        let second = calibration.ticks(1_000_000_000);
        let blocks_max = settings.memory_bytes / size_of::<Block>();
        let pool_settings = PoolSettings {
            blocks_max,
            reserve: RESERVE_BLOCKS.min(blocks_max / 2).max(1),
            // With the longest post-roll, which a capture waits for.
            history: (f64::from(1.5 * HISTORY_S) * second as f64) as u64,
        };
        let mut switches = Switches::new(settings.context_switches);
        let (cores, records) = switch_records(&settings, &mut switches);
        let triggers = Triggers::new(settings.rules.clone(), second);
        site::set_budgets(settings.rules.scope_budgets_ns.clone(), settings.rules.kind_budgets.clone());
        let hand_off = Arc::new(HandOff::new(settings, records));
        if memory::install().is_err() {
            log_warn!(RECORDER, "another observer has the allocator: captures know nothing of memory");
        }
        allocator::defer_large_frees(DEFERRED_ABOVE_BYTES);
        follow_rules(&hand_off.rules(), &calibration);
        start_recording(pool_settings);
        let for_saver = Arc::clone(&hand_off);
        let saver = spawn_named("recorder", Priority::Low, move || saver::work(&for_saver))?;
        Ok(Recorder {
            hand_off,
            saver: Some(saver),
            triggers,
            rules_version: 0,
            switches,
            cores,
            is_on: true,
            rests: false,
            has_told_what_is_missing: false,
            calibration,
            renewed_at: ticks::now(),
            threads: Vec::new(),
            threads_seen: 0,
            ended: Box::default(),
            before: Box::default(),
            kind_changes: 0,
            of_kinds: Box::new([[0; SUBSYSTEMS_MAX]; KIND_ROWS]),
            figures: FrameFigures::default(),
            frame: FrameNote::default(),
            late_ticks: Vec::with_capacity(LATE_TICKS_KEPT),
            tick_means: TickMeans::new(second),
            workers: WorkersWatch::default(),
        })
    }

    /// A handle for other threads.
    pub fn control(&self) -> RecorderControl {
        RecorderControl::new(Arc::clone(&self.hand_off))
    }

    /// Where context switches come from, and what is missing if not from the best source.
    pub fn switch_source(&self) -> (SwitchSource, Option<String>) {
        let switches = &self.hand_off.switches;
        (switches.source, Some(switches.why_not.clone()).filter(|why_not| !why_not.is_empty()))
    }

    /// Stops all recording, or goes on: to see what it costs. Frames without recording are not to be told.
    pub fn switch_on(&mut self, is_on: bool) {
        switch_recording(is_on);
        self.is_on = is_on;
        self.switches.switch_on(is_on);
        self.follow_cores();
    }

    /// Looks at the host no longer, or again from now on: for a server that sleeps, which nobody can hold up. What our
    /// threads do is recorded all the same; who had the cores meanwhile, and which processes used them, no capture knows.
    /// Changes nothing if it is so already; else a system call or two.
    pub fn rest(&mut self, rests: bool) {
        if std::mem::replace(&mut self.rests, rests) != rests {
            self.hand_off.rest(rests);
            self.follow_cores();
        }
    }

    fn follow_cores(&self) {
        self.cores.iter().for_each(|cores| cores.switch_on(self.is_on && !self.rests));
    }

    /// Says how many clients and worlds there are: memory that grows with them is not called a leak.
    pub fn set_population(&self, count: u64) {
        self.hand_off.population.store(count, Ordering::Relaxed);
    }

    /// A frame begins, on the frame's thread.
    pub fn frame_begin(&mut self, number: u64, budget_ns: u64) {
        self.frame.number = number;
        self.frame.budget_ns = budget_ns;
        self.frame.begin_ticks = ticks::now();
        // The processor's counter and the kernel's clock drift apart by some ms an hour, and their records must agree.
        if self.frame.begin_ticks.saturating_sub(self.renewed_at) > self.calibration.ticks(RENEW_EVERY_NS) {
            self.calibration = self.calibration.renewed();
            self.renewed_at = self.frame.begin_ticks;
        }
        self.switches.begin(self.calibration.monotonic_ns(self.frame.begin_ticks));
    }

    /// A tick of a world of this kind came to its end in this frame. Never allocates.
    pub fn note_tick(&mut self, kind: KindNumber) {
        self.tick_means.tick_ended(kind);
    }

    /// A tick of a world came to its end in this frame, so long after its period (ns). Of each kind of world the latest
    /// tick of a frame is kept. Never allocates.
    pub fn note_late_tick(&mut self, late: LateTick) {
        let known = self.late_ticks.iter().position(|known| known.kind == late.kind);
        match known {
            Some(place) => {
                let known = &mut self.late_ticks[place];
                let is_missed = known.is_missed || late.is_missed;
                if late.late_ns > known.late_ns {
                    *known = late;
                }
                known.is_missed = is_missed;
            }
            None if self.late_ticks.len() < LATE_TICKS_KEPT => self.late_ticks.push(late),
            None => {}
        }
    }

    /// The frame ends. What it took is in the figures until the next one ends.
    pub fn frame_end(&mut self) -> &FrameFigures {
        self.frame.end_ticks = ticks::now();
        self.take_rules();
        pool().recycle(self.frame.end_ticks);
        self.meet_threads();
        self.meet_kinds();
        self.add_up();
        self.split_time();
        self.look_at_triggers();
        self.hand_off.counts.switches_lost.store(self.switches.records_lost(), Ordering::Relaxed);
        self.hand_off.keep_frame(&mut self.frame, self.triggers.counts);
        &self.figures
    }

    /// New rules come from another thread; the frame in which they are seen allocates.
    fn take_rules(&mut self) {
        if let Some((version, rules)) = self.hand_off.rules_newer_than(self.rules_version) {
            self.rules_version = version;
            site::set_budgets(rules.scope_budgets_ns.clone(), rules.kind_budgets.clone());
            follow_rules(&rules, &self.calibration);
            self.triggers.set_rules(rules);
        }
    }

    /// What the frame took that ended last.
    pub fn figures(&self) -> &FrameFigures {
        &self.figures
    }

    /// What each subsystem took in the worlds of each kind in the frame that ended last: tells the kind, the subsystem's
    /// number and the time (ns) where there was any. Never allocates. Cost: some 100 ns.
    pub fn each_of_kinds(&self, mut tell: impl FnMut(KindNumber, usize, u64)) {
        let count = site::subsystems_count();
        for row in 1..world_kind::rows() {
            for (number, &taken) in self.of_kinds[row].iter().enumerate().take(count).filter(|(_, taken)| **taken > 0) {
                tell(KindNumber::of_row(row), number, self.calibration.ns(taken));
            }
        }
    }

    fn meet_threads(&mut self) {
        if self.threads_seen != thread::count() {
            let all = thread::all();
            for &cells in &all[self.threads_seen..] {
                self.threads.push(cells);
                self.switches.follow(cells.index(), cells.tid());
            }
            self.threads_seen = all.len();
            self.tell_what_is_missing();
        }
        let (ended, switches) = (&mut self.ended, &mut self.switches);
        self.threads.retain(|cells| {
            if !cells.is_alive() {
                ended.add(cells, site::subsystems_count());
                switches.forget(cells.index());
            }
            cells.is_alive()
        });
    }

    /// A kind of world that is new, or whose period is, may have budgets. Then this allocates.
    fn meet_kinds(&mut self) {
        let changes = world_kind::changes();
        if std::mem::replace(&mut self.kind_changes, changes) != changes {
            site::apply_budgets();
            follow_rules(self.triggers.rules(), &self.calibration);
        }
    }

    /// Threads that cannot be followed all have the same cause: it is logged once.
    fn tell_what_is_missing(&mut self) {
        if let Some(reason) = self.switches.why_not()
            && !std::mem::replace(&mut self.has_told_what_is_missing, true)
        {
            log_warn!(RECORDER, %reason, "context switches of some threads are not recorded one by one");
        }
    }

    fn add_up(&mut self) {
        let mut sums = (*self.ended).clone();
        // One that comes up meanwhile is in the next frame's sums, with all that it has taken.
        let (count, rows) = (site::subsystems_count(), world_kind::rows());
        self.threads.iter().for_each(|cells| sums.add(cells, count));
        for number in 0..count {
            let mut in_all = 0;
            for row in 0..rows {
                let taken = sums.subsystem[row][number].saturating_sub(self.before.subsystem[row][number]);
                self.of_kinds[row][number] = taken;
                in_all += taken;
            }
            self.figures.subsystem_ns[number] = self.calibration.ns(in_all);
            let waited = sums.lock_wait[number].saturating_sub(self.before.lock_wait[number]);
            self.figures.lock_wait_ns[number] = self.calibration.ns(waited);
        }
        self.figures.scopes = sums.scopes.saturating_sub(self.before.scopes);
        *self.before = sums;
    }

    fn split_time(&mut self) {
        let begin_ns = self.calibration.monotonic_ns(self.frame.begin_ticks);
        let end_ns = self.calibration.monotonic_ns(self.frame.end_ticks);
        self.frame.threads.clear();
        self.switches.frame(begin_ns, end_ns, &mut self.frame.threads);
        let sum = |of: fn(&FrameThread) -> u64| self.frame.threads.iter().map(of).sum();
        self.figures.running_ns = sum(|thread| thread.running_ns);
        self.figures.waiting_ns = sum(|thread| thread.waiting_ns);
        self.figures.blocked_ns = sum(|thread| thread.blocked_ns);
    }

    fn look_at_triggers(&mut self) {
        let (at, frame) = (self.frame.end_ticks, self.frame.number);
        let length_ns = self.calibration.ns(at.saturating_sub(self.frame.begin_ticks));
        let (kind, cause, world_kind) = (TriggerKind::Frame, Cause::Frame, KindNumber::NONE);
        let base = Fired { kind, cause, world_kind, measured: 0, allowed: 0, world: None, at, frame };

        if let Some(allowed) = self.triggers.threshold(TriggerKind::Frame).filter(|&allowed| length_ns > allowed) {
            self.fire(Fired { measured: length_ns, allowed, ..base });
        }
        let mut late_ticks = std::mem::take(&mut self.late_ticks);
        for LateTick { world, kind: world_kind, late_ns, is_missed } in late_ticks.drain(..) {
            let allowed = self.triggers.threshold_in(TriggerKind::Tick, world_kind);
            if let Some(allowed) = allowed.filter(|&allowed| late_ns > allowed || is_missed) {
                let (kind, cause, world) = (TriggerKind::Tick, Cause::Tick, Some(world));
                self.fire(Fired { kind, cause, world_kind, measured: late_ns, allowed, world, ..base });
            }
        }
        self.late_ticks = late_ticks;
        self.look_at_workers(base);
        self.look_at_subsystems(base);
        while let Some(overrun) = overruns::take() {
            let world = overrun.world.map(|(world, _)| world);
            let (measured, allowed) = (self.calibration.ns(overrun.ticks), self.calibration.ns(overrun.allowed));
            let (kind, cause, world_kind) = (TriggerKind::Scope, Cause::Scope(overrun.site), overrun.kind);
            self.fire(Fired { kind, cause, world_kind, measured, allowed, world, at: overrun.at, frame });
        }
        while let Some(wait) = overruns::take_wait() {
            let measured = self.calibration.ns(wait.ticks);
            let Some(allowed) = self.triggers.threshold(TriggerKind::LockWait).filter(|&allowed| measured > allowed)
            else {
                continue;
            };
            let (kind, cause) = (TriggerKind::LockWait, Cause::Lock(wait.lock));
            let (world, world_kind) = (wait.world, wait.kind);
            self.fire(Fired { kind, cause, world_kind, measured, allowed, world, at: wait.at, frame });
        }
        while let Some(large) = memory::take_large_allocation() {
            let allowed = self.triggers.threshold(TriggerKind::LargeAllocation).unwrap_or_default();
            let (kind, cause, world) = (TriggerKind::LargeAllocation, Cause::Memory(large.site), Some(large.world));
            self.fire(Fired { kind, cause, world_kind: large.kind, measured: large.bytes, allowed, world, ..base });
        }
        let frame_end_ns = self.calibration.monotonic_ns(at);
        if let Some(allowed) = self.triggers.threshold(TriggerKind::RunQueue) {
            for place in 0..self.frame.threads.len() {
                let FrameThread { thread, waiting_ns, .. } = self.frame.threads[place];
                // One wait, which may have begun between two frames, or all of this frame's together.
                let longest = self.switches.longest_waits().iter().filter(|wait| wait.thread == thread);
                let longest =
                    longest.map(|wait| (wait.waited_ns, wait.at_ns + wait.waited_ns)).max().unwrap_or_default();
                let (measured, end_ns) = if longest.0 > waiting_ns { longest } else { (waiting_ns, frame_end_ns) };
                if measured > allowed && self.works_for_frames(thread) {
                    let (kind, cause) = (TriggerKind::RunQueue, Cause::Thread(thread));
                    let at = self.calibration.ticks_at(end_ns);
                    self.fire(Fired { kind, cause, measured, allowed, at, ..base });
                }
            }
        }
        while let Some(noticed) = self.hand_off.take_noticed() {
            self.fire(Fired { frame, ..noticed });
        }
    }

    /// Nothing is known of workers that have never been idle.
    fn look_at_workers(&mut self, base: Fired) {
        let Some(allowed) = self.triggers.threshold(TriggerKind::WorkersBusy) else { return };
        let Some(idle) = site::subsystem_number(IDLE) else { return };
        let mut now = WorkersSum { at: base.at, ..WorkersSum::default() };
        for cells in self.threads.iter().filter(|cells| cells.class() == ThreadClass::ShortTask) {
            now.count += 1;
            now.idle += cells.subsystem_ticks_by(idle, base.at);
        }
        if let Some(measured) = self.workers.frame_end(now, allowed) {
            self.fire(Fired { kind: TriggerKind::WorkersBusy, cause: Cause::Workers, measured, allowed, ..base });
        }
    }

    /// Worlds of a kind that has a budget of its own for a subsystem are judged by that, and all others together.
    fn look_at_subsystems(&mut self, base: Fired) {
        let (count, rows) = (site::subsystems_count(), world_kind::rows());
        self.triggers.meet(count, rows, || (site::subsystems(), world_kind::names()));
        (1..rows).for_each(|row| self.look_at_tick_means(row, base));
        for number in 1..count {
            let (kind, cause) = (TriggerKind::Subsystem, Cause::Subsystem(number as u32));
            let mut others_ns = self.figures.subsystem_ns[number];
            for row in 1..rows {
                let Some(allowed) = self.triggers.subsystem_budget_ns(number, row) else { continue };
                let measured = self.calibration.ns(self.of_kinds[row][number]);
                others_ns = others_ns.saturating_sub(measured);
                if measured > allowed {
                    let world_kind = KindNumber::of_row(row);
                    self.fire(Fired { kind, cause, world_kind, measured, allowed, ..base });
                }
            }
            let of_others = self.triggers.subsystem_budget_ns(number, KindNumber::NONE.row());
            if let Some(allowed) = of_others.filter(|&allowed| others_ns > allowed) {
                self.fire(Fired { kind, cause, measured: others_ns, allowed, ..base });
            }
        }
    }

    /// What a subsystem takes in a tick has a budget of its own, which is the same for one world and for a thousand.
    fn look_at_tick_means(&mut self, row: usize, base: Fired) {
        let Some((ended, taken)) = self.tick_means.frame(row, &self.of_kinds[row], base.at) else { return };
        for (number, taken) in (0..).zip(taken) {
            let Some(allowed) = self.triggers.per_tick_budget_ns(number as usize, row) else { continue };
            let measured = self.calibration.ns(taken) / ended.max(1);
            if measured > allowed {
                let (kind, cause) = (TriggerKind::Subsystem, Cause::SubsystemPerTick(number));
                self.fire(Fired { kind, cause, world_kind: KindNumber::of_row(row), measured, allowed, ..base });
            }
        }
    }

    fn works_for_frames(&self, thread: u32) -> bool {
        let class = self.threads.iter().find(|cells| cells.index() == thread).map(|cells| cells.class());
        matches!(class, Some(ThreadClass::Frame | ThreadClass::ShortTask))
    }

    fn fire(&mut self, fired: Fired) {
        if !self.hand_off.saves_by_itself() {
            return;
        }
        // Asked first: what is crowded out must not rest as if it had been saved.
        if !self.hand_off.has_room() {
            self.triggers.counts.crowded_out += 1;
        } else if self.triggers.admit(&fired) {
            // This thread alone fills the queue, so that the room is still there.
            self.hand_off.request(fired);
        }
    }
}

/// A tick that ended after its period.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LateTick {
    pub world: u32,
    /// Each kind has a cooldown of its own.
    pub kind: KindNumber,
    /// How long after (ns).
    pub late_ns: u64,
    /// It did not even begin within it.
    pub is_missed: bool,
}

/// Kinds of worlds whose late ticks one frame remembers; a game with more has one frame's triggers less.
const LATE_TICKS_KEPT: usize = 16;

/// How often the two clocks are bound together again (ns).
const RENEW_EVERY_NS: u64 = 1_000_000_000;

/// Follows the cores as well, if that is wanted and the host allows it, and says what captures will know.
fn switch_records(settings: &RecorderSettings, switches: &mut Switches) -> (Option<CoreWatch>, SwitchRecords) {
    let (mut source, mut why_not) = (switches.source(), switches.why_not().unwrap_or_default());
    let mut cores = None;
    if settings.core_switches && settings.context_switches {
        match CoreWatch::start() {
            // Where threads of our own are not told one by one, that is what lacks most.
            Ok(watch) if source == SwitchSource::PerfEvent => (source, cores) = (SwitchSource::CpuWide, Some(watch)),
            Ok(watch) => cores = Some(watch),
            Err(error) if why_not.is_empty() => why_not = error,
            Err(_) => {}
        }
    }
    let history = cores.as_ref().map(CoreWatch::history);
    (cores, SwitchRecords { source, why_not, history: switches.history(), cores: history })
}

/// What is asked where it happens, not once a frame.
fn follow_rules(rules: &Rules, calibration: &Calibration) {
    let lock_wait = rules.trigger(TriggerKind::LockWait);
    let threshold_ns = lock_wait.threshold_at(world_kind::shortest_period_ns());
    let threshold = if lock_wait.is_on { calibration.ticks(threshold_ns) } else { u64::MAX };
    overruns::set_long_wait_ticks(threshold);
    let threshold = rules.trigger(TriggerKind::LargeAllocation).threshold;
    memory::set_large_allocation_bytes(usize::try_from(threshold).unwrap_or(usize::MAX));
}

/// Larger blocks that a world gives up in its tick are freed by the recorder's thread (bytes).
const DEFERRED_ABOVE_BYTES: usize = 256 << 10;

/// What all threads together may fill between two frames: 64 blocks are 65,000 records, three frames of 20,000.
const RESERVE_BLOCKS: usize = 64;

/// How long the end of the recorder waits for captures that have fired to be written. An order to end a server is
/// obeyed in 5 s.
const SAVE_AT_END_WITHIN: Duration = Duration::from_secs(2);

impl Drop for Recorder {
    fn drop(&mut self) {
        switch_recording(false);
        self.hand_off.stop();
        let give_up_at = Instant::now() + SAVE_AT_END_WITHIN;
        let saver = self.saver.take();
        while saver.as_ref().is_some_and(|saver| !saver.is_finished()) && Instant::now() < give_up_at {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The disk may hang; whoever waits for it must not wait for longer than the server.
        self.hand_off.close();
    }
}

impl Default for FrameFigures {
    fn default() -> FrameFigures {
        FrameFigures {
            subsystem_ns: [0; SUBSYSTEMS_MAX],
            lock_wait_ns: [0; SUBSYSTEMS_MAX],
            running_ns: 0,
            waiting_ns: 0,
            blocked_ns: 0,
            scopes: 0,
        }
    }
}

impl Default for Sums {
    fn default() -> Sums {
        Sums { subsystem: [[0; SUBSYSTEMS_MAX]; KIND_ROWS], lock_wait: [0; SUBSYSTEMS_MAX], scopes: 0 }
    }
}

impl Sums {
    /// Adds what a thread has taken in the first `subsystems_count` subsystems: of others there is nothing to read.
    fn add(&mut self, cells: &ThreadCells, subsystems_count: usize) {
        for (row, sums) in self.subsystem.iter_mut().enumerate().take(world_kind::rows()) {
            let of_kind = cells.subsystem_ticks_of(KindNumber::of_row(row));
            sums.iter_mut().zip(of_kind).take(subsystems_count).for_each(|(sum, ticks)| *sum += ticks);
        }
        let lock_wait = self.lock_wait.iter_mut().zip(cells.lock_wait_ticks()).take(subsystems_count);
        lock_wait.for_each(|(sum, ticks)| *sum += ticks);
        self.scopes += cells.scopes();
    }
}
