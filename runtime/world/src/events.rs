//! Events: what happens once in a world and is told to those who are to hear it.
//!
//! A system says what happened and to whom it matters; after the tick's systems the world's own thread works out who
//! that is and puts the message, encoded once, into their connections' queues. It leaves with this tick's packets. No
//! byte about an entity goes to a client to whom that entity is not relevant: say [`Audience::Around`] when an event is
//! about one.
//!
//! What is relevant is what interest found when it last looked for that client: up to `period_ticks` ago, twice that
//! for a client that stands still. So an event around something that has just come into view may not be heard. One
//! around who is owner-only or visibility-filtered from a client as of this tick is not heard by it any more. But a
//! reliable event that was sent before its subject was hidden may be sent again afterwards, if it was lost: it told of
//! a time at which the client could know.
//!
//! An event is written when it is said. One with links to entities ([`EntityLink`](throng_replication::EntityLink)) is
//! kept as a value until it is delivered, since an entity that was spawned in this tick has no id before: see `unwritten`.
//!
//! Allocates nothing in a steady tick. Cost: some 20 ns to encode, and for each event a look at the clients near it.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use throng_replication::{
    EVENT_BYTES_MAX, EVENT_HEADER_BYTES, EventId, ReplicatedEvent, Schema, table_resource, waits_for_ids, write_event,
};

use crate::{ids::ClientKey, unwritten::Unwritten};

/// Who hears an event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Audience {
    /// All clients of this world.
    Everyone,
    /// Clients within the kind's range of a place (m). Not for events about an entity: they would tell of a hidden one.
    Near([f32; 2]),
    /// Clients within the kind's range of an entity's place to whom that entity is relevant, as interest last found it:
    /// who has just come into view may not be heard. An entity without a place has no range.
    Around(Entity),
    /// Clients of a team.
    Team(u16),
    /// One client. One that has left is no mistake.
    Client(ClientKey),
}

/// An event that waits to be delivered.
pub(crate) struct Said {
    pub kind: EventId,
    pub audience: Audience,
    /// For the packet report: what the game did that made it say this.
    pub cause: &'static str,
    /// Where its message lies in `bytes`.
    begin: usize,
    end: usize,
}

/// What was told since the last delivery.
#[derive(Default)]
pub(crate) struct Told {
    bytes: Vec<u8>,
    said: Vec<Said>,
    /// Those of which only the place in `bytes` is there.
    unwritten: Unwritten,
}

/// What this world tells once. Delivered after the tick's systems, in order.
pub struct Events {
    schema: Arc<Schema>,
    /// Taken out while it is delivered, and given back for its memory.
    pub(crate) told: Told,
}

table_resource!(Events);

impl Events {
    pub(crate) fn new(schema: Arc<Schema>) -> Self {
        Self { schema, told: Told::default() }
    }

    /// Tells `event` to `audience`, with this tick's packets. `cause` names what the game did, dotted and constant,
    /// such as `combat.melee`; the packet report adds up by it. A reliable one that was lost is sent again, even if its
    /// subject has been hidden since.
    ///
    /// # Panics
    /// If `T` is not in the server's schema: the program's own mistake.
    pub fn send<T: ReplicatedEvent>(&mut self, event: &T, audience: Audience, cause: &'static str) {
        let Some(kind) = self.schema.event_of::<T>() else {
            panic!("`{}` is told here but is not in the schema: add `.event::<{0}>()` to it", T::NAME)
        };
        let Told { bytes, said, unwritten } = &mut self.told;
        let begin = bytes.len();
        if waits_for_ids(event) {
            unwritten.keep(said.len(), event);
            bytes.resize(begin + EVENT_HEADER_BYTES + T::BYTES_MAX, 0);
        } else {
            let mut message = [0; EVENT_BYTES_MAX];
            let len = write_event(kind, event, &mut message);
            bytes.extend_from_slice(&message[..len]);
        }
        said.push(Said { kind, audience, cause, begin, end: bytes.len() });
    }
}

