//! View: what one client may hold of a world, and what it is still owed.
//!
//! A view is a list of entries in slot order, one for each slot that the client should hold, or that it may
//! still hold and should not:
//!
//! ```text
//!            enters            first sent             acknowledged
//!   (none) ---------> New ------------------> Sent ---------------> Known
//!              |                               | leaves or dies       | leaves or dies
//!              |  leaves, never sent           v                      v
//!              +-----------------> (none) <-- Leaving <---------------+
//!                                  despawn acknowledged
//! ```
//!
//! Most entries are *plain*: the client knows the entity and is owed nothing. Their changes are copied from what
//! the tick has put together for everybody (`bulk`), and their entries are neither read nor written for it: a plain
//! entry is a key of 4 bytes. What such a packet carried follows from its tick and
//! its first and last slot: if it is lost, the components of the plain entries in between that changed when they
//! had their turn then, and have not changed since, are owed. Too much may go out again after a loss; too little never.
//!
//! All else goes the slow way. `owed` is a bit per component, and one for existence: a spawn, a despawn, or a
//! change of the set of components. Sent ones stop to be owed, and a lost packet makes owed again what went out last
//! in it. For this every entry notes, per bit, the sequence number of the packet that carried it last that way:
//! what a newer packet carries is superseded and is left alone, and so is what changed after it. There is no
//! log of packets' contents; a loss reads through the labels, 2 bytes each, well under 0.1 us for 50 entities.
//!
//! A slot is in one state per client and tick: held with a generation, or empty. So a despawn says "this slot
//! is empty as of this tick", and an entity that takes over the slot of a dead one replaces it by its spawn.
//! Until a spawn is acknowledged every change goes out as a full spawn again: were it an update, it could
//! arrive before the spawn and be lost on a client that does not know the entity yet.
//!
//! Belongs to one world; the entries of different views are independent, so views can be written in parallel.
//! Every tick reads an entry's key, 4 B; what goes the slow way reads the entry, 12 B; what spawns and full budgets need
//! of it, 16 B, lies apart, and so do its labels, 2 B for each component kind of the schema and 2 B for existence:
//! 4 + 12 + 16 + 2 x (kinds + 1), which is 40 B with 3 kinds and 66 B with 16. Allocates only when a set outgrows all before.

use std::collections::VecDeque;

use throng_platform::prefetch;

use crate::{
    entities::{Entities, NetId, Slot, Standing},
    entry::{Aside, Entry, Key, State},
    interest::{Found, InterestSettings, Listening, is_small},
    rings::Rings,
    scene::Scene,
    slot_set::SlotSet,
    stats::ReplicationStats,
    traffic::Cause,
};

/// Entities that left a view lately, kept for truths about their absence.
const RECENTLY_LEFT_MAX: usize = 8;

/// Unanswered packets: a bit each in `Entry::spawn_packets`.
const PACKETS_IN_FLIGHT_MAX: u8 = 64;

/// So much of a long list is asked for, and its end; the rest comes by itself where it is read from front to back.
const PREFETCHED_MAX: usize = 128;

/// After the last slot.
pub(crate) const END: u32 = u32::MAX;

/// A packet that went out and is not answered.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Flight {
    /// The transport's number; the message's own otherwise.
    pub packet: u16,
    pub sequence: u16,
    pub tick: u32,
    /// Slots between which plain updates were copied from the tick's bulk; `first > last` if none were.
    pub first: u32,
    pub last: u32,
    /// Whether it carried spawns or despawns; their acknowledgement means something.
    pub existence: bool,
    /// Whether it carried anything that is labelled with its sequence.
    pub labelled: bool,
}

