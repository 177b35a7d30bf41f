//! Links: which ids the entities have that components refer to.
//!
//! A component says which entity it refers to, the world which id that one has. So a component with links is cloned and
//! the ids are entered before it is encoded: here, by the entities' [`Replicated`]. When an entity gets an id or loses it,
//! whatever has links is looked at again, and told where its bytes have changed. An event is told once, with the ids as
//! they stand then.

use bevy_ecs::{
    entity::{EntityGeneration, EntityIndex},
    prelude::*,
};
use throng_pack::{Fault, Kind, Pack, PackError};

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

/// In a checkpoint: the entity as its world calls it, and 0 for nobody. Of a client's link nothing is left.
impl Pack for EntityLink {
    const KIND: Kind = u64::KIND;
    const BYTES_MIN: usize = u64::BYTES_MIN;
    const BYTES_MAX: usize = u64::BYTES_MAX;

    fn pack(&self, out: &mut throng_pack::Writer<'_>) -> Result<(), PackError> {
        let number = |entity: Entity| {
            u64::from(entity.generation().to_bits()) << 32 | u64::from(entity.index_u32().wrapping_add(1))
        };
        self.entity().map_or(0, number).pack(out)
    }

    fn unpack(from: &mut throng_pack::Reader<'_>) -> Result<Self, PackError> {
        let number = u64::unpack(from)?;
        if number == 0 {
            return Ok(Self::NONE);
        }
        let index = (number as u32).checked_sub(1).and_then(EntityIndex::from_raw_u32).ok_or(Fault::OutOfRange)?;
        let generation = EntityGeneration::from_bits((number >> 32) as u32);
        Ok(Self::to(Entity::from_index_and_generation(index, generation)))
    }
}

/// A link to nobody is no entity: so a field of a packed value may be an `Entity`, with `#[pack(via = EntityLink)]`.
impl TryFrom<EntityLink> for Entity {
    type Error = NoEntity;

    fn try_from(link: EntityLink) -> Result<Self, NoEntity> {
        link.entity().ok_or(NoEntity)
    }
}

/// The link refers to nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the link refers to nobody")]
pub struct NoEntity;

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
