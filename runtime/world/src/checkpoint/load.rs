//! Load: a world that was just built becomes the one that a checkpoint is of.
//!
//! Believes nothing: counts size no allocation, ids are held against each other, and each value says itself whether it is
//! one. After an error the world is of no use.
//!
//! An entity gets its components one by one, beside a mark that no kept set of components has; when that is taken off, the
//! set comes into being, if it is new, and the entity takes its row in it. So sets and their rows come in the order of the
//! checkpoint, whatever was passed through on the way.

use bevy_ecs::{component::ComponentId, entity::Entity};
use throng_pack::{Fault, Reader, envelope::Heading};
use throng_replication::NetId;

use super::{
    engine_types::{REPLICATED, SavedReplicated},
    entity_ids::{FreeIds, RECENT_MAX, age},
    error::LoadError,
    heading::CheckpointHeading,
    layout::{read_entity, read_u32, read_value},
    parts::{Loaded, Parts, PlayerEntities},
    random,
    registry::Loading,
    save::kept_archetypes,
};
use crate::{
    ids::ClientKey,
    inbox::Inbox,
    players::Row,
    tick_resources::{Departures, MayBeDormant, WorldRng},
};

/// How many indices may belong to entities that are not in a checkpoint: resources, observers, and what a game does not
/// keep.
const UNKNOWN_INDICES_MAX: u64 = 1 << 20;

/// How often indices may have been used again, all together: 0.1 µs each are 6 s of loading then. 64 million are a week
/// at 100 entities a second.
const GENERATIONS_MAX: u32 = 1 << 26;

/// Which registered type each of the checkpoint's types is; none: the kind has dropped it.
struct Types(Vec<(Heading, Option<usize>)>);

/// Makes `parts` the world that was saved in `bytes`.
pub(crate) fn load(parts: &mut Parts<'_>, bytes: &[u8], players: PlayerEntities) -> Result<Loaded, LoadError> {
    let (heading, body) = CheckpointHeading::read(bytes)?;
    if parts.tick != 0 {
        return Err(LoadError::HasTicked);
    }
    let mut from = Reader::new(body);
    let World { tick, rng, may_be_dormant, save_requests } = read_world(parts, &mut from)?;
    let types = read_types(parts, &mut from)?;
    // All ids first: values may refer to entities that come later, and none of theirs must be given to anybody else.
    let values_begin = body.len() - from.remaining_bytes();
    let outline = Outline::read(&types, &mut from)?;
    from.end()?;
    let mut from = Reader::new(&body[values_begin..]);
    outline.make_room(parts)?;
    read_resources(parts, &types, &mut from)?;
    let ids = read_entities(parts, &types, &mut from)?;
    parts.ecs.flush();
    let Outline { slot_generations, free_slots, players: rows, departures, .. } = outline;
    let Parts { ecs, collector, replication, .. } = parts;
    if !collector.restore(ecs, replication, tick.saturating_sub(1), slot_generations, &free_slots, &ids) {
        return Err(LoadError::ReplicatedIds);
    }
    ecs.resource_mut::<WorldRng>().0 = rng;
    ecs.resource_mut::<MayBeDormant>().0 = may_be_dormant;
    let mut loaded = Loaded { tick, save_requests, has_departures: !departures.is_empty(), left_out: Vec::new() };
    if players == PlayerEntities::LeftOut && heading.players == PlayerEntities::Stay {
        // Who was on the way out has been seen to it by nobody: to the systems all are gone alike.
        loaded.has_departures = false;
        for Row { client, entity, .. } in rows {
            loaded.left_out.push(client);
            if let Some(entity) = entity {
                ecs.despawn(entity);
            }
        }
    } else {
        let players = &mut ecs.resource_mut::<Inbox>().players;
        for Row { client, entity, team } in rows {
            players.arrive(client);
            entity.into_iter().for_each(|entity| players.set(client, entity));
            players.set_team(client, team);
        }
        departures.iter().for_each(|client| players.depart(*client));
        ecs.resource_mut::<Departures>().0 = departures;
    }
    Ok(loaded)
}

/// What a checkpoint says of its world as a whole.
struct World {
    tick: u32,
    rng: rand_xoshiro::Xoshiro256PlusPlus,
    may_be_dormant: bool,
    save_requests: u32,
}

fn read_world(parts: &Parts<'_>, from: &mut Reader<'_>) -> Result<World, LoadError> {
    let name = read_value(from)?;
    if name != parts.name.as_bytes() {
        let got = String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned();
        return Err(LoadError::OtherKind { got, kind: parts.name.into() });
    }
    let got = u16::from_le_bytes(from.array()?);
    if got != parts.rate.0 {
        return Err(LoadError::OtherRate { got, rate: parts.rate.0 });
    }
    let tick = u32::from_le_bytes(from.array()?);
    let state = [from.array()?, from.array()?, from.array()?, from.array()?].map(u64::from_le_bytes);
    let (may_be_dormant, save_requests) = (from.flag()?, u32::from_le_bytes(from.array()?));
    Ok(World { tick, rng: random::restore(state), may_be_dormant, save_requests })
}

