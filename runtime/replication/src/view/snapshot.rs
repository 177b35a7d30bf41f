//! Snapshot: the message that brings a client's copies up to date.
//!
//! ```text
//! byte   0      1       2..6          6..8            8..
//!        +------+-------+-------------+---------------+--------+--------+ ...
//!        | 2    | epoch | tick  (LE)  | input   (LE)  | record | record |
//!        +------+-------+-------------+---------------+--------+--------+ ...
//! record, slots ascending; d = slot - slot of the record before (the first: - 0); encoded values in mask order
//!   update, mask as before   varint d << 1             value..           (before the first: mask 1)
//!   update                   varint d << 2 | 01        mask  value..     (mask: 1 byte, 2 above 8 kinds)
//!   spawn, all there is      varint d << 3 | 011       generation  mask  value..
//!   despawn, slot is empty   varint d << 3 | 111
//! ```
//!
//! In a world whose time is slowed the kind is 7 and the header has a ninth byte, the time factor in percent.
//!
//! Every message has the full header and stands alone: any may be lost, doubled or late. A moving entity with
//! a 7-byte pose is 8 bytes, 9 when its slot is 64 or more after the one before.
//!
//! Writing is two passes. *Gather*, once per client and tick, finds what goes the slow way (`view`) and sums up how
//! long all may get. If it fits the budget nothing is sorted: *write* merges, in slot order, the records of the slow
//! with those of the plain, which are copied from the tick's bulk, until the caller's buffer is full, and goes on there
//! at the next call. Above the budget everything goes the slow way, the most urgent first: each entry's priority grows
//! every tick it waits, faster when near or of more weight, and starts again at 0 when it is written, so nothing waits
//! for ever. The client's own entity does not wait at all, and is in the first message of a tick (`own_news`).
//!
//! Cost: 3-5 ns per plain update, all passes included; about 25 ns the slow way. A view to which nothing happened costs
//! one look at the tick's list of hot slots. Never allocates in a steady state.

use crate::{
    source::{
        bulk::{RingBulk, stream_bytes},
        entities::{Entities, Relevance},
        fault::Fault,
    },
    view::{
        client_view::{View, waiting},
        entry::{END, Entry, Key, State},
        flights::Flight,
        message::{Message, Pen, RECORD_HEADER_BYTES_LIKELY, RECORD_HEADER_BYTES_MAX},
        own_news::OwnNews,
        scene::Scene,
        traffic::{Cause, Traffic},
    },
    wire::message_kinds::{SLOWED_SNAPSHOT_KIND, SNAPSHOT_HEADER_BYTES, SNAPSHOT_KIND},
};

/// Entities that changed are looked up one by one if the view has this many keys for each.
const KEYS_PER_LOOKUP: usize = 16;

/// Keys that are looked through before what of them is hot is copied.
const KEYS_PER_TURN: usize = 64;

/// Priority that a despawn, or a spawn into a slot whose last owner the client still shows, has from the start.
const PRIORITY_GHOST: f32 = 1e6;

/// In the place of an input's number: the message does not say which one its tick took in last.
const INPUT_UNSAID: u16 = 0;

