//! Clocks: the only place where time enters the program.
//!
//! Everything below `server` is handed `now`; the server, the scheduler and the bots hold a [`Clock`]
//! and ask it. The simulator and the tests hold a [`ManualClock`] and move it themselves, so that an
//! hour of game passes in a second and passes the same way every time.
//!
//! Any thread. Never allocates. Cost of `now`: about 28 ns (one vDSO call), or one load when manual.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::poll;
use crate::time::Nanos;

/// A source of time that never goes backwards.
pub trait Clock: Send + Sync {
    /// Time since the clock's start.
    fn now(&self) -> Nanos;

    /// Seconds since 1970, for connect tokens and file names; may jump when the host's clock is set.
    fn unix_seconds(&self) -> u64;

    /// Milliseconds since 1970, for what is told of the past; may jump as [`Clock::unix_seconds`].
    fn unix_millis(&self) -> u64 {
        self.unix_seconds() * 1_000
    }

    /// Sleeps until `at`; returns at once when it has passed. May return early when the process is asked
    /// to stop, so that a shutdown does not wait for a sleep: look at [`Clock::now`] again.
    fn sleep_until(&self, at: Nanos);

    /// How long a thread may really wait for `until`, or `None` if waiting does not move this clock
    /// (then only the event itself can end the wait).
    fn real_timeout(&self, until: Nanos) -> Option<Duration> {
        let _ = until;
        None
    }
}

/// The host's steady clock, counted from its creation.
#[derive(Clone, Debug)]
pub struct MonotonicClock {
    start: Instant,
}

impl MonotonicClock {
    #[allow(clippy::new_without_default, reason = "creating one starts it; a default would hide that")]
    pub fn new() -> MonotonicClock {
        MonotonicClock { start: Instant::now() }
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Nanos {
        Nanos(self.start.elapsed().as_nanos() as u64)
    }

    fn unix_seconds(&self) -> u64 {
        // A host whose clock stands before 1970 gets 0: its tokens are refused as expired, and nothing panics.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }

    fn unix_millis(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
    }

    fn sleep_until(&self, at: Nanos) {
        let left = at.saturating_sub(self.now());
        if left > Nanos::ZERO {
            // An error here can only be a bad argument of ours, and then not sleeping is the safe answer.
            let _ = poll::wait_readable(&[], Some(left));
        }
    }

    fn real_timeout(&self, until: Nanos) -> Option<Duration> {
        (until != Nanos::MAX).then(|| until.saturating_sub(self.now()).into())
    }
}

/// A clock that stands still until it is moved; clones show the same time.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    shared: Arc<ManualTime>,
}

/// Relaxed ordering is enough for both: a moment carries no other data with it.
#[derive(Debug, Default)]
struct ManualTime {
    now_ns: AtomicU64,
    unix_at_start_s: AtomicU64,
}

impl ManualClock {
    /// Stands at zero, which is second 0 of 1970 unless [`ManualClock::set_unix_at_start`] says otherwise.
    pub fn new() -> ManualClock {
        ManualClock::default()
    }

    /// Moves the clock forward by `by`.
    pub fn advance(&self, by: Nanos) {
        self.shared.now_ns.fetch_add(by.0, Ordering::Relaxed);
    }

    /// Moves the clock to `at`, or leaves it when it is already later: it never goes backwards.
    pub fn set(&self, at: Nanos) {
        self.shared.now_ns.fetch_max(at.0, Ordering::Relaxed);
    }

    /// Says which second since 1970 the clock's zero is.
    pub fn set_unix_at_start(&self, unix_s: u64) {
        self.shared.unix_at_start_s.store(unix_s, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Nanos {
        Nanos(self.shared.now_ns.load(Ordering::Relaxed))
    }

    fn unix_seconds(&self) -> u64 {
        self.shared.unix_at_start_s.load(Ordering::Relaxed) + self.now().0 / 1_000_000_000
    }

    fn unix_millis(&self) -> u64 {
        self.shared.unix_at_start_s.load(Ordering::Relaxed) * 1_000 + self.now().0 / 1_000_000
    }

    /// Moves nothing and returns: whoever holds the clock decides when time passes.
    fn sleep_until(&self, _at: Nanos) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steady_clock_moves_forward_and_sleeps_long_enough() {
        let clock = MonotonicClock::new();
        let before = clock.now();
        let at = before + Nanos::from_millis(2);
        while clock.now() < at {
            clock.sleep_until(at);
        }
        assert!(clock.now() >= at);
        assert!(clock.unix_seconds() > 1_700_000_000);
    }

    #[test]
    fn a_passed_moment_is_not_slept_for() {
        let clock = MonotonicClock::new();
        clock.sleep_until(Nanos::ZERO);
        assert_eq!(clock.real_timeout(Nanos::ZERO), Some(Duration::ZERO));
        assert_eq!(clock.real_timeout(Nanos::MAX), None);
    }

    #[test]
    fn a_manual_clock_moves_only_by_hand_and_never_back() {
        let clock = ManualClock::new();
        let shown = clock.clone();
        clock.sleep_until(Nanos::from_secs(1));
        assert_eq!(shown.now(), Nanos::ZERO);
        clock.advance(Nanos::from_secs(3));
        clock.set(Nanos::from_secs(2));
        assert_eq!(shown.now(), Nanos::from_secs(3));
        clock.set_unix_at_start(1_000);
        assert_eq!(shown.unix_seconds(), 1_003);
        assert_eq!(shown.real_timeout(Nanos::from_secs(9)), None);
    }
}
