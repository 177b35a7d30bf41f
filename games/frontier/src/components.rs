//! What clients are told about entities of Frontier: seven components, and how much of each goes over the wire.
//!
//! In the order of their wire ids, with what one update of each costs:
//!
//! ```text
//! Pose       6 B   x, z 20 bits each in steps of 1 cm, heading 8 bits in steps of 1.4 degrees
//! Vitals     1 B   health 0..=100 in 7 bits, alive 1 bit
//! Points     2 B   health in points; only where throttles are off, to show what they save
//! Animation  1 B   kind 4 bits, count 4 bits that wraps: a client plays what it has not played yet
//! Effects    1 B   eight flags
//! Look       2 B   kind 5 bits, level 6 bits, variety 5 bits; written once
//! Name      25 B   players alone, and at most; written when it changes
//! ```
//!
//! Height is not among them: everybody stands on the ground, and the ground is part of the map that every client has
//! ([`Landscape::height_at`](crate::landscape::Landscape::height_at)). Everything else about an entity stays in the
//! server, in the columns of [`crate::actors`], from which [`crate::publish`] writes these components when they change.

use bevy_ecs::component::Component;
use throng_pack::Pack;
use throng_replication::{Replicate, Text, ecs::Placed};

use crate::landscape::HALF_SIDE_M;

/// Entities come into view at this distance. (m)
pub const ENTER_M: f32 = 290.0;
/// And go out of it at this. (m)
pub const LEAVE_M: f32 = 300.0;

/// Where somebody is and looks.
#[derive(Component, Replicate, Pack, Debug, Clone, Copy, PartialEq)]
#[replicate(name = "pose")]
#[pack(name = "frontier.pose")]
pub struct Pose {
    /// Metres from the middle of the landscape, along +x.
    #[replicate(min = -HALF_SIDE_M, max = HALF_SIDE_M, step = 0.01)]
    pub x: f32,
    #[replicate(min = -HALF_SIDE_M, max = HALF_SIDE_M, step = 0.01)]
    pub z: f32,
    /// Radians; 0 looks along +z, a quarter turn along +x.
    #[replicate(angle, bits = 8)]
    pub heading: f32,
}

impl Placed for Pose {
    fn place(&self) -> [f32; 2] {
        [self.x, self.z]
    }
}

/// Full health, in percent.
pub const HEALTH_MAX: u8 = 100;

/// How well somebody is. Changes only when the whole percentage does, however often points are lost and regenerated.
#[derive(Component, Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[replicate(name = "vitals")]
#[pack(name = "frontier.vitals")]
pub struct Vitals {
    /// Percent of the points that it may have; rounded up, so that the living have at least 1.
    #[replicate(bits = 7)]
    pub health: u8,
    pub alive: bool,
}

impl Vitals {
    pub const FULL: Self = Self { health: HEALTH_MAX, alive: true };
}

/// Health in points, with every change of them: what is sent where nobody has thought about it. Part of an entity only
/// with [`FrontierSettings::no_throttles`](crate::FrontierSettings::no_throttles).
#[derive(Component, Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[replicate(name = "points")]
#[pack(name = "frontier.points")]
pub struct Points {
    pub points: u16,
}

/// What somebody did last. Count and kind change together; rules send it at most once a second.
#[derive(Component, Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[replicate(name = "animation")]
#[pack(name = "frontier.animation")]
pub struct Animation {
    pub kind: Gesture,
    #[replicate(bits = 4)]
    pub count: u8,
}

impl Animation {
    pub const NONE: Self = Self { kind: Gesture::Stand, count: 0 };

    /// Notes that a gesture was made once more.
    pub fn play(&mut self, kind: Gesture) {
        self.kind = kind;
        self.count = (self.count + 1) & 15;
    }
}

/// What a body does. At most 16, for they have 4 bits.
#[derive(Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gesture {
    /// Nothing yet.
    #[default]
    Stand,
    Swing,
    Flinch,
    Cast,
    Sing,
    Gather,
    Die,
    Rise,
    Wave,
    Cheer,
    Shout,
    Bow,
    Rampage,
    Open,
    Spare1,
    Spare2,
}

/// What lies on somebody.
#[derive(Component, Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[replicate(name = "effects")]
#[pack(name = "frontier.effects")]
pub struct Effects {
    /// Cannot move, strike or cast.
    pub stunned: bool,
    /// Moves at half its speed.
    pub snared: bool,
    /// Loses health, and passes it on to those beside it.
    pub diseased: bool,
    /// Strikes harder: a group's blessing.
    pub blessed: bool,
    /// Heals faster: a bard or a totem is near.
    pub soothed: bool,
    /// Carries an aura.
    pub singing: bool,
    /// Is unseen by those who do not look closely.
    pub sneaking: bool,
    /// Stands open: doors alone.
    pub open: bool,
}

/// What something is. Written once, with its entity.
#[derive(Component, Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[replicate(name = "look")]
#[pack(name = "frontier.look")]
pub struct Look {
    #[replicate(bits = 5)]
    pub kind: Kind,
    /// [1 to 60]
    #[replicate(bits = 6)]
    pub level: u8,
    /// Which of its kind's faces it has.
    #[replicate(bits = 5)]
    pub variety: u8,
}

/// The kinds of things in the landscape. At most 32, for they have 5 bits.
#[derive(Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Player,
    // Monsters: against players and townsfolk.
    /// Hunts in a pack.
    Wolf,
    /// Yells for help.
    Bandit,
    /// Heals its own and sets up totems.
    Shaman,
    /// Strikes everybody around it.
    Brute,
    /// Sneaks, and sets traps.
    Stalker,
    /// Its song makes its own stronger.
    Howler,
    /// Carries a disease.
    Plaguebearer,
    // Townsfolk: nobody's enemy but the monsters'.
    Guard,
    Banker,
    // Things.
    Door,
    /// Something to gather.
    Node,
    Trap,
    Totem,
}

impl Kind {
    /// Whether it attacks players and may be attacked by them.
    pub fn is_monster(self) -> bool {
        use Kind::*;
        matches!(self, Wolf | Bandit | Shaman | Brute | Stalker | Howler | Plaguebearer)
    }

    /// Whether it lives and dies: players, monsters and townsfolk.
    pub fn is_creature(self) -> bool {
        !matches!(self, Self::Door | Self::Node | Self::Trap | Self::Totem)
    }
}

/// Longest name of a player, in bytes.
pub const NAME_BYTES_MAX: usize = 24;

/// What a player is called.
#[derive(Component, Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[replicate(name = "name")]
#[pack(name = "frontier.name")]
pub struct Name {
    pub text: Text<NAME_BYTES_MAX>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_as_small_as_the_drawing_says() {
        assert_eq!(<Pose as Replicate>::BYTES_MAX, 6);
        assert_eq!(<Vitals as Replicate>::BYTES_MAX, 1);
        assert_eq!(<Points as Replicate>::BYTES_MAX, 2);
        assert_eq!(<Animation as Replicate>::BYTES_MAX, 1);
        assert_eq!(<Effects as Replicate>::BYTES_MAX, 1);
        assert_eq!(<Look as Replicate>::BYTES_MAX, 2);
        assert_eq!(<Name as Replicate>::BYTES_MAX, 1 + NAME_BYTES_MAX);
    }

    #[test]
    fn animation_counts_wrap() {
        let mut animation = Animation { kind: Gesture::Swing, count: 15 };
        animation.play(Gesture::Die);
        assert_eq!(animation, Animation { kind: Gesture::Die, count: 0 });
    }
}
