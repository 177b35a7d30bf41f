//! Walkers: what the collector does for each registered component, one type each.

use bevy_ecs::{component::ComponentId, prelude::*};

use crate::{
    ecs::{
        links::with_ids,
        replicated::{Placed, Replicated},
        state_hash::{StateHash, StateHasher},
    },
    source::entities::Entities,
    wire::{bytes::Writer, ids::NetId, replicate::Replicate, schema::ComponentIndex},
    world::WorldReplication,
};

/// One registered component of a world.
pub(crate) trait Walker: Send + Sync {
    /// An entity has got its id.
    fn arrived(&self, _world: &World, _entity: EntityRef<'_>, _id: NetId, _replication: &mut WorldReplication) {}
    /// Tells what changed since the world's last change tick. `ids_changed`: entities have got ids or lost theirs.
    fn changed(&mut self, _world: &World, _ids_changed: bool, _replication: &mut WorldReplication) {}
    /// Tells where the component was taken away in this tick.
    fn removed(&self, _world: &World, _replication: &mut WorldReplication) {}
    /// Brings the exact value of one entity up to date and gives its kind's bit; 0 if the entity does not have it.
    fn exact(&self, _world: &World, _entity: EntityRef<'_>, _id: NetId, _entities: &mut Entities) -> u16 {
        0
    }
    /// The component and what clients know it as, if they hear of it.
    fn replicated(&self) -> Option<(ComponentId, &'static str)> {
        None
    }
    /// What the state hash calls it; `None` if it does not count.
    fn hashed(&self) -> Option<&'static str> {
        None
    }
    /// Gives the hash of each of its values. `walker` tells walkers apart.
    fn hash(&mut self, _world: &mut World, _walker: u64, _each: &mut dyn FnMut(Entity, u64)) {}
}

/// A replicated component.
pub(crate) struct KindWalker<T: Component + Replicate> {
    kind: ComponentIndex,
    component: ComponentId,
    changed: QueryState<(&'static Replicated, &'static T), Changed<T>>,
    /// All that may have links; `None` for a kind without.
    linked: Option<QueryState<(&'static Replicated, &'static T)>>,
    /// Made when a hash is first wanted: most worlds never are.
    all: Option<QueryState<(Entity, &'static T), With<Replicated>>>,
}

impl<T: Component + Replicate> KindWalker<T> {
    pub fn new(kind: ComponentIndex, world: &mut World) -> Self {
        let linked = T::LINKS.then(|| world.query());
        Self { kind, component: world.register_component::<T>(), changed: world.query_filtered(), linked, all: None }
    }
}

impl<T: Component + Replicate> Walker for KindWalker<T> {
    fn arrived(&self, world: &World, entity: EntityRef<'_>, id: NetId, replication: &mut WorldReplication) {
        if let Some(value) = entity.get::<T>() {
            with_ids(world, value, |value| replication.update(self.kind, id, value));
        }
    }

    fn exact(&self, world: &World, entity: EntityRef<'_>, id: NetId, entities: &mut Entities) -> u16 {
        let Some(value) = entity.get::<T>() else { return 0 };
        with_ids(world, value, |value| entities.refresh_exact(self.kind, id, value));
        1 << self.kind.index()
    }

    fn changed(&mut self, world: &World, ids_changed: bool, replication: &mut WorldReplication) {
        let kind = self.kind;
        let tell = |(replicated, value): (&Replicated, &T)| {
            if let Some(id) = replicated.id() {
                with_ids(world, value, |value| replication.update(kind, id, value));
            }
        };
        match &mut self.linked {
            Some(linked) if ids_changed => linked.iter(world).for_each(tell),
            _ => self.changed.iter(world).for_each(tell),
        }
    }

    fn removed(&self, world: &World, replication: &mut WorldReplication) {
        for id in bereft(world, self.component) {
            replication.remove(self.kind, id);
        }
    }

    fn replicated(&self) -> Option<(ComponentId, &'static str)> {
        Some((self.component, T::NAME))
    }

    fn hashed(&self) -> Option<&'static str> {
        Some(T::NAME)
    }

    fn hash(&mut self, world: &mut World, walker: u64, each: &mut dyn FnMut(Entity, u64)) {
        let all = self.all.get_or_insert_with(|| world.query_filtered());
        let world = &*world;
        for (entity, value) in all.iter(world) {
            let mut bytes = [0; 255];
            let mut out = Writer::new(&mut bytes);
            with_ids(world, value, |value| value.encode_exact(&mut out));
            let len = out.len();
            let mut hasher = StateHasher::new(walker, entity.to_bits());
            hasher.write_bytes(&bytes[..len]);
            each(entity, hasher.finish());
        }
    }
}

/// The component that says where entities are.
pub(crate) struct PlaceWalker<T: Component + Placed> {
    component: ComponentId,
    changed: QueryState<(&'static Replicated, &'static T), Changed<T>>,
}

impl<T: Component + Placed> PlaceWalker<T> {
    pub fn new(world: &mut World) -> Self {
        Self { component: world.register_component::<T>(), changed: world.query_filtered() }
    }
}

impl<T: Component + Placed> Walker for PlaceWalker<T> {
    fn arrived(&self, _world: &World, entity: EntityRef<'_>, id: NetId, replication: &mut WorldReplication) {
        if let Some(placed) = entity.get::<T>() {
            replication.set_place(id, placed.place());
        }
    }

    fn changed(&mut self, world: &World, _ids_changed: bool, replication: &mut WorldReplication) {
        for (replicated, placed) in self.changed.iter(world) {
            if let Some(id) = replicated.id() {
                replication.set_place(id, placed.place());
            }
        }
    }

    fn removed(&self, world: &World, replication: &mut WorldReplication) {
        for id in bereft(world, self.component) {
            replication.clear_place(id);
        }
    }
}

/// A component that counts for the state hash only.
pub(crate) struct HashWalker<T: Component + StateHash> {
    all: QueryState<(Entity, &'static T)>,
}

impl<T: Component + StateHash> HashWalker<T> {
    pub fn new(world: &mut World) -> Self {
        Self { all: world.query() }
    }
}

impl<T: Component + StateHash> Walker for HashWalker<T> {
    fn hashed(&self) -> Option<&'static str> {
        Some(std::any::type_name::<T>())
    }

    fn hash(&mut self, world: &mut World, walker: u64, each: &mut dyn FnMut(Entity, u64)) {
        for (entity, value) in self.all.iter(world) {
            let mut hasher = StateHasher::new(walker, entity.to_bits());
            value.hash_state(&mut hasher);
            each(entity, hasher.finish());
        }
    }
}

/// Replicated entities that lost `component` since the trackers were cleared, and have not got it back.
fn bereft(world: &World, component: ComponentId) -> impl Iterator<Item = NetId> + '_ {
    world.removed_with_id(component).filter_map(move |entity| {
        let entity = world.get_entity(entity).ok()?;
        let id = entity.get::<Replicated>()?.id()?;
        (!entity.contains_id(component)).then_some(id)
    })
}
