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

use crate::{
    column::Column,
    interest::InterestSettings,
    replicate::Replicate,
    schema::{KindId, Schema},
};

/// Bit beside the kinds of a mask: the entity's existence, or its set of components, is to be told.
pub(crate) const EXISTENCE: u32 = 1 << 16;

/// Slots that must be free before the one that waits longest is used again.
const FREE_SLOTS_KEPT: usize = 16;

/// Poisoned entities that are remembered by id in one tick; more are only counted.
const POISONED_LISTED_MAX: usize = 64;

/// A replicated entity, as servers and clients call it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetId {
    pub slot: u32,
    /// Tells this owner of the slot from those before and after.
    pub generation: u8,
}

/// The world has as many replicated entities as its settings allow.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[error("the world has as many replicated entities as `entities_max` allows")]
pub struct EntitiesFull;

/// Test switch: a deliberately broken encoder, to show that broken copies do not go unseen.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// Pieces go out with a wrong bit.
    CorruptEncoding,
    /// Despawns are counted as sent and are not.
    LoseDespawns,
    /// Updates of every fourth slot are counted as sent and are not.
    SkipUpdates,
    /// Changes of every fourth slot are not seen at all.
    MissChanges,
    /// Every fourth slot is overlooked when interest is worked out.
    MissInterest,
}

/// Where an entity is, for interest.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Standing {
    /// Without a place: told to everybody.
    Everywhere,
    At([f32; 2]),
    /// Told to its own client alone.
    Hidden,
}

#[derive(Copy, Clone, Debug)]
pub(crate) struct Slot {
    pub standing: Standing,
    /// Which components the entity has.
    pub present: u16,
    pub generation: u8,
    pub alive: bool,
}

/// Counted since the last `take`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntityCounts {
    pub poisoned: u64,
    pub clamped: u64,
    pub refused: u64,
    pub encoded: u64,
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
    /// Goes up with every despawn, so that a view knows whether it must look for dead entities.
    pub despawns: u32,
    pub counts: EntityCounts,
    poisoned: Vec<NetId>,
    free: VecDeque<u32>,
    alive_count: usize,
    entities_max: usize,
}

