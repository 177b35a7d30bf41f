//! Rate-limited jobs: at most so many items a second, spread evenly, however often the world steps.
//!
//! Work that is wanted for everybody but not at once (a heat map that takes in twenty players a second) is cut by items. A
//! count of items per step would do ten times the work in a world that steps ten times as often, as one does that steps on
//! messages. So the world's time says how many are due: as many as the rate has whole items between the last step and
//! this one. Nothing is added up from step to step, so no remainder is lost and none drifts.
//!
//! ```text
//! 20 a second, 30 steps a second   step  0 1 2 3 4 5 6 7 8 9
//!                                  items . . a . b c . d . a     the ring: a b c d
//! ```
//!
//! Items take turns in a ring: none comes twice before each of the others has come, and who is new comes last. Reads no
//! clock; allocates when the ring grows. Cost: some nanoseconds a step, and moving the due items to the ring's end.

use std::collections::VecDeque;

use throng_platform::time::Nanos;

/// So many times in so much time. Made by [`Rated`]: `20.per_second()`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    times: u32,
    period: Nanos,
}

/// Rates in words.
pub trait Rated {
    fn per_second(self) -> Rate;
    fn per_minute(self) -> Rate;
}

impl Rated for u32 {
    fn per_second(self) -> Rate {
        Rate { times: self, period: Nanos::from_secs(1) }
    }

    fn per_minute(self) -> Rate {
        Rate { times: self, period: Nanos::from_secs(60) }
    }
}

impl Rate {
    /// How many whole times have passed at `now`, counted from time zero.
    fn passed(self, now: Nanos) -> u128 {
        u128::from(now.0) * u128::from(self.times) / u128::from(self.period.0)
    }
}

/// A job that does its items in turn, at most so many in each period of its [`Rate`].
///
/// ```
/// use throng_platform::time::Nanos;
/// use throng_scheduler::{Every, Rated};
///
/// let mut heat_map = Every::new(2.per_second(), ["ann", "ben", "cem"]);
/// let mut at_ms = |ms| heat_map.due(Nanos::from_millis(ms)).copied().collect::<Vec<_>>();
/// assert!(at_ms(0).is_empty(), "counted from here on");
/// assert_eq!(at_ms(500), ["ann"]);
/// assert!(at_ms(900).is_empty());
/// assert_eq!(at_ms(1_500), ["ben", "cem"]);
/// assert_eq!(at_ms(2_000), ["ann"]);
/// ```
#[derive(Clone, Debug)]
pub struct Every<T> {
    rate: Rate,
    /// Whose turn it is comes first.
    ring: VecDeque<T>,
    /// When it was last asked what is due.
    asked_at: Option<Nanos>,
}

impl<T> Every<T> {
    /// With these items, in this order. With a rate of zero nothing is ever due.
    pub fn new(rate: Rate, items: impl IntoIterator<Item = T>) -> Every<T> {
        Every { rate, ring: items.into_iter().collect(), asked_at: None }
    }

    /// What is due at `now` (the world's time), each item once. The first call sets the beginning, and hands out nothing.
    ///
    /// What was due when there was nobody, or more often than there are items, is not made up for; nor is what a world
    /// slept through, beyond one period of the rate. Time that stands still or goes back makes nothing due.
    pub fn due(&mut self, now: Nanos) -> impl ExactSizeIterator<Item = &T> {
        let count = self.count_due(now);
        self.ring.rotate_left(count);
        self.ring.range(self.ring.len() - count..)
    }

    fn count_due(&mut self, now: Nanos) -> usize {
        let asked_at = self.asked_at.unwrap_or(now);
        if self.asked_at.is_some() && now <= asked_at {
            return 0;
        }
        self.asked_at = Some(now);
        let due = self.rate.passed(now) - self.rate.passed(asked_at);
        let at_most = u128::from(self.rate.times).min(self.ring.len() as u128);
        due.min(at_most) as usize
    }

    /// A new item, whose turn comes after all the others'.
    pub fn add(&mut self, item: T) {
        self.ring.push_back(item);
    }

    /// Lets go of items that `stays` says no to; the others keep their turns.
    pub fn retain(&mut self, stays: impl FnMut(&T) -> bool) {
        self.ring.retain(stays);
    }

