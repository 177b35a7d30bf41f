//! Testing: a level of rooms, bodies that walk about in it, and brute force, to hold what [`occlusion`](crate::occlusion)
//! answers against. For tests and benches of whatever is built on that.

use glam::Vec3;
use rand::Rng;

use crate::{
    casts::{Ray, cast_rays, lines_of_sight},
    geometry::{Aabb, LevelGeometry},
    occlusion::Body,
};

/// Side of a room (m).
pub const ROOM_M: f32 = 8.0;

/// A square of `rooms` rooms on each side, from the origin on: a wall between any two, most of them with a door of 2 m, one
/// without around all of them, and crates to look over.
///
/// # Panics
/// Without a room.
pub fn rooms(rooms: usize, rng: &mut impl Rng) -> Vec<Aabb> {
    assert!(rooms > 0, "a level has a room");
    let mut boxes = Vec::new();
    // Along x at a place on z, or the other way round.
    let mut put = |turned: bool, [begin, end]: [f32; 2], at: f32, thick: f32, high: f32| {
        let (min, max) = (Vec3::new(begin, -0.5, at - thick), Vec3::new(end, high, at + thick));
        let turn = |corner: Vec3| if turned { Vec3::new(corner.z, corner.y, corner.x) } else { corner };
        boxes.push(Aabb::new(turn(min), turn(max)));
    };
    for turned in [false, true] {
        for line in 0..=rooms {
            let at = line as f32 * ROOM_M;
            for room in 0..rooms {
                let (begin, end) = (room as f32 * ROOM_M, (room + 1) as f32 * ROOM_M);
                if line == 0 || line == rooms {
                    put(turned, [begin, end], at, 0.2, 3.0);
                } else if rng.random_bool(0.85) {
                    let door = begin + rng.random_range(0.5..ROOM_M - 2.5);
                    put(turned, [begin, door], at, 0.2, 3.0);
                    put(turned, [door + 2.0, end], at, 0.2, 3.0);
                }
            }
        }
    }
    let side_m = rooms as f32 * ROOM_M;
    for _ in 0..rooms * rooms / 2 {
        let begin = rng.random_range(1.0..side_m - 2.0);
        put(false, [begin, begin + 1.2], rng.random_range(1.0..side_m - 1.0), 0.5, 1.1);
    }
    boxes
}

/// Bodies that walk straight on until they come to a wall, rest, and turn.
pub struct Walkers {
    pub bodies: Vec<Body>,
    /// Heading, and speed (m/s), of each.
    walks: Vec<[f32; 2]>,
    boxes: Vec<Aabb>,
    side_m: f32,
    tick_s: f32,
}

impl Walkers {
    /// So many, with lives from 1 on, somewhere between the walls of such a level.
    pub fn new(boxes: &[Aabb], rooms: usize, count: u32, ticks_per_s: f32, rng: &mut impl Rng) -> Self {
        let (side_m, tick_s) = (rooms as f32 * ROOM_M, ticks_per_s.recip());
        let mut walkers = Self { bodies: Vec::new(), walks: Vec::new(), boxes: boxes.to_vec(), side_m, tick_s };
        for life in 1..=count {
            let body = Body { life, feet: walkers.free_place(rng), ..Body::default() };
            walkers.bodies.push(body);
            walkers.walks.push([0.0; 2]);
        }
        walkers
    }

    /// Where their eyes and bodies are.
    pub fn bounds(&self) -> Aabb {
        Aabb::new(Vec3::new(0.0, 0.04, 0.0), Vec3::new(self.side_m, 1.9, self.side_m))
    }

    /// One tick. With `teleports`, somebody turns up elsewhere once in a long while.
    pub fn step(&mut self, teleports: bool, rng: &mut impl Rng) {
        for number in 0..self.bodies.len() {
            if teleports && rng.random_range(0..2_000) == 0 {
                self.bodies[number].feet = self.free_place(rng);
                continue;
            }
            let [heading, speed_m_per_s] = self.walks[number];
            let (sin, cos) = heading.sin_cos();
            let next = self.bodies[number].feet + Vec3::new(cos, 0.0, sin) * (speed_m_per_s * self.tick_s);
            let turns = rng.random_range(0..150) == 0;
            if speed_m_per_s > 0.0 && !turns && self.is_free(next) {
                self.bodies[number].feet = next;
                continue;
            }
            let speed_max = self.bodies[number].speed_m_per_s_max;
            let speed_m_per_s = if rng.random_bool(0.2) { 0.0 } else { rng.random_range(0.4..1.0) * speed_max };
            self.walks[number] = [rng.random_range(0.0..std::f32::consts::TAU), speed_m_per_s];
        }
    }

