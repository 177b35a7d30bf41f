//! The promise: when the one world of the game panics, it goes on as it was before the tick that failed, with its players on
//! the connections that they have.

mod simulated;

use frontier::{land::Map, roster::Roster};
use throng::prelude::{TickInfo, WorldId};
use throng_simulator::Simulation;

const BOTS: u64 = 20;

fn worlds(simulation: &mut Simulation) -> Vec<WorldId> {
    simulation.server_mut().worlds().map(|(id, ..)| id).collect()
}

/// What players have, and how much of the land is changed.
fn standing(simulation: &mut Simulation, world: WorldId) -> (u64, usize, usize) {
    let ecs = simulation.server_mut().world_mut(world).expect("it is at home between frames").ecs_mut();
    let roster = ecs.resource::<Roster>();
    let accounts = roster.iter().map(|player| player.account).fold(0, u64::wrapping_add);
    (accounts, roster.count(), ecs.resource::<Map>().sectors_count())
}

#[test]
fn when_the_world_panics_everybody_goes_on_in_it() {
    let mut simulation = simulated::game_with_bots(&simulated::settings(21), BOTS as usize, 300);
    // Long enough for a checkpoint and some ticks beyond it.
    simulation.run_for(20.0);
    let [world] = worlds(&mut simulation)[..] else { panic!("one world for everybody") };
    let before = standing(&mut simulation, world);
    for panics in 1..=2 {
        let broken = simulation.server_mut().world_mut(world).expect("it is at home between frames");
        // Its next tick panics at the very beginning.
        assert!(broken.ecs_mut().remove_resource::<TickInfo>().is_some());
        let checks_before = simulation.totals().state_checks;
        simulation.run_for(5.0);
        assert_eq!(worlds(&mut simulation), [world]);
        assert_eq!(simulation.server_mut().count_of("server.worlds_reloaded"), panics);
        let (accounts, players, sectors) = standing(&mut simulation, world);
        assert!((accounts, players) == (before.0, before.1) && sectors > 0, "{before:?}, then {players} in {sectors}");
        let totals = simulation.totals();
        assert_eq!((totals.playing, totals.disconnects, totals.state_errors), (BOTS, 0, 0), "{totals:#?}");
        assert!(totals.state_checks > checks_before + 2 * BOTS, "{totals:#?}");
        assert_eq!(simulation.server_mut().count_of("server.clients_placed_again"), 0);
    }
}
