//! What a fork-join promises, on real threads, in as many orders as they come upon.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::clock::MonotonicClock;
use throng_platform::time::Nanos;

use super::*;
use crate::{Completion, Finished, Scheduled, ShortTaskPool};

/// Longer than any test takes; only a broken pool waits for it.
const LONG: Duration = Duration::from_secs(120);

/// A worker's own: what it has not sent off yet, as a send batch.
#[derive(Debug, Default, PartialEq, Eq)]
struct Own {
    unsent: usize,
    sent: usize,
}

/// Forks and joins its lists of batches, one after the other.
#[derive(Default)]
struct World {
    id: usize,
    forks: Vec<Vec<Batch>>,
    /// What the fork-join of each list panicked with.
    panics: Vec<Option<String>>,
    /// Waited for before the first fork-join.
    begin: Option<Receiver<()>>,
    helpers_count: usize,
}

struct Batch {
    input: u64,
    output: Option<u64>,
    work: Box<dyn FnMut() + Send>,
}

impl ShortTask for World {
    type Worker = Own;
    type Batch = Batch;

    fn run(&mut self, own: &mut Own, helpers: &Helpers<World>) {
        if let Some(begin) = &self.begin {
            _ = begin.recv();
        }
        self.helpers_count = helpers.count();
        for batches in &mut self.forks {
            let fork = catch_unwind(AssertUnwindSafe(|| helpers.fork_join(batches, own)));
            self.panics.push(fork.err().map(|panic| panic.downcast_ref::<String>().unwrap().clone()));
        }
        own.unsent += 1;
    }

    fn run_batch(batch: &mut Batch, own: &mut Own) {
        (batch.work)();
        assert_eq!(batch.output, None, "run twice");
        batch.output = Some(batch.input.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23));
        own.unsent += 1;
    }

    fn rest(own: &mut Own) {
        own.sent += std::mem::take(&mut own.unsent);
    }
}

fn batch(input: u64, work: impl FnMut() + Send + 'static) -> Batch {
    Batch { input, output: None, work: Box::new(work) }
}

fn world(forks: Vec<Vec<Batch>>) -> World {
    World { forks, ..World::default() }
}

fn pool(workers: usize) -> ShortTaskPool<World> {
    ShortTaskPool::new((0..workers).map(|_| Own::default()).collect(), Arc::new(MonotonicClock::new()))
}

fn scheduled(world: World) -> Scheduled<World> {
    Scheduled { task: Box::new(world), deadline: Nanos::ZERO, cost: Nanos::ZERO }
}

fn run_all(pool: &mut ShortTaskPool<World>, worlds: Vec<World>) -> Vec<Finished<World>> {
    let mut finished = Vec::new();
    pool.submit(&mut worlds.into_iter().map(scheduled).collect());
    assert_eq!(pool.wait(Nanos::MAX, &mut finished), Completion::AllDone);
    finished
}

fn run_one(pool: &mut ShortTaskPool<World>, world: World) -> World {
    *run_all(pool, vec![world]).pop().unwrap().task
}

/// Promise: every batch runs once, comes back to its place, and gives the same on any number of workers; and when all
/// is done, every worker has sent off what batches and tasks have left with it.
#[test]
fn batches_come_back_in_order_with_the_same_results_on_any_number_of_workers() {
    let outputs = [1, 2, 8].map(|workers| {
        let mut pool = pool(workers);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
        let mut outputs = Vec::new();
        let mut left = 0;
        for _frame in 0..100 {
            let worlds = (0..rng.random_range(1..4)).map(|id| {
                let forks = (0..rng.random_range(1..4)).map(|_| {
                    let spin =
                        |rounds: u64| move || _ = std::hint::black_box((0..rounds).fold(1, |sum: u64, n| sum ^ n));
                    (0..rng.random_range(0..40))
                        .map(|_| batch(rng.random(), spin(rng.random_range(0..5_000))))
                        .collect()
                });
                World { id, ..world(forks.collect()) }
            });
            let worlds: Vec<World> = worlds.collect();
            let inputs: Vec<u64> = flat(&worlds).map(|batch| batch.input).collect();
            left += worlds.len() + inputs.len();

            let mut finished = run_all(&mut pool, worlds);
            finished.sort_by_key(|finished| finished.task.id);
            let worlds: Vec<World> = finished.into_iter().map(|finished| *finished.task).collect();
            assert!(worlds.iter().all(|world| world.helpers_count == workers - 1));
            assert_eq!(flat(&worlds).map(|batch| batch.input).collect::<Vec<_>>(), inputs);
            outputs.extend(flat(&worlds).map(|batch| batch.output.unwrap()));

            let (mut homes, mut sent) = (0, 0);
            pool.with_workers(|_, own| {
                assert_eq!(own.unsent, 0);
                homes += 1;
                sent += own.sent;
            });
            assert_eq!((homes, sent), (workers, left));
        }
        outputs
    });
    assert!(outputs[0].len() > 1_000);
    assert_eq!(outputs[0], outputs[1]);
    assert_eq!(outputs[0], outputs[2]);
}

