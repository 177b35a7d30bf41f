//! Time as a number: nanoseconds since a clock's start.
//!
//! One type serves as a moment and as a duration, because nearly every moment here is subtracted from
//! another one a line later, and a world that is replayed has no calendar. 64 bits of nanoseconds last
//! 584 years. A plain number: copied, compared and hashed for free.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

/// Nanoseconds since the clock's start, or between two such moments.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    pub const ZERO: Nanos = Nanos(0);
    /// Later than anything: a deadline that never comes.
    pub const MAX: Nanos = Nanos(u64::MAX);

    pub const fn from_micros(us: u64) -> Nanos {
        Nanos(us * 1_000)
    }

    pub const fn from_millis(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    pub const fn from_secs(s: u64) -> Nanos {
        Nanos(s * 1_000_000_000)
    }

    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The difference, or zero when `other` is later.
    pub const fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }

    /// The sum, or [`Nanos::MAX`] when it would not fit: adding to "never" stays "never".
    pub const fn saturating_add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}

/// Asserts in tests that the result is not negative; use [`Nanos::saturating_sub`] where it may be.
impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0 - other.0)
    }
}

impl SubAssign for Nanos {
    fn sub_assign(&mut self, other: Nanos) {
        self.0 -= other.0;
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(each: I) -> Nanos {
        Nanos(each.map(|nanos| nanos.0).sum())
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Nanos {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Duration {
        Duration::from_nanos(nanos.0)
    }
}

/// In the largest unit that leaves a whole part: `1.500 ms`.
impl fmt::Debug for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => f.write_str("never"),
            ns if ns < 1_000 => write!(f, "{ns} ns"),
            ns if ns < 1_000_000 => write!(f, "{:.3} us", ns as f64 / 1e3),
            ns if ns < 1_000_000_000 => write!(f, "{:.3} ms", ns as f64 / 1e6),
            ns => write!(f, "{:.3} s", ns as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_convert_both_ways() {
        assert_eq!(Nanos::from_secs(2), Nanos::from_millis(2_000));
        assert_eq!(Nanos::from_millis(3), Nanos::from_micros(3_000));
        assert_eq!(Nanos(1_999).as_micros(), 1);
        assert_eq!(Nanos::from_micros(1_500).as_millis_f64(), 1.5);
        assert_eq!(Nanos::from(Duration::from_millis(7)), Nanos::from_millis(7));
        assert_eq!(Duration::from(Nanos::from_millis(7)), Duration::from_millis(7));
    }

    #[test]
    fn a_difference_can_stop_at_zero_and_a_sum_at_never() {
        assert_eq!(Nanos(3).saturating_sub(Nanos(5)), Nanos::ZERO);
        assert_eq!(Nanos(5) - Nanos(3), Nanos(2));
        assert_eq!(Nanos::MAX.saturating_add(Nanos(1)), Nanos::MAX);
        assert_eq!([Nanos(1), Nanos(2), Nanos(3)].into_iter().sum::<Nanos>(), Nanos(6));
    }

    #[test]
    fn debug_picks_the_unit() {
        let shown = [999, 1_500, 2_000_000, 3_250_000_000, u64::MAX].map(|ns| format!("{:?}", Nanos(ns)));
        assert_eq!(shown, ["999 ns", "1.500 us", "2.000 ms", "3.250 s", "never"]);
    }
}
