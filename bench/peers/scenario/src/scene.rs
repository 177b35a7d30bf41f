//! Scene: the moving world, the same in every process that was given the same seed.
//!
//! A square with walls, in which entities wander 0.25 m per tick and turn a little; at a wall they turn back. (No
//! replication library knows worlds that wrap round, and an entity that jumps across would be another load.) The
//! side is chosen so that the mean client sees 50 entities, those at the edge fewer.
//!
//! In `W4` there are as many such squares as clients. They are one list of entities, world after world:
//!
//! ```text
//! world 0: | 10 that move | 10 that never change |  world 1: | 10 that move | ..      the first of each is its client's
//! ```

use crate::{Load, SIGHT_M, Terms};

/// Where an entity is and where it looks. (m, radians in [0, 2 pi))
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Pose {
    /// East, up, north.
    pub place: [f32; 3],
    pub yaw: f32,
}

/// Speed of everything that moves. (m per tick)
const STEP_M: f32 = 0.25;
/// How far up and down entities go. (m)
const HEIGHT_M: f32 = 10.0;
/// Entities within sight of the mean client of `W1`, itself among them.
const VISIBLE_MEAN: f64 = 50.0;
/// Entities of a world of `W4`.
pub const WORLD_ENTITIES: u32 = 20;
/// Those of them that move: the first.
pub const WORLD_MOVERS: u32 = 10;
/// Side of a world in which everybody sees everybody. (m)
const SIDE_ALL_SEEN_M: f32 = 30.0;

/// Side of a world of `W4`: a house. (m)
const SIDE_SMALL_M: f32 = 20.0;

/// The world at one tick.
pub struct Scene {
    pub tick: u32,
    /// The world reaches from minus to plus this, both ways. (m)
    pub half_m: f32,
    pub poses: Vec<Pose>,
    pub health: Vec<u16>,
    /// Entities whose pose changed in this tick, ascending.
    pub moved: Vec<u32>,
    /// Entities whose health changed in this tick, ascending.
    pub hurt: Vec<u32>,
    turns: Vec<f32>,
    pub(crate) load: Load,
    random: Random,
}

impl Scene {
    pub fn new(terms: &Terms) -> Self {
        let mut random = Random(terms.seed);
        let half_m = side_m(terms) / 2.0;
        let count = terms.entities;
        let place = |random: &mut Random| {
            [random.between(-half_m, half_m), random.between(-HEIGHT_M, HEIGHT_M), random.between(-half_m, half_m)]
        };
        let poses = (0..count)
            .map(|_| Pose { place: place(&mut random), yaw: random.between(0.0, std::f32::consts::TAU) })
            .collect();
        let turns = (0..count).map(|_| random.between(-0.05, 0.05)).collect();
        let (moved, hurt) = (Vec::new(), Vec::new());
        Self {
            tick: 0,
            half_m,
            poses,
            health: vec![1000; count as usize],
            moved,
            hurt,
            turns,
            load: terms.load,
            random,
        }
    }

    /// The next tick.
    pub fn step(&mut self) {
        self.tick += 1;
        let count = self.poses.len() as u32;
        self.moved.clear();
        self.hurt.clear();
        match self.load {
            Load::W1 | Load::W2 => self.moved.extend(0..count),
            Load::W4 => {
                self.moved.extend((0..count).filter(|number| number % WORLD_ENTITIES < WORLD_MOVERS));
            }
            Load::W3 => {
                let changes = (count / 100).max(1) as usize;
                while self.moved.len() < changes {
                    let number = self.random.below(count);
                    if let Err(at) = self.moved.binary_search(&number) {
                        self.moved.insert(at, number);
                    }
                }
            }
        }
        for index in 0..self.moved.len() {
            let number = self.moved[index];
            self.wander(number as usize);
            if self.random.below(100) == 0 {
                self.health[number as usize] = 1 + self.random.below(1000) as u16;
                self.hurt.push(number);
            }
        }
    }

    fn wander(&mut self, index: usize) {
        use std::f32::consts::{PI, TAU};
        let pose = &mut self.poses[index];
        let mut yaw = pose.yaw + self.turns[index];
        let (sin, cos) = yaw.sin_cos();
        pose.place[0] += sin * STEP_M;
        pose.place[2] += cos * STEP_M;
        let wave = (self.tick as f32 * 0.02 + index as f32).sin();
        pose.place[1] = (pose.place[1] + wave * 0.05).clamp(-HEIGHT_M, HEIGHT_M);
        if pose.place[0].abs() > self.half_m {
            pose.place[0] = pose.place[0].clamp(-self.half_m, self.half_m);
            yaw = -yaw;
        }
        if pose.place[2].abs() > self.half_m {
            pose.place[2] = pose.place[2].clamp(-self.half_m, self.half_m);
            yaw = PI - yaw;
        }
        pose.yaw = yaw.rem_euclid(TAU);
        // The remainder of a tiny negative number is rounded to the end itself.
        if pose.yaw >= TAU {
            pose.yaw = 0.0;
        }
    }

    /// One number for the whole state, to show that two runs had the same.
    pub fn hash(&self) -> u64 {
        let words = self.poses.iter().flat_map(|pose| [pose.place[0], pose.place[1], pose.place[2], pose.yaw]);
        let words = words.map(f32::to_bits).chain(self.health.iter().map(|&health| health.into()));
        words.fold(0xCBF2_9CE4_8422_2325, |hash, word| (hash ^ u64::from(word)).wrapping_mul(0x0000_0100_0000_01B3))
    }
}

/// Side of the square. (m)
fn side_m(terms: &Terms) -> f32 {
    match terms.load {
        Load::W1 => {}
        Load::W2 | Load::W3 => return SIDE_ALL_SEEN_M,
        Load::W4 => return SIDE_SMALL_M,
    }
    // Two places drawn from a square of side 1 are nearer than `r` with this probability.
    let near = |r: f64| std::f64::consts::PI * r * r - 8.0 / 3.0 * r.powi(3) + r.powi(4) / 2.0;
    let visible = |side: f64| 1.0 + f64::from(terms.entities - 1) * near(f64::from(SIGHT_M) / side);
    let (mut low, mut high) = (f64::from(SIGHT_M), 1e6);
    if visible(low) <= VISIBLE_MEAN {
        return SIDE_ALL_SEEN_M;
    }
    while high - low > 1e-3 {
        let middle = (low + high) / 2.0;
        if visible(middle) > VISIBLE_MEAN { low = middle } else { high = middle }
    }
    high as f32
}

/// SplitMix64: a few lines, so that no library's version changes the scene.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u32) -> u32 {
        (((self.next() >> 32) * u64::from(end)) >> 32) as u32
    }

    fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * ((self.next() >> 40) as f32 / (1_u32 << 24) as f32)
    }
}
