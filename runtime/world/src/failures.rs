//! Failures: systems that could not run, or said that they failed, and what failed that they gave rise to.
//!
//! A system whose resource is missing, one that returns an error and a run condition that cannot be asked are bugs that
//! would go unseen. Each is counted in the tick's report (`world.systems_failed`). For a line in the log the report has
//! them too, with a text: once at first, then at most once in ten seconds for each system of a kind, with how often it
//! happened since. In a debug build a failure panics instead, so that the world is parked and its log line names the
//! system.
//!
//! A system that is skipped by design (`Single`, `Populated`, `If`) has not failed.
//!
//! Commands, observers and systems of state transitions are run by Bevy, out of a system of ours or while its commands
//! are applied. Bevy hands their errors to a function without a world ([`handle`]), so the thread keeps them until
//! the system's step is over ([`Catching`]); then they are told with the system's name, and it has the throttle. What is
//! less than an error to its author ([`Severity`]) is left to Bevy, and so is what fails while no systems run: in a kind's
//! `build`, say, where it panics.
//!
//! Cost: while nothing fails a look at a thread's variable after each step, and some 2 KB of each world for the resource
//! that names [`handle`] to Bevy, which has no other way. A failure without a line is two atomic operations beside what
//! Bevy does to make the error.

use std::{
    cell::Cell,
    panic::resume_unwind,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use bevy_ecs::error::{BevyError, ErrorContext, Severity, match_severity};
use throng_platform::time::Nanos;

/// Time between two lines about one system of a kind.
const LINE_PERIOD: Nanos = Nanos(10_000_000_000);

/// A system that failed, for the host's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedSystem {
    /// As Bevy names it: its path. For a condition its own, and that of the system it stands for.
    pub system: String,
    /// What is missing, or what the system said.
    pub error: String,
    /// How often it failed since the last line about it, this time included, in all worlds of the kind.
    pub times: u64,
}

/// Decides which failures of one system get a line. Written by whichever worlds of the kind fail, at the same time;
/// nothing else is read by its values, so their order is enough.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// Before this time there is no further line. (ns)
    next_line: AtomicU64,
    since_line: AtomicU64,
}

impl Throttle {
    /// Counts failures. If they are to have a line: how many there were since the last one.
    pub fn count(&self, now: Nanos, times: u64) -> Option<u64> {
        self.since_line.fetch_add(times, Relaxed);
        let due = self.next_line.load(Relaxed);
        if now.0 < due {
            return None;
        }
        // Of two worlds that fail at once, one has the line.
        self.next_line.compare_exchange(due, now.0.saturating_add(LINE_PERIOD.0), Relaxed, Relaxed).ok()?;
        Some(self.since_line.swap(0, Relaxed))
    }
}

/// What Bevy has handed to [`handle`] in one step of a world.
pub(crate) struct Caught {
    /// How many errors.
    pub times: u64,
    /// What the first of them came of: a command, an observer, a system, a condition.
    pub first: ErrorContext,
    pub error: BevyError,
}

thread_local! {
    /// How many errors wait to be taken; `None` while no world's systems run on this thread.
    static WAITING: Cell<Option<u64>> = const { Cell::new(None) };
    /// The first of those that wait. One is enough, since a line names one.
    static FIRST: Cell<Option<(ErrorContext, BevyError)>> = const { Cell::new(None) };
}

/// While it lives, errors that Bevy handles on this thread wait to be taken.
pub(crate) struct Catching(());

impl Catching {
    pub fn begin() -> Self {
        WAITING.set(Some(0));
        Self(())
    }
}

impl Drop for Catching {
    fn drop(&mut self) {
        // What waits while a panic unwinds is of a world that will not tick again.
        if WAITING.replace(None) != Some(0) {
            drop(FIRST.take());
        }
    }
}

/// What was caught on this thread since it was last asked: nothing, as a rule.
pub(crate) fn take_caught() -> Option<Caught> {
    let times = WAITING.get().filter(|&times| times > 0)?;
    WAITING.set(Some(0));
    let (first, error) = FIRST.take()?;
    Some(Caught { times, first, error })
}

/// What each world's Bevy calls with errors that nobody else handles.
pub(crate) fn handle(mut error: BevyError, context: ErrorContext) {
    let Some(waiting) = WAITING.get().filter(|_| error.severity() >= Severity::Error) else {
        return match_severity(error, context);
    };
    // A panic on its way out of a command or of a transition's system: it goes on, and the world is parked.
    if let Some(payload) = error.take_payload() {
        resume_unwind(payload);
    }
    WAITING.set(Some(waiting + 1));
    if waiting == 0 {
        FIRST.set(Some((context, error)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_line_at_first_and_then_one_in_ten_seconds_with_all_that_happened() {
        let throttle = Throttle::default();
        let second = |seconds: u64| throttle.count(Nanos(seconds * 1_000_000_000), 1);
        assert_eq!(second(5), Some(1));
        assert_eq!((second(5), second(9), second(14)), (None, None, None));
        assert_eq!(second(15), Some(4));
        assert_eq!(second(16), None);
    }

    fn taken() -> Option<(u64, String)> {
        take_caught().map(|caught| (caught.times, caught.error.to_string().trim_end().into()))
    }

    fn fail(severity: Severity, text: &str) {
        handle(BevyError::new(severity, text), ErrorContext::Command { name: String::from("test").into() });
    }

    #[test]
    fn errors_wait_until_they_are_taken_and_go_with_the_run() {
        let catching = Catching::begin();
        assert_eq!(taken(), None);
        fail(Severity::Panic, "one");
        fail(Severity::Error, "two");
        fail(Severity::Warning, "no error");
        assert_eq!(taken(), Some((2, "one".into())));
        assert_eq!(taken(), None);
        fail(Severity::Error, "three");
        drop(catching);
        let _catching = Catching::begin();
        assert_eq!(taken(), None, "another world's");
    }

    #[test]
    #[should_panic(expected = "nobody runs")]
    fn without_a_run_an_error_is_as_bevy_handles_it() {
        drop(Catching::begin());
        fail(Severity::Panic, "nobody runs");
    }
}
