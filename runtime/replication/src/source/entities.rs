//! Entities: what a world has to tell, apart from whom.
//!
//! Every replicated entity has a slot, small and dense, and a generation that tells the slot's owners apart.
//! Everything else is columns over slots: where the entity is, which components it has, their encoded bytes
//! (`column`), and a mask of what changed this tick.
//!
//! Slots are handed out again only after others have waited longer, so that an id that somebody kept too
//! long does not soon mean something else. Written by the world's thread; read by all writers of snapshots.

use std::{collections::VecDeque, sync::Arc};

use thiserror::Error;
use throng_platform::prefetch::FootprintDraft;

use crate::{
    source::{column::Column, fault::Fault},
    stats::ReplicationStats,
    wire::{
        ids::NetId,
        replicate::Replicate,
        schema::{ComponentIndex, KINDS_MAX, Schema},
    },
};

/// Bit beside the kinds of a mask: the entity's existence, or its set of components, is to be told.
pub(crate) const EXISTENCE: u32 = 1 << 16;

/// Slots that must be free before the one that waits longest is used again.
const FREE_SLOTS_KEPT: usize = 16;

/// Poisoned entities that are remembered by id in one tick; more are only counted.
const POISONED_LISTED_MAX: usize = 64;

/// The world has as many replicated entities as its settings allow.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[error("the world has as many replicated entities as `entities_max` allows")]
pub struct EntitiesFull;

/// To whom an entity is relevant by where it is, before teams and visibility filters.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Relevance {
    /// Without a place: told to everybody.
    Everywhere,
    At([f32; 2]),
    /// Told to the client whose own it is, and to nobody else.
    OwnerOnly,
}

#[derive(Copy, Clone, Debug)]
pub(crate) struct Slot {
    pub relevance: Relevance,
    /// Which components the entity has.
    pub present: u16,
    pub generation: u8,
    pub alive: bool,
    /// Relevant to views of this team, wherever it is. 0: none.
    pub team: u16,
    /// Told only to those who may see it.
    pub filtered: bool,
}

impl Slot {
    const EMPTY: Self =
        Self { relevance: Relevance::Everywhere, present: 0, generation: 0, alive: false, team: 0, filtered: false };
}

pub(crate) struct Entities {
    pub schema: Arc<Schema>,
    pub tick: u32,
    pub fault: Fault,
    pub slots: Vec<Slot>,
    /// What changed this tick, per slot: a bit per kind, and `EXISTENCE` when a component was removed.
    pub dirty: Vec<u32>,
    /// Slots with a bit in `dirty`. In slot order once `sort_touched` has run.
    pub touched: Vec<u32>,
    touched_in_order: bool,
    /// Tick of the last removal of a component, per slot.
    pub removed_at: Vec<u32>,
    pub columns: Vec<Column>,
    /// Slots that every view which holds them must look at before it writes more about them: their entities died,
    /// became owner-only or visibility-filtered, changed teams or lost a component this tick. Views count what they
    /// have seen.
    pub disturbed: Vec<u32>,
    /// How many there were in all ticks before.
    pub disturbed_before: u32,
    /// Goes up with all that interest depends on.
    pub arrangement: u64,
    /// Slots that moved and did nothing else that interest depends on, once for each time, since this was last taken;
    /// of many the first.
    pub moved: Vec<u32>,
    /// Goes up with every change of a component.
    pub changes: u64,
    /// Last tick in which a component changed.
    pub touched_tick: u32,
    /// Slots whose changes go at once, whatever the distance.
    pub urgent: Vec<u32>,
    /// How urgent changes are, per slot; 1 is the usual.
    pub weights: Vec<f32>,
    /// Entities that are visibility-filtered.
    pub filtered_count: usize,
    pub counts: ReplicationStats,
    poisoned: Vec<NetId>,
    /// For the log: the component of the first of these, unless that was a place, and the first value this tick that was
    /// out of its range.
    first_poisoned: Option<ComponentIndex>,
    first_clamped: Option<(ComponentIndex, NetId)>,
    /// The tick of the last `release_due`.
    released_at: Option<u32>,
    /// Empty between calls of `release_due`.
    released: Vec<u32>,
    free: VecDeque<u32>,
    alive_count: usize,
    entities_max: usize,
}

/// Up to an eighth of all slots are followed one by one when they move: at 20 ns each that is a third of the 8 ns per
/// slot that sorting all of them anew takes.
const FOLLOWED_PART: usize = 8;

