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
//! Most entries are *plain*: the client knows the entity and is owed nothing. Their changes are copied from what the
//! tick has put together for everybody (`bulk`), and their entries are neither read nor written for it: a plain entry
//! is a key of 4 bytes. All else goes the slow way. There `owed` is a bit per component, and one for existence: a
//! spawn, a despawn, or a change of the set of components. What is sent is owed no more; what a lost packet carried
//! last is owed again (`loss`).
//!
//! A slot is in one state per client and tick: held with a generation, or empty. So a despawn says "this slot
//! is empty as of this tick", and an entity that takes over the slot of a dead one replaces it by its spawn.
//! Until a spawn is acknowledged every change goes out as a full spawn again: were it an update, it could
//! arrive before the spawn and be lost on a client that does not know the entity yet.
//!
//! Belongs to one world; the entries of different views are independent, so views can be written in parallel. What an
//! entry takes in memory is told in `entry_list`. What comes and goes is in `relevant_set`, what goes out in
//! `snapshot`.

use throng_platform::prefetch::{self, FootprintDraft};

use crate::{
    source::{
        entities::{Entities, Relevance},
        rings::Rings,
    },
    stats::ReplicationStats,
    view::{
        audit_sample::Audit,
        entry::{END, Entry, State},
        entry_list::EntryList,
        flights::Flights,
        interest::InterestSettings,
        own_news::OwnNews,
        slot_set::SlotSet,
        traffic::Cause,
    },
    wire::ids::NetId,
};

/// What one client may hold of a world, and what it is owed. Made by `WorldReplication::new_view`, kept with all else
/// of the client, and served by `WorldReplication` together with what all clients share.
pub struct View {
    pub(super) epoch: u8,
    /// Views are refreshed in turns, so that few are in the same tick.
    pub(crate) turn: u32,
    pub(super) list: EntryList,
    pub(crate) counts: ReplicationStats,
    /// Where the client looks from while its own entity has no place.
    pub(super) centre: Option<[f32; 2]>,
    pub(super) own: Option<NetId>,
    /// 0: none.
    pub(super) team: u16,
    pub(super) budget_bytes_per_tick: u32,
    /// Ticks in which the budget did not reach all that was owed; audit samples tell it, so that what is late for that is no
    /// error. Wraps.
    pub(super) short_ticks: u32,
    /// The set is to be rebuilt at the next occasion, whosever turn it is.
    pub(super) refresh_now: bool,
    /// Visibility-filtered slots that it may see this tick, sorted.
    pub(super) allowed: Vec<u32>,
    /// The tick in which it was last asked about them.
    pub(crate) filtered_at: Option<u32>,

    /// Indexes into `entries` of what is written the slow way this tick, and how many have been.
    pub(super) pending: Vec<u32>,
    pub(super) cursor: usize,
    /// Plain updates below this slot have been written this tick; `END` when all have been or none will be.
    pub(super) bulk_from: u32,
    /// Where the last tick was cut off by its caller, to go on from there.
    pub(super) resume_slot: u32,
    pub(super) gathered_tick: Option<u32>,
    /// Some entry's priority may be above 0.
    pub(super) has_priorities: bool,
    pub(super) echoed_input: Option<u16>,
    /// Whether this tick's first message is written though it should say nothing but how fast time runs.
    pub(super) owes_time: bool,
    /// Whether what this tick has of the client's own entity is told.
    pub(super) own_news: OwnNews,

    pub(super) flights: Flights,
    /// Newest tick of which it has acknowledged a message; 0 before the first.
    pub(super) acked_tick: u32,
    pub(super) audit: Audit,

    /// Slots of the relevant entries.
    pub(super) relevant: SlotSet,
    pub(super) seen_disturbances: u32,
    /// Where it looked from and how the world was when the set was last rebuilt.
    pub(super) refreshed: Option<(Option<[f32; 2]>, u64)>,
    /// Where it was when it was last sent all it was owed.
    pub(super) caught_up_at: Option<[f32; 2]>,
}

impl View {
    pub(crate) fn new(epoch: u8, turn: u32, entities: &Entities, settings: &InterestSettings) -> Self {
        Self {
            epoch,
            turn,
            list: EntryList::new(entities.schema.kinds_count()),
            relevant: SlotSet::default(),
            counts: ReplicationStats::default(),
            centre: None,
            own: None,
            team: 0,
            budget_bytes_per_tick: settings.budget_bytes_per_tick,
            short_ticks: 0,
            refresh_now: true,
            allowed: Vec::new(),
            filtered_at: None,
            pending: Vec::new(),
            cursor: 0,
            bulk_from: END,
            resume_slot: 0,
            gathered_tick: None,
            has_priorities: false,
            echoed_input: None,
            owes_time: false,
            own_news: OwnNews::None,
            flights: Flights::default(),
            acked_tick: 0,
            audit: Audit::default(),
            seen_disturbances: entities.disturbances(),
            refreshed: None,
            caught_up_at: None,
        }
    }

