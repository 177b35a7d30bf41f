//! What entities of a match are made of, as clients are told it.
//!
//! A match has ten player entities, one for each seat, from its first tick to its last, and one entity for all that is
//! of the match and nobody's: clock, score and smoke. What is to be hidden as a whole has an entity of its own: the spike,
//! and how the players of each team are. With what one update of each costs:
//!
//! ```text
//! of a player, told to its team, and to enemies while the fog of war lets them
//!   Pose     8 B   x 14 bits, z 13 and y 10 in steps of 1 cm, yaw 12 bits, pitch 9 in steps of 0.7 degrees, life 3
//!   Player   1 B   seat 4 bits, team 1, connected 1; written when somebody comes or goes
//!   Arms     1 B   weapon 2 bits, doing 2; that it fires is an event
//! of a team, told to it alone
//!   TeamVitals  9 B  of five, health 7 bits and armour 6; which team 1
//! of the match, told to everybody
//!   Clock    6 B   phase 3 bits, round 6, tick of its end 32
//!   Score    4 B   rounds of both 6 bits each, who attacks 1, how the last round ended 4, who lives 10
//!   Spike    8 B   kind 2 bits and at most place and tick; the attackers' alone until it is planted
//!   Clouds  75 B   up to ten of 59 bits: smoke rises above the walls, so everybody knows of it
//! ```
//!
//! What only its owner may know of a player comes as a message ([`Kit`](crate::protocol::Kit)). The dead are hidden
//! from enemies in the tick of their death. Everything else stays in the server. Of an enemy's [`Vitals`] a player is told
//! what its own hits have taken ([`HitConfirmed`](crate::protocol::HitConfirmed)), and by the score whether it lives.
//!
//! There are eight kinds, the most of which records say in one byte which are in them.

use glam::Vec3;
use throng::prelude::*;

use crate::{
    teams::{TEAM_SIZE, TeamId, place_in_team},
    weapons::WeaponKind,
};

/// Half of the map, along x and along z (m), with a metre to spare.
const HALF_X_M: f32 = 45.0;
const HALF_Z_M: f32 = 33.0;
/// Nobody gets higher (m).
const TOP_M: f32 = 6.0;

/// Where somebody stands and looks.
#[derive(Component, Replicate, Pack, Debug, Clone, Copy, PartialEq)]
#[pack(name = "duel.pose")]
pub struct Pose {
    #[replicate(min = -HALF_X_M, max = HALF_X_M, step = 0.01)]
    pub x: f32,
    /// Of the feet.
    #[replicate(min = 0.0, max = TOP_M, step = 0.01)]
    pub y: f32,
    #[replicate(min = -HALF_Z_M, max = HALF_Z_M, step = 0.01)]
    pub z: f32,
    /// Radians; 0 looks along +z, a quarter turn along +x.
    #[replicate(angle, bits = 12)]
    pub yaw: f32,
    /// Radians; up is positive.
    #[replicate(min = -1.6, max = 1.6, step = 0.0125)]
    pub pitch: f32,
    /// Its life, counted modulo [`Self::LIVES`]: where that changes the match has put it here, and it did not walk.
    #[replicate(bits = 3)]
    pub life: u8,
}

impl Pose {
    /// Lives that are told apart. More than anybody has between two poses that its client hears of.
    const LIVES: u32 = 1 << 3;

    /// Of who stands up for a life of this number.
    pub fn new(feet: Vec3, yaw: f32, life: u32) -> Self {
        Self { x: feet.x, y: feet.y, z: feet.z, yaw, pitch: 0.0, life: (life % Self::LIVES) as u8 }
    }

    pub fn feet(&self) -> Vec3 {
        Vec3::new(self.x, self.y, self.z)
    }

    pub fn set_feet(&mut self, feet: Vec3) {
        (self.x, self.y, self.z) = (feet.x, feet.y, feet.z);
    }
}

impl Placed for Pose {
    fn place(&self) -> [f32; 2] {
        [self.x, self.z]
    }
}

