//! The promise: what a game does to no effect is counted and logged, and its clients stay in their world: a player which
//! nobody can be told of.

use bevy_ecs::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;
use throng_bots::Behaviour;
use throng_client::Client;
use throng_platform::time::Nanos;
use throng_replication::{SchemaBuilder, ecs::Replicated};
use throng_simulator::{Simulation, SimulationSettings};

/// What is wrong here.
#[derive(Resource, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    NotReplicated,
    Despawned,
}

struct Hall(Fault);

impl WorldKind for Hall {
    fn name(&self) -> &str {
        "hall"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.insert_resource(self.0).add_systems(Update, welcome);
    }
}

fn welcome(arrivals: Res<Arrivals>, fault: Res<Fault>, mut commands: Commands, mut outbox: ResMut<Outbox>) {
    for arrival in &arrivals.0 {
        let mut player = commands.spawn_empty();
        if *fault != Fault::NotReplicated {
            player.insert(Replicated::default());
        }
        outbox.set_player(arrival.client, player.id());
        if *fault == Fault::Despawned {
            player.despawn();
        }
    }
}

struct Listener;

impl Behaviour for Listener {
    fn think(&mut self, _: Nanos, _: &mut Client, _: &mut Xoshiro256PlusPlus) {}
}

const PLAYERS: u64 = 3;

fn play(fault: Fault) -> Simulation {
    let settings = SimulationSettings::new(SchemaBuilder::new().build(), 6);
    let build = |server: &mut throng::Server| {
        let hall = server.add_kind(Hall(fault))?;
        server.create_world(hall, 1)
    };
    let (mut simulation, _) = Simulation::new(&settings, build).unwrap();
    (0..PLAYERS).for_each(|_| _ = simulation.join(Box::new(Listener)));
    simulation.run_for(3.0);
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.protocol_errors), (PLAYERS, 0), "{totals:#?}");
    simulation
}

#[test]
fn a_player_that_nobody_can_be_told_of_is_counted() {
    for (fault, expect) in [(Fault::None, 0), (Fault::NotReplicated, PLAYERS), (Fault::Despawned, PLAYERS)] {
        let mut simulation = play(fault);
        let with_player = simulation.players().iter().filter(|player| player.client().own_entity().is_some()).count();
        assert_eq!(with_player as u64, PLAYERS - expect);
        assert_eq!(simulation.server_mut().count_of("world.players_unreplicated"), expect, "once for each");
    }
}
