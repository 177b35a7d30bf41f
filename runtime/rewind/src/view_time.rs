//! View time: a moment of a world as a player saw it, which is mostly between two ticks.
//!
//! A client draws the world a little behind its newest snapshot, somewhere between two of them. What it saw is named by
//! the tick before and how far it was on its way to the next, in 256ths: at 20 ticks a second one part is 0.2 ms, in which
//! a sprinter covers 2 mm.

use throng_pack::Pack;
use throng_platform::time::Nanos;

/// A moment of a world, in 256ths of its ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pack)]
#[pack(name = "throng.view_time")]
pub struct ViewTime(u64);

impl ViewTime {
    pub const PARTS_PER_TICK: u32 = 256;

    /// So many 256ths after a tick.
    pub const fn new(tick: u32, part: u8) -> Self {
        Self((tick as u64) << 8 | part as u64)
    }

    pub const fn of_tick(tick: u32) -> Self {
        Self::new(tick, 0)
    }

    /// The tick at or before.
    pub const fn tick(self) -> u32 {
        (self.0 >> 8) as u32
    }

    /// 256ths after that tick.
    pub const fn part(self) -> u8 {
        self.0 as u8
    }

    /// How far on the way from that tick to the next: 0 to below 1.
    pub fn fraction(self) -> f32 {
        f32::from(self.part()) / Self::PARTS_PER_TICK as f32
    }

    /// Earlier by so many 256ths; the world's beginning if it was not there yet.
    #[must_use]
    pub const fn before(self, parts: u64) -> Self {
        Self(self.0.saturating_sub(parts))
    }

    /// Later by so many ticks; in the last tick that there can be, if it were beyond that.
    #[must_use]
    pub const fn after_ticks(self, ticks: u32) -> Self {
        Self::new(self.tick().saturating_add(ticks), self.part())
    }

    /// 256ths since an earlier moment; 0 if that was later.
    pub const fn parts_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// A length of time in 256ths of ticks, rounded down, in a world of so many ticks a second.
    pub const fn parts_in(duration: Nanos, ticks_per_s: u16) -> u64 {
        let parts = duration.0 as u128 * ticks_per_s as u128 * Self::PARTS_PER_TICK as u128 / 1_000_000_000;
        if parts > u64::MAX as u128 { u64::MAX } else { parts as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_tick_and_a_part_of_the_next() {
        let at = ViewTime::new(7, 64);
        assert_eq!((at.tick(), at.part(), at.fraction()), (7, 64, 0.25));
        assert_eq!(at.before(64), ViewTime::of_tick(7));
        assert_eq!(at.before(65), ViewTime::new(6, 255));
        assert_eq!(at.before(u64::MAX), ViewTime::of_tick(0));
        assert_eq!((at.parts_since(ViewTime::of_tick(6)), ViewTime::of_tick(6).parts_since(at)), (320, 0));
        assert!(ViewTime::new(u32::MAX, 255) > ViewTime::of_tick(u32::MAX));
        assert_eq!(at.after_ticks(3), ViewTime::new(10, 64));
        assert_eq!(at.after_ticks(u32::MAX), ViewTime::new(u32::MAX, 64));
        assert_eq!(ViewTime::parts_in(Nanos::from_millis(200), 128), 6_553);
        assert_eq!(ViewTime::parts_in(Nanos::MAX, u16::MAX), 309_480_287_454_862_199);
    }
}
