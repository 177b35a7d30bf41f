//! Seeds: where the chance of worlds begins to which nobody has given a seed.
//!
//! They follow from the seed of the server's surroundings: of the operating system's randomness on a real host, so nobody
//! foretells them, and of a simulation's seed there, so it plays the same game again. They are of another stream than the
//! secrets of the handshake, and neither says anything of the other.

use std::collections::VecDeque;

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// The handshake has the first one.
const STREAM: u64 = 1;

/// Draws that are remembered: more than any game makes before its server begins.
pub(crate) const DRAWN_MAX: usize = 4_096;

/// Seeds of worlds, one after the other.
pub(crate) struct Seeds {
    rng: ChaCha20Rng,
    /// What was drawn, for a recording: worlds may be made from it in a way that nobody else writes down.
    drawn: Vec<u64>,
    /// What is drawn once more, before anything new.
    again: VecDeque<u64>,
}

impl Seeds {
    pub fn new(seed: [u8; 32]) -> Self {
        let mut rng = ChaCha20Rng::from_seed(seed);
        rng.set_stream(STREAM);
        Self { rng, drawn: Vec::new(), again: VecDeque::new() }
    }

    /// From now on these are drawn first, as another server has drawn them.
    pub fn draw_again(&mut self, draws: &[u64]) {
        self.again = draws.iter().copied().collect();
    }

    pub fn draw(&mut self) -> u64 {
        let seed = self.again.pop_front().unwrap_or_else(|| self.rng.next_u64());
        if self.drawn.len() < DRAWN_MAX {
            self.drawn.push(seed);
        }
        seed
    }

    /// In the order in which they were drawn.
    pub fn drawn(&self) -> &[u64] {
        &self.drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_surroundings_give_the_same_seeds_and_others_give_others() {
        let draw = |seed: u8| {
            let mut seeds = Seeds::new([seed; 32]);
            [(); 4].map(|()| seeds.draw())
        };
        assert_eq!(draw(1), draw(1));
        assert!(draw(1).iter().all(|seed| !draw(2).contains(seed)));
        let mut of_the_handshake = ChaCha20Rng::from_seed([1; 32]);
        assert!([(); 8].map(|()| of_the_handshake.next_u64()).iter().all(|secret| !draw(1).contains(secret)));
    }
}
