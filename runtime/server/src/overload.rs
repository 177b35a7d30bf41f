//! Overload: what a server does when ticks take longer than there is time, step by step, and takes back by itself.
//!
//! Each world has a ladder of its own (`ladder`), fed with its ticks alone: a hot world is told less far and its time
//! slows, and the others are as they were. What concerns the whole process follows from all worlds together:
//!
//! | step | what happens | for whom | when |
//! |---|---|---|---|
//! | 1 | long tasks are to yield | the process | a world is on step 1 or above |
//! | 2 | far updates thin out | each world | it is on step 2 or above |
//! | 3 | time slows, down to a tenth | each world | it is on step 3 or above |
//! | 4 | admission closes: newcomers wait in line | the process | worlds on step 4 have a quarter of all clients, or more |
//!
//! Nobody is ever disconnected for it. A hideout with one player and a bug keeps nobody out of the rest of the game, which
//! is what the quarter is for; while admission is closed those in line keep their places, and whoever was called already
//! comes in.
//!
//! **Time that slows.** The world's ticks come less often, all of them are run, and each is as long as ever to the game: so
//! games need know nothing of it, and whatever goes by a world's time (`Time`, jobs at a rate, what clients may say in a
//! second) goes slower with it. Its place in the frame grid is one of a longer period, so that what did not fit is not
//! missed. Clients are told with their snapshots (`throng_replication::TimeFactor`), and slow their clocks. It begins with
//! the next tick that leaves, and what comes of it is the same in every run of the same ticks at the same times.
//!
//! Who paces long tasks (`long_tasks`) has them yield while the level is [`Level::LongTasksYield`] or above. It can be read on any
//! thread: [`PublishedMetrics::overload_level`](crate::metrics::PublishedMetrics::overload_level).
//!
//! Owned by the frame thread. Cost: four times a second a look at each world's level, and at each client's world while one
//! is on the last step.

pub(crate) mod ladder;
mod watch;

use throng_platform::time::Nanos;
use throng_profiler::{log_category, log_info, log_warn};
use throng_replication::TimeFactor;

pub use ladder::Level;
pub(crate) use ladder::{Ladder, Limits};

use crate::settings::OverloadSettings;

log_category!(OVERLOAD = "server.overload");

/// The log has a line for changes once in so long at most.
const TOLD_EVERY: Nanos = Nanos::from_secs(1);

/// How overloaded the worlds are together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OverloadNow {
    /// Of the world that is worst off.
    pub level: Level,
    /// Worlds above the normal level, those whose time is slowed, and those on the last level.
    pub worlds: usize,
    pub worlds_slowed: usize,
    pub worlds_on_last_step: usize,
    /// Of the world whose time is slowest.
    pub slowest: TimeFactor,
    pub admission_is_closed: bool,
}

/// What the frame thread keeps about overload.
#[derive(Default)]
pub(crate) struct Overload {
    settings: OverloadSettings,
    now: OverloadNow,
    /// What all worlds would need at full speed: time of workers for that of all workers.
    demand: f32,
    next_look: Nanos,
    told: OverloadNow,
    next_telling: Nanos,
}

impl Overload {
    pub fn new(settings: OverloadSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// By what a world is judged; none if nothing is to be done about overload.
    pub fn limits(&self) -> Option<Limits> {
        let OverloadSettings { on, busy_share, calm_share, slowest_time } = self.settings;
        let slowest = TimeFactor::of_share(slowest_time);
        on.then_some(Limits { busy: busy_share, calm: calm_share, slowest, demand: self.demand })
    }

    pub fn now(&self) -> OverloadNow {
        self.now
    }

    /// Says what has changed, once in a second at most; a change that is taken back meanwhile is not told.
    fn tell(&mut self, now: Nanos) {
        if now < self.next_telling || self.told == self.now {
            return;
        }
        let before = std::mem::replace(&mut self.told, self.now);
        self.next_telling = now + TOLD_EVERY;
        let OverloadNow { level, worlds, worlds_slowed, slowest, admission_is_closed, .. } = self.now;
        let (level_name, slowest_percent) = (level.name(), slowest.percent());
        if level == Level::Normal {
            log_info!(OVERLOAD, "no world is overloaded any more");
        } else if level > before.level || slowest < before.slowest || admission_is_closed != before.admission_is_closed
        {
            log_warn!(
                OVERLOAD,
                level = level_name,
                worlds,
                worlds_slowed,
                slowest_percent,
                admission_is_closed,
                "worlds are overloaded: ticks end after their period"
            );
        } else {
            log_info!(
                OVERLOAD,
                level = level_name,
                worlds,
                worlds_slowed,
                slowest_percent,
                admission_is_closed,
                "still overloaded"
            );
        }
    }
}
