//! Lives: how long the dead stay dead, and where they stand up again. What kills is in [`crate::shooting`].
//!
//! Nobody is despawned by dying. A dead player or NPC keeps its entity, its slot and its memory of who it is, and
//! stands up again after [`DEATH_MS`] at a spawn point, so a world's population is the same at every tick and
//! dying allocates nothing.

use bevy_ecs::component::Component;
use glam::Vec3;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_pack::Pack;
use throng_query::nav::{NavMesh, NavPoint};

use crate::{
    components::{Pose, Standing, Vitals},
    scene::Scene,
    weapons::{Weapon, ticks_of},
};

/// How long the dead stay dead. (ms)
pub const DEATH_MS: u32 = 5_000;
/// How far from its spawn point somebody may stand up. (m)
const SCATTER_M: f32 = 3.0;

/// When the next life begins; meaningless for the living. (ticks)
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq, Default, Pack)]
#[pack(name = "precinct.life_clock")]
pub struct LifeClock {
    respawn_tick: u32,
}

impl LifeClock {
    /// Starts waiting for the next life.
    pub fn ends(&mut self, tick: u32, tick_hz: u16) {
        self.respawn_tick = tick + ticks_of(DEATH_MS, tick_hz);
    }

    pub fn is_over(&self, tick: u32) -> bool {
        tick >= self.respawn_tick
    }
}

/// A random place near a spawn point, on the mesh, so that those who spawn together do not stand in each other.
pub fn near_spawn(navmesh: &NavMesh, spawn: NavPoint, rng: &mut Xoshiro256PlusPlus) -> NavPoint {
    let aside = Vec3::new(rng.random_range(-SCATTER_M..SCATTER_M), 0.0, rng.random_range(-SCATTER_M..SCATTER_M));
    navmesh.walk_straight(spawn, spawn.position() + aside).end
}

/// Begins a new life at a spawn point, with full health and a full magazine.
pub fn begin_life(
    spawn: NavPoint,
    scene: &Scene,
    rng: &mut Xoshiro256PlusPlus,
    vitals: &mut Vitals,
    pose: &mut Pose,
    standing: &mut Standing,
    weapon: &mut Weapon,
) {
    standing.0 = near_spawn(&scene.level.navmesh, spawn, rng);
    pose.set_feet(standing.0.position());
    *vitals = Vitals::FULL;
    *weapon = Weapon::new(weapon.kind);
}
