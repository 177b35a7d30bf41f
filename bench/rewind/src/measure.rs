//! The histories in turns, over the same ticks of the same crowd, with the same shots.
//!
//! Of each tick the fastest repetition counts, part by part.

use std::sync::Arc;

use glam::Vec3;
use harness::FastestTicks;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::{allocator::thread_counts, process::thread_cpu_time, time::Nanos};
use throng_query::{
    casts::{Ray, cast_rays},
    geometry::LevelGeometry,
};
use throng_rewind::{
    history::{Body, History, HistorySettings},
    past_casts::{PastCasts, PastHit, PastShot, PastTarget},
    person,
    pose_sampler::PoseSampler,
    rig::{Ends, Rig},
    view_time::ViewTime,
};

use crate::crowd::{Crowd, TICKS_PER_S};

/// Ticks before those that are measured: histories are full, and nothing grows any more.
const WARM_TICKS: u32 = 64;
/// Shots of each sort in a tick.
const SHOTS_PER_TICK: usize = 10;
/// How long ago a shooter saw what he shoots at, at most: 150 ms.
const TICKS_BACK: u32 = 19;
/// A round with its phase to buy in it, in which nobody can be hit: a third of the time, on average over matches.
const ROUND_TICKS: u32 = 384;
const BUY_TICKS: u32 = ROUND_TICKS / 3;
/// Recording begins before the phase ends: 200 ms, and a tick for moments between two.
const BACK_ON_TICKS: u32 = 27;

pub struct Size {
    pub bodies: u32,
    pub ticks: u32,
    pub repetitions: u32,
}

/// Sums over all measured ticks.
#[derive(Default)]
pub struct Outcome {
    pub record_ns: u64,
    pub each_ns: u64,
    pub fourth_ns: u64,
    pub shot_ns: u64,
    pub miss_ns: u64,
    pub level_ns: u64,
    /// Placing and sampling in the history that rests while everybody buys.
    pub resting_ns: u64,
    pub each_poses: u64,
    pub fourth_poses: u64,
    pub shots: u64,
    pub hits: u64,
    /// Bodies whose limbs were looked at, for shots at somebody.
    pub looked_at: u64,
    /// Hits that are the same body's with poses of each tick.
    pub same_target: u64,
    /// Shots outside the phase to buy, and those of them that hit the same body, or none, in the history that rested.
    pub live_shots: u64,
    pub same_after_rest: u64,
    /// How far limbs are from where they are with poses of each tick, of everybody who is shot at.
    pub pose_error: PoseError,
    pub bytes: usize,
    pub allocations: u64,
    pub hash: u64,
}

#[derive(Default)]
pub struct PoseError {
    sum_cm: f64,
    limbs: u64,
    pub max_cm: f64,
}

impl PoseError {
    pub fn mean_cm(&self) -> f64 {
        self.sum_cm / self.limbs.max(1) as f64
    }

    fn add(&mut self, found: &Ends, exact: &Ends) {
        let off_cm = f64::from(found.from.distance(exact.from).max(found.to.distance(exact.to))) * 100.0;
        self.sum_cm += off_cm;
        self.limbs += 1;
        self.max_cm = self.max_cm.max(off_cm);
    }
}

/// Parts of a tick that are timed.
const PARTS: usize = 7;
type Times = [u64; PARTS];

pub fn run(size: &Size) -> Outcome {
    let rig = Arc::new(person::rig());
    let hash = |outcome: &Outcome| outcome.hash;
    let (fastest, mut outcome) =
        FastestTicks::measure(size.repetitions, size.ticks, hash, |_, times| run_once(size, &rig, times));
    let Outcome { record_ns, each_ns, fourth_ns, shot_ns, miss_ns, level_ns, resting_ns, .. } = &mut outcome;
    [*record_ns, *each_ns, *fourth_ns, *shot_ns, *miss_ns, *level_ns, *resting_ns] = fastest.sums_ns();
    outcome
}

