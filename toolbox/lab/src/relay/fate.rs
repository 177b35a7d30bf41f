//! What happens to one datagram: a function of seed, client, direction, number and time.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::time::Nanos;

/// What a line with a bandwidth keeps waiting at most, as time; more is lost, as in a router with a short queue.
const QUEUE_MAX: Nanos = Nanos::from_millis(200);

/// Which way a datagram goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    ToServer = 0,
    ToClient = 1,
}

/// What one direction does to datagrams. The default does nothing: they pass at once.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Impairment {
    /// Share of datagrams that never arrive [0 to 1].
    pub loss: f64,
    /// Share that arrives twice, the copy with a delay of its own [0 to 1].
    pub duplication: f64,
    /// Share that takes `reorder_delay` longer, so that later ones overtake it [0 to 1].
    pub reordering: f64,
    pub reorder_delay: Nanos,
    /// Share that arrives with one bit turned over [0 to 1]; the copy of a doubled one stays whole.
    pub corruption: f64,
    /// How long each takes.
    pub delay: Nanos,
    /// Added to the delay, drawn evenly from zero to this. Enough of it changes the order, too.
    pub jitter: Nanos,
    /// What the line carries of each client [bytes/s]; `None` = any amount.
    pub bytes_per_s: Option<u64>,
    /// In the last `blackout` of every `blackout_every` since the start nothing arrives; zero = never.
    pub blackout_every: Nanos,
    pub blackout: Nanos,
}

/// One direction of one client's path.
pub(super) struct Way {
    seed: u64,
    /// Datagrams so far.
    number: u64,
    /// When the line has sent what it was given.
    free_at: Nanos,
}

/// What becomes of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Carried { at: Nanos, copy_at: Option<Nanos>, held_back: bool, corrupt_bit: Option<u32> },
    Lost,
    BlackedOut,
    QueueFull,
}

