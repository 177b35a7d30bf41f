//! Game metrics: a counter or a gauge in one line, anywhere in a game's code.
//!
//! ```
//! # let casts = 3; let players = 7;
//! throng_metrics::count!("npc.casts", casts);
//! throng_metrics::gauge!("players", players);
//! throng_metrics::sample!("round.seconds", 71);
//! ```
//!
//! A call site is a static that learns the number of its name once, so a call costs an addition in memory of its
//! thread: 2 ns, no lock, no atomic write. The world's tick empties that memory when it ends, and the frame adds up
//! what all worlds counted:
//!
//! ```text
//! count!, gauge! -> the thread's tick -- tick's end --> GameSums of the worker -- frame's end --> GameTotals
//!                                        WorldGauges of the world
//! ```
//!
//! A counter only grows, and each frame's own sum is told, so that a spike of one frame can be seen. A gauge stands as
//! a world last set it, and worlds are added up; those of a world that sleeps are left out until it wakes, since nothing
//! in it would keep them true. The same name in several places is one metric; a name is a counter or a gauge, never both.
//!
//! Calls outside of a tick (bots, tools, tests without a runner) do nothing. Nothing here is read by a game, so metrics
//! never change what it computes. Names are known to the whole process, values to the server that counted them. Memory:
//! 16 B for each name and thread, 8 B for each gauge and world that sets it. Never allocates in a steady tick.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    marker::PhantomData,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::declared::is_name;

/// Most counters, and most gauges, of a process. They are in a program's text, so it takes a generator to get here;
/// what comes after is not counted. Each takes 5 KiB of a server's metrics, for its maximum over time.
pub const NAMES_MAX: usize = 4_096;

/// Counters, and gauges, that there is room for from the start: a name that is first used long after allocates nothing
/// in its tick.
const NAMES_EXPECTED: usize = 128;

/// A call site that does not know its number yet.
const UNKNOWN: u32 = u32::MAX;
/// A name that is taken by the other kind, or one too many.
const REFUSED: u32 = u32::MAX - 1;

/// Adds to a counter of the game: `count!("npc.casts")` one, `count!("npc.casts", n)` so many. Of the world whose tick
/// runs on this thread; outside of a tick it does nothing.
#[macro_export]
macro_rules! count {
    ($name:expr) => {
        $crate::count!($name, 1)
    };
    ($name:expr, $count:expr) => {{
        static SITE: $crate::game::CounterSite = $crate::game::CounterSite::new($name);
        SITE.add($count as u64);
    }};
}

/// Sets a gauge of the game in the world whose tick runs on this thread: `gauge!("players", n)`. It stands until the
/// world sets it again, and is added up over worlds. Outside of a tick it does nothing.
#[macro_export]
macro_rules! gauge {
    ($name:expr, $value:expr) => {{
        static SITE: $crate::game::GaugeSite = $crate::game::GaugeSite::new($name);
        SITE.set($value as i64);
    }};
}

/// Adds a value to a mean of the game: `sample!("round.tick_ns", ns)`. Two counters, the sum under this name and how many
/// values it is of under the same with `.samples` behind it; reports tell the one by the other.
#[macro_export]
macro_rules! sample {
    ($name:literal, $value:expr) => {{
        $crate::count!($name, $value);
        $crate::count!(concat!($name, ".samples"), 1);
    }};
}

/// What is behind the name of the counter that says of how many values another one is the sum.
pub const SAMPLES: &str = ".samples";

/// A place that counts. Made by [`count!`](crate::count); a static of one's own serves where names come from a list.
pub struct CounterSite {
    name: &'static str,
    /// Written once or twice with the same number, read by whoever counts; nothing else depends on it, so relaxed order
    /// is enough.
    id: AtomicU32,
}

impl CounterSite {
    /// # Panics
    /// While compiling: when Prometheus would not take the name.
    pub const fn new(name: &'static str) -> CounterSite {
        assert!(is_name(name), "a metric's name is made of a-z, 0-9, `_` and `.`, a letter first");
        CounterSite { name, id: AtomicU32::new(UNKNOWN) }
    }

    #[inline]
    pub fn add(&self, count: u64) {
        in_tick(|tick| *tick.counters.at(known(&self.id, self.name, true)) += count);
    }
}

/// A place that sets a gauge. Made by [`gauge!`](crate::gauge).
pub struct GaugeSite {
    name: &'static str,
    /// As a counter's.
    id: AtomicU32,
}

