//! Event: a one-off replicated message, such as a line said or a blow struck.
//!
//! A component has a value that clients hold a copy of; an event happens once and is over. It is encoded once, whoever
//! hears it, and goes out with the tick that it happened in:
//!
//! ```text
//! byte   0      1       2      3..
//!        +------+-------+------+----------------------+
//!        | 4    | epoch | kind | quantised bytes      |    reliable and in order, or unreliable: as its kind says
//!        +------+-------+------+----------------------+
//! ```
//!
//! `kind` is the place in the schema. Who hears it is the server's part; a client trusts nothing of the bytes.
//! Runs on the world's thread. Allocates nothing. Cost: some 20 ns to encode, one copy per client.

use std::any::TypeId;

use crate::wire::{
    bytes::{DecodeError, Reader, Writer},
    quantise::mix,
    replicate::Replicate,
    shape::FieldShape,
};

/// First byte of an event message.
pub const EVENT_KIND: u8 = 4;

/// Kind byte, epoch, event kind.
pub const EVENT_HEADER_BYTES: usize = 3;

/// Longest event message.
pub const EVENT_BYTES_MAX: usize = EVENT_HEADER_BYTES + 255;

/// What happens once and is told to those who are near enough. `NAME`, of [`Replicate`], is dotted: `chat.say`.
pub trait ReplicatedEvent: Replicate {
    /// Whether a lost one is sent again, in order with the other reliable messages.
    const RELIABLE: bool;
    /// How far it is heard, unless the rules say otherwise (m, > 0); `None`: in the whole world.
    const RANGE_M: Option<f32>;
}

/// An event kind's place in the schema.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub(crate) u8);

impl EventId {
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// What the schema knows of an event kind.
#[derive(Clone, Copy)]
pub struct EventKind {
    type_id: TypeId,
    pub name: &'static str,
    pub reliable: bool,
    /// See [`ReplicatedEvent::RANGE_M`].
    pub range_m: Option<f32>,
    layout: u64,
    bytes_max: usize,
    shape: fn() -> FieldShape,
}

impl EventKind {
    pub(crate) fn of<T: ReplicatedEvent>() -> Self {
        Self {
            type_id: TypeId::of::<T>(),
            name: T::NAME,
            reliable: T::RELIABLE,
            range_m: T::RANGE_M,
            layout: T::LAYOUT,
            bytes_max: T::BYTES_MAX,
            shape: T::shape,
        }
    }

    /// What it is made of. Allocates.
    pub fn shape(&self) -> FieldShape {
        (self.shape)()
    }

    pub(crate) fn is<T: ReplicatedEvent>(&self) -> bool {
        self.type_id == TypeId::of::<T>()
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.type_id == other.type_id
    }

    /// Folds all that both ends must agree on into the schema's hash. Ranges are the server's alone.
    pub(crate) fn mix_into(&self, hash: u64) -> u64 {
        let named = self.name.bytes().fold(mix(hash, 6), |hash, byte| mix(hash, byte.into()));
        mix(mix(named, (self.bytes_max << 1 | usize::from(self.reliable)) as u64), self.layout)
    }
}

/// Writes an event's message, but for its epoch, which differs from client to client, and returns its length. Links that
/// [wait for ids](waits_for_ids) go as ones to nobody: see [`write_event_in`](crate::ecs::write_event_in).
pub fn write_event<T: ReplicatedEvent>(id: EventId, event: &T, out: &mut [u8; EVENT_BYTES_MAX]) -> usize {
    out[..EVENT_HEADER_BYTES].copy_from_slice(&[EVENT_KIND, 0, id.0]);
    let mut writer = Writer::new(&mut out[EVENT_HEADER_BYTES..]);
    event.encode(&mut writer);
    debug_assert!(writer.len() <= T::BYTES_MAX, "`{}` wrote more than BYTES_MAX", T::NAME);
    EVENT_HEADER_BYTES + writer.len()
}

/// Whether it has a link that was made from an entity, whose id only the entity's world knows, and not before the end of
/// the entity's first tick.
pub fn waits_for_ids<T: ReplicatedEvent>(event: &T) -> bool {
    let mut waits = false;
    if T::LINKS {
        event.clone().visit_links(&mut |link| waits |= link.entity_bits.is_some() && link.id.is_none());
    }
    waits
}

/// An event that came in, not yet looked into.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct EventIn<'a> {
    pub epoch: u8,
    pub id: EventId,
    bytes: &'a [u8],
}

