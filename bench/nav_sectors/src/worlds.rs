//! Worlds that share a level: one player in each, and damage in some.

use std::sync::Arc;

use glam::Vec3;
use harness::{cpu_ns_since, mix};
use precinct::district::level::{self, is_weak};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::{allocator::thread_counts, process::thread_cpu_time};
use throng_query::geometry::Aabb;
use throng_query::nav::sectors::{Damage, SectorStore, StreamSettings, WorkKind, WorldSectors};

pub struct Size {
    pub worlds: u32,
    /// Worlds in which charges go off.
    pub damaged: u32,
    /// Half of the side of the part in which players are (m).
    pub half_m: f32,
}

/// Players are all over the two kilometres: nearly all of the level is wanted by somebody.
pub const REAL: Size = Size { worlds: 1_000, damaged: 50, half_m: 1_000.0 };
/// In a corner of it, since each sector takes some 20 ms to bake.
pub const SMALL: Size = Size { worlds: 24, damaged: 2, half_m: 60.0 };

/// Charges that go off in a damaged world, around its player.
const CHARGES: u32 = 3;
const BLAST_M: f32 = 5.0;

#[derive(Debug, Default)]
pub struct Outcome {
    /// Baked for all, and what they take.
    pub sectors: u64,
    pub sector_bytes: u64,
    /// Held by worlds, in sum.
    pub held: u64,
    pub level_bytes: u64,
    pub copies_bytes: u64,
    /// What worlds hold beside sectors.
    pub own_bytes: u64,
    /// Everything: sectors, damaged ones, the level, what worlds hold.
    pub shared_bytes: u64,
    pub bake_ns: u64,
    pub bake_ns_max: u64,
    pub found: u64,
    pub found_ns: u64,
    pub damaged: u64,
    pub damaged_bytes: u64,
    pub rebake_ns: u64,
    pub follow_ns: u64,
    pub allocations: u64,
    /// Of sectors, after all worlds have ended: what may be idle does not count.
    pub left_bytes: u64,
    pub hash: u64,
}

pub fn measure(size: &Size) -> Outcome {
    let store = level::store();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut outcome = Outcome { level_bytes: store.level().heap_bytes() as u64, ..Outcome::default() };
    let mut worlds: Vec<(WorldSectors, Vec3)> = Vec::new();
    for _ in 0..size.worlds {
        let [x, z] = [(); 2].map(|()| rng.random_range(-size.half_m..size.half_m));
        let player = Vec3::new(x, 0.0, z);
        let mut sectors = WorldSectors::new(store.clone(), StreamSettings::default());
        stream(&mut sectors, player, &mut outcome);
        outcome.copies_bytes += sectors.resident().map(|sector| sector.bytes()).sum::<u64>();
        outcome.held += sectors.resident().count() as u64;
        worlds.push((sectors, player));
    }
    let counts = store.counts();
    assert_eq!(counts.failed, 0, "{:?}", store.failure());
    (outcome.sectors, outcome.sector_bytes) = (counts.baked, counts.bytes);
    for (sectors, player) in worlds.iter_mut().take(size.damaged as usize) {
        for _ in 0..CHARGES {
            let aside = Vec3::new(rng.random_range(-30.0..30.0), 0.0, rng.random_range(-30.0..30.0));
            blow_up(sectors, *player + aside);
        }
        stream(sectors, *player, &mut outcome);
        sectors.released();
    }
    let counts = store.counts();
    (outcome.damaged, outcome.damaged_bytes) = (counts.damaged, counts.damaged_bytes);
    steady(&mut worlds, &mut outcome);
    for (sectors, player) in &worlds {
        sectors.check();
        outcome.own_bytes += (size_of::<WorldSectors>() + sectors.heap_bytes()) as u64;
        outcome.hash = mix(outcome.hash, answers(sectors, *player));
    }
    outcome.shared_bytes = counts.bytes + counts.damaged_bytes + outcome.level_bytes + outcome.own_bytes;
    outcome.copies_bytes += outcome.level_bytes * u64::from(size.worlds) + outcome.own_bytes;
    drop(worlds);
    outcome.left_bytes = left(&store);
    outcome
}

/// What one player wants, done in turn.
fn stream(sectors: &mut WorldSectors, player: Vec3, outcome: &mut Outcome) {
    sectors.follow([player]);
    while let Some(work) = sectors.next_work() {
        let (kind, begin) = (work.kind(), thread_cpu_time());
        let done = work.run();
        let ns = cpu_ns_since(begin);
        match kind {
            WorkKind::Bake => {
                outcome.bake_ns += ns;
                outcome.bake_ns_max = outcome.bake_ns_max.max(ns);
            }
            WorkKind::Share => {
                outcome.found += 1;
                outcome.found_ns += ns;
            }
            WorkKind::Damaged => outcome.rebake_ns += ns,
        }
        assert!(sectors.take(done), "it was asked for");
    }
}

fn blow_up(sectors: &mut WorldSectors, place: Vec3) {
    let around = Aabb::new(place - Vec3::splat(BLAST_M), place + Vec3::splat(BLAST_M));
    let mut weak = Vec::new();
    sectors.level().geometry().each_overlapping(&around, |solid| weak.extend(is_weak(solid).then_some(solid)));
    weak.sort_unstable();
    for solid in weak {
        sectors.change(Damage::Removed { solid });
    }
    let heap = Vec3::new(1.2, 0.0, 1.2);
    sectors.change(Damage::Added { min: place - heap - Vec3::Y * 0.1, max: place + heap + Vec3::Y * 1.3 });
}

/// Looks again where nobody has moved.
fn steady(worlds: &mut [(WorldSectors, Vec3)], outcome: &mut Outcome) {
    let (before, begin) = (thread_counts(), thread_cpu_time());
    for (sectors, player) in worlds.iter_mut() {
        sectors.follow([*player]);
        assert!(sectors.next_work().is_none() && sectors.released().is_none(), "nothing has changed");
    }
    outcome.follow_ns = cpu_ns_since(begin);
    outcome.allocations = (thread_counts() - before).allocations;
}

/// A walk from the player in each of eight directions, as one number.
fn answers(sectors: &WorldSectors, player: Vec3) -> u64 {
    let Ok(from) = sectors.nearest(player, 30.0) else { return 0 };
    (0..8).fold(sectors.damage().len() as u64, |hash, eighth| {
        let (sin, cos) = (eighth as f32 * std::f32::consts::TAU / 8.0).sin_cos();
        let walk = sectors.walk_straight(from, from.position() + Vec3::new(sin, 0.0, cos) * 80.0);
        let end = walk.map_or(Vec3::ZERO, |walk| walk.end.position());
        end.to_array().iter().fold(hash, |hash, part| mix(hash, u64::from(part.to_bits())))
    })
}

/// What is left beyond what may be idle.
fn left(store: &Arc<SectorStore>) -> u64 {
    let counts = store.counts();
    counts.damaged_bytes + counts.bytes.saturating_sub(store.limits().idle_bytes_max)
}
