//! The promise: in a frame of the whole server, the world and the frame's own thread together, nothing is allocated but
//! for lists that are longer than they ever were.

mod simulated;

use throng_platform::allocator::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const BOTS: usize = 60;
const NPCS: usize = 400;
const FRAMES: usize = 1_800;

#[test]
fn nearly_all_frames_allocate_nothing() {
    let mut simulation = simulated::game_with_bots(&simulated::settings(8), BOTS, NPCS);
    simulation.run_for(120.0);
    simulation.totals().check_all_play(BOTS, 120);
    assert!(simulation.allocations() > 1_000, "a world was made: the allocator counts");
    let each = simulation.allocations_per_frame(FRAMES);
    let (sum, without) = (each.iter().sum::<u64>(), each.iter().filter(|count| **count == 0).count());
    assert!(sum <= FRAMES as u64 / 10, "{sum} allocations");
    assert!(without >= FRAMES * 98 / 100, "{without} of {FRAMES} frames without an allocation: {each:?}");
}