impl GaugeSite {
    /// # Panics
    /// While compiling: when Prometheus would not take the name.
    pub const fn new(name: &'static str) -> GaugeSite {
        assert!(is_name(name), "a metric's name is made of a-z, 0-9, `_` and `.`, a letter first");
        GaugeSite { name, id: AtomicU32::new(UNKNOWN) }
    }

    #[inline]
    pub fn set(&self, value: i64) {
        in_tick(|tick| *tick.gauges.at(known(&self.id, self.name, false)) = value);
    }
}

/// The names of the process. The place of a name is its number.
struct Names {
    counters: Vec<&'static str>,
    gauges: Vec<&'static str>,
}

static NAMES: Mutex<Names> = Mutex::new(Names { counters: Vec::new(), gauges: Vec::new() });
/// How many of each there are: for ticks to make room. One that reads an old number makes room when it needs it.
static COUNTERS_COUNT: AtomicU32 = AtomicU32::new(0);
static GAUGES_COUNT: AtomicU32 = AtomicU32::new(0);

fn names() -> MutexGuard<'static, Names> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[inline]
fn known(id: &AtomicU32, name: &'static str, is_counter: bool) -> u32 {
    match id.load(Ordering::Relaxed) {
        UNKNOWN => learn(id, name, is_counter),
        known => known,
    }
}

#[cold]
fn learn(id: &AtomicU32, name: &'static str, is_counter: bool) -> u32 {
    let mut names = names();
    let Names { counters, gauges } = &mut *names;
    let (own, others, count) =
        if is_counter { (counters, gauges, &COUNTERS_COUNT) } else { (gauges, counters, &GAUGES_COUNT) };
    let is_taken = others.contains(&name);
    let number = match own.iter().position(|&other| other == name) {
        Some(number) => number as u32,
        None if is_taken || own.len() >= NAMES_MAX => REFUSED,
        None => {
            if own.capacity() == 0 {
                own.reserve(NAMES_EXPECTED);
            }
            own.push(name);
            count.store(own.len() as u32, Ordering::Relaxed);
            own.len() as u32 - 1
        }
    };
    id.store(number, Ordering::Relaxed);
    drop(names);
    debug_assert!(!is_taken, "`{name}` is a counter in one place and a gauge in another");
    number
}

/// Numbered cells, and which of them were touched: emptying costs what was touched.
#[derive(Debug, Default)]
struct Touched<T> {
    cells: Vec<(T, bool)>,
    list: Vec<u32>,
    /// What nobody reads: for names that were refused.
    refused: T,
}

impl<T: Copy + Default> Touched<T> {
    #[inline]
    fn at(&mut self, id: u32) -> &mut T {
        if id as usize >= self.cells.len() {
            if id == REFUSED {
                return &mut self.refused;
            }
            self.make_room(id as usize + 1);
        }
        let (value, is_touched) = &mut self.cells[id as usize];
        if !*is_touched {
            *is_touched = true;
            self.list.push(id);
        }
        value
    }

    /// Room for `count` cells and for touching them all.
    #[cold]
    fn make_room(&mut self, count: usize) {
        self.cells.resize(count.next_power_of_two().max(NAMES_EXPECTED), Default::default());
        self.list.reserve(self.cells.len());
    }

    fn drain(&mut self, mut each: impl FnMut(u32, T)) {
        for id in self.list.drain(..) {
            let (value, is_touched) = &mut self.cells[id as usize];
            *is_touched = false;
            each(id, std::mem::take(value));
        }
    }
}

/// What the tick on this thread has counted so far.
#[derive(Default)]
struct TickCounts {
    is_running: bool,
    counters: Touched<u64>,
    gauges: Touched<i64>,
}

thread_local! {
    static TICK: RefCell<TickCounts> = const {
        RefCell::new(TickCounts {
            is_running: false,
            counters: Touched { cells: Vec::new(), list: Vec::new(), refused: 0 },
            gauges: Touched { cells: Vec::new(), list: Vec::new(), refused: 0 },
        })
    };
}

#[inline]
fn in_tick(act: impl FnOnce(&mut TickCounts)) {
    // A thread that ends may have no memory for it any more, and no tick either.
    let _ = TICK.try_with(|tick| {
        let mut tick = tick.borrow_mut();
        if tick.is_running {
            act(&mut tick);
        }
    });
}

