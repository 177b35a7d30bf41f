//! Impairment: what a bad network does to datagrams, the same way again for the same seed.
//!
//! The fate of a datagram follows from the seed, both ends, its number between them and the time it was sent at, and
//! from nothing else: not from the order in which threads send, nor from what became of others (but for a narrow line,
//! where those before it take its place). [`super::memory`] delivers by it on a virtual clock, the relay of
//! `throng-lab` between real sockets.
//!
//! Cost: some 200 ns a datagram, most of it for the dice. Allocates nothing.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use throng_platform::time::Nanos;

/// What a line with a bandwidth keeps waiting at most, as time; more is lost, as in a router with a short queue.
const QUEUE_MAX: Nanos = Nanos::from_millis(200);

/// What one direction does to datagrams. The default does nothing: they arrive at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Impairment {
    /// Share of datagrams that never arrive [0 to 1].
    pub loss: f64,
    /// Share that arrives twice, the copy with a jitter of its own [0 to 1].
    pub duplication: f64,
    /// Share that takes `reorder_delay` longer, so that later ones overtake it [0 to 1].
    pub reordering: f64,
    pub reorder_delay: Nanos,
    /// Share that arrives with one bit turned over [0 to 1].
    pub corruption: f64,
    /// How long each takes.
    pub delay: Nanos,
    /// Added to the delay, drawn evenly from zero to this. Enough of it changes the order, too.
    pub jitter: Nanos,
    /// What the line carries from one end to the other [bytes/s]; `None` = any amount.
    pub bytes_per_s: Option<u64>,
    /// In the last `blackout` of every `blackout_every` since the start nothing arrives; zero = never.
    pub blackout_every: Nanos,
    pub blackout: Nanos,
}

impl Impairment {
    /// A line that does nothing.
    pub const NONE: Self = Self {
        loss: 0.0,
        duplication: 0.0,
        reordering: 0.0,
        reorder_delay: Nanos::ZERO,
        corruption: 0.0,
        delay: Nanos::ZERO,
        jitter: Nanos::ZERO,
        bytes_per_s: None,
        blackout_every: Nanos::ZERO,
        blackout: Nanos::ZERO,
    };

    /// A player's bad line: it loses this share each way [0 to 1] at 80 ms there and back, and brings others late, twice
    /// and in another order.
    pub const fn bad(loss: f64) -> Self {
        Self {
            loss,
            duplication: 0.02,
            reordering: 0.1,
            reorder_delay: Nanos::from_millis(60),
            delay: Nanos::from_millis(40),
            jitter: Nanos::from_millis(20),
            ..Self::NONE
        }
    }

    fn is_black(&self, now: Nanos) -> bool {
        self.blackout > Nanos::ZERO
            && now.0 % self.blackout_every.0.max(1) >= self.blackout_every.saturating_sub(self.blackout).0
    }
}

impl Default for Impairment {
    fn default() -> Self {
        Self::NONE
    }
}

/// What becomes of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives, and its copy if there is one; a turned bit is one of both.
    Carried {
        at: Nanos,
        copy_at: Option<Nanos>,
        is_held_back: bool,
        turned_bit: Option<TurnedBit>,
    },
    Lost,
    /// Sent during a blackout.
    BlackedOut,
    /// The line is too narrow for what was sent before it.
    QueueFull,
}

/// A bit of a datagram, drawn before its length was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnedBit(u32);

