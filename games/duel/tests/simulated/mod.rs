//! Duel on the simulator: what the tests of this folder share.

use duel::{BotGuide, DuelBot, DuelSettings, DuelWorlds, protocol::TICK_HZ};
use throng::{Server, server::ServerError};
use throng_simulator::{Simulation, SimulationSettings};

/// Settings of a simulation of Duel with a perfect network, and clients that send as often as a match ticks.
pub fn settings(seed: u64) -> SimulationSettings {
    SimulationSettings { think_hz: TICK_HZ.into(), ..SimulationSettings::new(duel::schema(), seed) }
}

/// Matches whose rounds are short, so that tests see many.
#[allow(dead_code, reason = "not every test plays in short rounds")]
pub fn short() -> DuelSettings {
    DuelSettings {
        rounds_to_win: 3,
        warm_up_s: 0.5,
        stagger_s: 1.0,
        buy_s: 2.0,
        round_s: 40.0,
        spike_s: 12.0,
        plant_s: 2.0,
        defuse_s: 3.0,
        over_s: 1.0,
        fill_s: 1.0,
        ..DuelSettings::default()
    }
}

/// Builds a game of these matches.
pub fn game(settings: DuelSettings) -> impl FnOnce(&mut Server) -> Result<DuelWorlds, ServerError> {
    move |server| duel::build(server, &settings)
}

/// A game with so many bots.
#[allow(dead_code, reason = "not every test plays with bots")]
pub fn game_with_bots(settings: &SimulationSettings, matches: DuelSettings, players: usize) -> Simulation {
    let (mut simulation, _) = Simulation::new(settings, game(matches)).expect("the game can be set up");
    let guide = BotGuide::load();
    for _ in 0..players {
        simulation.join(Box::new(DuelBot::new(guide.clone())));
    }
    simulation
}

/// How often something was counted since the start, by a game's counter.
#[allow(dead_code, reason = "not every test counts")]
pub fn counted(simulation: &mut Simulation, name: &str) -> u64 {
    let report = simulation.server_mut().report();
    (report.game_per_s.get(name).copied().unwrap_or_default() * report.seconds).round() as u64
}
