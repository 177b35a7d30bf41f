//! The pool's promises, on real threads. Order is read from a clock that moves by one with every look at it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::clock::{ManualClock, MonotonicClock};

use super::*;
use crate::Helpers;

/// Longer than any test takes; only a broken pool waits for it.
const LONG: Duration = Duration::from_secs(120);

struct Task {
    id: usize,
    runs: Arc<AtomicUsize>,
    work: Work,
}

enum Work {
    None,
    Spin(u64),
    Panic,
    HangUntilTold(Receiver<()>),
}

/// Each worker counts what it ran.
impl ShortTask for Task {
    type Worker = usize;
    type Batch = ();

    fn run_batch((): &mut (), _: &mut usize) {}

    fn run(&mut self, count: &mut usize, _: &Helpers<Task>) {
        *count += 1;
        self.runs.fetch_add(1, Ordering::Relaxed);
        match &self.work {
            Work::None => {}
            Work::Spin(rounds) => {
                std::hint::black_box((0..*rounds).fold(1_u64, |sum, n| sum.wrapping_mul(31).wrapping_add(n)));
            }
            Work::Panic => panic!("as the test wants it"),
            // An ended test counts as told, so that no thread is left hanging.
            Work::HangUntilTold(told) => _ = told.recv(),
        }
    }
}

/// Never shows the same time twice, so that times show an order.
#[derive(Default)]
struct CountingClock(AtomicU64);

impl Clock for CountingClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.fetch_add(1, Ordering::Relaxed))
    }
    fn unix_seconds(&self) -> u64 {
        0
    }
    fn sleep_until(&self, _at: Nanos) {}
}

fn pool(workers: usize, clock: impl Clock + 'static) -> ShortTaskPool<Task> {
    ShortTaskPool::new(vec![0; workers], Arc::new(clock))
}

fn scheduled(id: usize, deadline: u64, cost: u64, work: Work) -> Scheduled<Task> {
    let task = Task { id, runs: Arc::default(), work };
    Scheduled { task: Box::new(task), deadline: Nanos(deadline), cost: Nanos(cost) }
}

/// A task that runs until told, or until the sender is dropped.
fn hanging(id: usize) -> (Scheduled<Task>, Sender<()>) {
    let (tell, told) = channel();
    (scheduled(id, 0, u64::MAX, Work::HangUntilTold(told)), tell)
}

fn run_all(pool: &mut ShortTaskPool<Task>, mut list: Vec<Scheduled<Task>>) -> Vec<Finished<Task>> {
    let mut finished = Vec::new();
    pool.submit(&mut list);
    assert!(list.is_empty());
    assert_eq!(pool.wait(Nanos::MAX, &mut finished), Completion::AllDone);
    assert_eq!(pool.outstanding(), 0);
    finished
}

fn ids_by_start(mut finished: Vec<Finished<Task>>) -> Vec<usize> {
    finished.sort_by_key(|finished| finished.started);
    finished.iter().map(|finished| finished.task.id).collect()
}

#[test]
fn the_costliest_start_first_with_any_number_of_workers() {
    for workers in [1, 2, 8] {
        let mut pool = pool(workers, CountingClock::default());
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(workers as u64);
        let costs: Vec<u64> = (0..300).map(|_| rng.random_range(1..1_000)).collect();
        let list = (0..).zip(&costs).map(|(id, cost)| scheduled(id, 0, *cost, Work::Spin(cost * 10))).collect();
        let mut expected: Vec<usize> = (0..costs.len()).collect();
        expected.sort_by_key(|id| std::cmp::Reverse(costs[*id]));
        assert_eq!(ids_by_start(run_all(&mut pool, list)), expected);
    }
}

#[test]
fn an_earlier_deadline_starts_before_a_costlier_task() {
    let mut pool = pool(2, CountingClock::default());
    let list = vec![
        scheduled(0, 30, 999, Work::None),
        scheduled(1, 10, 1, Work::None),
        scheduled(2, 20, 5, Work::None),
        scheduled(3, 20, 50, Work::None),
        scheduled(4, 10, 2, Work::None),
    ];
    assert_eq!(ids_by_start(run_all(&mut pool, list)), [4, 1, 3, 2, 0]);
}