pub(crate) struct View {
    pub epoch: u8,
    /// By slot. What every tick reads.
    pub keys: Vec<Key>,
    /// How many are not plain.
    pub slow_count: usize,
    pub entries: Vec<Entry>,
    pub asides: Vec<Aside>,
    /// `stride` labels per entry: the packet that carried each component last, and existence last of all.
    pub labels: Vec<u16>,
    pub stride: usize,
    /// What was done for this client since the counts were last taken.
    pub counts: ReplicationStats,
    /// Where the client looks from while its own entity has no place.
    pub centre: Option<[f32; 2]>,
    pub own: Option<NetId>,
    /// 0: none.
    pub team: u16,
    pub budget_bytes_per_tick: u32,
    /// The set is to be rebuilt at the next occasion, whosever turn it is.
    pub refresh_now: bool,
    /// Concealed slots that it may see this tick, sorted.
    pub allowed: Vec<u32>,

    /// Indexes into `entries` of what is written the slow way this tick, and how many have been.
    pub pending: Vec<u32>,
    pub cursor: usize,
    /// Plain updates below this slot have been written this tick; `END` when all have been or none will be.
    pub bulk_from: u32,
    /// Where the last tick was cut off by its caller, to go on from there.
    pub resume_slot: u32,
    pub gathered_tick: Option<u32>,
    /// Some entry's priority may be above 0.
    pub has_priorities: bool,
    pub echoed_input: Option<u16>,

    pub sequence: u16,
    /// The message that was written last, until `sent` tells its packet.
    pub unsent: Option<Flight>,
    in_flight: VecDeque<Flight>,

    /// Slots of the relevant entries.
    relevant: SlotSet,
    seen_disturbances: u32,
    gone_count: usize,
    /// Where it looked from and how the world was when the set was last rebuilt.
    refreshed: Option<(Option<[f32; 2]>, u64)>,
    /// Where it was when it was last sent all it was owed.
    bulk_centre: Option<[f32; 2]>,
    /// With the tick in which each left.
    pub recently_left: VecDeque<(NetId, u32)>,
    pub truth_cursor: u32,
    /// An entity that interest seems to overlook, and in how many looks it did.
    pub scouted: Option<(NetId, u8)>,
}

impl View {
    pub fn new(epoch: u8, entities: &Entities, settings: &InterestSettings) -> Self {
        Self {
            epoch,
            keys: Vec::new(),
            slow_count: 0,
            entries: Vec::new(),
            asides: Vec::new(),
            relevant: SlotSet::default(),
            labels: Vec::new(),
            stride: entities.schema.kinds_count() + 1,
            counts: ReplicationStats::default(),
            centre: None,
            own: None,
            team: 0,
            budget_bytes_per_tick: settings.budget_bytes_per_tick,
            refresh_now: true,
            allowed: Vec::new(),
            pending: Vec::new(),
            cursor: 0,
            bulk_from: END,
            resume_slot: 0,
            gathered_tick: None,
            has_priorities: false,
            echoed_input: None,
            sequence: 0,
            unsent: None,
            in_flight: VecDeque::new(),
            seen_disturbances: entities.disturbances(),
            gone_count: 0,
            refreshed: None,
            bulk_centre: None,
            recently_left: VecDeque::new(),
            truth_cursor: 0,
            scouted: None,
        }
    }

    #[inline]
    pub fn find(&self, slot: u32) -> Option<usize> {
        // Where everything is relevant, an entry's index is its slot.
        match self.keys.get(slot as usize) {
            Some(key) if key.slot() == slot => Some(slot as usize),
            _ => self.keys.binary_search_by_key(&slot, |key| key.slot()).ok(),
        }
    }

    /// Whether the client is told of an entity.
    pub fn hears(&self, id: NetId, entities: &Entities) -> bool {
        self.relevant.contains(id.slot)
            && entities.get(id).is_some_and(|row| self.may_hear(id, row))
            && self.find(id.slot).is_some_and(|index| self.entries[index].generation == id.generation)
    }

    /// Whether interest may let it hear of an entity at all, wherever that is.
    pub fn may_hear(&self, id: NetId, row: &Slot) -> bool {
        if self.own == Some(id) {
            return true;
        }
        row.standing != Standing::Hidden && (!row.concealed || self.allowed.binary_search(&id.slot).is_ok())
    }

