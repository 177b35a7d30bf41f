//! Links: which ids the entities have that components refer to.
//!
//! A component says which entity it refers to, the world which id that one has. So a component with links is cloned and
//! the ids are entered before it is encoded: here, by the entities' [`Replicated`]. When an entity gets an id or loses it,
//! whatever has links is looked at again, and told where its bytes have changed. An event is told once, with the ids as
//! they stand then.

use bevy_ecs::prelude::*;

use crate::{
    ecs::replicated::Replicated,
    wire::{
        event::{EVENT_BYTES_MAX, EventId, ReplicatedEvent, write_event},
        link::EntityLink,
        replicate::Replicate,
    },
};

impl EntityLink {
    /// On the server: a link to `entity`, replicated or not.
    pub fn to(entity: Entity) -> Self {
        Self { entity_bits: Some(entity.to_bits()), id: None }
    }

    /// On the server: the entity that it was made from.
    pub fn entity(&self) -> Option<Entity> {
        self.entity_bits.and_then(Entity::try_from_bits)
    }
}

impl From<Entity> for EntityLink {
    fn from(entity: Entity) -> Self {
        Self::to(entity)
    }
}

/// Writes an event's message as [`write_event`] does, with the ids of the entities that it refers to: after `collect`,
/// which gives ids to those that are new.
pub fn write_event_in<T: ReplicatedEvent>(
    world: &World,
    id: EventId,
    event: &T,
    out: &mut [u8; EVENT_BYTES_MAX],
) -> usize {
    with_ids(world, event, |told| write_event(id, told, out))
}

/// Hands `then` the value as it goes to clients: with the ids of the entities that it refers to.
pub(crate) fn with_ids<T: Replicate, R>(world: &World, value: &T, then: impl FnOnce(&T) -> R) -> R {
    if !T::LINKS {
        return then(value);
    }
    let mut told = value.clone();
    told.visit_links(&mut |link| {
        if let Some(entity) = link.entity() {
            link.id = world.get::<Replicated>(entity).and_then(Replicated::id);
        }
    });
    then(&told)
}
