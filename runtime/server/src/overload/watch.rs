//! The look at all worlds' levels, and what follows for the whole process.

use throng_platform::time::Nanos;

use super::{Level, OverloadNow};
use crate::{ids::WorldId, server::Server};

/// How often all worlds are looked at.
const LOOK_EVERY: Nanos = Nanos::from_millis(250);

/// Admission closes when worlds on the last step have one client in so many.
const CLOSED_FOR_ONE_IN: usize = 4;

impl Server {
    /// Looks at all worlds' levels and does what concerns the whole process. Once a frame; mostly it is not time yet.
    pub(crate) fn watch_overload(&mut self, now: Nanos) {
        if now < self.overload.next_look {
            return;
        }
        self.overload.next_look = now + LOOK_EVERY;
        let (mut all, mut demand) = (OverloadNow::default(), 0.0);
        for slot in self.worlds.iter() {
            let (level, factor) = (slot.ladder.level(), slot.ladder.time_factor());
            demand += slot.demand();
            all.slowest = all.slowest.min(factor);
            all.worlds_slowed += usize::from(!factor.is_usual());
            all.level = all.level.max(level);
            all.worlds += usize::from(level > Level::Normal);
            all.worlds_on_last_step += usize::from(level == Level::AdmissionClosed);
        }
        all.admission_is_closed = all.worlds_on_last_step > 0 && self.many_are_in_worlds_on_last_step();
        self.overload.now = all;
        // Those that are left to long tasks are not there for worlds.
        let workers = self.pool.worker_count().saturating_sub(self.long_tasks.level()).max(1);
        self.overload.demand = (demand / workers as f64) as f32;
        self.close_line_if_needed();
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
