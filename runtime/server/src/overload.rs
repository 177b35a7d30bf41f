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

use throng_platform::time::Nanos;
use throng_profiler::{log_category, log_info, log_warn};

pub use ladder::Level;
pub(crate) use ladder::{Ladder, Shares};

use crate::{ids::WorldId, server::Server, settings::OverloadSettings};

log_category!(OVERLOAD = "server.overload");

/// How often all worlds are looked at.
const LOOK_EVERY: Nanos = Nanos::from_millis(250);

/// The log has a line for changes once in so long at most.
const TOLD_EVERY: Nanos = Nanos::from_secs(1);

/// Admission closes when worlds on the last step have one client in so many.
const CLOSED_FOR_ONE_IN: usize = 4;

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

impl Server {
    /// Looks at all worlds' levels and does what concerns the whole process. Once a frame; mostly it is not time yet.
    pub(crate) fn watch_overload(&mut self, now: Nanos) {
        if now < self.overload.next_look {
            return;
        }
        self.overload.next_look = now + LOOK_EVERY;
        let mut all = OverloadNow::default();
        for slot in self.worlds.iter() {
            let level = slot.ladder.level();
            all.level = all.level.max(level);
            all.worlds += usize::from(level > Level::Normal);
            all.worlds_on_last_step += usize::from(level == Level::AdmissionClosed);
        }
        all.admission_is_closed = all.worlds_on_last_step > 0 && self.many_are_in_worlds_on_last_step();
        self.overload.now = all;
        self.addresses.close_line(all.admission_is_closed);
        self.control.published.set_overload_level(all.level);
        self.overload.tell(now);
    }

    fn many_are_in_worlds_on_last_step(&self) -> bool {
        let is_on_last_step =
            |world: &WorldId| self.worlds.get(*world).is_some_and(|slot| slot.ladder.level() == Level::AdmissionClosed);
        let there = self.addresses.worlds_of_players().filter(is_on_last_step).count();
        closes_admission(there, self.addresses.players_count())
    }
}

/// Whether newcomers are to wait when so many of all clients are in worlds on the last step.
fn closes_admission(clients_on_last_step: usize, clients: usize) -> bool {
    clients_on_last_step > 0 && clients_on_last_step * CLOSED_FOR_ONE_IN >= clients
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_with_few_of_the_clients_keeps_nobody_out() {
        let check = |there, all, expect| assert_eq!(closes_admission(there, all), expect, "{there} of {all}");
        check(0, 0, false);
        check(0, 1_000, false);
        check(1, 1_000, false);
        check(249, 1_000, false);
        check(250, 1_000, true);
        check(1, 1, true);
    }
}
