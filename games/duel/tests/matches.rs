//! The promise: the lobby makes matches of those who wait, in order and with teams of a size; matches end and are made
//! anew by the hundred, and meanwhile no other world misses a tick.

mod simulated;

use duel::{
    DuelSettings,
    components::{Player, Score},
    protocol::{LOBBY, MATCH},
    seat_set::SeatSet,
};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::Behaviour;
use throng_client::Client;
use throng_platform::time::Nanos;
use throng_simulator::Simulation;

/// A client that sends nothing.
struct Idle;

impl Behaviour for Idle {
    fn think(&mut self, _now: Nanos, _client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {}
}

fn with_idle(settings: DuelSettings, players: usize) -> Simulation {
    let (mut simulation, _) = Simulation::new(&simulated::settings(2), simulated::game(settings)).expect("a lobby");
    (0..players).for_each(|_| _ = simulation.join(Box::new(Idle)));
    simulation
}

/// How many players are in worlds of a kind.
fn players_in(simulation: &Simulation, kind: &str) -> usize {
    let is_there = |client: &Client| client.world().is_some_and(|world| world.name == kind);
    simulation.players().iter().filter(|player| is_there(player.client())).count()
}

#[test]
fn whoever_waits_is_sent_to_a_match_and_the_rest_when_it_has_waited_for_long_enough() {
    let mut simulation = with_idle(DuelSettings { fill_s: 6.0, ..DuelSettings::default() }, 25);
    simulation.run_for(4.0);
    assert_eq!((players_in(&simulation, MATCH), players_in(&simulation, LOBBY)), (20, 5));
    assert_eq!(simulation.server_mut().worlds_count(), 3);
    simulation.run_for(6.0);
    assert_eq!((players_in(&simulation, MATCH), players_in(&simulation, LOBBY)), (25, 0));
    assert_eq!(simulation.server_mut().worlds_count(), 4);
    // Everybody is told of its own player, and each team of all of its own.
    for player in simulation.players() {
        let client = player.client();
        let own =
            client.own_entity().and_then(|own| client.replicas().get::<Player>(own)).expect("a player of its own");
        let team = client.replicas().iter::<Player>().filter(|(_, other)| other.team == own.team);
        assert!(own.is_connected && team.count() == 5, "{own:?}");
    }
}

/// Whether a player's own entity lives, in a match.
fn lives(simulation: &Simulation, player: usize) -> bool {
    let client = simulation.players()[player].client();
    let own = client.own_entity().and_then(|own| client.replicas().get::<Player>(own));
    let score = client.replicas().iter::<Score>().next();
    own.zip(score).is_some_and(|(own, (_, score))| SeatSet::from_bits(score.alive).has(own.seat))
}

#[test]
fn who_comes_is_sent_to_a_seat_that_is_free_in_a_match_that_is_played() {
    let settings = DuelSettings { fill_s: 2.0, round_s: 5.0, ..simulated::short() };
    let mut simulation = with_idle(settings, 7);
    simulation.run_for(6.0);
    assert_eq!((players_in(&simulation, MATCH), simulation.server_mut().worlds_count()), (7, 2));
    (0..3).for_each(|_| _ = simulation.join(Box::new(Idle)));
    simulation.run_for(1.0);
    assert_eq!((players_in(&simulation, MATCH), simulation.server_mut().worlds_count()), (10, 2));
    // Nothing is free until somebody goes, and then from the next round on.
    let last = simulation.join(Box::new(Idle));
    simulation.run_for(1.0);
    assert_eq!(players_in(&simulation, LOBBY), 1);
    simulation.leave(2);
    simulation.run_for(12.0);
    assert!((7..=last).all(|player| lives(&simulation, player)), "they stand up with a round");
    assert_eq!(simulation.server_mut().worlds_count(), 2);
    assert_eq!(simulated::counted(&mut simulation, "players.sent_to_free_seats"), 4);
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.disconnects, totals.state_errors), (10, 0, 0), "{totals:#?}");
}

