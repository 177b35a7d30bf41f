//! ECS: how a Bevy world feeds its replication.
//!
//! An entity is replicated while it has [`Replicated`]. The game spawns it with `Replicated::default()`; the
//! collector gives it a [`NetId`] at the end of the tick and takes it back when the component or the entity
//! goes. Hooks on that one component keep the list of arrivals and departures, so nothing is searched for.
//!
//! After the tick `collect` walks the change marks of each replicated column once, with query states that
//! are made when the world is, and hands every changed component to be encoded. A component that was taken
//! away from an entity is seen in Bevy's record of removals, which the runner clears once per tick after
//! `collect` (`World::clear_trackers`).
//!
//! What decides who hears of an entity, beside its place, are components, too: [`Team`], [`Weight`],
//! [`VisibilityFiltered`]. They are immutable in Bevy's sense: to change one, insert it anew. So hooks see every
//! change, and worlds without them pay nothing.
//!
//! Runs on the world's thread. Never allocates in a steady tick. Cost: about 0.1 us per kind in a world of 25
//! entities, plus the encoding of what changed. In a tick in which entities come or go, components that may refer to
//! entities ([`EntityLink`](crate::EntityLink)) are all encoded, changed or not, at 20 to 50 ns each.

use std::sync::Arc;

use bevy_ecs::{change_detection::Tick, component::ComponentId, prelude::*};
use throng_platform::prefetch::FootprintDraft;

use crate::{
    ecs::{
        attributes::{Team, VisibilityFiltered, Weight},
        replicated::{Placed, Replicated, SharedJournal},
        state_hash::{self, StateHash, StateParts},
        walkers::{HashWalker, KindWalker, PlaceWalker, Walker},
    },
    source::entities::Entities,
    view::{client_view::View, traffic::Traffic},
    wire::{ids::NetId, replicate::Replicate, schema::Schema},
    world::WorldReplication,
};

/// Copies what decides who hears of an entity, its place apart: its team, its weight, its visibility filter.
fn copy_attributes(entity: EntityRef<'_>, id: NetId, replication: &mut WorldReplication) {
    replication.set_team(id, entity.get::<Team>().map(|team| team.0).filter(|team| *team != 0));
    replication.set_weight(id, entity.get::<Weight>().map_or(1.0, |weight| weight.0));
    replication.set_visibility_filtered(id, entity.contains::<VisibilityFiltered>());
}

/// Carries what changed from one Bevy world to its `WorldReplication`. One per world.
pub struct Collector {
    schema: Arc<Schema>,
    walkers: Vec<Box<dyn Walker>>,
    /// The world's change tick when `collect` ran last.
    last_run: Tick,
    /// Also a resource of the world, from the first use on.
    journal: SharedJournal,
    is_journal_kept: bool,
    arrivals: Vec<Entity>,
    departures: Vec<NetId>,
    attribute_changes: Vec<Entity>,
    /// Who owns each slot.
    owners: Vec<Option<(Entity, u8)>>,
}

impl Collector {
    /// Notes what every tick reads, beside itself.
    pub fn note_lists(&self, footprint: &mut FootprintDraft) {
        // All by name: who adds a list says here whether every tick reads it.
        let Self {
            walkers,
            owners,
            arrivals: _,
            departures: _,
            attribute_changes: _,
            schema: _,
            last_run: _,
            journal: _,
            is_journal_kept: _,
        } = self;
        footprint.note(&**walkers);
        walkers.iter().for_each(|walker| footprint.note(&**walker));
        footprint.note(&**owners);
    }

    pub fn new(schema: Arc<Schema>) -> Self {
        Self {
            schema,
            walkers: Vec::new(),
            last_run: Tick::new(0),
            journal: SharedJournal::default(),
            is_journal_kept: false,
            arrivals: Vec::new(),
            departures: Vec::new(),
            attribute_changes: Vec::new(),
            owners: Vec::new(),
        }
    }

    /// Sends `T` of every replicated entity, and counts its exact value for the state hash.
    ///
    /// # Panics
    /// If `T` is not in the schema: the program's own mistake, when the world is built.
    pub fn replicate<T: Component + Replicate>(&mut self, world: &mut World) {
        let Some(kind) = self.schema.kind_of::<T>() else {
            panic!("`{}` is replicated here but is not in the schema: add `.component::<{0}>()` to it", T::NAME)
        };
        self.begin(world);
        self.walkers.push(Box::new(KindWalker::<T>::new(kind, world)));
    }

