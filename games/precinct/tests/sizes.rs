//! The promise: a game of any size works, from one player in an empty world up, and has exactly the NPCs it was asked
//! for when all are in.

mod simulated;

use bevy_ecs::prelude::*;
use precinct::PrecinctWorlds;
use precinct::npc::Npc;
use throng_simulator::Simulation;

fn npcs_in_all_worlds(simulation: &mut Simulation, worlds: &PrecinctWorlds) -> usize {
    let hideouts = worlds.hideouts.alive().into_iter().chain(worlds.spare_hideouts.iter().copied());
    let all = hideouts.chain([worlds.hub, worlds.dark_zone]);
    all.map(|id| {
        let ecs = simulation.server_mut().world_mut(id).expect("it is at home between frames").ecs_mut();
        ecs.query_filtered::<(), With<Npc>>().iter(ecs).count()
    })
    .sum()
}

fn check(players: usize, npcs: usize, seconds: f64) {
    let size = format!("{players} players and {npcs} NPCs");
    let (mut simulation, worlds) = simulated::game_with_bots(&simulated::settings(8), players, npcs);
    let are_all_in = |simulation: &mut Simulation| simulation.totals().playing == players as u64;
    assert!(simulation.run_until(60.0, are_all_in), "{size}: {:#?}", simulation.totals());
    assert_eq!(npcs_in_all_worlds(&mut simulation, &worlds), npcs, "{size}");
    simulation.run_for(seconds);
    assert_eq!(npcs_in_all_worlds(&mut simulation, &worlds), npcs, "{size}, at the end");
    let totals = simulation.totals();
    assert_eq!(totals.playing, players as u64, "{size}: {totals:#?}");
    assert_eq!(totals.counter("violations"), 0, "{size}: {totals:#?}");
    assert_eq!((totals.state_errors, totals.protocol_errors), (0, 0), "{size}: {totals:#?}");
    let report = simulation.server_mut().report();
    assert_eq!((report.worlds_parked, report.ticks_missed, report.poisoned), (0, 0, 0), "{size}: {report:#?}");
    // In the handshake some ask again when hundreds come at once; nobody is refused later.
    let refused = report.datagrams_refused.iter().filter(|(cause, _)| **cause != "gate");
    assert_eq!(refused.map(|(_, count)| count).sum::<u64>(), 0, "{size}: {report:#?}");
}

#[test]
fn small_games_of_every_size_work() {
    for players in [1, 3, 40] {
        for npcs in [0, 1, 50, 900] {
            check(players, npcs, 5.0);
        }
    }
}

/// The large form: up to the day of a thousand players and beyond.
#[test]
#[ignore = "takes minutes"]
fn large_games_work() {
    for (players, npcs) in [(1, 20_000), (300, 6_000), (1_000, 0), (1_000, 20_000), (2_500, 5)] {
        check(players, npcs, 20.0);
    }
}
