//! Message: a snapshot while it is written, and what it counts of itself.
//!
//! Where it is to go on is a value of its own ([`Pen`]): the innermost loop keeps one in registers, which it could not
//! do with fields of the message, since any byte that is written might be one of those.

use crate::{
    source::{bulk::RingBulk, entities::Entities, fault::Fault, rings::RINGS_MAX},
    view::{
        entry::{END, Entry},
        scene::Scene,
        traffic::{Cause, Counts, Overhead, Traffic},
    },
    wire::{
        bytes::{VARINT_BYTES_MAX, put_varint},
        schema::{ComponentIndex, Schema},
    },
};

/// Varint, generation and mask: the longest, and the usual ones.
pub(crate) const RECORD_HEADER_BYTES_MAX: usize = VARINT_BYTES_MAX + 3;
pub(crate) const RECORD_HEADER_BYTES_LIKELY: usize = 4;

/// Plain updates of one mask in one ring.
#[derive(Copy, Clone, Default)]
struct Tally {
    count: u32,
    bytes: u32,
    mask: u16,
}

/// Where a message goes on, and what the records before make of it.
#[derive(Copy, Clone)]
pub(crate) struct Pen {
    pub at: usize,
    pub slot_before: u32,
    mask_before: u16,
    /// Slots between which plain updates were copied, and how many since this was last taken.
    pub first: u32,
    pub last: u32,
    pub copied: u32,
}

pub(crate) struct Message<'a> {
    out: &'a mut [u8],
    /// Up to where it may be written; at most all of `out`.
    end: usize,
    traffic: &'a mut Traffic,
    pub pen: Pen,
    /// What has been copied from each ring and is not in `traffic` yet.
    tallies: [Tally; RINGS_MAX],
    /// Bytes of encoded values, and the kinds that were told for each cause.
    values_bytes: u32,
    told: [u16; Cause::ALL.len()],
    /// Something came or went.
    pub existence: bool,
    /// Something was labelled with the message's sequence.
    pub labelled: bool,
}

impl<'a> Message<'a> {
    /// Behind a header of so many bytes.
    pub fn new(out: &'a mut [u8], header_bytes: usize, traffic: &'a mut Traffic) -> Self {
        Self {
            end: out.len(),
            out,
            traffic,
            pen: Pen { at: header_bytes, slot_before: 0, mask_before: 1, first: END, last: 0, copied: 0 },
            tallies: [Tally::default(); RINGS_MAX],
            values_bytes: 0,
            told: [0; Cause::ALL.len()],
            existence: false,
            labelled: false,
        }
    }

    pub fn len(&self) -> usize {
        self.pen.at
    }

    /// Bytes that are left.
    pub fn room(&self) -> usize {
        self.end - self.pen.at
    }

    /// Leaves so many bytes of the whole unwritten until this is called again.
    pub fn keep_back(&mut self, bytes: usize) {
        self.end = self.out.len().saturating_sub(bytes).max(self.pen.at);
    }

    /// Takes over what was counted for one mask in one ring.
    #[inline(never)]
    fn count_tally(&mut self, schema: &Schema, tally: Tally, ring: &RingBulk) {
        let usual = if ring.waits { Cause::Deferred } else { Cause::Change };
        let mut left = tally.bytes;
        let mut rest = tally.mask;
        while rest != 0 {
            let kind = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            // Values of a component are mostly of one length. The last kind has what is left, so that the sum is right.
            let most = schema.kinds()[kind].bytes_max as u32 * tally.count;
            let bytes = if rest == 0 { left } else { left.min(most) };
            left -= bytes;
            let cause = if ring.far >> kind & 1 == 1 { Cause::Keepalive } else { usual };
            self.add(kind, cause, tally.count, bytes);
        }
    }

    fn add(&mut self, kind: usize, cause: Cause, updates: u32, bytes: u32) {
        self.traffic.add(ComponentIndex(kind as u8), cause, updates.into(), bytes.into());
        self.told[cause as usize] |= 1 << kind;
        self.values_bytes += bytes;
    }

    /// Counts all that is in the message.
    pub fn count(&mut self, scene: &Scene, records: u64, despawns: u64) {
        for (index, ring) in scene.bulk.rings().iter().enumerate() {
            let tally = std::mem::take(&mut self.tallies[index]);
            if tally.count > 0 {
                self.count_tally(&scene.entities.schema, tally, ring);
            }
        }
        for (cause, told) in Cause::ALL.iter().zip(self.told) {
            self.traffic.add_packet(told, *cause);
        }
        let bytes = (self.pen.at - self.values_bytes as usize) as u64;
        self.traffic.add_overhead(Overhead::Snapshot, Counts { packets: 1, bytes, updates: records });
        if despawns > 0 {
            self.traffic.add_overhead(Overhead::Despawn, Counts { packets: 1, bytes: 0, updates: despawns });
        }
    }

