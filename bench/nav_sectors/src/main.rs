//! Bench: a level of two kilometres that a thousand worlds share in sectors.
//!
//! The level is Precinct's district. In each world is one player, somewhere; what it wants is streamed as a host does it,
//! without other threads. Then charges go off in some worlds ([`worlds`]). At last ways over sectors are held against ways
//! on one mesh of the same ground ([`ways`]).
//!
//! - `shared_mb`: what sectors, the level and all that worlds hold of them take. `copies_mb`: the same if each world had
//!   sectors of its own. `bytes_per_world`: of the former, with damage.
//! - `bake_ms`, `bake_ms_max`: CPU time of one sector; `found_us`: of fetching one that is there.
//! - `damaged`, `damaged_mb`, `rebake_ms`: sectors that worlds have of their own, what these take, and one bake of them.
//! - `follow_us`: one look at what is wanted, in a world in which nothing changes; `allocations` in that.
//! - `ways`, `length_ratio`, `length_ratio_p99`: ways over sectors, and how long they are against those on the whole mesh.
//!   `disagree`: of which one side has a way and the other has none. `way_us`, `whole_way_us`: one search.
//!
//! Prints a hash of all answers: faster but different is not faster.

mod ways;
mod worlds;

use harness::BenchArguments;
use throng_platform::allocator::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() {
    let arguments = BenchArguments::read();
    let (size, ways) = if arguments.small { (worlds::SMALL, ways::SMALL) } else { (worlds::REAL, ways::REAL) };
    let (worlds, ways) = (worlds::measure(&size), ways::measure(&ways));
    let mb = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let figures = serde_json::json!({
        "worlds": size.worlds,
        "sectors": worlds.sectors,
        "held": worlds.held,
        "shared_mb": mb(worlds.shared_bytes),
        "level_mb": mb(worlds.level_bytes),
        "copies_mb": mb(worlds.copies_bytes),
        "bytes_per_world": worlds.shared_bytes / u64::from(size.worlds),
        "own_bytes_per_world": worlds.own_bytes / u64::from(size.worlds),
        "bake_ms": worlds.bake_ns as f64 / 1e6 / worlds.sectors.max(1) as f64,
        "bake_ms_max": worlds.bake_ns_max as f64 / 1e6,
        "found_us": worlds.found_ns as f64 / 1e3 / worlds.found.max(1) as f64,
        "sector_kb": worlds.sector_bytes as f64 / 1024.0 / worlds.sectors.max(1) as f64,
        "damaged_worlds": size.damaged,
        "damaged": worlds.damaged,
        "damaged_mb": mb(worlds.damaged_bytes),
        "rebake_ms": worlds.rebake_ns as f64 / 1e6 / worlds.damaged.max(1) as f64,
        "follow_us": worlds.follow_ns as f64 / 1e3 / f64::from(size.worlds),
        "allocations": worlds.allocations,
        "left_bytes": worlds.left_bytes,
        "ways": ways.count,
        "disagree": ways.disagree,
        "length_ratio": ways.ratio_mean,
        "length_ratio_p99": ways.ratio_p99,
        "way_us": ways.sectors_ns as f64 / 1e3 / ways.count.max(1) as f64,
        "whole_way_us": ways.whole_ns as f64 / 1e3 / ways.count.max(1) as f64,
        "hash": format!("{:016x}", harness::mix(worlds.hash, ways.hash)),
    });
    arguments.print("nav_sectors", figures);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_size_shares_what_is_not_damaged_and_finds_the_same_ways() {
        let size = worlds::SMALL;
        let outcome = worlds::measure(&size);
        assert!(outcome.copies_bytes > 3 * (outcome.shared_bytes - outcome.level_bytes), "{outcome:?}");
        assert!(outcome.damaged > 0 && outcome.damaged_bytes > 0, "{outcome:?}");
        // A pointer, and what is known of it, for each sector: some kilobytes.
        assert!(outcome.own_bytes / u64::from(size.worlds) < 8 << 10, "{outcome:?}");
        assert_eq!((outcome.allocations, outcome.left_bytes), (0, 0), "{outcome:?}");
        let ways = ways::measure(&ways::SMALL);
        assert!(ways.count > 40 && ways.disagree * 50 <= ways.count, "{ways:?}");
        assert!((0.97..1.03).contains(&ways.ratio_mean) && ways.ratio_p99 < 1.15, "{ways:?}");
    }
}
