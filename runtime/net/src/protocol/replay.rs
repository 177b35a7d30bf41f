//! The replay window: which sequences of a link have been taken already.
//!
//! A bit per sequence for the newest 256; whatever is older counts as taken. At 20 packets a second the
//! window reaches back 12 s, at 128 a second 2 s, far beyond any reordering a live path shows.
//!
//! The first sequence may be any number: links start theirs at random (see `link`). 48 bytes, no allocation.

/// How many of the newest sequences are told apart.
pub const WINDOW_PACKETS: u64 = 256;

const WORDS: usize = (WINDOW_PACKETS / 64) as usize;

/// Says for every sequence, once, that it is new.
#[derive(Clone, Debug, Default)]
pub struct ReplayWindow {
    /// `None` until the first packet.
    newest: Option<u64>,
    /// Ring of bits: sequence `s` is bit `s % 256`. Only those within the window mean anything.
    taken: [u64; WORDS],
}

impl ReplayWindow {
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a packet with this sequence may still be taken. Ask before the cipher runs: it is cheap.
    pub fn is_fresh(&self, sequence: u64) -> bool {
        let Some(newest) = self.newest else {
            return true;
        };
        if sequence > newest {
            return true;
        }
        newest - sequence < WINDOW_PACKETS && !self.bit(sequence)
    }

    /// Takes a sequence. Call only for a packet that authenticated, or forgers would move the window.
    pub fn take(&mut self, sequence: u64) {
        match self.newest {
            Some(newest) if sequence <= newest => {}
            Some(newest) => self.advance(newest, sequence),
            None => self.newest = Some(sequence),
        }
        self.taken[Self::word(sequence)] |= 1 << (sequence % 64);
    }

    /// The newest sequence taken so far.
    pub fn newest(&self) -> Option<u64> {
        self.newest
    }

    fn advance(&mut self, newest: u64, to: u64) {
        if to - newest >= WINDOW_PACKETS {
            self.taken = [0; WORDS];
        } else {
            // The skipped sequences reuse the bits of those that just left the window.
            for sequence in newest + 1..=to {
                self.taken[Self::word(sequence)] &= !(1 << (sequence % 64));
            }
        }
        self.newest = Some(to);
    }

    fn bit(&self, sequence: u64) -> bool {
        self.taken[Self::word(sequence)] & 1 << (sequence % 64) != 0
    }

    fn word(sequence: u64) -> usize {
        (sequence % WINDOW_PACKETS / 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// Every sequence is taken at most once, exactly as a set that forgets nothing would say within the
    /// window. A tenth of the walks run into `u64::MAX`.
    fn check_against_a_set(seed: u64, sequences: usize) {
        const WALK: usize = 1_000;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        for walk in 0..sequences / WALK {
            let mut window = ReplayWindow::new();
            let mut model: HashSet<u64> = HashSet::new();
            let mut newest: Option<u64> = None;
            let mut head = if walk % 10 == 0 { u64::MAX - rng.random_range(0..2_000) } else { rng.random() };
            if walk % 10 == 1 {
                head = rng.random_range(0..300);
            }
            for _ in 0..WALK {
                head = match rng.random_range(0..100) {
                    0..70 => head.saturating_add(1),
                    70..90 => head.saturating_add(rng.random_range(0..40)),
                    90..99 => head,
                    _ => head.saturating_add(rng.random_range(0..1_000)),
                };
                let sequence = match rng.random_range(0..10) {
                    0..6 => head,
                    6..9 => head.saturating_sub(rng.random_range(0..300)),
                    _ => head.saturating_sub(rng.random_range(250..260)),
                };
                let in_window = newest.is_none_or(|newest| sequence > newest || newest - sequence < WINDOW_PACKETS);
                let expect = in_window && !model.contains(&sequence);
                assert_eq!(window.is_fresh(sequence), expect, "seed {seed}, walk {walk}, sequence {sequence}");
                if expect {
                    window.take(sequence);
                    assert!(!window.is_fresh(sequence), "taken twice: {sequence}");
                    model.insert(sequence);
                    newest = newest.max(Some(sequence));
                }
                assert_eq!(window.newest(), newest);
            }
        }
    }

    #[test]
    fn a_million_sequences_agree_with_a_set() {
        check_against_a_set(1, 1_000_000);
    }

    #[test]
    #[ignore = "the full size: 1e7 sequences"]
    fn r07_ten_million_sequences_agree_with_a_set() {
        check_against_a_set(2, 10_000_000);
    }

    #[test]
    fn the_last_sequence_of_all_is_taken_once() {
        let mut window = ReplayWindow::new();
        for sequence in [u64::MAX - 300, u64::MAX, u64::MAX - 255, u64::MAX - 1] {
            assert!(window.is_fresh(sequence), "{sequence}");
            window.take(sequence);
            assert!(!window.is_fresh(sequence), "{sequence}");
        }
        assert!(!window.is_fresh(u64::MAX - 256), "just outside the window");
        assert!(!window.is_fresh(0));
    }
}
