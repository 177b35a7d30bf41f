//! Manner: what of a bot's play can be turned up and down, for it to be like recorded people.
//!
//! A bot runs whenever it has somewhere to go, throws whatever its plan has a use for, and aims as well as its hand can. People stand
//! about, keep their grenades, and miss more or less. At 1 nothing is drawn by chance, so bots that nobody has fitted play as ever.

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::time::Nanos;

/// For so long it is on its way or stands about (ms).
const STRETCH_MS: u64 = 2_000;

/// How a bot does what it does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Manner {
    /// Of the time in which it has somewhere to go, how much it goes [0 to 1].
    pub pace: f32,
    /// By how much it misses what it aims at, of what it does anyhow [>= 0]. Somebody takes so many hits, so who misses more shoots more.
    pub miss: f32,
    /// Of the rounds, in how many it throws what it has [0 to 1].
    pub throws: f32,
}

impl Default for Manner {
    fn default() -> Self {
        Self { pace: 1.0, miss: 1.0, throws: 1.0 }
    }
}

impl Manner {
    /// Whether it throws anything in the round that begins.
    pub fn throws(self, rng: &mut Xoshiro256PlusPlus) -> bool {
        self.throws >= 1.0 || rng.random_bool(self.throws.into())
    }
}

/// Whether it goes or stands about now.
#[derive(Debug, Default)]
pub struct Dawdling {
    is_standing: bool,
    until: Nanos,
}

impl Dawdling {
    pub fn stands(&mut self, now: Nanos, manner: Manner, rng: &mut Xoshiro256PlusPlus) -> bool {
        if manner.pace >= 1.0 {
            return false;
        }
        if now >= self.until {
            self.is_standing = !rng.random_bool(manner.pace.into());
            self.until = now + Nanos::from_millis(STRETCH_MS);
        }
        self.is_standing
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngCore, SeedableRng};

    use super::*;

    #[test]
    fn a_bot_does_as_much_as_it_is_told_and_as_ever_if_it_is_told_nothing() {
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(1);
        let (told, mut dawdling) = (Manner { pace: 0.5, throws: 0.25, ..Manner::default() }, Dawdling::default());
        let stands = (0..40_000).filter(|step| dawdling.stands(Nanos::from_millis(step * 50), told, rng)).count();
        assert!((18_000..22_000).contains(&stands), "{stands}");
        let throws = (0..10_000).filter(|_| told.throws(rng)).count();
        assert!((2_300..2_700).contains(&throws), "{throws}");
        let (mut one, mut same) = (Xoshiro256PlusPlus::seed_from_u64(2), Xoshiro256PlusPlus::seed_from_u64(2));
        let usual = Manner::default();
        assert!(!dawdling.stands(Nanos::from_secs(9_999), usual, &mut one) && usual.throws(&mut one));
        assert_eq!(one.next_u64(), same.next_u64(), "no chance was used");
    }
}
