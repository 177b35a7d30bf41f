//! Traffic: what each sort of component and event takes of the way to the clients, and why.
//!
//! A crowded world's bytes are only brought down by who knows what they are. So everything that is written for a client
//! is counted where it is written: by kind and cause, in values, bytes and packets. Rows never overlap: a component's
//! bytes are its encoded values alone, and what holds them together (headers, slots, masks, despawns) has rows of its
//! own, so that the sum is what went out.
//!
//! ```text
//! kind                 cause       updates   bytes   packets
//! component kinds      change ..   values    theirs  that held one at least
//! event kinds          the game's  messages  theirs  as messages
//! overhead             what for    records   theirs  messages
//! ```
//!
//! Events are counted as they are handed to the connections: of unreliable ones a full queue drops the oldest, which
//! stays counted here.
//!
//! Counts only rise; `take` empties them. Rates are the reader's: it knows how long ago it took the last ones. A worker
//! may count into a `Traffic` of its own: adding up is the same in any order. Fixed memory: 24 B for each component
//! kind and cause, 2 KB at 16 kinds in all, and up to [`EVENT_ROWS_MAX`] rows for events, made when first used. Never
//! allocates after. Cost: 1-2 ns per encoded value, 5 ns per event.

use crate::wire::{
    event::EventId,
    schema::{ComponentIndex, KINDS_MAX, Schema},
};

/// Rows for events: kinds times the causes that the game names. What comes after is counted under the cause `other`, as
/// kind of its own.
pub const EVENT_ROWS_MAX: usize = 256;

/// Cause of events for which there are no rows left.
pub const OTHER: &str = "other";

/// Why a component went to a client.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// It changed, this tick.
    Change,
    /// With its entity: the client did not hold it before.
    Spawn,
    /// The packet that carried it last was lost.
    Resent,
    /// It changed before, and a tier, the range or the budget kept it back.
    Deferred,
    /// The client has moved far enough to be told all that waited for its turn.
    CatchUp,
    /// The client had not heard of it for long.
    Keepalive,
}

impl Cause {
    pub const ALL: [Self; 6] =
        [Self::Change, Self::Spawn, Self::Resent, Self::Deferred, Self::CatchUp, Self::Keepalive];

    /// As reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Spawn => "spawn",
            Self::Resent => "resent",
            Self::Deferred => "deferred",
            Self::CatchUp => "catch-up",
            Self::Keepalive => "keepalive",
        }
    }
}

const CAUSES_COUNT: usize = Cause::ALL.len();

/// What is no component and no event.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Overhead {
    /// Headers of snapshots, and of each record in them: slots, generations, masks.
    Snapshot,
    /// Records that say that an entity is gone. Bytes of a few, so counted with the rest of the headers, and here in
    /// number.
    Despawn,
    /// Exact values, for clients to hold their copies against.
    AuditSample,
    /// The game's own messages.
    Message,
    /// Everything around: acks, sealing, control.
    Transport,
}

impl Overhead {
    pub const ALL: [Self; 5] = [Self::Snapshot, Self::Despawn, Self::AuditSample, Self::Message, Self::Transport];

    /// As reports call it: the row's kind, and its cause.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Snapshot => ("snapshot", "headers"),
            Self::Despawn => ("snapshot", "despawn"),
            Self::AuditSample => ("audit", "sample"),
            Self::Message => ("message", "game"),
            Self::Transport => ("transport", "headers"),
        }
    }
}

/// What one row came to.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets, or messages in them, that held one at least.
    pub packets: u64,
    /// Before sealing.
    pub bytes: u64,
    /// Values, events or records.
    pub updates: u64,
}

impl Counts {
    pub fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.updates += other.updates;
    }

    fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct EventRow {
    /// `None` in the row of those without a row.
    kind: Option<EventId>,
    cause: &'static str,
    counts: Counts,
}

/// Counts of one world, or of one worker's part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    components: Box<[[Counts; CAUSES_COUNT]]>,
    overheads: [Counts; Overhead::ALL.len()],
    /// In the order in which they were first seen.
    events: Vec<EventRow>,
}