#[test]
fn what_comes_later_is_sorted_in_among_what_has_not_started() {
    let mut pool = pool(1, CountingClock::default());
    let (first, tell) = hanging(0);
    pool.submit(&mut vec![first, scheduled(1, 5, 10, Work::None), scheduled(2, 7, 10, Work::None)]);
    while pool.running().is_empty() {
        std::thread::yield_now();
    }
    pool.submit(&mut vec![scheduled(3, 5, 20, Work::None), scheduled(4, 9, 99, Work::None)]);
    assert_eq!(pool.outstanding(), 5);
    drop(tell);
    let mut finished = Vec::new();
    assert_eq!(pool.wait(Nanos::MAX, &mut finished), Completion::AllDone);
    assert_eq!(ids_by_start(finished), [0, 3, 1, 2, 4]);
}

/// Promise: whatever is submitted and whenever it is waited for, each task runs once and comes back once.
#[test]
fn every_task_runs_exactly_once() {
    for workers in [1, 2, 8] {
        for seed in 0..20 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut pool = pool(workers, MonotonicClock::new());
            let mut finished = Vec::new();
            let mut submitted = 0;
            for _frame in 0..rng.random_range(1..10) {
                let mut list: Vec<_> = (submitted..submitted + rng.random_range(0..200))
                    .map(|id| {
                        let (deadline, cost) = (rng.random_range(0..3), rng.random_range(0..100));
                        scheduled(id, deadline, cost, Work::Spin(cost * rng.random_range(0..20)))
                    })
                    .collect();
                submitted += list.len();
                pool.submit(&mut list);
                let until = if rng.random() { Nanos::ZERO } else { Nanos::MAX };
                let completion = pool.wait(until, &mut finished);
                if completion == Completion::AllDone {
                    assert_eq!(finished.len(), submitted, "seed {seed}, {workers} workers");
                }
            }
            assert_eq!(pool.wait(Nanos::MAX, &mut finished), Completion::AllDone);

            let mut ids: Vec<usize> = finished.iter().map(|finished| finished.task.id).collect();
            ids.sort_unstable();
            assert_eq!(ids, (0..submitted).collect::<Vec<_>>(), "seed {seed}, {workers} workers");
            let once = |finished: &Finished<Task>| finished.task.runs.load(Ordering::Relaxed) == 1;
            assert!(finished.iter().all(once), "seed {seed}, {workers} workers");
            let counts = pool.shutdown(LONG);
            assert_eq!((counts.len(), counts.iter().sum::<usize>()), (workers, submitted));
        }
    }
}

/// Promise: a hung task costs its worker, and neither the frame nor the other tasks.
#[test]
fn a_hung_task_costs_one_worker_and_rejoins_later() {
    let clock = Arc::new(MonotonicClock::new());
    let mut pool = ShortTaskPool::new(vec![0; 2], clock.clone());
    let (hung, tell) = hanging(0);
    let mut list = vec![hung];
    let mut finished = Vec::new();
    for frame in 1..=3 {
        list.extend((0..20).map(|n| scheduled(frame * 100 + n, 0, 1, Work::Spin(100))));
        pool.submit(&mut list);
        finished.clear();
        while finished.len() < 20 {
            let until = clock.now() + Nanos::from_millis(5);
            assert_eq!(pool.wait(until, &mut finished), Completion::DeadlinePassed);
            assert!(finished.len() == 20 || clock.now() >= until);
        }
        assert!(finished.iter().all(|finished| finished.task.id / 100 == frame));
        assert_eq!(pool.outstanding(), 1);
        assert_eq!(pool.running().len(), 1);
        let mut idle = Vec::new();
        pool.with_workers(|worker, _| idle.push(worker));
        assert_eq!(idle, [1 - pool.running()[0]]);
    }

    finished.clear();
    drop(tell);
    assert_eq!(pool.wait(Nanos::MAX, &mut finished), Completion::AllDone);
    assert_eq!(ids_by_start(finished), [0]);
    assert!(pool.running().is_empty());
    assert_eq!(pool.shutdown(LONG).iter().sum::<usize>(), 61);
}

