//! Frontier on the simulator: what the tests of this folder share.

use std::sync::{Arc, OnceLock};

use frontier::{FrontierBot, FrontierSettings, FrontierWorld, bot::BotGuide};
use throng::{Server, server::ServerError};
use throng_net::transport::Impairment;
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings, Totals};

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
pub fn game_with_bots(settings: &SimulationSettings, players: usize, npcs: usize) -> Simulation {
    let (mut simulation, _) = Simulation::new(settings, game(npcs)).expect("the game can be set up");
    for _ in 0..players {
        simulation.join(Box::new(FrontierBot::new(guide())));
    }
    simulation
}

/// A network that loses this share of all datagrams each way, and brings others late, twice and in another order.
#[allow(dead_code, reason = "not every test has a bad network")]
pub fn bad_network(loss: f64) -> Impairment {
    Impairment {
        loss,
        duplication: 0.02,
        reordering: 0.1,
        reorder_delay: Nanos::from_millis(60),
        delay: Nanos::from_millis(40),
        jitter: Nanos::from_millis(20),
        ..Impairment::default()
    }
}

/// Asserts that all play, that nobody was told what cannot be, and that copies were checked once a second or more.
#[allow(dead_code, reason = "not every test is about what clients see")]
#[track_caller]
pub fn check_all_play(totals: &Totals, bots: usize, seconds: u64) {
    assert_eq!(totals.playing, bots as u64, "{totals:#?}");
    assert_eq!(totals.protocol_errors, 0, "{totals:#?}");
    assert_eq!(totals.counter("violations"), 0, "{totals:#?}");
    assert!(totals.state_checks >= bots as u64 * seconds, "{totals:#?}");
}
