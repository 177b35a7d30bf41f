//! The city block as boxes, put together from a constant seed.
//!
//! ```text
//!      <------------------- 160 m ------------------->
//!      +---------------------------------------------+   25 lots of 22 m, streets of 10 m between them,
//!      |  [lot]   [lot]   [lot]   [lot]   [lot]      |   a wall around all. The middle lot is the plaza;
//!      |                                             |   the others are, by lot of the generator:
//!      |  [lot]   [lot]   [lot]   [lot]   [lot]      |     building  one solid block, or two with an alley
//!      |                                             |     hall      walls with doors, a roof, cover inside
//!      |  [lot]   [lot]  (plaza)  [lot]   [lot]      |     yard      open, with low walls and crates
//!      |                   ...                       |   Parked cars are the cover in the streets.
//!      +---------------------------------------------+
//! ```
//!
//! All lengths are metres and multiples of 0.1, y is up, the ground is y = 0.

use glam::Vec3;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_query::geometry::Aabb;

/// The city that this seed happens to make was looked at and liked; any other gives a different one.
const SEED: u64 = 0x7072_6563_696e_6374;

const HALF_SIDE_M: f32 = 80.0;
const LOTS_PER_SIDE: i32 = 5;
const LOT_PITCH_M: f32 = 32.0;
const LOT_HALF_M: f32 = 11.0;
const _: () = assert!(LOT_PITCH_M * LOTS_PER_SIDE as f32 == 2.0 * HALF_SIDE_M);

const WALL_M: f32 = 0.5;
/// Wide enough for two characters, and for the bake's rounding up of their radius on both sides.
const DOOR_M: f32 = 3.0;
/// Between the eyes of who crouches and of who stands.
const COVER_HEIGHT_M: f32 = 1.2;
/// From the face of a cover to the middle of who hides behind it: its radius, and what the bake may add.
const COVER_GAP_M: f32 = 0.9;
/// A place to hide for each this much of a cover's length.
const COVER_PLACE_M: f32 = 2.0;

/// What the level is made from.
pub struct Layout {
    pub boxes: Vec<Aabb>,
    pub spawns: Vec<Vec3>,
    /// A place and the direction of the cover it lies behind.
    pub covers: Vec<(Vec3, Vec3)>,
    /// What a door fills, and the direction of the wall that it is in.
    pub doorways: Vec<(Aabb, Vec3)>,
}