    /// Which concealed slots it may see from now on, in order. Who may not be seen any more leaves at once.
    pub fn set_allowed(&mut self, allowed: &[u32], entities: &Entities) {
        if self.allowed == allowed {
            return;
        }
        self.refresh_now = true;
        let mut before = std::mem::take(&mut self.allowed);
        // Whoever was allowed and is no longer; `may_hear` says no while the list is away.
        for slot in before.iter().filter(|slot| allowed.binary_search(slot).is_err()) {
            if let Some(index) = self.find(*slot) {
                let entry = &self.entries[index];
                let may_hear = entities.get(entry.id()).is_none_or(|row| self.may_hear(entry.id(), row));
                if entry.is_relevant() && !may_hear {
                    self.leave(index, entities.tick, false);
                }
            }
        }
        before.clear();
        before.extend_from_slice(allowed);
        self.allowed = before;
    }

    /// The view's place: its own entity's if that has one.
    pub fn look_from(&self, entities: &Entities) -> Option<[f32; 2]> {
        match self.own.and_then(|own| entities.get(own)).map(|row| row.standing) {
            Some(Standing::At(place)) => Some(place),
            _ => self.centre,
        }
    }

    /// Notes after a change of an entry whether it is plain.
    #[inline]
    pub fn settle(&mut self, index: usize) {
        let key = Key::new(&self.entries[index]);
        let before = std::mem::replace(&mut self.keys[index], key);
        self.slow_count -= usize::from(!before.is_plain());
        self.slow_count += usize::from(!key.is_plain());
    }

    /// Components of a plain or known entry that the client is owed from now on.
    pub fn owe(&mut self, index: usize, kinds: u16, cause: Cause) {
        if kinds != 0 {
            let entry = &mut self.entries[index];
            entry.owed |= kinds;
            entry.cause = cause;
            self.settle(index);
        }
    }

    /// Looks at entities that died, are not to be heard of any more, or lost a component, since it looked last.
    pub fn attend(&mut self, entities: &Entities) {
        let missed = entities.disturbances().wrapping_sub(self.seen_disturbances) as usize;
        if missed == 0 {
            return;
        }
        self.seen_disturbances = entities.disturbances();
        if missed > entities.disturbed.len() || missed > self.entries.len() {
            for index in 0..self.entries.len() {
                let since = self.gathered_tick.map_or(0, |before| before + 1);
                self.attend_to(index, since, entities);
            }
            return;
        }
        let news = &entities.disturbed[entities.disturbed.len() - missed..];
        for slot in news {
            if let Some(index) = self.find(*slot) {
                self.attend_to(index, entities.tick, entities);
            } else if entities.slots[*slot as usize].team == self.team && self.team != 0 {
                self.refresh_now = true;
            }
        }
    }

    /// As `attend`, for one entry. `since`: a component that went before this tick has been seen to go.
    fn attend_to(&mut self, index: usize, since: u32, entities: &Entities) {
        let entry = &self.entries[index];
        if !entry.is_relevant() {
            return;
        }
        let id = entry.id();
        match entities.get(id) {
            None => self.leave(index, entities.tick, true),
            // Nothing more of it, not even an absence.
            Some(row) if !self.may_hear(id, row) => self.leave(index, entities.tick, false),
            Some(_) => {
                if entities.removed_at[id.slot as usize] >= since {
                    self.entries[index].existence = true;
                    self.settle(index);
                }
                // It may have changed teams.
                self.refresh_now = true;
            }
        }
    }