    /// Takes entities' places from `T`. Those without it are relevant to everybody.
    pub fn placed_by<T: Component + Placed>(&mut self, world: &mut World) {
        self.begin(world);
        self.walkers.push(Box::new(PlaceWalker::<T>::new(world)));
    }

    /// Counts `T` of every entity for the state hash, replicated or not.
    pub fn hash<T: Component + StateHash>(&mut self, world: &mut World) {
        self.begin(world);
        self.walkers.push(Box::new(HashWalker::<T>::new(world)));
    }

    /// Tells `replication` what changed in `world` since the last call. After the tick's systems and
    /// `WorldReplication::begin_tick`, before `World::clear_trackers`.
    pub fn collect(&mut self, world: &mut World, replication: &mut WorldReplication) {
        self.begin(world);
        let mut journal = self.journal.lock();
        std::mem::swap(&mut journal.arrivals, &mut self.arrivals);
        std::mem::swap(&mut journal.departures, &mut self.departures);
        std::mem::swap(&mut journal.attribute_changes, &mut self.attribute_changes);
        drop(journal);
        let departed = !self.departures.is_empty();
        for id in self.departures.drain(..) {
            replication.despawn(id);
            self.owners[id.slot as usize] = None;
        }
        let arrived = self.welcome(world, replication);
        for entity in self.attribute_changes.drain(..) {
            // One that has no id yet tells when it gets one.
            if let Ok(entity) = world.get_entity(entity)
                && let Some(id) = entity.get::<Replicated>().and_then(Replicated::id)
            {
                copy_attributes(entity, id, replication);
            }
        }
        for walker in &mut self.walkers {
            walker.removed(world, replication);
        }
        let walkers = &mut self.walkers;
        world.last_change_tick_scope(self.last_run, |world| {
            walkers.iter_mut().for_each(|walker| walker.changed(world, departed || arrived, replication));
        });
        self.last_run = world.increment_change_tick();
    }

    /// Makes entities of a world that never collected known by the ids that they have in `ids`, with all that they have now;
    /// the rest as [`WorldReplication::restore_ids`]. Entities have `Replicated`, without an id.
    ///
    /// Returns false if ids or entities contradict each other. Then the world is of no use.
    #[must_use]
    pub fn restore(
        &mut self,
        world: &mut World,
        replication: &mut WorldReplication,
        tick: u32,
        generations: &[u8],
        free: &[u32],
        ids: &[(Entity, NetId)],
    ) -> bool {
        self.begin(world);
        if !replication.restore_ids(tick, generations, free, ids.iter().map(|(_, id)| *id)) {
            return false;
        }
        self.owners = vec![None; generations.len()];
        for &(entity, id) in ids {
            let Some(mut replicated) = world.get_mut::<Replicated>(entity).filter(|held| held.id.is_none()) else {
                return false;
            };
            replicated.bypass_change_detection().id = Some(id);
            self.owners[id.slot as usize] = Some((entity, id.generation));
        }
        // Links are to entities whose ids are known by now.
        for &(entity, id) in ids {
            let world = &*world;
            let entity = world.entity(entity);
            copy_attributes(entity, id, replication);
            self.walkers.iter().for_each(|walker| walker.arrived(world, entity, id, replication));
        }
        self.last_run = world.increment_change_tick();
        true
    }

    /// Writes an audit sample for a client, as `WorldReplication::write_audit_sample`, with the values that the Bevy
    /// world has now: a change that `collect` did not see is in the audit sample and not in the copy.
    pub fn write_audit_sample(
        &self,
        world: &World,
        replication: &mut WorldReplication,
        view: &mut View,
        traffic: &mut Traffic,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut source = |id: NetId, entities: &mut Entities| {
            let Some(entity) = self.entity_of(id).and_then(|entity| world.get_entity(entity).ok()) else { return 0 };
            self.walkers.iter().fold(0, |mask, walker| mask | walker.exact(world, entity, id, entities))
        };
        replication.write_audit_sample_from(view, traffic, &mut source, out)
    }

    /// The components that clients hear of, with the names that they know them by, in the order in which they were added.
    pub fn replicated(&self) -> impl Iterator<Item = (ComponentId, &'static str)> {
        self.walkers.iter().filter_map(|walker| walker.replicated())
    }

    /// The id of an entity; `None` before its first `collect`, and if it is not replicated.
    pub fn net_id(&self, world: &World, entity: Entity) -> Option<NetId> {
        world.get::<Replicated>(entity)?.id()
    }

