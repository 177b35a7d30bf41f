//! The promise: what a client is shown is what the server has, and when it is not, somebody notices.
//!
//! Every client is sent samples of the exact state past the snapshot encoder and holds its copy against them. On any
//! network the copies come right; with an encoder that is broken on purpose they do not, and the clients say so.

mod simulated;

use throng_net::transport::Impairment;
use throng_replication::Fault;
use throng_simulator::Simulation;

const BOTS: usize = 50;
const NPCS: usize = 900;

fn play(seed: u64) -> Simulation {
    simulated::game_with_bots(&simulated::settings(seed), BOTS, NPCS)
}

/// Twenty seconds on such a network: nobody may be shown anything wrong.
#[track_caller]
fn check_network(impairment: Impairment) {
    let mut simulation = play(11);
    simulation.impair(impairment);
    simulation.run_for(20.0);
    let totals = simulation.totals();
    println!("{totals:?}");
    // The first second or two are the way in.
    totals.check_all_play(BOTS, 16);
    assert_eq!(totals.state_errors, 0, "{impairment:?}: {totals:#?}");
}

#[test]
fn a_perfect_network_shows_no_state_error() {
    check_network(Impairment::default());
}

#[test]
fn a_network_that_loses_one_in_twenty_shows_no_state_error() {
    check_network(Impairment::bad(0.05));
}

#[test]
fn a_network_that_loses_one_in_five_shows_no_state_error() {
    check_network(Impairment::bad(0.2));
}

/// Promise: whatever was missed in a second of darkness is there two seconds after it, exactly.
#[test]
fn copies_come_right_after_a_blackout() {
    let dark = Impairment { loss: 1.0, ..Impairment::default() };
    for (seed, light) in [(12, Impairment::default()), (13, Impairment::bad(0.05))] {
        let mut simulation = play(seed);
        simulation.impair(light);
        simulation.run_for(6.0);
        for _ in 0..2 {
            simulation.impair(dark);
            simulation.run_for(1.0);
            simulation.impair(light);
            simulation.run_for(2.0);
            let before = simulation.totals();
            simulation.run_for(4.0);
            let after = simulation.totals();
            println!("{after:?}");
            assert!(after.state_checks > before.state_checks + 2 * BOTS as u64, "{after:#?}");
            assert_eq!(after.state_errors, before.state_errors, "{after:#?}");
        }
        let totals = simulation.totals();
        totals.check_all_play(BOTS, 16);
        // Checks wait for two seconds for what is late, so that the darkness itself is no error either.
        assert_eq!(totals.state_errors, 0, "{totals:#?}");
    }
}

#[test]
fn a_corrupting_encoder_is_noticed() {
    play(14).check_fault_is_noticed(Fault::CorruptEncoding);
}

#[test]
fn lost_despawns_are_noticed() {
    play(14).check_fault_is_noticed(Fault::LoseDespawns);
}

#[test]
fn skipped_updates_are_noticed() {
    play(14).check_fault_is_noticed(Fault::SkipUpdates);
}

#[test]
fn changes_that_were_never_seen_are_noticed() {
    play(14).check_fault_is_noticed(Fault::MissChanges);
}

#[test]
fn entities_that_interest_overlooks_are_noticed() {
    play(14).check_fault_is_noticed(Fault::MissInterest);
}

/// The large form: many seeds, on networks that change every second.
#[test]
#[ignore = "takes minutes"]
fn r08_bad_networks_of_many_seeds_show_no_state_error() {
    for seed in 0..20 {
        let mut simulation = play(seed);
        for second in 0..120_u32 {
            let share = f64::from(second % 13) / 100.0;
            let mut impairment = Impairment::bad(share);
            (impairment.reordering, impairment.corruption) = (share, 0.01);
            simulation.impair(impairment);
            simulation.run_for(1.0);
        }
        let totals = simulation.totals();
        assert_eq!((totals.playing, totals.state_errors), (BOTS as u64, 0), "seed {seed}: {totals:#?}");
        assert_eq!(totals.counter("violations"), 0, "seed {seed}: {totals:#?}");
    }
}
