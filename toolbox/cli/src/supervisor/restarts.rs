//! Restarts: how many a server gets, and how long it waits for each.
//!
//! A death by chance is over in a moment, one that comes again and again is a fault that a restart does not mend. So the
//! first restart comes almost at once, each further one within the window four times as late, and after the maximum there
//! is none. Restarts that the window has left behind count no more.
//!
//! ```text
//! restart   1       2     3     4      5 and later
//! pause     0.25 s  1 s   4 s   16 s   60 s
//! ```
//!
//! Reads no clock. Keeps one time for each restart within the window.

use std::{collections::VecDeque, time::Duration};

/// How many restarts there may be, and within which time they are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Maximum {
    pub restarts: u32,
    pub within: Duration,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Restart {
    /// Within the window, from 1 on.
    pub number: u32,
    pub pause: Duration,
}

pub struct Restarts {
    maximum: Maximum,
    /// When those within the window began, the oldest first.
    began: VecDeque<Duration>,
    has_any: bool,
}

const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSE_GROWTH: u32 = 4;
const PAUSE_MAX: Duration = Duration::from_secs(60);

impl Restarts {
    pub fn new(maximum: Maximum) -> Self {
        Self { maximum, began: VecDeque::new(), has_any: false }
    }

    pub fn maximum(&self) -> Maximum {
        self.maximum
    }

    /// Whether there was one, however long ago.
    pub fn has_any(&self) -> bool {
        self.has_any
    }

    /// What comes after a death at `now`. `None`: it has died too often.
    pub fn next(&mut self, now: Duration) -> Option<Restart> {
        while self.began.front().is_some_and(|&began| now.saturating_sub(began) >= self.maximum.within) {
            self.began.pop_front();
        }
        let before = self.began.len() as u32;
        if before >= self.maximum.restarts {
            return None;
        }
        let pause = PAUSE_GROWTH.checked_pow(before).and_then(|growth| PAUSE_FIRST.checked_mul(growth));
        let pause = pause.unwrap_or(PAUSE_MAX).min(PAUSE_MAX);
        self.began.push_back(now + pause);
        self.has_any = true;
        Some(Restart { number: before + 1, pause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restarts(max: u32, within_s: u64) -> Restarts {
        Restarts::new(Maximum { restarts: max, within: Duration::from_secs(within_s) })
    }

    /// Pauses in ms after deaths that come at once, until there is no further restart.
    #[track_caller]
    fn check_pauses(max: u32, expect: &[u64]) {
        let (mut restarts, mut now, mut pauses) = (restarts(max, 86_400), Duration::ZERO, Vec::new());
        while let Some(restart) = restarts.next(now) {
            pauses.push(restart.pause.as_millis() as u64);
            assert_eq!(restart.number as usize, pauses.len());
            now += restart.pause;
        }
        assert_eq!(pauses, expect);
        assert_eq!(restarts.next(now), None, "and none later");
    }

    #[test]
    fn pauses_grow_up_to_a_maximum_and_then_there_is_no_restart() {
        check_pauses(0, &[]);
        check_pauses(1, &[250]);
        check_pauses(7, &[250, 1_000, 4_000, 16_000, 60_000, 60_000, 60_000]);
        let mut many = restarts(100, 86_400);
        let last = (0..100).filter_map(|_| many.next(Duration::ZERO)).last().expect("a hundred");
        assert_eq!((last.number, last.pause), (100, PAUSE_MAX), "growth has no end of its own");
    }

    #[test]
    fn a_server_that_dies_seldom_is_always_restarted_at_once() {
        let mut restarts = restarts(2, 900);
        assert!(!restarts.has_any());
        for death in 0..1_000 {
            let restart = restarts.next(Duration::from_secs(death * 1_000)).expect("the one before is forgotten");
            assert_eq!(restart, Restart { number: 1, pause: PAUSE_FIRST });
        }
        assert!(restarts.has_any());
    }

    /// Promise: within any window there are no more restarts than the maximum.
    #[test]
    fn no_window_has_more_restarts_than_the_maximum() {
        let (max, within) = (3_usize, Duration::from_secs(100));
        let mut restarts = restarts(max as u32, within.as_secs());
        let mut began: Vec<Duration> = Vec::new();
        for death in 0..2_000 {
            let now = Duration::from_secs(death * 7);
            if let Some(restart) = restarts.next(now) {
                began.push(now + restart.pause);
            }
        }
        assert!(began.len() > 100);
        for window in began.windows(max + 1) {
            assert!(window[max] - window[0] >= within, "{window:?}");
        }
    }
}