fn flat_of(world: &World) -> impl Iterator<Item = &Batch> {
    world.forks.iter().flatten()
}

fn flat(worlds: &[World]) -> impl Iterator<Item = &Batch> {
    worlds.iter().flat_map(flat_of)
}

/// Batches that all have to be at work at once, and so on as many workers.
fn meeting(count: usize) -> Vec<Batch> {
    let barrier = Arc::new(Barrier::new(count));
    let batches = (0..count as u64).map(|input| {
        let barrier = barrier.clone();
        batch(input, move || _ = barrier.wait())
    });
    batches.collect()
}

/// Promise: all that sleep come, though each wakes two only, and the task's own worker does its share.
#[test]
fn a_batch_for_every_worker_is_on_every_worker() {
    for workers in [2, 3, 8] {
        let mut pool = pool(workers);
        for _frame in 0..50 {
            run_one(&mut pool, world(vec![meeting(workers), meeting(workers)]));
        }
        let mut counts = Vec::new();
        pool.with_workers(|_, own| counts.push(own.sent));
        assert_eq!(counts.iter().sum::<usize>(), 50 * (2 * workers + 1));
        assert!(counts.iter().all(|&count| count >= 100), "{counts:?}");
    }
}

#[test]
fn only_workers_in_use_help() {
    let mut pool = pool(3);
    let many = || (0..200).map(|input| batch(input, std::thread::yield_now)).collect::<Vec<_>>();
    for used in [1, 2, 1] {
        pool.use_workers(used);
        assert_eq!(run_one(&mut pool, world(vec![many()])).helpers_count, used - 1);
    }
    pool.with_workers(|worker, own| assert!(worker < 2 || own.sent == 0));
}

/// Promise: a batch's panic reaches its task, after all the others are back; workers and other tasks go on.
#[test]
fn a_panicking_batch_is_told_to_its_task_when_all_are_back() {
    for workers in [1, 2, 8] {
        let mut pool = pool(workers);
        let panicking = |text: &'static str| batch(0, move || std::panic::panic_any(text.to_owned()));
        let mut batches: Vec<Batch> = (0..30).map(|input| batch(input, || {})).collect();
        batches.insert(17, panicking("the second"));
        batches.insert(3, panicking("the first"));
        let ran = run_one(&mut pool, world(vec![batches, vec![batch(1, || {})], vec![panicking("alone")]]));
        assert_eq!(ran.panics, [Some("the first".to_owned()), None, Some("alone".to_owned())]);
        let torn: Vec<usize> =
            (0..).zip(&ran.forks[0]).filter(|(_, batch)| batch.output.is_none()).map(|(at, _)| at).collect();
        assert_eq!((ran.forks[0].len(), torn), (32, vec![3, 18]));
        assert!(run_one(&mut pool, world(vec![vec![batch(1, || {}), batch(2, || {})]])).panics[0].is_none());
        assert_eq!(pool.shutdown(LONG).len(), workers);
    }
}