impl View {
    /// Writes as much of this tick's snapshot as `out` holds; 0 when there is nothing (more) to say.
    pub(crate) fn write_snapshot(&mut self, scene: &Scene, traffic: &mut Traffic, input: u16, out: &mut [u8]) -> usize {
        let entities = &scene.entities;
        self.drop_unsent(scene);
        if self.gathered_tick != Some(entities.tick) {
            self.gather(scene);
        }
        let is_told = self.cursor == self.pending.len() && self.bulk_from == END;
        if is_told && self.echoed_input == Some(input) && !self.owes_time {
            return 0;
        }
        let is_slowed = !scene.time_factor.is_usual();
        let header_bytes = SNAPSHOT_HEADER_BYTES + usize::from(is_slowed);
        if out.len() < header_bytes {
            return 0;
        }
        let mut message = Message::new(out, header_bytes, traffic);
        let (records, despawns) = (self.counts.entity_updates, self.counts.despawns);
        let own_before = self.own_news;
        self.write_records(scene, &mut message);
        let says_input = own_before == OwnNews::None || own_before != self.own_news;
        let says_no_input = !says_input || self.echoed_input == Some(input);
        if message.len() == header_bytes && says_no_input && !self.owes_time {
            return 0;
        }
        self.owes_time = false;
        message.count(scene, self.counts.entity_updates - records, self.counts.despawns - despawns);
        let Message { existence, labelled, pen, .. } = message;
        let Pen { at: len, first, last, .. } = pen;
        out[0] = SNAPSHOT_KIND;
        out[1] = self.epoch;
        out[2..6].copy_from_slice(&entities.tick.to_le_bytes());
        let told_input = if says_input { *self.echoed_input.insert(input) } else { INPUT_UNSAID };
        out[6..8].copy_from_slice(&told_input.to_le_bytes());
        if is_slowed {
            (out[0], out[8]) = (SLOWED_SNAPSHOT_KIND, scene.time_factor.percent());
        }
        let tick = entities.tick;
        self.flights.add_unsent(Flight { packet: 0, sequence: 0, tick, first, last, existence, labelled });
        self.counts.snapshots += 1;
        self.counts.snapshot_bytes += len as u64;
        len
    }

    /// Finds what there is to write this tick: fills `pending` with what goes the slow way, in the order of writing,
    /// and says from where on the bulk is copied.
    fn gather(&mut self, scene: &Scene) {
        let Scene { entities, rings, .. } = scene;
        self.attend(entities);
        self.list.drop_gone();
        let own = self.find_own();
        if let Some(own) = own {
            self.hasten_own(own, scene);
        }
        let bulk_before = std::mem::replace(&mut self.bulk_from, END);
        let unfinished = self.cursor < self.pending.len() || bulk_before != END;
        if let Some(before) = self.gathered_tick {
            if before.wrapping_add(1) != entities.tick {
                // One that was cut off in its bulk has not been told of that tick, either.
                let told = if bulk_before == END { before.saturating_add(1) } else { before };
                self.owe_since(told, 0, scene, Cause::Deferred);
            } else if bulk_before != END {
                self.owe_since(before, bulk_before, scene, Cause::Deferred);
            }
        }
        if self.is_catch_up_due(entities, rings) {
            self.owe_since(entities.tick, 0, scene, Cause::CatchUp);
        }
        self.gathered_tick = Some(entities.tick);
        self.owes_time = scene.says_time_factor();
        self.pending.clear();
        // Room for all that the client holds: so it grows with that, and not in some later tick in which more than ever
        // before goes the slow way.
        self.pending.reserve(self.list.entries.len());
        self.cursor = 0;
        if self.list.slow_count > 0 {
            self.gather_slow(scene);
        }
        let plain_only = !unfinished && entities.fault == Fault::None;
        let fits = self.fits_budget(scene);
        self.short_ticks = self.short_ticks.wrapping_add(u32::from(unfinished || !fits));
        if plain_only && fits {
            self.bulk_from = 0;
        } else {
            self.gather_plain(scene);
            if !fits {
                self.choose(own, scene);
            }
            if unfinished {
                self.resume(own);
            }
        }
        self.expect_own_news(own, scene);
    }

    /// Lets the order of writing begin where the last tick was cut off, but for the own entity, which comes first.
    fn resume(&mut self, own: Option<usize>) {
        let (slot, entries) = (self.resume_slot, &self.list.entries);
        let first = self.pending.partition_point(|index| entries[*index as usize].slot < slot);
        self.pending.rotate_left(first);
        let place = own.and_then(|own| self.pending.iter().position(|index| *index as usize == own));
        // After the first it stands in the order of slots, and is written ahead of its turn where that is needed.
        if let Some(place) = place
            && entries[self.pending[place] as usize].slot < entries[self.pending[0] as usize].slot
        {
            self.pending[..=place].rotate_right(1);
        }
    }

