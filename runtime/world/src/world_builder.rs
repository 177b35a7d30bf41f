//! World builder: what a world kind fills, and how it becomes a world.
//!
//! It is written to as a `bevy_app::App` is: systems, sets, messages, observers, states and Bevy's own plugins are added
//! under the same names, with the same labels. When they run is said in `system_list`, what becomes of Bevy's plugins in
//! `plugin_host`, and what `Time` is in `tick_time`.
//!
//! `Startup` systems and their neighbours run once, when the world is made: on the thread that makes worlds, before the
//! first tick. What they spawn is heard of, as what `build` spawns is. A world whose startup system fails is not made.

use std::sync::Arc;

use bevy_app::{App, First, Plugins, Update};
use bevy_ecs::{
    error::FallbackErrorHandler,
    message::{Message, MessageRegistry, MessageUpdateSystems, Messages},
    observer::IntoObserver,
    prelude::*,
    schedule::{InternedSystemSet, IntoScheduleConfigs, ScheduleLabel},
    system::ScheduleSystem,
};
use bevy_state::{
    app::{AppExtStates, StatesPlugin},
    state::{ComputedStates, FreelyMutableState, SubStates},
};
use bevy_tasks::{ComputeTaskPool, TaskPoolBuilder};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_pack::{HasSchema, PackError, envelope};
use throng_platform::time::Nanos;
use throng_profiler::{
    Category, KindNumber,
    world_kind::{number_of, set_period},
};
use throng_replication::{
    InterestSettings, Protocol, Schema, StateHash, WorldReplication,
    ecs::{Collector, Placed},
};
use throng_scheduler::Hertz;

use crate::{
    checkpoint::{Registry, engine_types},
    declared::Declared,
    events::Events,
    failures,
    game_world::{GameWorld, Parts},
    ids::{WorldId, WorldKindId},
    inbox::Inbox,
    plugin_host::PluginHost,
    reactive::{self, Reactive},
    saving::{PlayerToSave, SaveAnswers, SaveHooks, SaveStore, WorldState},
    system_list::SystemList,
    system_order::{OrderError, SystemOrder},
    tick_resources::{Arrivals, Departures, MayBeDormant, Outbox, TickInfo, WorldMessages, WorldRng},
    tick_time::{self, OtherTimestep, TickTime},
    transfer::TransferChecks,
    update_messages::update_messages,
    visibility::{MaySee, Viewer, VisibilityFilter},
    world_kind::{Pace, WorldKind, WorldPlugins},
};

/// A world in the making. Kinds and plugins add to it; the server finishes it.
pub struct WorldBuilder {
    id: WorldId,
    seed: u64,
    ecs: World,
    systems: SystemList,
    /// Made for the first plugin of Bevy's.
    host: Option<PluginHost>,
    collector: Collector,
    interest: InterestSettings,
    visibility_filter: Option<VisibilityFilter>,
    transfer_checks: TransferChecks,
    save_hooks: SaveHooks,
    parameters: Option<Vec<u8>>,
    /// Rates at which some systems run.
    rates: Vec<Hertz>,
    pub(crate) checkpoints: Registry,
}

impl WorldBuilder {
    /// Adds plugins: a [`WorldPlugin`](crate::world_kind::WorldPlugin), a `bevy_app::Plugin` or `PluginGroup`, or a tuple
    /// of any of them.
    ///
    /// # Panics
    /// As in Bevy, if a plugin that is unique is added twice.
    pub fn add_plugins<M>(&mut self, plugins: impl WorldPlugins<M>) -> &mut Self {
        plugins.build_all(self);
        self
    }

    /// Adds systems under a label, `Update` if in doubt, with Bevy's `chain`, `before`, `after`, `in_set` and `run_if`.
    /// Systems of a tick's labels run once per tick, also those of `FixedUpdate`; those of `Startup` once, before the
    /// first tick. A label that nobody runs makes the kind an error.
    pub fn add_systems<M>(
        &mut self,
        label: impl ScheduleLabel,
        systems: impl IntoScheduleConfigs<ScheduleSystem, M>,
    ) -> &mut Self {
        self.systems.add(label, systems);
        self
    }

    /// Adds systems to `Update` that run at a rate of their own, exactly and evenly, however often the world ticks: at 5 Hz in
    /// a world of 20 in every fourth tick. A reactive world ([`crate::reactive`]) ticks for them when their time has come.
    ///
    /// # Panics
    /// If the rate is not 1 Hz to that of the world's ticks.
    pub fn add_systems_every<M>(
        &mut self,
        rate: Hertz,
        systems: impl IntoScheduleConfigs<ScheduleSystem, M>,
    ) -> &mut Self {
        let of_world = self.ecs.resource::<TickInfo>().rate;
        assert!(
            (1..=of_world.0).contains(&rate.0),
            "systems at {} Hz in a world of {} Hz: 1 Hz to the world's own rate is possible",
            rate.0,
            of_world.0
        );
        self.rates.push(rate);
        let is_due = move |tick: Res<TickInfo>| reactive::is_turn(tick.tick, rate, tick.rate);
        self.add_systems(Update, systems.into_configs().run_if(is_due))
    }

