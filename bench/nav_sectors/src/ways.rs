//! Ways: over sectors, and on one mesh of the same ground.

use glam::Vec3;
use harness::{cpu_ns_since, mix, quantile};
use precinct::district::level;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::process::thread_cpu_time;
use throng_query::geometry::{Aabb, LevelGeometry};
use throng_query::nav::sectors::{SectorLevel, SectorSearch, SectorStore, StoreLimits, StreamSettings, WorldSectors};
use throng_query::nav::{PathOutcome, PathSearch, bake};

pub struct Size {
    /// Half of the side of the part of the level (m): a whole mesh of two kilometres has more corners than Recast counts.
    pub half_m: f32,
    pub ways: u32,
}

pub const REAL: Size = Size { half_m: 256.0, ways: 2_000 };
pub const SMALL: Size = Size { half_m: 96.0, ways: 150 };

/// Nearer ends than this say little about a ratio (m).
const WAY_M_MIN: f32 = 20.0;

#[derive(Debug, Default)]
pub struct Outcome {
    pub count: u64,
    pub disagree: u64,
    pub ratio_mean: f64,
    pub ratio_p99: f64,
    pub sectors_ns: u64,
    pub whole_ns: u64,
    pub hash: u64,
}

pub fn measure(size: &Size) -> Outcome {
    let boxes = part(size.half_m);
    let settings = level::sector_settings();
    let geometry = LevelGeometry::from_boxes(&boxes).expect("it is part of a level");
    let whole = bake(&geometry, &settings.bake).expect("it has ground");
    let level = SectorLevel::new(geometry, settings).expect("it can be cut");
    let store = SectorStore::new(level, StoreLimits::default());
    let everything = StreamSettings { radius_m: 1e4, ..StreamSettings::default() };
    let mut sectors = WorldSectors::new(store, everything);
    sectors.follow([Vec3::ZERO]);
    while let Some(work) = sectors.next_work() {
        sectors.take(work.run());
    }

    let (mut outcome, mut ratios) = (Outcome::default(), Vec::new());
    let (mut one_search, mut search) = (PathSearch::new(&whole), SectorSearch::default());
    let (mut expected, mut found) = ([Vec3::ZERO; 256], [Vec3::ZERO; 256]);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    while outcome.count < u64::from(size.ways) {
        let [from, to] = [(); 2].map(|()| whole.random_point(&mut rng));
        let is_street = [from, to].iter().all(|point| point.position().y < 0.5); // the whole mesh has roofs
        if !is_street || from.position().distance(to.position()) < WAY_M_MIN {
            continue;
        }
        let Ok(start) = sectors.nearest(from.position(), 0.2) else { continue };
        if sectors.nearest(to.position(), 0.2).is_err() {
            continue;
        }
        outcome.count += 1;
        let begin = thread_cpu_time();
        let expect = one_search.find(&whole, from, to, &mut expected);
        outcome.whole_ns += cpu_ns_since(begin);
        let begin = thread_cpu_time();
        let way = search.find(&sectors, start, to.position(), &mut found).expect("its sector is there");
        outcome.sectors_ns += cpu_ns_since(begin);
        outcome.hash = mix(outcome.hash, u64::from(way.length_m.to_bits()));
        match [expect.outcome, way.outcome].map(|outcome| outcome == PathOutcome::Complete) {
            [true, true] => ratios.push(f64::from(way.length_m / expect.length_m)),
            [false, false] => {}
            _ => outcome.disagree += 1,
        }
    }
    outcome.ratio_mean = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
    outcome.ratio_p99 = quantile(&mut ratios, 0.99);
    outcome
}

/// The middle of the district, cut off.
fn part(half_m: f32) -> Vec<Aabb> {
    let (min, max) = (Vec3::new(-half_m, -1.0, -half_m), Vec3::new(half_m, 40.0, half_m));
    let cut = |solid: &Aabb| Aabb::new(solid.min.max(min), solid.max.min(max));
    level::solids().boxes.iter().map(cut).filter(|solid| solid.min.cmplt(solid.max).all()).collect()
}
