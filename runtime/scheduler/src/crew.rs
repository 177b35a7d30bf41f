//! Crew: a running task splits its work over workers that have nothing else to do.
//!
//! One world with thousands of players is one task, and while it ticks the other cores idle. What it does
//! then is mostly the same for many clients, so the task hands out parts: values that own what they need.
//!
//! ```text
//! task on worker-0:  share([a b c d e]) --> [a b c d e] --> takes a .. d, waits for c --> [a b c d e]
//! worker-1, idle:                                |--> takes b, e
//! worker-2, idle:                                '--> takes c
//! ```
//!
//! - The sharing worker takes parts too, so a share never waits for help that does not come.
//! - Parts come before new tasks, because a tick waits for them; no worker leaves a task for a part.
//! - Sleepers are woken two at a time, and each that comes wakes two more while parts are left: the sharing
//!   worker pays for two wakings however many come.
//! - Which worker runs a part is chance; parts that depend on nothing else give the same result on any number.
//!
//! A part that hangs keeps its worker and, as the task waits for it, the task's worker too: two, where a task
//! that hangs by itself keeps one. So parts are for the engine's loops and not for a game's code.
//! A part that panics ends the task that shared it, once the other parts are back; a world is then parked for good,
//! as it is after a panic of its own.
//!
//! On the worker's thread, under the pool's one lock for some tens of nanoseconds per part. Allocates nothing
//! once the lists have grown. Measured on 2 cores (`cargo xtask bench scheduler`): a share whose helper sleeps costs
//! 15 us, most of it waking it up; 16 parts of 50 us each take 1.13 times what two workers need at best.

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use throng_profiler::scope;

use crate::task::ShortTask;
use crate::worker::{Rest, Shared, State};

/// Sleepers that one worker wakes when it takes a part: two, so that all are awake after log2 wakings.
const CALLS_MAX: usize = 2;

/// What a part panicked with.
pub(crate) type Panic = Box<dyn Any + Send>;

/// The workers, as a running task sees them: hands for its parts.
pub struct Crew<T: ShortTask> {
    /// `None`: no pool, the task is run by something else.
    shared: Option<Arc<Shared<T>>>,
    index: usize,
    /// A worker has one list of parts, so two threads must not share through the same crew.
    one_thread: PhantomData<Cell<()>>,
}

impl<T: ShortTask> Crew<T> {
    /// A crew without helpers, for tasks that are run without a pool. Allocates nothing.
    pub fn alone() -> Crew<T> {
        Crew { shared: None, index: 0, one_thread: PhantomData }
    }

    pub(crate) fn of_worker(shared: Arc<Shared<T>>, index: usize) -> Crew<T> {
        Crew { shared: Some(shared), index, one_thread: PhantomData }
    }

    /// How many other workers could help: those in use besides this one, be they idle now or at work on a task
    /// after which they would take parts first. 0: splitting is no use.
    pub fn helpers_count(&self) -> usize {
        self.shared.as_ref().map_or(0, |shared| shared.lock().workers_used.saturating_sub(1))
    }

    /// Runs all `parts`, here and on workers that have nothing else to do, and returns when the last is back.
    ///
    /// Starts them in their order, so the dearest belong first; they come back in their order, in the same memory.
    /// A part is moved twice each way: keep it small, its columns behind pointers. With one part or one worker
    /// they simply run here.
    ///
    /// # Panics
    /// If a part panicked: with what it panicked with, the first part's if there were more. All the other parts
    /// have been run by then, and all are back in `parts`, the panicked ones as they were left.
    pub fn share(&self, parts: &mut Vec<T::Part>, worker: &mut T::Worker) {
        let panics = match &self.shared {
            Some(shared) if parts.len() > 1 && shared.wake.len() > 1 => self.share_out(shared, parts, worker),
            _ => run_here::<T>(parts, worker),
        };
        if let Some((_, panic)) = panics.into_iter().min_by_key(|(slot, _)| *slot) {
            // Not a new panic: the thread that it happened on has told of it.
            resume_unwind(panic);
        }
    }

