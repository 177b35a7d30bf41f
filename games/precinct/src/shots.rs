//! Shots: what is fired in a tick, by players and NPCs alike, until it is cast.
//!
//! All shots of a tick are cast in one batch against the level and everybody in it. Cost: about 0.3 µs a shot and 2 ns
//! for each character in the world.

use glam::Vec3;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_query::{
    casts::{Capsules, CastCounts, Ray, Shot, ShotHit, ShotTarget, cast_rays_against_capsules},
    geometry::LevelGeometry,
};

use crate::{
    components::{EYE, Slot},
    doors::Doors,
    weapons::WeaponKind,
};

/// A shot that has been fired and is to be cast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShotOrder {
    pub shooter: Slot,
    pub weapon: WeaponKind,
    pub ray: Ray,
}

/// The shots of this tick, and room to cast them in.
#[derive(Default)]
pub struct Shots {
    /// NPCs in the middle of a burst.
    pub shooters: Vec<Slot>,
    orders: Vec<ShotOrder>,
    casts: Vec<Shot>,
    hits: Vec<Option<ShotHit>>,
}

impl ShotOrder {
    /// A shot from the eyes of one to the chest of the other, exactly.
    #[cfg(test)]
    pub fn between(shooter: Slot, weapon: WeaponKind, from_feet: Vec3, to_feet: Vec3) -> Self {
        let origin = from_feet + EYE;
        let direction = to_feet + crate::components::CHEST - origin;
        Self { shooter, weapon, ray: Ray { origin, direction, distance_m_max: weapon.traits().range_m } }
    }
}

impl Shots {
    #[cfg(test)]
    pub fn order(&mut self, order: ShotOrder) {
        self.orders.push(order);
    }

    /// How many have been fired and are still to be cast.
    pub fn count(&self) -> usize {
        self.orders.len()
    }

    /// Adds a shot from the eyes of somebody who stands at `feet` towards `aim`, strayed as the weapon does.
    pub fn fire(&mut self, shooter: Slot, weapon: WeaponKind, feet: Vec3, aim: Vec3, rng: &mut Xoshiro256PlusPlus) {
        let traits = weapon.traits();
        let ray =
            Ray { origin: feet + EYE, direction: stray(aim, traits.spread_rad, rng), distance_m_max: traits.range_m };
        self.orders.push(ShotOrder { shooter, weapon, ray });
    }

    /// Casts them all against the level and everybody in it; [`Shots::drain_hits`] has the outcome.
    pub fn cast(&mut self, level: &LevelGeometry, bodies: &Capsules) -> CastCounts {
        let Self { orders, casts, hits, .. } = self;
        casts.clear();
        casts.extend(orders.iter().map(|order| Shot { ray: order.ray, shooter: Some(order.shooter.0.into()) }));
        cast_rays_against_capsules(level, casts, bodies, hits)
    }

    /// The shots that hit somebody and whom, in the order they were fired; none is left afterwards. Those that a closed
    /// door stops hit nobody.
    pub fn drain_hits(&mut self, doors: &Doors) -> impl Iterator<Item = (ShotOrder, Slot)> {
        self.orders.drain(..).zip(&self.hits).filter_map(move |(order, hit)| match hit {
            Some(ShotHit { target: ShotTarget::Character(target), point, .. })
                if !doors.are_between(order.ray.origin, *point) =>
            {
                Some((order, Slot(*target as u16)))
            }
            _ => None,
        })
    }
}

/// The direction of a view. Yaw 0 looks along +z, a quarter turn along +x.
pub fn direction_of(yaw: f32, pitch: f32) -> Vec3 {
    let (sin_yaw, cos_yaw) = yaw.sin_cos();
    let (sin_pitch, cos_pitch) = pitch.sin_cos();
    Vec3::new(sin_yaw * cos_pitch, sin_pitch, cos_yaw * cos_pitch)
}

fn stray(aim: Vec3, spread_rad: f32, rng: &mut Xoshiro256PlusPlus) -> Vec3 {
    if spread_rad <= 0.0 {
        return aim;
    }
    let aside: Vec3 = std::array::from_fn(|_| rng.random_range(-1.0..1.0)).into();
    aim.normalize_or_zero() + aside * spread_rad
}
