//! Call sites: how many lines one place in the code may write.
//!
//! A bucket of [`BURST_LINES`] tokens that fills at [`LINES_PER_S`], kept as one number: the time at which it will be
//! full again. At 10 lines/s and 200 bytes a line, 500 places that all flood at once write less than 1 MiB/s together.
//!
//! Any thread, no lock: whoever exchanges the number first has the token. Cost: one reading of the monotonic clock,
//! which needs no calibration; only calls whose category is on come here.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use throng_platform::ticks;

/// What one place may write in the long run (lines/s).
pub const LINES_PER_S: u64 = 10;

/// What one place may write at once after it was quiet (lines).
pub const BURST_LINES: u64 = 20;

const LINE_NS: u64 = 1_000_000_000 / LINES_PER_S;

/// A place that writes lines; a `static` in the macros' expansion.
#[derive(Debug)]
pub struct CallSite {
    /// When the bucket is full again (ns); in the past: it is. A number by itself, so relaxed order is enough.
    full_at_ns: AtomicU64,
    /// Lines left out since the last one that was written.
    suppressed: AtomicU64,
}

/// Leave to write one line.
#[derive(Debug, PartialEq, Eq)]
pub struct Pass {
    suppressed: Option<NonZeroU64>,
}

impl Pass {
    /// Lines of this place that were left out before this one, if any.
    pub fn suppressed(&self) -> Option<u64> {
        self.suppressed.map(NonZeroU64::get)
    }
}

impl CallSite {
    #[expect(clippy::new_without_default, reason = "made in statics only")]
    pub const fn new() -> CallSite {
        CallSite { full_at_ns: AtomicU64::new(0), suppressed: AtomicU64::new(0) }
    }

    /// Asks for leave to write a line now. `None`: not now; it is counted.
    pub fn pass(&self) -> Option<Pass> {
        self.pass_at(ticks::monotonic_ns())
    }

    fn pass_at(&self, now_ns: u64) -> Option<Pass> {
        let take = |full_at_ns: u64| {
            let full_at_ns = full_at_ns.max(now_ns) + LINE_NS;
            (full_at_ns - now_ns <= BURST_LINES * LINE_NS).then_some(full_at_ns)
        };
        match self.full_at_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Some(Pass { suppressed: NonZeroU64::new(self.suppressed.swap(0, Ordering::Relaxed)) }),
            Err(_) => {
                self.suppressed.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn passed(site: &CallSite, times_ns: impl Iterator<Item = u64>) -> u64 {
        times_ns.filter(|&now_ns| site.pass_at(now_ns).is_some()).count() as u64
    }

    #[test]
    fn a_flood_passes_a_burst_and_then_the_rate() {
        let site = CallSite::new();
        assert_eq!(passed(&site, std::iter::repeat_n(5 * S, 1_000)), BURST_LINES);
        // Ten seconds of a line per millisecond.
        assert_eq!(passed(&site, (0..10_000).map(|ms| 5 * S + ms * 1_000_000)), 10 * LINES_PER_S - 1);
    }

    #[test]
    fn the_next_line_tells_how_many_were_left_out() {
        let site = CallSite::new();
        assert_eq!(site.pass_at(S).unwrap().suppressed(), None);
        passed(&site, std::iter::repeat_n(S, 49));
        assert_eq!(site.pass_at(2 * S).unwrap().suppressed(), Some(30));
        assert_eq!(site.pass_at(2 * S).unwrap().suppressed(), None);
    }

    #[test]
    fn a_place_that_was_quiet_has_its_whole_burst_again() {
        let site = CallSite::new();
        passed(&site, std::iter::repeat_n(S, 100));
        assert_eq!(passed(&site, std::iter::repeat_n(3 * S, 100)), BURST_LINES);
    }

    #[test]
    fn threads_share_one_burst() {
        let site = CallSite::new();
        let passed: u64 = std::thread::scope(|scope| {
            let flood = || passed(&site, std::iter::repeat_n(S, 1_000));
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(flood)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(passed, BURST_LINES);
    }
}