/// A row with its names, for reports.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TrafficRow {
    pub kind: &'static str,
    pub cause: &'static str,
    pub counts: Counts,
}

impl Traffic {
    /// Allocates all that components need.
    pub fn new(schema: &Schema) -> Self {
        Self {
            components: vec![[Counts::default(); CAUSES_COUNT]; schema.kinds_count().min(KINDS_MAX)].into(),
            overheads: Default::default(),
            events: Vec::new(),
        }
    }

    /// Counts encoded values of a component kind, and their bytes.
    #[inline]
    pub fn add(&mut self, kind: ComponentIndex, cause: Cause, updates: u64, bytes: u64) {
        let counts = &mut self.components[kind.index()][cause as usize];
        counts.updates += updates;
        counts.bytes += bytes;
    }

    /// Counts a packet that held encoded values of the kinds in `mask` for this cause.
    #[inline]
    pub fn add_packet(&mut self, mask: u16, cause: Cause) {
        let mut rest = mask;
        while rest != 0 {
            self.components[rest.trailing_zeros() as usize][cause as usize].packets += 1;
            rest &= rest - 1;
        }
    }

    /// Counts what is neither a component nor an event.
    #[inline]
    pub fn add_overhead(&mut self, overhead: Overhead, counts: Counts) {
        self.overheads[overhead as usize].add(counts);
    }

    /// Counts an event that was handed to so many clients' connections, in so many bytes each.
    pub fn add_event(&mut self, kind: EventId, cause: &'static str, clients: u64, bytes_each: u64) {
        self.event_row(Some(kind), cause).add(Counts {
            packets: clients,
            bytes: clients * bytes_each,
            updates: clients,
        });
    }

    /// Adds all of `other` and empties it. What has no row left goes to `other`'s.
    pub fn absorb(&mut self, other: &mut Self) {
        let pairs = self.components.iter_mut().flatten().zip(other.components.iter_mut().flatten());
        pairs.chain(self.overheads.iter_mut().zip(&mut other.overheads)).for_each(|(sum, counts)| {
            sum.add(std::mem::take(counts));
        });
        for index in 0..other.events.len() {
            let row = &mut other.events[index];
            let counts = std::mem::take(&mut row.counts);
            self.event_row(row.kind, row.cause).add(counts);
        }
    }

    /// Calls `row` for all that is not 0, and sets it to 0: components in the schema's order by cause, events in the
    /// order in which they were first told, then the rest. Allocates nothing.
    pub fn take(&mut self, schema: &Schema, mut row: impl FnMut(TrafficRow)) {
        let mut give = |kind, cause, counts: &mut Counts| {
            if !counts.is_zero() {
                row(TrafficRow { kind, cause, counts: std::mem::take(counts) });
            }
        };
        for (kind, causes) in schema.kinds().iter().zip(&mut self.components) {
            for (cause, counts) in Cause::ALL.iter().zip(causes) {
                give(kind.name, cause.name(), counts);
            }
        }
        for event in &mut self.events {
            let name = event.kind.map_or("event", |kind| schema.events()[kind.index()].name);
            give(name, event.cause, &mut event.counts);
        }
        for (overhead, counts) in Overhead::ALL.iter().zip(&mut self.overheads) {
            let (kind, cause) = overhead.names();
            give(kind, cause, counts);
        }
    }

