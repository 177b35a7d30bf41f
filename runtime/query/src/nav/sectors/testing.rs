//! Testing: a town of blocks with barriers across some streets.

use std::sync::Arc;

use glam::Vec3;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::level::{SectorLevel, SectorSettings};
use super::store::{SectorStore, StoreLimits};
use super::streaming::{StreamSettings, WorldSectors};
use crate::geometry::{Aabb, LevelGeometry};

/// Side of a sector of such a town (m): 64 cells of 0.32 m.
pub const SIDE_M: f32 = 20.48;

/// A flat town of so many sectors along each side, with a building or two in each, some of them across sides.
pub fn town_boxes(seed: u64, sectors: u16) -> Vec<Aabb> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let side_m = f32::from(sectors) * SIDE_M;
    let mut boxes = vec![Aabb::new(Vec3::new(0.0, -1.0, 0.0), Vec3::new(side_m, 0.0, side_m))];
    for _ in 0..u32::from(sectors).pow(2) * 2 {
        let size = Vec3::new(rng.random_range(1.0..8.0), 5.0, rng.random_range(1.0..8.0));
        let min = Vec3::new(rng.random_range(1.0..side_m - 9.0), 0.0, rng.random_range(1.0..side_m - 9.0));
        boxes.push(Aabb::new(min, min + size));
    }
    boxes
}

pub fn settings() -> SectorSettings {
    SectorSettings { cells_per_side: 64, ..SectorSettings::default() }
}

pub fn town(seed: u64, sectors: u16) -> SectorLevel {
    level_of(&town_boxes(seed, sectors))
}

pub fn level_of(boxes: &[Aabb]) -> SectorLevel {
    SectorLevel::new(LevelGeometry::from_boxes(boxes).unwrap(), settings()).unwrap()
}

/// The same level as one sector, to hold answers against.
pub fn whole(boxes: &[Aabb], sectors: u16) -> WorldSectors {
    let settings = SectorSettings { cells_per_side: 64 * sectors, ..settings() };
    let level = SectorLevel::new(LevelGeometry::from_boxes(boxes).unwrap(), settings).unwrap();
    everywhere(SectorStore::new(level, StoreLimits::default()))
}

/// A world that holds all sectors of a level.
pub fn everywhere(store: Arc<SectorStore>) -> WorldSectors {
    let settings = StreamSettings { radius_m: 1e4, ..StreamSettings::default() };
    let mut sectors = WorldSectors::new(store, settings);
    stream(&mut sectors, &[Vec3::ZERO]);
    assert_eq!(sectors.resident().count(), sectors.level().sector_count());
    sectors
}

/// Has all done that players at these places want, as a host without other threads does. Returns how much that was.
pub fn stream(sectors: &mut WorldSectors, places: &[Vec3]) -> usize {
    sectors.follow(places.iter().copied());
    let mut count = 0;
    while let Some(work) = sectors.next_work() {
        assert!(sectors.take(work.run()));
        sectors.check();
        count += 1;
    }
    count
}