/// Whose seat it is. Seats stay for the whole match.
#[derive(Component, Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[pack(name = "duel.player")]
pub struct Player {
    #[replicate(bits = 4)]
    pub seat: u8,
    pub team: TeamId,
    /// Whether somebody plays it. A seat that nobody has is never alive.
    pub is_connected: bool,
}

/// Full health, in points.
pub const HEALTH_MAX: u8 = 100;

/// How well somebody is. Told to nobody as it is: [`TeamVitals`].
#[derive(Component, Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[pack(name = "duel.vitals")]
pub struct Vitals {
    pub health: u8,
    /// Points that armour still takes.
    pub armour: u8,
    pub is_alive: bool,
}

impl StateHash for Vitals {
    fn hash_state(&self, hasher: &mut StateHasher) {
        let Self { health, armour, is_alive } = *self;
        hasher.write_u64(u64::from(health) << 16 | u64::from(armour) << 8 | u64::from(is_alive));
    }
}

impl Vitals {
    /// Of a seat that does not play this round.
    pub const DEAD: Self = Self { health: 0, armour: 0, is_alive: false };
}

/// What a team is told of how well one of it is; who is dead has no health.
#[derive(Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[pack(name = "duel.condition")]
pub struct Condition {
    #[replicate(bits = 7)]
    pub health: u8,
    #[replicate(bits = 6)]
    pub armour: u8,
}

impl From<&Vitals> for Condition {
    fn from(&Vitals { health, armour, .. }: &Vitals) -> Self {
        Self { health, armour }
    }
}

/// How well the players of a team are.
#[derive(Component, Replicate, Pack, Debug, Clone, PartialEq, Eq)]
#[pack(name = "duel.team_vitals")]
pub struct TeamVitals {
    pub team: TeamId,
    /// By place in the team.
    pub members: ArrayVec<Condition, TEAM_SIZE>,
}

impl TeamVitals {
    /// Of a team in which nobody lives.
    pub fn dead(team: TeamId) -> Self {
        Self { team, members: ArrayVec::from([Condition::default(); TEAM_SIZE]) }
    }

    /// Of one of the team, by its seat.
    pub fn of(&self, seat: u8) -> Condition {
        self.members.get(place_in_team(seat)).copied().unwrap_or_default()
    }
}

/// What somebody has in its hands and does with them.
#[derive(Component, Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[pack(name = "duel.arms")]
pub struct Arms {
    pub weapon: WeaponKind,
    pub doing: Doing,
}

/// What hands are busy with.
#[derive(Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[pack(name = "duel.doing")]
pub enum Doing {
    Nothing,
    Loading,
    Planting,
    Defusing,
}

/// The phases of a match, in their order; from `Over` the next round begins with `Buy`.
#[derive(Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[pack(name = "duel.phase")]
pub enum Phase {
    /// Players come in; nobody can be hurt.
    WarmUp,
    /// Everybody buys and stays within the base of its side; nobody can be hurt.
    Buy,
    /// The round is played, and the spike is not planted.
    Live,
    /// The round is played, and the spike is planted.
    Planted,
    /// The round is over; nobody can be hurt.
    Over,
    /// The match is over: everybody goes back to the lobby at its end.
    MatchOver,
}

impl Phase {
    /// Whether players can be hurt: the phases in which positions and poses are kept.
    pub fn is_live(self) -> bool {
        matches!(self, Self::Live | Self::Planted)
    }
}

/// When what ends.
#[derive(Component, Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[pack(name = "duel.clock")]
pub struct Clock {
    pub phase: Phase,
    /// Rounds before this one.
    #[replicate(bits = 6)]
    pub round: u8,
    /// The tick of the world in which the phase ends by itself. While the spike is planted: in which it explodes.
    pub ends_tick: u32,
}

/// How a round can end.
#[derive(Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[pack(name = "duel.round_end")]
pub enum RoundEnd {
    AttackersEliminated,
    DefendersEliminated,
    SpikeExploded,
    SpikeDefused,
    TimeRanOut,
}

