//! Overload: what a server does when ticks take longer than there is time, step by step, and takes back by itself.
//!
//! Each world has a ladder of its own (`ladder`), fed with its ticks alone: a hot world is told less far, and the others
//! are as they were. What concerns the whole process follows from all worlds together:
//!
//! | step | what happens | for whom | when |
//! |---|---|---|---|
//! | 1 | long tasks are to yield | the process | a world is on step 1 or above |
//! | 2 | far updates thin out | each world | it is on step 2 or above |
//! | 3 | admission closes: newcomers wait in line | the process | worlds on step 3 have a quarter of all clients, or more |
//!
//! Nobody is ever disconnected for it. A hideout with one player and a bug keeps nobody out of the rest of the game, which
//! is what the quarter is for; while admission is closed those in line keep their places, and whoever was called already
//! comes in.
//!
//! Owned by the frame thread; who paces long tasks reads the level from any thread
//! ([`PublishedMetrics::overload_level`](crate::metrics::PublishedMetrics::overload_level)). Cost: four times a second a
//! look at each world's level, and at each client's world while one is on the last step.

pub(crate) mod ladder;
mod watch;

use throng_platform::time::Nanos;
use throng_profiler::{log_category, log_info, log_warn};

pub use ladder::Level;
pub(crate) use ladder::{Ladder, Shares};

use crate::settings::OverloadSettings;

log_category!(OVERLOAD = "server.overload");

/// The log has a line for changes once in so long at most.
const TOLD_EVERY: Nanos = Nanos::from_secs(1);

/// How overloaded the worlds are together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OverloadNow {
    /// Of the world that is worst off.
    pub level: Level,
    /// Worlds above the normal level, and those on the last one.
    pub worlds: usize,
    pub worlds_on_last_step: usize,
    pub admission_is_closed: bool,
}

/// What the frame thread keeps about overload.
#[derive(Default)]
pub(crate) struct Overload {
    settings: OverloadSettings,
    now: OverloadNow,
    next_look: Nanos,
    told: OverloadNow,
    next_telling: Nanos,
}

impl Overload {
    pub fn new(settings: OverloadSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// By what a world is judged; none if nothing is to be done about overload.
    pub fn shares(&self) -> Option<Shares> {
        let OverloadSettings { on, busy_share, calm_share } = self.settings;
        on.then_some(Shares { busy: busy_share, calm: calm_share })
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
        let OverloadNow { level, worlds, worlds_on_last_step, admission_is_closed } = self.now;
        let level_name = level.name();
        if level == Level::Normal {
            log_info!(OVERLOAD, "no world is overloaded any more");
        } else if level > before.level || admission_is_closed != before.admission_is_closed {
            log_warn!(
                OVERLOAD,
                level = level_name,
                worlds,
                worlds_on_last_step,
                admission_is_closed,
                "worlds are overloaded: ticks end after their period"
            );
        } else {
            log_info!(
                OVERLOAD,
                level = level_name,
                worlds,
                worlds_on_last_step,
                admission_is_closed,
                "still overloaded"
            );
        }
    }
}
