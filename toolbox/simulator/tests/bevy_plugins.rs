//! Promise: plugins that were written for Bevy change what clients see.

use std::time::Duration;

use aeronet_io::{AeronetIoPlugin, connection::Disconnect};
use bevy_easings::{Ease, EaseMethod, EasingType, EasingsLabel, EasingsPlugin};
use bevy_ecs::prelude::*;
use bevy_math::Vec3;
use bevy_transform::components::Transform;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{Server, prelude::*};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::Client;
use throng_platform::time::Nanos;
use throng_replication::{
    Replicate,
    ecs::{Placed, Replicated},
};
use throng_simulator::{Simulation, SimulationSettings};

#[derive(Component, Replicate, Debug, Clone, Copy)]
struct Boat {
    #[replicate(min = -100.0, max = 100.0, step = 0.01)]
    x: f32,
    #[replicate(min = -100.0, max = 100.0, step = 0.01)]
    z: f32,
}

impl Placed for Boat {
    fn place(&self) -> [f32; 2] {
        [self.x, self.z]
    }
}

/// Boats beside those of players.
const MOORED: usize = 3;
/// How long the first of them is there. (s)
const SINKS_AFTER_S: u64 = 4;

fn welcome(arrivals: Res<Arrivals>, mut outbox: ResMut<Outbox>, mut commands: Commands) {
    for arrival in &arrivals.0 {
        let boat = commands.spawn((Replicated::default(), Boat { x: 0.0, z: 0.0 })).id();
        outbox.set_player(arrival.client, boat);
    }
}

fn moor(mut commands: Commands) {
    (0..MOORED).for_each(|place| _ = commands.spawn((Replicated::default(), Boat { x: 1.0, z: place as f32 }, Moored)));
}

#[derive(Component)]
struct Moored;

struct Harbour;

impl WorldKind for Harbour {
    fn name(&self) -> &str {
        "harbour"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Boat>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.placed_by::<Boat>().add_plugins(AeronetIoPlugin);
        world.add_systems(Startup, moor).add_systems(Update, welcome);
        world.add_systems(FixedUpdate, sink.run_if(on_timer(Duration::from_secs(SINKS_AFTER_S))));
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }
}

/// The plugin takes away what it is told has lost its connection.
fn sink(boats: Query<Entity, With<Moored>>, mut commands: Commands) {
    if let Some(boat) = boats.iter().min() {
        commands.trigger(Disconnect::new(boat, "it sinks"));
    }
}

/// What a boat's place is rounded to. (m)
const STEP_M: f32 = 0.01;
/// How far it is for a ferry: less than clients see. (m)
const FAR_SIDE_M: f32 = 40.0;
/// How long it is under way, one way. (s)
const CROSSING_S: u32 = 4;
const STRAIT_HZ: u16 = 20;
const CROSSING_TICKS: u32 = CROSSING_S * STRAIT_HZ as u32;

struct Strait;

impl WorldKind for Strait {
    fn name(&self) -> &str {
        "strait"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(STRAIT_HZ)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Boat>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.placed_by::<Boat>().add_plugins(EasingsPlugin::default());
        world.add_systems(Startup, cast_off).add_systems(Update, (welcome, sail.after(EasingsLabel)));
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }
}

fn cast_off(mut commands: Commands) {
    let here = Transform::default();
    let there = Transform::from_translation(Vec3::new(FAR_SIDE_M, 0.0, 0.0));
    let to_and_fro = EasingType::PingPong { duration: Duration::from_secs(CROSSING_S.into()), pause: None };
    let crossing = here.ease_to(there, EaseMethod::Linear, to_and_fro);
    commands.spawn((Replicated::default(), Boat { x: 0.0, z: 0.0 }, here, crossing));
}

/// The plugin moves what it knows, which is a `Transform`.
fn sail(mut ferries: Query<(&mut Boat, &Transform), Changed<Transform>>) {
    for (mut boat, transform) in &mut ferries {
        (boat.x, boat.z) = (transform.translation.x, transform.translation.z);
    }
}

/// Where a ferry is in tick number `tick`, counted from 0: the first one has moved it already. (m)
fn ferry_at(tick: u32) -> f32 {
    let since_it_was_here = (tick + 1) % (2 * CROSSING_TICKS);
    let from_here = since_it_was_here.min(2 * CROSSING_TICKS - since_it_was_here);
    FAR_SIDE_M * from_here as f32 / CROSSING_TICKS as f32
}

struct Watcher;

impl Behaviour for Watcher {
    fn think(&mut self, _now: Nanos, _client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {}

    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::new()
    }
}

/// One world of this kind, with one player in it.
fn watched(kind: impl WorldKind) -> Simulation {
    let settings = SimulationSettings::new(kind.protocol().schema(), 7);
    let worlds = |server: &mut Server| {
        let kind = server.add_kind(kind)?;
        server.create_world(kind, 1)
    };
    let (mut simulation, _) = Simulation::new(&settings, worlds).unwrap();
    simulation.join(Box::new(Watcher));
    simulation
}

#[test]
fn clients_see_what_startup_has_made_and_what_a_plugin_takes_away() {
    let mut simulation = watched(Harbour);
    let seen = |simulation: &Simulation| simulation.players()[0].client().replicas().iter::<Boat>().count();
    simulation.run_for(SINKS_AFTER_S as f64 - 1.0);
    assert_eq!(seen(&simulation), 1 + MOORED);
    simulation.run_for(2.0);
    assert_eq!(seen(&simulation), MOORED);
    simulation.run_for(SINKS_AFTER_S as f64);
    assert_eq!(seen(&simulation), MOORED - 1);
}

/// By ticks alone: a plugin that took its time from a clock would be elsewhere in a simulation.
#[test]
fn clients_see_what_a_plugin_moves_where_the_tick_puts_it() {
    let mut simulation = watched(Strait);
    simulation.run_for(2.0);
    let mut ticks = Vec::new();
    // To the far side and back, and on.
    for _ in 0..3 * CROSSING_S {
        simulation.run_for(1.0);
        let client = simulation.players()[0].client();
        let mut others = client.replicas().iter::<Boat>().filter(|(id, _)| Some(*id) != client.own_entity());
        let (ferry, boat) = others.next().expect("the ferry is near enough to be seen");
        let tick = client.replicas().tick_of::<Boat>(ferry).expect("it is held");
        assert!((boat.x - ferry_at(tick)).abs() <= STEP_M, "tick {tick}: {}, not {}", boat.x, ferry_at(tick));
        assert_eq!(others.count(), 0);
        ticks.push(tick);
    }
    let (first, last) = (ticks[0], ticks[ticks.len() - 1]);
    assert!(last - first >= 2 * CROSSING_TICKS, "no more than ticks {first} to {last} were seen");
}
