//! Faults of a world: what its last system does in a tick.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    panic::panic_any,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bevy_ecs::prelude::*;
use throng::{
    inbox::{Inbox, InboxMessage},
    prelude::*,
};
use throng_crash::drill::Death;
use throng_profiler::{log_category, log_info, scope};

use crate::{background::LEDGER, hang::Hang};

log_category!(FAULTS = "faults");

/// What is wrong with a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorldFault {
    /// Its ticks take `factor` times as long, spent computing.
    Costly { from_tick: u32, factor: u32 },
    /// One tick does not come back for so long.
    Hung { at_tick: u32, ms: u64, how: Hang },
    /// One tick in so many computes for so much longer.
    Slow { busy_ms: u64, every_ticks: u32 },
    /// Each tick computes for so long; in the second of each three phases, as the clock tells them from its first tick on,
    /// so many times that. The gauge `faults_load` says how many times.
    Surge { usual_ms: u64, times: u32, phase_s: u64 },
    /// Each tick takes the lock that [`crate::BackgroundFault::HoldLock`] holds now and then.
    Locked,
    /// Each tick computes for so long in the subsystem `faults.ballast`.
    OverBudget { busy_us: u64 },
    /// One tick in so many allocates so much at once, and gives it back.
    BigAllocation { bytes: usize, every_ticks: u32 },
    /// Each tick keeps so much more.
    Leak { bytes_per_tick: usize },
    /// One tick is the end of the whole process.
    Dies { at_tick: u32, death: Death },
    /// One in so many inputs and requests of clients is the end of the whole process.
    RareCrash { one_in: u32 },
    /// One tick panics, once: when the world is made again and does that tick again, it does not.
    Panics { at_tick: u32, how: Panic, once: Once },
    /// One tick takes more and more memory, over some seconds: where a control group has less, the kernel ends the process.
    Hungry { at_tick: u32, bytes: usize },
}

/// The rate of worlds that the sizes of switches are for (Hz).
const USUAL_HZ: u32 = 20;

impl WorldFault {
    /// The same for a world of this rate [1 Hz or more], where the switch's sizes are for one of 20 Hz: it comes as long after the
    /// world's beginning and as often by the clock, and what ticks compute is the same share of their period.
    #[must_use]
    pub fn at_rate(self, rate_hz: u16) -> Self {
        let rate_hz = u32::from(rate_hz);
        let ticks = |ticks: u32| (u64::from(ticks) * u64::from(rate_hz) / u64::from(USUAL_HZ)) as u32;
        let share_ms = |ms: u64| ms * u64::from(USUAL_HZ) / u64::from(rate_hz);
        // Of every tick there is nothing between.
        let every = |every_ticks: u32| if every_ticks == 1 { 1 } else { ticks(every_ticks).max(1) };
        match self {
            Self::Costly { from_tick, factor } => Self::Costly { from_tick: ticks(from_tick), factor },
            Self::Hung { at_tick, ms, how } => Self::Hung { at_tick: ticks(at_tick), ms, how },
            Self::Slow { busy_ms, every_ticks } => {
                Self::Slow { busy_ms: share_ms(busy_ms), every_ticks: every(every_ticks) }
            }
            Self::Surge { usual_ms, times, phase_s } => Self::Surge { usual_ms: share_ms(usual_ms), times, phase_s },
            Self::BigAllocation { bytes, every_ticks } => {
                Self::BigAllocation { bytes, every_ticks: every(every_ticks) }
            }
            Self::Leak { bytes_per_tick } => {
                Self::Leak { bytes_per_tick: bytes_per_tick * USUAL_HZ as usize / rate_hz as usize }
            }
            Self::Dies { at_tick, death } => Self::Dies { at_tick: ticks(at_tick), death },
            Self::Panics { at_tick, how, once } => Self::Panics { at_tick: ticks(at_tick), how, once },
            Self::Hungry { at_tick, bytes } => Self::Hungry { at_tick: ticks(at_tick), bytes },
            // A budget is one of a frame, and an action is one at any rate.
            Self::Locked | Self::OverBudget { .. } | Self::RareCrash { .. } => self,
        }
    }

