//! Promise: plugins that were written for Bevy change what clients see.

use std::time::Duration;

use aeronet_io::{AeronetIoPlugin, connection::Disconnect};
use bevy_ecs::prelude::*;
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

struct Watcher;

impl Behaviour for Watcher {
    fn think(&mut self, _now: Nanos, _client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {}

    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::new()
    }
}

#[test]
fn clients_see_what_startup_has_made_and_what_a_plugin_takes_away() {
    let settings = SimulationSettings::new(Harbour.protocol().schema(), 7);
    let worlds = |server: &mut Server| {
        let harbour = server.add_kind(Harbour)?;
        server.create_world(harbour, 1)
    };
    let (mut simulation, _) = Simulation::new(&settings, worlds).unwrap();
    simulation.join(Box::new(Watcher));
    let seen = |simulation: &Simulation| simulation.players()[0].client().replicas().iter::<Boat>().count();
    simulation.run_for(SINKS_AFTER_S as f64 - 1.0);
    assert_eq!(seen(&simulation), 1 + MOORED);
    simulation.run_for(2.0);
    assert_eq!(seen(&simulation), MOORED);
    simulation.run_for(SINKS_AFTER_S as f64);
    assert_eq!(seen(&simulation), MOORED - 1);
}