impl TurnedBit {
    /// Turns the bit over. Nothing happens to a datagram without bits.
    pub fn apply(self, datagram: &mut [u8]) {
        if !datagram.is_empty() {
            let bit = self.0 as usize % (datagram.len() * 8);
            datagram[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// The way from one end to another.
#[derive(Debug)]
pub struct Way {
    /// Seed and ends; the place for a datagram's number is left open.
    key: [u8; 32],
    /// Datagrams so far.
    number: u64,
    /// When the line has sent what it was given.
    free_at: Nanos,
}

impl Way {
    /// Ends are numbers of any kind that tell them apart.
    pub fn new(seed: u64, from: u64, to: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&from.to_le_bytes());
        key[16..24].copy_from_slice(&to.to_le_bytes());
        Self { key, number: 0, free_at: Nanos::ZERO }
    }

    /// Datagrams that went this way so far.
    pub fn sent(&self) -> u64 {
        self.number
    }

    /// The fate of the next datagram, which is sent at `now` (since the start).
    pub fn carry(&mut self, now: Nanos, size_bytes: usize, impairment: &Impairment) -> Fate {
        self.key[24..].copy_from_slice(&self.number.to_le_bytes());
        self.number += 1;
        let mut dice = ChaCha8Rng::from_seed(self.key);
        // Always the same draws in the same order, so that a change of one share leaves the others' datagrams alone.
        let [lost, doubled, held_back, corrupted]: [f64; 4] = dice.random();
        let ([jitter, copy_jitter], bit): ([f64; 2], u32) = dice.random();

        if impairment.is_black(now) {
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
        let is_held_back = held_back < impairment.reordering;
        let extra = if is_held_back { impairment.reorder_delay } else { Nanos::ZERO };
        let arrives =
            |jitter: f64| sent_at + impairment.delay + extra + Nanos((impairment.jitter.0 as f64 * jitter) as u64);
        Fate::Carried {
            at: arrives(jitter),
            copy_at: (doubled < impairment.duplication).then(|| arrives(copy_jitter)),
            is_held_back,
            turned_bit: (corrupted < impairment.corruption).then_some(TurnedBit(bit)),
        }
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
        ..Impairment::NONE
    };

    /// The fates of 10,000 datagrams, one a millisecond.
    fn fates(seed: u64, from: u64, to: u64, impairment: &Impairment) -> Vec<Fate> {
        let mut way = Way::new(seed, from, to);
        (0..10_000).map(|ms| way.carry(Nanos::from_millis(ms), 300, impairment)).collect()
    }

    fn share(fates: &[Fate], is_so: impl Fn(&Fate) -> bool) -> f64 {
        fates.iter().filter(|fate| is_so(fate)).count() as f64 / fates.len() as f64
    }

    #[test]
    fn a_seed_decides_and_nothing_else_does() {
        let first = fates(7, 3, 9, &BAD);
        assert_eq!(first, fates(7, 3, 9, &BAD));
        for other in [fates(8, 3, 9, &BAD), fates(7, 4, 9, &BAD), fates(7, 9, 3, &BAD)] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn shares_are_as_asked() {
        let fates = fates(1, 0, 9, &BAD);
        let check = |found: f64, expect: f64| assert!((found - expect).abs() < 0.02, "{found} is not {expect}");
        check(share(&fates, |fate| *fate == Fate::Lost), 0.2);
        check(share(&fates, |fate| matches!(fate, Fate::Carried { copy_at: Some(_), .. })), 0.8 * 0.05);
        check(share(&fates, |fate| matches!(fate, Fate::Carried { is_held_back: true, .. })), 0.8 * 0.3);
        check(share(&fates, |fate| matches!(fate, Fate::Carried { turned_bit: Some(_), .. })), 0.8 * 0.01);
    }

    #[test]
    fn more_loss_leaves_the_fate_of_those_that_arrive_alone() {
        let (less, more) = (Impairment { loss: 0.1, ..BAD }, BAD);
        let both = fates(1, 0, 9, &less).into_iter().zip(fates(1, 0, 9, &more));
        for (less, more) in both {
            assert!(more == less || more == Fate::Lost);
        }
    }

    #[test]
    fn a_turned_bit_is_one_bit_of_whatever_length() {
        for (bit, len) in [(0, 1), (7, 1), (8, 1), (u32::MAX, 3), (12_345, 1_200)] {
            let mut datagram = vec![0; len];
            TurnedBit(bit).apply(&mut datagram);
            assert_eq!(datagram.iter().map(|byte: &u8| byte.count_ones()).sum::<u32>(), 1, "bit {bit} of {len} bytes");
        }
        TurnedBit(3).apply(&mut []);
    }

    #[test]
    fn a_good_line_does_nothing() {
        for (ms, fate) in fates(1, 0, 9, &Impairment::default()).into_iter().enumerate() {
            let at = Nanos::from_millis(ms as u64);
            assert_eq!(fate, Fate::Carried { at, copy_at: None, is_held_back: false, turned_bit: None });
        }
    }

    #[test]
    fn a_blackout_is_the_end_of_every_period() {
        let line =
            Impairment { blackout_every: Nanos::from_secs(4), blackout: Nanos::from_secs(1), ..Impairment::default() };
        for (ms, fate) in fates(1, 0, 9, &line).into_iter().enumerate() {
            assert_eq!(fate == Fate::BlackedOut, ms % 4_000 >= 3_000, "{ms} ms");
        }
    }

    #[test]
    fn a_narrow_line_carries_what_it_can_and_loses_the_rest() {
        // 300 B a millisecond are asked of a line of 100 B a millisecond.
        let line = Impairment { bytes_per_s: Some(100_000), ..Impairment::default() };
        let fates = fates(1, 0, 9, &line);
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
