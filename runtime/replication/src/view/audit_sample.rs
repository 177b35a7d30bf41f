//! Audit sample: now and then the server tells a client, exactly, what one entity should look like.
//!
//! Snapshots are rounded, delayed and assembled from encoded values; an audit sample is written from the exact values,
//! by another path, and lets the client find that a copy is wrong (`replicas::held_samples`). It is about one entity
//! that the client should hold, or about one that it should have dropped. Components that may be late because of the
//! entity's distance are not told, only that they are there. What may be late because the client's line or its budget is
//! narrow is told, with the number of ticks that were too short for all that was owed: the client waits as much longer.
//!
//! ```text
//! byte   0      1       2..6          6        then
//!        +------+-------+-------------+--------+-------------+------------+-------+--------------------+
//!        | 3    | epoch | tick  (LE)  | 1      | varint slot | generation | mask  | age  exact value.. |  varint short
//!        +------+-------+-------------+--------+-------------+------------+-------+--------------------+
//!        | 3    | epoch | tick  (LE)  | 2      | varint slot | generation | mask  | told | age  exact value.. |  varint short
//!        +------+-------+-------------+--------+-------------+------------+-------+------+--------------------+
//!        | 3    | epoch | tick  (LE)  | 0      | varint slot | generation |  varint short       tombstone
//!        +------+-------+-------------+--------+-------------+------------+
//! mask: all components, as in snapshots; told: those of them that follow, if it is not all; age: varint, ticks
//! since the component's quantised value last changed, one per component that follows; short: ticks of this stay in which
//! the budget did not reach all that was owed (modulo 2^32)
//! ```
//!
//! Cost: one entity per call; about 30 B. Meant to be called a few times a second and client.

use std::collections::VecDeque;

use crate::{
    source::entities::{Entities, Relevance},
    view::{client_view::View, scene::Scene},
    wire::{
        bytes::{VARINT_BYTES_MAX, put_varint},
        ids::NetId,
        message_kinds::AUDIT_SAMPLE_KIND,
        schema::ENTITY_BYTES_MAX,
    },
};

/// Longest audit sample: header, slot, generation, two masks, 16 ages, exact values, short ticks. (bytes)
pub const AUDIT_SAMPLE_BYTES_MAX: usize = 7 + 5 + 1 + 2 + 2 + 16 * 5 + ENTITY_BYTES_MAX + 5;

/// Entities that left a view lately, kept for tombstone samples.
const RECENTLY_LEFT_MAX: usize = 8;

/// Every so many audit samples one is about an entity that left.
const SAMPLES_PER_TOMBSTONE: u32 = 4;

/// A tombstone sample is written for so long after its entity left; then the client has forgotten the id anyway.
/// (ticks)
const TOMBSTONE_TICKS_MAX: u32 = 64;

/// Share of the enter radius inside which nothing enters or leaves by a step or two.
const SURELY_NEAR: f32 = 0.8;

/// In so many looks in a row an entity must have been overlooked before an audit sample says that it is there. One that
/// has just come is not yet relevant, which is no fault; to be caught so this often it would have to come and go in
/// step with the looks.
const LOOKS_OVERLOOKED: u8 = 4;

/// Entities that one audit sample looks at for one that interest has overlooked. Each audit sample goes on where the
/// one before ended, so that twice a second a crowd of 12,000 is looked through in half a minute, at a microsecond an
/// audit sample.
const SCOUTED_MAX: usize = 200;

/// Brings the exact values of an entity up to date, from where the game has them, and says which components it has.
pub(crate) type ExactSource<'a> = dyn FnMut(NetId, &mut Entities) -> u16 + 'a;

/// What a view remembers for its next audit samples.
#[derive(Default)]
pub(crate) struct Audit {
    /// Counts the samples, and says at which entity the next one begins to look.
    cursor: u32,
    /// With the tick in which each left. Oldest first.
    recently_left: VecDeque<(NetId, u32)>,
    /// An entity that interest seems to overlook, and in how many looks it did.
    scouted: Option<(NetId, u8)>,
}

impl Audit {
    /// An entity left the view, and the client may be told later that it is gone.
    pub fn note_left(&mut self, id: NetId, tick: u32) {
        if self.recently_left.len() == RECENTLY_LEFT_MAX {
            self.recently_left.pop_front();
        }
        self.recently_left.push_back((id, tick));
    }

    pub fn heap_bytes(&self) -> usize {
        self.recently_left.capacity() * size_of::<(NetId, u32)>()
    }
}

impl View {
    /// Writes an audit sample about one entity, each in turn. Returns false when there is nothing to tell.
    pub(crate) fn write_audit_sample(
        &mut self,
        scene: &mut Scene,
        source: &mut ExactSource<'_>,
        out: &mut Vec<u8>,
    ) -> bool {
        self.attend(&scene.entities);
        self.audit.cursor = self.audit.cursor.wrapping_add(1);
        let tombstone_first = self.audit.cursor.is_multiple_of(SAMPLES_PER_TOMBSTONE);
        let written = tombstone_first && self.write_tombstone_sample(&scene.entities, out)
            || self.write_presence(scene, source, out)
            || self.write_tombstone_sample(&scene.entities, out);
        if written {
            put_varint_at_end(out, self.short_ticks);
        }
        self.counts.audit_samples += u64::from(written);
        written
    }

