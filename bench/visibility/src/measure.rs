//! Both filters over the same ticks of the same walkers, in turns.
//!
//! The naive one is what a game writes first: for each client and entity, cast until one line to the silhouette is free. It
//! knows nothing of a grace. The batched one is asked for each client at once, with cells and all that it has found, and
//! tells who will be seen within the grace as well; so it has to tell at least of whom the naive one sees, in every tick.
//!
//! The clock is read once for each filter and tick, and of each tick the fastest repetition counts.

use glam::Vec3;
use harness::{FastestTicks, cpu_ns_since};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::allocator::thread_counts;
use throng_platform::process::thread_cpu_time;
use throng_query::casts::lines_of_sight;
use throng_query::geometry::LevelGeometry;
use throng_query::occlusion::{Body, CellSettings, CellVisibility, FogCounts, FogOfWar, FogSettings};
use throng_query::testing::{Walkers, rooms};

const TICKS_PER_S: f32 = 128.0;

pub struct Size {
    /// Each has a body, and looks at all others.
    pub clients: u32,
    pub rooms: usize,
    pub warm_ticks: u32,
    pub ticks: u32,
    pub repetitions: u32,
}

pub struct Outcome {
    pub naive_ns: u64,
    pub batched_ns: u64,
    pub bake_ns: u64,
    pub cells: u32,
    pub cells_bytes: usize,
    pub cells_visible_share: f64,
    /// Of all pairs, those that were told of, and those that were seen.
    pub told: u64,
    pub seen: u64,
    pub pairs: u64,
    pub counts: FogCounts,
    /// Of the batched filter, in all measured ticks.
    pub allocations: u64,
    pub hash: u64,
}

/// Times of one tick: naive, batched.
type Times = [u64; 2];

pub fn run(size: &Size) -> Outcome {
    let hash = |outcome: &Outcome| outcome.hash;
    let (fastest, mut outcome) = FastestTicks::measure(size.repetitions, size.ticks, hash, |repetition, times| {
        run_once(size, repetition, times)
    });
    [outcome.naive_ns, outcome.batched_ns] = fastest.sums_ns();
    outcome
}

fn run_once(size: &Size, repetition: u32, times: &mut Vec<Times>) -> Outcome {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let boxes = rooms(size.rooms, &mut rng);
    let level = LevelGeometry::from_boxes(&boxes).expect("walls have a volume");
    let mut walkers = Walkers::new(&boxes, size.rooms, size.clients, TICKS_PER_S, &mut rng);
    let begin = thread_cpu_time();
    let cells = CellVisibility::bake(&level, &CellSettings::within(walkers.bounds())).expect("the level has a size");
    let bake_ns = cpu_ns_since(begin);
    let settings = FogSettings { ticks_per_s: TICKS_PER_S, ..FogSettings::default() };
    let clients = size.clients as usize;
    let mut fog = FogOfWar::new(settings, clients, clients).expect("the settings are sound");
    let candidates: Vec<u32> = (0..size.clients).collect();
    let words = clients.div_ceil(64);
    let [mut told, mut seen] = [(); 2].map(|()| vec![0_u64; words * clients]);
    let mut free = Vec::with_capacity(1);
    let mut outcome = Outcome {
        naive_ns: 0,
        batched_ns: 0,
        bake_ns,
        cells: cells.cells(),
        cells_bytes: cells.heap_bytes(),
        cells_visible_share: cells.visible_share(),
        told: 0,
        seen: 0,
        pairs: 0,
        counts: FogCounts::default(),
        allocations: 0,
        hash: 0,
    };
    for tick in 0..size.warm_ticks + size.ticks {
        walkers.step(false, &mut rng);
        let bodies = &walkers.bodies;
        for bits in [&mut told, &mut seen] {
            bits.fill(0);
        }
        if tick == size.warm_ticks {
            fog.take_counts();
        }
        let mut time: Times = [0; 2];
        let mut allocations = 0;
        // Each goes first in every other tick, and the other way round in every other repetition.
        for turn in 0..2 {
            let begin = thread_cpu_time();
            if (turn + tick + repetition).is_multiple_of(2) {
                for (viewer, row) in bodies.iter().zip(seen.chunks_exact_mut(words)) {
                    for (at, body) in bodies.iter().enumerate() {
                        if viewer.life == body.life || is_seen(&level, viewer, body, &mut free) {
                            row[at / 64] |= 1 << (at % 64);
                        }
                    }
                }
                time[0] = cpu_ns_since(begin);
            } else {
                let before = thread_counts().allocations;
                fog.begin_tick(tick, bodies);
                for (viewer, row) in (0..).zip(told.chunks_exact_mut(words)) {
                    fog.look(&level, Some(&cells), viewer, &candidates, row);
                }
                time[1] = cpu_ns_since(begin);
                allocations = thread_counts().allocations - before;
            }
        }
        let is_all_told = seen.iter().zip(&told).all(|(seen, told)| seen & !told == 0);
        assert!(is_all_told, "tick {tick}: somebody is seen and was not told of");
        if tick >= size.warm_ticks {
            times.push(time);
            outcome.allocations += allocations;
            let count = |bits: &[u64]| bits.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            outcome.told += count(&told) - u64::from(size.clients);
            outcome.seen += count(&seen) - u64::from(size.clients);
            outcome.pairs += u64::from(size.clients) * u64::from(size.clients - 1);
            outcome.hash = told.iter().fold(outcome.hash, |hash, word| harness::mix(hash, *word));
        }
    }
    outcome.counts = fog.take_counts();
    outcome
}

/// One call for one client and one entity.
fn is_seen(level: &LevelGeometry, viewer: &Body, body: &Body, free: &mut Vec<bool>) -> bool {
    let eye = viewer.feet + Vec3::Y * viewer.eye_m;
    let away = body.feet - viewer.feet;
    let across = Vec3::new(-away.z, 0.0, away.x).normalize_or(Vec3::X);
    [body.height_m * 0.5, body.height_m - 0.05, 0.1].into_iter().any(|height_m| {
        [0.0, body.radius_m, -body.radius_m].into_iter().any(|aside_m| {
            let end = body.feet + Vec3::Y * height_m + across * aside_m;
            lines_of_sight(level, &[(eye, end)], free);
            free[0]
        })
    })
}
