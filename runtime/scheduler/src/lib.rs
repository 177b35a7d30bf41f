//! Short tasks, which end within their frame, and long ones, which give way to them.
//!
//! A frame has some hundreds of worlds to tick and a few cores to tick them on. Cores idle at the end of a frame when
//! the last world taken is a long one, so the list is sorted by estimated cost and the costliest start first (longest
//! processing time, LPT): with many tasks the frame then ends within some percent of the best possible, and tasks need
//! neither be stolen nor cut beforehand. One that is as long as all others together would still leave the other cores
//! idle; it hands batches of its work to them while it runs. What must be done earlier goes first regardless.
//!
//! ```text
//!             submit                 claim, one at a time            finish
//! frame  --> [deadline 1: 9 7 2 | deadline 2: 8 5 1] --> worker-0 .. worker-N --> [finished] --> wait
//! ```
//!
//! - [`ShortTaskPool`] runs the tasks and closes the frame on time: a task that hangs keeps its worker and
//!   itself, and nobody else; a batch that hangs keeps two workers, its own and that of the task which waits for it.
//! - [`Helpers`] lets a running task hand batches of its work to workers that idle.
//! - [`CostEstimate`] remembers what a task usually costs.
//! - [`LongTaskPool`] does what may take many frames, by deadline, on threads of low priority.
//! - [`StarvationLevel`] says how many workers are to leave their cores to long tasks.
//! - [`FrameGrid`] and [`TickPhase`] say which task is due in which frame.
//! - [`Every`] cuts a job that is wanted for everybody, and not at once, into so many items a second.
//!
//! Measured on 2 cores with 2,000 tasks that do nothing: submitting, claiming, finishing and collecting cost 0.15 us
//! per task, the waking of the workers included. Nothing allocates once the lists have grown to their size.
//!
//! ```
//! use std::sync::Arc;
//! use throng_platform::clock::MonotonicClock;
//! use throng_platform::time::Nanos;
//! use throng_scheduler::{Completion, Helpers, Scheduled, ShortTask, ShortTaskPool};
//!
//! struct World(u64);
//! impl ShortTask for World {
//!     type Worker = u64; // what each worker thread keeps for itself: here, how much it has done
//!     type Batch = u64; // what it hands to idle workers
//!     fn run(&mut self, done: &mut u64, helpers: &Helpers<World>) {
//!         helpers.fork_join(&mut vec![self.0 / 2, self.0 - self.0 / 2], done);
//!     }
//!     fn run_batch(batch: &mut u64, done: &mut u64) {
//!         *done += *batch;
//!     }
//! }
//!
//! let mut pool = ShortTaskPool::new(vec![0, 0], Arc::new(MonotonicClock::new()));
//! let mut due: Vec<_> = (1..=10)
//!     .map(|cost| Scheduled { task: Box::new(World(cost)), deadline: Nanos::ZERO, cost: Nanos(cost) })
//!     .collect();
//! let mut finished = Vec::new();
//! pool.submit(&mut due);
//! assert_eq!(pool.wait(Nanos::MAX, &mut finished), Completion::AllDone);
//! assert_eq!(finished.len(), 10);
//!
//! let mut total = 0;
//! pool.with_workers(|_, done| total += *done);
//! assert_eq!(total, 55);
//! ```

mod contained;
mod cost;
mod every;
mod fork_join;
mod long;
#[cfg(all(test, feature = "shuttle"))]
mod model_tests;
mod order;
mod phase;
mod pool;
mod rates;
mod shim;
mod starvation;
mod task;
mod worker;

pub use cost::CostEstimate;
pub use every::{Every, Rate, Rated};
pub use fork_join::Helpers;
pub use long::{
    KINDS_MAX as LONG_KINDS_MAX, LongKind, LongKindRow, LongTask, LongTaskPool, LongTasks, LongTotals, Results,
    RunningLong, TooManyWait,
};
pub use phase::TickPhase;
pub use pool::{Completion, IdleTail, ShortTaskPool};
pub use rates::{FrameGrid, Hertz};
pub use starvation::{StarvationLevel, StarvationMarks};
pub use task::{Finished, Scheduled, ShortTask};