fn run_once(size: &Size, rig: &Arc<Rig>, times: &mut Vec<Times>) -> Outcome {
    let mut crowd = Crowd::new(size.bodies, 7);
    let level = crowd.level();
    let [mut each, mut fourth, mut resting] = [1, 4, 4].map(|pose_every| history(size.bodies, pose_every, rig));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
    let mut shooting = Shooting::default();
    let mut outcome = Outcome::default();
    for tick in 0..WARM_TICKS + size.ticks {
        crowd.step();
        let is_measured = tick >= WARM_TICKS;
        if tick == WARM_TICKS {
            (outcome.each_poses, outcome.fourth_poses) = (each.counts().poses, fourth.counts().poses);
        }
        shooting.aim(&fourth, size.bodies, tick, &mut random);
        let allocations_before = thread_counts().allocations;
        let mut time: Times = [0; PARTS];
        let round_tick = tick % ROUND_TICKS;
        // In turns: each goes first in every third tick.
        for turn in 0..3 {
            match (turn + tick) % 3 {
                0 => time[1] = record(&mut each, tick, &crowd.bodies)[1],
                1 => [time[0], time[2]] = record(&mut fourth, tick, &crowd.bodies),
                _ if is_measured && round_tick + BACK_ON_TICKS < BUY_TICKS => {}
                _ => time[6] = record(&mut resting, tick, &crowd.bodies).iter().sum(),
            }
        }
        [time[3], time[4], time[5]] = shooting.cast(&fourth, &level);
        if is_measured {
            times.push(time);
            outcome.allocations += thread_counts().allocations - allocations_before;
            shooting.count(&each, &level, &mut outcome);
            shooting.count_pose_errors(&each, &fourth, &mut outcome.pose_error);
            if round_tick >= BUY_TICKS {
                shooting.count_after_rest(&resting, &level, &mut outcome);
            }
        }
    }
    outcome.each_poses = each.counts().poses - outcome.each_poses;
    outcome.fourth_poses = fourth.counts().poses - outcome.fourth_poses;
    outcome.bytes = fourth.bytes();
    outcome
}

fn history(bodies: u32, pose_every: u32, rig: &Arc<Rig>) -> History {
    let settings = HistorySettings { pose_every, ..HistorySettings::new(TICKS_PER_S, bodies) };
    let mut history = History::new(&settings, vec![rig.clone()]).expect("a history");
    (0..bodies).for_each(|slot| assert!(history.insert(slot, 0)));
    history
}

/// Time to place everybody, and to sample poses.
fn record(history: &mut History, tick: u32, bodies: &[Body]) -> [u64; 2] {
    let begin = thread_cpu_time();
    history.begin_tick(tick);
    for (slot, body) in bodies.iter().enumerate() {
        history.place(slot as u32, body);
    }
    let middle = thread_cpu_time();
    history.end_tick();
    let end = thread_cpu_time();
    [middle.saturating_sub(begin).0, end.saturating_sub(middle).0]
}

/// The shots of a tick: at somebody, and past everybody.
#[derive(Default)]
struct Shooting {
    shots: Vec<PastShot>,
    misses: Vec<PastShot>,
    rays: Vec<Ray>,
    casts: PastCasts,
    hits: Vec<Option<PastHit>>,
    missed: Vec<Option<PastHit>>,
    /// Of the same shots in another history.
    other_hits: Vec<Option<PastHit>>,
    targets: Vec<u32>,
    sampler: PoseSampler,
    limbs: [Vec<Ends>; 2],
    walls: Vec<Option<throng_query::casts::CastHit>>,
    looked_at: u32,
}

