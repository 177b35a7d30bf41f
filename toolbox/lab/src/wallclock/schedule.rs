//! When to look: once in every stretch of time, at a random moment of it.
//!
//! Looking every 10 ms exactly would see a program with a period of 10 ms always in the same place. A random moment in
//! every stretch has no period, and still covers time evenly, so its shares settle faster than purely random looks.

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The moments of looking, counted from the begin of the run (ns).
pub(super) struct Schedule {
    stretch_ns: u64,
    next: u64,
    rng: Xoshiro256PlusPlus,
}

impl Schedule {
    pub(super) fn new(stretch_ns: u64, rng: Xoshiro256PlusPlus) -> Schedule {
        Schedule { stretch_ns: stretch_ns.max(1), next: 0, rng }
    }

    /// The next moment, and how many stretches passed without a look because it is `now` already.
    pub(super) fn next(&mut self, now: u64) -> (u64, u64) {
        let current = now / self.stretch_ns;
        let missed = current.saturating_sub(self.next);
        self.next = self.next.max(current);
        let at = self.next * self.stretch_ns + self.rng.random_range(0..self.stretch_ns);
        self.next += 1;
        (at.max(now), missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn schedule() -> Schedule {
        Schedule::new(1_000, Xoshiro256PlusPlus::seed_from_u64(7))
    }

    #[test]
    fn every_stretch_has_one_look() {
        let mut schedule = schedule();
        let mut now = 0;
        for stretch in 0..10_000 {
            let (at, missed) = schedule.next(now);
            assert_eq!(at / 1_000, stretch);
            assert_eq!(missed, 0);
            now = at;
        }
    }

    #[test]
    fn a_program_of_the_same_period_is_seen_everywhere() {
        let mut schedule = schedule();
        let (mut now, mut first_half) = (0, 0);
        for _ in 0..10_000 {
            now = schedule.next(now).0;
            first_half += u32::from(now % 1_000 < 500);
        }
        assert!((4_800..5_200).contains(&first_half), "{first_half} of 10000");
    }

    #[test]
    fn stretches_that_passed_are_counted_and_not_made_up_for() {
        let mut schedule = schedule();
        schedule.next(0);
        let (at, missed) = schedule.next(5_500);
        assert_eq!(missed, 4);
        assert!((5_500..6_000).contains(&at));
        assert_eq!(schedule.next(at).0 / 1_000, 6);
    }
}