impl Entities {
    /// Notes what every tick reads, beside itself.
    pub fn note_lists(&self, footprint: &mut FootprintDraft) {
        // All by name: who adds a list says here whether every tick reads it.
        let Self {
            slots,
            dirty,
            touched,
            removed_at,
            weights,
            columns,
            // Lists that are short, or seldom looked at.
            disturbed: _,
            moved: _,
            urgent: _,
            poisoned: _,
            released: _,
            free: _,
            // No lists.
            schema: _,
            tick: _,
            fault: _,
            touched_in_order: _,
            disturbed_before: _,
            arrangement: _,
            changes: _,
            touched_tick: _,
            filtered_count: _,
            counts: _,
            first_poisoned: _,
            first_clamped: _,
            released_at: _,
            alive_count: _,
            entities_max: _,
        } = self;
        footprint.note(&**slots);
        for slots in [dirty, touched, removed_at] {
            footprint.note(&**slots);
        }
        footprint.note(&**weights);
        footprint.note(&**columns);
        columns.iter().for_each(|column| column.note_lists(footprint));
    }

    pub fn new(schema: Arc<Schema>, entities_max: u32) -> Self {
        Self {
            columns: schema.kinds().iter().map(Column::new).collect(),
            schema,
            tick: 0,
            fault: Fault::None,
            slots: Vec::new(),
            dirty: Vec::new(),
            touched: Vec::new(),
            touched_in_order: true,
            removed_at: Vec::new(),
            disturbed: Vec::new(),
            disturbed_before: 0,
            arrangement: 0,
            moved: Vec::new(),
            changes: 0,
            touched_tick: 0,
            urgent: Vec::new(),
            weights: Vec::new(),
            filtered_count: 0,
            counts: ReplicationStats::default(),
            poisoned: Vec::new(),
            first_poisoned: None,
            first_clamped: None,
            released_at: None,
            released: Vec::new(),
            free: VecDeque::new(),
            alive_count: 0,
            entities_max: entities_max as usize,
        }
    }

    /// Begins a tick: nothing has changed yet.
    pub fn begin_tick(&mut self, tick: u32) {
        for slot in self.touched.drain(..) {
            self.dirty[slot as usize] = 0;
        }
        self.touched_in_order = true;
        self.poisoned.clear();
        self.first_poisoned = None;
        self.first_clamped = None;
        self.urgent.clear();
        self.disturbed_before = self.disturbed_before.wrapping_add(self.disturbed.len() as u32);
        self.disturbed.clear();
        self.tick = tick;
    }

    pub fn spawn(&mut self) -> Result<NetId, EntitiesFull> {
        let may_grow = self.slots.len() < self.entities_max;
        let slot = if self.free.len() > FREE_SLOTS_KEPT || !may_grow { self.free.pop_front() } else { None };
        let slot = match slot {
            Some(slot) => slot,
            None if may_grow => self.grow(),
            None => {
                self.counts.spawns_refused += 1;
                return Err(EntitiesFull);
            }
        };
        let row = &mut self.slots[slot as usize];
        *row = Slot { generation: row.generation.wrapping_add(1), alive: true, ..Slot::EMPTY };
        self.weights[slot as usize] = 1.0;
        self.alive_count += 1;
        self.arrangement += 1;
        Ok(NetId { slot, generation: row.generation })
    }

    /// Generations of all slots, whoever has them.
    pub fn slot_generations(&self) -> impl ExactSizeIterator<Item = u8> {
        self.slots.iter().map(|slot| slot.generation)
    }

    /// Slots that wait for a new owner, those first that have waited longest.
    pub fn free_slots(&self) -> impl ExactSizeIterator<Item = u32> {
        self.free.iter().copied()
    }

    /// Has these slots from the start: those of `alive` with entities that have nothing yet, the others free. What is
    /// neither in `alive` nor in `free` has been freed last. Returns false if that cannot be; then it is of no use.
    pub fn restore(&mut self, generations: &[u8], free: &[u32], alive: impl IntoIterator<Item = NetId>) -> bool {
        if !self.slots.is_empty() || generations.len() > self.entities_max {
            return false;
        }
        for generation in generations {
            let slot = self.grow();
            self.slots[slot as usize].generation = *generation;
        }
        for id in alive {
            match self.slots.get_mut(id.slot as usize) {
                Some(row) if !row.alive && row.generation == id.generation => row.alive = true,
                _ => return false,
            }
            self.alive_count += 1;
        }
        let mut is_free = vec![false; self.slots.len()];
        for &slot in free {
            match (self.slots.get(slot as usize), is_free.get_mut(slot as usize)) {
                (Some(row), Some(is_free)) if !row.alive && !*is_free => *is_free = true,
                _ => return false,
            }
            self.free.push_back(slot);
        }
        let left = self.slots.iter().zip(&is_free).enumerate().filter(|(_, (row, is_free))| !row.alive && !**is_free);
        self.free.extend(left.map(|(slot, _)| slot as u32));
        self.arrangement += 1;
        true
    }