impl Shooting {
    /// Everybody who shoots aims at somebody's chest, where it was a moment ago.
    fn aim(&mut self, history: &History, bodies: u32, tick: u32, random: &mut Xoshiro256PlusPlus) {
        self.shots.clear();
        self.misses.clear();
        self.rays.clear();
        self.targets.clear();
        for _ in 0..SHOTS_PER_TICK {
            let shooter = random.random_range(0..bodies);
            let target = (shooter + random.random_range(1..bodies)) % bodies;
            let ago = random.random_range(256..TICKS_BACK as u64 * 256);
            let at = ViewTime::of_tick(tick).before(ago);
            let place = |slot: u32| history.transform_at(slot, at).map_or(Vec3::ZERO, |(place, _)| place);
            let origin = place(shooter) + Vec3::Y * 1.6;
            let direction = place(target) + Vec3::Y * 1.15 - origin;
            let ray = Ray { origin, direction, distance_m_max: 200.0 };
            self.shots.push(PastShot { ray, at, shooter: Some(shooter) });
            // Over everybody's head.
            let over = Ray { origin: origin + Vec3::Y * 9.0, direction: direction.with_y(0.0), ..ray };
            self.misses.push(PastShot { ray: over, at, shooter: Some(shooter) });
            self.rays.push(ray);
            self.targets.push(target);
        }
    }

    /// Time of the shots, of those that miss, and of the level's part alone.
    fn cast(&mut self, history: &History, level: &LevelGeometry) -> [u64; 3] {
        let begin = thread_cpu_time();
        let counts = self.casts.cast(history, Some(level), &self.shots, &mut self.hits);
        let shots_end = thread_cpu_time();
        self.casts.cast(history, Some(level), &self.misses, &mut self.missed);
        let misses_end = thread_cpu_time();
        cast_rays(level, &self.rays, &mut self.walls);
        let end = thread_cpu_time();
        self.looked_at = counts.bodies;
        let nanos = |begin: Nanos, end: Nanos| end.saturating_sub(begin).0;
        [nanos(begin, shots_end), nanos(shots_end, misses_end), nanos(misses_end, end)]
    }

    fn count(&mut self, each: &History, level: &LevelGeometry, outcome: &mut Outcome) {
        self.casts.cast(each, Some(level), &self.shots, &mut self.other_hits);
        outcome.shots += self.shots.len() as u64;
        outcome.looked_at += u64::from(self.looked_at);
        for (hit, each_hit) in self.hits.iter().zip(&self.other_hits) {
            let hit_slot = slot(hit);
            outcome.hits += u64::from(hit_slot.is_some());
            outcome.same_target += u64::from(hit_slot.is_some() && hit_slot == slot(each_hit));
        }
        let mix = |hash: u64, hit: &Option<PastHit>| {
            let bits = hit.map_or(u64::MAX, |hit| u64::from(hit.distance_m.to_bits()));
            harness::mix(hash, bits ^ u64::from(slot(hit).unwrap_or(u32::MAX)) << 32)
        };
        outcome.hash = self.hits.iter().chain(&self.missed).fold(outcome.hash, mix);
    }

    fn count_pose_errors(&mut self, each: &History, fourth: &History, error: &mut PoseError) {
        let Self { shots, targets, sampler, limbs: [found, exact], .. } = self;
        for (shot, target) in shots.iter().zip(targets) {
            fourth.limbs_at(*target, shot.at, sampler, found);
            each.limbs_at(*target, shot.at, sampler, exact);
            found.iter().zip(&*exact).for_each(|(found, exact)| error.add(found, exact));
        }
    }

    fn count_after_rest(&mut self, resting: &History, level: &LevelGeometry, outcome: &mut Outcome) {
        self.casts.cast(resting, Some(level), &self.shots, &mut self.other_hits);
        outcome.live_shots += self.shots.len() as u64;
        let same = self.hits.iter().zip(&self.other_hits).filter(|(hit, other)| slot(hit) == slot(other));
        outcome.same_after_rest += same.count() as u64;
    }
}

/// Whose body was hit.
fn slot(hit: &Option<PastHit>) -> Option<u32> {
    match hit.map(|hit| hit.target) {
        Some(PastTarget::Body { slot, .. }) => Some(slot),
        _ => None,
    }
}