fn read_types(parts: &Parts<'_>, from: &mut Reader<'_>) -> Result<Types, LoadError> {
    let mut types = Vec::new();
    for _ in 0..from.varint()? {
        let (name, heading) = (read_value(from)?, Heading::read(from)?);
        let mut kept = parts.registry.kept.iter();
        let number = kept.position(|kept| kept.schema().id == heading.type_id);
        if number.is_none() && !parts.registry.dropped.iter().any(|dropped| dropped.as_bytes() == name) {
            let name = String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned();
            return Err(LoadError::UnknownType { name, version: heading.version });
        }
        // Before anything else is compared: a newer build may have built its worlds otherwise.
        let known = number.map(|number| parts.registry.kept[number].schema());
        if let Some(known) = known.filter(|known| known.version < heading.version) {
            return Err(LoadError::NewerType { name: known.name, got: heading.version, known: known.version });
        }
        types.push((heading, number));
    }
    Ok(Types(types))
}

impl Types {
    fn read<'a>(&'a self, from: &mut Reader<'_>) -> Result<&'a (Heading, Option<usize>), LoadError> {
        let number = usize::try_from(from.varint()?).map_err(|_| Fault::OutOfRange)?;
        Ok(self.0.get(number).ok_or(Fault::OutOfRange)?)
    }

    /// The types that a set of entities has.
    fn read_set<'a>(
        &'a self,
        from: &mut Reader<'_>,
        set: &mut Vec<&'a (Heading, Option<usize>)>,
    ) -> Result<(), LoadError> {
        set.clear();
        let count = from.varint()?;
        if count == 0 || count > self.0.len() as u64 {
            return Err(Fault::OutOfRange.into());
        }
        for _ in 0..count {
            set.push(self.read(from)?);
        }
        Ok(())
    }
}

/// All of a checkpoint but its values.
struct Outline<'a> {
    resources: Vec<Entity>,
    entities: Vec<Entity>,
    free: FreeIds,
    slot_generations: &'a [u8],
    free_slots: Vec<u32>,
    players: Vec<Row>,
    departures: Vec<ClientKey>,
}

impl<'a> Outline<'a> {
    fn read(types: &Types, from: &mut Reader<'a>) -> Result<Self, LoadError> {
        let (mut resources, mut entities, mut set) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..from.varint()? {
            types.read(from)?;
            resources.push(read_entity(from)?);
            read_value(from)?;
        }
        loop {
            let count = from.varint()?;
            if count == 0 {
                break;
            }
            types.read_set(from, &mut set)?;
            let are_kept = set.iter().any(|(_, number)| number.is_some());
            for _ in 0..count {
                let entity = read_entity(from)?;
                // Of an entity all of which was dropped nothing is left.
                if are_kept {
                    entities.push(entity);
                }
                for _ in &set {
                    read_value(from)?;
                }
            }
        }
        let mut free = FreeIds { unused: read_u32(from)?, ..FreeIds::default() };
        for list in [&mut free.shared, &mut free.recent] {
            for _ in 0..from.varint()? {
                list.push(read_entity(from)?);
            }
        }
        let slots_count = usize::try_from(from.varint()?).map_err(|_| Fault::Truncated)?;
        let slot_generations = from.bytes(slots_count)?;
        let mut free_slots = Vec::new();
        for _ in 0..from.varint()? {
            free_slots.push(read_u32(from)?);
        }
        let (mut players, mut departures) = (Vec::new(), Vec::new());
        for _ in 0..from.varint()? {
            let client = ClientKey(read_u32(from)?);
            let entity = if from.flag()? { Some(read_entity(from)?) } else { None };
            let team = if from.flag()? { Some(from.varint()?) } else { None };
            let team = team.map(|team| u16::try_from(team).map_err(|_| Fault::OutOfRange)).transpose()?;
            players.push(Row { client, entity, team });
        }
        for _ in 0..from.varint()? {
            departures.push(ClientKey(read_u32(from)?));
        }
        Ok(Self { resources, entities, free, slot_generations, free_slots, players, departures })
    }

    /// No index is anybody's twice, and there are not many more than belong to somebody.
    fn check(&self) -> Result<(), LoadError> {
        let Self { resources, entities, free, .. } = self;
        let free_lists = || free.shared.iter().chain(&free.recent);
        let mut indices: Vec<u32> =
            resources.iter().chain(entities).chain(free_lists()).map(|at| at.index_u32()).collect();
        indices.sort_unstable();
        let is_known_max = u64::from(free.unused) <= indices.len() as u64 + UNKNOWN_INDICES_MAX;
        let is_below = indices.last().is_none_or(|last| *last < free.unused);
        let is_single = indices.windows(2).all(|pair| pair[0] != pair[1]);
        let was_used = free_lists().all(|entity| entity.generation().to_bits() > 0);
        let is_recent = free.recent.len() <= RECENT_MAX && (free.shared.is_empty() || !free.recent.is_empty());
        let is_right = is_known_max && is_below && is_single && was_used && is_recent;
        is_right.then_some(()).ok_or(LoadError::Entities)
    }

