//! Past casts: what each shot hits first, level or body, with everybody where the shooter saw them.
//!
//! ```text
//! level: one cast for each shot -> how far it reaches
//!        -> broad phase: who was within reach of the ray, by places alone
//!        -> limbs of those: poses interpolated, put where the body was
//!        -> the limb that the ray enters first
//! ```
//!
//! The level does not move, so it is asked as it is. Shots of one tick may each be at a moment of its own.
//!
//! Reused by its owner: allocates nothing once warm. Any thread. Sketch of the cost (`bench/rewind` measures
//! it): the level's cast, 3 ns for each slot of the history, and 0.5 µs for each body of 18 limbs that the ray passes.

use glam::Vec3;
use throng_profiler::scoped;
use throng_query::{
    casts::{CastHit, Ray, cast_rays},
    geometry::LevelGeometry,
    limbs::{Limbs, cast_ray_at_limbs},
};

use crate::{
    history::History,
    pose_sampler::PoseSampler,
    rig::{Ends, in_world},
    view_time::ViewTime,
};

/// A shot at what was there at a moment of the past.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PastShot {
    pub ray: Ray,
    /// When the shooter saw it, as [`ViewLimits::admit`](crate::view_limits::ViewLimits::admit) has it.
    pub at: ViewTime,
    /// The shooter's own slot, which it cannot hit.
    pub shooter: Option<u32>,
}

/// What a shot hit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PastHit {
    pub distance_m: f32,
    pub point: Vec3,
    pub target: PastTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastTarget {
    Level,
    /// A limb, by its place in the rig of the body that has the slot.
    Body {
        slot: u32,
        limb: u16,
    },
}

/// What a batch did, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PastCounts {
    /// Shots answered.
    pub cast: u32,
    /// Shots refused, as [`CastCounts::rejected`](throng_query::casts::CastCounts::rejected): they hit nothing.
    pub rejected: u32,
    /// Shots at a moment that is not recorded: they hit no body.
    pub unrecorded: u32,
    /// Bodies that a ray came near, and whose limbs were looked at.
    pub bodies: u32,
}

/// Room to cast in.
#[derive(Default)]
pub struct PastCasts {
    rays: Vec<Ray>,
    walls: Vec<Option<CastHit>>,
    near: Vec<u32>,
    limbs: Vec<Ends>,
    from: Vec<Vec3>,
    to: Vec<Vec3>,
    sampler: PoseSampler,
}

impl PastCasts {
    /// What each shot hits first; of two bodies at the same distance the lower slot. `hits` is cleared and holds one
    /// answer for each shot, in order. Without a level only bodies are hit.
    #[scoped("rewind.shots")]
    pub fn cast(
        &mut self,
        history: &History,
        level: Option<&LevelGeometry>,
        shots: &[PastShot],
        hits: &mut Vec<Option<PastHit>>,
    ) -> PastCounts {
        let mut counts = PastCounts::default();
        hits.clear();
        self.walls.clear();
        // As many as there can be: not later, when somebody first shoots into a crowd, or passes a body.
        self.near.clear();
        self.near.reserve(history.slots() as usize);
        self.make_room_for_limbs(history.limbs_max());
        if let Some(level) = level {
            self.rays.clear();
            self.rays.extend(shots.iter().map(|shot| shot.ray));
            cast_rays(level, &self.rays, &mut self.walls);
        }
        for (index, shot) in shots.iter().enumerate() {
            let wall = self.walls.get(index).copied().flatten();
            hits.push(self.cast_one(history, shot, wall, &mut counts));
        }
        counts
    }

    fn make_room_for_limbs(&mut self, limbs: usize) {
        self.limbs.clear();
        self.limbs.reserve(limbs);
        for ends in [&mut self.from, &mut self.to] {
            ends.clear();
            ends.reserve(limbs);
        }
    }

    fn cast_one(
        &mut self,
        history: &History,
        shot: &PastShot,
        wall: Option<CastHit>,
        counts: &mut PastCounts,
    ) -> Option<PastHit> {
        let Some(unit) = shot.ray.unit() else {
            counts.rejected += 1;
            return None;
        };
        counts.cast += 1;
        let mut reach_m = wall.map_or(shot.ray.distance_m_max, |wall| wall.distance_m);
        let mut target = wall.map(|_| PastTarget::Level);
        let moment = history.moment(shot.at);
        counts.unrecorded += u32::from(moment.is_none());
        self.near.clear();
        if let Some(moment) = &moment {
            let line = (shot.ray.origin, unit, reach_m);
            history.transforms().find_near(moment, line, history.reach_m(), &mut self.near);
        }
        for index in 0..self.near.len() {
            let slot = self.near[index];
            if shot.shooter == Some(slot) {
                continue;
            }
            let ray = Ray { distance_m_max: reach_m, ..shot.ray };
            if let Some((limb, distance_m)) = self.cast_at_body(history, slot, shot.at, (&ray, unit), counts) {
                reach_m = distance_m;
                target = Some(PastTarget::Body { slot, limb });
            }
        }
        let point = shot.ray.origin + unit * reach_m;
        target.map(|target| PastHit { distance_m: reach_m, point, target })
    }

    /// The limb of a body that a ray enters first, and how far away that is.
    fn cast_at_body(
        &mut self,
        history: &History,
        slot: u32,
        at: ViewTime,
        (ray, unit): (&Ray, Vec3),
        counts: &mut PastCounts,
    ) -> Option<(u16, f32)> {
        let (place, rotation) = history.transform_at(slot, at)?;
        let rig = history.rig(slot as usize)?;
        // The broad phase went by the largest of all bodies.
        let along_m = (place - ray.origin).dot(unit).clamp(0.0, ray.distance_m_max);
        if (ray.origin + unit * along_m).distance_squared(place) > rig.reach_m() * rig.reach_m() {
            return None;
        }
        counts.bodies += 1;
        let Self { limbs, from, to, sampler, .. } = self;
        limbs.clear();
        history.write_limbs(slot as usize, at, sampler, limbs);
        from.clear();
        to.clear();
        for ends in limbs.iter() {
            let Ends { from: one, to: other } = in_world(*ends, place, rotation);
            from.push(one);
            to.push(other);
        }
        let radius_m = &rig.radii_m()[..from.len()];
        let hit = cast_ray_at_limbs(ray, &Limbs { from, to, radius_m })?;
        Some((hit.limb as u16, hit.distance_m))
    }
}
