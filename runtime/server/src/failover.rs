//! Fail-over: the end of a server all of whose workers are stuck, or all of whose threads for long tasks are, so that another one
//! takes its place.
//!
//! A world that hangs keeps its worker, and the others play on ([`crate::watchdog`]). When each worker has one, no world
//! ticks any more and nothing in this process can change that: a thread that runs somebody's loop cannot be ended. So
//! after `[server] all_workers_stuck_s_max` the process dies there, on the thread that has been stuck for longest: its crash
//! report begins with that thread's stack and world, and has those of the others. It ends by SIGABRT, after which whoever
//! supervises it starts another.
//!
//! A long task that hangs keeps its thread in the same way, and a world that is being built its kind as well. When each thread for long
//! tasks has one, no world is made or dropped any more, while those that there are play on. Then the same happens. But long
//! tasks may take seconds in good order: which of them count says [`watchdog`](crate::watchdog).
//!
//! ```text
//! all workers in a tick for 100 ms and more
//! or all threads for long tasks in overdue ones  stuck for all_workers_stuck_s_max
//!   |-- look, look, look, ... (the watchdog) -----------|-- last words, SIGABRT on the stuck thread
//! ```
//!
//! Only time in which the watchdog looked counts: a process that was stopped, or whose host took its cores, has not hung.
//!
//! Runs on the watchdog's thread. Reads no clock. Cost: a comparison for each look.

use std::{process::abort, thread::sleep, time::Duration};

use throng_platform::{crash_signal::abort_on, time::Nanos};
use throng_profiler::{log_category, log_error};

use crate::stacks::StackSource;

log_category!(WORKERS = "server.workers");

/// Between two looks no more than this counts: a few times as long as they are apart on a host that is busy.
const LOOKED_MAX: Nanos = Nanos::from_millis(100);

/// In which a thread that is told to die does so, its report included. One that does not sleeps in the kernel.
const PATIENCE: Duration = Duration::from_secs(5);

/// A thread that is stuck.
#[derive(Debug)]
pub(crate) struct StuckThread {
    pub thread_id: u32,
    pub since: Nanos,
    /// What it is at: `world 7 (hideout)`.
    pub name: String,
}

/// How long all threads of a kind have been stuck, by looks.
#[derive(Debug)]
pub(crate) struct Failover {
    stuck_max: Option<Nanos>,
    stuck_for: Nanos,
    looked_at: Nanos,
}

impl Failover {
    /// `None`: never.
    pub fn after(stuck_max: Option<Nanos>) -> Self {
        Self { stuck_max, stuck_for: Nanos::ZERO, looked_at: Nanos::ZERO }
    }

    /// One look: whether all of them are stuck now. True: for too long.
    pub fn is_due(&mut self, all_stuck: bool, now: Nanos) -> bool {
        let looked = now.saturating_sub(self.looked_at).min(LOOKED_MAX);
        self.looked_at = now;
        self.stuck_for = if all_stuck { self.stuck_for + looked } else { Nanos::ZERO };
        self.stuck_max.is_some_and(|stuck_max| self.stuck_for >= stuck_max)
    }

    /// Ends this process on the thread that has been stuck for longest, with a report that says why, and what each was at.
    pub fn end_process(
        &self,
        why: &'static str,
        mut stuck: Vec<StuckThread>,
        source: Option<&mut (dyn StackSource + 'static)>,
        now: Nanos,
    ) -> ! {
        stuck.sort_unstable_by_key(|thread| thread.since);
        let names = names_of(&stuck, now);
        log_error!(
            WORKERS,
            stuck_s = self.stuck_for.as_secs_f64(),
            why,
            names,
            "all threads of a kind have been stuck for too long: this server ends, for another one to take its place"
        );
        if let Some(source) = source {
            source.last_words(why, &names);
        }
        if stuck.first().is_some_and(|thread| abort_on(thread.thread_id).is_ok()) {
            sleep(PATIENCE);
        }
        abort()
    }
}

/// `world 7 (hideout) for 31 s, world 9.2 (hub) for 30 s`.
fn names_of(stuck: &[StuckThread], now: Nanos) -> String {
    let name =
        |thread: &StuckThread| format!("{} for {:.0} s", thread.name, now.saturating_sub(thread.since).as_secs_f64());
    stuck.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every 10 ms; after so long (s) it is due, or never.
    fn due_after_s(failover: &mut Failover, from: Nanos, looks: u64, all_stuck: bool) -> Option<u64> {
        (1..=looks)
            .map(|look| look * 10)
            .find(|ms| failover.is_due(all_stuck, from + Nanos::from_millis(*ms)))
            .map(|ms| ms / 1_000)
    }

    #[test]
    fn workers_that_are_stuck_for_too_long_are_the_end() {
        let mut failover = Failover::after(Some(Nanos::from_secs(30)));
        assert_eq!(due_after_s(&mut failover, Nanos::ZERO, 10_000, true), Some(30));
        assert_eq!(due_after_s(&mut Failover::after(None), Nanos::ZERO, 100_000, true), None);
    }

    #[test]
    fn one_worker_that_comes_back_begins_it_anew() {
        let mut failover = Failover::after(Some(Nanos::from_secs(30)));
        assert_eq!(due_after_s(&mut failover, Nanos::ZERO, 2_900, true), None);
        assert!(!failover.is_due(false, Nanos::from_secs(30)));
        assert_eq!(due_after_s(&mut failover, Nanos::from_secs(30), 10_000, true), Some(30));
    }

    /// A process that was stopped for an hour, in the middle of ticks, has not hung for an hour.
    #[test]
    fn time_in_which_nobody_looked_does_not_count() {
        let mut failover = Failover::after(Some(Nanos::from_secs(30)));
        assert_eq!(due_after_s(&mut failover, Nanos::ZERO, 1_000, true), None);
        assert!(!failover.is_due(true, Nanos::from_secs(3_600)));
        assert_eq!(due_after_s(&mut failover, Nanos::from_secs(3_600), 1_800, true), None, "10 s, and 18");
        assert_eq!(due_after_s(&mut failover, Nanos::from_secs(3_618), 300, true), Some(1));
    }
}