#[test]
fn who_is_sent_to_a_match_that_is_over_waits_in_the_lobby_for_the_next() {
    // One round decides, and after it a seat of nobody is offered for as long as the news takes.
    let settings = DuelSettings { fill_s: 1.0, rounds_to_win: 1, round_s: 3.0, over_s: 0.1, ..simulated::short() };
    let mut simulation = with_idle(settings, 3);
    for _ in 0..80 {
        let player = simulation.join(Box::new(Idle));
        simulation.run_for(0.4);
        simulation.leave(player);
    }
    assert!(simulated::counted(&mut simulation, "players.sent_to_free_seats") > 10);
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.disconnects, totals.state_errors), (3, 0, 0), "{totals:#?}");
}

#[test]
fn one_alone_waits_for_another() {
    let mut simulation = with_idle(simulated::short(), 1);
    simulation.run_for(10.0);
    assert_eq!((players_in(&simulation, LOBBY), simulation.server_mut().worlds_count()), (1, 1));
    simulation.join(Box::new(Idle));
    simulation.run_for(4.0);
    assert_eq!((players_in(&simulation, MATCH), simulation.server_mut().worlds_count()), (2, 2));
}

/// Matches are ended, too, when their players go away instead of back to the lobby.
#[test]
fn a_match_that_is_left_by_everybody_is_ended() {
    let mut simulation = with_idle(DuelSettings::default(), 20);
    simulation.run_for(4.0);
    assert_eq!(simulation.server_mut().worlds_count(), 3);
    (0..20).for_each(|player| simulation.leave(player));
    simulation.run_for(3.0);
    assert_eq!(simulation.server_mut().worlds_count(), 1, "the lobby");
}

/// Promise: whenever players go on their way from the lobby into a match, the match ends, and one in which another is
/// alone does, too.
#[test]
fn a_match_whose_players_are_lost_on_their_way_is_ended() {
    for leaves_after in 0..8 {
        for stays in [0, 1] {
            let settings = DuelSettings { team_size: 1, warm_up_s: 0.2, stagger_s: 0.0, ..DuelSettings::default() };
            let mut simulation = with_idle(settings, 2);
            while simulation.server_mut().worlds_count() < 2 {
                simulation.step();
            }
            (0..leaves_after).for_each(|_| simulation.step());
            (stays..2).for_each(|player| simulation.leave(player));
            simulation.run_for(16.0);
            let worlds = simulation.server_mut().worlds_count();
            assert_eq!(worlds, 1, "{stays} stay, and the others leave after {leaves_after} frames");
        }
    }
}

fn check_turnover(players: usize, seconds: f64, matches_min: u64) {
    let settings = DuelSettings {
        team_size: 1,
        rounds_to_win: 1,
        warm_up_s: 0.2,
        stagger_s: 0.5,
        buy_s: 0.2,
        round_s: 1.0,
        over_s: 0.2,
        ..DuelSettings::default()
    };
    let mut simulation = with_idle(settings, players);
    simulation.run_for(seconds);
    let [made, ended] = ["matches.made", "matches.ended"].map(|name| simulated::counted(&mut simulation, name));
    assert!(made >= matches_min && ended + players as u64 / 2 >= made, "{made} made, {ended} ended");
    let report = simulation.server_mut().report();
    assert_eq!((report.worlds_parked, report.ticks_missed, report.disconnects), (0, 0, 0), "{report:#?}");
    assert!(simulation.server_mut().worlds_count() <= 1 + players / 2);
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.state_errors, totals.protocol_errors), (players as u64, 0, 0), "{totals:#?}");
}

#[test]
fn matches_come_and_go_by_the_hundred() {
    check_turnover(20, 40.0, 100);
}

/// The large form: by the thousand.
#[test]
#[ignore = "takes minutes"]
fn r10_matches_come_and_go_by_the_thousand() {
    check_turnover(200, 120.0, 3_000);
}