    /// Orders and conditions sets of systems under a label.
    #[track_caller]
    pub fn configure_sets<M>(
        &mut self,
        label: impl ScheduleLabel,
        sets: impl IntoScheduleConfigs<InternedSystemSet, M>,
    ) -> &mut Self {
        self.systems.configure_sets(label, sets);
        self
    }

    /// Lets systems write and read messages of this type (`MessageWriter`, `MessageReader`): of this tick and of the one
    /// before. What is older is dropped, so they take no more memory than two ticks' worth.
    pub fn add_message<M: Message>(&mut self) -> &mut Self {
        if !self.ecs.contains_resource::<Messages<M>>() {
            MessageRegistry::register_message::<M>(&mut self.ecs);
        }
        self
    }

    /// Adds an observer of events, wherever they are triggered.
    pub fn add_observer<M>(&mut self, observer: impl IntoObserver<M>) -> &mut Self {
        self.ecs.add_observer(observer);
        self
    }

    /// Adds a state with its default value. A change by `NextState` is made in the next tick's `StateTransition`, which
    /// runs between `PreUpdate` and the fixed schedules; `OnEnter` of the first value runs before `Startup`.
    ///
    /// A kind with states has the cost of Bevy's plugins, and each of its worlds holds the schedules of its transitions.
    pub fn init_state<S: FreelyMutableState + FromWorld>(&mut self) -> &mut Self {
        self.with_states(|app| _ = app.init_state::<S>())
    }

    /// Adds a state with this value; otherwise as [`Self::init_state`].
    pub fn insert_state<S: FreelyMutableState>(&mut self, state: S) -> &mut Self {
        self.with_states(|app| _ = app.insert_state(state))
    }

    /// Adds a state that exists while another one has a certain value.
    pub fn add_sub_state<S: SubStates>(&mut self) -> &mut Self {
        self.with_states(|app| _ = app.add_sub_state::<S>())
    }

    /// Adds a state that is computed from others.
    pub fn add_computed_state<S: ComputedStates>(&mut self) -> &mut Self {
        self.with_states(|app| _ = app.add_computed_state::<S>())
    }

    fn with_states(&mut self, add: impl FnOnce(&mut App)) -> &mut Self {
        self.with_app(|app| {
            if !app.is_plugin_added::<StatesPlugin>() {
                app.add_plugins(StatesPlugin);
            }
            add(app);
        })
    }

    /// Adds what Bevy calls plugins.
    pub(crate) fn add_bevy_plugins<M>(&mut self, plugins: impl Plugins<M>) -> &mut Self {
        self.with_app(|app| _ = app.add_plugins(plugins))
    }

    fn with_app(&mut self, work: impl FnOnce(&mut App)) -> &mut Self {
        self.host.get_or_insert_with(PluginHost::new).lend(&mut self.ecs, &mut self.systems, work);
        self
    }

    /// What is left to do when the kind has added everything.
    fn finish(&mut self, kind: &str) -> Result<(), OrderError> {
        if let Some(host) = self.host.take() {
            host.finish(kind, &mut self.ecs, &mut self.systems)?;
        }
        if self.ecs.contains_resource::<MessageRegistry>() {
            self.systems.add(First, update_messages.in_set(MessageUpdateSystems));
        }
        Ok(())
    }

    /// Gives the systems of a module, such as `precinct.movement`, a heading in captures and charts. Without one it is
    /// gameplay.
    pub fn categorise(&mut self, scopes: &'static str, category: Category) -> &mut Self {
        self.systems.categorise(scopes, category);
        self
    }

    /// Counts the systems of a module and of those below it as one subsystem, with one budget: with `precinct.npc` and `ai`
    /// the scope of the system `precinct::npc::perception::perceive` is `ai.perceive`, and not its path. What they are
    /// called in captures, budgets and metrics then stays when they are moved. Two with one name are one scope.
    pub fn name_subsystem(&mut self, scopes: &'static str, subsystem: &'static str) -> &mut Self {
        self.systems.name_subsystem(scopes, subsystem);
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
        self.visibility_filter = Some(VisibilityFilter::Each(Box::new(filter)));
        self
    }

