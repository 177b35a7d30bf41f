//! Failures: systems that could not run, or said that they failed.
//!
//! A system whose resource is missing, one that returns an error and a run condition that cannot be asked are bugs that
//! would go unseen. Each is counted in the tick's report (`world.systems_failed`). For a line in the log the report has
//! them too, with a text: once at first, then at most once in ten seconds for each system of a kind, with how often it
//! happened since. In a debug build a failure panics instead, so that the world is parked and its log line names the
//! system.
//!
//! A system that is skipped by design (`Single`, `Populated`, `If`) has not failed.
//!
//! Cost: nothing while nothing fails; a failure without a line is two atomic operations beside what Bevy does to make
//! the error.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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
    /// Counts a failure. If it is to have a line: how many there were since the last one.
    pub fn count(&self, now: Nanos) -> Option<u64> {
        self.since_line.fetch_add(1, Relaxed);
        let due = self.next_line.load(Relaxed);
        if now.0 < due {
            return None;
        }
        // Of two worlds that fail at once, one has the line.
        self.next_line.compare_exchange(due, now.0.saturating_add(LINE_PERIOD.0), Relaxed, Relaxed).ok()?;
        Some(self.since_line.swap(0, Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_line_at_first_and_then_one_in_ten_seconds_with_all_that_happened() {
        let throttle = Throttle::default();
        let second = |seconds: u64| throttle.count(Nanos(seconds * 1_000_000_000));
        assert_eq!(second(5), Some(1));
        assert_eq!((second(5), second(9), second(14)), (None, None, None));
        assert_eq!(second(15), Some(4));
        assert_eq!(second(16), None);
    }
}
