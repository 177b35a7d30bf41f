//! The promise: a change that is not meant to change the game changes neither the world's state nor a byte on the wire.
//!
//! Enough bots for several batches of clients play 1,000 ticks over a bad network. Print the line before and after a
//! change: `cargo test --release -p frontier --test same_bytes -- --ignored --nocapture`.

mod simulated;

use throng_net::transport::Impairment;
use throng_simulator::{Fingerprint, SimulationSettings};

const BOTS: usize = 200;
const NPCS: usize = 400;
/// 1,000 ticks at 20 Hz, in frames of 60 Hz.
const FRAMES: u64 = 3_000;

#[test]
#[ignore = "prints what two builds are compared by"]
fn a_game_of_a_thousand_ticks_in_one_line() {
    let impairment = Impairment::bad(0.02);
    let settings =
        SimulationSettings { workers_count: 2, hash: true, tap: true, impairment, ..simulated::settings(23) };
    let mut simulation = simulated::game_with_bots(&settings, BOTS, NPCS);
    println!("frontier: {}", Fingerprint::of(&mut simulation, FRAMES));
}