/// From now on this thread's game code counts for the world whose tick begins; until `end`, or until the tick panics
/// and this is dropped.
pub fn begin_tick() -> TickCounting {
    TICK.with_borrow_mut(|tick| {
        tick.is_running = true;
        // Made here, where names are new, and not by a call in the middle of a tick on a thread that has not seen them.
        let counters = COUNTERS_COUNT.load(Ordering::Relaxed) as usize;
        if counters > tick.counters.cells.len() {
            tick.counters.make_room(counters);
        }
        let gauges = GAUGES_COUNT.load(Ordering::Relaxed) as usize;
        if gauges > tick.gauges.cells.len() {
            tick.gauges.make_room(gauges);
        }
    });
    TickCounting { of_this_thread: PhantomData }
}

/// A tick that counts. See [`begin_tick`].
#[must_use]
pub struct TickCounting {
    of_this_thread: PhantomData<*const ()>,
}

impl TickCounting {
    /// The tick is over: what it counted goes to `sums`, and the gauges that it set are the world's from now on.
    pub fn end(self, world: &mut WorldGauges, sums: &mut GameSums) {
        TICK.with_borrow_mut(|tick| {
            tick.counters.drain(|id, count| *sums.counters.at(id) += count);
            tick.gauges.drain(|id, value| *sums.gauges.at(id) += world.change(id, value));
        });
    }
}

impl Drop for TickCounting {
    /// Whatever a tick that panicked has counted is forgotten.
    fn drop(&mut self) {
        let _ = TICK.try_with(|tick| {
            let mut tick = tick.borrow_mut();
            tick.is_running = false;
            tick.counters.drain(|_, _| ());
            tick.gauges.drain(|_, _| ());
        });
    }
}

/// A world's gauges as it last set them.
#[derive(Debug, Default)]
pub struct WorldGauges {
    values: Vec<i64>,
    /// They are in no total: the world sleeps, or is no more.
    is_left_out: bool,
}

impl WorldGauges {
    /// By how much the sum over all worlds changes.
    fn change(&mut self, id: u32, value: i64) -> i64 {
        let index = id as usize;
        if index >= self.values.len() {
            self.values.resize((GAUGES_COUNT.load(Ordering::Relaxed) as usize).max(index + 1), 0);
        }
        value - std::mem::replace(&mut self.values[index], value)
    }
}

/// What the worlds of one worker counted since the frame last took it, and by how much their gauges changed.
#[derive(Debug, Default)]
pub struct GameSums {
    counters: Touched<u64>,
    gauges: Touched<i64>,
}

/// What all worlds of a server counted: counters since the start and of this frame, gauges as they stand. Names that
/// this server's game has not used are not in it.
#[derive(Debug, Default)]
pub struct GameTotals {
    counters: Vec<Option<u64>>,
    gauges: Vec<Option<i64>>,
    frame: Touched<u64>,
}

impl GameTotals {
    /// Adds what `sums` gathered, and empties it.
    pub fn take(&mut self, sums: &mut GameSums) {
        sums.counters.drain(|id, count| *self.frame.at(id) += count);
        sums.gauges.drain(|id, change| *slot(&mut self.gauges, id).get_or_insert(0) += change);
    }

    /// A world falls asleep: its part of the gauges counts for nothing until it wakes.
    pub fn leave_out(&mut self, world: &mut WorldGauges) {
        if !std::mem::replace(&mut world.is_left_out, true) {
            self.add(world, -1);
        }
    }

    /// A world wakes: its gauges stand as it last set them.
    pub fn take_back(&mut self, world: &mut WorldGauges) {
        if std::mem::replace(&mut world.is_left_out, false) {
            self.add(world, 1);
        }
    }

    /// A world comes whose gauges were set where nobody added them up: they count from now on.
    pub fn adopt(&mut self, world: &mut WorldGauges) {
        world.is_left_out = true;
        self.take_back(world);
    }

    /// A world is no more: its part of the gauges goes with it.
    pub fn withdraw(&mut self, world: &mut WorldGauges) {
        self.leave_out(world);
        world.values.clear();
    }

    fn add(&mut self, world: &WorldGauges, sign: i64) {
        for (id, value) in (0..).zip(&world.values).filter(|(_, value)| **value != 0) {
            *slot(&mut self.gauges, id).get_or_insert(0) += sign * value;
        }
    }

