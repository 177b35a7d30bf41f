//! The district's level: 2,048 m of city blocks, made from a constant seed.
//!
//! ```text
//!   [house] | [yard] | [houses]     lots of 28 m, streets of 12 m between them, a wall around all
//!   --------+--/-----+---------     yards have gates, alleys and some streets are barred: these, crates and cars are
//!   [plaza] | [house]| [yard]       what charges blow away. Everything else stands.
//! ```
//!
//! Boxes that stand come first, so that a solid's number says what it is ([`is_weak`]). Some 20,000 of them, 2 MB; server
//! and bots make the same. All lengths are metres, y is up, the ground is y = 0.

use std::sync::{Arc, OnceLock};

use glam::Vec3;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_query::geometry::{Aabb, LevelGeometry};
use throng_query::nav::{
    BakeSettings,
    sectors::{SectorLevel, SectorSettings, SectorStore, StoreLimits},
};

use crate::components::{BODY_HEIGHT_M, BODY_RADIUS_M};

const SEED: u64 = 0x6469_7374_7269_6374;

/// Half of a side: 16 sectors of 64 m.
pub const HALF_SIDE_M: f32 = 1_024.0;
/// From a lot to the next.
pub const LOT_PITCH_M: f32 = 40.0;
const LOT_HALF_M: f32 = 14.0;
/// Lots on either side of the middle one.
pub const LOTS_HALF: i32 = 25;
const _: () = assert!((2 * LOTS_HALF + 1) as f32 * LOT_PITCH_M <= 2.0 * HALF_SIDE_M);
const WALL_M: f32 = 0.5;
const GATE_M: f32 = 4.0;
/// Nobody gets higher than this, and no roof is lower.
const STREETS_M: f32 = 2.0;
const STREET_M: f32 = LOT_PITCH_M - 2.0 * LOT_HALF_M;

/// What the district is made of.
pub struct DistrictSolids {
    pub boxes: Vec<Aabb>,
    /// The first that a charge blows away; all after it are, too.
    pub first_weak: u32,
}

/// The solids, made by the first who asks in this process.
pub fn solids() -> &'static DistrictSolids {
    static SOLIDS: OnceLock<DistrictSolids> = OnceLock::new();
    SOLIDS.get_or_init(make)
}

/// Whether a charge blows the solid of this number away.
pub fn is_weak(solid: u32) -> bool {
    solid >= solids().first_weak
}

/// How the district is cut and baked.
pub fn sector_settings() -> SectorSettings {
    let usual = SectorSettings::default();
    let bake = BakeSettings { radius_m: BODY_RADIUS_M, height_m: BODY_HEIGHT_M, ..usual.bake };
    SectorSettings { bake, ground_m_max: STREETS_M, ..usual }
}

/// A store of the district's sectors, empty.
///
/// # Panics
/// If the level cannot be cut. It is the same every time, so any test that makes it finds this.
pub fn store() -> Arc<SectorStore> {
    store_with(StoreLimits::default())
}

/// The same with other limits.
///
/// # Panics
/// As [`store`].
pub fn store_with(limits: StoreLimits) -> Arc<SectorStore> {
    let geometry = LevelGeometry::from_boxes(&solids().boxes).expect("the district is made of proper boxes");
    let level = SectorLevel::new(geometry, sector_settings()).expect("it is whole sectors");
    SectorStore::new(level, limits)
}

/// The middle of the street crossing at a lot's lowest corner.
pub fn crossing(column: i32, row: i32) -> Vec3 {
    Vec3::new(column as f32 - 0.5, 0.0, row as f32 - 0.5) * LOT_PITCH_M
}

struct Builder {
    standing: Vec<Aabb>,
    weak: Vec<Aabb>,
}

fn make() -> DistrictSolids {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut builder = Builder { standing: Vec::new(), weak: Vec::new() };
    let whole = 2.0 * HALF_SIDE_M;
    builder.standing.push(block(Vec3::NEG_Y, [whole, 1.0, whole]));
    let side = HALF_SIDE_M - WALL_M * 0.5;
    for way in [-side, side] {
        builder.standing.push(block(Vec3::X * way, [WALL_M, 6.0, whole]));
        builder.standing.push(block(Vec3::Z * way, [whole, 6.0, WALL_M]));
    }
    for row in -LOTS_HALF..=LOTS_HALF {
        for column in -LOTS_HALF..=LOTS_HALF {
            let center = Vec3::new(column as f32, 0.0, row as f32) * LOT_PITCH_M;
            match rng.random_range(0..10) {
                0..=3 => builder.house(center, &mut rng),
                4..=5 => builder.alley(center, &mut rng),
                6..=8 => builder.yard(center, &mut rng),
                _ => builder.plaza(center),
            }
            builder.street(center, &mut rng);
        }
    }
    let first_weak = builder.standing.len() as u32;
    let mut boxes = builder.standing;
    boxes.append(&mut builder.weak);
    DistrictSolids { boxes, first_weak }
}

/// A box that stands there.
fn block(bottom: Vec3, [x, y, z]: [f32; 3]) -> Aabb {
    let half = Vec3::new(x, 0.0, z) * 0.5;
    Aabb::new(bottom - half, bottom + half + Vec3::Y * y)
}

