//! Tick rates, and the frame rate that serves them all.
//!
//! Worlds of 20, 30, 60 and 128 Hz live in one process. Its frames come at one rate, the grid, chosen so
//! that as many tick rates as possible divide it: their ticks then fall on frames exactly. Where no such
//! grid is affordable, the fastest rate is served exactly and the others late by less than one frame.

use std::fmt;

use throng_platform::time::Nanos;

/// Times per second [1..=256].
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hertz(pub u16);

impl Hertz {
    /// Time from one tick to the next, rounded down: 50 ms at 20 Hz.
    pub fn period(self) -> Nanos {
        Nanos(NANOS_PER_S / u64::from(self.0))
    }
}

impl fmt::Display for Hertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Hz", self.0)
    }
}

const NANOS_PER_S: u64 = 1_000_000_000;

/// Frames come at least this often, so that work can be spread: 20 Hz worlds in thirds of 50 ms.
const FRAME_HZ_MIN: u32 = 60;
/// And at most this often: each frame costs a wake-up, a pass over the sockets and a merge of metrics.
pub(crate) const FRAME_HZ_MAX: u32 = 256;

/// The frames of a process: number `n` begins `n / frame_hz` seconds after the first.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FrameGrid {
    frame_hz: u16,
}

impl FrameGrid {
    /// The grid for these tick rates: the smallest multiple of them all from 60 to 256 Hz, or else the
    /// smallest multiple of the fastest from 60 Hz up. 60 Hz without any.
    ///
    /// # Panics
    /// With a rate outside 1..=256.
    pub fn for_rates(rates: &[Hertz]) -> FrameGrid {
        let mut common = 1;
        let mut fastest = 1;
        for rate in rates.iter().map(|rate| u32::from(rate.0)) {
            assert!((1..=FRAME_HZ_MAX).contains(&rate), "a tick rate of {rate} Hz is not within 1..=256");
            fastest = fastest.max(rate);
            // Beyond the maximum it only has to stay beyond it.
            common = (common / gcd(common, rate)).saturating_mul(rate);
        }
        let at_least_min = |rate: u32| FRAME_HZ_MIN.div_ceil(rate).saturating_mul(rate);
        let shared = at_least_min(common);
        let frame_hz = if shared <= FRAME_HZ_MAX { shared } else { at_least_min(fastest) };
        FrameGrid { frame_hz: frame_hz as u16 }
    }

    /// In how many different ways worlds of a rate can lie in the grid.
    pub fn phases_count(self, rate: Hertz) -> usize {
        usize::from(self.frame_hz) / gcd(self.frame_hz.into(), rate.0.into()) as usize
    }

    pub fn frame_hz(self) -> u16 {
        self.frame_hz
    }

    /// Time from one frame to the next, rounded down.
    pub fn period(self) -> Nanos {
        Hertz(self.frame_hz).period()
    }

    /// When a frame begins, counted from the beginning of frame 0. Does not drift.
    pub fn start_of(self, frame: u64) -> Nanos {
        let hz = u64::from(self.frame_hz);
        Nanos(frame / hz * NANOS_PER_S + frame % hz * NANOS_PER_S / hz)
    }

    /// The frame that is running at `now`.
    pub fn frame_at(self, now: Nanos) -> u64 {
        let hz = u64::from(self.frame_hz);
        let estimate = now.0 / NANOS_PER_S * hz + now.0 % NANOS_PER_S * hz / NANOS_PER_S;
        // A start that was rounded down may already be the next frame's.
        if self.start_of(estimate + 1) <= now { estimate + 1 } else { estimate }
    }
}

pub(crate) fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rates: &[u16], expected_hz: u16) {
        let rates: Vec<Hertz> = rates.iter().copied().map(Hertz).collect();
        assert_eq!(FrameGrid::for_rates(&rates).frame_hz(), expected_hz, "{rates:?}");
    }

    #[test]
    fn rates_that_fit_together_share_an_exact_grid() {
        check(&[20], 60);
        check(&[30], 60);
        check(&[20, 30, 60], 60);
        check(&[25], 75);
        check(&[20, 50], 100);
        check(&[128], 128);
        check(&[128, 64, 32], 128);
        check(&[1], 60);
        check(&[7, 11], 77);
        check(&[256], 256);
        check(&[], 60);
    }

    #[test]
    fn rates_that_do_not_fit_follow_the_fastest() {
        check(&[20, 128], 128);
        check(&[20, 30, 60, 128], 128);
        check(&[17, 19], 76);
        check(&[255, 256, 254, 253, 251, 241, 239], 256);
    }

    #[test]
    fn frames_begin_without_drift() {
        for rate in [60, 75, 100, 128, 256] {
            let grid = FrameGrid::for_rates(&[Hertz(rate)]);
            let hz = u64::from(rate);
            assert_eq!(grid.start_of(hz * 86_400), Nanos::from_secs(86_400));
            for frame in (0..3 * hz).chain(hz * 86_400 - 5..hz * 86_400 + 5) {
                let start = grid.start_of(frame);
                assert_eq!(grid.frame_at(start), frame);
                assert_eq!(grid.frame_at(grid.start_of(frame + 1) - Nanos(1)), frame);
            }
        }
    }

    #[test]
    #[should_panic(expected = "not within")]
    fn a_rate_of_zero_is_refused() {
        FrameGrid::for_rates(&[Hertz(0)]);
    }
}
