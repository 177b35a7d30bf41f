//! The promise: in a frame of the whole server, the world and the frame's own thread together, nothing is allocated but
//! for lists that are longer than they ever were.

mod simulated;

use frontier::FrontierBot;
use throng_platform::allocator::CountingAllocator;
use throng_simulator::Simulation;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const BOTS: usize = 60;
const NPCS: usize = 400;
const FRAMES: usize = 1_800;

#[test]
fn nearly_all_frames_allocate_nothing() {
    let (mut simulation, _) =
        Simulation::new(&simulated::settings(8), simulated::game(NPCS)).expect("the game can be set up");
    // What is built is told reliably, and each of these messages has memory of its own.
    for _ in 0..BOTS {
        simulation.join(Box::new(FrontierBot::new(simulated::guide()).leaving_land_alone()));
    }
    simulation.run_for(120.0);
    simulation.totals().check_all_play(BOTS, 120);
    assert!(simulation.allocations() > 1_000, "a world was made: the allocator counts");
    let each = simulation.allocations_per_frame(FRAMES);
    let (sum, without) = (each.iter().sum::<u64>(), each.iter().filter(|count| **count == 0).count());
    assert!(sum <= FRAMES as u64 / 10, "{sum} allocations");
    assert!(without >= FRAMES * 98 / 100, "{without} of {FRAMES} frames without an allocation: {each:?}");
}