    /// The entity of an id, to act on what replication reports (`WorldReplication::poisoned`).
    pub fn entity_of(&self, id: NetId) -> Option<Entity> {
        let (entity, generation) = (*self.owners.get(id.slot as usize)?)?;
        (generation == id.generation).then_some(entity)
    }

    /// One number for the whole state: all replicated components, exactly, and those given to `hash`. The same
    /// for worlds with the same history, whatever order entities are stored in.
    pub fn hash_state(&mut self, world: &mut World, tick: u32) -> u64 {
        let mut sum = 0_u64;
        for (index, walker) in self.walkers.iter_mut().enumerate() {
            walker.hash(world, index as u64, &mut |_, hash| sum = sum.wrapping_add(hash));
        }
        state_hash::finish(sum ^ u64::from(tick) << 32)
    }

    /// The same, with what each component and each entity have in it. `parts` keeps its memory.
    pub fn hash_state_in_parts(&mut self, world: &mut World, tick: u32, parts: &mut StateParts) -> u64 {
        parts.clear();
        let mut sum = 0_u64;
        for (index, walker) in self.walkers.iter_mut().enumerate() {
            if walker.hashed().is_none() {
                continue;
            }
            let mut column = 0_u64;
            walker.hash(world, index as u64, &mut |entity, hash| {
                column = column.wrapping_add(hash);
                parts.add(entity, hash);
            });
            parts.columns.push(column);
            sum = sum.wrapping_add(column);
        }
        state_hash::finish(sum ^ u64::from(tick) << 32)
    }