    /// Owes to what the client holds, from a slot on, all that changed since it was told at `tick - 1`.
    fn owe_since(&mut self, tick: u32, from: u32, scene: &Scene, cause: Cause) {
        let Scene { entities, rings, .. } = scene;
        let begin = self.list.entries.partition_point(|entry| entry.slot < from);
        self.counts.entries_visited += (self.list.entries.len() - begin) as u64;
        for index in begin..self.list.entries.len() {
            let entry = &self.list.entries[index];
            if matches!(entry.state, State::Known | State::Sent) {
                let kinds = waiting(entities, rings, entry.slot as usize, entry.ring.into(), tick);
                self.owe(index, kinds, cause);
            }
        }
    }

    /// Takes in this tick's changes of slow entries, and puts those that are owed anything into `pending`.
    fn gather_slow(&mut self, scene: &Scene) {
        let rings = scene.bulk.rings();
        for (index, key) in self.list.keys.iter().enumerate().filter(|(_, key)| !key.is_plain()) {
            let entry = &mut self.list.entries[index];
            if entry.is_relevant() {
                entry.owed |= rings.get(key.ring()).map_or(0, |ring| ring.mask(key.slot()));
            }
            if entry.is_owed_anything() {
                self.pending.push(index as u32);
            }
        }
        self.counts.entries_visited += self.list.slow_count as u64;
    }

    /// Lets this tick's plain updates go the slow way, too.
    fn gather_plain(&mut self, scene: &Scene) {
        self.pending.clear();
        self.counts.entries_visited += self.list.entries.len() as u64;
        for index in 0..self.list.entries.len() {
            let entry = &mut self.list.entries[index];
            if entry.takes_updates()
                && let Some(ring) = scene.bulk.rings().get(usize::from(entry.ring))
            {
                if entry.owed == 0 {
                    entry.cause = Cause::Deferred;
                }
                entry.owed |= ring.mask(entry.slot);
            }
            if entry.is_owed_anything() {
                self.pending.push(index as u32);
                self.list.refresh_key(index);
            }
        }
    }

    /// Whether all there is to write this tick is within the budget.
    fn fits_budget(&self, scene: &Scene) -> bool {
        let entities = &scene.entities;
        let budget = self.budget_bytes_per_tick as usize;
        let spawn_bytes_max =
            RECORD_HEADER_BYTES_LIKELY + entities.schema.values_bytes_max(entities.schema.every_kind());
        if self.list.entries.len() * spawn_bytes_max <= budget {
            return true;
        }
        let slow = self.pending.iter().map(|index| record_bytes_likely(entities, &self.list.entries[*index as usize]));
        let slow = slow.sum::<usize>();
        if slow + stream_bytes(&scene.bulk) + scene.bulk.hot_slots.len() * RECORD_HEADER_BYTES_LIKELY <= budget {
            return true;
        }
        let rings = scene.bulk.rings();
        let plain = self.list.keys.iter().filter(|key| key.is_plain()).map(|key| {
            let record = &rings[key.ring()].records[key.slot() as usize];
            if record.mask == 0 { 0 } else { 1 + usize::from(record.len) }
        });
        slow + plain.sum::<usize>() <= budget
    }

