//! Snapshot: the message that brings a client's copies up to date.
//!
//! ```text
//! byte   0      1       2..6          6..8            8..
//!        +------+-------+-------------+---------------+--------+--------+ ...
//!        | 2    | epoch | tick  (LE)  | input   (LE)  | record | record |
//!        +------+-------+-------------+---------------+--------+--------+ ...
//! record, slots ascending; d = slot - slot of the record before (the first: - 0); pieces in mask order
//!   update, mask as before   varint d << 1             piece..           (before the first: mask 1)
//!   update                   varint d << 2 | 01        mask  piece..     (mask: 1 byte, 2 above 8 kinds)
//!   spawn, all there is      varint d << 3 | 011       generation  mask  piece..
//!   despawn, slot is empty   varint d << 3 | 111
//! ```
//!
//! Every message has the full header and stands alone: any may be lost, doubled or late. A moving entity with
//! a 7-byte pose is 8 bytes, 9 when its slot is 64 or more after the one before.
//!
//! Writing is two passes. *Gather*, once per client and tick, adds what changed to what is owed and sums up
//! how long it may get. If all fits the budget nothing is sorted: *write* copies pieces in slot order until
//! the caller's buffer is full, and goes on there at the next call. Above the budget the most urgent go: each
//! entry's priority grows every tick it waits, faster when near, and starts again at 0 when it is written, so
//! nothing waits for ever. When few entities changed, gather looks those up instead of walking the view.
//!
//! Cost: about 15 ns per update, all passes included. Never allocates in a steady state.

use crate::{
    bytes::{VARINT_BYTES_MAX, put_varint},
    entities::{Entities, Fault, Standing},
    view::{Entry, Flight, State, View},
};

/// First byte of a snapshot message.
pub const SNAPSHOT_KIND: u8 = 2;

/// Kind, epoch, tick, input number.
pub const SNAPSHOT_HEADER_BYTES: usize = 8;

/// Entities that change are looked up one by one if the view has this many entries for each.
const ENTRIES_PER_LOOKUP: usize = 16;

/// Priority that a despawn, or a spawn into a slot whose last owner the client still shows, has from the start.
const PRIORITY_GHOST: f32 = 1e6;

impl View {
    /// Writes as much of this tick's snapshot as `out` holds; 0 when there is nothing (more) to say.
    pub fn write_snapshot(&mut self, entities: &Entities, radius_m: f32, input: u16, out: &mut [u8]) -> usize {
        self.drop_unsent();
        if self.gathered_tick != Some(entities.tick) {
            self.gather(entities, radius_m);
        }
        if out.len() < SNAPSHOT_HEADER_BYTES {
            return 0;
        }
        let mut message = Message { out, at: SNAPSHOT_HEADER_BYTES, slot_before: 0, mask_before: 1, existence: false };
        self.write_records(entities, &mut message);
        let Message { at: len, existence, .. } = message;
        if len == SNAPSHOT_HEADER_BYTES && self.echoed_input == Some(input) {
            return 0;
        }
        out[0] = SNAPSHOT_KIND;
        out[1] = self.epoch;
        out[2..6].copy_from_slice(&entities.tick.to_le_bytes());
        out[6..8].copy_from_slice(&input.to_le_bytes());
        self.echoed_input = Some(input);
        self.unsent = Some(Flight { packet: 0, sequence: self.sequence, existence });
        self.sequence = self.sequence.wrapping_add(1);
        self.counts.snapshots += 1;
        self.counts.bytes += len as u64;
        len
    }

    /// Finds what there is to write this tick: fills `pending`, in the order of writing.
    fn gather(&mut self, entities: &Entities, radius_m: f32) {
        self.bury_dead(entities);
        self.drop_gone();
        let unfinished = self.cursor < self.pending.len();
        let every_tick = self.gathered_tick.is_some_and(|before| before.wrapping_add(1) == entities.tick);
        let few = entities.touched.len() * ENTRIES_PER_LOOKUP <= self.entries.len();
        self.pending.clear();
        self.cursor = 0;
        match self.gathered_tick {
            Some(_) if every_tick && few && !unfinished && !self.incomplete => self.gather_touched(entities),
            Some(_) if every_tick => self.gather_each(|slot| entities.dirty[slot]),
            Some(before) => self.gather_each(|slot| entities.changed_after(slot, before)),
            None => self.gather_each(|_| 0),
        }
        self.gathered_tick = Some(entities.tick);
        self.incomplete = false;
        if self.is_over_budget(entities) {
            self.choose(entities, radius_m);
        }
        if unfinished {
            let (slot, entries) = (self.resume_slot, &self.entries);
            let first = self.pending.partition_point(|index| entries[*index as usize].slot < slot);
            self.pending.rotate_left(first);
        }
    }