    /// The frame is over: `counted` hears of every counter that was used in it, by number and with the frame's own sum.
    pub fn end_frame(&mut self, mut counted: impl FnMut(usize, u64)) {
        self.frame.drain(|id, count| {
            *slot(&mut self.counters, id).get_or_insert(0) += count;
            counted(id as usize, count);
        });
    }

    /// Counters since the start, by number.
    pub fn counters(&self) -> impl Iterator<Item = (usize, u64)> {
        self.counters.iter().enumerate().filter_map(|(id, count)| Some((id, (*count)?)))
    }

    /// Gauges as they stand, summed over worlds, by number.
    pub fn gauges(&self) -> impl Iterator<Item = (usize, i64)> {
        self.gauges.iter().enumerate().filter_map(|(id, value)| Some((id, (*value)?)))
    }

    /// A counter since the start; 0 if it was never used.
    pub fn counter(&self, name: &str) -> u64 {
        let id = names().counters.iter().position(|&other| other == name);
        id.and_then(|id| *self.counters.get(id)?).unwrap_or_default()
    }

    /// A gauge as it stands; 0 if it was never set.
    pub fn gauge(&self, name: &str) -> i64 {
        let id = names().gauges.iter().position(|&other| other == name);
        id.and_then(|id| *self.gauges.get(id)?).unwrap_or_default()
    }

    /// All counters that were used, and all gauges that were set, by name.
    pub fn by_name(&self) -> (BTreeMap<&'static str, u64>, BTreeMap<&'static str, i64>) {
        let counters = self.counters().map(|(id, count)| (counter_name(id), count)).collect();
        (counters, self.gauges().map(|(id, value)| (gauge_name(id), value)).collect())
    }
}

fn slot<T: Copy>(slots: &mut Vec<Option<T>>, id: u32) -> &mut Option<T> {
    let index = id as usize;
    if index >= slots.len() {
        slots.resize((index + 1).next_power_of_two().max(NAMES_EXPECTED), None);
    }
    &mut slots[index]
}

/// The name of a counter, by the number that [`GameTotals`] gives.
pub fn counter_name(id: usize) -> &'static str {
    names().counters[id]
}

