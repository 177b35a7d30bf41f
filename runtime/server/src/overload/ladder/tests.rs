//! Promise: a load moves the ladder as far as it asks for and no farther, whatever happens once moves nothing, and when it has
//! gone all is as usual within five seconds.

use super::*;

const LIMITS: Limits = Limits { busy: 0.9, calm: 0.6, slowest: TimeFactor::SLOWEST, demand: 0.1 };
const PERIOD: Nanos = Nanos::from_millis(50);

/// A world of 20 Hz and what became of it.
struct World {
    now: Nanos,
    ladder: Ladder,
    limits: Limits,
    changes: Vec<(Nanos, Level)>,
}

impl World {
    fn new(limits: Limits) -> Self {
        Self { now: Nanos::ZERO, ladder: Ladder::default(), limits, changes: Vec::new() }
    }

    /// Ticks for so long; each takes the share of a period at full speed that `load` gives at a level.
    fn run(&mut self, seconds: u64, load: impl Fn(Level) -> f32) {
        let until = self.now + Nanos::from_secs(seconds);
        while self.now < until {
            let factor = self.ladder.time_factor();
            self.now += Nanos(PERIOD.0 * 100 / u64::from(factor.percent()));
            let before = self.ladder.level();
            let share = load(before) * factor.share();
            let changed = self.ladder.observe(self.now, share, share, self.limits);
            let after = self.ladder.level();
            assert_eq!(changed, before != after);
            assert!(self.ladder.time_factor() >= self.limits.slowest);
            if !self.limits.slowest.is_usual() {
                assert_eq!(after >= Level::TimeSlows, !self.ladder.time_factor().is_usual());
            }
            if changed {
                self.changes.push((self.now, after));
            }
        }
    }

    fn percent(&self) -> u8 {
        self.ladder.time_factor().percent()
    }

    fn levels(&self) -> Vec<Level> {
        self.changes.iter().map(|change| change.1).collect()
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new(LIMITS)
    }
}

#[test]
fn five_times_the_load_twenty_times_over() {
    let mut world = World::default();
    for round in 0..20 {
        world.run(60, |_| 0.24);
        assert_eq!(world.ladder.level(), Level::Normal, "round {round}");
        world.changes.clear();
        let began = world.now;
        world.run(60, |_| 1.2);
        assert_eq!(world.levels(), Level::ALL[1..4], "up step by step, and it stays there");
        assert!(world.changes[2].0.saturating_sub(began) <= Nanos::from_millis(1_250), "a second, and a window begun");
        assert_eq!(world.percent(), 62, "three quarters of a period that is 62 % longer");
        world.changes.clear();
        let ended = world.now;
        world.run(5, |_| 0.24);
        assert_eq!(world.levels(), [Level::FarUpdatesThin, Level::LongTasksYield, Level::Normal], "and down");
        assert!(world.changes[2].0.saturating_sub(ended) <= Nanos::from_secs(5), "round {round}");
    }
}

/// Promise: whatever the load, time slows to what holds it or to the floor within four seconds, and is back within five.
#[test]
fn time_slows_as_far_as_the_load_asks_for_and_comes_back() {
    for (load, percents) in [(1.0, 70..=80), (1.2, 60..=65), (2.0, 35..=40), (4.0, 17..=20), (30.0, 10..=10)] {
        let mut world = World::default();
        world.run(20, |_| 0.25);
        world.run(4, |_| load);
        assert!(percents.contains(&world.percent()), "{load}: {} %", world.percent());
        let is_slow = world.percent() <= 50;
        assert_eq!(world.ladder.level() == Level::AdmissionClosed, is_slow, "{load}");
        world.changes.clear();
        let percent = world.percent();
        world.run(60, |_| load);
        assert_eq!((world.changes.len(), world.percent()), (0, percent), "{load}: it stays");
        let ended = world.now;
        world.run(5, |_| 0.25);
        assert_eq!((world.ladder.level(), world.percent()), (Level::Normal, 100), "{load}");
        let at_full_speed = world.changes.iter().find(|change| change.1 < Level::TimeSlows).map(|change| change.0);
        assert!(at_full_speed.is_some_and(|at| at.saturating_sub(ended) <= Nanos::from_millis(2_500)), "{load}");
    }
}

/// A world that is late for its own ticks looks worse off than it is: how long these took says how far its time is to slow.
#[test]
fn lateness_that_adds_up_slows_nobody_too_far() {
    for (cost, expect) in [(1.2, 62), (1.7, 44), (6.0, 12), (0.2, 37)] {
        let mut ladder = Ladder::default();
        for tick in 1..=40 {
            ladder.observe(Nanos(PERIOD.0 * tick), 2.0, cost, LIMITS);
            if !ladder.time_factor().is_usual() {
                break;
            }
        }
        assert_eq!(ladder.time_factor().percent(), expect, "{cost}");
    }
}

/// Promise: where a load goes down in part, time becomes as fast as the rest allows, and not faster.
#[test]
fn what_is_left_of_a_load_holds_time_back() {
    let mut world = World::default();
    world.run(10, |_| 4.0);
    world.run(10, |_| 1.2);
    let percent = world.percent();
    assert!((60..=65).contains(&percent), "{percent} %");
    assert_eq!(world.ladder.level(), Level::TimeSlows);
    world.changes.clear();
    world.run(600, |_| 1.2);
    assert_eq!((world.changes.len(), world.percent()), (0, percent), "and stays so");
}

