//! Longest tick: what the longest of a world's last ticks took.
//!
//! Who looks at a world once a second sees one tick of many, and hardly ever the slow one. Two windows of [`WINDOW`], the
//! one that goes on and the one before it: a reading covers the last 10 to 20 s. Cost: a division and two comparisons a
//! tick, on the frame's thread.

use throng_platform::time::Nanos;

/// Of one window.
const WINDOW: Nanos = Nanos::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct LongestTick {
    /// The number of the window that goes on.
    window: u64,
    in_it: Nanos,
    before: Nanos,
}

impl LongestTick {
    /// A tick came home at `now`.
    pub fn note(&mut self, now: Nanos, took: Nanos) {
        let window = now.0 / WINDOW.0;
        if window != self.window {
            self.before = if window == self.window + 1 { self.in_it } else { Nanos::ZERO };
            (self.window, self.in_it) = (window, Nanos::ZERO);
        }
        self.in_it = self.in_it.max(took);
    }

    pub fn read(&self, now: Nanos) -> Nanos {
        match (now.0 / WINDOW.0).saturating_sub(self.window) {
            0 => self.in_it.max(self.before),
            1 => self.in_it,
            _ => Nanos::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_tick_is_seen_for_ten_seconds_and_at_most_for_twenty() {
        let s = Nanos::from_secs;
        let mut longest = LongestTick::default();
        longest.note(s(3), Nanos(700));
        longest.note(s(4), Nanos(20));
        let check =
            |longest: &LongestTick, at: u64, expect: u64| assert_eq!(longest.read(s(at)).0, expect, "at {at} s");
        check(&longest, 4, 700);
        // Also of a world that ticks no more.
        check(&longest, 19, 700);
        check(&longest, 20, 0);
        longest.note(s(12), Nanos(30));
        check(&longest, 13, 700);
        check(&longest, 19, 700);
        longest.note(s(21), Nanos(10));
        check(&longest, 21, 30);
        longest.note(s(55), Nanos(5));
        check(&longest, 55, 5);
    }
}