    /// More is owed than the budget allows: keeps the most urgent in `pending`, in slot order, and the own entity before
    /// all.
    fn choose(&mut self, own: Option<usize>, scene: &Scene) {
        let Scene { entities, settings, .. } = scene;
        let radius_m = settings.enter_radius_m;
        let centre = self.look_from(entities);
        for index in &self.pending {
            let index = *index as usize;
            self.list.cold[index].priority += urgency(entities, &self.list.entries[index], centre, radius_m);
        }
        let own = own.filter(|own| self.list.entries[*own].is_owed_anything());
        if let Some(own) = own {
            self.list.cold[own].priority = f32::INFINITY;
        }
        let cold = &self.list.cold;
        let priority = |index: &u32| cold[*index as usize].priority;
        self.pending.sort_unstable_by(|one, other| priority(other).total_cmp(&priority(one)).then(one.cmp(other)));
        let mut left = self.budget_bytes_per_tick as usize;
        let fitting = self.pending.iter().take_while(|index| {
            let rest = left.checked_sub(record_bytes_likely(entities, &self.list.entries[**index as usize]));
            left = rest.unwrap_or(0);
            rest.is_some()
        });
        // The own entity and the most urgent of the others go whatever they take: a budget below one entity must not
        // silence it for ever, nor must what the own one takes of it.
        let chosen_count = fitting.count().max(1 + usize::from(own.is_some()));
        self.pending.truncate(chosen_count);
        self.has_priorities = true;
        self.pending.sort_unstable();
    }

    /// Writes records from where the last message ended, until this one is full or nothing is left; in any case what is
    /// new of the own entity.
    fn write_records(&mut self, scene: &Scene, message: &mut Message<'_>) {
        if self.own_news == OwnNews::Due {
            self.write_with_own(scene, message);
        } else {
            self.merge(scene, message);
        }
        let next_slow = self.pending.get(self.cursor).map_or(END, |index| self.list.entries[*index as usize].slot);
        self.resume_slot = next_slow.min(self.bulk_from);
    }

    /// Writes the slow and the plain in slot order.
    pub(super) fn merge(&mut self, scene: &Scene, message: &mut Message<'_>) {
        let entities = &scene.entities;
        loop {
            let index = self.pending.get(self.cursor).map(|index| *index as usize);
            let next = index.map_or(END, |index| self.list.entries[index].slot);
            if self.bulk_from < next && !self.put_bulk(next, scene, message) {
                break;
            }
            let Some(index) = index else {
                break;
            };
            let entry = &self.list.entries[index];
            let room = message.room();
            if entry.slot < message.pen.slot_before || room < record_bytes(entities, entry) {
                break;
            }
            // One that is owed nothing any more is the own entity, which was written ahead of its turn.
            if entry.state != State::Gone && entry.is_owed_anything() {
                self.put_any(index, entities, message);
            }
            self.cursor += 1;
            if self.bulk_from != END {
                // It may be plain from now on, and has been told of.
                self.bulk_from = next + 1;
            }
        }
    }

    /// Copies plain updates of slots from `bulk_from` up to `end`, as long as there is certainly room. Returns
    /// whether there was.
    fn put_bulk(&mut self, end: u32, scene: &Scene, message: &mut Message<'_>) -> bool {
        let bulk = &scene.bulk;
        let full_at = if bulk.hot_slots.is_empty() || self.list.keys.is_empty() {
            None
        } else if let [ring] = bulk.rings() {
            let span = self.list.keys[self.list.keys.len() - 1].slot() - self.list.keys[0].slot() + 1;
            if span as usize == self.list.keys.len() && self.list.slow_count == 0 {
                self.put_row(end, ring, scene, message)
            } else {
                self.put_each(end, |_| ring, scene, message)
            }
        } else {
            self.put_each(end, |key| &bulk.rings()[key.ring()], scene, message)
        };
        self.counts.entity_updates += u64::from(std::mem::take(&mut message.pen.copied));
        self.bulk_from = full_at.unwrap_or(end);
        full_at.is_none()
    }