/// The name of a gauge, by the number that [`GameTotals`] gives.
pub fn gauge_name(id: usize) -> &'static str {
    names().gauges[id]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(world: &mut WorldGauges, sums: &mut GameSums, act: impl FnOnce()) {
        let counting = begin_tick();
        act();
        counting.end(world, sums);
    }

    fn frame(totals: &mut GameTotals, sums: &mut GameSums) -> BTreeMap<&'static str, u64> {
        totals.take(sums);
        let mut counted = BTreeMap::new();
        totals.end_frame(|id, count| assert!(counted.insert(counter_name(id), count).is_none()));
        counted
    }

    #[test]
    fn counters_add_up_and_gauges_stand_over_worlds() {
        let (mut one, mut two, mut sums) = (WorldGauges::default(), WorldGauges::default(), GameSums::default());
        let mut totals = GameTotals::default();
        for alive in 1..=3 {
            tick(&mut one, &mut sums, || {
                count!("sum.casts", 2);
                gauge!("sum.alive", alive);
            });
            tick(&mut two, &mut sums, || {
                count!("sum.casts");
                gauge!("sum.alive", 10);
            });
            assert_eq!(frame(&mut totals, &mut sums), [("sum.casts", 3)].into());
        }
        assert_eq!((totals.counter("sum.casts"), totals.gauge("sum.alive")), (9, 13));
        // A tick without a word changes nothing, and a world that ends takes its part along.
        tick(&mut one, &mut sums, || ());
        assert_eq!(frame(&mut totals, &mut sums), BTreeMap::new());
        assert_eq!(totals.gauge("sum.alive"), 13);
        totals.withdraw(&mut two);
        totals.withdraw(&mut two);
        assert_eq!(totals.by_name(), ([("sum.casts", 9)].into(), [("sum.alive", 3)].into()));
    }

    /// Promise: a gauge tells of worlds that tick: what a world that sleeps once set stands for nothing.
    #[test]
    fn gauges_of_a_world_that_sleeps_are_left_out_until_it_wakes() {
        let (mut one, mut two, mut sums) = (WorldGauges::default(), WorldGauges::default(), GameSums::default());
        let mut totals = GameTotals::default();
        tick(&mut one, &mut sums, || gauge!("sleep.fighters", 3));
        tick(&mut two, &mut sums, || gauge!("sleep.fighters", 10));
        // In whichever order the frame comes to it.
        totals.leave_out(&mut two);
        totals.leave_out(&mut two);
        frame(&mut totals, &mut sums);
        assert_eq!(totals.gauge("sleep.fighters"), 3);
        totals.take_back(&mut two);
        totals.take_back(&mut one);
        assert_eq!(totals.gauge("sleep.fighters"), 13);
        tick(&mut two, &mut sums, || gauge!("sleep.fighters", 4));
        frame(&mut totals, &mut sums);
        assert_eq!(totals.gauge("sleep.fighters"), 7);
        totals.leave_out(&mut one);
        totals.withdraw(&mut one);
        totals.withdraw(&mut two);
        assert_eq!(totals.gauge("sleep.fighters"), 0);
    }

    #[test]
    fn a_name_is_one_metric_wherever_and_on_whatever_thread_it_is_used() {
        let used = |name_of_thread: u64| {
            let (mut world, mut sums) = (WorldGauges::default(), GameSums::default());
            for _ in 0..100 {
                tick(&mut world, &mut sums, || {
                    count!("threads.same", name_of_thread);
                    count!("threads.same", 1000);
                });
            }
            sums
        };
        let threads: Vec<_> = (0..4).map(|number| std::thread::spawn(move || used(number))).collect();
        let mut totals = GameTotals::default();
        for thread in threads {
            totals.take(&mut thread.join().unwrap());
        }
        totals.end_frame(|_, count| assert_eq!(count, 400_600));
        assert_eq!(totals.by_name().0, [("threads.same", 400_600)].into());
    }

    #[test]
    fn a_call_outside_of_a_tick_and_a_tick_that_panics_count_nothing() {
        let (mut world, mut sums, mut totals) = <(WorldGauges, GameSums, GameTotals)>::default();
        count!("outside.calls");
        gauge!("outside.level", 7);
        let died = std::panic::catch_unwind(|| {
            let _counting = begin_tick();
            count!("outside.calls");
            gauge!("outside.level", 7);
            panic!("a tick dies");
        });
        assert!(died.is_err());
        count!("outside.calls");
        tick(&mut world, &mut sums, || ());
        assert_eq!(frame(&mut totals, &mut sums), BTreeMap::new());
        assert_eq!(totals.by_name(), Default::default());
    }

    #[test]
    fn nothing_is_a_count_too() {
        let (mut world, mut sums, mut totals) = <(WorldGauges, GameSums, GameTotals)>::default();
        tick(&mut world, &mut sums, || count!("nothing.yet", 0));
        assert_eq!(frame(&mut totals, &mut sums), [("nothing.yet", 0)].into());
        assert_eq!(totals.by_name().0, [("nothing.yet", 0)].into());
    }

    #[test]
    fn there_may_be_many_names() {
        static SITES: [CounterSite; 300] = {
            // The index in three letters each.
            static NAMES: [[u8; 4]; 300] = {
                let mut names = [[b'm'; 4]; 300];
                let mut index = 0;
                while index < 300 {
                    names[index][1] = b'a' + (index / 100) as u8;
                    names[index][2] = b'a' + (index / 10 % 10) as u8;
                    names[index][3] = b'a' + (index % 10) as u8;
                    index += 1;
                }
                names
            };
            let mut sites = [const { CounterSite::new("m") }; 300];
            let mut index = 0;
            while index < 300 {
                let Ok(name) = std::str::from_utf8(&NAMES[index]) else { panic!() };
                sites[index] = CounterSite::new(name);
                index += 1;
            }
            sites
        };
        let (mut world, mut sums, mut totals) = <(WorldGauges, GameSums, GameTotals)>::default();
        tick(&mut world, &mut sums, || SITES.iter().zip(1..).for_each(|(site, count)| site.add(count)));
        assert_eq!(frame(&mut totals, &mut sums).len(), 300);
        assert_eq!((totals.counter("maaa"), totals.counter("mcjj")), (1, 300));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "is a counter in one place and a gauge in another")]
    fn a_name_of_both_kinds_is_told_in_tests() {
        let (mut world, mut sums) = (WorldGauges::default(), GameSums::default());
        tick(&mut world, &mut sums, || {
            count!("both.kinds");
            gauge!("both.kinds", 1);
        });
    }
}