    /// Returns whether there was such an entity.
    pub fn despawn(&mut self, id: NetId) -> bool {
        let Some(row) = self.row_mut(id) else {
            return false;
        };
        row.alive = false;
        let was_filtered = std::mem::take(&mut row.filtered);
        self.filtered_count -= usize::from(was_filtered);
        self.columns.iter_mut().for_each(|column| column.forget(id.slot as usize));
        self.free.push_back(id.slot);
        self.alive_count -= 1;
        self.disturb(id.slot);
        true
    }

    /// A place that is NaN or infinite counts as poison: the entity stays where it was, or is owner-only if it
    /// never had a place.
    pub fn set_place(&mut self, id: NetId, place: [f32; 2]) {
        if place.iter().all(|number| number.is_finite()) {
            if let Some(row) = self.row_mut(id)
                && row.relevance != Relevance::At(place)
            {
                let before = std::mem::replace(&mut row.relevance, Relevance::At(place));
                let has_moved = matches!(before, Relevance::At(_)) && !row.filtered;
                self.arrangement += 1;
                if has_moved && self.moved.len() < self.slots.len() / FOLLOWED_PART {
                    self.moved.push(id.slot);
                }
            }
            return;
        }
        if let Some(row) = self.row_mut(id) {
            if row.relevance == Relevance::Everywhere {
                row.relevance = Relevance::OwnerOnly;
                self.disturb(id.slot);
            }
            self.note_poisoned(id, None);
        }
    }

    pub fn set_relevance(&mut self, id: NetId, relevance: Relevance) {
        if let Some(row) = self.row_mut(id)
            && row.relevance != relevance
        {
            row.relevance = relevance;
            self.disturb(id.slot);
        }
    }

    /// 0: in no team.
    pub fn set_team(&mut self, id: NetId, team: u16) {
        if let Some(row) = self.row_mut(id)
            && std::mem::replace(&mut row.team, team) != team
        {
            self.disturb(id.slot);
        }
    }

    pub fn set_visibility_filtered(&mut self, id: NetId, filtered: bool) {
        if let Some(row) = self.row_mut(id)
            && std::mem::replace(&mut row.filtered, filtered) != filtered
        {
            if filtered {
                self.filtered_count += 1;
            } else {
                self.filtered_count -= 1;
            }
            self.disturb(id.slot);
        }
    }

    /// [0.1 to 100]; what is outside is moved to the nearer end, and no number counts as 1.
    pub fn set_weight(&mut self, id: NetId, weight: f32) {
        if self.row_mut(id).is_some() {
            self.weights[id.slot as usize] = if weight.is_nan() { 1.0 } else { weight.clamp(0.1, 100.0) };
        }
    }

    /// What changes of the entity this tick goes at once to all who hold it.
    pub fn set_urgent(&mut self, id: NetId) {
        if self.row_mut(id).is_some() {
            self.urgent.push(id.slot);
            self.changes += 1;
        }
    }

    /// Encodes a component's value. Returns whether its bytes changed.
    pub fn update<T: Replicate>(&mut self, kind: ComponentIndex, id: NetId, value: &T) -> bool {
        let tick = self.tick;
        let misses = self.fault == Fault::MissChanges && id.slot % 4 == 2;
        let Some(row) = self.row_mut(id) else {
            return false;
        };
        let bit = 1 << kind.0;
        if misses && row.present & bit != 0 {
            return false;
        }
        let new = row.present & bit == 0;
        row.present |= bit;
        let written = self.columns[kind.index()].write(id.slot as usize, value, tick, new);
        self.counts.components_encoded += 1;
        self.counts.postponed += u64::from(written.postponed);
        if written.clamped {
            self.counts.clamped += 1;
            self.first_clamped.get_or_insert((kind, id));
        }
        if written.poisoned {
            self.note_poisoned(id, Some(kind));
        }
        if written.changed {
            self.touch(id.slot, bit.into());
        }
        written.changed
    }