    /// Makes all entities, empty, and takes away those that the world was built with: ids come out right, whoever has
    /// them now.
    fn make_room(&self, parts: &mut Parts<'_>) -> Result<(), LoadError> {
        self.check()?;
        let world = &mut *parts.ecs;
        let ids: Vec<Option<ComponentId>> = parts.registry.kept.iter().map(|kept| Some(kept.register(world))).collect();
        let built = kept_archetypes(world, &ids).flat_map(|archetype| archetype.entities().iter().map(|at| at.id()));
        let mut built: Vec<Entity> = built.collect();
        if !self.free.restore(world) {
            return Err(LoadError::Entities);
        }
        let mut wanted = self.entities.clone();
        wanted.sort_unstable();
        for entity in &built {
            // An observer may have taken it away with another one.
            if let Ok(mut entity) = world.get_entity_mut(*entity) {
                entity.clear();
            }
        }
        built.retain(|entity| {
            let stays = wanted.binary_search(entity).is_ok();
            if !stays {
                world.despawn_no_free(*entity);
            }
            stays
        });
        built.sort_unstable();
        let mut steps_left = GENERATIONS_MAX;
        for entity in self.free.shared.iter().chain(&self.free.recent) {
            if world.get_entity(*entity).is_ok() {
                return Err(LoadError::Entity { bits: entity.to_bits() });
            }
            steps_left -= aged(world, *entity, steps_left)?;
        }
        for entity in &self.entities {
            steps_left -= aged(world, *entity, steps_left)?;
            let is_there = world.get_entity(*entity).is_ok();
            if is_there && built.binary_search(entity).is_err() || !is_there && world.spawn_empty_at(*entity).is_err() {
                return Err(LoadError::Entity { bits: entity.to_bits() });
            }
        }
        Ok(())
    }
}

fn aged(world: &mut bevy_ecs::world::World, entity: Entity, steps_max: u32) -> Result<u32, LoadError> {
    age(world, entity, steps_max).ok_or(LoadError::Entity { bits: entity.to_bits() })
}

fn read_resources(parts: &mut Parts<'_>, types: &Types, from: &mut Reader<'_>) -> Result<(), LoadError> {
    let world = &mut *parts.ecs;
    for _ in 0..from.varint()? {
        let (heading, number) = types.read(from)?;
        let (saved_at, value) = (read_entity(from)?, read_value(from)?);
        let Some(number) = number else { continue };
        let kept = &parts.registry.kept[*number];
        let id = kept.register(world);
        let present = world.resource_entities().get(id);
        let mut entity = match present.filter(|entity| world.get_entity(*entity).is_ok()) {
            Some(entity) => world.entity_mut(entity),
            None => {
                aged(world, saved_at, GENERATIONS_MAX)?;
                world.spawn_empty_at(saved_at).map_err(|_| LoadError::Entity { bits: saved_at.to_bits() })?
            }
        };
        kept.unpack(heading, value, &mut entity)?;
    }
    Ok(())
}

fn read_entities(
    parts: &mut Parts<'_>,
    types: &Types,
    from: &mut Reader<'_>,
) -> Result<Vec<(Entity, NetId)>, LoadError> {
    let (world, kept) = (&mut *parts.ecs, &parts.registry.kept);
    let (mut ids, mut set) = (Vec::new(), Vec::new());
    loop {
        let count = from.varint()?;
        if count == 0 {
            return Ok(ids);
        }
        types.read_set(from, &mut set)?;
        let are_kept = set.iter().any(|(_, number)| number.is_some());
        for _ in 0..count {
            let id = read_entity(from)?;
            if !are_kept {
                set.iter().try_for_each(|_| read_value(from).map(drop))?;
                continue;
            }
            // An observer of the game's may have despawned it.
            let mut entity = world.get_entity_mut(id).map_err(|_| LoadError::Entity { bits: id.to_bits() })?;
            entity.insert(Loading);
            for (heading, number) in &set {
                let value = read_value(from)?;
                let Some(number) = number else { continue };
                if *number == REPLICATED {
                    ids.extend(heading.unpack::<SavedReplicated>(value)?.id.map(|net_id| (id, net_id)));
                }
                kept[*number].unpack(heading, value, &mut entity)?;
                if entity.is_despawned() {
                    return Err(LoadError::Entity { bits: id.to_bits() });
                }
            }
            entity.remove::<Loading>();
        }
    }
}