    /// Returns the slot for which there is no room, if any.
    #[inline]
    fn put_each<'s>(
        &self,
        end: u32,
        ring_of: impl Fn(Key) -> &'s RingBulk,
        scene: &'s Scene,
        message: &mut Message<'_>,
    ) -> Option<u32> {
        if scene.bulk.hot_slots.len() * KEYS_PER_LOOKUP <= self.list.keys.len() {
            self.put_looked_up(end, ring_of, scene, message)
        } else {
            self.put_walked(end, ring_of, scene, message)
        }
    }

    /// The innermost loop: every key in turn.
    #[inline]
    fn put_walked<'s>(
        &self,
        end: u32,
        ring_of: impl Fn(Key) -> &'s RingBulk,
        scene: &'s Scene,
        message: &mut Message<'_>,
    ) -> Option<u32> {
        let begin = if self.bulk_from == 0 { 0 } else { self.list.index_from(self.bulk_from) };
        let stop = if end == END { self.list.keys.len() } else { self.list.index_from(end) };
        let mut pen = message.pen;
        // Which are hot is found first and without a branch: where a third moves, every second guess would be wrong.
        let mut hot = [Key::NONE; KEYS_PER_TURN];
        for keys in self.list.keys[begin..stop.max(begin)].chunks(KEYS_PER_TURN) {
            let mut count = 0;
            for key in keys {
                hot[count % KEYS_PER_TURN] = *key;
                let is_hot = ring_of(*key).records[key.slot() as usize].mask != 0;
                count += usize::from(is_hot & key.is_plain());
            }
            for key in &hot[..count] {
                let ring = ring_of(*key);
                if !message.put_record(&mut pen, &scene.entities, key.slot(), ring, key.ring()) {
                    message.pen = pen;
                    return Some(key.slot());
                }
            }
        }
        message.pen = pen;
        None
    }

    /// As `put_walked`, where few entities have changed: each is looked up.
    fn put_looked_up<'s>(
        &self,
        end: u32,
        ring_of: impl Fn(Key) -> &'s RingBulk,
        scene: &'s Scene,
        message: &mut Message<'_>,
    ) -> Option<u32> {
        let hot = &scene.bulk.hot_slots;
        let begin = hot.partition_point(|slot| *slot < self.bulk_from);
        let mut pen = message.pen;
        for slot in hot[begin..].iter().take_while(|slot| **slot < end) {
            let Some(key) = self.list.find(*slot).map(|index| self.list.keys[index]).filter(|key| key.is_plain())
            else {
                continue;
            };
            let ring = ring_of(key);
            if ring.mask(*slot) != 0 && !message.put_record(&mut pen, &scene.entities, *slot, ring, key.ring()) {
                message.pen = pen;
                return Some(*slot);
            }
        }
        message.pen = pen;
        None
    }

    /// As `put_walked`, where the client hears of every slot from its first to its last: whole runs are copied.
    fn put_row(&self, end: u32, ring: &RingBulk, scene: &Scene, message: &mut Message<'_>) -> Option<u32> {
        let hot = &ring.hot_slots;
        let after = self.list.keys.last().map_or(0, |key| key.slot() + 1).min(end);
        let mut at = hot.partition_point(|slot| *slot < self.bulk_from.max(self.list.keys[0].slot()));
        let end = hot.partition_point(|slot| *slot < after);
        let mut next_break = ring.breaks.partition_point(|index| (*index as usize) <= at);
        while at < end {
            let mut pen = message.pen;
            if !message.put_record(&mut pen, &scene.entities, hot[at], ring, 0) {
                return Some(hot[at]);
            }
            message.pen = pen;
            let run_end = ring.breaks.get(next_break).map_or(end, |index| (*index as usize).min(end));
            next_break += 1;
            at = message.put_run(&hot[..run_end], at, ring);
            if at < run_end {
                return Some(hot[at]);
            }
        }
        None
    }

    /// Writes one record of any sort. There is room.
    #[inline(never)]
    pub(super) fn put_any(&mut self, index: usize, entities: &Entities, message: &mut Message<'_>) {
        self.counts.entity_updates += 1;
        if self.has_priorities {
            self.list.cold[index].priority = 0.0;
        }
        let entry = &mut self.list.entries[index];
        let labels = &mut self.list.labels[index * self.list.stride..(index + 1) * self.list.stride];
        let kinds_count = labels.len() - 1;
        if entry.takes_updates() {
            if entities.fault != Fault::SkipUpdates || entry.slot % 4 != 1 {
                message.put_update(entities, entry);
                message.labelled = true;
                let sent = labels[..kinds_count].iter_mut().enumerate();
                sent.filter(|(kind, _)| entry.owed >> kind & 1 == 1)
                    .for_each(|(_, label)| *label = self.flights.next_sequence());
            }
        } else if entry.state == State::Leaving {
            if entities.fault != Fault::LoseDespawns {
                message.put_head(entry.slot, 3, 0b111);
            }
            labels[kinds_count] = self.flights.next_sequence();
            (message.existence, message.labelled) = (true, true);
            self.counts.despawns += 1;
        } else {
            message.put_spawn(entities, entry);
            labels.fill(self.flights.next_sequence());
            if entry.state != State::Known {
                entry.state = State::Sent;
                self.list.cold[index].spawn_packets |= 1 << (self.flights.next_sequence() % 64);
            }
            entry.held = true;
            (message.existence, message.labelled) = (true, true);
            self.counts.spawns += 1;
        }
        entry.owed = 0;
        entry.existence = entry.state == State::Leaving && entities.fault == Fault::RepeatDespawns;
        self.list.refresh_key(index);
    }
}