    /// Where the client looks from (m), while its own entity has no place.
    pub fn look_at(&mut self, centre: [f32; 2]) {
        if centre.iter().all(|number| number.is_finite()) {
            self.centre = Some(centre);
        }
    }

    /// Which entity is the client's own: always relevant to it, told before all others, and it looks from there.
    pub fn set_own(&mut self, own: Option<NetId>) {
        self.own = own;
        self.refresh_now = true;
    }

    /// The client hears of all entities of this team, too, wherever they are. None: it is in no team.
    pub fn set_team(&mut self, team: Option<u16>) {
        self.team = team.unwrap_or(0);
        self.refresh_now = true;
    }

    /// Whether the client is in this team.
    pub fn is_of_team(&self, team: u16) -> bool {
        self.team == team && team != 0
    }

    /// What this client may be sent in the tick that is written next, in place of the settings' budget. (bytes) 0: nothing;
    /// what changes then waits, and audit samples bear with it.
    pub fn set_budget(&mut self, bytes_per_tick: u32) {
        self.budget_bytes_per_tick = bytes_per_tick;
        self.short_ticks = self.short_ticks.wrapping_add(u32::from(bytes_per_tick == 0));
    }

    /// Whether the client is owed nothing as of this tick, but what is on its way: its snapshot was written to the end, and
    /// nothing was left for want of budget.
    pub fn is_told(&self, tick: u32) -> bool {
        let is_written = self.gathered_tick == Some(tick) && self.cursor == self.pending.len() && self.bulk_from == END;
        let is_owed = |entry: &Entry| entry.state != State::Gone && entry.is_owed_anything();
        is_written && (self.list.slow_count == 0 || !self.list.entries.iter().any(is_owed))
    }

    /// What was counted since the last call.
    pub fn take_counts(&mut self) -> ReplicationStats {
        std::mem::take(&mut self.counts)
    }

    /// Ids that the client should hold now. May be `period_ticks` old.
    #[cfg(test)]
    pub(crate) fn relevant(&self) -> impl Iterator<Item = NetId> + '_ {
        self.list.entries.iter().filter(|entry| entry.is_relevant()).map(|entry| entry.id())
    }

    /// Whether the client is told of an entity.
    pub(crate) fn hears(&self, id: NetId, entities: &Entities) -> bool {
        self.relevant.contains(id.slot)
            && entities.get(id).is_some_and(|row| self.may_hear(id, row))
            && self.list.find(id.slot).is_some_and(|index| self.list.entries[index].generation == id.generation)
    }

    /// The view's place: its own entity's if that has one.
    pub(crate) fn look_from(&self, entities: &Entities) -> Option<[f32; 2]> {
        match self.own.and_then(|own| entities.get(own)).map(|row| row.relevance) {
            Some(Relevance::At(place)) => Some(place),
            _ => self.centre,
        }
    }

    /// Components of a plain or known entry that the client is owed from now on.
    pub(crate) fn owe(&mut self, index: usize, kinds: u16, cause: Cause) {
        if kinds != 0 {
            let entry = &mut self.list.entries[index];
            entry.owed |= kinds;
            entry.cause = cause;
            self.list.refresh_key(index);
        }
    }

    /// Asks for the memory of a view that is served soon (`throng_platform::prefetch`).
    #[inline]
    pub fn prefetch(&self) {
        prefetch::value(self);
    }

    /// As `prefetch`, a turn later: what every tick reads of its lists.
    pub fn prefetch_lists(&self) {
        self.list.prefetch();
        self.flights.prefetch();
    }

    /// Notes what every tick reads of its lists.
    pub fn note_lists(&self, footprint: &mut FootprintDraft) {
        self.list.note(footprint);
        self.flights.note(footprint);
        footprint.note(&*self.allowed);
        footprint.note(&*self.pending);
    }

    pub fn heap_bytes(&self) -> usize {
        self.list.heap_bytes()
            + self.relevant.heap_bytes()
            + (self.pending.capacity() + self.allowed.capacity()) * 4
            + self.flights.heap_bytes()
            + self.audit.heap_bytes()
    }

    /// For tests and simulations, after every step.
    ///
    /// # Panics
    /// If the view contradicts itself.
    pub fn check(&self) {
        self.list.check();
        self.flights.check();
        let entries = &self.list.entries;
        assert!(entries.iter().all(|entry| entry.is_relevant() == self.relevant.contains(entry.slot)));
        assert_eq!(self.relevant.len(), entries.iter().filter(|entry| entry.is_relevant()).count());
        assert!(self.cursor <= self.pending.len());
    }
}

/// Components of a slot in a ring of which the last change may wait for its turn after `tick`, or came later.
pub(crate) fn waiting(entities: &Entities, rings: &Rings, slot: usize, ring: usize, tick: u32) -> u16 {
    let ring = rings.all()[ring];
    entities.changed_since(slot, ring.near, ring.reach, tick)
        | if ring.far == 0 { 0 } else { entities.changed_since(slot, ring.far, rings.keepalive, tick) }
}