    /// Rebuilds the relevant set, if it is this view's turn.
    pub fn refresh(&mut self, turn: u32, scene: &Scene, found: &mut Found) {
        let Scene { entities, finder, settings, rings, .. } = scene;
        self.attend(entities);
        let centre = self.look_from(entities);
        let now = (centre, entities.arrangement);
        let moved = self.refreshed.is_none_or(|(before, _)| before != centre);
        let period = if is_small(entities) { 1 } else { settings.period_ticks.max(1) * if moved { 1 } else { 2 } };
        if !self.refresh_now
            && (self.refreshed == Some(now) || !turn.wrapping_add(entities.tick).is_multiple_of(period))
        {
            return;
        }
        self.refresh_now = false;
        self.refreshed = Some(now);
        let own = self.own.filter(|own| entities.get(*own).is_some()).map(|own| own.slot);
        let who = Listening { centre, own, team: self.team, allowed: &self.allowed };
        finder.find(entities, &who, settings, rings, found);
        self.set_relevant(found, entities);
        self.set_rings(found, entities, rings);
    }

    /// Rings are others than before: everything is sorted into them anew.
    pub fn forget_rings(&mut self, period_max: u32, entities: &Entities) {
        for index in 0..self.entries.len() {
            let entry = &self.entries[index];
            if entry.is_relevant() && entry.state != State::New {
                let slot = entry.slot as usize;
                let kinds = entities.changed_within(slot, entities.slots[slot].present, period_max);
                self.owe(index, kinds, Cause::Deferred);
            }
            self.entries[index].ring = 0;
            self.asides[index].ring_since = entities.tick;
            self.settle(index);
        }
        self.refresh_now = true;
    }

    /// Takes over what was found. `attend` has run. Mostly nothing comes or goes, which a comparison of
    /// sets finds without a look at the entries.
    fn set_relevant(&mut self, found: &mut Found, entities: &Entities) {
        if !self.relevant.move_on(&mut found.near, &found.kept) {
            return;
        }
        self.counts.entries_visited += self.entries.len() as u64;
        // `near` now has what comes; what was relevant and is no longer, goes.
        for index in 0..self.entries.len() {
            let entry = &mut self.entries[index];
            let comes = found.near.take(entry.slot);
            if entry.is_relevant() {
                if !self.relevant.contains(entry.slot) {
                    self.leave(index, entities.tick, true);
                }
            } else if comes {
                if entry.state == State::Gone {
                    self.gone_count -= 1;
                }
                let row = &entities.slots[entry.slot as usize];
                // A slot whose despawn was acknowledged is empty there.
                let held = entry.state == State::Leaving;
                *entry = Entry { held, ..Entry::new(entry.slot, row.generation, row.present) };
                self.asides[index] = Aside::default();
                self.settle(index);
            }
        }
        self.drop_gone();
        self.insert(&found.near, entities);
    }

    /// Sorts what is relevant into the rings where it was found. Who changes rings is owed what it waited for.
    fn set_rings(&mut self, found: &Found, entities: &Entities, rings: &Rings) {
        if rings.count() == 1 {
            return;
        }
        for index in 0..self.entries.len() {
            let key = self.keys[index];
            let ring = found.ring(key.slot());
            if ring != key.ring() && self.entries[index].is_relevant() {
                self.change_ring(index, ring, entities, rings);
            }
        }
    }

    fn change_ring(&mut self, index: usize, ring: usize, entities: &Entities, rings: &Rings) {
        let entry = &mut self.entries[index];
        let before = std::mem::replace(&mut entry.ring, ring as u8) as usize;
        self.asides[index].ring_since = entities.tick;
        if entry.state != State::New {
            let slot = entry.slot as usize;
            entry.owed |= waiting(entities, rings, slot, before, entities.tick);
            entry.cause = Cause::Deferred;
        }
        self.settle(index);
    }

    /// Whether the client has come so far that it is to be told at once all it waits for.
    pub fn is_bulk_due(&mut self, entities: &Entities, rings: &Rings) -> bool {
        if rings.is_trivial() {
            return false;
        }
        let Some(centre) = self.look_from(entities) else { return false };
        let before = *self.bulk_centre.get_or_insert(centre);
        let due = (centre[0] - before[0]).powi(2) + (centre[1] - before[1]).powi(2) >= rings.bulk_sync_m2;
        if due {
            self.bulk_centre = Some(centre);
        }
        due
    }