impl Way {
    pub fn new(seed: u64, client: u64, direction: Direction) -> Self {
        // Odd factors keep clients and directions apart; the generator's own seeding mixes the rest.
        let seed = seed ^ (client * 2 + direction as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { seed, number: 0, free_at: Nanos::ZERO }
    }

    /// The fate of the next datagram, which comes at `now` (since the start).
    pub fn carry(&mut self, now: Nanos, size_bytes: usize, impairment: &Impairment) -> Fate {
        let number = self.number;
        self.number += 1;
        let mut rng =
            Xoshiro256PlusPlus::seed_from_u64(self.seed.wrapping_add(number.wrapping_mul(0xd1b5_4a32_d192_ed03)));
        // Always the same draws in the same order, so that a change of one share leaves the others' datagrams alone.
        let [lost, doubled, held_back, corrupted]: [f64; 4] = rng.random();
        let ([jitter, copy_jitter], bit): ([f64; 2], u32) = rng.random();

        if impairment.blackout > Nanos::ZERO && impairment.is_black(now) {
            return Fate::BlackedOut;
        }
        if lost < impairment.loss {
            return Fate::Lost;
        }
        let mut sent_at = now;
        if let Some(bytes_per_s) = impairment.bytes_per_s {
            let begin = self.free_at.max(now);
            if begin.saturating_sub(now) > QUEUE_MAX {
                return Fate::QueueFull;
            }
            sent_at = begin + Nanos(size_bytes as u64 * 1_000_000_000 / bytes_per_s.max(1));
            self.free_at = sent_at;
        }
        let held_back = held_back < impairment.reordering;
        let extra = if held_back { impairment.reorder_delay } else { Nanos::ZERO };
        let arrives = |jitter: f64| sent_at + impairment.delay + Nanos((impairment.jitter.0 as f64 * jitter) as u64);
        Fate::Carried {
            at: arrives(jitter) + extra,
            copy_at: (doubled < impairment.duplication).then(|| arrives(copy_jitter)),
            held_back,
            corrupt_bit: (corrupted < impairment.corruption).then_some(bit),
        }
    }
}

impl Impairment {
    fn is_black(&self, now: Nanos) -> bool {
        now.0 % self.blackout_every.0.max(1) >= self.blackout_every.saturating_sub(self.blackout).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAD: Impairment = Impairment {
        loss: 0.2,
        duplication: 0.05,
        reordering: 0.3,
        reorder_delay: Nanos::from_millis(60),
        corruption: 0.01,
        delay: Nanos::from_millis(50),
        jitter: Nanos::from_millis(20),
        bytes_per_s: None,
        blackout_every: Nanos::ZERO,
        blackout: Nanos::ZERO,
    };

    /// The fates of 10,000 datagrams, one a millisecond.
    fn fates(seed: u64, client: u64, direction: Direction, impairment: &Impairment) -> Vec<Fate> {
        let mut way = Way::new(seed, client, direction);
        (0..10_000).map(|ms| way.carry(Nanos::from_millis(ms), 300, impairment)).collect()
    }

    fn share(fates: &[Fate], is_so: impl Fn(&Fate) -> bool) -> f64 {
        fates.iter().filter(|fate| is_so(fate)).count() as f64 / fates.len() as f64
    }

    #[test]
    fn a_seed_decides_and_nothing_else_does() {
        let first = fates(7, 3, Direction::ToServer, &BAD);
        assert_eq!(first, fates(7, 3, Direction::ToServer, &BAD));
        for other in [
            fates(8, 3, Direction::ToServer, &BAD),
            fates(7, 4, Direction::ToServer, &BAD),
            fates(7, 3, Direction::ToClient, &BAD),
        ] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn shares_are_as_asked() {
        let fates = fates(1, 0, Direction::ToServer, &BAD);
        let check = |found: f64, expect: f64| assert!((found - expect).abs() < 0.02, "{found} is not {expect}");
        check(share(&fates, |fate| *fate == Fate::Lost), 0.2);
        check(share(&fates, |fate| matches!(fate, Fate::Carried { copy_at: Some(_), .. })), 0.8 * 0.05);
        check(share(&fates, |fate| matches!(fate, Fate::Carried { held_back: true, .. })), 0.8 * 0.3);
        check(share(&fates, |fate| matches!(fate, Fate::Carried { corrupt_bit: Some(_), .. })), 0.8 * 0.01);
    }

    #[test]
    fn more_loss_leaves_the_fate_of_those_that_arrive_alone() {
        let (less, more) = (Impairment { loss: 0.1, ..BAD }, BAD);
        let both = fates(1, 0, Direction::ToServer, &less).into_iter().zip(fates(1, 0, Direction::ToServer, &more));
        for (less, more) in both {
            assert!(more == less || more == Fate::Lost);
        }
    }

    #[test]
    fn a_good_line_does_nothing() {
        for (ms, fate) in fates(1, 0, Direction::ToClient, &Impairment::default()).into_iter().enumerate() {
            let at = Nanos::from_millis(ms as u64);
            assert_eq!(fate, Fate::Carried { at, copy_at: None, held_back: false, corrupt_bit: None });
        }
    }

    #[test]
    fn a_blackout_is_the_end_of_every_period() {
        let line =
            Impairment { blackout_every: Nanos::from_secs(4), blackout: Nanos::from_secs(1), ..Impairment::default() };
        for (ms, fate) in fates(1, 0, Direction::ToClient, &line).into_iter().enumerate() {
            assert_eq!(fate == Fate::BlackedOut, ms % 4_000 >= 3_000, "{ms} ms");
        }
    }

    #[test]
    fn a_narrow_line_carries_what_it_can_and_loses_the_rest() {
        // 300 B a millisecond are asked of a line of 100 B a millisecond.
        let line = Impairment { bytes_per_s: Some(100_000), ..Impairment::default() };
        let fates = fates(1, 0, Direction::ToServer, &line);
        let carried = share(&fates, |fate| matches!(fate, Fate::Carried { .. }));
        assert!((carried - 1.0 / 3.0).abs() < 0.02, "{carried}");
        for (ms, fate) in fates.into_iter().enumerate() {
            if let Fate::Carried { at, .. } = fate {
                let waited = at.saturating_sub(Nanos::from_millis(ms as u64));
                assert!(waited <= QUEUE_MAX + Nanos::from_millis(3), "{waited:?}");
            }
        }
    }
}