    /// All items, whose turn it is first.
    pub fn items(&self) -> impl ExactSizeIterator<Item = &T> {
        self.ring.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    const SECOND: u64 = 1_000_000_000;

    /// Times of steps that come `step_hz` times a second on average and never evenly, as messages do.
    fn steps(seed: u64, step_hz: u64, seconds: u64) -> Vec<Nanos> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let period = SECOND / step_hz;
        let mut now = 0;
        let mut steps = vec![Nanos::ZERO];
        while now < seconds * SECOND {
            now += rng.random_range(period / 10..2 * period - period / 10);
            steps.push(Nanos(now.min(seconds * SECOND)));
        }
        steps
    }

    /// Promise: at ten times the steps a job keeps its rate within 2 %, and each item its share of it.
    #[test]
    fn a_job_keeps_its_rate_however_often_the_world_steps() {
        for (seed, times) in (0..).zip([1, 7, 20, 33, 250]) {
            for step_hz in [20, 60, 200, 600, 1_280] {
                let mut job = Every::new(times.per_second(), 0..300_usize);
                let mut each = vec![0_u64; 300];
                for now in steps(seed, step_hz, 100) {
                    job.due(now).for_each(|&item| each[item] += 1);
                }
                let (done, wanted) = (each.iter().sum::<u64>() as f64, f64::from(times) * 100.0);
                assert!((done / wanted - 1.0).abs() <= 0.02, "{done} of {wanted} at {step_hz} steps/s");
                let (least, most) = (each.iter().min().unwrap(), each.iter().max().unwrap());
                assert!(most - least <= 1, "{least} to {most} turns at {step_hz} steps/s");
            }
        }
    }

    /// Promise: no second has more than the rate, and no step more than is due since the one before.
    #[test]
    fn items_are_spread_evenly() {
        let mut job = Every::new(20.per_second(), 0..100);
        let mut times = Vec::new();
        for step in 0..=10_000_u64 {
            let now = Nanos(step * SECOND / 1_000);
            let count = job.due(now).len();
            assert!(count <= 1, "{count} in one step of a millisecond");
            times.extend((0..count).map(|_| now));
        }
        assert_eq!(times.len(), 200);
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == Nanos::from_millis(50)));
    }

    /// Promise: items that come and go all the time starve nobody who stays.
    #[test]
    fn who_stays_has_a_turn_whoever_comes_and_goes() {
        const STAYING: u64 = 10;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut job = Every::new(20.per_second(), 0..STAYING);
        let mut turns = [0_u64; STAYING as usize];
        let mut next = STAYING;
        for now in steps(1, 60, 100) {
            job.due(now).filter(|&&item| item < STAYING).for_each(|&item| turns[item as usize] += 1);
            // As many come as go, and there are 30 or so.
            job.add(next);
            next += 1;
            let oldest_guest = next.saturating_sub(rng.random_range(15..25));
            job.retain(|&item| item < STAYING || item >= oldest_guest);
        }
        // 20 a second over at most 35 in the ring, of whom each that stays has a turn in every round.
        assert!(turns.iter().all(|&turns| turns >= 2_000 / 35), "{turns:?}");
        assert!(turns.iter().max().unwrap() - turns.iter().min().unwrap() <= 1, "{turns:?}");
    }

    #[test]
    fn what_was_slept_through_or_has_nobody_is_not_made_up_for() {
        let mut job = Every::new(20.per_second(), 0..1_000);
        assert_eq!(job.due(Nanos::from_secs(5)).len(), 0, "the beginning");
        assert_eq!(job.due(Nanos::from_secs(500)).len(), 20, "one period of the rate");
        assert_eq!(job.due(Nanos::from_secs(500)).len(), 0, "time stands still");
        assert_eq!(job.due(Nanos::from_secs(400)).len(), 0, "and goes back");
        assert_eq!(job.due(Nanos::from_millis(500_050)).len(), 1);

        job.retain(|_| false);
        assert_eq!(job.due(Nanos::from_secs(501)).len(), 0);
        job.add(7);
        assert_eq!(job.items().collect::<Vec<_>>(), [&7]);
        assert_eq!(job.due(Nanos::from_millis(501_500)).collect::<Vec<_>>(), [&7], "once in a step");
        assert_eq!(Every::new(0.per_second(), [1]).due(Nanos::MAX).len(), 0);
    }

    #[test]
    fn rates_below_one_a_second_are_kept() {
        let mut job = Every::new(30.per_minute(), 0..5);
        let done: usize = (0..=600_u64).map(|tenth| job.due(Nanos::from_millis(tenth * 100)).len()).sum();
        assert_eq!(done, 30);
    }
}
