//! Shots: what is fired in a tick, by players and NPCs alike, until it is cast.
//!
//! All shots of a tick are cast in two batches, against the level and everybody in it: those of NPCs at everybody as they
//! stand now, those of players at everybody as their shooters saw them ([`crate::past`]). Cost: about 0.3 µs a shot and
//! 2 ns for each character in the world; of a player 0.4 µs and 3 ns.

use glam::Vec3;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_query::{
    casts::{Capsules, Ray, Shot, ShotHit, ShotTarget, cast_rays_against_capsules},
    geometry::LevelGeometry,
};
use throng_rewind::{
    history::History,
    past_casts::{PastCasts, PastHit, PastShot, PastTarget},
    shooter::ShotMoment,
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
    /// When a player saw what it shoots at; `None` for an NPC, which shoots at what is there.
    pub seen: Option<ShotMoment>,
}

/// The shots of this tick, and room to cast them in.
#[derive(Default)]
pub struct Shots {
    /// NPCs in the middle of a burst.
    pub shooters: Vec<Slot>,
    orders: Vec<ShotOrder>,
    casts: Vec<Shot>,
    hits: Vec<Option<ShotHit>>,
    past_shots: Vec<PastShot>,
    past_hits: Vec<Option<PastHit>>,
    past_casts: PastCasts,
}

impl ShotOrder {
    /// A shot from the eyes of one to the chest of the other, exactly, and at what is there now.
    #[cfg(test)]
    pub fn between(shooter: Slot, weapon: WeaponKind, from_feet: Vec3, to_feet: Vec3) -> Self {
        let origin = from_feet + EYE;
        let direction = to_feet + crate::components::CHEST - origin;
        let ray = Ray { origin, direction, distance_m_max: weapon.traits().range_m };
        Self { shooter, weapon, ray, seen: None }
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

    /// In the order in which they were fired.
    pub fn orders(&self) -> &[ShotOrder] {
        &self.orders
    }

    /// Adds a shot from the eyes of somebody who stands at `feet` towards `aim`, strayed as the weapon does. `seen`: of a
    /// player's shot, when it saw what it shoots at.
    pub fn fire(
        &mut self,
        (shooter, weapon): (Slot, WeaponKind),
        feet: Vec3,
        aim: Vec3,
        seen: Option<ShotMoment>,
        rng: &mut Xoshiro256PlusPlus,
    ) {
        let traits = weapon.traits();
        let ray =
            Ray { origin: feet + EYE, direction: stray(aim, traits.spread_rad, rng), distance_m_max: traits.range_m };
        self.orders.push(ShotOrder { shooter, weapon, ray, seen });
    }

    /// Casts them all against the level and everybody in it, as they stand and as they stood; [`Shots::landed`] has the
    /// outcome. How many were cast.
    pub fn cast(&mut self, level: &LevelGeometry, bodies: &Capsules, history: &History) -> u32 {
        let Self { orders, casts, hits, past_shots, past_hits, past_casts, .. } = self;
        casts.clear();
        past_shots.clear();
        for order in orders.iter() {
            let (ray, shooter) = (order.ray, Some(order.shooter.0.into()));
            match order.seen {
                None => casts.push(Shot { ray, shooter }),
                Some(seen) => past_shots.push(PastShot { ray, at: seen.admitted.at, shooter }),
            }
        }
        let count = cast_rays_against_capsules(level, casts, bodies, hits).cast;
        past_hits.clear();
        // Most worlds have NPCs that fire in a tick, and few a player: those need no room for it.
        if past_shots.is_empty() {
            return count;
        }
        count + past_casts.cast(history, Some(level), past_shots, past_hits).cast
    }

    /// Of the shots that were cast those that hit somebody, and whom, in the order in which they were fired. Those that a
    /// closed door stops hit nobody.
    pub fn landed(&self, doors: &Doors) -> impl Iterator<Item = (ShotOrder, Slot)> {
        let (mut hits, mut past_hits) = (self.hits.iter(), self.past_hits.iter());
        self.orders.iter().filter_map(move |order| {
            let (target, point) = match order.seen {
                None => body_hit((*hits.next()?)?)?,
                Some(_) => past_body_hit((*past_hits.next()?)?)?,
            };
            (!doors.are_between(order.ray.origin, point)).then_some((*order, target))
        })
    }

    /// All have been dealt with.
    pub fn clear(&mut self) {
        self.orders.clear();
    }
}

fn body_hit(hit: ShotHit) -> Option<(Slot, Vec3)> {
    match hit.target {
        ShotTarget::Character(target) => Some((Slot(target as u16), hit.point)),
        ShotTarget::Level => None,
    }
}

fn past_body_hit(hit: PastHit) -> Option<(Slot, Vec3)> {
    match hit.target {
        PastTarget::Body { slot, .. } => Some((Slot(slot as u16), hit.point)),
        PastTarget::Level => None,
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