    #[inline]
    fn gather_each(&mut self, changed: impl Fn(usize) -> u32) {
        self.pending.resize(self.entries.len(), 0);
        let mut count = 0;
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if entry.state != State::Leaving {
                entry.owe(changed(entry.slot as usize));
            }
            self.pending[count] = index as u32;
            count += usize::from(entry.is_owed_anything());
        }
        self.pending.truncate(count);
    }

    /// As `gather_each`, when nothing was left over: `touched` is in slot order, and so are the entries.
    fn gather_touched(&mut self, entities: &Entities) {
        let mut from = 0;
        for slot in &entities.touched {
            // Where everything is relevant, an entry's index is its slot.
            let guess = *slot as usize;
            let index = match self.entries.get(guess) {
                Some(entry) if entry.slot == *slot => guess,
                _ => match self.entries[from..].binary_search_by_key(slot, |entry| entry.slot) {
                    Ok(found) => from + found,
                    Err(next) => {
                        from += next;
                        continue;
                    }
                },
            };
            from = index + 1;
            let entry = &mut self.entries[index];
            if entry.state != State::Leaving {
                entry.owe(entities.dirty[*slot as usize]);
                self.pending.push(index as u32);
            }
        }
    }

    fn is_over_budget(&self, entities: &Entities) -> bool {
        let budget = self.budget_bytes_per_tick as usize;
        let spawn_bytes_max =
            RECORD_HEADER_BYTES_LIKELY + entities.schema.pieces_bytes_max(entities.schema.every_kind());
        if self.pending.len() * spawn_bytes_max <= budget {
            return false;
        }
        let bytes = self.pending.iter().map(|index| record_bytes_likely(entities, &self.entries[*index as usize]));
        bytes.sum::<usize>() > budget
    }

    /// More is owed than the budget allows: keeps the most urgent in `pending`, in slot order.
    fn choose(&mut self, entities: &Entities, radius_m: f32) {
        let centre = self.look_from(entities);
        for index in &self.pending {
            let index = *index as usize;
            self.asides[index].priority += urgency(entities, &self.entries[index], centre, radius_m);
        }
        let asides = &self.asides;
        let priority = |index: &u32| asides[*index as usize].priority;
        self.pending.sort_unstable_by(|one, other| priority(other).total_cmp(&priority(one)).then(one.cmp(other)));
        let mut left = self.budget_bytes_per_tick as usize;
        let fitting = self.pending.iter().take_while(|index| {
            let rest = left.checked_sub(record_bytes_likely(entities, &self.entries[**index as usize]));
            left = rest.unwrap_or(0);
            rest.is_some()
        });
        // The most urgent goes whatever it takes: a budget below one entity must not silence it for ever.
        let chosen_count = fitting.count().max(1);
        self.pending.truncate(chosen_count);
        self.has_priorities = true;
        self.pending.sort_unstable();
        self.incomplete = true;
    }

    /// Writes records from the cursor on, until the message is full or nothing is left.
    fn write_records(&mut self, entities: &Entities, message: &mut Message<'_>) {
        let first = self.cursor;
        loop {
            self.put_plain_updates(entities, message);
            let Some(index) = self.pending.get(self.cursor) else {
                break;
            };
            let index = *index as usize;
            let entry = &self.entries[index];
            let room = message.out.len() - message.at;
            if entry.slot < message.slot_before || room < record_bytes(entities, entry) {
                break;
            }
            self.put_any(index, entities, message);
            self.cursor += 1;
        }
        let written = &self.pending[first..self.cursor];
        self.counts.records += written.len() as u64;
        if self.has_priorities {
            written.iter().for_each(|index| self.asides[*index as usize].priority = 0.0);
        }
        match self.pending.get(self.cursor) {
            Some(index) => self.resume_slot = self.entries[*index as usize].slot,
            None => self.has_priorities &= self.incomplete,
        }
    }

    /// The innermost loop: updates of known entities, as long as there is certainly room. Stops at anything else.
    fn put_plain_updates(&mut self, entities: &Entities, message: &mut Message<'_>) {
        let Some(at_max) = message.out.len().checked_sub(record_bytes_max(entities)) else {
            return;
        };
        if entities.fault != Fault::None {
            return;
        }
        let (stride, sequence) = (self.stride, self.sequence);
        let Message { at, slot_before, mask_before, .. } = *message;
        let (mut at, mut slot_before, mut mask_before) = (at, slot_before, mask_before);
        let mut written = 0;
        for index in &self.pending[self.cursor..] {
            let index = *index as usize;
            let entry = &mut self.entries[index];
            if !entry.is_plain() || entry.slot < slot_before || at > at_max {
                break;
            }
            let delta = entry.slot - slot_before;
            slot_before = entry.slot;
            if entry.owed == mask_before {
                at = put_varint(message.out, at, delta << 1);
            } else {
                mask_before = entry.owed;
                at = put_varint(message.out, at, delta << 2 | 0b01);
                at = put_mask(entities, mask_before, message.out, at);
            }
            let mut rest = std::mem::take(&mut entry.owed);
            while rest != 0 {
                let kind = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                at = entities.columns[kind].copy_piece(slot_before as usize, message.out, at);
                self.labels[index * stride + kind] = sequence;
            }
            written += 1;
        }
        self.cursor += written;
        (message.at, message.slot_before, message.mask_before) = (at, slot_before, mask_before);
    }

    /// Writes one record of any sort. There is room.
    #[inline(never)]
    fn put_any(&mut self, index: usize, entities: &Entities, message: &mut Message<'_>) {
        let entry = &mut self.entries[index];
        let labels = &mut self.labels[index * self.stride..(index + 1) * self.stride];
        let kinds_count = labels.len() - 1;
        if entry.is_plain() {
            if entities.fault != Fault::SkipUpdates || entry.slot % 4 != 1 {
                message.put_update(entities, entry);
                let sent = labels[..kinds_count].iter_mut().enumerate();
                sent.filter(|(kind, _)| entry.owed >> kind & 1 == 1).for_each(|(_, label)| *label = self.sequence);
            }
        } else if entry.state == State::Leaving {
            if entities.fault != Fault::LoseDespawns {
                message.put_head(entry.slot, 3, 0b111);
            }
            labels[kinds_count] = self.sequence;
            message.existence = true;
            self.counts.despawns += 1;
        } else {
            message.put_spawn(entities, entry);
            labels.fill(self.sequence);
            if entry.state != State::Known {
                entry.state = State::Sent;
                self.asides[index].spawn_packets |= 1 << (self.sequence % 64);
            }
            entry.held = true;
            message.existence = true;
            self.counts.spawns += 1;
        }
        entry.owed = 0;
        entry.existence = false;
    }
}

