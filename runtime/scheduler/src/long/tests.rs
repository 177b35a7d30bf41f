//! Long tasks on threads, where they are started, and by hand. Tests wait for what tasks say, never for time.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use throng_platform::clock::{ManualClock, MonotonicClock};

use super::*;

const TIMEOUT: Duration = Duration::from_secs(60);

fn clock() -> Arc<dyn Clock> {
    Arc::new(MonotonicClock::new())
}

fn task(kind: LongKind, deadline: Nanos, run: impl FnOnce() + Send + 'static) -> LongTask {
    LongTask { kind, deadline, cost: Some(Nanos(100)), frees: None, about: None, run: Box::new(run) }
}

/// One thread, which a first task holds up until the test lets go.
struct HeldUp {
    pool: LongTaskPool,
    kind: LongKind,
    release: Sender<()>,
    /// What later tasks say.
    said: Receiver<u32>,
    say: Sender<u32>,
}

impl HeldUp {
    fn new(waiting_max: usize) -> HeldUp {
        let pool = LongTaskPool::with_threads(1, waiting_max, clock()).unwrap();
        let kind = pool.tasks().kind("test");
        let ((release, released), (begun, has_begun), (say, said)) = (channel(), channel(), channel());
        let hold = move || {
            begun.send(()).unwrap();
            released.recv().unwrap();
        };
        pool.tasks().start(task(kind, Nanos::ZERO, hold)).unwrap();
        has_begun.recv_timeout(TIMEOUT).expect("the thread takes it");
        HeldUp { pool, kind, release, said, say }
    }

    fn says(&self, number: u32, deadline: u64) -> LongTask {
        let say = self.say.clone();
        task(self.kind, Nanos(deadline), move || say.send(number).unwrap())
    }

    /// Lets go, and waits for so many to have spoken.
    fn order(&self, count: usize) -> Vec<u32> {
        self.release.send(()).unwrap();
        (0..count).map(|_| self.said.recv_timeout(TIMEOUT).expect("all are run")).collect()
    }
}

/// What a task says is said before it counts as ended.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let given_up_at = std::time::Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(std::time::Instant::now() < given_up_at, "it never was so");
        std::thread::yield_now();
    }
}

#[test]
fn the_earliest_deadline_begins_first_and_equal_ones_in_their_order() {
    let held_up = HeldUp::new(100);
    for (number, deadline) in [(1, 900), (2, 300), (3, 900), (4, 100), (5, 300)] {
        held_up.pool.tasks().start(held_up.says(number, deadline)).unwrap();
    }
    assert_eq!(held_up.order(5), [4, 2, 5, 1, 3]);
}

#[test]
fn one_task_too_many_is_refused_and_what_frees_memory_never_is() {
    let held_up = HeldUp::new(2);
    let tasks = held_up.pool.tasks();
    assert_eq!(tasks.start(held_up.says(1, 10)), Ok(()));
    assert_eq!(tasks.start(held_up.says(2, 11)), Ok(()));
    assert_eq!(tasks.start(held_up.says(3, 12)), Err(TooManyWait));
    let frees = LongTask { frees: Some(4_096), ..held_up.says(4, 13) };
    assert_eq!(tasks.start(frees), Ok(()));
    assert_eq!((tasks.waiting(), tasks.freeing(), tasks.freeing_bytes()), (3, Nanos(100), 4_096));
    assert_eq!(tasks.outstanding(), Nanos(400), "the one that runs counts too");
    assert_eq!(held_up.order(3), [1, 2, 4]);
    wait_until(|| tasks.outstanding() == Nanos::ZERO);
    assert_eq!((tasks.waiting(), tasks.freeing(), tasks.freeing_bytes()), (0, Nanos::ZERO, 0));
    let totals = LongTotals { started: 4, finished: 4, missed: 4, panicked: 0, refused: 1 };
    assert_eq!(tasks.totals(), totals, "nanoseconds after the clock's start all deadlines were over");
    assert_eq!(tasks.rows()[0].refused, 1);
}

/// Promise: what a task does wrong is counted, and costs no thread.
#[test]
fn a_panic_ends_its_task_alone() {
    let held_up = HeldUp::new(10);
    let tasks = held_up.pool.tasks();
    tasks.start(task(held_up.kind, Nanos(1), || panic!("on purpose"))).unwrap();
    tasks.start(held_up.says(7, 2)).unwrap();
    assert_eq!(held_up.order(1), [7]);
    wait_until(|| tasks.totals().finished == 3);
    assert_eq!((tasks.totals().panicked, tasks.rows()[0].panicked), (1, 1));
    assert_eq!(tasks.outstanding(), Nanos::ZERO);
}

