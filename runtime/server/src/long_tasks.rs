//! Long tasks of a server: what may take many frames, and how worlds make room for it.
//!
//! Worlds are made and dropped, and games have work done beside their ticks
//! ([`Outbox::start_long_task`](crate::tick_resources::Outbox::start_long_task)), on threads of low priority
//! ([`LongTaskPool`]). These get what workers leave over. Where that is less than what comes in, it piles up, and with it
//! the memory of all that waits to be dropped. So what waits is held against marks in each frame:
//!
//! | all that waits will take | what happens |
//! |---|---|
//! | more than `high_mark_ms` | a worker less is used for worlds, in each frame, down to one |
//! | less than `low_mark_ms` | a worker more, in each frame |
//! | more than `admission_mark_ms`, what is dropped alone | no world is made and nobody is let in from the line, until half of that is done |
//!
//! The number of workers that are left out is the starvation level. It is never above the number of threads for long
//! tasks: a core that none of them can take would be lost. While a world is overloaded (`overload`), long tasks yield: the
//! first two marks count four times as much. That bounds what is put off: a server that only ever put it off would be out
//! of memory instead of late. While a world is stuck in its tick all workers are used: the one that is left may have it.
//!
//! A value that takes long to drop is handed over by whoever has it in a tick: [`drop_later()`].
//!
//! Owned by the frame's thread, which never waits for a long task. Cost: some loads in each frame, a lock of the pool's when
//! the level changes, some hundred nanoseconds and an allocation or two for each task.

pub(crate) mod counts;
mod drop_later;
mod of_worlds;
mod pace;
mod report;
mod results;
#[cfg(test)]
mod tests;

use throng_platform::time::Nanos;
use throng_scheduler::{LongKind, LongTask, LongTaskPool, LongTasks, LongTotals, StarvationLevel};

pub use drop_later::{drop_later, drop_later_sized};
#[cfg(test)]
pub(crate) use report::FIGURES;
pub use report::{LongTaskReport, LongTaskRow};
pub(crate) use {drop_later::Later, report::gauges, results::OfWorlds};

use crate::settings::LongTaskSettings;
use counts::LongTaskCounts;

/// The share of what waits that counts while worlds are overloaded: one in so many.
const YIELD_DIVISOR: u64 = 4;

/// Kinds of the server's own.
pub(crate) const MAKE_WORLD: &str = "world.make";
pub(crate) const REMAKE_WORLD: &str = "world.remake";
pub(crate) const DROP_WORLD: &str = "world.drop";

/// What the frame's thread keeps about long tasks.
pub(crate) struct LongTaskControl {
    pool: LongTaskPool,
    settings: LongTaskSettings,
    starvation: StarvationLevel,
    /// Workers in use as the pool was told last.
    workers_used: usize,
    admission_waits: bool,
    /// Tasks of worlds, and what they have brought.
    pub of_worlds: OfWorlds,
    totals_before: LongTotals,
}

/// How it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    pub workers_used: usize,
    pub admission_waits: bool,
}

impl LongTaskControl {
    pub fn new(pool: LongTaskPool, settings: LongTaskSettings, workers: usize) -> Self {
        let threads = pool.tasks().threads().max(1);
        Self {
            starvation: StarvationLevel::new(settings.marks(), workers, threads),
            workers_used: workers,
            admission_waits: false,
            of_worlds: OfWorlds::default(),
            totals_before: LongTotals::default(),
            pool,
            settings,
        }
    }

    pub fn tasks(&self) -> &LongTasks {
        self.pool.tasks()
    }

    pub fn level(&self) -> usize {
        self.starvation.level()
    }

    /// Dropped worlds pile up: nobody is to come in, and no world to be made.
    pub fn admission_waits(&self) -> bool {
        self.admission_waits
    }

    /// Once a frame. `held`: what worlds will cost that are to be made and are no tasks yet. `yields`: worlds have too
    /// little time for themselves.
    pub fn step(&mut self, held: Nanos, yields: bool) -> Pace {
        if self.settings.control {
            let outstanding = self.tasks().outstanding() + held;
            let counted = if yields { Nanos(outstanding.0 / YIELD_DIVISOR) } else { outstanding };
            self.starvation.step(counted);
            let (freeing, mark) = (self.tasks().freeing(), self.settings.admission_mark());
            self.admission_waits = freeing > if self.admission_waits { Nanos(mark.0 / 2) } else { mark };
        }
        Pace { workers_used: self.starvation.workers_used(), admission_waits: self.admission_waits }
    }

    /// Adds what was counted since this was last asked.
    pub fn count_into(&mut self, counts: &mut LongTaskCounts) {
        let now = self.tasks().totals();
        let before = std::mem::replace(&mut self.totals_before, now);
        counts.started += now.started - before.started;
        counts.finished += now.finished - before.finished;
        counts.missed += now.missed - before.missed;
        counts.panicked += now.panicked - before.panicked;
        counts.refused += now.refused - before.refused;
        counts.wait_ms = counts.wait_ms.max(self.tasks().take_wait_max().as_micros() / 1_000);
    }
}

/// What drops a value of which nothing is known but its size.
pub(crate) fn dropping(kind: LongKind, deadline: Nanos, bytes: u64, value: impl Send + 'static) -> LongTask {
    LongTask { kind, deadline, cost: None, frees: Some(bytes), about: None, run: Box::new(move || drop(value)) }
}