    /// Names the packet into which the last written message went.
    pub fn sent(&mut self, packet: u16, scene: &Scene) {
        let Some(mut flight) = self.unsent.take() else {
            return;
        };
        flight.packet = packet;
        // Counted in sequence numbers, not packets, so that `sequence % 64` tells those in flight apart.
        let span_max = u16::from(scene.settings.packets_in_flight_max.clamp(1, PACKETS_IN_FLIGHT_MAX));
        while let Some(oldest) = self.in_flight.front().copied()
            && flight.sequence.wrapping_sub(oldest.sequence) >= span_max
        {
            self.in_flight.pop_front();
            self.give_up(oldest, scene);
        }
        self.in_flight.push_back(flight);
    }

    /// A packet arrived. One that is not in flight is counted and means nothing.
    pub fn acked(&mut self, packet: u16) {
        let mut known = false;
        while let Some(flight) = self.take_flight(packet) {
            known = true;
            if flight.existence {
                self.confirm(flight);
            }
        }
        self.counts.answers_unknown += u64::from(!known);
    }

    pub fn lost(&mut self, packet: u16, scene: &Scene) {
        let mut known = false;
        while let Some(flight) = self.take_flight(packet) {
            known = true;
            self.give_up(flight, scene);
        }
        self.counts.answers_unknown += u64::from(!known);
    }

    /// A message was written and never sent: everything in it is owed again.
    pub fn drop_unsent(&mut self, scene: &Scene) {
        if let Some(flight) = self.unsent.take() {
            self.give_up(flight, scene);
        }
    }

    /// Removes entries that are gone. Indexes change.
    pub fn drop_gone(&mut self) {
        if self.gone_count == 0 {
            return;
        }
        // What is gone is not plain.
        self.slow_count -= std::mem::take(&mut self.gone_count);
        let stride = self.stride;
        let mut kept = 0;
        for index in 0..self.entries.len() {
            if self.entries[index].state != State::Gone {
                self.entries[kept] = self.entries[index];
                self.keys[kept] = self.keys[index];
                self.asides[kept] = self.asides[index];
                self.labels.copy_within(index * stride..(index + 1) * stride, kept * stride);
                kept += 1;
            }
        }
        self.entries.truncate(kept);
        self.keys.truncate(kept);
        self.asides.truncate(kept);
        self.labels.truncate(kept * stride);
    }

    /// Asks for what every tick reads of its lists.
    pub fn prefetch_lists(&self) {
        if self.keys.len() <= PREFETCHED_MAX {
            prefetch::value(&self.keys[..]);
            prefetch::value(&self.entries[..]);
        } else {
            prefetch::value(&self.keys[..PREFETCHED_MAX]);
            prefetch::value(&self.keys[self.keys.len() - 1]);
        }
        let (flights, rest) = self.in_flight.as_slices();
        prefetch::value(flights);
        prefetch::value(rest);
    }

