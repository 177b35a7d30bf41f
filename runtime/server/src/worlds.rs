//! Worlds: the server's worlds by id, and where in the frame grid each ticks.
//!
//! A world has a place as long as it lives; then the place goes to another one, with the next generation in its id, the
//! place that has been free longest first. Worlds of one rate are spread over the phases of the grid: who comes gets
//! the phase with the fewest.
//!
//! Owned by the frame thread.

use std::collections::{BTreeMap, VecDeque};

use throng_platform::never;
use throng_scheduler::{FrameGrid, Hertz, TickPhase};
use throng_world::ids::WorldId;

use crate::world_slot::WorldSlot;

/// Most worlds at once: a place's number has 20 bits where it is told in one number with its generation.
pub const WORLDS_MAX: usize = 1 << 20;

struct Place {
    /// Of the world that has the place, or the one that has it next.
    id: WorldId,
    slot: Option<WorldSlot>,
}

/// All worlds of a server.
#[derive(Default)]
pub(crate) struct Worlds {
    places: Vec<Place>,
    free: VecDeque<u32>,
    count: usize,
    /// By rate, how many worlds tick in each phase of the grid.
    phases: BTreeMap<Hertz, Vec<u32>>,
}

impl Worlds {
    /// An id for a world that is going to be made; `None` when there are as many as can be.
    pub fn reserve(&mut self) -> Option<WorldId> {
        if let Some(index) = self.free.pop_front() {
            return Some(self.places[index as usize].id);
        }
        let index = u32::try_from(self.places.len()).ok().filter(|index| (*index as usize) < WORLDS_MAX)?;
        let id = WorldId::new(index, 0);
        self.places.push(Place { id, slot: None });
        Some(id)
    }

    /// The world that was reserved is not going to be.
    pub fn release(&mut self, id: WorldId) {
        self.places[id.index()].id = id.successor();
        self.free.push_back(id.index() as u32);
    }

    /// The phase that the fewest worlds of this rate have.
    pub fn take_phase(&mut self, rate: Hertz, grid: FrameGrid) -> (usize, TickPhase) {
        let loads = self.phases.entry(rate).or_insert_with(|| vec![0; grid.phases_count(rate)]);
        let index = (0..loads.len()).min_by_key(|index| loads[*index]).unwrap_or(0);
        loads[index] += 1;
        (index, TickPhase::new(index, rate, grid))
    }

    /// Forgets who ticks when, for another grid.
    pub fn forget_phases(&mut self) {
        self.phases.clear();
    }

    /// Puts a world into the place that was reserved for it.
    pub fn insert(&mut self, slot: WorldSlot) {
        let place = &mut self.places[slot.id.index()];
        never!(place.slot.is_some() || place.id != slot.id, "a world is put into a place that is not its own");
        place.slot = Some(slot);
        self.count += 1;
    }

    /// Takes a world out; its place is free for another.
    pub fn remove(&mut self, id: WorldId) -> Option<WorldSlot> {
        let slot = self.vacate(id)?;
        self.release(id);
        Some(slot)
    }

    /// Takes a world out and keeps its place for it.
    pub fn vacate(&mut self, id: WorldId) -> Option<WorldSlot> {
        let slot = self.places.get_mut(id.index()).filter(|place| place.id == id)?.slot.take()?;
        self.count -= 1;
        if let Some(load) = self.phases.get_mut(&slot.rate).and_then(|loads| loads.get_mut(slot.phase_index)) {
            *load -= 1;
        }
        Some(slot)
    }

    pub fn get(&self, id: WorldId) -> Option<&WorldSlot> {
        self.places.get(id.index()).filter(|place| place.id == id)?.slot.as_ref()
    }

    pub fn get_mut(&mut self, id: WorldId) -> Option<&mut WorldSlot> {
        self.places.get_mut(id.index()).filter(|place| place.id == id)?.slot.as_mut()
    }

    /// By id.
    pub fn iter(&self) -> impl Iterator<Item = &WorldSlot> {
        self.places.iter().filter_map(|place| place.slot.as_ref())
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut WorldSlot> {
        self.places.iter_mut().filter_map(|place| place.slot.as_mut())
    }

    /// Asserts what must hold between two frames.
    pub fn check(&self) {
        assert_eq!(self.count, self.iter().count());
        for slot in self.iter() {
            assert_eq!(self.get(slot.id).map(|found| found.id), Some(slot.id));
        }
        for index in &self.free {
            assert!(self.places[*index as usize].slot.is_none(), "a place is free and taken");
        }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_again_under_another_id_the_longest_free_first() {
        let mut worlds = Worlds::default();
        let first: Vec<_> = (0..3).map(|_| worlds.reserve().unwrap()).collect();
        assert_eq!(first, [0, 1, 2].map(|index| WorldId::new(index, 0)));
        worlds.release(first[1]);
        worlds.release(first[0]);
        assert_eq!(worlds.reserve(), Some(WorldId::new(1, 1)));
        assert_eq!(worlds.reserve(), Some(WorldId::new(0, 1)));
        assert_eq!(worlds.reserve(), Some(WorldId::new(3, 0)));
        assert!(worlds.get(first[0]).is_none() && worlds.remove(first[0]).is_none());
    }

    #[test]
    fn worlds_that_come_are_spread_over_the_phases_of_the_servers_grid() {
        let mut worlds = Worlds::default();
        let grid = FrameGrid::for_rates(&[Hertz(20), Hertz(30)]);
        let phases: Vec<_> = (0..7).map(|_| worlds.take_phase(Hertz(20), grid).0).collect();
        assert_eq!(phases, [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(worlds.take_phase(Hertz(30), grid).0, 0);
    }
}
