//! Traits: what each kind of creature can do and bear. The game's numbers, in one table.

use crate::components::Kind;

/// The numbers of a kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traits {
    /// Points of health at level 1.
    pub health: i32,
    /// Points that a blow takes at level 1.
    pub damage: i32,
    /// Between two blows. (ms)
    pub swing_ms: u32,
    /// How far it notices an enemy. (m)
    pub notice_m: f32,
    /// How fast it gives chase. (m/s)
    pub chase_m_per_s: f32,
}

/// No creature notices farther than this. (m)
pub const NOTICE_M_MAX: f32 = 30.0;
/// Levels are 1 to this.
pub const LEVEL_MAX: u8 = 60;
/// Within this somebody strikes. (m)
pub const REACH_M: f32 = 3.0;
/// What a node holds when it is full.
pub const NODE_STOCK: u16 = 20;
/// Each level adds so much to health and damage, of what level 1 has.
const PER_LEVEL: f32 = 0.03;

impl Traits {
    pub const fn of(kind: Kind) -> Self {
        let (health, damage, swing_ms, notice_m, chase_m_per_s) = match kind {
            Kind::Player => (220, 14, 1_500, 0.0, 7.5),
            Kind::Wolf => (90, 7, 1_200, 22.0, 7.0),
            Kind::Bandit => (130, 9, 1_600, 18.0, 5.5),
            Kind::Shaman => (100, 6, 2_000, 18.0, 5.0),
            Kind::Brute => (320, 16, 2_400, 25.0, 5.5),
            Kind::Stalker => (90, 15, 1_800, 14.0, 6.5),
            Kind::Howler => (100, 6, 1_800, 20.0, 5.5),
            Kind::Plaguebearer => (120, 6, 1_600, 16.0, 4.5),
            Kind::Guard => (600, 30, 1_200, 30.0, 7.5),
            Kind::Banker => (400, 4, 3_000, 0.0, 0.0),
            Kind::Door | Kind::Node | Kind::Trap | Kind::Totem => (1, 0, 1_000, 0.0, 0.0),
        };
        Self { health, damage, swing_ms, notice_m, chase_m_per_s }
    }

    pub fn health_at(&self, level: u8) -> i32 {
        (self.health as f32 * grown(level)) as i32
    }

    pub fn damage_at(&self, level: u8) -> i32 {
        (self.damage as f32 * grown(level)) as i32
    }
}

fn grown(level: u8) -> f32 {
    1.0 + PER_LEVEL * f32::from(level.saturating_sub(1))
}

const _: () =
    assert!(Traits::of(Kind::Guard).notice_m <= NOTICE_M_MAX && Traits::of(Kind::Brute).notice_m <= NOTICE_M_MAX);
