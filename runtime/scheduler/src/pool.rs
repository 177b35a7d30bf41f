//! The pool, as the frame's thread sees it: submit, wait, look after the workers.
//!
//! Owned by one thread. A frame is `submit`, `wait` until its end, and whatever is not back by then is left
//! alone: it rejoins in a later `wait`. So a task that hangs costs its worker and nothing else, here and
//! when the pool is shut down.

use std::sync::Arc;
use std::time::Duration;

use throng_platform::clock::Clock;
use throng_platform::time::Nanos;

use crate::order::{self, Entry};
use crate::shim::start_worker;
use crate::task::{Finished, Scheduled, ShortTask};
use crate::worker::{Rest, Shared, work};

/// Worker threads and the list that they take tasks from.
pub struct ShortTaskPool<T: ShortTask> {
    shared: Arc<Shared<T>>,
    /// Tasks submitted so far.
    sequence: u64,
    /// Workers to be woken by a submit; kept for its memory.
    to_wake: Vec<usize>,
}

/// How a wait ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[must_use = "after a passed deadline some tasks are still away"]
pub enum Completion {
    /// Every task that was submitted is back.
    AllDone,
    /// Some are still in the list or running; they come back in a later wait.
    DeadlinePassed,
}

/// The end of a frame, when some workers had nothing left to do while others were still at it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct IdleTail {
    /// From the first worker that found the list empty to the last finish.
    pub tail: Nanos,
    /// From the submit to the last finish.
    pub frame: Nanos,
}

impl IdleTail {
    /// The tail's share of the frame [0..=1]: near 0, the work is even; high, few long tasks come last.
    pub fn share(self) -> f64 {
        if self.frame == Nanos::ZERO { 0.0 } else { self.tail.0 as f64 / self.frame.0 as f64 }
    }
}

impl<T: ShortTask> ShortTaskPool<T> {
    /// Starts one thread per context, named `worker-0` and so on. Deadlines are in `clock`'s time.
    ///
    /// # Panics
    /// Without a context, or when the host has no room for another thread (`ulimit -u`, `pids.max`).
    pub fn new(workers: Vec<T::Worker>, clock: Arc<dyn Clock>) -> ShortTaskPool<T> {
        assert!(!workers.is_empty());
        let count = workers.len();
        let shared = Arc::new(Shared::new(workers, clock));
        for index in 0..count {
            let shared = Arc::clone(&shared);
            start_worker(index, move || work(&shared, index))
                .expect("no room for another thread: raise `ulimit -u` or the container's pids limit");
        }
        ShortTaskPool { shared, sequence: 0, to_wake: Vec::with_capacity(count) }
    }

    /// How many threads there are.
    pub fn worker_count(&self) -> usize {
        self.shared.wake.len()
    }

    /// Lets only the first `count` workers [1..=worker_count] take tasks from now on; the others sleep
    /// after the task or batch that they have. All are used at first.
    pub fn use_workers(&mut self, count: usize) {
        assert!((1..=self.worker_count()).contains(&count));
        let mut state = self.shared.lock();
        let newly_used = state.workers_used..count;
        state.workers_used = count;
        drop(state);
        for worker in newly_used {
            self.shared.wake[worker].notify_one();
        }
    }

    /// Adds all of `list`, which is left empty with its memory, to what has not started yet.
    ///
    /// The order of starts is: earliest deadline, then costliest, then first submitted. Cost: about 40 ns a
    /// task for sorting, and some microseconds for each worker that has to be woken.
    pub fn submit(&mut self, list: &mut Vec<Scheduled<T>>) {
        if list.is_empty() {
            return;
        }
        let mut state = self.shared.lock();
        state.outstanding += list.len();
        state.list.extend(list.drain(..).map(|Scheduled { task, deadline, cost }| {
            self.sequence += 1;
            Entry { task, deadline, cost, sequence: self.sequence }
        }));
        order::sort(&mut state.list);

        state.submitted = self.shared.clock.now();
        let used = &state.posts[..state.workers_used];
        let asleep = (0..).zip(used).filter(|(_, post)| post.rest == Rest::Asleep).map(|(worker, _)| worker);
        self.to_wake.clear();
        self.to_wake.extend(asleep);
        // Fewer tasks than sleepers: the rest is idle from the start.
        state.first_idle = (self.to_wake.len() > state.list.len()).then_some(state.submitted);
        self.to_wake.truncate(state.list.len());
        drop(state);
        for worker in &self.to_wake {
            self.shared.wake[*worker].notify_one();
        }
    }

