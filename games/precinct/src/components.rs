//! What entities of Precinct are made of: the five components that clients are told, and the private
//! ones that several systems share.
//!
//! Replicated, in the order of their wire ids, with what one update of each costs:
//!
//! ```text
//! Pose       7 B   x, z 16 bits and y 13 bits in steps of 1 cm, yaw 8 bits in steps of 1.4 degrees
//! Vitals     1 B   health 0..=100 in 7 bits, alive 1 bit
//! Character  1 B   kind 1 bit, faction 2 bits, weapon 3 bits; written once, at the start of a life
//! Action     1 B   kind 2 bits, count 6 bits that wraps: a client plays what it has not played yet
//! Door       1 B   open 1 bit; of doors, which have a pose and nothing else
//! Lying      1 B   kind 3 bits; of gear on the ground, which has a pose and nothing else
//! ```
//!
//! Everything else about an entity stays in the server.

use bevy_ecs::component::Component;
use glam::Vec3;
use throng_pack::Pack;
use throng_query::nav::NavPoint;
use throng_replication::{Replicate, ecs::Placed};

use crate::{gear::GearKind, weapons::WeaponKind};

/// Half the width of a character, for shots and for what it can pass. (m)
pub const BODY_RADIUS_M: f32 = 0.4;
/// Feet to crown. (m)
pub const BODY_HEIGHT_M: f32 = 1.8;
/// Where a character sees and fires from, above its feet.
pub const EYE: Vec3 = Vec3::new(0.0, 1.6, 0.0);
/// What others aim at, above its feet.
pub const CHEST: Vec3 = Vec3::new(0.0, 1.2, 0.0);

/// Where somebody stands and looks.
#[derive(Component, Replicate, Debug, Clone, Copy, PartialEq, Pack)]
#[pack(name = "precinct.pose")]
pub struct Pose {
    #[replicate(min = -327.0, max = 327.0, step = 0.01)]
    pub x: f32,
    #[replicate(min = -20.0, max = 60.0, step = 0.01)]
    pub y: f32,
    #[replicate(min = -327.0, max = 327.0, step = 0.01)]
    pub z: f32,
    /// Radians; 0 looks along +z, a quarter turn along +x.
    #[replicate(angle, bits = 8)]
    pub yaw: f32,
}

impl Pose {
    pub fn new(feet: Vec3, yaw: f32) -> Self {
        Self { x: feet.x, y: feet.y, z: feet.z, yaw }
    }

    /// The point on the ground that the entity stands on.
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

/// Full health, in percent.
pub const HEALTH_MAX: u8 = 100;

/// How well somebody is. The truth itself, not a copy of it: damage is in whole percent.
#[derive(Component, Replicate, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.vitals")]
pub struct Vitals {
    #[pack(max = HEALTH_MAX)]
    #[replicate(bits = 7)]
    pub health: u8,
    pub alive: bool,
}

impl Vitals {
    pub const FULL: Self = Self { health: HEALTH_MAX, alive: true };
}

/// Who somebody is. Written at the start of a life.
#[derive(Component, Replicate, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.character")]
pub struct Character {
    pub npc: bool,
    pub faction: Faction,
    pub weapon: WeaponKind,
}

/// Which side somebody is on.
#[derive(Replicate, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.faction")]
pub enum Faction {
    /// All players.
    Agents,
    Rioters,
    Cleaners,
}

/// What somebody did last, so that clients can show it. Count and kind change together.
#[derive(Component, Replicate, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.action")]
pub struct Action {
    pub kind: ActionKind,
    #[replicate(bits = 6)]
    #[pack(max = 63)]
    pub count: u8,
}

#[derive(Replicate, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.action_kind")]
pub enum ActionKind {
    /// Nothing yet.
    Idle,
    Shot,
    Reloaded,
}

impl Action {
    pub const NONE: Self = Self { kind: ActionKind::Idle, count: 0 };

    /// Notes that an action of this kind happened once more.
    pub fn happened(&mut self, kind: ActionKind) {
        self.kind = kind;
        self.count = (self.count + 1) & 63;
    }
}

/// A door, whose place is its [`Pose`]. See [`crate::doors`].
#[derive(Component, Replicate, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.door")]
pub struct Door {
    pub open: bool,
}

/// A piece of gear on the ground, whose place is its [`Pose`]. See [`crate::ground`].
#[derive(Component, Replicate, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.lying")]
pub struct Lying {
    pub kind: GearKind,
}

/// Where an entity stands on the nav mesh: the server's own, exact counterpart of [`Pose`].
#[derive(Component, Debug, Clone, Copy, PartialEq, Pack)]
#[pack(name = "precinct.standing")]
pub struct Standing(pub NavPoint);

/// Index of an entity in the world's columns ([`crate::actors::Actors`]), kept for its whole life.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pack)]
#[pack(name = "precinct.slot")]
pub struct Slot(pub u16);

impl Slot {
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_as_small_as_the_drawing_says() {
        assert_eq!(<Pose as Replicate>::BYTES_MAX, 7);
        assert_eq!(<Vitals as Replicate>::BYTES_MAX, 1);
        assert_eq!(<Character as Replicate>::BYTES_MAX, 1);
        assert_eq!(<Action as Replicate>::BYTES_MAX, 1);
        assert_eq!(<Door as Replicate>::BYTES_MAX, 1);
        assert_eq!(<Lying as Replicate>::BYTES_MAX, 1);
    }

    #[test]
    fn action_counts_wrap() {
        let mut action = Action { kind: ActionKind::Idle, count: 63 };
        action.happened(ActionKind::Shot);
        assert_eq!(action, Action { kind: ActionKind::Shot, count: 0 });
    }
}
