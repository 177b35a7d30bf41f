//! Reacting: whether a reactive world's step is a tick, what it does if it is none, and how long it rests after it.
//!
//! What that means for a game is told in [`crate::reactive`]. On the world's own thread; allocates nothing.

use throng_platform::time::Nanos;
use throng_profiler::{Phases, site};

use super::{GameWorld, own};

impl GameWorld {
    /// Positions that were left out are behind it. Returns how many there were.
    pub(super) fn go_on_after_rest(&mut self) -> u32 {
        let Some(reactive) = &mut self.reactive else { return 0 };
        let rested = reactive.begin_step();
        self.tick = self.tick.saturating_add(rested);
        rested
    }

    /// Ticks from the last one to this one; 1 in a world that leaves none out.
    pub(super) fn ticks_since_last(&self) -> u32 {
        self.reactive.as_ref().map_or(1, |reactive| reactive.ticks_since_last(self.tick))
    }

    /// Whether systems run in this step.
    pub(super) fn is_to_tick(&mut self, has_news: bool) -> bool {
        let is_to = self.reactive.as_ref().is_none_or(|reactive| has_news || reactive.wakes(self.tick));
        self.report.was_listening = !is_to;
        is_to
    }

    /// What is done in place of a tick: nothing changes, and clients can be told what they are owed.
    pub(super) fn listen(&mut self, phases: &mut Phases) {
        phases.next(site!("world.listen"));
        self.report.was_changed_from_outside = false;
        own(&mut self.replication).begin_tick(self.tick);
        // Buffers that went with empty datagrams come back.
        self.empty_what_was_filled();
        self.filter_visibility(phases);
    }

    /// The tick was done: when the next one comes by itself.
    pub(super) fn note_ticked(&mut self, has_news: bool, asked: Option<u32>) {
        let Some(reactive) = &mut self.reactive else { return };
        reactive.ticked(self.tick, has_news, asked, self.rate, self.replication.settles_in());
    }

    /// How many ticks may be left out from the next one on.
    pub(super) fn rests(&self) -> u32 {
        let Some(reactive) = self.reactive.as_ref().filter(|_| !self.filled.departures && !self.owes_saves()) else {
            return 0;
        };
        let percent = u64::from(self.replication.time_factor().percent());
        reactive.rests(self.tick, self.now, Nanos(100 * self.rate.period().0 / percent))
    }
}

#[cfg(test)]
mod tests;
