//! Models of the pool: the frame's thread, workers and helpers in every order that shuttle comes upon.
//!
//! What runs here is what ships, on the checker's locks (`shim`). Orders are random (`SHUTTLE_SCHEDULES`). A wake-up that
//! is lost leaves a thread waiting for ever, which shuttle reports as a deadlock, with the order that leads there.
//!
//! ```text
//! SHUTTLE_SCHEDULES=100000 cargo test -p throng-scheduler --features shuttle --lib model_tests
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use throng_platform::clock::ManualClock;
use throng_platform::time::Nanos;

use crate::{Completion, Finished, Helpers, LongTask, LongTaskPool, Results, Scheduled, ShortTask, ShortTaskPool};

/// Random orders of each model, unless `SHUTTLE_SCHEDULES` says another number.
const SCHEDULES: usize = 2_000;

fn check(model: fn()) {
    let said = std::env::var("SHUTTLE_SCHEDULES").ok().and_then(|number| number.parse().ok());
    shuttle::check_random(model, said.unwrap_or(SCHEDULES));
}

/// Hands out a batch for each of its parts.
struct Task {
    parts: Vec<Arc<AtomicU32>>,
    /// The order in which batches came back, by their number.
    back: Vec<usize>,
}

impl ShortTask for Task {
    type Worker = u32;
    type Batch = (usize, Arc<AtomicU32>);

    fn run(&mut self, runs: &mut u32, helpers: &Helpers<Self>) {
        *runs += 1;
        let mut batches: Vec<_> = self.parts.iter().cloned().enumerate().collect();
        helpers.fork_join(&mut batches, runs);
        self.back.extend(batches.iter().map(|(number, _)| *number));
    }

    fn run_batch((_, part): &mut Self::Batch, _: &mut u32) {
        // Where another thread may have its turn.
        shuttle::thread::yield_now();
        part.fetch_add(1, Ordering::Relaxed);
    }

    /// The worker's context is its own here, too.
    fn rest(runs: &mut u32) {
        *runs += 1_000;
        shuttle::thread::yield_now();
    }
}

struct Stage {
    pool: ShortTaskPool<Task>,
    /// How often each part of each task was run.
    parts: Vec<Vec<Arc<AtomicU32>>>,
}

impl Stage {
    /// `parts_counts` says how many parts each task of a frame has.
    fn new(workers: usize, parts_counts: &[usize]) -> Self {
        let pool = ShortTaskPool::new(vec![0; workers], Arc::new(ManualClock::new()));
        let parts = |&count: &usize| (0..count).map(|_| Arc::default()).collect();
        Self { pool, parts: parts_counts.iter().map(parts).collect() }
    }

    fn submit(&mut self) {
        let tasks = self.parts.iter().zip(1..).map(|(parts, cost)| {
            let task = Box::new(Task { parts: parts.clone(), back: Vec::new() });
            Scheduled { task, deadline: Nanos::ZERO, cost: Nanos(cost) }
        });
        self.pool.submit(&mut tasks.collect());
    }

    /// Waits for a frame to be over and holds it against what was submitted; `frames` so far.
    fn collect(&mut self, frames: u32) {
        let mut finished: Vec<Finished<Task>> = Vec::new();
        assert_eq!(self.pool.wait(Nanos::MAX, &mut finished), Completion::AllDone);
        assert_eq!(finished.len(), self.parts.len());
        for Finished { task, panicked, .. } in finished {
            assert!(!panicked && task.back.iter().copied().eq(0..task.parts.len()), "in their order: {:?}", task.back);
        }
        assert!(self.parts.iter().flatten().all(|part| part.load(Ordering::Relaxed) == frames), "each once a frame");
        let mut runs = 0;
        let mut homes = 0;
        self.pool.with_workers(|_, ran| {
            runs += *ran % 1_000;
            homes += 1;
        });
        assert_eq!((runs, homes), (frames * self.parts.len() as u32, self.pool.worker_count()), "all are at home");
    }
}

#[test]
fn r25_every_task_comes_back_once_frame_after_frame() {
    check(|| {
        let mut stage = Stage::new(2, &[0, 0, 0]);
        for frame in 1..=2 {
            stage.submit();
            stage.collect(frame);
        }
    });
}

#[test]
fn r25_batches_come_back_whole_whoever_helps() {
    check(|| {
        let mut stage = Stage::new(3, &[3, 0, 2]);
        for frame in 1..=2 {
            stage.submit();
            stage.collect(frame);
        }
    });
}

/// Workers are taken out of use and put back beside tasks that run.
#[test]
fn r25_workers_that_are_used_again_find_their_work() {
    check(|| {
        let mut stage = Stage::new(2, &[2, 2]);
        stage.pool.use_workers(1);
        stage.submit();
        stage.pool.use_workers(2);
        stage.collect(1);
        stage.pool.use_workers(1);
        stage.submit();
        stage.collect(2);
    });
}

/// Nobody waits for a pool that is dropped; its threads end, with or without a task.
#[test]
fn r25_threads_end_with_their_pool() {
    check(|| {
        let mut stage = Stage::new(2, &[2, 0]);
        stage.submit();
    });
}

/// Whoever starts long tasks and whoever sleeps for want of them never miss each other: all are run, once, and the
/// threads end with their pool.
#[test]
fn r25_no_long_task_is_left_lying() {
    check(|| {
        let pool = LongTaskPool::with_threads(2, 8, Arc::new(ManualClock::new())).unwrap();
        let (tasks, done) = (pool.tasks().clone(), Arc::new(Results::default()));
        let kind = tasks.kind("model");
        let start = |number: u32| {
            let done = Arc::clone(&done);
            let run = Box::new(move || done.put(number));
            LongTask { kind, deadline: Nanos(number.into()), cost: None, frees: None, about: None, run }
        };
        let other = {
            let (tasks, task) = (tasks.clone(), start(1));
            shuttle::thread::spawn(move || tasks.start(task).unwrap())
        };
        tasks.start(start(2)).unwrap();
        tasks.start(start(3)).unwrap();
        other.join().unwrap();
        let mut numbers = Vec::new();
        while numbers.len() < 3 {
            done.take(&mut numbers);
            shuttle::thread::yield_now();
        }
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3]);
    });
}
