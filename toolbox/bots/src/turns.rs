//! Whose turn it is to think.
//!
//! All bots think at one rate, so their turns never change order: turn `n` belongs to bot
//! `n % bots` and is due `n * period / bots` after the start. That spreads the work, and the packets,
//! evenly over the period, with one counter and no queue.
//!
//! A swarm that is late runs the turns it owes, up to one period. Beyond that it skips whole rounds
//! and counts them: a bot that was late by seconds must not answer with a burst that no player sends.

use throng_platform::time::Nanos;

#[derive(Debug)]
pub(crate) struct Turns {
    start: Nanos,
    period: Nanos,
    bots: u64,
    /// The next turn's number.
    next: u64,
    skipped: u64,
}

impl Turns {
    /// `bots` and `rate_hz` are above zero.
    pub fn new(start: Nanos, bots: usize, rate_hz: u32) -> Self {
        Self { start, period: Nanos(1_000_000_000 / u64::from(rate_hz)), bots: bots as u64, next: 0, skipped: 0 }
    }

    /// When the next turn is due.
    pub fn next_at(&self) -> Nanos {
        // Both parts stay far below 2^64 for centuries: whole rounds first, then the part of a round.
        let (round, place) = (self.next / self.bots, self.next % self.bots);
        self.start + Nanos(round * self.period.0 + place * self.period.0 / self.bots)
    }

    /// The bot whose turn is due at `now`, if any. Call until `None`.
    pub fn take(&mut self, now: Nanos) -> Option<usize> {
        let late = now.saturating_sub(self.next_at());
        if late > self.period {
            let rounds = late.0 / self.period.0;
            self.next += rounds * self.bots;
            self.skipped += rounds * self.bots;
        }
        if now < self.next_at() {
            return None;
        }
        let bot = (self.next % self.bots) as usize;
        self.next += 1;
        Some(bot)
    }

    /// Turns that have come due, those that were left out included.
    pub fn due(&self) -> u64 {
        self.next
    }

    /// Turns that were left out because the swarm was too late.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(turns: &mut Turns, now_ms: u64) -> Vec<usize> {
        std::iter::from_fn(|| turns.take(Nanos::from_millis(now_ms))).collect()
    }

    #[test]
    fn turns_are_spread_evenly_over_the_period() {
        let mut turns = Turns::new(Nanos::from_millis(100), 5, 20);
        assert_eq!(take_all(&mut turns, 99), [0usize; 0]);
        assert_eq!(take_all(&mut turns, 100), [0]);
        assert_eq!(turns.next_at(), Nanos::from_millis(110));
        assert_eq!(take_all(&mut turns, 129), [1, 2]);
        assert_eq!(take_all(&mut turns, 160), [3, 4, 0, 1]);
    }

    #[test]
    fn every_bot_gets_its_rate_over_a_long_run() {
        let mut turns = Turns::new(Nanos::ZERO, 7, 30);
        let mut counts = [0; 7];
        for now_ms in (0..60_000).step_by(2) {
            for bot in take_all(&mut turns, now_ms) {
                counts[bot] += 1;
            }
        }
        assert!(counts.iter().all(|count| (1_799..=1_801).contains(count)), "{counts:?}");
        assert_eq!(turns.skipped(), 0);
    }

    #[test]
    fn a_swarm_that_slept_skips_rounds_and_says_so() {
        let mut turns = Turns::new(Nanos::ZERO, 3, 20);
        assert_eq!(take_all(&mut turns, 0), [0]);
        let after = take_all(&mut turns, 1_000);
        assert!(after.len() <= 2 * 3, "no more than it owes of one period: {after:?}");
        assert_eq!(turns.skipped() + after.len() as u64 + 1, 3 * 20 + 1);
        assert_eq!(turns.due(), 3 * 20 + 1);
        assert!(turns.next_at() > Nanos::from_millis(1_000));
    }
}
