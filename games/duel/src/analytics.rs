//! Analytics: what is told of matches to those who balance them. See `docs/guide/analytics.md`.
//!
//! A match: a round a minute or two, and up to ten kills in it. Its world is the match.

use throng::analytics;

use crate::{
    components::RoundEnd,
    weapons::{BodyPart, WeaponKind},
};

analytics!(
    /// A round is over.
    pub RoundWon = "round.won", 1 { by_attackers: bool, end: &'static str, wins_one: u8, wins_two: u8, alive: u32 }
);

analytics!(
    /// Somebody was shot dead, by seats: 0 to 4 are team one's.
    pub Kill = "kill", 1 { by: u8, victim: u8, weapon: &'static str, part: &'static str }
);

/// How a round ended, as readers see it.
pub const fn end_name(end: RoundEnd) -> &'static str {
    match end {
        RoundEnd::AttackersEliminated => "attackers_eliminated",
        RoundEnd::DefendersEliminated => "defenders_eliminated",
        RoundEnd::SpikeExploded => "spike_exploded",
        RoundEnd::SpikeDefused => "spike_defused",
        RoundEnd::TimeRanOut => "time_ran_out",
    }
}

/// A weapon, as readers see it.
pub const fn weapon_name(weapon: WeaponKind) -> &'static str {
    match weapon {
        WeaponKind::Pistol => "pistol",
        WeaponKind::Submachine => "submachine",
        WeaponKind::Rifle => "rifle",
        WeaponKind::Marksman => "marksman",
    }
}

/// What was hit, as readers see it.
pub const fn part_name(part: BodyPart) -> &'static str {
    match part {
        BodyPart::Body => "body",
        BodyPart::Head => "head",
        BodyPart::Leg => "leg",
    }
}
