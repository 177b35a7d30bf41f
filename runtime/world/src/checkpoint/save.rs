//! Save: a world's state into bytes, in one pass.
//!
//! Entities go set of components by set, row by row. So a world that is made from the bytes has them in the same rows.

use bevy_ecs::{
    archetype::Archetype,
    component::ComponentId,
    entity::Entity,
    resource::IsResource,
    world::{EntityRef, World},
};

use super::{
    engine_types::REPLICATED,
    entity_ids::FreeIds,
    error::CheckpointError,
    heading::{CHECKPOINT_BYTES_MAX, CheckpointHeading, HEADING_BYTES},
    layout::{write_entity, write_value, write_varint},
    parts::{Parts, PlayerEntities},
    random,
};
use crate::{
    inbox::Inbox,
    players::Row,
    tick_resources::{Departures, MayBeDormant, Outbox, WorldRng},
};

/// Appends a checkpoint to `out`, which is as it was after an error. Returns a checksum of what the game can tell of it: without
/// the ids that clients know entities by, which are given again when clients have heard of it, and those of entities to come.
pub(crate) fn save(parts: &mut Parts<'_>, players: PlayerEntities, out: &mut Vec<u8>) -> Result<u32, CheckpointError> {
    let begin = out.len();
    let saved = write(parts, players, out);
    if saved.is_err() {
        out.truncate(begin);
    }
    saved
}

fn write(parts: &mut Parts<'_>, players: PlayerEntities, out: &mut Vec<u8>) -> Result<u32, CheckpointError> {
    if !parts.registry.is_in_use() {
        return Err(CheckpointError::NothingRegistered { kind: parts.name.into() });
    }
    let begin = out.len();
    out.resize(begin + HEADING_BYTES, 0);
    let free = FreeIds::of(parts.ecs);
    // Their indices are in no list and are never given again: nobody must take an old reference for a new entity.
    let mut left_out: Vec<Entity> = Vec::new();
    if players == PlayerEntities::LeftOut {
        left_out = parts.ecs.resource::<Inbox>().players.iter().filter_map(|(_, own)| own).collect();
        left_out.sort_unstable();
    }
    write_world(parts, out)?;
    let kept = &parts.registry.kept;
    write_varint(kept.len() as u64, out);
    for kept in kept {
        let name = kept.schema().name.as_bytes();
        write_varint(name.len() as u64, out);
        out.extend_from_slice(name);
        kept.write_heading(out);
    }
    let world = &*parts.ecs;
    // Which kept types are known to this world at all.
    let ids: Vec<Option<ComponentId>> = kept.iter().map(|kept| kept.component_id(world)).collect();
    write_resources(parts, &ids, out)?;
    let mut crc = crc32fast::Hasher::new();
    crc.update(&out[begin + HEADING_BYTES..]);
    write_entities(parts, &ids, &left_out, begin, (out, &mut crc))?;
    write_free(&free, out);
    write_replicated_ids(parts, out);
    write_players(parts.ecs, players, out);
    if out.len() - begin > CHECKPOINT_BYTES_MAX {
        return Err(CheckpointError::TooLarge { bytes_max: CHECKPOINT_BYTES_MAX });
    }
    CheckpointHeading { players }.write(begin, out);
    Ok(crc.finalize())
}

fn write_world(parts: &Parts<'_>, out: &mut Vec<u8>) -> Result<(), CheckpointError> {
    write_varint(parts.name.len() as u64, out);
    out.extend_from_slice(parts.name.as_bytes());
    out.extend_from_slice(&parts.rate.0.to_le_bytes());
    out.extend_from_slice(&parts.tick.to_le_bytes());
    let state = random::state(&parts.ecs.resource::<WorldRng>().0).ok_or(CheckpointError::Random)?;
    state.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    out.push(parts.ecs.resource::<MayBeDormant>().0.into());
    out.extend_from_slice(&parts.ecs.resource::<Outbox>().saves.newest.to_le_bytes());
    Ok(())
}

fn write_resources(parts: &Parts<'_>, ids: &[Option<ComponentId>], out: &mut Vec<u8>) -> Result<(), CheckpointError> {
    let world = &*parts.ecs;
    let of = |id: &Option<ComponentId>| world.get_entity(world.resource_entities().get((*id)?)?).ok();
    let present = || ids.iter().enumerate().filter_map(|(number, id)| Some((number, of(id)?)));
    let holding = || present().filter(|(number, entity)| ids[*number].is_some_and(|id| entity.contains_id(id)));
    write_varint(holding().count() as u64, out);
    for (number, entity) in holding() {
        write_varint(number as u64, out);
        write_entity(entity.id(), out);
        write_value(out, |out| parts.registry.kept[number].pack(entity, out))?;
    }
    Ok(())
}

