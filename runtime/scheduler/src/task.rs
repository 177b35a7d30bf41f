//! What the pool is given and gives back.

use throng_platform::time::Nanos;

use crate::fork_join::Helpers;

/// Work that is to be done within this frame, such as one tick of one world.
pub trait ShortTask: Send + Sized + 'static {
    /// What each worker thread keeps for itself and lends to every task: send batch, metric cells, scratch.
    type Worker: Send + 'static;

    /// What a running task may hand to idle workers, see [`Helpers::fork_join`]; `()` for tasks that do not.
    type Batch: Send + 'static;

    /// Does the work, on a worker's thread. May panic: the task comes back marked, and the worker goes on
    /// with the same `worker`, which therefore should not be left half changed.
    fn run(&mut self, worker: &mut Self::Worker, helpers: &Helpers<Self>);

    /// Does one batch of a task's work, on the task's worker or on one that helps. May panic, see
    /// [`Helpers::fork_join`].
    fn run_batch(batch: &mut Self::Batch, worker: &mut Self::Worker);

    /// The list has run empty and the worker is about to sleep: the moment to send off what tasks have left with it.
    /// Runs on the worker's thread after its last task, which is finished when this has returned; after batches of
    /// another worker's task at the same time as that goes on, and before [`wait`](crate::ShortTaskPool::wait) says
    /// that all is done.
    fn rest(worker: &mut Self::Worker) {
        let _ = worker;
    }
}

/// A task with what decides its place in the list.
pub struct Scheduled<T> {
    pub task: Box<T>,
    /// When it should be finished. Earlier ones start first.
    pub deadline: Nanos,
    /// What it will probably cost. Among equal deadlines the costliest start first.
    pub cost: Nanos,
}

/// A task that came back.
pub struct Finished<T> {
    pub task: Box<T>,
    /// Which worker ran it.
    pub worker: usize,
    /// Never before the start of a task that was taken from the list earlier.
    pub started: Nanos,
    /// When its `run` returned.
    pub ran: Nanos,
    /// When the worker was done with it: after `run`, and after the flush of `rest` if the list was empty.
    pub finished: Nanos,
    /// Its `run` panicked; its state is whatever it was at that moment.
    pub panicked: bool,
}

impl<T> Finished<T> {
    /// How long it ran: what [`crate::CostEstimate::measured`] wants to know.
    pub fn cost(&self) -> Nanos {
        self.ran.saturating_sub(self.started)
    }
}
