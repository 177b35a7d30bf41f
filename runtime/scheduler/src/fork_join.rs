//! Fork-join: a running task splits its work over workers that have nothing else to do.
//!
//! One world with thousands of players is one task, and while it ticks the other cores idle. What it does
//! then is mostly the same for many clients, so the task hands out batches: values that own what they need.
//!
//! ```text
//! task on worker-0:  fork_join([a b c d e]) --> [a b c d e] --> takes a .. d, waits for c --> [a b c d e]
//! worker-1, idle:                                    |--> takes b, e
//! worker-2, idle:                                    '--> takes c
//! ```
//!
//! - The task's own worker takes batches too, so a fork-join never waits for help that does not come.
//! - Batches come before new tasks, because a tick waits for them; no worker leaves a task for a batch.
//! - Sleepers are woken two at a time, and each that comes wakes two more while batches are left: the task's own
//!   worker pays for two wakings however many come.
//! - Which worker runs a batch is chance; batches that depend on nothing else give the same result on any number.
//!
//! A batch that hangs keeps its worker and, as the task waits for it, the task's worker too: two, where a task that
//! hangs by itself keeps one. So batches are for the engine's loops and not for a game's code. A batch that panics ends
//! the task that handed it out, once the other batches are back; a world is then parked for good, as it is after a
//! panic of its own.
//!
//! On the worker's thread, under the pool's one lock for some tens of nanoseconds per batch. Allocates nothing once the
//! lists have grown. Measured on 2 cores (`cargo xtask bench scheduler`): a fork-join whose helper sleeps costs 15 us,
//! most of it waking it up; 16 batches of 50 us each take 1.13 times what two workers need at best.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use crate::shim::scope;
use crate::task::ShortTask;
use crate::worker::{Rest, Shared, State};

/// Sleepers that one worker wakes when it takes a batch: two, so that all are awake after log2 wakings.
const CALLS_MAX: usize = 2;

/// What a batch panicked with.
pub(crate) type Panic = Box<dyn Any + Send>;

/// The workers, as a running task sees them: hands for its batches.
pub struct Helpers<T: ShortTask> {
    /// `None`: no pool, the task is run by something else.
    shared: Option<Arc<Shared<T>>>,
    index: usize,
    /// Other workers in use when the task was taken. In a cell, so that no other thread forks through the same value:
    /// a worker has one list of batches.
    count: Cell<usize>,
}

impl<T: ShortTask> Helpers<T> {
    /// Without other workers, for tasks that are run without a pool. Allocates nothing.
    pub fn alone() -> Helpers<T> {
        Helpers { shared: None, index: 0, count: Cell::new(0) }
    }

    pub(crate) fn of_worker(shared: Arc<Shared<T>>, index: usize) -> Helpers<T> {
        Helpers { shared: Some(shared), index, count: Cell::new(0) }
    }

    /// The next task has so many other workers.
    pub(crate) fn set_count(&self, count: usize) {
        self.count.set(count);
    }

    /// How many other workers could help: those in use besides this one when the task was taken, be they idle now or
    /// at work on a task after which they would take batches first. 0: splitting is no use.
    pub fn count(&self) -> usize {
        self.count.get()
    }

    /// Runs all `batches`, here and on workers that have nothing else to do, and returns when the last is back.
    ///
    /// Starts them in their order, so the costliest belong first (longest processing time, LPT); they come back in
    /// their order, in the same memory. A batch is moved twice each way: keep it small, its columns behind pointers.
    /// With one batch or one worker they simply run here.
    ///
    /// # Panics
    /// If a batch panicked: with what it panicked with, the first batch's if there were more. All the other batches
    /// have been run by then, and all are back in `batches`, the panicked ones as they were left.
    pub fn fork_join(&self, batches: &mut Vec<T::Batch>, worker: &mut T::Worker) {
        let panics = match &self.shared {
            Some(shared) if batches.len() > 1 && shared.wake.len() > 1 => self.fork(shared, batches, worker),
            _ => run_here::<T>(batches, worker),
        };
        if let Some((_, panic)) = panics.into_iter().min_by_key(|(slot, _)| *slot) {
            // Not a new panic: the thread that it happened on has told of it.
            resume_unwind(panic);
        }
    }

    fn fork(&self, shared: &Shared<T>, batches: &mut Vec<T::Batch>, worker: &mut T::Worker) -> Vec<(usize, Panic)> {
        let mut state = shared.lock();
        state.begin_fork(self.index, batches);
        while let Some(mut taken) = state.take_batch_of(self.index) {
            let called = state.call_helpers();
            drop(state);
            shared.wake(called);
            let panic = run_batch::<T>(&mut taken.batch, worker);
            state = shared.lock();
            state.bring_back(taken, panic);
        }
        if !state.forks[self.index].is_complete() {
            scope!("idle.fork_join");
            while !state.forks[self.index].is_complete() {
                state = shared.wake[self.index].wait(state);
            }
        }
        state.forks[self.index].join(batches)
    }
}

