//! A crowd that moves as players of a shooter do: each runs, walks or crouches to somewhere, and goes on from there.
//!
//! 25 bodies for each 1,000 m2, so that ten have a match's place among them; boxes stand about as cover.

use glam::Vec3;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_query::geometry::{Aabb, LevelGeometry};
use throng_rewind::{history::Body, rig::Playing};

pub const TICKS_PER_S: u16 = 128;
const DENSITY_PER_M2: f32 = 0.025;

/// Clip, speed (m/s): walk, run and crouch of `throng_rewind::person`.
const GAITS: [(u16, f32); 3] = [(1, 1.5), (2, 6.0), (3, 1.2)];

struct Mover {
    at: Vec3,
    target: Vec3,
    gait: usize,
    before: usize,
    /// Since it began with this gait.
    ticks: u32,
}

pub struct Crowd {
    pub bodies: Vec<Body>,
    movers: Vec<Mover>,
    side_m: f32,
    random: Xoshiro256PlusPlus,
    tick: u32,
}

impl Crowd {
    pub fn new(bodies: u32, seed: u64) -> Self {
        let side_m = (bodies as f32 / DENSITY_PER_M2).sqrt();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut anywhere = || Vec3::new(random.random_range(0.0..side_m), 0.0, random.random_range(0.0..side_m));
        let movers: Vec<Mover> = (0..bodies)
            .map(|number| Mover {
                at: anywhere(),
                target: anywhere(),
                gait: number as usize % GAITS.len(),
                before: 0,
                ticks: number,
            })
            .collect();
        let bodies = movers.iter().map(|mover| Body::standing(mover.at, 0.0, Playing::default())).collect();
        Self { bodies, movers, side_m, random, tick: 0 }
    }

    /// Cover: a box for every four bodies.
    pub fn level(&self) -> LevelGeometry {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let ground = Aabb::new(Vec3::new(-9.0, -1.0, -9.0), Vec3::new(self.side_m + 9.0, -0.1, self.side_m + 9.0));
        let boxes = (0..self.movers.len().div_ceil(4)).map(|_| {
            let min = Vec3::new(random.random_range(0.0..self.side_m), -0.1, random.random_range(0.0..self.side_m));
            Aabb::new(min, min + Vec3::new(2.0, 1.2, 1.0))
        });
        let boxes: Vec<Aabb> = boxes.chain([ground]).collect();
        LevelGeometry::from_boxes(&boxes).expect("boxes with a volume")
    }

    /// One tick: everybody goes on.
    pub fn step(&mut self) {
        self.tick += 1;
        for (mover, body) in self.movers.iter_mut().zip(&mut self.bodies) {
            let (clip, speed_m_per_s) = GAITS[mover.gait];
            let step_m = speed_m_per_s / f32::from(TICKS_PER_S);
            let way = mover.target - mover.at;
            mover.ticks += 1;
            if way.length() <= step_m {
                let side_m = self.side_m;
                mover.target =
                    Vec3::new(self.random.random_range(0.0..side_m), 0.0, self.random.random_range(0.0..side_m));
                (mover.before, mover.gait) = (mover.gait, self.random.random_range(0..GAITS.len()));
                mover.ticks = 0;
            } else {
                mover.at += way / way.length() * step_m;
            }
            // A fifth of a second from one movement to another.
            let at_s = self.tick as f32 / f32::from(TICKS_PER_S);
            let fraction = (mover.ticks as f32 / 25.0).min(1.0);
            let playing = Playing::fade((GAITS[mover.before].0, at_s), (clip, at_s), fraction);
            *body = Body::standing(mover.at, way.x.atan2(way.z), playing);
        }
    }
}
