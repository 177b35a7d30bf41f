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
//! `owed` is a bit per component, and one for existence: a spawn, a despawn, or a change of the set of
//! components. Changed components become owed, sent ones stop to be, and a lost packet makes owed again
//! exactly what went out last in it. For this every entry notes, per bit, the sequence number of the packet
//! that carried it last: what a newer packet carries is superseded and is left alone. There is no log of
//! packets' contents; a loss reads through the labels, 2 bytes each, well under 0.1 us for 50 entities.
//!
//! A slot is in one state per client and tick: held with a generation, or empty. So a despawn says "this slot
//! is empty as of this tick", and an entity that takes over the slot of a dead one replaces it by its spawn.
//! Until a spawn is acknowledged every change goes out as a full spawn again: were it an update, it could
//! arrive before the spawn and be lost on a client that does not know the entity yet.
//!
//! Belongs to one world; the entries of different views are independent, so views can be written in parallel.
//! What every tick reads of an entry is 12 B; what spawns and full budgets need of it, 16 B, lies apart. With 2 B
//! per component that is about 34 B per entry. Allocates only when a set outgrows all before.

use std::collections::VecDeque;

use crate::{
    entities::{EXISTENCE, Entities, NetId, Standing},
    interest::{Finder, InterestSettings, SlotSet},
};

/// Entities that left a view lately, kept for truths about their absence.
const RECENTLY_LEFT_MAX: usize = 8;

/// Unanswered packets: a bit each in `Entry::spawn_packets`.
const PACKETS_IN_FLIGHT_MAX: u8 = 64;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Relevant, and no spawn has gone out.
    New,
    /// A spawn has gone out, and none has been acknowledged.
    Sent,
    /// The client holds it.
    Known,
    /// No longer relevant; the client may hold it until a despawn is acknowledged.
    Leaving,
    /// To be removed from the list at the next occasion.
    Gone,
}

/// One slot of a view: what every tick reads.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Entry {
    pub slot: u32,
    /// Components that the client is owed.
    pub owed: u16,
    pub generation: u8,
    pub state: State,
    /// Its existence is owed: a spawn with all there is, or a despawn.
    pub existence: bool,
    /// Whether the client may hold something in this slot, be it an owner before this one.
    pub held: bool,
}

/// What of an entry is seldom read.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Aside {
    /// Unanswered packets that carried a spawn of this entry: bit `sequence % 64`.
    pub spawn_packets: u64,
    /// Grows while the entry is owed something and the budget does not reach it.
    pub priority: f32,
}

impl Entry {
    fn new(slot: u32, generation: u8, present: u16) -> Self {
        Self { slot, owed: present, generation, state: State::New, existence: true, held: false }
    }

    pub fn id(&self) -> NetId {
        NetId { slot: self.slot, generation: self.generation }
    }

    pub fn is_relevant(&self) -> bool {
        matches!(self.state, State::New | State::Sent | State::Known)
    }

    /// The client holds it, and needs no more than some components.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.state == State::Known && !self.existence
    }

    #[inline]
    pub fn is_owed_anything(&self) -> bool {
        self.owed != 0 || self.existence
    }

    /// Adds what changed: bits as in `Entities::dirty`.
    #[inline]
    pub fn owe(&mut self, changed: u32) {
        self.owed |= changed as u16;
        self.existence |= changed & EXISTENCE != 0;
    }
}

/// A packet that went out and is not answered.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Flight {
    /// The transport's number; the message's own otherwise.
    pub packet: u16,
    pub sequence: u16,
    /// Whether it carried spawns or despawns; their acknowledgement means something.
    pub existence: bool,
}

/// Counted since the last `take`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ViewCounts {
    pub records: u64,
    pub spawns: u64,
    pub despawns: u64,
    pub snapshots: u64,
    pub bytes: u64,
    pub truths: u64,
    pub owed_again: u64,
}

pub(crate) struct View {
    pub epoch: u8,
    pub entries: Vec<Entry>,
    pub asides: Vec<Aside>,
    /// `stride` labels per entry: the packet that carried each component last, and existence last of all.
    pub labels: Vec<u16>,
    pub stride: usize,
    pub counts: ViewCounts,
    /// Where the client looks from while its own entity has no place.
    pub centre: Option<[f32; 2]>,
    pub own: Option<NetId>,
    pub budget_bytes_per_tick: u32,
    /// The set is to be rebuilt at the next occasion, whosever turn it is.
    pub refresh_now: bool,

