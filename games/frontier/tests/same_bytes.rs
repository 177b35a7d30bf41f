//! The promise: a change that is not meant to change the game changes neither the world's state nor a byte on the wire.
//!
//! Enough bots for several batches of clients play 1,000 ticks over a bad network. The line that is printed holds one hash over the
//! world's state at every tick, and one over every packet that left, opened, by player. Print it before and after a change:
//! `cargo test --release -p frontier --test same_bytes -- --ignored --nocapture`. The hashes are of this processor's arithmetic
//! and its mathematical library, so they are compared on one host and never kept.

mod simulated;

use std::hash::{DefaultHasher, Hash, Hasher};

use throng_simulator::SimulationSettings;

const BOTS: usize = 200;
const NPCS: usize = 400;
/// 1,000 ticks at 20 Hz.
const FRAMES: u64 = 1_000;

#[test]
#[ignore = "prints what two builds are compared by"]
fn a_game_of_a_thousand_ticks_in_one_line() {
    let impairment = simulated::bad_network(0.02);
    let settings =
        SimulationSettings { workers_count: 2, hash: true, tap: true, impairment, ..simulated::settings(23) };
    let mut simulation = simulated::game_with_bots(&settings, BOTS, NPCS);
    let mut packets: Vec<DefaultHasher> = (0..BOTS).map(|_| DefaultHasher::new()).collect();
    let (mut count, mut bytes) = (0_u64, 0_u64);
    for _ in 0..FRAMES {
        simulation.step();
        simulation.take_sent(|player, payload| {
            payload.hash(&mut packets[player]);
            count += 1;
            bytes += payload.len() as u64;
        });
    }
    let mut states = DefaultHasher::new();
    simulation.hashes().hash(&mut states);
    let mut wire = DefaultHasher::new();
    packets.iter().for_each(|hasher| hasher.finish().hash(&mut wire));
    println!(
        "frontier: {} hashes of the world {:016x}; {count} packets of {bytes} bytes {:016x}",
        simulation.hashes().len(),
        states.finish(),
        wire.finish()
    );
}
