//! Ladder: how overloaded one world is, in steps, from how much of its period was over when each of its ticks ended.
//!
//! ```text
//! share = (end of the tick - begin of its period) / period     1 = the next tick was due at once
//! mean of a window   >= busy, two windows in a row           -> one step up
//!                    <= calm, four in a row                  -> one step down
//!                    between                                 -> stays
//! ```
//!
//! The share grows when the world's own tick takes long and when it waits for a worker, so that one hot world and a
//! process full of them show in the same way. A single tick that takes long, or a hitch of the host, spoils one window,
//! and one window moves nothing.
//!
//! A step that helps makes the world calm, and going back would make it busy again. So whoever is busy within 10 s of a step
//! down waits twice as long the next time, up to 16 times. A world that is calmer than half of `calm` does not wait: no
//! step helps as much as that, so the load itself has gone.
//!
//! Pure: it reads no clock. Cost: some additions for each tick of a world.

use throng_platform::time::Nanos;

/// Ticks are looked at together for so long, or for one tick where that is longer: five ticks at 20 Hz.
const WINDOW: Nanos = Nanos::from_millis(250);

/// Busy windows before a step up: the top is reached in some 2 s, and no single hitch reaches anything.
const BUSY_WINDOWS: u32 = 2;

/// Calm windows before a step down, if patience is 1: from the top to normal in 3 s and a window.
const CALM_WINDOWS: u32 = 4;

/// Much later is not worse: the tick after a hitch is late as well, and must not spoil a second window by itself.
const SHARE_MAX: f32 = 2.0;

/// Busy again so soon after a step down: the step was what helped.
const RELAPSE: Nanos = Nanos::from_secs(10);

/// With a window of 250 ms one step down is tried in 16 s at most.
const PATIENCE_MAX: u32 = 16;

const _: () = assert!(
    WINDOW.0 * (CALM_WINDOWS as u64 * Level::ALL.len() as u64) <= Nanos::from_secs(5).0,
    "normal again within five seconds"
);

/// What is done about an overload. Each level does what those before it do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    #[default]
    Normal,
    /// Long tasks are to leave the cores to ticks.
    LongTasksYield,
    /// Clients are told half as often of what is not near them.
    FarUpdatesThin,
    /// Newcomers wait in line.
    AdmissionClosed,
}

impl Level {
    pub const ALL: [Self; 4] = [Self::Normal, Self::LongTasksYield, Self::FarUpdatesThin, Self::AdmissionClosed];

    /// As logs and metrics call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::LongTasksYield => "long_tasks_yield",
            Self::FarUpdatesThin => "far_updates_thin",
            Self::AdmissionClosed => "admission_closed",
        }
    }

    fn up(self) -> Self {
        Self::ALL[(self as usize + 1).min(Self::ALL.len() - 1)]
    }

    fn down(self) -> Self {
        Self::ALL[(self as usize).saturating_sub(1)]
    }
}

/// When a world counts as busy, and when as calm: mean shares of its period. `calm` is below `busy`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shares {
    pub busy: f32,
    pub calm: f32,
}

/// The state of one world.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ladder {
    level: Level,
    window_began: Nanos,
    shares_sum: f32,
    ticks: u32,
    busy_windows: u32,
    calm_windows: u32,
    /// Those that were calmer than half of that.
    idle_windows: u32,
    stepped_down_at: Option<Nanos>,
    /// By how much longer than usual it waits before a step down; 0 is as 1.
    patience: u32,
}

impl Ladder {
    pub fn level(&self) -> Level {
        self.level
    }

    /// The world sleeps: there is nothing to be overloaded with.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// A tick ended at `now` with this share of its period over. Returns whether the level changed.
    pub fn observe(&mut self, now: Nanos, share: f32, shares: Shares) -> bool {
        self.shares_sum += share.min(SHARE_MAX);
        self.ticks += 1;
        if now.saturating_sub(self.window_began) < WINDOW {
            return false;
        }
        let mean = self.shares_sum / self.ticks as f32;
        (self.window_began, self.shares_sum, self.ticks) = (now, 0.0, 0);
        let before = self.level;
        self.judge(now, mean, shares);
        self.level != before
    }

