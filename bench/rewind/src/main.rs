//! Bench: what lag compensation costs at 128 ticks a second, for 10 players of a match and for a crowd of 1,000.
//!
//! Everybody walks, runs or crouches about a level of boxes ([`crowd`]). One history samples every pose in every tick, one
//! in every fourth, and one rests, besides, in the third of the time in which everybody buys. They record the same ticks in
//! turns, and shots are cast into all ([`measure`]).
//!
//! - `record_ns`: to place one body in one tick.
//! - `each_tick_ns`, `fourth_tick_ns`: sampling of poses, for one body and tick; `ratio` is one over the other,
//!   `sampling_saved` the share that the second saves.
//! - `no_sampling_saved`: the share that rest saves of placing and sampling in every fourth tick. Recording begins 27 ticks
//!   before the end of the phase: `same_after_rest` of `live_shots` hit the same body, or none, as if it had never ceased;
//!   poses are then sampled in other ticks, so a shot that grazes a limb may not.
//! - `pose_error_cm`: how far limbs are off, on average and at most, when interpolated between every fourth tick.
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
        [Size { bodies: 4, ticks: 384, repetitions: 1 }, Size { bodies: 20, ticks: 384, repetitions: 1 }]
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
        "sampling_saved": saved(outcome.fourth_ns, outcome.each_ns),
        "no_sampling_saved": saved(outcome.resting_ns, outcome.record_ns + outcome.fourth_ns),
        "pose_error_cm": { "mean": outcome.pose_error.mean_cm(), "max": outcome.pose_error.max_cm },
        "poses_each_tick": outcome.each_poses,
        "poses_fourth_tick": outcome.fourth_poses,
        "shots": outcome.shots,
        "shot_us": per_shot_us(outcome.shot_ns),
        "miss_us": per_shot_us(outcome.miss_ns),
        "level_us": per_shot_us(outcome.level_ns),
        "hits": outcome.hits,
        "bodies_looked_at_per_shot": outcome.looked_at as f64 / outcome.shots as f64,
        "same_target_as_each_tick": outcome.same_target,
        "live_shots": outcome.live_shots,
        "same_after_rest": outcome.same_after_rest,
        "bytes": outcome.bytes,
        "allocations": outcome.allocations,
        "hash": format!("{:016x}", outcome.hash),
    })
}

/// The share of `whole_ns` that is not spent any more.
fn saved(part_ns: u64, whole_ns: u64) -> f64 {
    1.0 - part_ns as f64 / whole_ns.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_size_samples_a_quarter_and_hits_the_same() {
        let outcome = measure::run(&Size { bodies: 12, ticks: 384, repetitions: 2 });
        assert_eq!(outcome.allocations, 0);
        assert_eq!(outcome.each_poses, 12 * 384);
        assert_eq!(outcome.fourth_poses, 12 * 96);
        assert!(outcome.hits * 2 > outcome.shots, "{} of {} shots hit somebody", outcome.hits, outcome.shots);
        let (live, same) = (outcome.live_shots, outcome.same_after_rest);
        assert!(live > 0 && same * 100 >= live * 98, "it came back too late: {same} of {live}");
        let error = &outcome.pose_error;
        assert!(error.mean_cm() > 0.0 && error.mean_cm() < 0.5, "{} cm on average", error.mean_cm());
        assert!(outcome.same_target * 100 >= outcome.hits * 98, "{} of {}", outcome.same_target, outcome.hits);
    }
}
