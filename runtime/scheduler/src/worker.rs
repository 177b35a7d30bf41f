//! The worker threads, and the state that they share with the frame's thread.
//!
//! One mutex guards everything: a worker locks it once per task, to hand in the last one and take the next.
//! No foreign code runs under it, and it is held for some tens of nanoseconds, which at thousands of tasks a
//! frame was measured to be cheap enough that nothing cleverer is needed.

use std::sync::Arc;

use throng_platform::clock::Clock;
use throng_platform::time::Nanos;

use crate::contained;
use crate::fork_join::{Fork, Helpers, TakenBatch, run_batch};
use crate::order::Entry;
use crate::shim::{Condvar, Mutex, MutexGuard, scope};
use crate::task::{Finished, ShortTask};

/// What the frame's thread and the workers share.
pub(crate) struct Shared<T: ShortTask> {
    state: Mutex<State<T>>,
    /// One per worker, so that exactly those are woken for whom there is work. A worker whose task waits for batches
    /// waits here too.
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
    /// The batches of each worker's task.
    pub forks: Box<[Fork<T::Batch>]>,
    /// Batches that nobody has taken, of all forks.
    pub batches_waiting: usize,
    /// Workers that have run batches and are at their `rest`.
    pub resting: usize,
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
    pub rest: Rest,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Awake,
    Asleep,
    /// Asleep no longer than it takes to wake up: it was called for batches.
    Called,
}

enum Claimed<T: ShortTask> {
    Task(ClaimedTask<T>),
    Batch(TakenBatch<T::Batch>, Box<T::Worker>),
}

struct ClaimedTask<T: ShortTask> {
    task: Box<T>,
    context: Box<T::Worker>,
    started: Nanos,
}

impl<T: ShortTask> Shared<T> {
    pub fn new(workers: Vec<T::Worker>, clock: Arc<dyn Clock>) -> Shared<T> {
        let count = workers.len();
        let post = |context| Post { context: Some(Box::new(context)), rest: Rest::Awake };
        let state = State {
            list: Vec::new(),
            finished: Vec::new(),
            outstanding: 0,
            posts: workers.into_iter().map(post).collect(),
            forks: (0..count).map(|_| Fork::new()).collect(),
            batches_waiting: 0,
            resting: 0,
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

/// A worker thread's life: take the next batch or task, run it, hand it in, until the pool stops.
pub(crate) fn work<T: ShortTask>(shared: &Arc<Shared<T>>, index: usize) {
    let helpers = Helpers::of_worker(Arc::clone(shared), index);
    let mut state = shared.lock();
    while !state.stopping {
        state = match state.claim(index, &*shared.clock) {
            Some(Claimed::Batch(taken, context)) => help(shared, index, state, taken, context),
            Some(Claimed::Task(claimed)) => {
                helpers.set_count(state.workers_used.saturating_sub(1));
                drop(state);
                run_task(shared, index, &helpers, claimed)
            }
            None => {
                state.posts[index].rest = Rest::Asleep;
                {
                    scope!("idle.worker");
                    state = shared.wake[index].wait(state);
                }
                state.posts[index].rest = Rest::Awake;
                state
            }
        };
    }
}

fn run_task<'a, T: ShortTask>(
    shared: &'a Shared<T>,
    index: usize,
    helpers: &Helpers<T>,
    mut claimed: ClaimedTask<T>,
) -> MutexGuard<'a, State<T>> {
    // The task is handed back marked, and its owner decides what to do with a state that may be torn.
    let panicked = contained::panics(|| claimed.task.run(&mut claimed.context, helpers));
    let ran = shared.clock.now();

    let mut state = shared.lock();
    let is_last = !state.has_work_for(index);
    if is_last {
        drop(state);
        rest::<T>(&mut claimed.context);
        state = shared.lock();
    }
    let finished = if is_last { shared.clock.now() } else { ran };
    state.hand_in(index, claimed, ran, finished, panicked);
    shared.tell_if_done(state)
}

/// Runs a batch of another worker's task.
fn help<'a, T: ShortTask>(
    shared: &'a Shared<T>,
    index: usize,
    mut state: MutexGuard<'a, State<T>>,
    mut taken: TakenBatch<T::Batch>,
    mut context: Box<T::Worker>,
) -> MutexGuard<'a, State<T>> {
    let called = state.call_helpers();
    drop(state);
    shared.wake(called);
    let panic = run_batch::<T>(&mut taken.batch, &mut context);

    state = shared.lock();
    let owner = taken.owner;
    let is_complete = state.bring_back(taken, panic);
    if state.has_work_for(index) {
        if is_complete {
            // Under the lock, since this worker must find the work that it has seen.
            shared.wake[owner].notify_one();
        }
        state.come_home(index, context);
        return state;
    }
    // The task goes on meanwhile; the frame's thread waits for both.
    state.resting += 1;
    drop(state);
    if is_complete {
        shared.wake[owner].notify_one();
    }
    rest::<T>(&mut context);
    state = shared.lock();
    state.resting -= 1;
    state.come_home(index, context);
    shared.tell_if_done(state)
}

/// Tasks have come home whole; what a panic here loses is the worker's own.
fn rest<T: ShortTask>(context: &mut T::Worker) {
    contained::panics(|| T::rest(context));
}

impl<T: ShortTask> Shared<T> {
    fn tell_if_done<'a>(&'a self, state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
        if !state.is_done() {
            return state;
        }
        // Without the lock, or the woken thread would run into it at once.
        drop(state);
        self.done.notify_one();
        self.lock()
    }
}

impl<T: ShortTask> State<T> {
    /// Every task is back, and every worker that helped is at rest.
    pub fn is_done(&self) -> bool {
        self.outstanding == 0 && self.resting == 0
    }

    fn has_work_for(&self, worker: usize) -> bool {
        worker < self.workers_used && (self.batches_waiting > 0 || !self.list.is_empty())
    }

    fn claim(&mut self, worker: usize, clock: &dyn Clock) -> Option<Claimed<T>> {
        if worker >= self.workers_used {
            return None;
        }
        // Read under the lock, so that starts are in the order of the list.
        let now = clock.now();
        if let Some(taken) = self.take_batch(worker) {
            return Some(Claimed::Batch(taken, self.leave_home(worker)));
        }
        let Some(entry) = self.list.pop() else {
            self.first_idle.get_or_insert(now);
            return None;
        };
        let context = self.leave_home(worker);
        Some(Claimed::Task(ClaimedTask { task: entry.task, context, started: now }))
    }

    fn leave_home(&mut self, worker: usize) -> Box<T::Worker> {
        self.posts[worker].context.take().expect("a worker's context is home between two tasks")
    }

    fn come_home(&mut self, worker: usize, context: Box<T::Worker>) {
        self.posts[worker].context = Some(context);
    }

    fn hand_in(&mut self, worker: usize, claimed: ClaimedTask<T>, ran: Nanos, finished: Nanos, panicked: bool) {
        let ClaimedTask { task, context, started } = claimed;
        self.come_home(worker, context);
        self.last_finish = self.last_finish.max(finished);
        self.outstanding -= 1;
        self.finished.push(Finished { task, worker, started, ran, finished, panicked });
    }
}
