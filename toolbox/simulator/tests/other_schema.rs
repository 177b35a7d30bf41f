//! The promise: clients and a server that were built from different versions of a game part at once, and both know why.

use bevy_ecs::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;
use throng_bots::Behaviour;
use throng_client::{Client, DisconnectReason};
use throng_net::transport::Impairment;
use throng_platform::time::Nanos;
use throng_replication::ecs::{Placed, Replicated};
use throng_replication::{Replicate, SchemaBuilder};
use throng_simulator::{Simulation, SimulationSettings};

/// What clients of the first version know.
#[derive(Component, Replicate, Debug, Clone, Copy)]
struct Sheep {
    #[replicate(min = -100.0, max = 100.0, step = 0.01)]
    x: f32,
}

/// What the second version tells as well, so that nothing is read where it was written.
#[derive(Component, Replicate, Debug, Clone, Copy)]
struct Wool {
    #[replicate(min = 0.0, max = 1.0, step = 0.1)]
    length: f32,
    #[replicate(min = 0.0, max = 1.0, step = 0.1)]
    white: f32,
}

impl Placed for Sheep {
    fn place(&self) -> [f32; 2] {
        [self.x, 0.0]
    }
}

struct Meadow;

impl WorldKind for Meadow {
    fn name(&self) -> &str {
        "meadow"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Wool>().component::<Sheep>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.placed_by::<Sheep>().add_systems(Update, (welcome, graze).chain());
    }
}

fn welcome(arrivals: Res<Arrivals>, mut commands: Commands, mut outbox: ResMut<Outbox>) {
    for arrival in &arrivals.0 {
        let wool = Wool { length: 0.5, white: 0.7 };
        let sheep = commands.spawn((Sheep { x: 1.0 }, wool, Replicated::default())).id();
        outbox.set_player(arrival.client, sheep);
    }
}

fn graze(mut sheep: Query<&mut Sheep>) {
    sheep.iter_mut().for_each(|mut sheep| sheep.x = -sheep.x);
}

struct Listener;

impl Behaviour for Listener {
    fn think(&mut self, _: Nanos, _: &mut Client, _: &mut Xoshiro256PlusPlus) {}
}

/// Without the schemas' hashes ten clients stay, and count an error for each packet that they cannot read.
#[test]
fn clients_of_another_version_are_told_so_and_are_gone() {
    const PLAYERS: u64 = 10;
    let ours = SchemaBuilder::new().component::<Wool>().component::<Sheep>().build();
    let theirs = SchemaBuilder::new().component::<Sheep>().build();
    let (server, own) = (ours.hash(), theirs.hash());
    for is_poor in [false, true] {
        let settings = SimulationSettings {
            client_schema: Some(theirs.clone()),
            impairment: Impairment { loss: if is_poor { 0.2 } else { 0.0 }, ..Impairment::default() },
            ..SimulationSettings::new(ours.clone(), 5)
        };
        let build = |server: &mut throng::Server| {
            let meadow = server.add_kind(Meadow)?;
            server.create_world(meadow, 1)
        };
        let (mut simulation, _) = Simulation::new(&settings, build).unwrap();
        (0..PLAYERS).for_each(|_| _ = simulation.join(Box::new(Listener)));
        simulation.run_for(10.0);
        for player in simulation.players() {
            assert_eq!(player.end(), Some(DisconnectReason::SchemaMismatch { own, server }), "poor line: {is_poor}");
            assert!(!player.was_in_world());
        }
        assert_eq!(simulation.totals().protocol_errors, 0, "poor line: {is_poor}");
        let server = simulation.server_mut();
        assert_eq!(server.count_of("server.disconnects"), PLAYERS, "they are let go at once");
        let mismatches = server.count_of("net.schema_mismatches");
        // With one chance in 125 each, the line loses all that one says of it.
        let least = if is_poor { PLAYERS - 2 } else { PLAYERS };
        assert!((least..=PLAYERS).contains(&mismatches), "{mismatches}: each is counted once");
    }
}