#[test]
fn what_each_thread_is_at_can_be_seen_while_it_is_at_it() {
    let held_up = HeldUp::new(10);
    let running: Vec<_> = held_up.pool.tasks().running().collect();
    assert_eq!(running.len(), 1);
    assert_eq!((held_up.pool.tasks().name(running[0].kind), running[0].cost), ("test", Nanos(100)));
    held_up.release.send(()).unwrap();
    wait_until(|| held_up.pool.tasks().running().next().is_none());
}

/// Promise: threads sleep and wake, and no task is left lying.
#[test]
fn all_tasks_of_all_starters_are_run_once() {
    const EACH: u32 = 500;
    let pool = LongTaskPool::with_threads(3, usize::MAX, clock()).unwrap();
    let kind = pool.tasks().kind("test");
    let (say, said) = channel();
    std::thread::scope(|scope| {
        for starter in 0..4 {
            let (tasks, say) = (pool.tasks().clone(), say.clone());
            scope.spawn(move || {
                for number in 0..EACH {
                    let say = say.clone();
                    tasks.start(task(kind, Nanos::MAX, move || say.send(starter * EACH + number).unwrap())).unwrap();
                }
            });
        }
    });
    let mut numbers: Vec<u32> = (0..4 * EACH).map(|_| said.recv_timeout(TIMEOUT).expect("all are run")).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..4 * EACH));
}

#[test]
fn without_threads_a_task_is_done_when_it_has_been_started() {
    let clock = ManualClock::new();
    let pool = LongTaskPool::inline(Arc::new(clock.clone()));
    let (tasks, results) = (pool.tasks(), Arc::new(Results::default()));
    let kind = tasks.kind("test");
    for (number, deadline) in [(1, 50), (2, 50), (3, 5)] {
        let (results, clock) = (results.clone(), clock.clone());
        let work = move || {
            clock.advance(Nanos(10));
            results.put(number);
        };
        tasks.start(task(kind, Nanos(deadline), work)).unwrap();
    }
    let mut taken = Vec::new();
    results.take(&mut taken);
    assert_eq!((taken, tasks.outstanding(), tasks.threads()), (vec![1, 2, 3], Nanos::ZERO, 0));
    let row = &tasks.rows()[0];
    assert_eq!((row.finished, row.missed, row.usual_cost), (3, 1, Nanos(10)));
}

/// Time that is given is used by the most urgent, and one that needs more than it was given goes on when there is more.
#[test]
fn by_hand_tasks_take_the_time_that_they_cost() {
    let clock = ManualClock::new();
    let pool = LongTaskPool::by_hand(10, Arc::new(clock.clone()));
    let (tasks, results) = (pool.tasks(), Arc::new(Results::default()));
    let kind = tasks.kind("test");
    for (number, deadline) in [(1, 50), (2, 20)] {
        let results = results.clone();
        tasks.start(task(kind, Nanos(deadline), move || results.put(number))).unwrap();
    }
    let after = |time| {
        clock.advance(Nanos(time));
        pool.work_for(Nanos(time));
        let mut taken = Vec::new();
        results.take(&mut taken);
        taken
    };
    assert_eq!(after(60), Vec::<i32>::new());
    assert_eq!(after(60), [2]);
    assert_eq!(after(79), Vec::<i32>::new());
    assert_eq!(after(1), [1]);
    assert_eq!((after(500), tasks.totals().missed), (vec![], 2));
    let results = results.clone();
    tasks.start(task(kind, Nanos::MAX, move || results.put(3))).unwrap();
    assert_eq!(tasks.waiting(), 1);
    pool.work_for(Nanos(99));
    assert_eq!(tasks.waiting(), 1, "idle time is not saved up");
    pool.work_for(Nanos(1));
    assert_eq!(tasks.waiting(), 0);
}

/// Promise: a pool that ends waits for nobody, and drops what has not begun.
#[test]
fn what_has_not_begun_is_dropped_with_the_pool() {
    let held_up = HeldUp::new(10);
    held_up.pool.tasks().start(held_up.says(1, 1)).unwrap();
    let HeldUp { pool, release, said, say, .. } = held_up;
    drop((pool, say));
    release.send(()).unwrap();
    assert_eq!(said.recv_timeout(TIMEOUT), Err(std::sync::mpsc::RecvTimeoutError::Disconnected), "it was not run");
}