#[test]
fn a_shutdown_leaves_a_hung_worker_behind() {
    let mut pool = pool(3, MonotonicClock::new());
    let (hung, tell) = hanging(0);
    pool.submit(&mut vec![hung]);
    while pool.running().is_empty() {
        std::thread::yield_now();
    }
    let contexts = pool.shutdown(Duration::from_millis(20));
    assert_eq!(contexts, [0, 0], "the third is with the hung task");
    tell.send(()).unwrap();
}

#[test]
fn a_panicking_task_is_reported_and_its_worker_lives_on() {
    let mut pool = pool(1, MonotonicClock::new());
    let list = vec![scheduled(0, 0, 9, Work::None), scheduled(1, 1, 9, Work::Panic), scheduled(2, 2, 9, Work::None)];
    let finished = run_all(&mut pool, list);
    let seen: Vec<_> = finished.iter().map(|finished| (finished.task.id, finished.panicked)).collect();
    assert_eq!(seen, [(0, false), (1, true), (2, false)]);
    assert_eq!(run_all(&mut pool, vec![scheduled(3, 0, 9, Work::None)]).len(), 1);
    assert_eq!(pool.shutdown(LONG), [4]);
}

#[test]
fn a_manual_clock_waits_for_completion_whatever_the_deadline() {
    let mut pool = pool(2, ManualClock::new());
    let mut list: Vec<_> = (0..50).map(|id| scheduled(id, 0, 1, Work::Spin(10_000))).collect();
    let mut finished = Vec::new();
    pool.submit(&mut list);
    assert_eq!(pool.wait(Nanos::ZERO, &mut finished), Completion::AllDone);
    assert_eq!(finished.len(), 50);
}

#[test]
fn waiting_for_nothing_returns_at_once() {
    let mut pool = pool(2, MonotonicClock::new());
    pool.submit(&mut Vec::new());
    assert_eq!(pool.wait(Nanos::MAX, &mut Vec::new()), Completion::AllDone);
    assert_eq!(pool.idle_tail().share(), 0.0);
}

#[test]
fn the_idle_tail_is_what_one_worker_waits_for_the_other() {
    // One task for two workers: the other one is idle all the time.
    let mut two = pool(2, CountingClock::default());
    while two.shared.lock().posts.iter().any(|post| post.rest != Rest::Asleep) {
        std::thread::yield_now();
    }
    run_all(&mut two, vec![scheduled(0, 0, 1, Work::None)]);
    let lonely = two.idle_tail();
    assert_eq!(lonely.tail, lonely.frame);
    assert_eq!(lonely.share(), 1.0);

    // One worker waits for nobody.
    let mut one = pool(1, CountingClock::default());
    run_all(&mut one, (0..100).map(|id| scheduled(id, 0, 1, Work::None)).collect());
    let even = one.idle_tail();
    assert_eq!(even.tail, Nanos::ZERO);
    assert!(even.frame > Nanos::ZERO);
}

#[test]
fn only_the_workers_in_use_take_tasks() {
    let mut pool = pool(3, MonotonicClock::new());
    let mut workers_of = |used: Option<usize>| {
        if let Some(used) = used {
            pool.use_workers(used);
        }
        let list = (0..200).map(|id| scheduled(id, 0, 1, Work::Spin(1_000))).collect();
        run_all(&mut pool, list).iter().map(|finished| finished.worker).max()
    };
    assert!(workers_of(None) <= Some(2));
    assert_eq!(workers_of(Some(1)), Some(0));
    assert!(workers_of(Some(2)) <= Some(1));
}

#[test]
fn a_worker_used_again_takes_what_waits() {
    let mut pool = pool(2, MonotonicClock::new());
    pool.use_workers(1);
    let (hung, _tell) = hanging(0);
    pool.submit(&mut vec![hung, scheduled(1, 1, 1, Work::None)]);
    while pool.running().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(pool.outstanding(), 2);
    pool.use_workers(2);
    while pool.outstanding() > 1 {
        std::thread::yield_now();
    }
    assert_eq!(pool.running().len(), 1);
}
