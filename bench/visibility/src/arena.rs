//! Arena: a level of rooms with doors and crates, in which everybody walks, turns and rests.

use glam::Vec3;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_query::geometry::{Aabb, LevelGeometry};
use throng_query::occlusion::Body;

pub const TICKS_PER_S: f32 = 128.0;
const ROOM_M: f32 = 8.0;
const SPEED_M_PER_S_MAX: f32 = 6.0;

pub struct Arena {
    pub level: LevelGeometry,
    pub bodies: Vec<Body>,
    side_m: f32,
    /// Heading and speed of each.
    walks: Vec<[f32; 2]>,
    boxes: Vec<Aabb>,
    rng: Xoshiro256PlusPlus,
}

impl Arena {
    /// A square of so many rooms on a side, with so many bodies in it.
    pub fn new(rooms: usize, bodies: u32, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let boxes = walls(rooms, &mut rng);
        let level = LevelGeometry::from_boxes(&boxes).expect("walls have a volume");
        let side_m = rooms as f32 * ROOM_M;
        let mut arena = Self { level, bodies: Vec::new(), side_m, walks: Vec::new(), boxes, rng };
        for life in 1..=bodies {
            let body = Body { life, feet: arena.free_place(), speed_m_per_s_max: SPEED_M_PER_S_MAX, ..Body::default() };
            arena.bodies.push(body);
            arena.walks.push([0.0; 2]);
        }
        arena
    }

    /// Where eyes and bodies are.
    pub fn bounds(&self) -> Aabb {
        Aabb::new(Vec3::new(0.0, 0.04, 0.0), Vec3::new(self.side_m, 1.9, self.side_m))
    }

    pub fn step(&mut self) {
        for number in 0..self.bodies.len() {
            let [heading, speed_m_per_s] = self.walks[number];
            let (sin, cos) = heading.sin_cos();
            let next = self.bodies[number].feet + Vec3::new(cos, 0.0, sin) * (speed_m_per_s / TICKS_PER_S);
            let turns = self.rng.random_range(0..200) == 0;
            if speed_m_per_s > 0.0 && !turns && self.is_free(next) {
                self.bodies[number].feet = next;
                continue;
            }
            let speed_m_per_s =
                if self.rng.random_bool(0.3) { 0.0 } else { self.rng.random_range(2.0..SPEED_M_PER_S_MAX) };
            self.walks[number] = [self.rng.random_range(0.0..std::f32::consts::TAU), speed_m_per_s];
        }
    }

    fn is_free(&self, feet: Vec3) -> bool {
        let radius_m = Body::default().radius_m;
        let wide = Vec3::new(radius_m, 0.0, radius_m);
        let is_inside = |solid: &Aabb| Aabb::new(solid.min - wide, solid.max + wide).contains(feet + Vec3::Y * 0.5);
        !self.boxes.iter().any(is_inside)
    }

    fn free_place(&mut self) -> Vec3 {
        loop {
            let [x, z] = [(); 2].map(|()| self.rng.random_range(1.0..self.side_m - 1.0));
            if self.is_free(Vec3::new(x, 0.0, z)) {
                return Vec3::new(x, 0.0, z);
            }
        }
    }
}

/// Between any two rooms a wall, most of them with a door of 2 m; around all of them one without.
fn walls(rooms: usize, rng: &mut impl Rng) -> Vec<Aabb> {
    let mut boxes = Vec::new();
    let mut put = |turned: bool, begin: f32, end: f32, at: f32, thick: f32, high: f32| {
        let (min, max) = (Vec3::new(begin, -0.5, at - thick), Vec3::new(end, high, at + thick));
        let turn = |corner: Vec3| if turned { Vec3::new(corner.z, corner.y, corner.x) } else { corner };
        boxes.push(Aabb::new(turn(min), turn(max)));
    };
    for turned in [false, true] {
        for line in 0..=rooms {
            let at = line as f32 * ROOM_M;
            for room in 0..rooms {
                let begin = room as f32 * ROOM_M;
                if line == 0 || line == rooms {
                    put(turned, begin, begin + ROOM_M, at, 0.2, 3.0);
                } else if rng.random_bool(0.85) {
                    let door = begin + rng.random_range(0.5..ROOM_M - 2.5);
                    put(turned, begin, door, at, 0.2, 3.0);
                    put(turned, door + 2.0, begin + ROOM_M, at, 0.2, 3.0);
                }
            }
        }
    }
    let side_m = rooms as f32 * ROOM_M;
    for _ in 0..rooms * rooms / 2 {
        let begin = rng.random_range(1.0..side_m - 2.0);
        put(false, begin, begin + 1.2, rng.random_range(1.0..side_m - 1.0), 0.5, 1.1);
    }
    boxes
}
