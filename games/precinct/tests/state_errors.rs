//! The promise: what a client is shown is what the server has, and when it is not, somebody notices.
//!
//! Every client is sent samples of the exact state past the snapshot encoder and holds its copy against them. On any
//! network the copies come right; with an encoder that is broken on purpose they do not, and the clients say so.

mod simulated;

use throng_net::transport::Impairment;
use throng_platform::time::Nanos;
use throng_replication::Fault;
use throng_simulator::Simulation;

const BOTS: usize = 40;
const NPCS: usize = 400;

fn play() -> Simulation {
    simulated::game_with_bots(&simulated::settings(11), BOTS, NPCS).0
}

#[test]
fn a_perfect_network_shows_no_state_error() {
    let mut simulation = play();
    simulation.run_for(40.0);
    let totals = simulation.totals();
    totals.check_all_play(BOTS, 40);
    assert_eq!(totals.state_errors, 0, "{totals:#?}");
}

#[test]
fn a_bad_network_and_a_blackout_show_no_state_error() {
    let bad = Impairment::bad(0.05);
    let mut simulation = play();
    simulation.impair(bad);
    simulation.run_for(20.0);
    simulation.impair(Impairment { loss: 1.0, ..Impairment::default() });
    simulation.run_for(1.0);
    simulation.impair(bad);
    simulation.run_for(20.0);
    let totals = simulation.totals();
    println!("{totals:?}");
    totals.check_all_play(BOTS, 40);
    assert_eq!(totals.state_errors, 0, "{totals:#?}");
}

#[test]
fn a_corrupting_encoder_is_noticed() {
    play().check_fault_is_noticed(Fault::CorruptEncoding);
}

#[test]
fn lost_despawns_are_noticed() {
    play().check_fault_is_noticed(Fault::LoseDespawns);
}

#[test]
fn skipped_updates_are_noticed() {
    play().check_fault_is_noticed(Fault::SkipUpdates);
}

#[test]
fn changes_that_were_never_seen_are_noticed() {
    play().check_fault_is_noticed(Fault::MissChanges);
}

#[test]
fn entities_that_interest_overlooks_are_noticed() {
    play().check_fault_is_noticed(Fault::MissInterest);
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
