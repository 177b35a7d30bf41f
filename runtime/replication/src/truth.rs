//! Truth: now and then the server tells a client, exactly, what one entity should look like.
//!
//! Snapshots are rounded, delayed and assembled from pieces; a truth is written from the exact values, by
//! another path, and lets the client find that a copy is wrong (`replicas::check`). It is about one entity
//! that the client should hold, or about one that it should have dropped.
//!
//! ```text
//! byte   0      1       2..6          6        then
//!        +------+-------+-------------+--------+-------------+------------+-------+--------------------+
//!        | 3    | epoch | tick  (LE)  | 1      | varint slot | generation | mask  | age  exact piece.. |
//!        +------+-------+-------------+--------+-------------+------------+-------+--------------------+
//!        | 3    | epoch | tick  (LE)  | 0      | varint slot | generation |         absent: no more
//!        +------+-------+-------------+--------+-------------+------------+
//! mask: as in snapshots; age: varint, ticks since the component's quantised value last changed, one per bit
//! ```
//!
//! Cost: one entity per call; about 30 B. Meant to be called a few times a second and client.

use crate::{bytes::put_varint, entities::Entities, schema::ENTITY_BYTES_MAX, view::View};

/// First byte of a truth message.
pub const TRUTH_KIND: u8 = 3;

/// Longest truth: header, slot, generation, mask, 16 ages, exact pieces. [bytes]
pub const TRUTH_BYTES_MAX: usize = 7 + 5 + 1 + 2 + 16 * 5 + ENTITY_BYTES_MAX;

/// Every so many truths one is about an entity that left.
const TRUTHS_PER_ABSENCE: u32 = 4;

/// An absence is told for so long after it began; then the client has forgotten the id anyway. [ticks]
const ABSENCE_TICKS_MAX: u32 = 64;

impl View {
    /// Writes a truth about one entity, each in turn. Returns false when there is nothing to tell.
    pub fn write_truth(&mut self, entities: &Entities, out: &mut Vec<u8>) -> bool {
        self.bury_dead(entities);
        self.truth_cursor = self.truth_cursor.wrapping_add(1);
        let absence_first = self.truth_cursor.is_multiple_of(TRUTHS_PER_ABSENCE);
        let written = absence_first && self.write_absence(entities, out)
            || self.write_presence(entities, out)
            || self.write_absence(entities, out);
        self.counts.truths += u64::from(written);
        written
    }

    fn write_absence(&mut self, entities: &Entities, out: &mut Vec<u8>) -> bool {
        while let Some((id, left_at)) = self.recently_left.pop_front() {
            let back = self.find(id.slot).is_some_and(|index| {
                let entry = &self.entries[index];
                entry.is_relevant() && entry.generation == id.generation
            });
            if !back && entities.tick.wrapping_sub(left_at) <= ABSENCE_TICKS_MAX {
                self.put_truth_header(entities, 0, id.slot, id.generation, out);
                return true;
            }
        }
        false
    }

    fn write_presence(&mut self, entities: &Entities, out: &mut Vec<u8>) -> bool {
        let count = self.entries.len();
        let begin = self.truth_cursor as usize;
        let relevant = (0..count).map(|step| (begin + step) % count).find(|index| self.entries[*index].is_relevant());
        let Some(index) = relevant else { return false };
        // The client may now have been told of it: if it leaves before its spawn went out, a despawn will say so.
        self.entries[index].held = true;
        let (slot, generation) = (self.entries[index].slot, self.entries[index].generation);
        self.put_truth_header(entities, 1, slot, generation, out);
        let mask = entities.slots[slot as usize].present;
        out.extend_from_slice(&mask.to_le_bytes()[..entities.schema.mask_bytes()]);
        for (_, column) in entities.columns.iter().enumerate().filter(|(kind, _)| mask >> kind & 1 == 1) {
            put_varint_at_end(out, entities.tick.wrapping_sub(column.changed_at(slot as usize)));
            out.extend_from_slice(column.exact(slot as usize));
        }
        true
    }

    fn put_truth_header(&self, entities: &Entities, present: u8, slot: u32, generation: u8, out: &mut Vec<u8>) {
        out.extend_from_slice(&[TRUTH_KIND, self.epoch]);
        out.extend_from_slice(&entities.tick.to_le_bytes());
        out.push(present);
        put_varint_at_end(out, slot);
        out.push(generation);
    }
}

fn put_varint_at_end(out: &mut Vec<u8>, value: u32) {
    let mut bytes = [0; crate::bytes::VARINT_BYTES_MAX];
    let len = put_varint(&mut bytes, 0, value);
    out.extend_from_slice(&bytes[..len]);
}
