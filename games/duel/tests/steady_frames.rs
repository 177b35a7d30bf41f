//! The promise: in a frame of the whole server, its matches and the frame's own thread together, nothing is allocated
//! but for matches that begin and end, and for lists that are longer than they ever were.

mod simulated;

use duel::DuelSettings;
use throng_platform::allocator::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const BOTS: usize = 20;
/// Thirty seconds.
const FRAMES: usize = 30 * 128;

#[test]
fn nearly_all_frames_allocate_nothing() {
    // One match of each ten, for as long as this takes.
    let matches = DuelSettings { rounds_to_win: 30, ..simulated::short() };
    let mut simulation = simulated::game_with_bots(&simulated::settings(8), matches, BOTS);
    simulation.run_for(60.0);
    simulation.totals().check_all_play(BOTS, 60);
    assert!(simulation.allocations() > 1_000, "matches were made: the allocator counts");
    let each = simulation.allocations_per_frame(FRAMES);
    let (sum, without) = (each.iter().sum::<u64>(), each.iter().filter(|count| **count == 0).count());
    assert!(sum <= FRAMES as u64 / 10, "{sum} allocations");
    assert!(without >= FRAMES * 98 / 100, "{without} of {FRAMES} frames without an allocation");
}