    /// Indexes into `entries` that are written this tick, and how many have been.
    pub pending: Vec<u32>,
    pub cursor: usize,
    /// Where the last tick was cut off by its caller, to go on from there.
    pub resume_slot: u32,
    pub gathered_tick: Option<u32>,
    /// Something may be owed to entries that did not change this tick.
    pub incomplete: bool,
    /// Some entry's priority may be above 0.
    pub has_priorities: bool,
    pub echoed_input: Option<u16>,

    pub sequence: u16,
    /// The message that was written last, until `sent` tells its packet.
    pub unsent: Option<Flight>,
    in_flight: VecDeque<Flight>,

    /// Slots of the relevant entries.
    relevant: SlotSet,
    seen_despawns: u32,
    gone_count: usize,
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
            entries: Vec::new(),
            asides: Vec::new(),
            relevant: SlotSet::default(),
            labels: Vec::new(),
            stride: entities.schema.kinds_count() + 1,
            counts: ViewCounts::default(),
            centre: None,
            own: None,
            budget_bytes_per_tick: settings.budget_bytes_per_tick,
            refresh_now: true,
            pending: Vec::new(),
            cursor: 0,
            resume_slot: 0,
            gathered_tick: None,
            incomplete: true,
            has_priorities: false,
            echoed_input: None,
            sequence: 0,
            unsent: None,
            in_flight: VecDeque::new(),
            seen_despawns: entities.despawns,
            gone_count: 0,
            recently_left: VecDeque::new(),
            truth_cursor: 0,
            scouted: None,
        }
    }

    pub fn find(&self, slot: u32) -> Option<usize> {
        self.entries.binary_search_by_key(&slot, |entry| entry.slot).ok()
    }

    /// The view's place: its own entity's if that has one.
    pub fn look_from(&self, entities: &Entities) -> Option<[f32; 2]> {
        match self.own.and_then(|own| entities.get(own)).map(|row| row.standing) {
            Some(Standing::At(place)) => Some(place),
            _ => self.centre,
        }
    }

    /// Lets entities that have died leave. Only looks when something has died since the last time.
    pub fn bury_dead(&mut self, entities: &Entities) {
        if self.seen_despawns == entities.despawns {
            return;
        }
        self.seen_despawns = entities.despawns;
        for index in 0..self.entries.len() {
            let entry = &self.entries[index];
            if entry.is_relevant() && entities.get(entry.id()).is_none() {
                self.leave(index, entities.tick);
            }
        }
    }

    /// Takes over what `finder` found. `bury_dead` has run. Mostly nothing comes or goes, which a comparison of
    /// sets finds without a look at the entries.
    pub fn set_relevant(&mut self, finder: &mut Finder, entities: &Entities) {
        if !self.relevant.move_on(&mut finder.near, &finder.kept) {
            return;
        }
        // `near` now has what comes; what was relevant and is no longer, goes.
        for index in 0..self.entries.len() {
            let entry = &mut self.entries[index];
            let comes = finder.near.take(entry.slot);
            if entry.is_relevant() {
                if !self.relevant.contains(entry.slot) {
                    self.leave(index, entities.tick);
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
                self.incomplete = true;
            }
        }
        self.drop_gone();
        self.insert(&finder.near, entities);
    }

    /// Names the packet into which the last written message went.
    pub fn sent(&mut self, packet: u16, in_flight_max: u8) {
        let Some(mut flight) = self.unsent.take() else {
            return;
        };
        flight.packet = packet;
        // Counted in sequence numbers, not packets, so that `sequence % 64` tells those in flight apart.
        let span_max = u16::from(in_flight_max.clamp(1, PACKETS_IN_FLIGHT_MAX));
        while let Some(oldest) = self.in_flight.front().copied()
            && flight.sequence.wrapping_sub(oldest.sequence) >= span_max
        {
            self.in_flight.pop_front();
            self.give_up(oldest);
        }
        self.in_flight.push_back(flight);
    }

    pub fn acked(&mut self, packet: u16) {
        while let Some(flight) = self.take_flight(packet) {
            if flight.existence {
                self.confirm(flight);
            }
        }
    }

    pub fn lost(&mut self, packet: u16) {
        while let Some(flight) = self.take_flight(packet) {
            self.give_up(flight);
        }
    }

    /// A message was written and never sent: everything in it is owed again.
    pub fn drop_unsent(&mut self) {
        if let Some(flight) = self.unsent.take() {
            self.give_up(flight);
        }
    }

    /// Removes entries that are gone. Indexes change.
    pub fn drop_gone(&mut self) {
        if self.gone_count == 0 {
            return;
        }
        self.gone_count = 0;
        let stride = self.stride;
        let mut kept = 0;
        for index in 0..self.entries.len() {
            if self.entries[index].state != State::Gone {
                self.entries[kept] = self.entries[index];
                self.asides[kept] = self.asides[index];
                self.labels.copy_within(index * stride..(index + 1) * stride, kept * stride);
                kept += 1;
            }
        }
        self.entries.truncate(kept);
        self.asides.truncate(kept);
        self.labels.truncate(kept * stride);
    }

    pub fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.asides.capacity() * size_of::<Aside>()
            + self.relevant.heap_bytes()
            + self.labels.capacity() * 2
            + self.pending.capacity() * 4
            + self.in_flight.capacity() * size_of::<Flight>()
            + self.recently_left.capacity() * size_of::<(NetId, u32)>()
    }

    fn leave(&mut self, index: usize, tick: u32) {
        let entry = &mut self.entries[index];
        self.relevant.take(entry.slot);
        if !entry.held {
            entry.state = State::Gone;
            self.gone_count += 1;
            return;
        }
        entry.state = State::Leaving;
        entry.owed = 0;
        entry.existence = true;
        self.asides[index] = Aside::default();
        self.incomplete = true;
        if self.recently_left.len() == RECENTLY_LEFT_MAX {
            self.recently_left.pop_front();
        }
        let id = entry.id();
        self.recently_left.push_back((id, tick));
    }

    /// Merges newcomers into the list, from the back, in place.
    fn insert(&mut self, newcomers: &SlotSet, entities: &Entities) {
        let added = newcomers.len();
        if added == 0 {
            return;
        }
        self.incomplete = true;
        let stride = self.stride;
        let mut from = self.entries.len();
        let mut to = from + added;
        self.entries.resize(to, Entry::new(0, 0, 0));
        self.asides.resize(to, Aside::default());
        // Half the circle away from any packet in flight.
        let unused = self.sequence.wrapping_add(1 << 15);
        self.labels.resize(to * stride, unused);
        for slot in newcomers.iter_descending() {
            while from > 0 && self.entries[from - 1].slot > slot {
                from -= 1;
                to -= 1;
                self.entries[to] = self.entries[from];
                self.asides[to] = self.asides[from];
                self.labels.copy_within(from * stride..(from + 1) * stride, to * stride);
            }
            to -= 1;
            let row = &entities.slots[slot as usize];
            self.entries[to] = Entry::new(slot, row.generation, row.present);
            self.asides[to] = Aside::default();
            self.labels[to * stride..(to + 1) * stride].fill(unused);
        }
        debug_assert_eq!(from, to);
    }

    fn take_flight(&mut self, packet: u16) -> Option<Flight> {
        let index = self.in_flight.iter().position(|flight| flight.packet == packet)?;
        self.in_flight.remove(index)
    }

    /// Spawns and despawns of this packet have arrived.
    fn confirm(&mut self, flight: Flight) {
        let bit = 1 << (flight.sequence % 64);
        for (index, entry) in self.entries.iter_mut().enumerate() {
            match entry.state {
                State::Sent if self.asides[index].spawn_packets & bit != 0 => {
                    entry.state = State::Known;
                    self.asides[index].spawn_packets = 0;
                }
                State::Leaving if !entry.existence => {
                    let label = self.labels[(index + 1) * self.stride - 1];
                    if label == flight.sequence {
                        entry.state = State::Gone;
                        self.gone_count += 1;
                    }
                }
                _ => {}
            }
        }
    }

    /// Whatever went out last in this packet is owed again.
    fn give_up(&mut self, flight: Flight) {
        if flight.existence {
            let bit = 1 << (flight.sequence % 64);
            self.asides.iter_mut().for_each(|aside| aside.spawn_packets &= !bit);
        }
        for (index, labels) in self.labels.chunks_exact(self.stride).enumerate() {
            if !labels.contains(&flight.sequence) {
                continue;
            }
            let entry = &mut self.entries[index];
            if matches!(entry.state, State::New | State::Gone) {
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
                let lost = lost.fold(0, |mask, (kind, _)| mask | 1 << kind) & !entry.owed;
                entry.owed |= lost;
                again += lost.count_ones();
            }
            self.incomplete |= again > 0;
            self.counts.owed_again += u64::from(again);
        }
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
        assert_eq!(self.relevant.len(), self.entries.iter().filter(|entry| entry.is_relevant()).count());
    }
}
