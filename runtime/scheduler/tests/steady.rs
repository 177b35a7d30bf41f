//! Promise: a steady frame allocates nothing, neither on the frame's thread nor on a worker's.

use std::sync::Arc;

use throng_platform::allocator::{CountingAllocator, thread_counts};
use throng_platform::clock::MonotonicClock;
use throng_platform::time::Nanos;
use throng_scheduler::{Completion, Finished, Helpers, Scheduled, ShortTask, ShortTaskPool};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// With the batches that it hands out each time.
struct World(Vec<u64>);

/// Each worker notes how much its thread has allocated so far.
impl ShortTask for World {
    type Worker = u64;
    type Batch = u64;
    fn run(&mut self, allocations: &mut u64, helpers: &Helpers<World>) {
        helpers.fork_join(&mut self.0, allocations);
        *allocations = thread_counts().allocations;
    }
    fn run_batch(batch: &mut u64, allocations: &mut u64) {
        *batch += 1;
        *allocations = thread_counts().allocations;
    }
}

fn frame(pool: &mut ShortTaskPool<World>, due: &mut Vec<Scheduled<World>>, done: &mut Vec<Finished<World>>) {
    let cost = Nanos(done.len() as u64);
    due.extend(done.drain(..).map(|finished| Scheduled { task: finished.task, deadline: finished.finished, cost }));
    pool.submit(due);
    assert_eq!(pool.wait(Nanos::MAX, done), Completion::AllDone);
}

#[test]
fn a_steady_frame_allocates_nothing() {
    const WORLDS: usize = 500;
    let mut pool = ShortTaskPool::<World>::new(vec![0; 2], Arc::new(MonotonicClock::new()));
    let mut due: Vec<_> = (0..WORLDS)
        .map(|_| Scheduled { task: Box::new(World(vec![0; 10])), deadline: Nanos::ZERO, cost: Nanos::ZERO })
        .collect();
    let mut done = Vec::with_capacity(WORLDS);
    for _warm_up in 0..20 {
        frame(&mut pool, &mut due, &mut done);
    }
    let of_workers = |pool: &mut ShortTaskPool<World>| {
        let mut counts = [0; 2];
        pool.with_workers(|worker, allocations| counts[worker] = *allocations);
        counts
    };

    let workers_before = of_workers(&mut pool);
    let before = thread_counts();
    for _frame in 0..100 {
        frame(&mut pool, &mut due, &mut done);
    }
    assert_eq!(thread_counts().allocations - before.allocations, 0);
    let workers_after = of_workers(&mut pool);
    for worker in 0..2 {
        // A worker that had no task in the warm-up has not noted anything yet.
        assert!(workers_before[worker] == 0 || workers_after[worker] == workers_before[worker]);
    }
}