    /// Whether it is about what players do, wherever they are: then a game that can puts it into all worlds of a kind.
    pub fn is_everywhere(&self) -> bool {
        matches!(self, Self::RareCrash { .. })
    }
}

/// How a world panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panic {
    /// An index beyond a list's end.
    OutOfRange,
    /// A value that was sure to be there.
    NotThere,
    /// Something that is lent already.
    LentTwice,
    /// A panic whose payload is no text.
    WithoutText,
    /// A value that cannot be dropped.
    InDrop,
    /// In a command, when the systems are done with the world.
    InCommand,
}

impl Panic {
    pub const ALL: [Self; 6] =
        [Self::OutOfRange, Self::NotThere, Self::LentTwice, Self::WithoutText, Self::InDrop, Self::InCommand];

    fn strike(self, tick: u32, commands: &mut Commands) {
        struct PanicsInDrop;

        impl Drop for PanicsInDrop {
            fn drop(&mut self) {
                panic!("a value that cannot be dropped");
            }
        }

        let nothing: Vec<u32> = Vec::new();
        match self {
            Self::OutOfRange => _ = std::hint::black_box(nothing[tick as usize]),
            Self::NotThere => _ = nothing.first().expect("there is one"),
            Self::LentTwice => {
                let cell = RefCell::new(tick);
                let _lent = cell.borrow_mut();
                *cell.borrow_mut() = 0;
            }
            Self::WithoutText => panic_any(tick),
            Self::InDrop => drop(PanicsInDrop),
            Self::InCommand => commands.queue(|_: &mut World| panic!("a command that cannot be carried out")),
        }
    }
}

/// Something that happens once in a process, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Once(u64);

impl Default for Once {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // A number of its own is all that is asked for.
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Once {
    /// True for the first who asks.
    fn is_first(self) -> bool {
        static DONE: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());
        DONE.lock().unwrap_or_else(PoisonError::into_inner).insert(self.0)
    }
}

/// Puts faults into a world.
///
/// All worlds of a kind have the same systems, so if one of them has a fault the others get this too, without faults:
/// they take a few ns more in a tick. Kinds in which nothing is wrong do without.
pub struct FaultPlugin<First, Last> {
    pub faults: Vec<WorldFault>,
    /// The first and the last of the game's systems in a tick: where a tick begins that takes longer, and where it
    /// ends.
    pub first: First,
    pub last: Last,
}

impl<First, Last> WorldPlugin for FaultPlugin<First, Last>
where
    First: SystemSet + Clone,
    Last: SystemSet + Clone,
{
    fn build(&self, world: &mut WorldBuilder) {
        let now = Instant::now();
        let faults = Faults { faults: self.faults.clone(), seed: world.seed() };
        world.insert_resource(faults).insert_resource(TickBegan { first: None, this: now });
        world.transient::<Faults>().transient::<TickBegan>();
        world.add_systems(Update, (note_begin.before(self.first.clone()), inflict.after(self.last.clone())));
    }
}

/// What is wrong with this world.
#[derive(Resource)]
struct Faults {
    faults: Vec<WorldFault>,
    /// The world's.
    seed: u64,
}

/// When the systems of the world's first tick and of this one began.
#[derive(Resource)]
struct TickBegan {
    first: Option<Instant>,
    this: Instant,
}

/// First system of a tick.
fn note_begin(mut began: ResMut<TickBegan>) {
    began.this = Instant::now();
    let now = began.this;
    began.first.get_or_insert(now);
}