impl Told {
    pub(crate) fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// Writes what waited for the ids of entities, which they have by now if they are replicated.
    pub(crate) fn enter_ids(&mut self, ecs: &World) {
        let Self { bytes, said, unwritten } = self;
        unwritten.write_all(ecs, &mut |place, write| {
            let Said { kind, begin, end, .. } = &mut said[place];
            let mut message = [0; EVENT_BYTES_MAX];
            let len = write(*kind, &mut message);
            *end = *begin + len;
            bytes[*begin..*end].copy_from_slice(&message[..len]);
        });
    }

    /// Each event with its message, whose epoch is still to be set.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&Said, &mut [u8])> {
        let mut rest = &mut self.bytes[..];
        let mut passed = 0;
        self.said.iter().map(move |said| {
            let (_, from) = std::mem::take(&mut rest).split_at_mut(said.begin - passed);
            let (message, later) = from.split_at_mut(said.end - said.begin);
            (rest, passed) = (later, said.end);
            (said, message)
        })
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.said.clear();
        self.unwritten.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_replication::{EntityLink, EventIn, NetId, Replicate, SchemaBuilder};

    #[derive(Clone, Debug, PartialEq, Replicate)]
    struct Blow(u8);

    impl ReplicatedEvent for Blow {
        const RELIABLE: bool = false;
        const RANGE_M: Option<f32> = Some(50.0);
    }

    #[derive(Clone, Debug, PartialEq, Replicate)]
    struct Pointed {
        by: u8,
        at: Option<EntityLink>,
    }

    impl ReplicatedEvent for Pointed {
        const RELIABLE: bool = false;
        const RANGE_M: Option<f32> = None;
    }

    #[derive(Clone, Debug, PartialEq, Replicate)]
    struct Unheard;

    impl ReplicatedEvent for Unheard {
        const RELIABLE: bool = false;
        const RANGE_M: Option<f32> = None;
    }

    fn events() -> Events {
        Events::new(SchemaBuilder::new().event::<Blow>().event::<Pointed>().build())
    }

    #[test]
    fn what_was_said_is_delivered_whole_and_in_order() {
        let mut events = events();
        events.send(&Blow(7), Audience::Everyone, "combat.melee");
        events.send(&Blow(8), Audience::Near([1.0, 2.0]), "combat.spell");
        let told: Vec<_> = events
            .told
            .iter_mut()
            .map(|(said, message)| {
                message[1] = 3;
                let event = EventIn::split(message).unwrap();
                (said.cause, said.audience, event.epoch, event.decode::<Blow>().unwrap().0)
            })
            .collect();
        let expect = [("combat.melee", Audience::Everyone, 3, 7), ("combat.spell", Audience::Near([1.0, 2.0]), 3, 8)];
        assert_eq!(told, expect);
        events.told.clear();
        assert!(events.told.is_empty());
    }

    /// One that waits for ids takes its place among the others, and the room that it turns out to need.
    #[test]
    fn what_waits_for_ids_is_told_in_its_place() {
        let mut events = events();
        let mut ecs = World::new();
        let unreplicated = EntityLink::to(ecs.spawn_empty().id());
        let known = EntityLink::from(NetId { slot: 7, generation: 1 });
        for tick in 0..2 {
            for (by, at) in [(1, Some(unreplicated)), (2, Some(known)), (3, None), (4, Some(unreplicated))] {
                events.send(&Pointed { by: by + tick, at }, Audience::Everyone, "test");
                events.send(&Blow(by), Audience::Everyone, "test");
            }
            events.told.enter_ids(&ecs);
            let mut pointed = Vec::new();
            for (said, message) in events.told.iter_mut() {
                let event = EventIn::split(message).unwrap();
                if said.kind.index() == 0 {
                    event.decode::<Blow>().unwrap();
                } else {
                    pointed.push(event.decode::<Pointed>().unwrap());
                }
            }
            let nobody = Some(EntityLink::NONE);
            let expect = [(1, nobody), (2, Some(known)), (3, None), (4, nobody)];
            assert_eq!(pointed, expect.map(|(by, at)| Pointed { by: by + tick, at }));
            events.told.clear();
        }
    }

    #[test]
    #[should_panic(expected = "`Unheard` is told here but is not in the schema")]
    fn a_kind_that_is_not_in_the_schema_is_named() {
        events().send(&Unheard, Audience::Everyone, "test");
    }
}
