//! Apply: a snapshot's records, put into a client's replicas.
//!
//! Each record is read in full, whether it is used or not, so that the next one is found; and it is used only
//! where it is newer than what is held. A spawn says all there is of an entity, an update some, a despawn that
//! the slot is empty; `view` tells why that is enough, whatever is lost or overtaken.

use crate::{
    replicas::store::{Replica, Replicas},
    wire::{
        bytes::{DecodeError, Reader},
        ids::{NetId, SLOTS_MAX},
        schema::bits,
    },
};

impl Replicas {
    /// Applies all records of a message that is true for `tick`. Those before a mistake stay applied.
    pub(crate) fn apply_records(&mut self, tick: u32, from: &mut Reader<'_>) -> Result<(), DecodeError> {
        let mut slot = 0;
        let mut mask = 1;
        let mut first = true;
        // Records come in slot order, and so do replicas: a look-up begins where the last one ended.
        let mut near = 0;
        while !from.is_at_end() {
            let head = from.varint()?;
            let delta = match head & 0b11 {
                0b11 => head >> 3,
                0b01 => head >> 2,
                _ => head >> 1,
            };
            if delta == 0 && !first {
                return Err(DecodeError::SlotOrder);
            }
            first = false;
            slot += delta;
            if slot >= SLOTS_MAX {
                return Err(DecodeError::SlotLimit);
            }
            match head & 0b111 {
                0b111 => self.empty_slot(slot, tick, &mut near)?,
                0b011 => {
                    let generation = from.u8()?;
                    let spawned = self.read_mask(from)?;
                    self.spawn(NetId { slot, generation }, spawned, tick, &mut near, from)?;
                }
                head => {
                    if head & 0b11 == 0b01 {
                        mask = self.read_mask(from)?;
                    }
                    self.update(slot, mask, tick, &mut near, from)?;
                }
            }
        }
        Ok(())
    }

    fn update(
        &mut self,
        slot: u32,
        mask: u16,
        tick: u32,
        near: &mut usize,
        from: &mut Reader<'_>,
    ) -> Result<(), DecodeError> {
        if mask & !self.schema.every_kind() != 0 {
            return Err(DecodeError::UnknownComponent);
        }
        let held = self.seek(slot, near).filter(|index| {
            let replica = &self.replicas[*index];
            replica.alive && replica.since <= tick
        });
        match held {
            Some(index) => self.read_values(index, mask, tick, from),
            None => {
                self.counts.stale += 1;
                self.skip_values(mask, from)
            }
        }
    }

    /// A spawn is all there is about the entity: components that are not in it are not there.
    fn spawn(
        &mut self,
        id: NetId,
        mask: u16,
        tick: u32,
        near: &mut usize,
        from: &mut Reader<'_>,
    ) -> Result<(), DecodeError> {
        let index = match self.seek(id.slot, near) {
            None => {
                let index = self.add(id.slot, near)?;
                self.occupy(index, id.generation, tick);
                index
            }
            Some(index) => {
                let replica = &mut self.replicas[index];
                if replica.alive && replica.generation == id.generation && tick >= replica.since {
                    replica.since = tick;
                } else if tick > replica.since {
                    self.occupy(index, id.generation, tick);
                } else {
                    self.counts.stale += 1;
                    return self.skip_values(mask, from);
                }
                index
            }
        };
        self.remove_components(index, self.schema.every_kind() & !mask, tick);
        self.read_values(index, mask, tick, from)
    }

    /// Notes that a slot is empty as of `tick`, also when nothing was held there: its spawn may be late.
    fn empty_slot(&mut self, slot: u32, tick: u32, near: &mut usize) -> Result<(), DecodeError> {
        let index = match self.seek(slot, near) {
            Some(index) => index,
            None => self.add(slot, near)?,
        };
        let replica = &mut self.replicas[index];
        if tick < replica.since {
            self.counts.stale += 1;
            return Ok(());
        }
        replica.since = tick;
        if std::mem::take(&mut replica.alive) {
            replica.present = 0;
            self.alive_count -= 1;
            self.columns.iter_mut().for_each(|column| column.clear(index));
            self.counts.updates_applied += 1;
        }
        Ok(())
    }

    /// Gives a slot to a new owner, without components.
    fn occupy(&mut self, index: usize, generation: u8, tick: u32) {
        let stride = self.stride();
        let replica = &mut self.replicas[index];
        if !replica.alive {
            self.alive_count += 1;
        }
        *replica = Replica { slot: replica.slot, generation, alive: true, present: 0, since: tick };
        self.labels[index * stride..(index + 1) * stride].fill(tick);
        self.columns.iter_mut().for_each(|column| column.clear(index));
    }

    fn remove_components(&mut self, index: usize, kinds: u16, tick: u32) {
        let begin = index * self.stride();
        for kind in bits(kinds) {
            let label = &mut self.labels[begin + kind];
            if *label < tick {
                *label = tick;
                self.replicas[index].present &= !(1 << kind);
                self.columns[kind].clear(index);
            }
        }
    }

    fn read_values(&mut self, index: usize, mask: u16, tick: u32, from: &mut Reader<'_>) -> Result<(), DecodeError> {
        let begin = index * self.stride();
        let mut applied = false;
        for kind in bits(mask) {
            if tick < self.labels[begin + kind] {
                self.columns[kind].skip(from)?;
                continue;
            }
            self.columns[kind].decode(index, from)?;
            self.labels[begin + kind] = tick;
            self.replicas[index].present |= 1 << kind;
            applied = true;
        }
        *(if applied { &mut self.counts.updates_applied } else { &mut self.counts.stale }) += 1;
        Ok(())
    }

    fn skip_values(&self, mask: u16, from: &mut Reader<'_>) -> Result<(), DecodeError> {
        bits(mask).try_for_each(|kind| self.columns[kind].skip(from))
    }

    pub(crate) fn read_mask(&self, from: &mut Reader<'_>) -> Result<u16, DecodeError> {
        let mask = if self.schema.mask_bytes() == 1 { from.u8()?.into() } else { from.u16()? };
        if mask & !self.schema.every_kind() != 0 {
            return Err(DecodeError::UnknownComponent);
        }
        Ok(mask)
    }
}