impl Entities {
    pub fn new(schema: Arc<Schema>, settings: &InterestSettings) -> Self {
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
            despawns: 0,
            counts: EntityCounts::default(),
            poisoned: Vec::new(),
            free: VecDeque::new(),
            alive_count: 0,
            entities_max: settings.entities_max as usize,
        }
    }

    /// Begins a tick: nothing has changed yet.
    pub fn begin_tick(&mut self, tick: u32) {
        for slot in self.touched.drain(..) {
            self.dirty[slot as usize] = 0;
        }
        self.touched_in_order = true;
        self.poisoned.clear();
        self.tick = tick;
    }

    pub fn spawn(&mut self) -> Result<NetId, EntitiesFull> {
        let may_grow = self.slots.len() < self.entities_max;
        let slot = if self.free.len() > FREE_SLOTS_KEPT || !may_grow { self.free.pop_front() } else { None };
        let slot = match slot {
            Some(slot) => slot,
            None if may_grow => self.grow(),
            None => {
                self.counts.refused += 1;
                return Err(EntitiesFull);
            }
        };
        let row = &mut self.slots[slot as usize];
        *row = Slot {
            standing: Standing::Everywhere,
            present: 0,
            generation: row.generation.wrapping_add(1),
            alive: true,
        };
        self.alive_count += 1;
        Ok(NetId { slot, generation: row.generation })
    }

    /// Returns whether there was such an entity.
    pub fn despawn(&mut self, id: NetId) -> bool {
        let Some(row) = self.row_mut(id) else {
            return false;
        };
        row.alive = false;
        self.free.push_back(id.slot);
        self.alive_count -= 1;
        self.despawns = self.despawns.wrapping_add(1);
        true
    }

    /// A place that is NaN or infinite counts as poison: the entity stays where it was, or is hidden if it
    /// never had a place.
    pub fn set_place(&mut self, id: NetId, place: [f32; 2]) {
        if place.iter().all(|number| number.is_finite()) {
            if let Some(row) = self.row_mut(id) {
                row.standing = Standing::At(place);
            }
            return;
        }
        if let Some(row) = self.row_mut(id) {
            if row.standing == Standing::Everywhere {
                row.standing = Standing::Hidden;
            }
            self.note_poisoned(id);
        }
    }

    pub fn set_standing(&mut self, id: NetId, standing: Standing) {
        if let Some(row) = self.row_mut(id) {
            row.standing = standing;
        }
    }

    /// Encodes a component's value. Returns whether its bytes changed.
    pub fn update<T: Replicate>(&mut self, kind: KindId, id: NetId, value: &T) -> bool {
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
        self.counts.encoded += 1;
        if written.clamped {
            self.counts.clamped += 1;
        }
        if written.poisoned {
            self.note_poisoned(id);
        }
        if written.changed {
            self.touch(id.slot, bit.into());
        }
        written.changed
    }

    /// Brings a component's exact value up to date for a truth, without a mark that it changed.
    pub fn refresh_exact<T: Replicate>(&mut self, kind: KindId, id: NetId, value: &T) {
        self.columns[kind.index()].write_exact(id.slot as usize, value);
    }

    /// Takes a component away from an entity. Clients get its whole state again, without it.
    pub fn remove(&mut self, kind: KindId, id: NetId) {
        let bit = 1 << kind.0;
        let tick = self.tick;
        let Some(row) = self.row_mut(id) else { return };
        if row.present & bit == 0 {
            return;
        }
        row.present &= !bit;
        self.removed_at[id.slot as usize] = tick;
        self.touch(id.slot, EXISTENCE);
    }

    pub fn get(&self, id: NetId) -> Option<&Slot> {
        self.slots.get(id.slot as usize).filter(|row| row.alive && row.generation == id.generation)
    }

    pub fn alive_count(&self) -> usize {
        self.alive_count
    }

    pub fn poisoned(&self) -> &[NetId] {
        &self.poisoned
    }

    /// Puts `touched` into slot order. Cheap when it is already, as it is when one column was walked.
    pub fn sort_touched(&mut self) {
        if !self.touched_in_order {
            self.touched.sort_unstable();
            self.touched_in_order = true;
        }
    }

    /// What of `slot` changed after `tick`, for a view that was not written every tick.
    pub fn changed_after(&self, slot: usize, tick: u32) -> u32 {
        let removed = if self.removed_at[slot] > tick { EXISTENCE } else { 0 };
        let changed = |(index, column): (usize, &Column)| u32::from(column.changed_at(slot) > tick) << index;
        removed | self.columns.iter().enumerate().map(changed).sum::<u32>()
    }

    pub fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
            + (self.dirty.capacity() + self.touched.capacity() + self.removed_at.capacity() + self.free.capacity()) * 4
            + self.columns.iter().map(Column::heap_bytes).sum::<usize>()
            + self.columns.capacity() * size_of::<Column>()
    }

    fn row_mut(&mut self, id: NetId) -> Option<&mut Slot> {
        self.slots.get_mut(id.slot as usize).filter(|row| row.alive && row.generation == id.generation)
    }

    fn touch(&mut self, slot: u32, bits: u32) {
        let mask = &mut self.dirty[slot as usize];
        if *mask == 0 {
            self.touched_in_order &= self.touched.last().is_none_or(|last| *last < slot);
            self.touched.push(slot);
        }
        *mask |= bits;
    }

    fn note_poisoned(&mut self, id: NetId) {
        self.counts.poisoned += 1;
        if self.poisoned.len() < POISONED_LISTED_MAX && !self.poisoned.contains(&id) {
            self.poisoned.push(id);
        }
    }

    fn grow(&mut self) -> u32 {
        let count = self.slots.len() + 1;
        self.slots.push(Slot { standing: Standing::Everywhere, present: 0, generation: 0, alive: false });
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
        Entities::new(schema(), &InterestSettings { entities_max, ..InterestSettings::default() })
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
        assert!(!entities.update(KindId(0), first, &pose(1.0)));
        assert!(entities.get(second).is_some());
        assert_eq!(entities.counts.refused, 1);
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
            entities.update(KindId(0), id, &pose(1.0));
        }
        entities.begin_tick(2);
        entities.update(KindId(0), ids[2], &pose(2.0));
        entities.update(KindId(1), ids[1], &Health { points: 3 });
        entities.update(KindId(0), ids[0], &pose(1.0));
        entities.sort_touched();
        assert_eq!(entities.touched, [1, 2]);
        assert_eq!(entities.dirty, [0, 0b10, 0b01]);
        assert_eq!(entities.changed_after(2, 1), 0b01);
        entities.remove(KindId(1), ids[1]);
        assert_eq!(entities.dirty[1], EXISTENCE | 0b10);
    }

    #[test]
    fn r12_poison_names_its_entity_within_the_tick() {
        let mut entities = entities(10);
        let (sick, lost) = (entities.spawn().unwrap(), entities.spawn().unwrap());
        entities.update(KindId(0), sick, &pose(f32::INFINITY));
        entities.set_place(lost, [f32::NAN, 0.0]);
        assert_eq!(entities.poisoned(), [sick, lost]);
        assert_eq!(entities.counts.poisoned, 2);
        assert_eq!(entities.get(lost).unwrap().standing, Standing::Hidden);
        entities.begin_tick(1);
        assert!(entities.poisoned().is_empty());
    }
}
