//! Entry: what a view knows of one slot, cut by how often it is read (`view`).

use crate::{
    source::rings::RINGS_MAX,
    view::traffic::Cause,
    wire::ids::{NetId, SLOTS_MAX},
};

/// After the last slot.
pub(crate) const END: u32 = u32::MAX;

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

/// One slot of a view.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Entry {
    pub slot: u32,
    /// Components that the client is owed. What changed this tick is in it for entries that are not plain only.
    pub owed: u16,
    pub generation: u8,
    pub state: State,
    /// Its existence is owed: a spawn with all there is, or a despawn.
    pub existence: bool,
    /// Whether the client may hold something in this slot, be it an owner before this one.
    pub held: bool,
    /// In which ring around the client it was when interest looked last.
    pub ring: u8,
    /// For the packet report: why components are owed that changed before this tick.
    pub cause: Cause,
}

/// An entry as plain updates see it: 4 bytes instead of all the rest.
///
/// ```text
/// bit   31         25..20   19..0
///       not plain  ring     slot
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key(u32);

const _: () = assert!(SLOTS_MAX <= 1 << 20 && RINGS_MAX <= 32);

impl Key {
    pub const NONE: Self = Self(1 << 31);

    pub fn new(entry: &Entry) -> Self {
        let not_plain = u32::from(entry.state != State::Known || entry.is_owed_anything());
        Self(entry.slot | u32::from(entry.ring) << 20 | not_plain << 31)
    }

    #[inline]
    pub fn slot(self) -> u32 {
        self.0 & 0xF_FFFF
    }

    #[inline]
    pub fn ring(self) -> usize {
        (self.0 >> 20 & 0x1F) as usize
    }

    /// The client holds it, and is owed nothing but what changed this tick.
    #[inline]
    pub fn is_plain(self) -> bool {
        self.0 >> 31 == 0
    }
}

/// The part of an entry that is seldom read.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct EntryCold {
    /// Unanswered packets that carried a spawn of this entry: bit `sequence % 64`.
    pub spawn_packets: u64,
    /// Grows while the entry is owed something and the budget does not reach it.
    pub priority: f32,
    /// Tick in which it came into its ring.
    pub ring_since: u32,
}

impl Entry {
    pub fn new(slot: u32, generation: u8, present: u16) -> Self {
        Self {
            slot,
            owed: present,
            generation,
            state: State::New,
            existence: true,
            held: false,
            ring: 0,
            cause: Cause::Change,
        }
    }

    pub fn id(&self) -> NetId {
        NetId { slot: self.slot, generation: self.generation }
    }

    pub fn is_relevant(&self) -> bool {
        matches!(self.state, State::New | State::Sent | State::Known)
    }

    /// The client holds it: whatever it is owed goes as an update, neither as a spawn nor as a despawn.
    #[inline]
    pub fn takes_updates(&self) -> bool {
        self.state == State::Known && !self.existence
    }

    #[inline]
    pub fn is_owed_anything(&self) -> bool {
        self.owed != 0 || self.existence
    }
}