    /// Copies a hot slot's record. Returns whether there was room. `pen` is the message's own, or away from it.
    #[inline(always)]
    pub fn put_record(
        &mut self,
        pen: &mut Pen,
        entities: &Entities,
        slot: u32,
        ring: &RingBulk,
        ring_index: usize,
    ) -> bool {
        let record = ring.records[slot as usize];
        let len = usize::from(record.len);
        let out = &mut self.out[..self.end];
        // Room for the longest header and for whole words of the encoded values.
        if pen.at + RECORD_HEADER_BYTES_MAX + len.next_multiple_of(8) > out.len() {
            return false;
        }
        let delta = slot - pen.slot_before;
        let mut at = pen.at;
        if record.mask == pen.mask_before {
            at = put_varint(out, at, delta << 1);
        } else {
            pen.mask_before = record.mask;
            at = put_varint(out, at, delta << 2 | 0b01);
            at = put_mask(entities, record.mask, out, at);
        }
        let begin = record.end as usize - len;
        copy_words(&ring.stream[begin..], &mut out[at..], len);
        let tally = &mut self.tallies[ring_index];
        if tally.mask != record.mask {
            let before = std::mem::replace(tally, Tally { mask: record.mask, ..Tally::default() });
            self.count_tally(&entities.schema, before, ring);
        }
        let tally = &mut self.tallies[ring_index];
        tally.count += 1;
        tally.bytes += u32::from(record.len);
        pen.at = at + len;
        pen.first = pen.first.min(slot);
        (pen.slot_before, pen.last) = (slot, slot);
        pen.copied += 1;
        true
    }

    /// Copies what of a run of equal masks, whose record at `at` has just been put, is still to come in `hot` and finds
    /// room. Returns the place after it.
    pub fn put_run(&mut self, hot: &[u32], at: usize, ring: &RingBulk) -> usize {
        let end_of = |index: usize| ring.records[hot[index] as usize].end as usize;
        let begin = end_of(at);
        let room = self.room();
        let last = hot.len() - 1;
        let last = if end_of(last) - begin <= room {
            last
        } else {
            let fits = |slot: &u32| ring.records[*slot as usize].end as usize - begin <= room;
            at + hot[at + 1..].partition_point(fits)
        };
        let bytes = &ring.stream[begin..end_of(last)];
        self.out[self.pen.at..self.pen.at + bytes.len()].copy_from_slice(bytes);
        self.pen.at += bytes.len();
        (self.pen.slot_before, self.pen.last) = (hot[last], hot[last]);
        self.pen.copied += (last - at) as u32;
        let values_end = |index: usize| ring.records[hot[index] as usize].values_end;
        self.tallies[0].count += (last - at) as u32;
        self.tallies[0].bytes += values_end(last) - values_end(at);
        last + 1
    }

    /// The slot and the sort of record, which is in the lowest `sort_bits`.
    pub fn put_head(&mut self, slot: u32, sort_bits: u32, sort: u32) {
        self.pen.at = put_varint(self.out, self.pen.at, (slot - self.pen.slot_before) << sort_bits | sort);
        self.pen.slot_before = slot;
    }

    pub fn put_update(&mut self, entities: &Entities, entry: &Entry) {
        let mask = entry.owed;
        if mask == self.pen.mask_before {
            self.put_head(entry.slot, 1, 0);
        } else {
            self.put_head(entry.slot, 2, 0b01);
            self.pen.at = put_mask(entities, mask, self.out, self.pen.at);
            self.pen.mask_before = mask;
        }
        self.put_values(entities, mask, entry.slot, entry.cause);
    }

    pub fn put_spawn(&mut self, entities: &Entities, entry: &Entry) {
        self.put_head(entry.slot, 3, 0b011);
        self.out[self.pen.at] = entry.generation;
        let mask = entities.slots[entry.slot as usize].present;
        self.pen.at = put_mask(entities, mask, self.out, self.pen.at + 1);
        self.put_values(entities, mask, entry.slot, Cause::Spawn);
    }

    fn put_values(&mut self, entities: &Entities, mask: u16, slot: u32, cause: Cause) {
        for (kind, column) in entities.columns.iter().enumerate().filter(|(kind, _)| mask >> kind & 1 == 1) {
            let begin = self.pen.at;
            self.pen.at = column.copy_encoded(slot as usize, self.out, begin);
            let is_new = cause != Cause::Spawn && column.changed_at(slot as usize) == entities.tick;
            self.add(kind, if is_new { Cause::Change } else { cause }, 1, (self.pen.at - begin) as u32);
            if entities.fault == Fault::CorruptEncoding && self.pen.at > begin {
                self.out[begin] ^= 1;
            }
        }
    }
}

/// Copies `len` bytes by whole words of 8; both sides have room for that.
#[inline]
fn copy_words(from: &[u8], to: &mut [u8], len: usize) {
    let words = len.div_ceil(8);
    let (from, to) = (from[..words * 8].as_chunks::<8>().0, to[..words * 8].as_chunks_mut::<8>().0);
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

#[inline]
fn put_mask(entities: &Entities, mask: u16, out: &mut [u8], at: usize) -> usize {
    out[at] = mask as u8;
    if entities.schema.mask_bytes() == 1 {
        return at + 1;
    }
    out[at + 1] = (mask >> 8) as u8;
    at + 2
}
