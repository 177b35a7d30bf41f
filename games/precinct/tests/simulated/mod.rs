//! Precinct on the simulator: what the tests of this folder share.

use std::sync::{Arc, OnceLock};

use bevy_ecs::world::World;
use precinct::{
    PrecinctBot, PrecinctSettings, PrecinctWorlds,
    bot::BotGuide,
    gear::{Bag, Gear},
    ground::Lies,
    stash::Stash,
};
use throng::{Server, server::ServerError};
use throng_simulator::{Simulation, SimulationSettings};

/// Where the bots of this process look things up.
pub fn guide() -> Arc<BotGuide> {
    static GUIDE: OnceLock<Arc<BotGuide>> = OnceLock::new();
    GUIDE.get_or_init(BotGuide::load).clone()
}

/// Settings of a simulation of Precinct with a perfect network.
#[allow(dead_code, reason = "not every test has a perfect network")]
pub fn settings(seed: u64) -> SimulationSettings {
    SimulationSettings::new(precinct::schema(), seed)
}

/// Builds a game of this size.
pub fn game(players: usize, npcs: usize) -> impl FnOnce(&mut Server) -> Result<PrecinctWorlds, ServerError> {
    move |server| precinct::build(server, &PrecinctSettings { players, npcs, seed: 7, ..PrecinctSettings::default() })
}

/// A game with a bot for every player.
#[allow(dead_code, reason = "not every test plays with the usual bots")]
pub fn game_with_bots(settings: &SimulationSettings, players: usize, npcs: usize) -> (Simulation, PrecinctWorlds) {
    let (mut simulation, worlds) = Simulation::new(settings, game(players, npcs)).expect("the game can be set up");
    for _ in 0..players {
        simulation.join(Box::new(PrecinctBot::new(guide())));
    }
    (simulation, worlds)
}

/// Every piece of gear in a world, wherever it is there.
#[allow(dead_code, reason = "not every test counts gear")]
pub fn pieces_in(ecs: &mut World) -> Vec<Gear> {
    let mut pieces: Vec<Gear> = ecs.query::<&Bag>().iter(ecs).flat_map(|bag| bag.gear.iter()).collect();
    pieces.extend(ecs.query::<&Stash>().iter(ecs).flat_map(|stash| stash.gear.iter()));
    pieces.extend(ecs.query::<&Lies>().iter(ecs).map(|lies| lies.gear));
    pieces
}
