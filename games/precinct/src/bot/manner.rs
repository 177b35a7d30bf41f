//! Manner: what of a bot's play can be turned down, for it to be like recorded people.
//!
//! Bots are never tired: they run whenever they have somewhere to go, and fire whenever they see somebody. People stand about, and look.
//! At 1 nothing is drawn by chance, so bots that nobody has fitted play as ever.

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// For so many thoughts it is on its way or stands about: two seconds.
const STRETCH_THOUGHTS: u32 = 40;

/// How much a bot does of what it could.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Manner {
    /// Of the time, how much it is on its way [0 to 1].
    pub pace: f32,
    /// Of the thoughts in which it has somebody in its sights, in how many it pulls the trigger [0 to 1].
    pub shots: f32,
}

impl Default for Manner {
    fn default() -> Self {
        Self { pace: 1.0, shots: 1.0 }
    }
}

impl Manner {
    /// Whether it stands about from this thought on, as it did before or not.
    pub(super) fn stands(self, before: bool, thoughts: u32, rng: &mut Xoshiro256PlusPlus) -> bool {
        if self.pace >= 1.0 {
            return false;
        }
        if thoughts.is_multiple_of(STRETCH_THOUGHTS) { !rng.random_bool(self.pace.into()) } else { before }
    }

    pub(super) fn fires(self, rng: &mut Xoshiro256PlusPlus) -> bool {
        self.shots >= 1.0 || rng.random_bool(self.shots.into())
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngCore, SeedableRng};

    use super::*;

    #[test]
    fn a_bot_does_as_much_as_it_is_told_and_as_ever_if_it_is_told_nothing() {
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(1);
        let half = Manner { pace: 0.5, shots: 0.25 };
        let (mut is_standing, mut stands) = (false, 0);
        for thought in 0..40_000 {
            is_standing = half.stands(is_standing, thought, rng);
            stands += u32::from(is_standing);
        }
        assert!((18_000..22_000).contains(&stands), "{stands}");
        let shots = (0..10_000).filter(|_| half.fires(rng)).count();
        assert!((2_300..2_700).contains(&shots), "{shots}");
        let (mut one, mut same) = (Xoshiro256PlusPlus::seed_from_u64(2), Xoshiro256PlusPlus::seed_from_u64(2));
        let usual = Manner::default();
        assert!(!usual.stands(true, 40, &mut one) && usual.fires(&mut one));
        assert_eq!(one.next_u64(), same.next_u64(), "no chance was used");
    }
}
