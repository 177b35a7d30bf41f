//! Ground: gear that lies there, for whoever takes it first.
//!
//! An NPC that a player fells leaves a piece, and a player that dies in the dark zone leaves all it had. Each piece that
//! lies is an entity, so clients in range see it, as [`Lying`](crate::components::Lying). It lies for [`LIES_MS`], then it ceases to be.
//! Unlike what [`crate::loot`] says of rounds and credits, nobody picks it up by walking: it is asked for.
//!
//! At most [`LYING_MAX`] in a world: what falls beyond that destroys the oldest, which is counted (`gear_crowded_out`).
//!
//! Systems note here what falls and what is taken, and [`tidy`](crate::handling::tidy) makes entities of it and takes
//! them away, at the end of the tick. It runs in ticks in which something is to be done; in others the two lists and
//! the oldest's time are looked at.

use std::collections::VecDeque;

use bevy_ecs::{component::Component, entity::Entity};
use glam::Vec3;
use throng_pack::{List, Pack};
use throng_replication::EntityLink;

use crate::gear::Gear;

/// How long a piece lies. (ms)
pub const LIES_MS: u32 = 60_000;
/// How near a player must be to take it. (m)
pub const REACH_M: f32 = 2.5;
/// Pieces that lie in a world at the same time.
pub const LYING_MAX: usize = 64;

/// Of an entity that lies on the ground: what it is.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.lies")]
pub struct Lies {
    pub gear: Gear,
}

/// The ground in a checkpoint.
#[derive(Debug, Clone, Default, Pack)]
#[pack(name = "precinct.ground")]
pub struct SavedGround {
    lying: List<SavedLying, LYING_MAX>,
}

#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "precinct.lying_until")]
struct SavedLying {
    until_tick: u32,
    #[pack(via = EntityLink)]
    entity: Entity,
}

/// What lies on the ground of a world, and what changes in this tick.
#[derive(Default)]
pub struct Ground {
    /// With the tick from which each is no more; the oldest first, since all lie equally long.
    lying: VecDeque<(u32, Entity)>,
    falls: Vec<(Vec3, Gear)>,
    taken: Vec<Entity>,
}

impl Ground {
    /// A piece falls. It lies there from the end of this tick on.
    pub fn fall(&mut self, feet: Vec3, gear: Gear) {
        self.falls.push((feet, gear));
    }

    /// Takes a piece away. False if somebody has done so in this tick already, or it lies there no more.
    pub fn take(&mut self, entity: Entity) -> bool {
        let Some(index) = self.lying.iter().position(|(_, lying)| *lying == entity) else { return false };
        self.lying.remove(index);
        self.taken.push(entity);
        true
    }

    /// Whether nothing is to be done in this tick.
    pub fn is_at_rest(&self, tick: u32) -> bool {
        let is_due = |(until_tick, _): &(u32, Entity)| *until_tick <= tick;
        self.falls.is_empty() && self.taken.is_empty() && !self.lying.front().is_some_and(is_due)
    }

    /// An entity that was taken away since this was last asked.
    pub fn next_taken(&mut self) -> Option<Entity> {
        self.taken.pop()
    }

    /// An entity that has lain for too long.
    pub fn next_expired(&mut self, tick: u32) -> Option<Entity> {
        self.lying.pop_front_if(|(until_tick, _)| *until_tick <= tick).map(|(_, entity)| entity)
    }

    /// What fell and is to lie there.
    pub fn next_fallen(&mut self) -> Option<(Vec3, Gear)> {
        self.falls.pop()
    }

    /// The oldest that lies there, if there is no room for another one.
    pub fn next_crowded_out(&mut self) -> Option<Entity> {
        (self.lying.len() >= LYING_MAX).then(|| self.lying.pop_front())?.map(|(_, entity)| entity)
    }

    /// Until which tick each piece lies; the oldest first.
    pub fn lying(&self) -> impl Iterator<Item = (u32, Entity)> {
        self.lying.iter().copied()
    }

    /// What is kept of it between two ticks, in which nothing falls and nothing is taken.
    pub fn save(&self) -> SavedGround {
        debug_assert!(self.falls.is_empty() && self.taken.is_empty(), "a tick tidies up");
        let mut saved = SavedGround::default();
        for &(until_tick, entity) in self.lying.iter().take(LYING_MAX) {
            let pushed = saved.lying.push(SavedLying { until_tick, entity });
            debug_assert!(pushed.is_ok(), "no more lie than are kept");
        }
        saved
    }

    pub fn load(&mut self, saved: SavedGround) {
        *self = Self::default();
        self.lying.extend(saved.lying.iter().map(|SavedLying { until_tick, entity }| (*until_tick, *entity)));
    }

    /// An entity lies there now, no shorter than those that do.
    pub fn lay(&mut self, entity: Entity, until_tick: u32) {
        self.lying.push_back((until_tick, entity));
    }
}
