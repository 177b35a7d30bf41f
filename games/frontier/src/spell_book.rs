//! The spell book: how long each ability takes, how soon it can be cast again, and how far it reaches.

use crate::protocol::Ability;

/// The numbers of a spell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spell {
    pub cast_ms: u32,
    /// Until it can be cast again, from its end on.
    pub cool_ms: u32,
    /// How far its target may be; 0 for spells without one. (m)
    pub reach_m: u16,
}

impl Spell {
    pub const fn of(ability: Ability) -> Self {
        let (cast_ms, cool_ms, reach_m) = match ability {
            Ability::None => (0, 0, 0),
            Ability::Bolt => (1_500, 1_500, 60),
            Ability::Blast => (2_000, 8_000, 0),
            Ability::Taunt => (500, 6_000, 0),
            Ability::Heal => (2_000, 2_000, 35),
            Ability::Bless => (2_500, 30_000, 0),
            Ability::Sing => (500, 5_000, 0),
            Ability::Trap => (1_500, 20_000, 0),
            Ability::Totem => (2_000, 25_000, 0),
            Ability::Plague => (2_000, 15_000, 40),
            Ability::Stun => (500, 12_000, 30),
            Ability::Recall => (6_000, 120_000, 0),
        };
        Self { cast_ms, cool_ms, reach_m }
    }
}
