//! World builder: what a world kind fills, and how it becomes a world.

use std::sync::Arc;

use bevy_ecs::{
    prelude::*,
    schedule::{InternedSystemSet, IntoScheduleConfigs},
    system::ScheduleSystem,
};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_pack::{HasSchema, PackError, envelope};
use throng_profiler::{Category, KindNumber, world_kind::number_of};
use throng_replication::{
    InterestSettings, Replicate, Schema, StateHash, WorldReplication,
    ecs::{Collector, Placed},
};
use throng_scheduler::Hertz;

use crate::{
    events::Events,
    game_world::{GameWorld, Parts},
    ids::{ClientKey, WorldId, WorldKindId},
    inbox::Inbox,
    price::{self, MessagePrice},
    system_order::{OrderError, SystemList, SystemOrder},
    tick_resources::{Arrivals, Departures, MayBeDormant, Outbox, TickInfo, WorldMessages, WorldRng},
    transfer::{self, TransferCheck},
    world_kind::{WorldKind, WorldPlugins},
};

/// Who looks, for a visibility filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Viewer {
    pub client: ClientKey,
    /// The client's own entity, once it has one.
    pub player: Option<Entity>,
    pub team: Option<u16>,
}

/// See [`WorldBuilder::filter_visibility_by`].
pub(crate) type VisibilityFilter = Box<dyn Fn(&World, Viewer, Entity) -> bool + Send + Sync>;

/// A world in the making. Kinds and plugins add to it; the server finishes it.
pub struct WorldBuilder {
    id: WorldId,
    seed: u64,
    ecs: World,
    systems: SystemList,
    collector: Collector,
    interest: InterestSettings,
    visibility_filter: Option<VisibilityFilter>,
    transfer_check: Option<TransferCheck>,
    price: MessagePrice,
    parameters: Option<Vec<u8>>,
}

impl WorldBuilder {
    /// Adds plugins: one, or a tuple of them.
    pub fn add_plugins(&mut self, plugins: impl WorldPlugins) -> &mut Self {
        plugins.build_all(self);
        self
    }

    /// Adds systems, with Bevy's `chain`, `before`, `after`, `in_set` and `run_if`. All run once per tick.
    pub fn add_systems<M>(&mut self, systems: impl IntoScheduleConfigs<ScheduleSystem, M>) -> &mut Self {
        self.systems.add(systems);
        self
    }

    /// Orders and conditions sets of systems.
    pub fn configure_sets<M>(&mut self, sets: impl IntoScheduleConfigs<InternedSystemSet, M>) -> &mut Self {
        self.systems.configure_sets(sets);
        self
    }

    /// Gives the systems of a module, such as `precinct.movement`, a heading in captures and charts. Without one it is
    /// gameplay.
    pub fn categorise(&mut self, scopes: &'static str, category: Category) -> &mut Self {
        self.systems.categorise(scopes, category);
        self
    }

    pub fn insert_resource<R: Resource>(&mut self, resource: R) -> &mut Self {
        self.ecs.insert_resource(resource);
        self
    }

    pub fn init_resource<R: Resource + FromWorld>(&mut self) -> &mut Self {
        self.ecs.init_resource::<R>();
        self
    }

    /// Sends `T` of every entity with `throng_replication::ecs::Replicated` to the clients that are near enough,
    /// whenever it has changed. `T` must be in the server's schema. Its exact value also counts for the world's state
    /// hash.
    pub fn replicate<T: Component + Replicate>(&mut self) -> &mut Self {
        self.collector.replicate::<T>(&mut self.ecs);
        self
    }

    /// Counts `T` of every entity for the world's state hash: state that is not replicated but must be the same in a
    /// replay.
    pub fn hash<T: Component + StateHash>(&mut self) -> &mut Self {
        self.collector.hash::<T>(&mut self.ecs);
        self
    }

    /// Says which component tells where an entity is, for interest. Entities without it are told to everybody.
    pub fn placed_by<T: Component + Placed>(&mut self) -> &mut Self {
        self.collector.placed_by::<T>(&mut self.ecs);
        self
    }

    /// Decides who may see entities with `throng_replication::VisibilityFiltered`: `true` lets the observer see. Asked
    /// every tick for each such entity and each client that it is relevant to, so it should take well under a
    /// microsecond; it may read the world and must not depend on anything else. Denied entities get no byte; those that
    /// the client held are despawned there.
    pub fn filter_visibility_by(
        &mut self,
        filter: impl Fn(&World, Viewer, Entity) -> bool + Send + Sync + 'static,
    ) -> &mut Self {
        self.visibility_filter = Some(Box::new(filter));
        self
    }