/// Promise: a batch that hangs keeps its worker and its world with the world's worker, and nobody else.
#[test]
fn a_hung_batch_keeps_two_workers_and_rejoins_later() {
    let mut pool = pool(3);
    let (tell, told) = channel::<()>();
    let mut batches = meeting(2);
    let mut meet = std::mem::replace(&mut batches[1].work, Box::new(|| {}));
    batches[1].work = Box::new(move || {
        meet();
        _ = told.recv();
    });
    let mut finished = Vec::new();
    pool.submit(&mut vec![scheduled(world(vec![batches]))]);
    while pool.running().len() < 2 {
        std::thread::yield_now();
    }
    pool.submit(&mut (0..50).map(|_| scheduled(world(vec![vec![batch(1, || {}), batch(2, || {})]]))).collect());
    while finished.len() < 50 {
        assert_eq!(pool.wait(Nanos::ZERO, &mut finished), Completion::DeadlinePassed);
    }
    assert_eq!((pool.outstanding(), pool.running().len()), (1, 2));
    drop(tell);
    assert_eq!(pool.wait(Nanos::MAX, &mut finished), Completion::AllDone);
    assert!(finished.iter().all(|finished| flat_of(&finished.task).all(|batch| batch.output.is_some())));
    assert_eq!(pool.shutdown(LONG).len(), 3);
}

#[test]
fn a_shutdown_leaves_a_hung_batch_and_its_task_behind() {
    let mut pool = pool(3);
    let (tell, told) = channel::<()>();
    let (hang, hangs) = channel();
    // Whoever takes it: a helper, for which the task then waits, or the task's own worker.
    let hung = batch(0, move || {
        hang.send(()).unwrap();
        _ = told.recv();
    });
    pool.submit(&mut vec![scheduled(world(vec![vec![hung, batch(1, || {})]]))]);
    hangs.recv().unwrap();
    assert!(pool.shutdown(Duration::from_millis(50)).len() <= 2);
    drop(tell);
}

/// Promise: a worker that finishes a task takes parts before the next task, because somebody waits for them.
#[test]
fn batches_come_before_new_tasks() {
    let mut pool = pool(2);
    let tasks_ran = Arc::new(AtomicUsize::new(0));
    let ran_before_batch = Arc::new(AtomicUsize::new(usize::MAX));
    let (tell, told): (Sender<()>, _) = channel();
    let (shared, wait_until_shared) = channel();

    let mut batches = meeting(2);
    let mut meet = std::mem::replace(&mut batches[0].work, Box::new(|| {}));
    batches[0].work = Box::new(move || {
        shared.send(()).unwrap();
        meet();
    });
    let mut meet = std::mem::replace(&mut batches[1].work, Box::new(|| {}));
    let (ran, noted) = (tasks_ran.clone(), ran_before_batch.clone());
    batches[1].work = Box::new(move || {
        noted.store(ran.load(Ordering::SeqCst), Ordering::SeqCst);
        meet();
    });
    let busy = World { begin: Some(told), ..World::default() };
    pool.submit(&mut vec![scheduled(busy)]);
    while pool.running().is_empty() {
        std::thread::yield_now();
    }
    let count = || {
        let ran = tasks_ran.clone();
        scheduled(world(vec![vec![batch(0, move || _ = ran.fetch_add(1, Ordering::SeqCst))]]))
    };
    let mut list = vec![scheduled(world(vec![batches]))];
    list.extend((0..20).map(|_| count()));
    pool.submit(&mut list);
    wait_until_shared.recv().unwrap();
    drop(tell);
    let mut finished = Vec::new();
    assert_eq!(pool.wait(Nanos::MAX, &mut finished), Completion::AllDone);
    assert_eq!((finished.len(), ran_before_batch.load(Ordering::SeqCst)), (22, 0));
}

#[test]
fn a_task_without_a_pool_runs_its_batches_itself() {
    let helpers = Helpers::alone();
    let mut own = Own::default();
    let mut alone = world(vec![vec![batch(1, || {}), batch(2, || {})], Vec::new()]);
    alone.run(&mut own, &helpers);
    assert_eq!((alone.helpers_count, own.unsent), (0, 3));
    assert_eq!(alone.panics, [None, None]);
    assert!(flat_of(&alone).all(|batch| batch.output.is_some()));
}
