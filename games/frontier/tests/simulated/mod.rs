//! Frontier on the simulator: what the tests of this folder share.

use std::sync::{Arc, OnceLock};

use frontier::{FrontierBot, FrontierSettings, FrontierWorld, bot::BotGuide};
use throng::{Server, server::ServerError};
use throng_simulator::{Simulation, SimulationSettings};

/// What the bots of this process know.
pub fn guide() -> Arc<BotGuide> {
    static GUIDE: OnceLock<Arc<BotGuide>> = OnceLock::new();
    GUIDE.get_or_init(|| BotGuide::load(true)).clone()
}

/// Settings of a simulation of Frontier with a perfect network.
pub fn settings(seed: u64) -> SimulationSettings {
    SimulationSettings::new(frontier::schema(), seed)
}

/// Builds a game with so many NPCs.
pub fn game(npcs: usize) -> impl FnOnce(&mut Server) -> Result<FrontierWorld, ServerError> {
    move |server| frontier::build(server, &FrontierSettings { npcs, seed: 7, ..FrontierSettings::default() })
}

/// A game with a bot for every player.
#[allow(dead_code, reason = "not every test plays with the usual bots")]
pub fn game_with_bots(settings: &SimulationSettings, players: usize, npcs: usize) -> Simulation {
    let (mut simulation, _) = Simulation::new(settings, game(npcs)).expect("the game can be set up");
    for _ in 0..players {
        simulation.join(Box::new(FrontierBot::new(guide())));
    }
    simulation
}
