//! The promise: when the one world of the game panics, its players go on in a fresh one, on the connections that they
//! have.

mod simulated;

use throng::prelude::{TickInfo, WorldId};
use throng_simulator::Simulation;

fn worlds(simulation: &mut Simulation) -> Vec<WorldId> {
    simulation.server_mut().worlds().map(|(id, ..)| id).collect()
}

#[test]
fn when_the_world_panics_everybody_goes_on_in_a_fresh_one() {
    const BOTS: u64 = 20;
    let mut simulation = simulated::game_with_bots(&simulated::settings(21), BOTS as usize, 300);
    simulation.run_for(5.0);
    let [broken] = worlds(&mut simulation)[..] else { panic!("one world for everybody") };
    let world = simulation.server_mut().world_mut(broken).expect("it is at home between frames");
    // Its next tick panics at the very beginning.
    assert!(world.ecs_mut().remove_resource::<TickInfo>().is_some());
    let checks_before = simulation.totals().state_checks;
    simulation.run_for(5.0);

    let fresh = worlds(&mut simulation);
    assert!(fresh.len() == 1 && fresh[0] != broken, "{fresh:?}");
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.disconnects, totals.state_errors), (BOTS, 0, 0), "{totals:#?}");
    assert!(totals.state_checks > checks_before + 2 * BOTS, "{totals:#?}");
    assert_eq!(simulation.server_mut().count_of("server.clients_placed_again"), BOTS);
}