    /// Says what travellers carry into this world. Who carries anything else, another version of it or broken bytes
    /// goes back to where it was, with it; so arrivals' transfers can be read.
    pub fn accept_transfers<T: HasSchema>(&mut self) -> &mut Self {
        self.transfer_check = Some(transfer::check::<T>);
        self
    }

    /// Says what each message of a client costs this world, in units of work of which an ordinary input is 1. It is charged
    /// to the client's allowance of messages; what is above that no system sees. Without prices every message costs 1.
    ///
    /// Too low → one client has its world do that much more than its allowance is meant to say; too high → honest clients
    /// are refused in a lag burst.
    pub fn price_messages(&mut self, price: MessagePrice) -> &mut Self {
        self.price = price;
        self
    }

    /// What this world was asked for with, besides its kind and seed; `None` if with nothing.
    ///
    /// # Errors
    /// If it is no `T`.
    pub fn parameters<T: HasSchema>(&self) -> Option<Result<T, PackError>> {
        self.parameters.as_deref().map(envelope::read)
    }

    /// How far clients see in this world, in place of the server's settings.
    pub fn interest(&mut self, interest: InterestSettings) -> &mut Self {
        self.interest = interest;
        self
    }

    /// The settings that `interest` would replace.
    pub fn interest_settings(&self) -> &InterestSettings {
        &self.interest
    }

    /// The Bevy world itself, to spawn what it starts with.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.ecs
    }

    pub fn id(&self) -> WorldId {
        self.id
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }
}

/// A world kind with the order of its systems, which its first world gives.
pub struct Kind {
    pub id: WorldKindId,
    pub kind: Box<dyn WorldKind>,
    pub name: Arc<str>,
    recorded_kind: KindNumber,
    order: Option<Arc<SystemOrder>>,
}

impl Kind {
    pub fn new(id: WorldKindId, kind: Box<dyn WorldKind>) -> Self {
        let name: Arc<str> = kind.name().into();
        let recorded_kind = number_of(&name);
        Self { id, kind, name, recorded_kind, order: None }
    }

    pub fn tick_rate(&self) -> Hertz {
        self.kind.tick_rate()
    }

    /// Builds a world of this kind. Cost: tens of microseconds and 40-80 KB for a small world.
    pub fn build_world(
        &mut self,
        id: WorldId,
        seed: u64,
        parameters: Option<&[u8]>,
        schema: &Arc<Schema>,
        interest: &InterestSettings,
    ) -> Result<GameWorld, OrderError> {
        if self.order.is_none() {
            let template = self.fill(id, seed, parameters, schema, interest);
            let WorldBuilder { mut ecs, systems, .. } = template;
            self.order = Some(Arc::new(systems.into_order(&self.name, &mut ecs)?));
        }
        let order = self.order.clone().expect("set above");
        let filled = self.fill(id, seed, parameters, schema, interest);
        let WorldBuilder { mut ecs, systems, collector, interest, visibility_filter, transfer_check, price, .. } =
            filled;
        let systems = systems.into_systems(&self.name, order, &mut ecs)?;
        Ok(GameWorld::new(Parts {
            id,
            kind: self.id,
            recorded_kind: self.recorded_kind,
            name: self.name.clone(),
            rate: self.tick_rate(),
            ecs,
            systems,
            replication: WorldReplication::new(schema.clone(), interest),
            collector,
            visibility_filter,
            transfer_check,
            price,
        }))
    }

    fn fill(
        &self,
        id: WorldId,
        seed: u64,
        parameters: Option<&[u8]>,
        schema: &Arc<Schema>,
        interest: &InterestSettings,
    ) -> WorldBuilder {
        let rate = self.tick_rate();
        let mut ecs = World::new();
        ecs.insert_resource(TickInfo { tick: 0, dt_s: 1.0 / f32::from(rate.0), rate, world: id });
        ecs.insert_resource(WorldRng(Xoshiro256PlusPlus::seed_from_u64(seed)));
        ecs.insert_resource(MayBeDormant(self.kind.dormant_when_empty()));
        ecs.init_resource::<Inbox>();
        ecs.init_resource::<Outbox>();
        ecs.insert_resource(Events::new(schema.clone()));
        ecs.init_resource::<Arrivals>();
        ecs.init_resource::<Departures>();
        ecs.init_resource::<WorldMessages>();
        let mut builder = WorldBuilder {
            id,
            seed,
            ecs,
            systems: SystemList::default(),
            collector: Collector::new(schema.clone()),
            interest: interest.clone(),
            visibility_filter: None,
            transfer_check: None,
            price: price::ordinary,
            parameters: parameters.map(<[u8]>::to_vec),
        };
        self.kind.build(&mut builder);
        builder
    }
}
