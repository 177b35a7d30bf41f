//! Bench: what scheduling costs per world and frame, and how close a frame comes to the best possible makespan.
//!
//! - `scheduling_ns_per_world`: wall time of `submit` and `wait` for worlds that do nothing, divided by their number.
//!   Everything in it is the scheduler's: sorting, claiming, handing in, waking.
//! - `makespan_over_best`: worlds that compute for a random time; the frame's length against max(longest, total /
//!   workers), both taken from the tasks' own measured times, so that a busy host lengthens both.
//! - `fork_join_us`: what it takes a task to hand out 16 batches that do nothing, the waking of an idle worker and the
//!   wait for what it has taken included. `fork_join_over_best`: the same for batches that compute for some 50 us each,
//!   against their sum / workers.
//! - `allocations_per_frame` of a steady submit and wait.
//!
//! Prints a hash of the work done: faster but different is not faster.

use std::sync::Arc;

use harness::{BenchArguments, mix, quantile};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::{
    allocator::{CountingAllocator, thread_counts},
    clock::{Clock, MonotonicClock},
    time::Nanos,
};
use throng_scheduler::{Completion, Finished, Helpers, Scheduled, ShortTask, ShortTaskPool};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// A world that computes `rounds` rounds of a hash.
struct Chore {
    rounds: u32,
    hash: u64,
}

impl ShortTask for Chore {
    type Worker = ();
    type Batch = ();

    fn run(&mut self, (): &mut (), _: &Helpers<Chore>) {
        self.compute();
    }

    fn run_batch((): &mut (), (): &mut ()) {}
}

impl Chore {
    fn compute(&mut self) {
        for round in 0..self.rounds {
            self.hash = mix(self.hash, u64::from(round));
        }
    }
}

/// A world that hands all its chores to whoever is idle.
struct Crowd {
    clock: Arc<MonotonicClock>,
    chores: Vec<TimedChore>,
    took: Nanos,
    allocated: u64,
}

struct TimedChore {
    chore: Chore,
    took: Nanos,
}

impl ShortTask for Crowd {
    type Worker = Arc<MonotonicClock>;
    type Batch = TimedChore;

    fn run(&mut self, worker: &mut Arc<MonotonicClock>, helpers: &Helpers<Crowd>) {
        let before = thread_counts().allocations;
        let begin = self.clock.now();
        helpers.fork_join(&mut self.chores, worker);
        self.took = self.clock.now().saturating_sub(begin);
        self.allocated = thread_counts().allocations - before;
    }

    fn run_batch(batch: &mut TimedChore, clock: &mut Arc<MonotonicClock>) {
        let begin = clock.now();
        batch.chore.compute();
        batch.took = clock.now().saturating_sub(begin);
    }
}

fn main() {
    let arguments = BenchArguments::read();
    let (worlds, frames) = if arguments.small { (200, 20) } else { (2_000, 400) };
    let mut rows = Vec::new();
    for workers in [1, 2] {
        let scheduling = scheduling(worlds, frames, workers);
        let makespan = makespan(worlds / 10, frames / 4, workers);
        let fork_join = fork_join(frames, workers, 0, |took, _| took.0 as f64 / 1e3);
        let fork_join_over_best = fork_join_over_best(frames, workers);
        rows.push(serde_json::json!({
            "workers": workers,
            "worlds": worlds,
            "scheduling_ns_per_world_p50": scheduling.p50,
            "scheduling_ns_per_world_p99": scheduling.p99,
            "allocations_per_frame": scheduling.allocations_per_frame,
            "makespan_over_best_p50": makespan.p50,
            "makespan_over_best_p99": makespan.p99,
            "fork_join_us_p50": fork_join.p50,
            "fork_join_us_p99": fork_join.p99,
            "fork_join_over_best_p50": fork_join_over_best.p50,
            "fork_join_over_best_p99": fork_join_over_best.p99,
            "allocations_per_fork_join": fork_join.allocations_per_frame,
            "hash": format!("{:016x}", scheduling.hash ^ makespan.hash ^ fork_join_over_best.hash),
        }));
    }
    arguments.print_rows("scheduler", rows);
}

struct Outcome {
    p50: f64,
    p99: f64,
    allocations_per_frame: f64,
    hash: u64,
}

/// Frames of worlds that do nothing.
fn scheduling(worlds: usize, frames: usize, workers: usize) -> Outcome {
    let costs = vec![0; worlds];
    run(frames, workers, &costs, |frame, _| frame.0 as f64 / worlds as f64)
}

/// Frames of worlds that take 5 to 300 µs, a few of them much longer.
fn makespan(worlds: usize, frames: usize, workers: usize) -> Outcome {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let costs: Vec<u32> = (0..worlds)
        .map(|_| {
            if random.random_bool(0.02) {
                random.random_range(300_000..600_000)
            } else {
                random.random_range(3_000..150_000)
            }
        })
        .collect();
    run(frames, workers, &costs, |frame, finished| {
        let longest = finished.iter().map(Finished::cost).max().unwrap_or_default();
        let total: Nanos = finished.iter().map(Finished::cost).sum();
        let best = longest.max(Nanos(total.0 / workers as u64));
        frame.0 as f64 / best.0 as f64
    })
}