impl RoundEnd {
    pub const ALL: [Self; 5] = [
        Self::AttackersEliminated,
        Self::DefendersEliminated,
        Self::SpikeExploded,
        Self::SpikeDefused,
        Self::TimeRanOut,
    ];

    /// Whether the attackers have won by it.
    pub fn is_won_by_attackers(self) -> bool {
        matches!(self, Self::DefendersEliminated | Self::SpikeExploded)
    }
}

/// How the match stands.
#[derive(Component, Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[pack(name = "duel.score")]
pub struct Score {
    /// Rounds won.
    #[replicate(bits = 6)]
    pub wins_one: u8,
    #[replicate(bits = 6)]
    pub wins_two: u8,
    /// Who attacks in this half.
    pub attackers: TeamId,
    pub last_end: Option<RoundEnd>,
    /// Who lives, by seat: bit 0 is seat 0.
    #[replicate(bits = 10)]
    pub alive: u16,
}

/// The spike. Defenders hear of it when it is planted.
#[derive(Component, Replicate, Pack, Debug, Clone, Copy, PartialEq)]
#[pack(name = "duel.spike")]
pub enum Spike {
    /// Between two rounds, and for good once it has exploded or was defused.
    Gone,
    /// By whom, by seat.
    Carried {
        #[replicate(bits = 4)]
        seat: u8,
    },
    /// Its carrier has died. The first attacker who walks over it has it.
    Dropped {
        #[replicate(min = -HALF_X_M, max = HALF_X_M, step = 0.01)]
        x: f32,
        #[replicate(min = -HALF_Z_M, max = HALF_Z_M, step = 0.01)]
        z: f32,
    },
    Planted {
        #[replicate(min = -HALF_X_M, max = HALF_X_M, step = 0.01)]
        x: f32,
        #[replicate(min = -HALF_Z_M, max = HALF_Z_M, step = 0.01)]
        z: f32,
        explodes_tick: u32,
    },
}

/// Clouds at once, at most. A smoke that would be one more displaces the oldest.
pub const CLOUDS_MAX: usize = 10;
/// Radius of a cloud (m).
pub const CLOUD_RADIUS_M: f32 = 3.5;
/// How high the middle of a cloud is above the ground (m).
pub const CLOUD_MIDDLE_M: f32 = 1.2;

/// A ball of smoke: nobody sees through it, shots go through it.
#[derive(Replicate, Pack, Debug, Clone, Copy, PartialEq)]
#[pack(name = "duel.cloud")]
pub struct Cloud {
    #[replicate(min = -HALF_X_M, max = HALF_X_M, step = 0.01)]
    pub x: f32,
    #[replicate(min = -HALF_Z_M, max = HALF_Z_M, step = 0.01)]
    pub z: f32,
    /// The tick in which it is gone.
    pub until_tick: u32,
}

impl Cloud {
    pub fn middle(&self) -> Vec3 {
        Vec3::new(self.x, CLOUD_MIDDLE_M, self.z)
    }
}

/// All smoke of the match, the oldest first.
#[derive(Component, Replicate, Pack, Debug, Clone, PartialEq, Default)]
#[pack(name = "duel.clouds")]
pub struct Clouds {
    pub clouds: ArrayVec<Cloud, CLOUDS_MAX>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_as_small_as_the_drawing_says() {
        assert_eq!(<Pose as Replicate>::BYTES_MAX, 8);
        assert_eq!(
            (<Player as Replicate>::BYTES_MAX, <TeamVitals as Replicate>::BYTES_MAX, <Arms as Replicate>::BYTES_MAX),
            (1, 9, 1)
        );
        assert_eq!(
            (<Clock as Replicate>::BYTES_MAX, <Score as Replicate>::BYTES_MAX, <Spike as Replicate>::BYTES_MAX),
            (6, 4, 8)
        );
        assert_eq!(<Clouds as Replicate>::BYTES_MAX, 75);
    }
}