    /// The same with one question for each client: all visibility-filtered entities that are relevant to it, in an order
    /// that stays while nobody comes or goes, and a bit for each ([`MaySee`]). Asked every tick for each client that has
    /// any. The filter may keep what it found; that must follow from the questions and the world, and nothing else. Of this
    /// and `filter_visibility_by` the one that was said last holds.
    pub fn filter_visibility_in_batches_by(
        &mut self,
        filter: impl FnMut(&World, Viewer, &[Entity], &mut MaySee<'_>) + Send + Sync + 'static,
    ) -> &mut Self {
        self.visibility_filter = Some(VisibilityFilter::Batch(Box::new(filter)));
        self
    }

    /// Says what travellers carry into this world. Who carries anything else, another version of it or broken bytes
    /// goes back to where it was, with it; so arrivals' transfers can be read.
    pub fn accept_transfers<T: HasSchema>(&mut self) -> &mut Self {
        self.transfer_checks.accept::<T>();
        self
    }

    /// Takes in `Old` too, which an older build saved as what [`save_players`](Self::save_players) or
    /// [`accept_transfers`](Self::accept_transfers) has a newer version of, where its fields alone do not say how it is
    /// read. Whoever reads the arrival's transfer makes the newer one of it, by `throng_persistence`'s `Versions`:
    ///
    /// ```ignore
    /// let heroes = Versions::<Hero>::new().migrate(|old: HeroV1| Hero { gold: old.coins / 100 });
    /// let hero = heroes.read(transfer.bytes())?;
    /// ```
    pub fn accept_older_transfers<Old: HasSchema>(&mut self) -> &mut Self {
        self.transfer_checks.accept_older::<Old>();
        self
    }

    /// What worlds have that save something.
    fn init_saving(&mut self) {
        self.ecs.init_resource::<SaveAnswers>();
        self.ecs.init_resource::<SaveStore>();
    }

    /// Has players saved: `of` says what one of them is and has, as they would take it on a journey. It is what
    /// [`accept_transfers`](Self::accept_transfers) says, so who is loaded arrives with it. Of everybody in the world it is
    /// asked in each cut ([`crate::saving`]), also of one who has no entity: a dead player who had lost all they had,
    /// and is `None` here, would have it again after a crash, and so would who took it. `None` leaves the saved one as it
    /// is, which is right only for who has nothing here that could be given or taken.
    pub fn save_players<T: HasSchema>(
        &mut self,
        of: impl Fn(&mut World, PlayerToSave) -> Option<T> + Send + Sync + 'static,
    ) -> &mut Self {
        self.init_saving();
        self.save_hooks.save_players(of);
        self.accept_transfers::<T>()
    }

    /// Says how the world's own state is saved and loaded.
    pub fn save_world(&mut self, state: impl WorldState) -> &mut Self {
        self.init_saving();
        self.save_hooks.save_world(state);
        self
    }

    /// The world is saved as its checkpoint, which the kind registers with [`Self::checkpoint`] and its neighbours, and is
    /// there again as it was, tick and chance included; without the entities of players, who come with what is saved of
    /// them. In place of [`Self::save_world`].
    ///
    /// A later build may keep more types, and newer versions of them. A type that it keeps no longer it must
    /// [say so](Self::checkpoint_dropped): otherwise the world is not made, its record stays, and the error names both. A
    /// client's key means nobody in the next process: what outlives its player refers to them by their client id.
    pub fn save_world_by_checkpoint(&mut self) -> &mut Self {
        self.init_saving();
        self.save_hooks.save_world_by_checkpoint();
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
    protocol: Protocol,
    order: Option<Arc<SystemOrder>>,
    /// With the schema of the first world that is built.
    declared: Option<Arc<Declared>>,
    /// Of the first world that is built.
    checkpoints: Option<Arc<Registry>>,
}

impl Kind {
    pub fn new(id: WorldKindId, kind: Box<dyn WorldKind>) -> Self {
        // With Bevy's feature `multi_threaded`, which any crate of a build may turn on, `par_iter` asks for a pool of
        // threads and panics without one. With one that has no threads it is the loop that it is otherwise.
        ComputeTaskPool::get_or_init(|| TaskPoolBuilder::new().num_threads(0).build());
        let name: Arc<str> = kind.name().into();
        let recorded_kind = number_of(&name);
        set_period(recorded_kind, kind.tick_rate().period().0);
        let protocol = kind.protocol();
        Self { id, kind, name, recorded_kind, protocol, order: None, declared: None, checkpoints: None }
    }

    /// What its worlds and their clients say to each other.
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    pub fn tick_rate(&self) -> Hertz {
        self.kind.tick_rate()
    }

    /// Builds a world of this kind. Cost: tens of microseconds and 40-80 KB for a small world.
    ///
    /// # Panics
    /// If the schema lacks something of the kind's protocol: a host asks [`Schema::lacks`] before.
    pub fn build_world(
        &mut self,
        id: WorldId,
        seed: u64,
        parameters: Option<&[u8]>,
        schema: &Arc<Schema>,
        interest: &InterestSettings,
    ) -> Result<GameWorld, OrderError> {
        let declared = self
            .declared
            .get_or_insert_with(|| Arc::new(Declared::new(&self.protocol, schema, self.kind.tick_rate())))
            .clone();
        if self.order.is_none() {
            let template = self.fill(id, seed, parameters, &declared, interest)?;
            let WorldBuilder { mut ecs, systems, .. } = template;
            self.order = Some(Arc::new(systems.into_order(&self.name, &mut ecs)?));
        }
        let order = self.order.clone().expect("set above");
        let filled = self.fill(id, seed, parameters, &declared, interest)?;
        let WorldBuilder {
            mut ecs,
            systems,
            collector,
            interest,
            visibility_filter,
            transfer_checks,
            save_hooks,
            checkpoints,
            mut rates,
            ..
        } = filled;
        let reactive = (self.kind.pace() == Pace::Reactive).then(|| {
            if systems.has_fixed_systems() {
                rates.push(self.tick_rate());
            }
            Box::new(Reactive::new(rates, ecs.contains_resource::<MessageRegistry>()))
        });
        let checkpoints = self.checkpoints.get_or_insert_with(|| Arc::new(checkpoints)).clone();
        let has_time_plugin = systems.has_time_plugin();
        let mut systems = systems.into_systems(&self.name, order, &mut ecs)?;
        refuse_non_send_data(&self.name, &ecs)?;
        // `TimePlugin` names it itself, so there an observer that does goes unseen: it fails when it runs.
        if !has_time_plugin && tick_time::names_clock(&ecs) {
            let by = "an observer, a system of a state transition, or what `build` does".into();
            return Err(OrderError::RealTime { kind: self.name.to_string(), by });
        }
        let rate = self.tick_rate();
        let time = TickTime::give(&mut ecs, rate).map_err(|OtherTimestep(asked)| {
            let kind = self.name.to_string();
            OrderError::Timestep { kind, asked, rate: rate.0 }
        })?;
        systems.start(&mut ecs)?;
        Ok(GameWorld::new(Parts {
            id,
            kind: self.id,
            recorded_kind: self.recorded_kind,
            name: self.name.clone(),
            rate,
            ecs,
            systems,
            time,
            replication: WorldReplication::new(schema.clone(), interest),
            collector,
            declared,
            visibility_filter,
            transfer_checks,
            save_hooks,
            checkpoints,
            reactive,
        }))
    }

    fn fill(
        &self,
        id: WorldId,
        seed: u64,
        parameters: Option<&[u8]>,
        declared: &Arc<Declared>,
        interest: &InterestSettings,
    ) -> Result<WorldBuilder, OrderError> {
        let rate = self.tick_rate();
        let mut ecs = World::new();
        ecs.insert_resource(FallbackErrorHandler(failures::handle));
        let dt_s = 1.0 / f32::from(rate.0);
        ecs.insert_resource(TickInfo { tick: 0, dt_s, rate, world: id, last_tick_took: Nanos::ZERO });
        ecs.insert_resource(WorldRng(Xoshiro256PlusPlus::seed_from_u64(seed)));
        ecs.insert_resource(MayBeDormant(self.kind.dormant_when_empty()));
        ecs.insert_resource(Inbox::new(declared.clone()));
        ecs.insert_resource(Outbox::new(declared.clone()));
        ecs.insert_resource(Events::new(declared.schema.clone()));
        ecs.init_resource::<Arrivals>();
        ecs.init_resource::<Departures>();
        ecs.init_resource::<WorldMessages>();
        let mut collector = Collector::new(declared.schema.clone());
        self.protocol.replicate_in(&mut collector, &mut ecs);
        let mut builder = WorldBuilder {
            id,
            seed,
            ecs,
            systems: SystemList::default(),
            host: None,
            collector,
            interest: interest.clone(),
            visibility_filter: None,
            transfer_checks: TransferChecks::default(),
            save_hooks: SaveHooks::default(),
            parameters: parameters.map(<[u8]>::to_vec),
            rates: Vec::new(),
            checkpoints: engine_types::registry(),
        };
        self.kind.build(&mut builder);
        builder.finish(&self.name)?;
        Ok(builder)
    }
}

/// Data that may be touched by the thread that made it only is no use in a world, which any worker ticks.
fn refuse_non_send_data(kind: &str, ecs: &World) -> Result<(), OrderError> {
    let mut present = ecs.storages().non_sends.iter().filter(|(_, data)| data.is_present());
    let Some((id, _)) = present.next() else { return Ok(()) };
    let what = ecs.components().get_name(id).map_or_else(|| "data".into(), |name| name.to_string());
    Err(OrderError::TiedToThread { kind: kind.into(), what })
}
