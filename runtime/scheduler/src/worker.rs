//! The worker threads, and the state that they share with the frame's thread.
//!
//! One mutex guards everything: a worker locks it once per task, to hand in the last one and take the next.
//! No foreign code runs under it, and it is held for some tens of nanoseconds, which at thousands of tasks a
//! frame was measured to be cheap enough that nothing cleverer is needed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use throng_platform::clock::Clock;
use throng_platform::time::Nanos;
use throng_profiler::scope;
use throng_profiler::sync::{Condvar, Mutex, MutexGuard};
use throng_profiler::thread::{self, ThreadClass};

use crate::order::Entry;
use crate::task::{Finished, ShortTask};

/// What the frame's thread and the workers share.
pub(crate) struct Shared<T: ShortTask> {
    state: Mutex<State<T>>,
    /// One per worker, so that exactly those are woken for whom there is work.
    pub wake: Box<[Condvar]>,
    /// The frame's thread waits here for the last task, or for a worker to leave.
    pub done: Condvar,
    pub clock: Arc<dyn Clock>,
}

pub(crate) struct State<T: ShortTask> {
    /// Sorted; the next task to start is the last.
    pub list: Vec<Entry<T>>,
    pub finished: Vec<Finished<T>>,
    /// Tasks in the list or running.
    pub outstanding: usize,
    pub posts: Box<[Post<T::Worker>]>,
    /// Workers with a lower index take tasks; the others sleep.
    pub workers_used: usize,
    pub stopping: bool,
    pub submitted: Nanos,
    /// When a worker first found nothing to do since then.
    pub first_idle: Option<Nanos>,
    pub last_finish: Nanos,
}

/// One worker as seen from outside.
pub(crate) struct Post<W> {
    /// What the worker lends to its tasks; away while it runs one.
    pub context: Option<Box<W>>,
    pub running_since: Option<Nanos>,
    pub asleep: bool,
    pub gone: bool,
}

struct Claimed<T: ShortTask> {
    task: Box<T>,
    context: Box<T::Worker>,
    started: Nanos,
}

impl<T: ShortTask> Shared<T> {
    pub fn new(workers: Vec<T::Worker>, clock: Arc<dyn Clock>) -> Shared<T> {
        let count = workers.len();
        let post = |context| Post { context: Some(Box::new(context)), running_since: None, asleep: false, gone: false };
        let state = State {
            list: Vec::new(),
            finished: Vec::new(),
            outstanding: 0,
            posts: workers.into_iter().map(post).collect(),
            workers_used: count,
            stopping: false,
            submitted: Nanos::ZERO,
            first_idle: None,
            last_finish: Nanos::ZERO,
        };
        Shared {
            state: Mutex::new("scheduler.list", state),
            wake: (0..count).map(|_| Condvar::new()).collect(),
            done: Condvar::new(),
            clock,
        }
    }

    /// A lock that a panic left behind is as good as any: the state is whole between any two statements
    /// that could panic under it.
    pub fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock()
    }
}

/// A worker thread's life: take the next task, run it, hand it in, until the pool stops.
pub(crate) fn work<T: ShortTask>(shared: &Shared<T>, index: usize) {
    thread::register(ThreadClass::ShortTask);
    let mut state = shared.lock();
    while !state.stopping {
        let Some(mut claimed) = state.claim(index, &*shared.clock) else {
            state.posts[index].asleep = true;
            {
                scope!("idle.worker");
                state = shared.wake[index].wait(state);
            }
            state.posts[index].asleep = false;
            continue;
        };
        drop(state);
        // The task is handed back marked, and its owner decides what to do with a state that may be torn.
        let run = AssertUnwindSafe(|| claimed.task.run(&mut claimed.context));
        let panicked = catch_unwind(run).is_err();
        let ran = shared.clock.now();

        state = shared.lock();
        let is_last = state.list.is_empty();
        if is_last {
            drop(state);
            // Tasks have come home whole; what a panic here loses is the worker's own.
            let _ = catch_unwind(AssertUnwindSafe(|| T::rest(&mut claimed.context)));
            state = shared.lock();
        }
        let finished = if is_last { shared.clock.now() } else { ran };
        state.hand_in(index, claimed, ran, finished, panicked);
        if state.outstanding == 0 {
            // Without the lock, or the woken thread would run into it at once.
            drop(state);
            shared.done.notify_one();
            state = shared.lock();
        }
    }
    state.posts[index].gone = true;
    drop(state);
    shared.done.notify_one();
}

impl<T: ShortTask> State<T> {
    fn claim(&mut self, worker: usize, clock: &dyn Clock) -> Option<Claimed<T>> {
        if worker >= self.workers_used {
            return None;
        }
        // Read under the lock, so that starts are in the order of the list.
        let now = clock.now();
        let Some(entry) = self.list.pop() else {
            self.first_idle.get_or_insert(now);
            return None;
        };
        let post = &mut self.posts[worker];
        post.running_since = Some(now);
        let context = post.context.take().expect("a worker's context is home between two tasks");
        Some(Claimed { task: entry.task, context, started: now })
    }

    fn hand_in(&mut self, worker: usize, claimed: Claimed<T>, ran: Nanos, finished: Nanos, panicked: bool) {
        let Claimed { task, context, started } = claimed;
        let post = &mut self.posts[worker];
        post.running_since = None;
        post.context = Some(context);
        self.last_finish = self.last_finish.max(finished);
        self.outstanding -= 1;
        self.finished.push(Finished { task, worker, started, ran, finished, panicked });
    }
}