/// Components that the entry's record carries.
fn record_mask(entities: &Entities, entry: &Entry) -> u16 {
    match entry.state {
        State::Leaving => 0,
        _ if entry.takes_updates() => entry.owed,
        _ => entities.slots[entry.slot as usize].present,
    }
}

/// Bytes of a record, with the longest header.
pub(super) fn record_bytes(entities: &Entities, entry: &Entry) -> usize {
    let mask = record_mask(entities, entry);
    let columns = entities.columns.iter().enumerate().filter(|(kind, _)| mask >> kind & 1 == 1);
    RECORD_HEADER_BYTES_MAX + columns.map(|(_, column)| column.len(entry.slot as usize)).sum::<usize>()
}

/// About what a record will take, for the budget.
fn record_bytes_likely(entities: &Entities, entry: &Entry) -> usize {
    let header = if entry.takes_updates() { 1 } else { RECORD_HEADER_BYTES_LIKELY };
    header + entities.schema.values_bytes_max(record_mask(entities, entry))
}

/// How much an entry's priority grows in a tick in which the budget does not reach everybody. Always > 0.
fn urgency(entities: &Entities, entry: &Entry, centre: Option<[f32; 2]>, radius_m: f32) -> f32 {
    if entry.state == State::Leaving || (entry.state == State::New && entry.held) {
        return PRIORITY_GHOST;
    }
    let weight = entities.weights[entry.slot as usize];
    let news = weight * if entry.state == State::New { 4.0 } else { 1.0 };
    let (Relevance::At(place), Some(centre)) = (entities.slots[entry.slot as usize].relevance, centre) else {
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
        replicas::store::Replicas,
        testing::{Pose, TestWorld, ViewId, pose, schema},
        view::interest::InterestSettings,
        wire::{ids::NetId, schema::ComponentIndex},
    };

    fn world(entities: usize, settings: InterestSettings) -> (TestWorld, Vec<NetId>, ViewId) {
        let mut world = TestWorld::new(schema(), settings);
        world.begin_tick(1);
        let ids: Vec<_> = (0..entities).map(|_| world.spawn().unwrap()).collect();
        for (index, id) in ids.iter().enumerate() {
            world.set_place(*id, [index as f32 * 0.2, 0.0]);
            world.update(ComponentIndex(0), *id, &pose(index as f32 * 0.2));
        }
        let view = world.add_client(0);
        world.set_view(view, [0.0; 2]);
        (world, ids, view)
    }

    /// Everything moves for `ticks`; the caller lets out `packets_max` packets of `packet_bytes` per tick. Returns how
    /// often each entity was written.
    fn run(
        world: &mut TestWorld,
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
                world.update(ComponentIndex(0), *id, &pose(index as f32 * 0.2 + tick as f32 * 0.05));
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
