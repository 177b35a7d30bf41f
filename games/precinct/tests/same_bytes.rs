//! The promise: a change that is not meant to change the game changes neither a world's state nor a byte on the wire.
//!
//! Bots play 1,000 ticks over a bad network. Print the line before and after a change:
//! `cargo test --release -p precinct --test same_bytes -- --ignored --nocapture`.

mod simulated;

use throng_net::transport::Impairment;
use throng_platform::time::Nanos;
use throng_simulator::{Fingerprint, SimulationSettings};

/// Players, each with a hideout.
const BOTS: usize = 40;
const NPCS: usize = 800;
/// 1,000 ticks at 20 Hz, in frames of 60 Hz.
const FRAMES: u64 = 3_000;

#[test]
#[ignore = "prints what two builds are compared by"]
fn a_game_of_a_thousand_ticks_in_one_line() {
    let impairment = Impairment {
        loss: 0.02,
        duplication: 0.01,
        reordering: 0.05,
        reorder_delay: Nanos::from_millis(40),
        delay: Nanos::from_millis(15),
        jitter: Nanos::from_millis(20),
        ..Impairment::default()
    };
    let settings =
        SimulationSettings { workers_count: 2, hash: true, tap: true, impairment, ..simulated::settings(23) };
    let (mut simulation, _) = simulated::game_with_bots(&settings, BOTS, NPCS);
    println!("precinct: {}", Fingerprint::of(&mut simulation, FRAMES));
}