/// Promise: many small worlds, each of which waits little, do not all go faster than all cores could carry.
#[test]
fn what_all_worlds_need_holds_each_of_them_back() {
    let mut world = World::new(Limits { demand: 5.0, ..LIMITS });
    world.run(4, |_| 8.0);
    assert_eq!(world.percent(), 10);
    world.run(60, |_| 0.3);
    assert_eq!(world.percent(), 17, "a fifth, and some room");
    world.limits.demand = 1.2;
    world.run(10, |_| 0.3);
    assert_eq!(world.percent(), 70);
    world.limits.demand = 0.8;
    world.run(2, |_| 0.3);
    assert_eq!(world.percent(), 100);
    let level = world.ladder.level();
    assert!(level > Level::Normal);
    world.limits.demand = 0.95;
    world.run(60, |_| 0.3);
    assert_eq!(world.ladder.level(), level, "nothing is taken back while all cores are busy");
    world.limits.demand = 0.5;
    world.run(5, |_| 0.3);
    assert_eq!(world.ladder.level(), Level::Normal);
}

#[test]
fn where_time_may_not_slow_admission_closes_after_far_updates() {
    let mut world = World::new(Limits { slowest: TimeFactor::USUAL, ..LIMITS });
    world.run(10, |_| 3.0);
    assert_eq!(world.levels(), [Level::LongTasksYield, Level::FarUpdatesThin, Level::AdmissionClosed]);
    world.changes.clear();
    world.run(5, |_| 0.2);
    assert_eq!(world.levels(), [Level::FarUpdatesThin, Level::LongTasksYield, Level::Normal]);
}

/// Promise: no client takes a slowed world for dead.
#[test]
fn slow_worlds_are_slowed_less() {
    let slowest = |hz: u64| LIMITS.for_period(Nanos(1_000_000_000 / hz)).slowest.percent();
    assert_eq!([1, 2, 4, 10, 20, 128].map(slowest), [100, 50, 25, 10, 10, 10]);
    assert_eq!(Limits { slowest: TimeFactor::HALF, ..LIMITS }.for_period(PERIOD).slowest, TimeFactor::HALF);
}

#[test]
fn a_step_that_helps_is_not_taken_back_all_the_time() {
    let mut world = World::default();
    let thinning_helps = |level: Level| if level >= Level::FarUpdatesThin { 0.5 } else { 1.0 };
    world.run(60, thinning_helps);
    let at_first = world.changes.len();
    world.run(600, thinning_helps);
    // A step down, and up again: after 1, 2, 4, 8 s, and then once in 16 s and a half.
    let later = world.changes.len() - at_first;
    assert!(at_first <= 14 && (60..=80).contains(&later), "{at_first} changes, then {later} in ten minutes");
    assert!(world.changes.iter().all(|change| change.1 < Level::TimeSlows));
    world.run(5, |_| 0.2);
    assert_eq!(world.ladder.level(), Level::Normal, "the load itself has gone");
}

#[test]
fn what_happens_once_moves_nothing() {
    let mut world = World::default();
    world.run(10, |_| 0.3);
    for hitch in [1.0, 3.0, 40.0] {
        // The tick that was held up, and the one that had to wait for it.
        for share in [hitch, hitch - 1.0] {
            world.now += PERIOD;
            world.ladder.observe(world.now, share, share, LIMITS);
        }
        world.run(2, |_| 0.3);
    }
    assert_eq!(world.changes, []);
}

/// Promise: a hitch of the host that spoils two windows is one step, which is taken back, and does not slow time.
#[test]
fn a_hitch_across_two_windows_is_one_step() {
    let mut world = World::default();
    world.run(10, |_| 0.3);
    for _ in 0..10 {
        // Two windows of five ticks, all of them late.
        for _ in 0..10 {
            world.now += PERIOD;
            world.ladder.observe(world.now, 1.5, 0.3, LIMITS);
        }
        assert!(world.ladder.level() <= Level::LongTasksYield, "{:?}", world.ladder.level());
        world.run(5, |_| 0.2);
        assert_eq!(world.ladder.level(), Level::Normal);
    }
}

#[test]
fn between_calm_and_busy_all_stays_as_it_is() {
    let mut world = World::default();
    world.run(60, |_| 0.75);
    assert_eq!(world.changes, []);
    world.run(1, |_| 1.0);
    let level = world.ladder.level();
    assert!(level > Level::Normal);
    world.changes.clear();
    world.run(60, |_| 0.75);
    assert_eq!((world.changes.len(), world.ladder.level()), (0, level));
}

#[test]
fn a_world_that_ticks_once_in_a_second_climbs_and_comes_back_tick_by_tick() {
    let mut ladder = Ladder::default();
    let limits = LIMITS.for_period(Nanos::from_secs(1));
    let mut levels = |seconds: std::ops::Range<u64>, share| -> Vec<usize> {
        let tick = |s| {
            ladder.observe(Nanos::from_secs(s), share, share, limits);
            ladder.level() as usize
        };
        seconds.map(tick).collect()
    };
    assert_eq!(levels(1..7, 1.1), [0, 1, 2, 4, 4, 4]);
    assert_eq!(levels(7..13, 0.1), [4, 2, 2, 1, 1, 0]);
}
