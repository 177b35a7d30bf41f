//! The promise: once matches have been played for a minute no frame of the whole server, its matches and the frame's own
//! thread together, allocates anything, whatever players do in it: they buy, shoot, die and stand up again.
//!
//! With other seeds three lists still grow once in half a minute or so, where a tick needs more of them than any before:
//! the bytes of a world's updates (`replication::source::bulk`), the cells in which an event is heard
//! (`replication::view::grid`), and the lines of a world's footprint (`platform::prefetch`).

mod simulated;

use duel::DuelSettings;
use throng_platform::allocator::CountingAllocator;
use throng_simulator::Simulation;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const BOTS: usize = 20;
/// Thirty seconds.
const FRAMES: usize = 30 * 128;

/// What is done in a match, as its bots count it.
const DEEDS: [&str; 4] = ["bought", "shots", "deaths", "rounds"];

#[test]
fn no_frame_allocates() {
    // One match of each ten, for as long as this takes.
    let matches = DuelSettings { rounds_to_win: 30, ..simulated::short() };
    let mut simulation = simulated::game_with_bots(&simulated::settings(8), matches, BOTS);
    simulation.run_for(60.0);
    simulation.totals().check_all_play(BOTS, 60);
    assert!(simulation.allocations() > 1_000, "matches were made: the allocator counts");
    let done = |simulation: &Simulation| {
        let totals = simulation.totals();
        DEEDS.map(|name| totals.counter(name))
    };
    let begun = done(&simulation);
    let (mut before, mut allocating) = (begun, Vec::new());
    for frame in 0..FRAMES {
        let allocations: u64 = simulation.allocations_per_frame(1).iter().sum();
        let now = done(&simulation);
        if allocations > 0 {
            let deeds: Vec<_> =
                (0..DEEDS.len()).filter(|deed| now[*deed] > before[*deed]).map(|deed| DEEDS[deed]).collect();
            allocating.push(format!("frame {frame}: {allocations}, about when bots noticed {deeds:?}"));
        }
        before = now;
    }
    assert!(allocating.is_empty(), "{allocating:#?}");
    for ((name, before), now) in DEEDS.iter().zip(begun).zip(before) {
        assert!(now > before, "{name}: nothing was done that could allocate");
    }
}