    fn write_tombstone_sample(&mut self, entities: &Entities, out: &mut Vec<u8>) -> bool {
        while let Some((id, left_at)) = self.audit.recently_left.pop_front() {
            let back = self.list.find(id.slot).is_some_and(|index| {
                let entry = &self.list.entries[index];
                entry.is_relevant() && entry.generation == id.generation
            });
            // Of what the client may not know, not even that it is gone.
            let is_secret = entities.get(id).is_some_and(|row| !self.may_hear(id, row));
            if !back && !is_secret && entities.tick.wrapping_sub(left_at) <= TOMBSTONE_TICKS_MAX {
                self.put_sample_header(entities, 0, id.slot, id.generation, out);
                return true;
            }
        }
        false
    }

    fn write_presence(&mut self, scene: &mut Scene, source: &mut ExactSource<'_>, out: &mut Vec<u8>) -> bool {
        let Scene { entities, rings, settings, .. } = scene;
        let scouted = self.take_scouted(entities, settings.enter_radius_m);
        let Some(NetId { slot, generation }) = scouted.or_else(|| self.next_relevant()) else { return false };
        let mut told = rings.in_audit_samples(rings.count() - 1);
        if let Some(index) = self.list.find(slot).filter(|index| self.list.entries[*index].is_relevant()) {
            told = rings.in_audit_samples(self.list.entries[index].ring.into());
            // The client may now have been told of it: if it leaves before its spawn went out, a despawn will say so.
            self.list.entries[index].held = true;
        }
        let mask = source(NetId { slot, generation }, entities);
        told &= mask;
        self.put_sample_header(entities, if told == mask { 1 } else { 2 }, slot, generation, out);
        out.extend_from_slice(&mask.to_le_bytes()[..entities.schema.mask_bytes()]);
        if told != mask {
            out.extend_from_slice(&told.to_le_bytes()[..entities.schema.mask_bytes()]);
        }
        for (_, column) in entities.columns.iter().enumerate().filter(|(kind, _)| told >> kind & 1 == 1) {
            put_varint_at_end(out, entities.tick.wrapping_sub(column.changed_at(slot as usize)));
            out.extend_from_slice(column.exact(slot as usize));
        }
        true
    }

    /// Relevant entities, each in turn.
    fn next_relevant(&self) -> Option<NetId> {
        let count = self.list.entries.len();
        let begin = self.audit.cursor as usize;
        let relevant =
            (0..count).map(|step| (begin + step) % count).find(|index| self.list.entries[*index].is_relevant())?;
        Some(self.list.entries[relevant].id())
    }

    /// An entity that is near, found by looking at all of them and not at what interest made of it, and that was not
    /// relevant in several looks in a row: each look comes later than interest period, so interest has overlooked it.
    fn take_scouted(&mut self, entities: &Entities, enter_radius_m: f32) -> Option<NetId> {
        let overlooked = |view: &Self, id: NetId| {
            let Some(centre) = view.look_from(entities) else { return false };
            let Some(row) = entities.get(id).filter(|row| view.may_hear(id, row)) else { return false };
            let Relevance::At(place) = row.relevance else { return false };
            let distance_m2 = (place[0] - centre[0]).powi(2) + (place[1] - centre[1]).powi(2);
            let is_relevant = || view.list.find(id.slot).is_some_and(|index| view.list.entries[index].is_relevant());
            distance_m2 < (enter_radius_m * SURELY_NEAR).powi(2) && !is_relevant()
        };
        if let Some((id, looks)) = self.audit.scouted.take() {
            if !overlooked(self, id) {
                return None;
            }
            if looks == LOOKS_OVERLOOKED {
                return Some(id);
            }
            self.audit.scouted = Some((id, looks + 1));
            return None;
        }
        let count = entities.slots.len();
        let begin = self.audit.cursor as usize * SCOUTED_MAX;
        self.audit.scouted = (0..count.min(SCOUTED_MAX)).find_map(|step| {
            let slot = (begin + step) % count;
            let id = NetId { slot: slot as u32, generation: entities.slots[slot].generation };
            overlooked(self, id).then_some((id, 1))
        });
        None
    }

    fn put_sample_header(&self, entities: &Entities, present: u8, slot: u32, generation: u8, out: &mut Vec<u8>) {
        out.extend_from_slice(&[AUDIT_SAMPLE_KIND, self.epoch]);
        out.extend_from_slice(&entities.tick.to_le_bytes());
        out.push(present);
        put_varint_at_end(out, slot);
        out.push(generation);
    }
}

fn put_varint_at_end(out: &mut Vec<u8>, value: u32) {
    let mut bytes = [0; VARINT_BYTES_MAX];
    let len = put_varint(&mut bytes, 0, value);
    out.extend_from_slice(&bytes[..len]);
}