impl Layout {
    pub fn city_block() -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let mut layout = Self { boxes: Vec::new(), spawns: Vec::new(), covers: Vec::new(), doorways: Vec::new() };
        layout.ground_and_outer_wall();
        for row in 0..LOTS_PER_SIDE {
            for column in 0..LOTS_PER_SIDE {
                let center = lot_center(column, row);
                let middle = LOTS_PER_SIDE / 2;
                if (column, row) == (middle, middle) {
                    layout.plaza(center);
                    continue;
                }
                match rng.random_range(0..10) {
                    0..=2 => layout.building(center, &mut rng),
                    3..=4 => layout.two_buildings(center, &mut rng),
                    5..=7 => layout.hall(center, &mut rng),
                    _ => layout.yard(center, &mut rng),
                }
                layout.parked_cars(center, &mut rng);
            }
        }
        layout.crossings();
        layout
    }

    /// A box standing on the ground.
    fn solid(&mut self, center: Vec3, size_x_m: f32, height_m: f32, size_z_m: f32) {
        let half = Vec3::new(size_x_m, 0.0, size_z_m) * 0.5;
        self.boxes.push(Aabb::new(center - half, center + half + Vec3::Y * height_m));
    }

    /// A low box, and places behind its two long sides.
    fn cover(&mut self, center: Vec3, size_x_m: f32, size_z_m: f32) {
        self.solid(center, size_x_m, COVER_HEIGHT_M, size_z_m);
        let (along, across, length_m, depth_m) = if size_x_m >= size_z_m {
            (Vec3::X, Vec3::Z, size_x_m, size_z_m)
        } else {
            (Vec3::Z, Vec3::X, size_z_m, size_x_m)
        };
        let places = (length_m / COVER_PLACE_M).floor().max(1.0);
        for place in 0..places as i32 {
            let shift = along * ((place as f32 + 0.5) / places - 0.5) * length_m;
            for side in [across, -across] {
                self.covers.push((center + shift + side * (depth_m * 0.5 + COVER_GAP_M), -side));
            }
        }
    }

    fn ground_and_outer_wall(&mut self) {
        let whole_m = 2.0 * HALF_SIDE_M + 2.0 * WALL_M;
        self.solid(Vec3::NEG_Y, whole_m, 1.0, whole_m);
        let middle_m = HALF_SIDE_M + WALL_M * 0.5;
        for side in [-middle_m, middle_m] {
            self.solid(Vec3::X * side, WALL_M, 6.0, whole_m);
            self.solid(Vec3::Z * side, whole_m, 6.0, WALL_M);
        }
    }

    fn building(&mut self, center: Vec3, rng: &mut impl Rng) {
        self.solid(center, 2.0 * LOT_HALF_M, height_m(rng), 2.0 * LOT_HALF_M);
    }

    fn two_buildings(&mut self, center: Vec3, rng: &mut impl Rng) {
        const ALLEY_M: f32 = 4.0;
        let depth_m = LOT_HALF_M - ALLEY_M * 0.5;
        let across = if rng.random() { Vec3::X } else { Vec3::Z };
        for side in [-1.0, 1.0] {
            let size = across * depth_m + (Vec3::ONE - across) * 2.0 * LOT_HALF_M;
            let shift = across * side * (LOT_HALF_M - depth_m * 0.5);
            self.solid(center + shift, size.x, height_m(rng), size.z);
        }
        // Something to hide behind halfway through the alley, with room to pass on one side.
        let shift = across * (ALLEY_M * 0.5 - 0.6);
        let size = across * 1.2 + (Vec3::ONE - across) * 0.6;
        self.solid(center + shift, size.x, COVER_HEIGHT_M, size.z);
    }

    /// Four walls with a door in the middle of at least two opposite ones, under a roof.
    fn hall(&mut self, center: Vec3, rng: &mut impl Rng) {
        let wall_height_m = 4.0;
        let doors_on_all_sides: bool = rng.random();
        let doors_along_x: bool = rng.random();
        for along in [Vec3::X, Vec3::Z] {
            let across = Vec3::new(along.z, 0.0, along.x);
            let has_door = doors_on_all_sides || (along == Vec3::X) == doors_along_x;
            for side in [-1.0, 1.0] {
                let line = center + across * side * (LOT_HALF_M - WALL_M * 0.5);
                if has_door {
                    let length_m = LOT_HALF_M - DOOR_M * 0.5;
                    let size = along * length_m + across * WALL_M;
                    for end in [-1.0, 1.0] {
                        let shift = along * end * (DOOR_M * 0.5 + length_m * 0.5);
                        self.solid(line + shift, size.x, wall_height_m, size.z);
                    }
                    let half = (along * DOOR_M + across * WALL_M) * 0.5;
                    let door = Aabb::new(line - half, line + half + Vec3::Y * wall_height_m);
                    self.doorways.push((door, along));
                } else {
                    let size = along * 2.0 * LOT_HALF_M + across * WALL_M;
                    self.solid(line, size.x, wall_height_m, size.z);
                }
            }
        }
        self.solid(center + Vec3::Y * wall_height_m, 2.0 * LOT_HALF_M, 0.3, 2.0 * LOT_HALF_M);
        self.solid(center, 1.0, wall_height_m, 1.0);
        self.scattered_covers(center, 5.5, rng);
    }

    fn yard(&mut self, center: Vec3, rng: &mut impl Rng) {
        self.scattered_covers(center, 7.0, rng);
        for corner in [-1.0, 1.0] {
            let size_m = tenths(rng, 1.5, 3.0);
            self.solid(center + Vec3::new(corner, 0.0, corner) * 2.5, size_m, tenths(rng, 2.0, 3.0), size_m);
        }
    }

    /// A low wall in each quarter of a lot, `off_m` from its middle.
    fn scattered_covers(&mut self, center: Vec3, off_m: f32, rng: &mut impl Rng) {
        for (x, z) in [(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)] {
            let place = center + Vec3::new(x, 0.0, z) * off_m;
            let length_m = tenths(rng, 2.0, 4.0);
            if rng.random() { self.cover(place, length_m, WALL_M) } else { self.cover(place, WALL_M, length_m) }
        }
    }

    /// A fountain in the middle, pillars around it, low walls at the edges.
    fn plaza(&mut self, center: Vec3) {
        self.cover(center, 6.0, 6.0);
        for (x, z) in [(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)] {
            self.solid(center + Vec3::new(x, 0.0, z) * 6.0, 1.0, 5.0, 1.0);
        }
        for side in [-9.0, 9.0] {
            for shift in [-5.0, 5.0] {
                self.cover(center + Vec3::new(shift, 0.0, side), 4.0, WALL_M);
                self.cover(center + Vec3::new(side, 0.0, shift), WALL_M, 4.0);
            }
        }
    }

    /// Up to one car at the eastern and one at the northern side of a lot, 2 m out: half the street stays free.
    fn parked_cars(&mut self, center: Vec3, rng: &mut impl Rng) {
        const CAR_LENGTH_M: f32 = 4.2;
        const CAR_WIDTH_M: f32 = 1.8;
        let out_m = LOT_HALF_M + 2.9;
        let (eastern, northern): (bool, bool) = (rng.random(), rng.random());
        let (along_z, along_x) = (tenths(rng, -7.0, 7.0), tenths(rng, -7.0, 7.0));
        if eastern && center.x + out_m < HALF_SIDE_M - 5.0 {
            self.cover(center + Vec3::new(out_m, 0.0, along_z), CAR_WIDTH_M, CAR_LENGTH_M);
        }
        if northern && center.z + out_m < HALF_SIDE_M - 5.0 {
            self.cover(center + Vec3::new(along_x, 0.0, out_m), CAR_LENGTH_M, CAR_WIDTH_M);
        }
    }

    /// Two spawns at each of the inner street crossings.
    fn crossings(&mut self) {
        for row in 0..LOTS_PER_SIDE - 1 {
            for column in 0..LOTS_PER_SIDE - 1 {
                let crossing = (lot_center(column, row) + lot_center(column + 1, row + 1)) * 0.5;
                self.spawns.extend([-2.0, 2.0].map(|shift| crossing + Vec3::X * shift));
            }
        }
    }
}

fn lot_center(column: i32, row: i32) -> Vec3 {
    let along_m = |index: i32| (index as f32 + 0.5) * LOT_PITCH_M - HALF_SIDE_M;
    Vec3::new(along_m(column), 0.0, along_m(row))
}

fn height_m(rng: &mut impl Rng) -> f32 {
    tenths(rng, 3.0, 9.0)
}

/// A number of the range in steps of 0.1.
fn tenths(rng: &mut impl Rng, low: f32, high: f32) -> f32 {
    rng.random_range((low * 10.0) as i32..=(high * 10.0) as i32) as f32 * 0.1
}