    fn is_free(&self, feet: Vec3) -> bool {
        let radius_m = Body::default().radius_m;
        let wide = Vec3::new(radius_m, 0.0, radius_m);
        let holds = |solid: &Aabb| Aabb::new(solid.min - wide, solid.max + wide).contains(feet + Vec3::Y * 0.5);
        !self.boxes.iter().any(holds)
    }

    fn free_place(&self, rng: &mut impl Rng) -> Vec3 {
        loop {
            let [x, z] = [(); 2].map(|()| rng.random_range(1.0..self.side_m - 1.0));
            if self.is_free(Vec3::new(x, 0.0, z)) {
                return Vec3::new(x, 0.0, z);
            }
        }
    }
}

/// Every line, each time: nothing is baked, proven or remembered. Holds buffers only.
#[derive(Default)]
pub struct BruteForce {
    lines: Vec<(Vec3, Vec3)>,
    free: Vec<bool>,
}

impl BruteForce {
    /// Whether one of the nine lines from an eye to a silhouette is free.
    pub fn sees(&mut self, level: &LevelGeometry, viewer: &Body, body: &Body) -> bool {
        self.sees_past(level, |_, _| false, viewer, body)
    }

    /// The same, where lines that the veil says are not free either: of smoke, which is no part of the level.
    pub fn sees_past(
        &mut self,
        level: &LevelGeometry,
        veil: impl Fn(Vec3, Vec3) -> bool,
        viewer: &Body,
        body: &Body,
    ) -> bool {
        let eye = viewer.feet + Vec3::Y * viewer.eye_m;
        self.is_one_free(level, &veil, eye, silhouette(body, body.feet, across(viewer, body)))
    }

    /// Whether one would be free if both got, within so long (s), to any of the places that they can get to.
    pub fn may_see_within(&mut self, level: &LevelGeometry, viewer: &Body, body: &Body, reach_s: f32) -> bool {
        self.may_see_within_past(level, |_, _| false, viewer, body, reach_s)
    }

    /// The same with a veil.
    pub fn may_see_within_past(
        &mut self,
        level: &LevelGeometry,
        veil: impl Fn(Vec3, Vec3) -> bool,
        viewer: &Body,
        body: &Body,
        reach_s: f32,
    ) -> bool {
        let [eyes, feet] = [viewer, body].map(|body| places(level, body, body.speed_m_per_s_max * reach_s));
        let across = across(viewer, body);
        eyes.iter()
            .map(|place| *place + Vec3::Y * viewer.eye_m)
            .any(|eye| feet.iter().any(|place| self.is_one_free(level, &veil, eye, silhouette(body, *place, across))))
    }

    fn is_one_free(
        &mut self,
        level: &LevelGeometry,
        veil: &impl Fn(Vec3, Vec3) -> bool,
        eye: Vec3,
        points: impl Iterator<Item = Vec3>,
    ) -> bool {
        self.lines.clear();
        self.lines.extend(points.map(|point| (eye, point)).filter(|(eye, point)| !veil(*eye, *point)));
        lines_of_sight(level, &self.lines, &mut self.free);
        self.free.contains(&true)
    }
}

/// Across the line between two, on the ground.
fn across(viewer: &Body, body: &Body) -> Vec3 {
    let away = body.feet - viewer.feet;
    Vec3::new(-away.z, 0.0, away.x).normalize_or(Vec3::X)
}

/// Three heights, and three places across, of a body that stands there.
fn silhouette(body: &Body, feet: Vec3, across: Vec3) -> impl Iterator<Item = Vec3> + use<> {
    let (height_m, radius_m) = (body.height_m, body.radius_m);
    [height_m * 0.5, height_m - 0.05, 0.1].into_iter().flat_map(move |height_m| {
        [0.0, radius_m, -radius_m].map(|aside_m| feet + Vec3::Y * height_m + across * aside_m)
    })
}

/// Where somebody is, and where it can get to: straight on in eight directions, until its side comes to a wall.
fn places(level: &LevelGeometry, body: &Body, reach_m: f32) -> Vec<Vec3> {
    let origin = body.feet + Vec3::Y * (body.height_m * 0.5);
    let eighth = std::f32::consts::TAU / 8.0;
    let directions = [0, 1, 2, 3, 4, 5, 6, 7].map(|number| {
        let (sin, cos) = (number as f32 * eighth).sin_cos();
        Vec3::new(cos, 0.0, sin)
    });
    let rays = directions.map(|direction| Ray { origin, direction, distance_m_max: reach_m });
    let mut hits = Vec::new();
    cast_rays(level, &rays, &mut hits);
    let far = directions.iter().zip(&hits).map(|(direction, hit)| {
        let far_m = hit.map_or(reach_m, |hit| {
            let straight = hit.normal.dot(*direction).abs().max(0.1);
            (hit.distance_m - body.radius_m / straight).max(0.0)
        });
        body.feet + *direction * far_m
    });
    [body.feet].into_iter().chain(far).collect()
}