    /// Waits until every task is back or `until` has passed, and appends those that came back, in the order
    /// in which they finished. Those that were back already are handed over even when `until` lies behind.
    ///
    /// With a clock that does not move by waiting (`Clock::real_timeout` is `None`, as for a `ManualClock`,
    /// or `until` is [`Nanos::MAX`]) this waits for completion, however long that takes: in a simulation,
    /// where time stands still while tasks run, no deadline passes.
    pub fn wait(&mut self, until: Nanos, finished: &mut Vec<Finished<T>>) -> Completion {
        let mut state = self.shared.lock();
        let completion = loop {
            if state.is_done() {
                break Completion::AllDone;
            }
            state = match self.shared.clock.real_timeout(until) {
                None => self.shared.done.wait(state),
                Some(Duration::ZERO) => break Completion::DeadlinePassed,
                Some(left) => self.shared.done.wait_timeout(state, left),
            };
        };
        finished.append(&mut state.finished);
        completion
    }

    /// How evenly the last submit's tasks ended. Tasks still running are not in it yet; that an idle worker helps with
    /// batches is not taken off.
    pub fn idle_tail(&self) -> IdleTail {
        let state = self.shared.lock();
        let tail = state.first_idle.map_or(Nanos::ZERO, |first| state.last_finish.saturating_sub(first));
        IdleTail { tail, frame: state.last_finish.saturating_sub(state.submitted) }
    }

    /// Workers that have neither a task nor a batch now.
    pub fn idle_workers(&self) -> usize {
        self.shared.lock().posts.iter().filter(|post| post.context.is_some()).count()
    }

    /// Visits the contexts of the workers that are idle; after [`Completion::AllDone`], that is all of them.
    ///
    /// Takes place on the calling thread, under the pool's lock: a worker that finishes meanwhile waits.
    pub fn with_workers(&mut self, mut visit: impl FnMut(usize, &mut T::Worker)) {
        let mut state = self.shared.lock();
        for (index, post) in state.posts.iter_mut().enumerate() {
            if let Some(context) = &mut post.context {
                visit(index, context);
            }
        }
    }

    fn stop(&self) {
        let mut state = self.shared.lock();
        state.stopping = true;
        state.outstanding -= state.list.len();
        let dropped = (std::mem::take(&mut state.list), std::mem::take(&mut state.finished));
        drop(state);
        // Foreign code, so not under the lock.
        drop(dropped);
        for wake in &self.shared.wake {
            wake.notify_one();
        }
    }
}

/// Stops the threads without waiting: each ends with the task that it has. Tasks that have not started are dropped, as
/// are those that were not collected by a wait.
impl<T: ShortTask> Drop for ShortTaskPool<T> {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
impl<T: ShortTask> ShortTaskPool<T> {
    /// Tasks that are in the list or running.
    pub(crate) fn outstanding(&self) -> usize {
        self.shared.lock().outstanding
    }

    /// Workers that are at work now, on a task or on a batch of another worker's.
    pub(crate) fn running(&self) -> Vec<usize> {
        let state = self.shared.lock();
        (0..).zip(&state.posts).filter(|(_, post)| post.context.is_none()).map(|(worker, _)| worker).collect()
    }

    /// Drops the pool, waits up to `timeout` of real time for its threads, and returns the contexts of those that are
    /// not at work.
    pub(crate) fn shutdown(self, timeout: Duration) -> Vec<T::Worker> {
        let shared = Arc::clone(&self.shared);
        drop(self);
        let deadline = std::time::Instant::now() + timeout;
        // Each thread holds on to it until it ends.
        while Arc::strong_count(&shared) > 1 && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        let mut state = shared.lock();
        let contexts = state.posts.iter_mut().filter_map(|post| post.context.take());
        contexts.map(|context| *context).collect()
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