    /// Brings a component's exact value up to date for an audit sample, without a mark that it changed.
    pub fn refresh_exact<T: Replicate>(&mut self, kind: ComponentIndex, id: NetId, value: &T) {
        self.columns[kind.index()].refresh_exact(id.slot as usize, value, self.tick);
    }

    /// How often changes of each kind may be told: once in so many ticks [>= 1]. Allocates.
    pub fn set_periods(&mut self, periods: &[u32; KINDS_MAX]) {
        self.columns.iter_mut().zip(periods).for_each(|(column, ticks)| column.set_period(*ticks));
    }

    /// For how long a change may wait for its rule (ticks, >= 1).
    pub fn period_max(&self) -> u32 {
        self.columns.iter().map(Column::period).max().unwrap_or(1)
    }

    /// Lets go what waited for its rule and is due. Once per tick, after all changes; further calls do nothing.
    pub fn release_due(&mut self) {
        if self.released_at.replace(self.tick) == Some(self.tick) {
            return;
        }
        let mut released = std::mem::take(&mut self.released);
        for kind in 0..self.columns.len() {
            self.columns[kind].release_due(self.tick, &mut released);
            for slot in released.drain(..) {
                self.touch(slot, 1 << kind);
            }
        }
        self.released = released;
    }

    /// Tells all that waits of one entity in this tick, whatever the rules say: it has been moved by more than its own
    /// power.
    pub fn hurry(&mut self, id: NetId) {
        if self.get(id).is_none() {
            return;
        }
        for kind in 0..self.columns.len() {
            if self.columns[kind].hurry(id.slot as usize, self.tick) {
                self.touch(id.slot, 1 << kind);
            }
        }
    }

    /// Takes a component away from an entity. Clients get its whole state again, without it.
    pub fn remove(&mut self, kind: ComponentIndex, id: NetId) {
        let bit = 1 << kind.0;
        let tick = self.tick;
        let Some(row) = self.row_mut(id) else { return };
        if row.present & bit == 0 {
            return;
        }
        row.present &= !bit;
        self.columns[kind.index()].forget(id.slot as usize);
        self.removed_at[id.slot as usize] = tick;
        self.touch(id.slot, EXISTENCE);
        self.disturb(id.slot);
    }

    pub fn get(&self, id: NetId) -> Option<&Slot> {
        self.slots.get(id.slot as usize).filter(|row| row.alive && row.generation == id.generation)
    }

    #[cfg(test)]
    pub fn alive_count(&self) -> usize {
        self.alive_count
    }

    pub fn poisoned(&self) -> &[NetId] {
        &self.poisoned
    }

    pub fn first_poisoned_component(&self) -> Option<ComponentIndex> {
        self.first_poisoned
    }

    pub fn first_clamped(&self) -> Option<(ComponentIndex, NetId)> {
        self.first_clamped
    }

    /// Ends the tick's changes: lets go what is due, and puts `touched` into slot order. Cheap when it is already, as
    /// it is when one column was walked, and when it is called again.
    pub fn sort_touched(&mut self) {
        self.release_due();
        if !self.touched_in_order {
            self.touched.sort_unstable();
            self.touched_in_order = true;
        }
    }

    /// Of `kinds`, those of a slot that changed within the last `period` ticks.
    #[inline]
    pub fn changed_within(&self, slot: usize, kinds: u16, period: u32) -> u16 {
        self.changed_since(slot, kinds, period, self.tick)
    }

    /// Of `kinds`, those of a slot that changed less than `period` ticks before `tick`, or later.
    #[inline]
    pub fn changed_since(&self, slot: usize, kinds: u16, period: u32, tick: u32) -> u16 {
        let mut rest = kinds & self.slots[slot].present;
        let mut changed = 0;
        while rest != 0 {
            let kind = rest.trailing_zeros();
            rest &= rest - 1;
            let late = self.columns[kind as usize].changed_at(slot).saturating_add(period) > tick;
            changed |= u16::from(late) << kind;
        }
        changed
    }

    /// How many disturbances there have been; see `disturbed`.
    pub fn disturbances(&self) -> u32 {
        self.disturbed_before.wrapping_add(self.disturbed.len() as u32)
    }