    fn judge(&mut self, now: Nanos, mean: f32, shares: Shares) {
        let count = |windows: u32, is_one: bool| if is_one { windows + 1 } else { 0 };
        self.busy_windows = count(self.busy_windows, mean >= shares.busy);
        self.calm_windows = count(self.calm_windows, mean <= shares.calm);
        self.idle_windows = count(self.idle_windows, mean <= shares.calm / 2.0);
        if self.busy_windows >= BUSY_WINDOWS {
            self.busy_windows = 0;
            self.step_up(now);
        }
        let waited = self.calm_windows >= CALM_WINDOWS * self.patience.max(1);
        if self.level > Level::Normal && (waited || self.idle_windows >= CALM_WINDOWS) {
            (self.calm_windows, self.idle_windows) = (0, 0);
            self.stepped_down_at = Some(now);
            self.level = self.level.down();
        }
    }

    fn step_up(&mut self, now: Nanos) {
        // Once for each step down, however many steps up follow it.
        match self.stepped_down_at.take() {
            Some(at) if now.saturating_sub(at) <= RELAPSE => {
                self.patience = (self.patience.max(1) * 2).min(PATIENCE_MAX);
            }
            Some(_) => self.patience = 1,
            None => {}
        }
        self.level = self.level.up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARES: Shares = Shares { busy: 0.9, calm: 0.6 };
    const PERIOD: Nanos = Nanos::from_millis(50);

    /// A world of 20 Hz and what became of its level.
    #[derive(Default)]
    struct World {
        now: Nanos,
        ladder: Ladder,
        changes: Vec<(Nanos, Level)>,
    }

    impl World {
        /// Ticks for so long, each with the share of its period that `share` gives at a level.
        fn run(&mut self, seconds: u64, share: impl Fn(Level) -> f32) {
            for _ in 0..seconds * 20 {
                self.now += PERIOD;
                let before = self.ladder.level();
                let changed = self.ladder.observe(self.now, share(before), SHARES);
                let after = self.ladder.level();
                assert_eq!(changed, before != after);
                assert!(after <= before.up() && after >= before.down(), "one step at a time");
                if changed {
                    self.changes.push((self.now, after));
                }
            }
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
            let levels: Vec<Level> = world.changes.iter().map(|change| change.1).collect();
            assert_eq!(levels, Level::ALL[1..], "up step by step, and it stays there");
            let top_after = world.changes[2].0.saturating_sub(began);
            assert!(top_after <= Nanos::from_secs(2), "{top_after:?}");
            world.changes.clear();
            let ended = world.now;
            world.run(5, |_| 0.24);
            let levels: Vec<Level> = world.changes.iter().map(|change| change.1).collect();
            assert_eq!(levels, [Level::FarUpdatesThin, Level::LongTasksYield, Level::Normal], "and down");
            assert!(world.changes[2].0.saturating_sub(ended) <= Nanos::from_secs(4), "round {round}");
        }
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
        assert!(world.changes.iter().all(|change| change.1 < Level::AdmissionClosed));
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
                world.ladder.observe(world.now, share, SHARES);
            }
            world.run(2, |_| 0.3);
        }
        assert_eq!(world.changes, []);
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
        let mut levels = |seconds: std::ops::Range<u64>, share| -> Vec<usize> {
            let tick = |s| {
                ladder.observe(Nanos::from_secs(s), share, SHARES);
                ladder.level() as usize
            };
            seconds.map(tick).collect()
        };
        assert_eq!(levels(1..7, 1.1), [0, 1, 1, 2, 2, 3]);
        assert_eq!(levels(7..19, 0.1), [3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0]);
    }
}
