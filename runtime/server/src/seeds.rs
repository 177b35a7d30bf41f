//! Seeds: where the chance of worlds begins to which nobody has given a seed.
//!
//! They follow from the seed of the server's surroundings: of the operating system's randomness on a real host, so nobody
//! foretells them, and of a simulation's seed there, so it plays the same game again. They are of another stream than the
//! secrets of the handshake, and neither says anything of the other.

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// The handshake has the first one.
const STREAM: u64 = 1;

/// Seeds of worlds, one after the other.
pub(crate) struct Seeds(ChaCha20Rng);

impl Seeds {
    pub fn new(seed: [u8; 32]) -> Self {
        let mut rng = ChaCha20Rng::from_seed(seed);
        rng.set_stream(STREAM);
        Self(rng)
    }

    pub fn draw(&mut self) -> u64 {
        self.0.next_u64()
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
