//! Inspection: what simulations and tests may ask of a server between two frames, and break in it.
//!
//! A live server uses none of it: nothing here costs anything until it is asked for. With hashes wanted, a world's
//! state is hashed at the end of each of its ticks, about 50 ns for each component that counts.

use throng_metrics::Counters;
use throng_platform::time::Nanos;
use throng_replication::Fault;

use throng_world::{GameWorld, ids::WorldId};

pub use crate::world_hash::WorldHash;
use crate::{server::Server, tick_trace::TickRecord};

impl Server {
    /// Keeps a record of every tick from now on, or no longer.
    pub fn trace_ticks(&mut self, is_on: bool) {
        self.trace.set(is_on);
    }

    /// The ticks that were recorded since the last call, in the order in which they came home, and how many did not
    /// fit.
    pub fn take_tick_trace(&mut self) -> (Vec<TickRecord>, u64) {
        self.trace.take()
    }

    /// From now on every tick of every world leaves a hash to be taken. Worlds that come later, too.
    pub fn want_hashes(&mut self, wanted: bool) {
        self.hashes_wanted = wanted;
        self.worlds_at_home().for_each(|world| world.want_hash(wanted));
    }

    /// The hashes since they were last taken: frame by frame, worlds of one frame by id. They pile up until they are
    /// taken.
    pub fn take_hashes(&mut self) -> impl Iterator<Item = WorldHash> + '_ {
        self.hashes.drain(..)
    }

    /// What the server has counted since its start, by the counter's name in `docs/metrics.md`.
    ///
    /// # Panics
    /// If there is no such counter.
    pub fn count_of(&self, name: &str) -> u64 {
        let mut count = None;
        self.totals.each(&mut |counter, value| count = count.or((counter.name == name).then_some(value)));
        count.unwrap_or_else(|| panic!("there is no counter {name}"))
    }

    /// A world to look into; `None` while a worker has it, and for an id that no world has any more.
    pub fn world_mut(&mut self, id: WorldId) -> Option<&mut GameWorld> {
        Some(&mut self.worlds.get_mut(id)?.home.as_deref_mut()?.world)
    }

    /// Asserts what must hold between two frames, in all worlds that are home; for tests and the simulator.
    pub fn check(&mut self) {
        self.worlds.check();
        self.worlds_at_home().for_each(|world| world.check());
    }

    /// Test switch: breaks what all worlds tell their clients, to show that broken copies do not go unseen.
    pub fn break_replication(&mut self, fault: Fault) {
        self.worlds_at_home().for_each(|world| world.break_replication(fault));
    }

    /// When a frame begins, for whoever moves the clock. Known once `prepare` has laid the grid.
    pub fn start_of_frame(&self, frame: u64) -> Nanos {
        self.timeline.start_of(frame)
    }

    fn worlds_at_home(&mut self) -> impl Iterator<Item = &mut GameWorld> {
        self.worlds.iter_mut().filter_map(|slot| Some(&mut slot.home.as_deref_mut()?.world))
    }
}