impl<'a> EventIn<'a> {
    /// Splits a message. `None` if it is none of an event.
    pub fn split(message: &'a [u8]) -> Option<Self> {
        match message {
            [EVENT_KIND, epoch, kind, bytes @ ..] => Some(Self { epoch: *epoch, id: EventId(*kind), bytes }),
            _ => None,
        }
    }

    /// Reads it as `T`, which the caller has found by its id; bytes after the end are an error.
    pub fn decode<T: ReplicatedEvent>(&self) -> Result<T, DecodeError> {
        let mut from = Reader::new(self.bytes);
        let event = T::decode(&mut from)?;
        if from.is_at_end() { Ok(event) } else { Err(DecodeError::TrailingBytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Replicate, Text,
        wire::{ids::NetId, link::EntityLink, schema::SchemaBuilder},
    };

    #[derive(Clone, Debug, PartialEq, Replicate)]
    #[replicate(name = "chat.say")]
    struct Say {
        speaker: NetId,
        words: Text<40>,
    }

    impl ReplicatedEvent for Say {
        const RELIABLE: bool = true;
        const RANGE_M: Option<f32> = Some(15.0);
    }

    #[derive(Clone, Debug, PartialEq, Replicate)]
    struct Bang(u8);

    impl ReplicatedEvent for Bang {
        const RELIABLE: bool = false;
        const RANGE_M: Option<f32> = None;
    }

    #[test]
    fn an_event_comes_back_as_it_went_in_and_nothing_else_does() {
        let schema = SchemaBuilder::new().event::<Bang>().event::<Say>().build();
        let id = schema.event_of::<Say>().unwrap();
        assert_eq!((id.index(), schema.events()[1].name, schema.events()[1].reliable), (1, "chat.say", true));
        let say = Say { speaker: NetId { slot: 70_000, generation: 3 }, words: Text::new("well met").unwrap() };
        let mut out = [0; EVENT_BYTES_MAX];
        let len = write_event(id, &say, &mut out);
        let event = EventIn::split(&out[..len]).unwrap();
        assert_eq!((event.id, event.decode::<Say>()), (id, Ok(say)));
        for cut in EVENT_HEADER_BYTES..len {
            assert!(EventIn::split(&out[..cut]).unwrap().decode::<Say>().is_err(), "{cut} of {len} bytes");
        }
        assert_eq!(EventIn::split(&out[..=len]).unwrap().decode::<Say>(), Err(DecodeError::TrailingBytes));
        assert_eq!(EventIn::split(&[2, 0, 0]), None);
    }

    #[derive(Clone, Debug, PartialEq, Replicate)]
    struct Pointed(Option<EntityLink>);

    impl ReplicatedEvent for Pointed {
        const RELIABLE: bool = false;
        const RANGE_M: Option<f32> = None;
    }

    #[test]
    fn a_link_that_was_made_from_an_entity_waits_for_its_id() {
        let schema = SchemaBuilder::new().event::<Pointed>().build();
        let id = schema.event_of::<Pointed>().unwrap();
        for link in [None, Some(EntityLink::NONE), Some(NetId { slot: 9, generation: 2 }.into())] {
            let mut out = [0; EVENT_BYTES_MAX];
            let len = write_event(id, &Pointed(link), &mut out);
            assert_eq!(EventIn::split(&out[..len]).unwrap().decode::<Pointed>(), Ok(Pointed(link)));
            assert!(!waits_for_ids(&Pointed(link)));
        }
        let link = EntityLink { entity_bits: Some(1), id: None };
        assert!(waits_for_ids(&Pointed(Some(link))));
    }

    #[test]
    fn programs_with_other_events_do_not_understand_each_other() {
        let hash = |builder: SchemaBuilder| builder.build().hash();
        let one = hash(SchemaBuilder::new().event::<Say>());
        assert_ne!(one, hash(SchemaBuilder::new()));
        assert_ne!(one, hash(SchemaBuilder::new().event::<Say>().event::<Bang>()));
        assert_ne!(
            hash(SchemaBuilder::new().event::<Bang>().event::<Say>()),
            hash(SchemaBuilder::new().event::<Say>().event::<Bang>())
        );
    }
}
