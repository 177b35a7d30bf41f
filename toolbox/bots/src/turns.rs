//! Whose turn it is to think.
//!
//! All bots think at one rate, so their turns never change order: turn `n` of a swarm belongs to bot
//! `n % bots` and is due `n * period / bots` after the start. That spreads the work, and the packets,
//! evenly over the period, with one counter and no queue. A thread takes the turns of its own bots, at the same
//! moments.
//!
//! A thread that is late runs the turns it owes, up to one period. Beyond that it skips whole rounds
//! and counts them: a bot that was late by seconds must not answer with a burst that no player sends.

use throng_platform::time::Nanos;

use crate::batch::BotBatch;

#[derive(Debug)]
pub(crate) struct Turns {
    start: Nanos,
    period: Nanos,
    batch: BotBatch,
    /// The next turn's number, of those of this batch.
    next: u64,
    skipped: u64,
}

impl Turns {
    /// Turns of a batch that has bots; `rate_hz` is above zero.
    pub fn new(start: Nanos, batch: BotBatch, rate_hz: u32) -> Self {
        Self { start, period: Nanos(1_000_000_000 / u64::from(rate_hz)), batch, next: 0, skipped: 0 }
    }

    /// When the next turn is due.
    pub fn next_at(&self) -> Nanos {
        // Both parts stay far below 2^64 for centuries: whole rounds first, then the part of a round.
        let (round, place) = self.round_and_place();
        self.start
            + Nanos(round * self.period.0 + self.batch.bot(place) as u64 * self.period.0 / self.batch.players as u64)
    }

    /// The place in the batch of the bot whose turn is due at `now`, if any. Call until `None`.
    pub fn take(&mut self, now: Nanos) -> Option<usize> {
        let late = now.saturating_sub(self.next_at());
        if late > self.period {
            let rounds = late.0 / self.period.0;
            self.next += rounds * self.batch.count() as u64;
            self.skipped += rounds * self.batch.count() as u64;
        }
        if now < self.next_at() {
            return None;
        }
        let (_, place) = self.round_and_place();
        self.next += 1;
        Some(place)
    }

    fn round_and_place(&self) -> (u64, usize) {
        let count = self.batch.count() as u64;
        (self.next / count, (self.next % count) as usize)
    }

    /// Turns that have come due, those that were left out included.
    pub fn due(&self) -> u64 {
        self.next
    }

    /// Turns that were left out because the thread was too late.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_one_thread(players: usize) -> BotBatch {
        BotBatch { thread: 0, threads: 1, players }
    }

    fn take_all(turns: &mut Turns, now_ms: u64) -> Vec<usize> {
        std::iter::from_fn(|| turns.take(Nanos::from_millis(now_ms))).collect()
    }

    #[test]
    fn turns_are_spread_evenly_over_the_period() {
        let mut turns = Turns::new(Nanos::from_millis(100), on_one_thread(5), 20);
        assert_eq!(take_all(&mut turns, 99), [0usize; 0]);
        assert_eq!(take_all(&mut turns, 100), [0]);
        assert_eq!(turns.next_at(), Nanos::from_millis(110));
        assert_eq!(take_all(&mut turns, 129), [1, 2]);
        assert_eq!(take_all(&mut turns, 160), [3, 4, 0, 1]);
    }

    #[test]
    fn every_bot_gets_its_rate_over_a_long_run() {
        let mut turns = Turns::new(Nanos::ZERO, on_one_thread(7), 30);
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
        let mut turns = Turns::new(Nanos::ZERO, on_one_thread(3), 20);
        assert_eq!(take_all(&mut turns, 0), [0]);
        let after = take_all(&mut turns, 1_000);
        assert!(after.len() <= 2 * 3, "no more than it owes of one period: {after:?}");
        assert_eq!(turns.skipped() + after.len() as u64 + 1, 3 * 20 + 1);
        assert_eq!(turns.due(), 3 * 20 + 1);
        assert!(turns.next_at() > Nanos::from_millis(1_000));
    }

    #[test]
    fn a_bots_turns_are_the_same_on_any_number_of_threads() {
        let turns_on = |threads: usize| {
            let mut turns: Vec<(Nanos, usize)> = Vec::new();
            for batch in BotBatch::of_threads(7, threads) {
                let mut of_batch = Turns::new(Nanos::from_millis(100), batch, 30);
                for _ in 0..10 * batch.count() {
                    let at = of_batch.next_at();
                    turns.push((at, batch.bot(of_batch.take(at).expect("it is due"))));
                }
                assert_eq!((of_batch.due(), of_batch.skipped()), (10 * batch.count() as u64, 0));
            }
            turns.sort_unstable();
            turns
        };
        assert_eq!(turns_on(1).len(), 70);
        assert!((2..=7).all(|threads| turns_on(threads) == turns_on(1)));
    }
}
