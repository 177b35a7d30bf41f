//! Stash: the chest in a hideout, in which its owner leaves gear.
//!
//! It belongs to the world and stays there when the owner leaves. Where it stands follows from the level, which clients
//! have, too; so nobody is told of it, and only what is in it is, to the owner.
//!
//! One entity in each hideout, which nothing looks at in a tick in which nobody asks.

use bevy_ecs::component::Component;
use glam::Vec3;
use throng_pack::{ArrayVec, Pack};
use throng_query::nav::NavPoint;

use crate::{
    gear::{Gear, GearList},
    level::Level,
    portals::Destination,
    portals::Portals,
};

/// Pieces that a chest holds.
pub const STASH_MAX: usize = 16;
/// How near its owner must stand. (m)
pub const REACH_M: f32 = 3.0;
/// From the portal to the hub: farther than one is taken from, on everybody's way out. (m)
const BESIDE_PORTAL: Vec3 = Vec3::new(8.0, 0.0, 8.0);
/// The chest stands on the walkable ground nearest to its planned place, at most so far away. (m)
const GROUND_M: f32 = 6.0;

/// What is in a chest.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq, Default, Pack)]
#[pack(name = "precinct.stash")]
pub struct Stash {
    #[pack(via = ArrayVec<Gear, STASH_MAX>)]
    pub gear: GearList<STASH_MAX>,
}

/// Where a level's chest stands.
pub fn place(level: &Level, portals: &Portals) -> NavPoint {
    let planned = portals.to(Destination::Hub).middle + BESIDE_PORTAL;
    level.navmesh.nearest(planned, GROUND_M).expect("there is ground beside a portal")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::portals::PORTAL_CLEAR_M;

    #[test]
    fn the_chest_stands_away_from_all_portals() {
        let level = Level::load();
        let portals = Portals::of(&level);
        let chest = place(&level, &portals).position();
        assert!(portals.iter().all(|portal| portal.middle.distance(chest) > PORTAL_CLEAR_M + REACH_M), "{chest}");
    }
}
