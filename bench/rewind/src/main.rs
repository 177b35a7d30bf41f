//! Bench: what lag compensation costs at 128 ticks a second, for 10 players of a match and for a crowd of 1,000.
//!
//! Everybody walks, runs or crouches about a level of boxes ([`crowd`]). One history samples every pose in every tick, one
//! in every fourth; both record the same ticks in turns, and shots are cast into both ([`measure`]).
//!
//! - `record_ns`: to place one body in one tick.
//! - `each_tick_ns`, `fourth_tick_ns`: sampling of poses, for one body and tick; `ratio` is one over the other.
//! - `shot_us`: a shot at somebody, at a moment of its own in the last 150 ms; `miss_us`: one that passes everybody;
//!   `level_us`: that part of either which the level's cast is.
//! - `bytes`: memory of the history that samples every fourth tick.
//!
//! CPU time of this thread, of each tick the fastest of all repetitions. Prints a hash of all hits: faster but different is
//! not faster.

mod crowd;
mod measure;

use harness::BenchArguments;
use throng_platform::allocator::CountingAllocator;

use self::measure::{Outcome, Size};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() {
    let arguments = BenchArguments::read();
    let sizes = if arguments.small {
        [Size { bodies: 4, ticks: 64, repetitions: 1 }, Size { bodies: 20, ticks: 64, repetitions: 1 }]
    } else {
        [Size { bodies: 10, ticks: 2_000, repetitions: 9 }, Size { bodies: 1_000, ticks: 400, repetitions: 7 }]
    };
    arguments.print_rows("rewind", sizes.map(|size| row(&size, &measure::run(&size))));
}

fn row(size: &Size, outcome: &Outcome) -> serde_json::Value {
    let body_ticks = f64::from(size.bodies) * f64::from(size.ticks);
    let per_body = |ns: u64| (ns as f64 / body_ticks * 100.0).round() / 100.0;
    let per_shot_us = |ns: u64| (ns as f64 / outcome.shots as f64).round() / 1e3;
    serde_json::json!({
        "bodies": size.bodies,
        "ticks": size.ticks,
        "record_ns": per_body(outcome.record_ns),
        "each_tick_ns": per_body(outcome.each_ns),
        "fourth_tick_ns": per_body(outcome.fourth_ns),
        "ratio": outcome.each_ns as f64 / outcome.fourth_ns.max(1) as f64,
        "poses_each_tick": outcome.each_poses,
        "poses_fourth_tick": outcome.fourth_poses,
        "shots": outcome.shots,
        "shot_us": per_shot_us(outcome.shot_ns),
        "miss_us": per_shot_us(outcome.miss_ns),
        "level_us": per_shot_us(outcome.level_ns),
        "hits": outcome.hits,
        "bodies_looked_at_per_shot": outcome.looked_at as f64 / outcome.shots as f64,
        "same_target_as_each_tick": outcome.same_target,
        "bytes": outcome.bytes,
        "allocations": outcome.allocations,
        "hash": format!("{:016x}", outcome.hash),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_size_samples_a_quarter_and_hits_the_same() {
        let outcome = measure::run(&Size { bodies: 12, ticks: 64, repetitions: 2 });
        assert_eq!(outcome.allocations, 0);
        assert_eq!(outcome.each_poses, 12 * 64);
        assert_eq!(outcome.fourth_poses, 12 * 16);
        assert!(outcome.hits * 2 > outcome.shots, "{} of {} shots hit somebody", outcome.hits, outcome.shots);
        assert!(outcome.same_target * 100 >= outcome.hits * 98, "{} of {}", outcome.same_target, outcome.hits);
    }
}