    /// For tests and simulations. Panics if the columns contradict each other.
    pub fn check(&self) {
        let count = |is: fn(&Slot) -> bool| self.slots.iter().filter(|row| is(row)).count();
        assert_eq!(self.alive_count, count(|row| row.alive));
        assert_eq!(self.filtered_count, count(|row| row.alive && row.filtered));
        assert_eq!(self.alive_count + self.free.len(), self.slots.len());
        assert!(
            [self.dirty.len(), self.removed_at.len(), self.weights.len()].iter().all(|len| *len == self.slots.len())
        );
        assert_eq!(self.touched.len(), self.dirty.iter().filter(|bits| **bits != 0).count());
        assert!(self.touched.iter().all(|slot| self.dirty[*slot as usize] != 0));
        assert!(self.slots.len() <= self.entities_max);
    }

    pub fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
            + (self.dirty.capacity()
                + self.touched.capacity()
                + self.removed_at.capacity()
                + self.released.capacity()
                + self.moved.capacity()
                + self.free.capacity())
                * 4
            + self.columns.iter().map(Column::heap_bytes).sum::<usize>()
            + self.columns.capacity() * size_of::<Column>()
    }

    fn row_mut(&mut self, id: NetId) -> Option<&mut Slot> {
        self.slots.get_mut(id.slot as usize).filter(|row| row.alive && row.generation == id.generation)
    }

    fn disturb(&mut self, slot: u32) {
        self.disturbed.push(slot);
        self.arrangement += 1;
    }

    fn touch(&mut self, slot: u32, bits: u32) {
        self.changes += 1;
        self.touched_tick = self.tick;
        let mask = &mut self.dirty[slot as usize];
        if *mask == 0 {
            self.touched_in_order &= self.touched.last().is_none_or(|last| *last < slot);
            self.touched.push(slot);
        }
        *mask |= bits;
    }

    /// `kind` is none for a place.
    fn note_poisoned(&mut self, id: NetId, kind: Option<ComponentIndex>) {
        self.counts.poisoned += 1;
        if self.poisoned.is_empty() {
            self.first_poisoned = kind;
        }
        if self.poisoned.len() < POISONED_LISTED_MAX && !self.poisoned.contains(&id) {
            self.poisoned.push(id);
        }
    }

    fn grow(&mut self) -> u32 {
        let count = self.slots.len() + 1;
        self.slots.push(Slot::EMPTY);
        self.weights.push(1.0);
        self.dirty.resize(count, 0);
        self.removed_at.resize(count, 0);
        self.columns.iter_mut().for_each(|column| column.grow(count));
        (count - 1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Health, pose, schema};

    fn entities(entities_max: u32) -> Entities {
        Entities::new(schema(), entities_max)
    }

    #[test]
    fn ids_of_former_owners_mean_nothing() {
        let mut entities = entities(1);
        let first = entities.spawn().unwrap();
        assert_eq!(entities.spawn(), Err(EntitiesFull));
        assert!(entities.despawn(first));
        let second = entities.spawn().unwrap();
        assert_eq!(second.slot, first.slot);
        assert_ne!(second, first);
        assert!(!entities.despawn(first));
        assert!(!entities.update(ComponentIndex(0), first, &pose(1.0)));
        assert!(entities.get(second).is_some());
        assert_eq!(entities.counts.spawns_refused, 1);
    }

    #[test]
    fn the_filtered_are_counted_until_they_die() {
        let mut entities = entities(10);
        let ids = [(); 3].map(|()| entities.spawn().unwrap());
        ids.iter().for_each(|id| entities.set_visibility_filtered(*id, true));
        entities.set_visibility_filtered(ids[0], false);
        entities.despawn(ids[1]);
        assert_eq!(entities.filtered_count, 1);
        entities.despawn(ids[2]);
        assert_eq!(entities.filtered_count, 0);
    }

    #[test]
    fn slots_wait_before_they_are_used_again() {
        let mut entities = entities(1000);
        let mut last_use = [None; 64];
        for round in 0..500 {
            let id = entities.spawn().unwrap();
            if let Some(last) = last_use[id.slot as usize].replace(round) {
                assert!(round - last > FREE_SLOTS_KEPT as i32);
            }
            entities.despawn(id);
        }
        assert!(entities.slots.len() <= FREE_SLOTS_KEPT + 1);
    }

    #[test]
    fn only_changes_of_this_tick_are_dirty() {
        let mut entities = entities(10);
        entities.begin_tick(1);
        let ids = [(); 3].map(|()| entities.spawn().unwrap());
        for id in ids {
            entities.update(ComponentIndex(0), id, &pose(1.0));
        }
        entities.begin_tick(2);
        entities.update(ComponentIndex(0), ids[2], &pose(2.0));
        entities.update(ComponentIndex(1), ids[1], &Health { points: 3 });
        entities.update(ComponentIndex(0), ids[0], &pose(1.0));
        entities.sort_touched();
        assert_eq!(entities.touched, [1, 2]);
        assert_eq!(entities.dirty, [0, 0b10, 0b01]);
        assert_eq!(entities.changed_within(2, 0b11, 1), 0b01);
        entities.remove(ComponentIndex(1), ids[1]);
        assert_eq!(entities.dirty[1], EXISTENCE | 0b10);
    }

    #[test]
    fn throttled_kinds_are_dirty_when_they_are_told() {
        let mut entities = entities(10);
        entities.begin_tick(1);
        let id = entities.spawn().unwrap();
        let mut periods = [1; KINDS_MAX];
        periods[1] = 4;
        entities.set_periods(&periods);
        let mut dirty = Vec::new();
        for tick in 2..=12 {
            entities.begin_tick(tick);
            entities.update(ComponentIndex(0), id, &pose(tick as f32));
            entities.update(ComponentIndex(1), id, &Health { points: 100 + tick as u16 });
            entities.sort_touched();
            entities.sort_touched();
            dirty.push(entities.dirty[0]);
        }
        assert_eq!(dirty, [0b11, 1, 1, 1, 0b11, 1, 1, 1, 0b11, 1, 1]);
        assert_eq!(entities.counts.postponed, 8);
        entities.hurry(id);
        assert_eq!(entities.dirty[0], 0b11);
    }

    #[test]
    fn what_waits_dies_with_its_component_and_its_entity() {
        let mut entities = entities(1);
        entities.set_periods(&[5; KINDS_MAX]);
        entities.begin_tick(10);
        let first = entities.spawn().unwrap();
        entities.update(ComponentIndex(0), first, &pose(0.0));
        entities.update(ComponentIndex(1), first, &Health { points: 1 });
        entities.begin_tick(11);
        entities.update(ComponentIndex(0), first, &pose(1.0));
        entities.update(ComponentIndex(1), first, &Health { points: 2 });
        entities.remove(ComponentIndex(1), first);
        entities.despawn(first);
        let second = entities.spawn().unwrap();
        assert_eq!(second.slot, first.slot);
        entities.update(ComponentIndex(0), second, &pose(3.0));
        for tick in 12..30 {
            entities.begin_tick(tick);
            entities.sort_touched();
            assert!(entities.touched.is_empty());
        }
    }

    #[test]
    fn r12_poison_names_its_entity_within_the_tick() {
        let mut entities = entities(10);
        let (sick, lost) = (entities.spawn().unwrap(), entities.spawn().unwrap());
        entities.update(ComponentIndex(0), sick, &pose(f32::INFINITY));
        entities.set_place(lost, [f32::NAN, 0.0]);
        assert_eq!(entities.poisoned(), [sick, lost]);
        assert_eq!(entities.counts.poisoned, 2);
        assert_eq!(entities.first_poisoned_component(), Some(ComponentIndex(0)));
        assert_eq!(entities.get(lost).unwrap().relevance, Relevance::OwnerOnly);
        entities.begin_tick(1);
        assert!(entities.poisoned().is_empty());
        assert_eq!(entities.first_poisoned_component(), None);
        entities.set_place(lost, [f32::NAN, 0.0]);
        entities.update(ComponentIndex(0), sick, &pose(f32::NAN));
        assert_eq!(entities.first_poisoned_component(), None, "a place is no component");
    }

    #[test]
    fn the_first_value_out_of_its_range_is_named_within_the_tick() {
        let mut entities = entities(10);
        let (small, large) = (entities.spawn().unwrap(), entities.spawn().unwrap());
        entities.update(ComponentIndex(0), small, &pose(1.0));
        assert_eq!(entities.first_clamped(), None);
        entities.update(ComponentIndex(0), large, &pose(1e9));
        entities.update(ComponentIndex(0), small, &pose(-1e9));
        assert_eq!(entities.first_clamped(), Some((ComponentIndex(0), large)));
        entities.begin_tick(1);
        assert_eq!(entities.first_clamped(), None);
    }
}