fn run(frames: usize, workers: usize, rounds: &[u32], figure: impl Fn(Nanos, &[Finished<Chore>]) -> f64) -> Outcome {
    let clock = Arc::new(MonotonicClock::new());
    let mut pool = ShortTaskPool::new(vec![(); workers], clock.clone());
    let mut due: Vec<_> = rounds
        .iter()
        .map(|&rounds| Scheduled {
            task: Box::new(Chore { rounds, hash: u64::from(rounds) }),
            deadline: Nanos::ZERO,
            cost: Nanos(rounds.into()),
        })
        .collect();
    let mut finished = Vec::with_capacity(due.len());
    let mut figures = Vec::with_capacity(frames);
    let mut allocations = 0;
    for frame in 0..frames + 5 {
        let allocations_before = thread_counts().allocations;
        let begin = clock.now();
        pool.submit(&mut due);
        let completion = pool.wait(Nanos::MAX, &mut finished);
        assert_eq!(completion, Completion::AllDone, "without a deadline every task comes back");
        let length = clock.now().saturating_sub(begin);
        // The first frames find cold caches and empty buffers.
        if frame >= 5 {
            allocations += thread_counts().allocations - allocations_before;
            figures.push(figure(length, &finished));
        }
        due.extend(finished.drain(..).map(|done| Scheduled {
            deadline: Nanos::ZERO,
            cost: Nanos(done.task.rounds.into()),
            task: done.task,
        }));
    }
    Outcome::new(figures, allocations, due.iter().map(|chore| &*chore.task))
}

/// Batches of some 50 us each, as a world with a thousand clients may hand out.
fn fork_join_over_best(frames: usize, workers: usize) -> Outcome {
    fork_join(frames, workers, 30_000, |took, batches| {
        let total: Nanos = batches.iter().map(|batch| batch.took).sum();
        took.0 as f64 / (total.0 / workers as u64) as f64
    })
}

/// Frames of one world that hands out 16 batches; the figure is made of what the fork-join took. The frame's thread
/// waits between two of them until the workers sleep, as in a server that has time left.
fn fork_join(frames: usize, workers: usize, rounds: u32, figure: impl Fn(Nanos, &[TimedChore]) -> f64) -> Outcome {
    let clock = Arc::new(MonotonicClock::new());
    let mut pool = ShortTaskPool::new(vec![clock.clone(); workers], clock.clone());
    let chores = (0..16).map(|n| TimedChore { chore: Chore { rounds, hash: n }, took: Nanos::ZERO });
    let mut crowd = Box::new(Crowd { clock, chores: chores.collect(), took: Nanos::ZERO, allocated: 0 });
    let mut figures = Vec::with_capacity(frames);
    let mut allocations = 0;
    let (mut due, mut finished) = (Vec::new(), Vec::new());
    for frame in 0..frames + 5 {
        std::thread::sleep(std::time::Duration::from_micros(500));
        due.push(Scheduled { task: crowd, deadline: Nanos::ZERO, cost: Nanos::ZERO });
        pool.submit(&mut due);
        let completion = pool.wait(Nanos::MAX, &mut finished);
        assert_eq!(completion, Completion::AllDone, "without a deadline every task comes back");
        crowd = finished.pop().expect("the one task is back").task;
        if frame >= 5 {
            allocations += crowd.allocated;
            figures.push(figure(crowd.took, &crowd.chores));
        }
    }
    Outcome::new(figures, allocations, crowd.chores.iter().map(|timed| &timed.chore))
}

impl Outcome {
    fn new<'a>(mut figures: Vec<f64>, allocations: u64, chores: impl Iterator<Item = &'a Chore>) -> Outcome {
        Outcome {
            p50: quantile(&mut figures, 0.5),
            p99: quantile(&mut figures, 0.99),
            allocations_per_frame: allocations as f64 / figures.len() as f64,
            hash: chores.fold(0, |hash, chore| hash ^ chore.hash),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_size_runs_and_computes_the_same_on_any_number_of_workers() {
        let hashes: Vec<u64> = [1, 2, 8].map(|workers| makespan(20, 4, workers).hash).into();
        assert!(hashes.iter().all(|&hash| hash == hashes[0]), "{hashes:?}");
        let hashes: Vec<u64> = [1, 2, 8].map(|workers| fork_join_over_best(4, workers).hash).into();
        assert!(hashes.iter().all(|&hash| hash == hashes[0]), "{hashes:?}");
        assert_eq!(scheduling(50, 4, 2).allocations_per_frame, 0.0);
        // A list for each worker, when it hands out batches for the first time: on a busy machine that may be late.
        let frames = 40;
        assert!(fork_join(frames, 2, 0, |_, _| 0.0).allocations_per_frame * frames as f64 <= 2.0);
    }
}