impl Builder {
    fn house(&mut self, center: Vec3, rng: &mut impl Rng) {
        let height_m = rng.random_range(6.0_f32..18.0).round();
        self.standing.push(block(center, [2.0 * LOT_HALF_M, height_m, 2.0 * LOT_HALF_M]));
    }

    /// Two houses, and a barred alley between them.
    fn alley(&mut self, center: Vec3, rng: &mut impl Rng) {
        let depth_m = LOT_HALF_M - GATE_M * 0.5;
        for side in [-1.0, 1.0] {
            let at = center + Vec3::X * side * (LOT_HALF_M - depth_m * 0.5);
            let height_m = rng.random_range(6.0_f32..18.0).round();
            self.standing.push(block(at, [depth_m, height_m, 2.0 * LOT_HALF_M]));
        }
        self.weak.push(block(center, [GATE_M, 2.5, WALL_M]));
    }

    /// A wall with two gates, and crates behind it.
    fn yard(&mut self, center: Vec3, rng: &mut impl Rng) {
        let gates_along_x: bool = rng.random();
        for along_x in [true, false] {
            let turned = |along: f32, across: f32| {
                if along_x { Vec3::new(along, 0.0, across) } else { Vec3::new(across, 0.0, along) }
            };
            let sized = |along: f32| if along_x { [along, 3.0, WALL_M] } else { [WALL_M, 3.0, along] };
            for side in [-1.0, 1.0] {
                let line = side * (LOT_HALF_M - WALL_M * 0.5);
                if along_x != gates_along_x {
                    self.standing.push(block(center + turned(0.0, line), sized(2.0 * LOT_HALF_M)));
                    continue;
                }
                let length_m = LOT_HALF_M - GATE_M * 0.5;
                for end in [-1.0, 1.0] {
                    let middle = end * (GATE_M + length_m) * 0.5;
                    self.standing.push(block(center + turned(middle, line), sized(length_m)));
                }
                self.weak.push(block(center + turned(0.0, line), sized(GATE_M)));
            }
        }
        for _ in 0..3 {
            let place =
                Vec3::new(rng.random_range(-9.0_f32..9.0).round(), 0.0, rng.random_range(-9.0_f32..9.0).round());
            self.weak.push(block(center + place, [1.5, 1.2, 1.5]));
        }
    }

    fn plaza(&mut self, center: Vec3) {
        for (x, z) in [(-6.0, -6.0), (6.0, -6.0), (-6.0, 6.0), (6.0, 6.0)] {
            self.standing.push(block(center + Vec3::new(x, 0.0, z), [1.0, 5.0, 1.0]));
        }
    }

    /// Cars, and now and then a barrier, in the streets east and south of a lot.
    fn street(&mut self, center: Vec3, rng: &mut impl Rng) {
        let middle_m = LOT_PITCH_M * 0.5;
        for (aside, car, bar) in [
            (Vec3::X * middle_m, [1.8, 1.4, 4.2], [STREET_M, 2.5, WALL_M]),
            (Vec3::Z * middle_m, [4.2, 1.4, 1.8], [WALL_M, 2.5, STREET_M]),
        ] {
            if (center + aside).abs().max_element() > HALF_SIDE_M - STREET_M {
                continue;
            }
            let along = if aside.x > 0.0 { Vec3::Z } else { Vec3::X };
            let off = along.cross(Vec3::Y) * (STREET_M * 0.5 - 1.5);
            self.weak.push(block(center + aside + off + along * rng.random_range(-9.0_f32..9.0).round(), car));
            if rng.random_bool(0.12) {
                self.weak.push(block(center + aside + along * 2.0, bar));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bakes every so many sectors, and has none of them fail.
    fn bake(step: usize) {
        let store = store_with(StoreLimits { bytes_max: u64::MAX, idle_bytes_max: u64::MAX });
        for id in store.level().ids().step_by(step) {
            let sector = store.sector(id).expect("there is memory");
            sector.mesh().unwrap_or_else(|| panic!("no streets in {id:?}: {:?}", store.failure())).check();
        }
        assert_eq!(store.counts().failed, 0, "{:?}", store.failure());
        println!("{:?}", store.counts());
    }

    #[test]
    fn sectors_all_over_it_have_streets() {
        bake(23);
    }

    #[test]
    #[ignore = "full form: all 1,024 sectors, half a minute"]
    fn all_sectors_have_streets() {
        bake(1);
    }

    #[test]
    fn it_is_two_kilometres_of_whole_sectors() {
        let store = store();
        assert_eq!((store.level().columns(), store.level().rows()), (32, 32));
        assert!((10_000..40_000).contains(&solids().boxes.len()), "{}", solids().boxes.len());
        let weak = solids().boxes.len() - solids().first_weak as usize;
        assert!(weak > 5_000 && is_weak(solids().first_weak) && !is_weak(solids().first_weak - 1));
        assert!(store.level().geometry().bounds().size_m().x == 2.0 * HALF_SIDE_M);
    }
}