    /// Names of the components that count for the hash, in the order of [`StateParts::columns`]: those that clients know
    /// them by, and of those that no client hears of the type's.
    pub fn hashed(&self) -> impl Iterator<Item = &'static str> {
        self.walkers.iter().filter_map(|walker| walker.hashed())
    }

    /// The hash of one entity's value in each of these columns; 0 where it has none. Cost: that of the whole state.
    pub fn hash_of_entity(&mut self, world: &mut World, entity: Entity, columns: &mut Vec<u64>) {
        columns.clear();
        for (index, walker) in self.walkers.iter_mut().enumerate().filter(|(_, walker)| walker.hashed().is_some()) {
            let mut found = 0;
            walker.hash(world, index as u64, &mut |of, hash| {
                if of == entity {
                    found = hash;
                }
            });
            columns.push(found);
        }
    }

    /// Gives ids to newcomers and tells all they have, changed or not. Returns whether there were any.
    fn welcome(&mut self, world: &mut World, replication: &mut WorldReplication) -> bool {
        let mut arrived = false;
        let mut arrivals = std::mem::take(&mut self.arrivals);
        arrivals.retain(|entity| {
            let Some(mut replicated) = world.get_mut::<Replicated>(*entity).filter(|held| held.id.is_none()) else {
                return false;
            };
            // A full world has counted the refusal; the entity waits for room.
            let Ok(id) = replication.spawn() else {
                return true;
            };
            replicated.bypass_change_detection().id = Some(id);
            let slots_count = self.owners.len().max(id.slot as usize + 1);
            self.owners.resize(slots_count, None);
            self.owners[id.slot as usize] = Some((*entity, id.generation));
            let world = &*world;
            let entity = world.entity(*entity);
            copy_attributes(entity, id, replication);
            self.walkers.iter().for_each(|walker| walker.arrived(world, entity, id, replication));
            arrived = true;
            false
        });
        if !arrivals.is_empty() {
            self.journal.lock().arrivals.append(&mut arrivals);
        }
        self.arrivals = arrivals;
        arrived
    }

    /// Has the journal kept, and enters what was spawned before.
    fn begin(&mut self, world: &mut World) {
        if !std::mem::replace(&mut self.is_journal_kept, true) {
            self.journal.lock().arrivals = world.query_filtered::<Entity, With<Replicated>>().iter(world).collect();
            world.insert_resource(self.journal.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use arrayvec::ArrayVec;

    use super::*;
    use crate::{
        ecs::{links::with_ids, state_hash::StateHasher},
        replicas::store::Replicas,
        testing::{self, TestWorld, ViewId},
        view::interest::InterestSettings,
        wire::link::EntityLink,
    };

    #[derive(Component, Clone, PartialEq, Debug, crate::Replicate)]
    struct At {
        #[replicate(min = -100.0, max = 100.0, step = 0.01)]
        place: [f32; 2],
    }

    impl Placed for At {
        fn place(&self) -> [f32; 2] {
            self.place
        }
    }

    #[derive(Component, Clone, PartialEq, Debug, crate::Replicate)]
    struct Gold(u16);

    /// Refers to another entity, or to several.
    #[derive(Component, Clone, PartialEq, Debug, Default, crate::Replicate)]
    struct Bond {
        leader: Option<EntityLink>,
        friends: ArrayVec<EntityLink, 3>,
    }

    impl Bond {
        fn to(entity: Entity) -> Self {
            Self { leader: Some(entity.into()), friends: ArrayVec::new() }
        }
    }

    #[derive(Component)]
    struct Secret(u32);

    impl StateHash for Secret {
        fn hash_state(&self, hasher: &mut StateHasher) {
            hasher.write_u64(self.0.into());
        }
    }

    struct Stage {
        world: World,
        collector: Collector,
        replication: TestWorld,
        replicas: Replicas,
        view: ViewId,
        tick: u32,
    }

    impl Stage {
        fn new() -> Self {
            let schema = crate::SchemaBuilder::new().component::<At>().component::<Gold>().component::<Bond>().build();
            let mut world = World::new();
            let mut collector = Collector::new(schema.clone());
            collector.replicate::<At>(&mut world);
            collector.replicate::<Gold>(&mut world);
            collector.replicate::<Bond>(&mut world);
            collector.placed_by::<At>(&mut world);
            collector.hash::<Secret>(&mut world);
            let mut replication = TestWorld::new(schema.clone(), InterestSettings::default());
            let view = replication.add_client(0);
            replication.set_view(view, [0.0; 2]);
            Self { world, collector, replication, replicas: Replicas::new(schema), view, tick: 0 }
        }

        /// One tick, delivered; returns how many records it took.
        fn tick(&mut self) -> u64 {
            self.tick += 1;
            self.replication.begin_tick(self.tick);
            self.collector.collect(&mut self.world, &mut self.replication);
            self.world.clear_trackers();
            self.replication.refresh_interest();
            let mut packet = [0; 1200];
            let len = self.replication.write_snapshot(self.view, self.tick as u16, &mut packet);
            self.replication.sent(self.view, self.tick as u16);
            self.replicas.apply(&packet[..len]).unwrap();
            self.replication.acked(self.view, self.tick as u16);
            self.replication.take_stats().entity_updates
        }

        fn id(&self, entity: Entity) -> Option<NetId> {
            self.collector.net_id(&self.world, entity)
        }

        /// The client's copy of whom `entity` is bound to, which an audit sample's exact value must agree with.
        fn leader(&self, entity: Entity) -> Option<NetId> {
            let copy = self.replicas.get::<Bond>(self.id(entity).unwrap()).unwrap();
            let agrees = |exact: &Bond| copy.agrees_with(exact);
            assert!(with_ids(&self.world, self.world.get::<Bond>(entity).unwrap(), agrees));
            copy.leader.and_then(|link| link.id())
        }

        fn gold(&self) -> Vec<u16> {
            self.replicas.iter::<Gold>().map(|(_, gold)| gold.0).collect()
        }
    }

    #[test]
    fn what_systems_change_reaches_the_client_and_nothing_else_is_sent() {
        let mut stage = Stage::new();
        let entity = stage.world.spawn((Replicated::default(), At { place: [1.0, 2.0] }, Gold(5))).id();
        stage.world.spawn((At { place: [1.0, 2.0] }, Gold(6)));
        assert_eq!(stage.tick(), 1);
        assert_eq!(stage.gold(), [5]);
        assert_eq!(stage.tick(), 0);
        stage.world.get_mut::<Gold>(entity).unwrap().0 = 7;
        let mut schedule = Schedule::default();
        schedule.add_systems(|mut places: Query<&mut At>| places.iter_mut().for_each(|mut at| at.place[0] += 1.0));
        schedule.run(&mut stage.world);
        assert_eq!(stage.tick(), 1);
        assert_eq!(stage.gold(), [7]);
        let id = stage.collector.net_id(&stage.world, entity).unwrap();
        assert_eq!(stage.collector.entity_of(id), Some(entity));
        assert!((stage.replicas.get::<At>(id).unwrap().place[0] - 2.0).abs() <= 0.005);
    }

    #[test]
    fn places_decide_who_hears() {
        let mut stage = Stage::new();
        let entity = stage.world.spawn((Replicated::default(), At { place: [90.0, 0.0] }, Gold(5))).id();
        stage.tick();
        assert!(stage.replicas.is_empty());
        stage.world.get_mut::<At>(entity).unwrap().place = [50.0, 0.0];
        stage.tick();
        assert_eq!(stage.gold(), [5]);
        stage.world.get_mut::<At>(entity).unwrap().place = [65.0, 0.0];
        stage.tick();
        assert_eq!(stage.gold(), [5]);
        stage.world.get_mut::<At>(entity).unwrap().place = [75.0, 0.0];
        stage.tick();
        assert!(stage.replicas.is_empty());
    }

    #[test]
    fn removals_of_every_sort_are_seen() {
        let mut stage = Stage::new();
        let spawn = |world: &mut World| world.spawn((Replicated::default(), At { place: [0.0; 2] }, Gold(5))).id();
        let [despawned, unmarked, poorer] = [(); 3].map(|()| spawn(&mut stage.world));
        stage.tick();
        assert_eq!((stage.replicas.len(), stage.gold().len()), (3, 3));
        stage.world.despawn(despawned);
        stage.world.entity_mut(unmarked).remove::<Replicated>();
        stage.world.entity_mut(poorer).remove::<Gold>();
        stage.tick();
        assert_eq!((stage.replicas.len(), stage.gold().len()), (1, 0));
        stage.world.entity_mut(poorer).insert(Gold(8));
        stage.world.entity_mut(unmarked).insert(Replicated::default());
        stage.tick();
        assert_eq!(stage.gold(), [8, 5]);
    }

    #[test]
    fn teams_and_visibility_filters_are_told_whenever_they_come_or_go() {
        let mut stage = Stage::new();
        let far = |gold: u16| (Replicated::default(), At { place: [99.0, 0.0] }, Gold(gold));
        stage.replication.set_view_team(stage.view, Some(3));
        let comrade = stage.world.spawn((far(1), Team(3))).id();
        let recruit = stage.world.spawn(far(2)).id();
        stage.world.spawn((far(4), Team(4)));
        stage.tick();
        assert_eq!(stage.gold(), [1]);
        stage.world.entity_mut(recruit).insert((Team(3), Weight(4.0)));
        stage.tick();
        assert_eq!(stage.gold(), [1, 2]);
        stage.world.entity_mut(comrade).remove::<Team>();
        stage.tick();
        assert_eq!(stage.gold(), [2]);
        // Nobody allows it.
        stage.world.entity_mut(recruit).insert(VisibilityFiltered);
        stage.tick();
        assert!(stage.gold().is_empty());
        stage.world.entity_mut(recruit).remove::<VisibilityFiltered>();
        stage.tick();
        assert_eq!(stage.gold(), [2]);
    }

    #[test]
    fn a_marker_that_is_inserted_again_makes_a_new_entity_of_it() {
        let mut stage = Stage::new();
        let entity = stage.world.spawn((Replicated::default(), Gold(1))).id();
        stage.tick();
        let before = stage.collector.net_id(&stage.world, entity).unwrap();
        stage.world.entity_mut(entity).insert(Replicated::default());
        stage.tick();
        let after = stage.collector.net_id(&stage.world, entity).unwrap();
        assert_ne!(before, after);
        assert_eq!(stage.replicas.ids().collect::<Vec<_>>(), [after]);
    }

    #[test]
    fn a_cloned_marker_is_another_entitys() {
        let mut stage = Stage::new();
        let first = stage.world.spawn((Replicated::default(), Gold(1))).id();
        stage.tick();
        let marker = stage.world.get::<Replicated>(first).unwrap().clone();
        let second = stage.world.spawn((marker, Gold(2))).id();
        stage.tick();
        let ids = [first, second].map(|entity| stage.collector.net_id(&stage.world, entity).unwrap());
        assert_ne!(ids[0], ids[1]);
        assert_eq!(ids.map(|id| stage.collector.entity_of(id)), [Some(first), Some(second)]);
        assert_eq!(stage.gold(), [1, 2]);
        stage.world.despawn(second);
        stage.tick();
        assert_eq!(stage.gold(), [1]);

        // What is taken off and put on another one, too.
        let marker = stage.world.entity_mut(first).take::<Replicated>().unwrap();
        let third = stage.world.spawn((marker, Gold(3))).id();
        stage.tick();
        assert_eq!(stage.gold(), [3]);
        assert_eq!(stage.collector.entity_of(ids[0]), None);
        let id = stage.collector.net_id(&stage.world, third).unwrap();
        assert_eq!(stage.replicas.ids().collect::<Vec<_>>(), [id]);
    }

    /// The one that refers is told first, and both come in the same tick.
    #[test]
    fn links_go_as_the_ids_of_entities_whoever_comes_first() {
        let mut stage = Stage::new();
        let leader = stage.world.spawn_empty().id();
        let follower = stage.world.spawn((Replicated::default(), Bond::to(leader))).id();
        stage.world.entity_mut(leader).insert((Replicated::default(), Bond::to(follower)));
        stage.tick();
        assert_eq!(stage.leader(follower), stage.id(leader));
        assert_eq!(stage.leader(leader), stage.id(follower));
        assert!(stage.id(leader).is_some());
        assert_eq!(stage.world.get::<Bond>(follower).unwrap().leader.and_then(|link| link.entity()), Some(leader));
    }

    #[test]
    fn links_follow_when_an_entity_gets_an_id_or_loses_it() {
        let mut stage = Stage::new();
        let leader = stage.world.spawn_empty().id();
        let follower = stage.world.spawn((Replicated::default(), Bond::to(leader))).id();
        stage.tick();
        assert_eq!(stage.leader(follower), None);
        stage.world.entity_mut(leader).insert(Replicated::default());
        stage.tick();
        let first = stage.id(leader);
        assert!(first.is_some());
        assert_eq!(stage.leader(follower), first);
        // Nothing has changed: nothing is told.
        stage.world.spawn(Replicated::default());
        assert_eq!(stage.tick(), 1);
        assert_eq!(stage.tick(), 0);
        stage.world.entity_mut(leader).insert(Replicated::default());
        stage.tick();
        assert_ne!(stage.id(leader), first);
        assert_eq!(stage.leader(follower), stage.id(leader));
        stage.world.despawn(leader);
        stage.tick();
        assert_eq!(stage.leader(follower), None);
    }

    #[test]
    fn links_count_for_the_state_hash() {
        let hash = |to: usize| {
            let mut stage = Stage::new();
            let others = [(); 2].map(|()| stage.world.spawn(Replicated::default()).id());
            let entity = stage.world.spawn((Replicated::default(), Bond::default())).id();
            stage.world.get_mut::<Bond>(entity).unwrap().friends.push(others[to].into());
            stage.tick();
            stage.collector.hash_state(&mut stage.world, 1)
        };
        assert_eq!(hash(0), hash(0));
        assert_ne!(hash(0), hash(1));
    }

    #[test]
    fn entities_that_were_there_first_are_found() {
        let mut world = World::new();
        world.spawn((Replicated::default(), Gold(3)));
        let schema = crate::SchemaBuilder::new().component::<Gold>().build();
        let mut collector = Collector::new(schema.clone());
        collector.replicate::<Gold>(&mut world);
        let mut replication = TestWorld::new(schema, InterestSettings::default());
        collector.collect(&mut world, &mut replication);
        assert_eq!(replication.entities_count(), 1);
    }

    #[test]
    fn entities_wait_when_the_world_is_full() {
        let mut stage = Stage::new();
        let settings = InterestSettings { entities_max: 1, ..InterestSettings::default() };
        stage.replication = TestWorld::new(stage.collector.schema.clone(), settings);
        stage.view = stage.replication.add_client(0);
        let first = stage.world.spawn((Replicated::default(), Gold(1))).id();
        stage.world.spawn((Replicated::default(), Gold(2)));
        stage.tick();
        assert_eq!(stage.gold(), [1]);
        stage.world.despawn(first);
        stage.tick();
        assert_eq!(stage.gold(), [2]);
    }

    #[test]
    fn the_state_hash_sees_values_and_not_storage_order() {
        let hash = |order: [u16; 2], secret: u32| {
            let mut stage = Stage::new();
            let entities =
                stage.world.spawn_batch(order.map(|gold| (Replicated::default(), Gold(gold)))).collect::<Vec<_>>();
            stage.world.entity_mut(entities[0]).insert(Secret(secret));
            stage.collector.hash_state(&mut stage.world, 1)
        };
        assert_eq!(hash([1, 2], 9), hash([1, 2], 9));
        assert_ne!(hash([1, 2], 9), hash([2, 1], 9));
        assert_ne!(hash([1, 2], 9), hash([1, 2], 8));
    }

    #[test]
    #[should_panic(expected = "`Pose` is replicated here but is not in the schema")]
    fn a_kind_that_is_not_in_the_schema_is_named() {
        #[derive(Component, Clone, crate::Replicate)]
        struct Pose(bool);
        Collector::new(testing::schema()).replicate::<Pose>(&mut World::new());
    }
}