/// Last system of a tick. What a leak keeps is its own.
fn inflict(
    tick: Res<TickInfo>,
    faults: Res<Faults>,
    (began, inbox): (Res<TickBegan>, Res<Inbox>),
    (mut kept, mut load): (Local<Vec<Vec<u8>>>, Local<u32>),
    mut commands: Commands,
) {
    for &fault in &faults.faults {
        if let WorldFault::Panics { at_tick, how, once } = fault
            && tick.tick == at_tick
            && once.is_first()
        {
            scope!("faults.panics");
            how.strike(tick.tick, &mut commands);
        }
        if let WorldFault::RareCrash { one_in } = fault
            && (0..).zip(inbox.iter()).any(|(place, said)| is_struck(faults.seed, tick.tick, place, &said, one_in))
        {
            scope!("faults.rare_crash");
            panic!("{}", Death::Segv.die());
        }
        if let WorldFault::Surge { usual_ms, times, phase_s } = fault {
            let lasts_s = began.first.map_or(0, |first| first.elapsed().as_secs());
            let times = if is_surge(lasts_s, phase_s) { times } else { 1 };
            throng::gauge!("faults_load", times);
            if std::mem::replace(&mut *load, times) != times {
                log_info!(FAULTS, times, "the load of a world has changed");
            }
            compute_until(Instant::now() + times * Duration::from_millis(usual_ms));
        }
        inflict_one(fault, tick.tick, began.this, &mut kept);
    }
}

/// Whether this action is the one in so many. It follows from what the world is made of and what came, so a replay strikes
/// the same.
fn is_struck(seed: u64, tick: u32, place: u32, said: &InboxMessage<'_>, one_in: u32) -> bool {
    let which = u64::from(tick) << 32 | u64::from(place);
    let mixed = [u64::from(said.client.0), which].into_iter().fold(seed, |mixed, part| {
        // SplitMix64's finaliser.
        let mut mixed = (mixed ^ part).wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    });
    mixed.is_multiple_of(u64::from(one_in))
}

fn inflict_one(fault: WorldFault, tick: u32, began: Instant, kept: &mut Vec<Vec<u8>>) {
    match fault {
        WorldFault::Costly { from_tick, factor } => {
            if tick >= from_tick {
                let took = began.elapsed();
                compute_until(began + took * factor);
            }
        }
        WorldFault::Hung { at_tick, ms, how } => {
            if tick == at_tick {
                how.strike(Duration::from_millis(ms));
            }
        }
        WorldFault::Slow { busy_ms, every_ticks } => {
            if tick.is_multiple_of(every_ticks) {
                compute_until(Instant::now() + Duration::from_millis(busy_ms));
            }
        }
        WorldFault::Surge { .. } | WorldFault::Panics { .. } | WorldFault::RareCrash { .. } => {}
        WorldFault::Locked => {
            scope!("faults.ledger.read");
            LEDGER.read();
        }
        WorldFault::OverBudget { busy_us } => {
            scope!("faults.ballast.lift");
            compute_until(Instant::now() + Duration::from_micros(busy_us));
        }
        WorldFault::BigAllocation { bytes, every_ticks } => {
            if tick.is_multiple_of(every_ticks) {
                scope!("faults.satchel.fill");
                std::hint::black_box(Vec::<u8>::with_capacity(bytes));
            }
        }
        WorldFault::Leak { bytes_per_tick } => {
            scope!("faults.attic.store");
            kept.push(vec![1; bytes_per_tick]);
        }
        WorldFault::Dies { at_tick, death } => {
            if tick == at_tick {
                scope!("faults.dies");
                panic!("{}", death.die());
            }
        }
        WorldFault::Hungry { at_tick, bytes } => {
            if tick == at_tick {
                scope!("faults.hungry");
                take_slowly(bytes);
            }
        }
    }
}

/// Takes memory, writes to it, and gives it back when it has so much.
fn take_slowly(bytes: usize) {
    const PIECE: usize = 16 << 20;
    let mut taken = Vec::new();
    for _ in 0..bytes / PIECE {
        taken.push(std::hint::black_box(vec![1_u8; PIECE]));
        compute_until(Instant::now() + Duration::from_millis(50));
    }
}

/// The second of three phases.
fn is_surge(lasts_s: u64, phase_s: u64) -> bool {
    lasts_s / phase_s % 3 == 1
}

