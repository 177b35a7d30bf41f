//! The promise: players' programs open the doors on their way, and are shown them as they are.

mod simulated;

use precinct::{PrecinctBot, bot::Itinerary};
use throng_simulator::Simulation;

const BOTS: usize = 12;
const NPCS: usize = 100;

#[test]
fn bots_open_the_doors_on_their_way() {
    let settings = simulated::settings(3);
    let (mut simulation, _) = Simulation::new(&settings, simulated::game(BOTS, NPCS)).expect("the game can be set up");
    // Soon where doors are, and there for good.
    let itinerary = Itinerary { at_home_s: 0.5..2.0, away_s: 1e6..1e7, ..Itinerary::default() };
    for _ in 0..BOTS {
        simulation.join(Box::new(PrecinctBot::with_itinerary(simulated::guide(), itinerary.clone())));
    }
    simulation.run_for(90.0);
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.protocol_errors), (BOTS as u64, 0), "{totals:#?}");
    assert_eq!((totals.counter("violations"), totals.state_errors), (0, 0), "{totals:#?}");
    let report = simulation.server_mut().report();
    let opened = |by: &str| report.game_per_s.get(by).copied().unwrap_or_default() * report.seconds;
    let (players, npcs) = (opened("doors_opened_by_players"), opened("doors_opened_by_npcs"));
    println!("{players} doors opened by players, {npcs} by NPCs; at most {:?} open", report.game_gauges_max);
    assert!(players >= 3.0, "{players} doors opened by players, {npcs} by NPCs");
    assert!(report.game_gauges_max["doors_open"] > 0);
}