    /// Everything together: what went out, but for what the transport adds unless it was counted, too.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        let rows = self.components.iter().flatten().chain(self.events.iter().map(|event| &event.counts));
        rows.chain(&self.overheads).for_each(|counts| total.add(*counts));
        total
    }

    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.components) + self.events.capacity() * size_of::<EventRow>()
    }

    fn event_row(&mut self, kind: Option<EventId>, cause: &'static str) -> &mut Counts {
        // Mostly few: a game has some ten kinds with a cause or two each. The same text may stand in several places of
        // a program.
        let is_row = |row: &EventRow| row.kind == kind && row.cause == cause;
        let index = self.events.iter().position(is_row).unwrap_or_else(|| {
            let is_full = self.events.len() >= EVENT_ROWS_MAX;
            let (kind, cause) = if is_full { (None, OTHER) } else { (kind, cause) };
            // One more than the maximum: the row of those without one.
            if is_full && let Some(last) = self.events.iter().position(|row| row.kind.is_none()) {
                return last;
            }
            self.events.push(EventRow { kind, cause, counts: Counts::default() });
            self.events.len() - 1
        });
        &mut self.events[index].counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::schema;

    fn rows(traffic: &mut Traffic) -> Vec<(&'static str, &'static str, [u64; 3])> {
        let mut rows = Vec::new();
        traffic.take(&schema(), |row| {
            rows.push((row.kind, row.cause, [row.counts.packets, row.counts.bytes, row.counts.updates]));
        });
        rows
    }

    #[test]
    fn what_was_counted_is_taken_once() {
        let mut traffic = Traffic::new(&schema());
        traffic.add(ComponentIndex(0), Cause::Change, 3, 21);
        traffic.add(ComponentIndex(0), Cause::Resent, 1, 7);
        traffic.add(ComponentIndex(1), Cause::Change, 1, 2);
        traffic.add_packet(0b11, Cause::Change);
        traffic.add_packet(0b01, Cause::Resent);
        traffic.add_overhead(Overhead::Snapshot, Counts { packets: 1, bytes: 13, updates: 4 });
        assert_eq!(traffic.total(), Counts { packets: 4, bytes: 43, updates: 9 });
        let expect = [
            ("Pose", "change", [1, 21, 3]),
            ("Pose", "resent", [1, 7, 1]),
            ("Health", "change", [1, 2, 1]),
            ("snapshot", "headers", [1, 13, 4]),
        ];
        assert_eq!(rows(&mut traffic), expect);
        assert_eq!(rows(&mut traffic), []);
    }

    #[test]
    fn parts_add_up_in_any_order() {
        let part = |seed: u64| {
            let mut traffic = Traffic::new(&schema());
            for step in 0..50 {
                let number = seed * 31 + step * 7;
                let cause = Cause::ALL[number as usize % CAUSES_COUNT];
                traffic.add(ComponentIndex((number % 3) as u8), cause, number % 5, number % 11);
                traffic.add_event(EventId((number % 4) as u8), ["a", "b"][number as usize % 2], number % 3, 9);
            }
            traffic
        };
        let sum = |order: [u64; 3]| {
            let mut sum = Traffic::new(&schema());
            order.map(part).iter_mut().for_each(|part| {
                sum.absorb(part);
                assert_eq!(part.total(), Counts::default());
            });
            let mut events = sum.events.clone();
            events.sort_by_key(|row| (row.kind, row.cause));
            (sum.total(), sum.components, events)
        };
        assert_eq!(sum([1, 2, 3]), sum([3, 1, 2]));
    }

    #[test]
    fn events_are_counted_by_kind_and_cause_up_to_a_maximum() {
        let mut traffic = Traffic::new(&schema());
        for index in 0..2 * EVENT_ROWS_MAX {
            let cause: &'static str = Box::leak(format!("cause.{index}").into_boxed_str());
            traffic.add_event(EventId(1), cause, 2, 10);
        }
        traffic.add_event(EventId(1), "cause.0", 1, 10);
        assert_eq!(traffic.events.len(), EVENT_ROWS_MAX + 1);
        assert_eq!(traffic.events[0].counts, Counts { packets: 3, bytes: 30, updates: 3 });
        let rest = 2 * EVENT_ROWS_MAX as u64;
        assert_eq!(traffic.events[EVENT_ROWS_MAX].counts, Counts { packets: rest, bytes: 10 * rest, updates: rest });
        assert_eq!(traffic.events[EVENT_ROWS_MAX].cause, OTHER);
    }
}