/// Keeps a core busy.
pub(crate) fn compute_until(end: Instant) {
    let mut busy = 1_u64;
    while Instant::now() < end {
        for _ in 0..100 {
            busy = std::hint::black_box(busy.wrapping_mul(6_364_136_223_846_793_005));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computing_takes_as_long_as_asked() {
        let begin = Instant::now();
        compute_until(begin + Duration::from_millis(5));
        assert!(begin.elapsed() >= Duration::from_millis(5));
    }

    /// A leak keeps what it takes in every tick, and nothing else keeps anything.
    #[test]
    fn only_a_leak_keeps_memory() {
        let mut kept = Vec::new();
        let mut ticks = |fault| {
            (0..5).for_each(|tick| inflict_one(fault, tick, Instant::now(), &mut kept));
            std::mem::take(&mut kept).iter().map(Vec::len).sum::<usize>()
        };
        assert_eq!(ticks(WorldFault::Leak { bytes_per_tick: 1_000 }), 5_000);
        assert_eq!(ticks(WorldFault::BigAllocation { bytes: 1_000, every_ticks: 1 }), 0);
        assert_eq!(ticks(WorldFault::Hungry { at_tick: 2, bytes: 1_000 }), 0);
        assert_eq!(ticks(WorldFault::Dies { at_tick: 9, death: Death::Abort }), 0, "that tick never comes");
        assert_eq!(ticks(WorldFault::Hung { at_tick: 9, ms: 600_000, how: Hang::Sleep }), 0, "that tick never comes");
    }

    #[test]
    fn one_action_in_so_many_is_struck_and_the_same_again() {
        let said = |client| InboxMessage {
            client: throng::ids::ClientKey(client),
            kind: throng::inbox::MessageKind::Request { kind: throng::replication::PackedId(1) },
            is_late: false,
            seen: None,
            bytes: &[],
        };
        let struck = |seed| {
            let ticks = (0..2_000).flat_map(|tick| (0..50).map(move |place| (tick, place)));
            let struck = ticks.filter(|&(tick, place)| is_struck(seed, tick, place, &said(place % 7), 1_000));
            struck.collect::<Vec<_>>()
        };
        let first = struck(7);
        // 100 of 100,000, with a deviation of 10.
        assert!((60..=140).contains(&first.len()), "{}", first.len());
        assert_eq!(first, struck(7));
        assert_ne!(first, struck(8));
    }

    /// Promise: at another rate a fault is the same by the clock, and as much of a period.
    #[test]
    fn a_fault_is_the_same_by_the_clock_at_any_rate() {
        let check = |fault: WorldFault, expect| {
            assert_eq!(fault.at_rate(20), fault, "sizes are for 20 Hz");
            assert_eq!(fault.at_rate(128), expect);
        };
        let hung = |at_tick| WorldFault::Hung { at_tick, ms: 7, how: Hang::Sleep };
        check(hung(200), hung(1_280));
        check(WorldFault::Slow { busy_ms: 40, every_ticks: 1 }, WorldFault::Slow { busy_ms: 6, every_ticks: 1 });
        check(WorldFault::Slow { busy_ms: 40, every_ticks: 120 }, WorldFault::Slow { busy_ms: 6, every_ticks: 768 });
        check(
            WorldFault::Surge { usual_ms: 16, times: 5, phase_s: 60 },
            WorldFault::Surge { usual_ms: 2, times: 5, phase_s: 60 },
        );
        check(WorldFault::Leak { bytes_per_tick: 32_000 }, WorldFault::Leak { bytes_per_tick: 5_000 });
        check(WorldFault::RareCrash { one_in: 7 }, WorldFault::RareCrash { one_in: 7 });
        let once = Once::default();
        let panics = |at_tick| WorldFault::Panics { at_tick, how: Panic::InDrop, once };
        check(panics(300), panics(1_920));
    }

    #[test]
    fn a_surge_is_the_second_of_three_phases() {
        let surges: Vec<u64> = (0..360).filter(|&second| is_surge(second, 60)).collect();
        assert_eq!(surges, (60..120).chain(240..300).collect::<Vec<_>>());
    }

    #[test]
    fn a_costly_world_is_so_from_its_tick_on() {
        let inflict = |factor, tick| {
            let long_ago = Instant::now() - Duration::from_millis(10);
            inflict_one(WorldFault::Costly { from_tick: 3, factor }, tick, long_ago, &mut Vec::new());
            long_ago.elapsed()
        };
        assert!(inflict(4, 3) >= Duration::from_millis(40));
        inflict(u32::MAX / 100, 2); // Does not compute for a year.
    }
}
