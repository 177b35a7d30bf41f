//! Senses: what an NPC knows of its enemies, and the scratch in which looks around are answered.

use bevy_ecs::component::Component;
use glam::Vec3;
use throng_pack::Pack;
use throng_query::{nav::NavPoint, near::NearList};

use crate::components::Slot;

/// A tick at which something happened, or never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.moment")]
pub struct Moment(u32);

impl Moment {
    pub const NEVER: Self = Self(u32::MAX);

    pub fn at(tick: u32) -> Self {
        Self(tick)
    }

    /// Whether it happened in the last `ticks` ticks before `now`.
    pub fn within(self, now: u32, ticks: u32) -> bool {
        self != Self::NEVER && now.wrapping_sub(self.0) <= ticks
    }
}

/// What an NPC knows of its enemies. Written by looks around and by being hurt.
#[derive(Component, Debug, Clone, Copy, Pack)]
#[pack(name = "precinct.senses")]
pub struct Senses {
    pub target: Option<Slot>,
    /// Whether the target was in sight at the last look.
    pub visible: bool,
    /// Others of its faction, and enemies, within sight range at the last look (walls or not).
    pub friends: u8,
    pub enemies: u8,
    pub seen: Moment,
    pub seen_at: Option<NavPoint>,
    pub hurt: Moment,
    pub hurt_by: Option<Slot>,
    /// Last fired or was hit.
    pub fought: Moment,
}

impl Default for Senses {
    fn default() -> Self {
        Self {
            target: None,
            visible: false,
            friends: 0,
            enemies: 0,
            seen: Moment::NEVER,
            seen_at: None,
            hurt: Moment::NEVER,
            hurt_by: None,
            fought: Moment::NEVER,
        }
    }
}

impl Senses {
    pub fn was_hurt(&mut self, tick: u32, by: Slot) {
        self.hurt = Moment::at(tick);
        self.fought = self.hurt;
        self.hurt_by = Some(by);
    }
}

/// Scratch of a world's looks around, kept from tick to tick.
#[derive(Default)]
pub struct Sight {
    /// Slots of those whose turn it is this tick.
    pub askers: Vec<u32>,
    pub(super) near: NearList,
    /// Per line of sight asked: index of the asker, and whom it would see.
    pub(super) candidates: Vec<(usize, Slot)>,
    pub(super) lines: Vec<(Vec3, Vec3)>,
    pub(super) seen: Vec<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_is_never_recent() {
        assert!(!Moment::NEVER.within(0, u32::MAX));
        assert!(Moment::at(5).within(15, 10));
        assert!(!Moment::at(5).within(16, 10));
    }
}