/// Sets of components that hold entities which are kept.
pub(super) fn kept_archetypes<'w>(
    world: &'w World,
    ids: &[Option<ComponentId>],
) -> impl Iterator<Item = &'w Archetype> + use<'w> {
    let is_resource = world.components().component_id::<IsResource>();
    let ids: Vec<ComponentId> = ids.iter().flatten().copied().collect();
    world.archetypes().iter().filter(move |archetype| {
        !archetype.is_empty()
            && !is_resource.is_some_and(|id| archetype.contains(id))
            && ids.iter().any(|id| archetype.contains(*id))
    })
}

fn write_entities(
    parts: &Parts<'_>,
    ids: &[Option<ComponentId>],
    left_out: &[Entity],
    begin: usize,
    (out, crc): (&mut Vec<u8>, &mut crc32fast::Hasher),
) -> Result<(), CheckpointError> {
    let world = &*parts.ecs;
    let stays = |entity: &Entity| left_out.binary_search(entity).is_err();
    let holds = |archetype: &Archetype, id: &Option<ComponentId>| id.is_some_and(|id| archetype.contains(id));
    // By what they hold: one state has one checkpoint, whichever set came into being first.
    let mut archetypes: Vec<&Archetype> = kept_archetypes(world, ids).collect();
    archetypes.sort_by(|a, b| ids.iter().map(|id| holds(b, id)).cmp(ids.iter().map(|id| holds(a, id))));
    for archetype in archetypes {
        let entities = || archetype.entities().iter().map(|at| at.id()).filter(stays);
        let count = entities().count();
        if count == 0 {
            continue;
        }
        let mut summed = out.len();
        write_varint(count as u64, out);
        let held = || ids.iter().enumerate().filter(|(_, id)| holds(archetype, id));
        write_varint(held().count() as u64, out);
        held().for_each(|(number, _)| write_varint(number as u64, out));
        for entity in entities() {
            write_entity(entity, out);
            let entity: EntityRef<'_> = world.entity(entity);
            for (number, _) in held() {
                if number == REPLICATED {
                    crc.update(&out[summed..]);
                }
                write_value(out, |out| parts.registry.kept[number].pack(entity, out))?;
                if number == REPLICATED {
                    summed = out.len();
                }
            }
            if out.len() - begin > CHECKPOINT_BYTES_MAX {
                return Err(CheckpointError::TooLarge { bytes_max: CHECKPOINT_BYTES_MAX });
            }
        }
        crc.update(&out[summed..]);
    }
    write_varint(0, out);
    Ok(())
}

fn write_free(free: &FreeIds, out: &mut Vec<u8>) {
    write_varint(free.unused.into(), out);
    for list in [&free.shared, &free.recent] {
        write_varint(list.len() as u64, out);
        list.iter().for_each(|entity| write_entity(*entity, out));
    }
}

fn write_replicated_ids(parts: &Parts<'_>, out: &mut Vec<u8>) {
    let slots = parts.replication.slot_generations();
    write_varint(slots.len() as u64, out);
    out.extend(slots);
    let free = parts.replication.free_slots();
    write_varint(free.len() as u64, out);
    free.for_each(|slot| write_varint(slot.into(), out));
}

fn write_players(world: &World, players: PlayerEntities, out: &mut Vec<u8>) {
    if players == PlayerEntities::LeftOut {
        write_varint(0, out);
        write_varint(0, out);
        return;
    }
    let rows = world.resource::<Inbox>().players.rows();
    write_varint(rows.len() as u64, out);
    for Row { client, entity, team } in rows {
        write_varint(client.0.into(), out);
        out.push(entity.is_some().into());
        if let Some(entity) = entity {
            write_entity(*entity, out);
        }
        out.push(team.is_some().into());
        if let Some(team) = team {
            write_varint((*team).into(), out);
        }
    }
    let departures = &world.resource::<Departures>().0;
    write_varint(departures.len() as u64, out);
    departures.iter().for_each(|client| write_varint(client.0.into(), out));
}