    fn share_out(&self, shared: &Shared<T>, parts: &mut Vec<T::Part>, worker: &mut T::Worker) -> Vec<(usize, Panic)> {
        let mut state = shared.lock();
        state.put_out(self.index, parts);
        while let Some(mut taken) = state.take_part_of(self.index) {
            let called = state.call_helpers();
            drop(state);
            shared.wake(called);
            let panic = run_part::<T>(&mut taken.part, worker);
            state = shared.lock();
            state.bring_back(taken, panic);
        }
        if !state.shares[self.index].is_complete() {
            scope!("idle.crew");
            while !state.shares[self.index].is_complete() {
                state = shared.wake[self.index].wait(state);
            }
        }
        state.shares[self.index].take_home(parts)
    }
}

/// Without the pool, with the same promises.
fn run_here<T: ShortTask>(parts: &mut [T::Part], worker: &mut T::Worker) -> Vec<(usize, Panic)> {
    let outcomes = (0..).zip(parts).map(|(slot, part)| Some((slot, run_part::<T>(part, worker)?)));
    // Allocates if something is collected, and nothing usually is.
    outcomes.flatten().collect()
}

pub(crate) fn run_part<T: ShortTask>(part: &mut T::Part, worker: &mut T::Worker) -> Option<Panic> {
    catch_unwind(AssertUnwindSafe(|| T::run_part(part, worker))).err()
}

/// The parts of one worker's task. One per worker, as a task shares one lot at a time.
pub(crate) struct Share<P> {
    /// Empty where a part is away. As long as the longest lot so far.
    slots: Vec<Option<P>>,
    /// The first that nobody has taken.
    next: usize,
    /// Taken and not back.
    away: usize,
    panics: Vec<(usize, Panic)>,
}

/// A part that somebody is at work on.
pub(crate) struct Taken<P> {
    /// The worker whose task it is of.
    pub owner: usize,
    slot: usize,
    pub part: P,
}

impl<P> Share<P> {
    pub fn new() -> Share<P> {
        Share { slots: Vec::new(), next: 0, away: 0, panics: Vec::new() }
    }

    fn take(&mut self, owner: usize) -> Option<Taken<P>> {
        let slot = self.next;
        let part = self.slots.get_mut(slot)?.take().expect("a part that nobody has taken is there");
        self.next += 1;
        self.away += 1;
        Some(Taken { owner, slot, part })
    }

    pub fn is_complete(&self) -> bool {
        self.next == self.slots.len() && self.away == 0
    }

    fn take_home(&mut self, parts: &mut Vec<P>) -> Vec<(usize, Panic)> {
        assert!(self.is_complete());
        self.next = 0;
        parts.extend(self.slots.drain(..).map(|part| part.expect("every part is back")));
        std::mem::take(&mut self.panics)
    }
}

impl<T: ShortTask> State<T> {
    fn put_out(&mut self, owner: usize, parts: &mut Vec<T::Part>) {
        let share = &mut self.shares[owner];
        assert!(share.slots.is_empty(), "a task shares one lot at a time");
        self.parts_waiting += parts.len();
        share.slots.extend(parts.drain(..).map(Some));
    }

    fn take_part_of(&mut self, owner: usize) -> Option<Taken<T::Part>> {
        let taken = self.shares[owner].take(owner);
        self.parts_waiting -= usize::from(taken.is_some());
        taken
    }

    /// For a helper. Looks at its neighbours first, so that helpers spread over tasks that share at once.
    pub fn take_part(&mut self, worker: usize) -> Option<Taken<T::Part>> {
        if self.parts_waiting == 0 {
            return None;
        }
        let count = self.shares.len();
        (worker + 1..worker + count).find_map(|owner| self.take_part_of(owner % count))
    }

    /// True if it was the last that its task waits for.
    pub fn bring_back(&mut self, taken: Taken<T::Part>, panic: Option<Panic>) -> bool {
        let share = &mut self.shares[taken.owner];
        share.slots[taken.slot] = Some(taken.part);
        share.away -= 1;
        share.panics.extend(panic.map(|panic| (taken.slot, panic)));
        share.is_complete()
    }

    /// Sleepers to be woken, by their index: no more than there are parts for.
    pub fn call_helpers(&mut self) -> [Option<usize>; CALLS_MAX] {
        let mut called = [None; CALLS_MAX];
        if self.parts_waiting == 0 {
            return called;
        }
        let used = &mut self.posts[..self.workers_used];
        let on_their_way = used.iter().filter(|post| post.rest == Rest::Called).count();
        let wanted = self.parts_waiting.saturating_sub(on_their_way).min(CALLS_MAX);
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

#[cfg(test)]
mod tests;
