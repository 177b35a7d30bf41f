//! The promise: what a client is shown is what the server has, and when it is not, somebody notices.
//!
//! Every client is sent samples of the exact state past the snapshot encoder and holds its copy against them. On any
//! network the copies come right; with an encoder that is broken on purpose they do not, and the clients say so.

mod simulated;

use throng_net::transport::Impairment;
use throng_platform::time::Nanos;
use throng_replication::Fault;
use throng_simulator::{Simulation, Totals};

const BOTS: usize = 40;
const NPCS: usize = 400;

fn play() -> Simulation {
    simulated::game_with_bots(&simulated::settings(11), BOTS, NPCS).0
}

/// Asserts that all play, and were checked once a second or more.
#[track_caller]
fn check_all_play(totals: &Totals, seconds: u64) {
    assert_eq!(totals.playing, BOTS as u64, "{totals:#?}");
    assert_eq!(totals.protocol_errors, 0, "{totals:#?}");
    assert_eq!(totals.counter("violations"), 0, "{totals:#?}");
    assert!(totals.state_checks >= BOTS as u64 * seconds, "{totals:#?}");
}

#[test]
fn a_perfect_network_shows_no_state_error() {
    let mut simulation = play();
    simulation.run_for(40.0);
    let totals = simulation.totals();
    check_all_play(&totals, 40);
    assert_eq!(totals.state_errors, 0, "{totals:#?}");
}

#[test]
fn a_bad_network_and_a_blackout_show_no_state_error() {
    let bad = Impairment {
        loss: 0.05,
        duplication: 0.02,
        reordering: 0.1,
        reorder_delay: Nanos::from_millis(60),
        delay: Nanos::from_millis(40),
        jitter: Nanos::from_millis(20),
        ..Impairment::default()
    };
    let mut simulation = play();
    simulation.impair(bad);
    simulation.run_for(20.0);
    simulation.impair(Impairment { loss: 1.0, ..Impairment::default() });
    simulation.run_for(1.0);
    simulation.impair(bad);
    simulation.run_for(20.0);
    let totals = simulation.totals();
    println!("{totals:?}");
    check_all_play(&totals, 40);
    assert_eq!(totals.state_errors, 0, "{totals:#?}");
}

#[track_caller]
fn check_fault_is_noticed(fault: Fault) {
    let mut simulation = play();
    simulation.run_for(5.0);
    assert_eq!(simulation.totals().state_errors, 0);
    simulation.server_mut().break_replication(fault);
    simulation.run_for(15.0);
    let totals = simulation.totals();
    println!("{fault:?}: {totals:?}");
    assert!(totals.state_errors > 0, "{fault:?} went unseen: {totals:#?}");
}

#[test]
fn a_corrupting_encoder_is_noticed() {
    check_fault_is_noticed(Fault::CorruptEncoding);
}

#[test]
fn lost_despawns_are_noticed() {
    check_fault_is_noticed(Fault::LoseDespawns);
}

#[test]
fn skipped_updates_are_noticed() {
    check_fault_is_noticed(Fault::SkipUpdates);
}

#[test]
fn changes_that_were_never_seen_are_noticed() {
    check_fault_is_noticed(Fault::MissChanges);
}

#[test]
fn entities_that_interest_overlooks_are_noticed() {
    check_fault_is_noticed(Fault::MissInterest);
}

/// The large form: an hour of forty players, on networks that change every second. Not worse than this: at 20 % loss
/// and 360 ms there and back, four losses in a row take longer than the two seconds of grace, about once in half a
/// million checks.
#[test]
#[ignore = "takes minutes"]
fn r08_bad_networks_of_many_seeds_show_no_state_error() {
    for seed in 0..20 {
        let (mut simulation, _) = simulated::game_with_bots(&simulated::settings(seed), BOTS, NPCS);
        for second in 0..180_u32 {
            let share = f64::from(second % 13) / 100.0;
            simulation.impair(Impairment {
                loss: share,
                duplication: 0.05,
                reordering: share,
                reorder_delay: Nanos::from_millis(100),
                corruption: 0.01,
                delay: Nanos::from_millis(u64::from(second % 4) * 30),
                jitter: Nanos::from_millis(30),
                ..Impairment::NONE
            });
            simulation.run_for(1.0);
        }
        let totals = simulation.totals();
        assert_eq!((totals.playing, totals.state_errors), (BOTS as u64, 0), "seed {seed}: {totals:#?}");
    }
}
