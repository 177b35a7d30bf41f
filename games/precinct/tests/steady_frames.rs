//! The promise: in a frame of the whole server, all worlds and the frame's own thread together, nothing is allocated
//! but for those who travel, for gear that comes into being or ceases to be, of which the store is told, and for lists that
//! are longer than they ever were.

mod simulated;

use throng_platform::allocator::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const BOTS: usize = 40;
const NPCS: usize = 800;
const FRAMES: usize = 1_800;

/// What carries a traveller, what its worlds note of it and the lists of its new view, which grow from nothing.
const PER_TRAVEL_MAX: u64 = 40;

#[test]
fn most_frames_allocate_nothing_and_a_traveller_takes_few_allocations() {
    let (mut simulation, _) = simulated::game_with_bots(&simulated::settings(8), BOTS, NPCS);
    // Until most hideouts have had gear on their ground: the first piece in a world makes its table.
    simulation.run_for(240.0);
    assert_eq!(simulation.totals().playing, BOTS as u64);
    assert!(simulation.allocations() > 1_000, "worlds were made: the allocator counts");
    let travels_before = simulation.totals().counter("travels");
    let each = simulation.allocations_per_frame(FRAMES);
    let (sum, without) = (each.iter().sum::<u64>(), each.iter().filter(|count| **count == 0).count());
    let travels = simulation.totals().counter("travels") - travels_before;
    assert!(travels > 20, "{travels} travels say little");
    assert!(sum <= PER_TRAVEL_MAX * travels, "{sum} allocations for {travels} travels");
    // Some hundred pieces come into being or cease to be meanwhile.
    assert!(without >= FRAMES * 17 / 20, "{without} of {FRAMES} frames without an allocation: {each:?}");
}
