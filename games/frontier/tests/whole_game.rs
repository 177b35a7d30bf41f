//! The whole game on a virtual clock: its one world, and bots that play it.
//!
//! Promise: bots get in, wander, fight, cast, gather, talk and join each other, and nothing that they are told is
//! wrong.

mod simulated;

#[test]
fn bots_play_the_whole_game_and_find_nothing_wrong() {
    const BOTS: usize = 50;
    let mut simulation = simulated::game_with_bots(&simulated::settings(5), BOTS, 900);
    simulation.run_for(60.0);
    let totals = simulation.totals();
    println!("{totals:#?}");
    totals.check_all_play(BOTS, 60);
    assert_eq!(totals.state_errors, 0, "{totals:#?}");
    for happened in
        ["casts", "lines_said", "lines_heard", "events_heard", "parties_joined", "deaths", "works_asked", "land_told"]
    {
        assert!(totals.counter(happened) > 0, "{happened}: {totals:#?}");
    }
    let report = simulation.server_mut().report();
    assert_eq!(
        (report.worlds, report.worlds_parked, report.ticks_missed, report.poisoned),
        (1, 0, 0, 0),
        "{report:#?}"
    );
}

/// Promise: a game of any size works, from one player in an empty landscape up.
#[test]
fn small_games_of_every_size_work() {
    for (players, npcs) in [(1, 0), (1, 1), (3, 40), (40, 0), (40, 20)] {
        let mut simulation = simulated::game_with_bots(&simulated::settings(8), players, npcs);
        simulation.run_for(5.0);
        let totals = simulation.totals();
        let size = format!("{players} players and {npcs} NPCs: {totals:#?}");
        assert_eq!(totals.playing, players as u64, "{size}");
        assert_eq!((totals.state_errors, totals.protocol_errors, totals.counter("violations")), (0, 0, 0), "{size}");
    }
}

/// The large form: everybody in one world.
#[test]
#[ignore = "takes minutes"]
fn a_large_game_works() {
    let mut simulation = simulated::game_with_bots(&simulated::settings(9), 1_000, 10_000);
    simulation.run_for(30.0);
    let totals = simulation.totals();
    totals.check_all_play(1_000, 25);
    assert_eq!(totals.state_errors, 0, "{totals:#?}");
}