    pub fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.keys.capacity() * size_of::<Key>()
            + self.asides.capacity() * size_of::<Aside>()
            + self.relevant.heap_bytes()
            + self.labels.capacity() * 2
            + (self.pending.capacity() + self.allowed.capacity()) * 4
            + self.in_flight.capacity() * size_of::<Flight>()
            + self.recently_left.capacity() * size_of::<(NetId, u32)>()
    }

    /// An entity is no longer relevant. `told`: the client may be told later that it is absent, if a spawn of it was ever sent: a
    /// newcomer may be held for the slot's owner before it, whose end the client has not confirmed.
    pub fn leave(&mut self, index: usize, tick: u32, told: bool) {
        let entry = &mut self.entries[index];
        self.relevant.take(entry.slot);
        if entry.held {
            let told = told && entry.state != State::New;
            entry.state = State::Leaving;
            entry.owed = 0;
            entry.existence = true;
            self.asides[index] = Aside::default();
            if told {
                if self.recently_left.len() == RECENTLY_LEFT_MAX {
                    self.recently_left.pop_front();
                }
                let id = entry.id();
                self.recently_left.push_back((id, tick));
            }
        } else {
            entry.state = State::Gone;
            self.gone_count += 1;
        }
        self.settle(index);
    }

    /// Merges newcomers into the list, from the back, in place.
    fn insert(&mut self, newcomers: &SlotSet, entities: &Entities) {
        let added = newcomers.len();
        if added == 0 {
            return;
        }
        let stride = self.stride;
        let mut from = self.entries.len();
        let mut to = from + added;
        let nobody = Entry::new(0, 0, 0);
        self.entries.resize(to, nobody);
        self.keys.resize(to, Key::new(&nobody));
        self.asides.resize(to, Aside::default());
        // Half the circle away from any packet in flight.
        let unused = self.sequence.wrapping_add(1 << 15);
        self.labels.resize(to * stride, unused);
        for slot in newcomers.iter_descending() {
            while from > 0 && self.entries[from - 1].slot > slot {
                from -= 1;
                to -= 1;
                self.entries[to] = self.entries[from];
                self.keys[to] = self.keys[from];
                self.asides[to] = self.asides[from];
                self.labels.copy_within(from * stride..(from + 1) * stride, to * stride);
            }
            to -= 1;
            let row = &entities.slots[slot as usize];
            self.entries[to] = Entry::new(slot, row.generation, row.present);
            self.keys[to] = Key::new(&self.entries[to]);
            self.asides[to] = Aside::default();
            self.labels[to * stride..(to + 1) * stride].fill(unused);
        }
        self.slow_count += added;
        debug_assert_eq!(from, to);
    }

    fn take_flight(&mut self, packet: u16) -> Option<Flight> {
        let index = self.in_flight.iter().position(|flight| flight.packet == packet)?;
        self.in_flight.remove(index)
    }

    /// Spawns and despawns of this packet have arrived.
    fn confirm(&mut self, flight: Flight) {
        let bit = 1 << (flight.sequence % 64);
        for index in 0..self.keys.len() {
            if self.keys[index].is_plain() {
                continue;
            }
            let entry = &mut self.entries[index];
            match entry.state {
                State::Sent if self.asides[index].spawn_packets & bit != 0 => {
                    entry.state = State::Known;
                    self.asides[index].spawn_packets = 0;
                    self.settle(index);
                }
                State::Leaving if !entry.existence => {
                    let label = self.labels[(index + 1) * self.stride - 1];
                    if label == flight.sequence {
                        entry.state = State::Gone;
                        self.gone_count += 1;
                        self.settle(index);
                    }
                }
                _ => {}
            }
        }
    }

    /// What went out last in this packet is owed again, unless it has changed since.
    fn give_up(&mut self, flight: Flight, scene: &Scene) {
        if flight.existence {
            let bit = 1 << (flight.sequence % 64);
            self.asides.iter_mut().for_each(|aside| aside.spawn_packets &= !bit);
        }
        if flight.labelled {
            self.give_up_labelled(flight, scene);
        }
        if flight.first <= flight.last {
            self.give_up_bulk(flight, scene);
        }
    }

    fn give_up_labelled(&mut self, flight: Flight, scene: &Scene) {
        let entities = &scene.entities;
        for index in 0..self.entries.len() {
            let labels = &self.labels[index * self.stride..(index + 1) * self.stride];
            let entry = &mut self.entries[index];
            if !labels.contains(&flight.sequence) || matches!(entry.state, State::New | State::Gone) {
                continue;
            }
            let (existence, kinds) = labels.split_last().expect("a label for existence");
            let mut again = 0;
            if *existence == flight.sequence && !entry.existence {
                entry.existence = true;
                again += 1;
            }
            if entry.state != State::Leaving {
                let lost = kinds.iter().enumerate().filter(|(_, label)| **label == flight.sequence);
                let mut lost = lost.fold(0, |mask, (kind, _)| mask | 1 << kind) & !entry.owed;
                if entry.state == State::Known {
                    // A newer value has gone out since, or will when its turn comes.
                    let after = flight.tick.saturating_add(1);
                    lost &= !entities.changed_since(entry.slot as usize, lost, 1, after);
                }
                again += lost.count_ones();
                self.owe_again(index, lost, scene);
            }
            self.counts.owed_again += u64::from(again);
            self.settle(index);
        }
    }

    fn give_up_bulk(&mut self, flight: Flight, scene: &Scene) {
        let Scene { entities, rings, .. } = scene;
        let begin = self.entries.partition_point(|entry| entry.slot < flight.first);
        for index in begin..self.entries.len() {
            let entry = &self.entries[index];
            if entry.slot > flight.last {
                break;
            }
            if entry.state != State::Known {
                // A spawn has it all.
                continue;
            }
            let slot = entry.slot as usize;
            let present = entities.slots[slot].present;
            let told = if self.asides[index].ring_since <= flight.tick {
                waiting(entities, rings, slot, entry.ring.into(), flight.tick)
            } else {
                entities.changed_since(slot, present, rings.period_max, flight.tick)
            };
            let since = entities.changed_since(slot, told, 1, flight.tick.saturating_add(1));
            let lost = told & !since & !entry.owed;
            self.counts.owed_again += u64::from(lost.count_ones());
            self.owe_again(index, lost, scene);
        }
    }

    /// As `owe`. A plain entry that the bulk of this tick has not come to is then owed its share of that, too.
    fn owe_again(&mut self, index: usize, kinds: u16, scene: &Scene) {
        let Entry { slot, ring, .. } = self.entries[index];
        let is_left_out = self.bulk_from <= slot && kinds != 0 && self.keys[index].is_plain();
        let this_tick = scene.bulk.rings.get(usize::from(ring)).filter(|_| is_left_out && self.bulk_from != END);
        self.owe(index, kinds | this_tick.map_or(0, |ring| ring.mask(slot)), Cause::Resent);
    }

    #[cfg(test)]
    pub fn check(&self) {
        assert_eq!(self.labels.len(), self.entries.len() * self.stride);
        assert_eq!(self.asides.len(), self.entries.len());
        assert!(self.entries.is_sorted_by(|one, next| one.slot < next.slot));
        assert_eq!(self.gone_count, self.entries.iter().filter(|entry| entry.state == State::Gone).count());
        assert!(self.in_flight.len() <= 64);
        for (entry, aside) in self.entries.iter().zip(&self.asides) {
            match entry.state {
                State::New => assert!(entry.existence),
                State::Sent | State::Known | State::Leaving => assert!(entry.held),
                State::Gone => {}
            }
            assert!(entry.state == State::Sent || aside.spawn_packets == 0);
            assert_eq!(entry.is_relevant(), self.relevant.contains(entry.slot));
        }
        assert_eq!(self.keys, self.entries.iter().map(Key::new).collect::<Vec<_>>());
        assert_eq!(self.slow_count, self.keys.iter().filter(|key| !key.is_plain()).count());
        assert_eq!(self.relevant.len(), self.entries.iter().filter(|entry| entry.is_relevant()).count());
    }
}

/// Components of a slot in a ring of which the last change may wait for its turn after `tick`, or came later.
pub(crate) fn waiting(entities: &Entities, rings: &Rings, slot: usize, ring: usize, tick: u32) -> u16 {
    let ring = rings.all()[ring];
    entities.changed_since(slot, ring.near, ring.period, tick)
        | if ring.far == 0 { 0 } else { entities.changed_since(slot, ring.far, rings.keepalive, tick) }
}
