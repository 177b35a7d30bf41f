//! Chance: the dice of a match. Nobody foretells them from what they have shown.
//!
//! Where shots stray is seen by everybody, and from some hundred draws of a generator that is made to be fast all that
//! follow can be computed: a cheat would know the next shot's spread, and who gets the spike. So a match has ChaCha with
//! eight rounds, whose output says nothing of its key. The key is the seed that the match was asked for with, and the
//! world's id: a lobby that is made anew asks with the same seeds again, and never for the same world.
//!
//! Every draw of a match is of these; its `WorldRng` is not used. A seed that an operator gives is known to whoever knows
//! the settings; without one it is drawn by the server. Sketch of the cost: some 10 ns for a draw.

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use throng::prelude::*;
use throng_replication::table_resource;

/// What a match draws from.
pub struct Chance(ChaCha8Rng);

table_resource!(Chance);

impl Chance {
    /// Of the world with this seed and id.
    pub fn new(seed: u64, world: WorldId) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&(world.index() as u64).to_le_bytes());
        key[16..20].copy_from_slice(&world.generation().to_le_bytes());
        Self(ChaCha8Rng::from_seed(key))
    }
}

/// The dice as they are packed.
#[derive(Pack, Debug, Clone, Copy)]
#[pack(name = "duel.chance")]
pub struct SavedChance {
    key: [u8; 32],
    #[pack(fixed)]
    stream: u64,
    /// How many words were drawn: lower half, upper half.
    drawn: [u64; 2],
}

impl Chance {
    pub fn save(&self) -> SavedChance {
        let drawn = self.0.get_word_pos();
        let drawn = [drawn as u64, (drawn >> 64) as u64];
        SavedChance { key: self.0.get_seed(), stream: self.0.get_stream(), drawn }
    }

    pub fn load(saved: SavedChance) -> Self {
        let mut dice = ChaCha8Rng::from_seed(saved.key);
        dice.set_stream(saved.stream);
        // What lies beyond the generator's period cannot have been drawn.
        let [low, high] = saved.drawn.map(u128::from);
        dice.set_word_pos((high << 64 | low) & WORD_POSITION_MAX);
        Self(dice)
    }
}

/// A position has 68 bits: a counter of 64, and 16 words in a block.
const WORD_POSITION_MAX: u128 = (1 << 68) - 1;

impl StateHash for Chance {
    fn hash_state(&self, hasher: &mut StateHasher) {
        let drawn = self.0.get_word_pos();
        hasher.write_bytes(&self.0.get_seed());
        hasher.write_u64(drawn as u64);
        hasher.write_u64((drawn >> 64) as u64);
    }
}

impl RngCore for Chance {
    fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(seed: u64, world: WorldId) -> [u64; 4] {
        let mut chance = Chance::new(seed, world);
        [(); 4].map(|()| chance.next_u64())
    }

    /// Promise: dice go on from wherever they are, in the middle of a block too.
    #[test]
    fn dice_that_were_packed_go_on() {
        let mut chance = Chance::new(7, WorldId::new(3, 0));
        for drawn in 0..100 {
            let mut again = Chance::load(chance.save());
            let mut before = Chance(chance.0.clone());
            assert_eq!([(); 40].map(|()| again.next_u32()), [(); 40].map(|()| before.next_u32()), "after {drawn}");
            _ = chance.next_u32();
        }
    }

    /// Promise: the same match draws the same, and a world with the same seed in another place, or in the same place
    /// later, does not.
    #[test]
    fn seed_and_world_make_the_draws() {
        let world = WorldId::new(3, 0);
        assert_eq!(draws(7, world), draws(7, world));
        for other in [draws(8, world), draws(7, WorldId::new(4, 0)), draws(7, world.successor())] {
            assert!(draws(7, world).iter().all(|draw| !other.contains(draw)));
        }
    }
}