/// Without the pool, with the same promises.
fn run_here<T: ShortTask>(batches: &mut [T::Batch], worker: &mut T::Worker) -> Vec<(usize, Panic)> {
    let outcomes = (0..).zip(batches).map(|(slot, batch)| Some((slot, run_batch::<T>(batch, worker)?)));
    // Allocates if something is collected, and nothing usually is.
    outcomes.flatten().collect()
}

pub(crate) fn run_batch<T: ShortTask>(batch: &mut T::Batch, worker: &mut T::Worker) -> Option<Panic> {
    catch_unwind(AssertUnwindSafe(|| T::run_batch(batch, worker))).err()
}

/// The batches of one worker's task. One per worker, as a task waits for one fork-join at a time.
pub(crate) struct Fork<B> {
    /// Empty where a batch is away. As long as the longest list so far.
    slots: Vec<Option<B>>,
    /// The first that nobody has taken.
    next: usize,
    /// Taken and not back.
    away: usize,
    panics: Vec<(usize, Panic)>,
}

/// A batch that somebody is at work on.
pub(crate) struct TakenBatch<B> {
    /// The worker whose task it is of.
    pub owner: usize,
    slot: usize,
    pub batch: B,
}

impl<B> Fork<B> {
    pub fn new() -> Fork<B> {
        Fork { slots: Vec::new(), next: 0, away: 0, panics: Vec::new() }
    }

    fn take(&mut self, owner: usize) -> Option<TakenBatch<B>> {
        let slot = self.next;
        let batch = self.slots.get_mut(slot)?.take().expect("a batch that nobody has taken is there");
        self.next += 1;
        self.away += 1;
        Some(TakenBatch { owner, slot, batch })
    }

    pub fn is_complete(&self) -> bool {
        self.next == self.slots.len() && self.away == 0
    }

    fn join(&mut self, batches: &mut Vec<B>) -> Vec<(usize, Panic)> {
        assert!(self.is_complete());
        self.next = 0;
        batches.extend(self.slots.drain(..).map(|batch| batch.expect("every batch is back")));
        std::mem::take(&mut self.panics)
    }
}

impl<T: ShortTask> State<T> {
    fn begin_fork(&mut self, owner: usize, batches: &mut Vec<T::Batch>) {
        let fork = &mut self.forks[owner];
        assert!(fork.slots.is_empty(), "a task waits for one fork-join at a time");
        self.batches_waiting += batches.len();
        fork.slots.extend(batches.drain(..).map(Some));
    }

    fn take_batch_of(&mut self, owner: usize) -> Option<TakenBatch<T::Batch>> {
        let taken = self.forks[owner].take(owner);
        self.batches_waiting -= usize::from(taken.is_some());
        taken
    }

    /// For a helper. Looks at its neighbours first, so that helpers spread over tasks that fork at once.
    pub fn take_batch(&mut self, worker: usize) -> Option<TakenBatch<T::Batch>> {
        if self.batches_waiting == 0 {
            return None;
        }
        let count = self.forks.len();
        (worker + 1..worker + count).find_map(|owner| self.take_batch_of(owner % count))
    }

    /// True if it was the last that its task waits for.
    pub fn bring_back(&mut self, taken: TakenBatch<T::Batch>, panic: Option<Panic>) -> bool {
        let fork = &mut self.forks[taken.owner];
        fork.slots[taken.slot] = Some(taken.batch);
        fork.away -= 1;
        fork.panics.extend(panic.map(|panic| (taken.slot, panic)));
        fork.is_complete()
    }

    /// Sleepers to be woken, by their index: no more than there are batches for.
    pub fn call_helpers(&mut self) -> [Option<usize>; CALLS_MAX] {
        let mut called = [None; CALLS_MAX];
        if self.batches_waiting == 0 {
            return called;
        }
        let used = &mut self.posts[..self.workers_used];
        let on_their_way = used.iter().filter(|post| post.rest == Rest::Called).count();
        let wanted = self.batches_waiting.saturating_sub(on_their_way).min(CALLS_MAX);
        let sleepers = (0..).zip(used).filter(|(_, post)| post.rest == Rest::Asleep);
        for (call, (worker, post)) in called[..wanted].iter_mut().zip(sleepers) {
            post.rest = Rest::Called;
            *call = Some(worker);
        }
        called
    }
}

impl<T: ShortTask> Shared<T> {
    pub fn wake(&self, called: [Option<usize>; CALLS_MAX]) {
        for worker in called.into_iter().flatten() {
            self.wake[worker].notify_one();
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