/// A message while it is written.
struct Message<'a> {
    out: &'a mut [u8],
    at: usize,
    slot_before: u32,
    mask_before: u16,
    /// Something came or went.
    existence: bool,
}

impl Message<'_> {
    /// The slot and the sort of record, which is in the lowest `sort_bits`.
    fn put_head(&mut self, slot: u32, sort_bits: u32, sort: u32) {
        self.at = put_varint(self.out, self.at, (slot - self.slot_before) << sort_bits | sort);
        self.slot_before = slot;
    }

    fn put_update(&mut self, entities: &Entities, entry: &Entry) {
        let mask = entry.owed;
        if mask == self.mask_before {
            self.put_head(entry.slot, 1, 0);
        } else {
            self.put_head(entry.slot, 2, 0b01);
            self.at = put_mask(entities, mask, self.out, self.at);
            self.mask_before = mask;
        }
        self.put_pieces(entities, mask, entry.slot);
    }

    fn put_spawn(&mut self, entities: &Entities, entry: &Entry) {
        self.put_head(entry.slot, 3, 0b011);
        self.out[self.at] = entry.generation;
        let mask = entities.slots[entry.slot as usize].present;
        self.at = put_mask(entities, mask, self.out, self.at + 1);
        self.put_pieces(entities, mask, entry.slot);
    }

    fn put_pieces(&mut self, entities: &Entities, mask: u16, slot: u32) {
        for (_, column) in entities.columns.iter().enumerate().filter(|(kind, _)| mask >> kind & 1 == 1) {
            let begin = self.at;
            self.at = column.copy_piece(slot as usize, self.out, begin);
            if entities.fault == Fault::CorruptEncoding && self.at > begin {
                self.out[begin] ^= 1;
            }
        }
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

/// Varint, generation and mask: the longest, and the usual ones.
const RECORD_HEADER_BYTES_MAX: usize = VARINT_BYTES_MAX + 3;
const RECORD_HEADER_BYTES_LIKELY: usize = 4;

/// Most bytes that any record can take.
fn record_bytes_max(entities: &Entities) -> usize {
    RECORD_HEADER_BYTES_MAX + entities.schema.pieces_bytes_max(entities.schema.every_kind())
}

/// Components that the entry's record carries.
fn record_mask(entities: &Entities, entry: &Entry) -> u16 {
    match entry.state {
        State::Leaving => 0,
        _ if entry.is_plain() => entry.owed,
        _ => entities.slots[entry.slot as usize].present,
    }
}

/// Bytes of a record, with the longest header.
fn record_bytes(entities: &Entities, entry: &Entry) -> usize {
    let mask = record_mask(entities, entry);
    let columns = entities.columns.iter().enumerate().filter(|(kind, _)| mask >> kind & 1 == 1);
    RECORD_HEADER_BYTES_MAX + columns.map(|(_, column)| column.len(entry.slot as usize)).sum::<usize>()
}

/// About what a record will take, for the budget.
fn record_bytes_likely(entities: &Entities, entry: &Entry) -> usize {
    let header = if entry.is_plain() { 1 } else { RECORD_HEADER_BYTES_LIKELY };
    header + entities.schema.pieces_bytes_max(record_mask(entities, entry))
}

/// How much an entry's priority grows in a tick in which the budget does not reach everybody. Always > 0.
fn urgency(entities: &Entities, entry: &Entry, centre: Option<[f32; 2]>, radius_m: f32) -> f32 {
    if entry.state == State::Leaving || (entry.state == State::New && entry.held) {
        return PRIORITY_GHOST;
    }
    let news = if entry.state == State::New { 4.0 } else { 1.0 };
    let (Standing::At(place), Some(centre)) = (entities.slots[entry.slot as usize].standing, centre) else {
        return news;
    };
    let distance2 = (place[0] - centre[0]).powi(2) + (place[1] - centre[1]).powi(2);
    // 1 here, 1/3 at half the radius, 1/9 at the edge; never 0.
    news / (1.0 + 8.0 * (distance2 / radius_m.powi(2)).min(8.0))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::{
        InterestSettings, NetId, Replicas, ViewId, WorldReplication,
        schema::KindId,
        testing::{Pose, pose, schema},
    };

    fn world(entities: usize, settings: InterestSettings) -> (WorldReplication, Vec<NetId>, ViewId) {
        let mut world = WorldReplication::new(schema(), settings);
        world.begin_tick(1);
        let ids: Vec<_> = (0..entities).map(|_| world.spawn().unwrap()).collect();
        for (index, id) in ids.iter().enumerate() {
            world.set_place(*id, [index as f32 * 0.2, 0.0]);
            world.update(KindId(0), *id, &pose(index as f32 * 0.2));
        }
        let view = world.add_client(0);
        world.set_view(view, [0.0; 2]);
        (world, ids, view)
    }

    /// Everything moves for `ticks`; the caller lets out `packets_max` packets of `packet_bytes` per tick. Returns how
    /// often each entity was written.
    fn run(
        world: &mut WorldReplication,
        ids: &[NetId],
        view: ViewId,
        ticks: u32,
        packets_max: usize,
        packet_bytes: usize,
    ) -> (BTreeMap<NetId, u32>, usize) {
        let mut replicas = Replicas::new(schema());
        let mut written = BTreeMap::new();
        let mut bytes = 0;
        for tick in 2..2 + ticks {
            world.begin_tick(tick);
            for (index, id) in ids.iter().enumerate() {
                world.update(KindId(0), *id, &pose(index as f32 * 0.2 + tick as f32 * 0.05));
            }
            world.refresh_interest();
            let mut out = vec![0; packet_bytes];
            for packet in 0..packets_max {
                let len = world.write_snapshot(view, 0, &mut out);
                if len == 0 {
                    break;
                }
                bytes += len;
                let number = (tick as usize * packets_max + packet) as u16;
                world.sent(view, number);
                replicas.apply(&out[..len]).unwrap();
                world.acked(view, number);
            }
            for id in ids.iter().filter(|id| replicas.tick_of::<Pose>(**id) == Some(tick)) {
                *written.entry(*id).or_default() += 1;
            }
        }
        (written, bytes)
    }

    #[test]
    fn a_moving_entity_takes_8_bytes() {
        let (mut world, ids, view) = world(50, InterestSettings::default());
        let (written, _) = run(&mut world, &ids, view, 1, 1, 1200);
        assert_eq!(written.len(), 50);
        let ticks = 20;
        let (mut world, ids, view) = self::world(50, InterestSettings::default());
        let spawn_bytes = run(&mut world, &ids, view, 1, 1, 1200).1;
        let (mut world, ids, view) = self::world(50, InterestSettings::default());
        let bytes = run(&mut world, &ids, view, 1 + ticks, 1, 1200).1 - spawn_bytes;
        assert_eq!(bytes, ticks as usize * (8 + 50 * 8));
    }

    #[test]
    fn nothing_starves_when_the_budget_is_short_and_the_near_come_first() {
        let settings = InterestSettings { budget_bytes_per_tick: 200, ..InterestSettings::default() };
        let (mut world, ids, view) = world(250, settings);
        let (written, bytes) = run(&mut world, &ids, view, 400, 8, 1200);
        let times = |index: usize| *written.get(&ids[index]).unwrap_or(&0);
        assert!(ids.iter().all(|id| written.get(id).is_some_and(|times| *times >= 4)), "{written:?}");
        assert!(times(0) >= 3 * times(249), "{} and {}", times(0), times(249));
        assert!(bytes <= 400 * (200 + 8 + 8), "{bytes} bytes");
    }

    #[test]
    fn nothing_starves_when_the_caller_cuts_off_below_the_budget() {
        let settings = InterestSettings { budget_bytes_per_tick: 65_536, ..InterestSettings::default() };
        let (mut world, ids, view) = world(250, settings);
        let (written, _) = run(&mut world, &ids, view, 200, 1, 150);
        assert!(ids.iter().all(|id| written.get(id).is_some_and(|times| *times >= 8)), "{written:?}");
    }

    #[test]
    fn several_packets_of_a_tick_share_out_what_one_cannot_hold() {
        let settings = InterestSettings { budget_bytes_per_tick: 65_536, ..InterestSettings::default() };
        let (mut world, ids, view) = world(250, settings);
        let (written, _) = run(&mut world, &ids, view, 10, 100, 100);
        assert!(ids.iter().all(|id| written.get(id) == Some(&10)), "{written:?}");
    }

    #[test]
    fn a_buffer_too_small_for_anything_is_no_harm() {
        let (mut world, _, view) = world(3, InterestSettings::default());
        world.refresh_interest();
        for len in 0..16 {
            let mut out = vec![0; len];
            assert!(world.write_snapshot(view, 0, &mut out) <= 8);
        }
        assert!(world.write_snapshot(view, 0, &mut [0; 1200]) > 20);
    }

    #[test]
    fn quiet_ticks_say_nothing_but_new_input_numbers() {
        let (mut world, _, view) = world(3, InterestSettings::default());
        let mut out = [0; 1200];
        world.refresh_interest();
        assert!(world.write_snapshot(view, 5, &mut out) > 8);
        world.sent(view, 1);
        world.acked(view, 1);
        world.begin_tick(2);
        assert_eq!(world.write_snapshot(view, 5, &mut out), 0);
        assert_eq!(world.write_snapshot(view, 6, &mut out), 8);
        world.sent(view, 2);
        assert_eq!(world.write_snapshot(view, 6, &mut out), 0);
    }
}
