//! Promise: in a level of rooms with doors, in which everybody walks about, whoever is seen has been told of, in that tick
//! at the latest; nobody is told of who could not be seen within the grace; and a tick allocates nothing.
//!
//! Held against brute force: all lines from eye to silhouette, and all lines between all places that both may get to, for
//! every pair in every tick, without cells, proofs, or anything that is remembered. In every second level there is smoke.

use glam::Vec3;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::allocator::{AllocationCounts, CountingAllocator, thread_counts};
use throng_query::geometry::LevelGeometry;
use throng_query::occlusion::{Body, CellSettings, CellVisibility, FogOfWar, FogSettings};
use throng_query::testing::{BruteForce, Walkers, rooms};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const ROOMS: usize = 5;
const VIEWERS: usize = 5;
const BODIES: usize = 12;
const TICKS: u32 = 700;
const SETTINGS: FogSettings = FogSettings { ticks_per_s: 64.0, grace_ms: 120.0, recheck_ticks: 4, rise_m: 0.0 };
/// Two ticks less than the grace.
const AHEAD_TICKS: u32 = 5;

/// Middles of smoke, of 3 m.
const SMOKE: [[f32; 2]; 3] = [[6.0, 9.0], [20.0, 20.0], [31.0, 31.0]];

fn is_veiled(eye: Vec3, point: Vec3) -> bool {
    let way = point - eye;
    SMOKE.iter().map(|[x, z]| Vec3::new(*x, 1.2, *z)).any(|middle| {
        let along = ((middle - eye).dot(way) / way.length_squared().max(f32::EPSILON)).clamp(0.0, 1.0);
        (eye + way * along).distance(middle) < 3.0
    })
}

/// What came of a walk.
#[derive(Debug, Default)]
struct Findings {
    pairs: u64,
    told: u64,
    seen: u64,
    /// Seen and not told of.
    late: u64,
    /// Told of, though nobody could be seen within the grace in any of the ticks in which that may have been found.
    leaks: u64,
    appearances: u64,
    /// Of these, told of for most of the grace before.
    ahead: u64,
}

/// What was of a pair in the last ticks.
#[derive(Clone, Default)]
struct Past {
    /// Who was where, and whether that was within the grace, once somebody asked; the last tick first.
    ticks: Vec<(Body, Body, Option<bool>)>,
    was_seen: bool,
    told_for: u32,
}

fn run(seed: u64, ticks: u32, is_careless: bool) -> Findings {
    let has_smoke = seed.is_multiple_of(2);
    let veil = |eye: Vec3, point: Vec3| has_smoke && is_veiled(eye, point);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let boxes = rooms(ROOMS, &mut rng);
    let level = LevelGeometry::from_boxes(&boxes).unwrap();
    let mut walkers = Walkers::new(&boxes, ROOMS, BODIES as u32, SETTINGS.ticks_per_s, &mut rng);
    let settings = CellSettings { proof_steps: 32, ..CellSettings::within(walkers.bounds()) };
    let cells = CellVisibility::bake(&level, &settings).unwrap();
    let mut fog = FogOfWar::new(SETTINGS, VIEWERS, BODIES).unwrap();
    let candidates: Vec<u32> = (0..BODIES as u32).collect();
    let mut past = vec![Past::default(); VIEWERS * BODIES];
    let (mut brute_force, mut findings) = (BruteForce::default(), Findings::default());
    for tick in 0..ticks {
        walkers.step(true, &mut rng);
        let bodies = &walkers.bodies;
        let mut told = [[0_u64]; VIEWERS];
        let before = thread_counts();
        fog.begin_tick(tick, bodies);
        for (viewer, told) in (0..).zip(&mut told) {
            fog.look_past(&level, veil, Some(&cells), viewer, &candidates, told);
        }
        assert_eq!(thread_counts() - before, AllocationCounts::default(), "in tick {tick}");
        for viewer in 0..VIEWERS {
            assert!(told[viewer][0] >> viewer & 1 == 1, "one sees itself");
            for body in (0..BODIES).filter(|body| *body != viewer) {
                let is_told = is_careless || told[viewer][0] >> body & 1 == 1;
                let past = &mut past[viewer * BODIES + body];
                past.ticks.insert(0, (bodies[viewer], bodies[body], None));
                past.ticks.truncate(SETTINGS.recheck_ticks as usize);
                judge(&mut brute_force, &level, veil, is_told, past, &mut findings);
            }
        }
    }
    let counts = fog.take_counts();
    println!("seed {seed}: {findings:?}, {counts:?}, cells see {:.3}", cells.visible_share());
    assert!(is_careless || counts.hidden_by_cells > 0 && counts.hidden_by_wall > 0, "each of the means is used");
    findings
}

fn judge(
    brute: &mut BruteForce,
    level: &LevelGeometry,
    veil: impl Fn(Vec3, Vec3) -> bool + Copy,
    is_told: bool,
    past: &mut Past,
    findings: &mut Findings,
) {
    let (viewer, body, _) = past.ticks[0];
    let is_seen = brute.sees_past(level, veil, &viewer, &body);
    findings.pairs += 1;
    findings.told += u64::from(is_told);
    findings.seen += u64::from(is_seen);
    findings.late += u64::from(is_seen && !is_told);
    if is_seen && !past.was_seen {
        findings.appearances += 1;
        findings.ahead += u64::from(past.told_for >= AHEAD_TICKS);
    }
    if is_told && !is_seen {
        let may_see = |(viewer, body, known): &mut (Body, Body, Option<bool>)| {
            *known.get_or_insert_with(|| brute.may_see_within_past(level, veil, viewer, body, SETTINGS.reach_s()))
        };
        findings.leaks += u64::from(!past.ticks.iter_mut().any(may_see));
    }
    past.was_seen = is_seen;
    past.told_for = if is_told { past.told_for + 1 } else { 0 };
}

#[test]
fn nobody_comes_into_view_untold_and_nobody_is_told_of_for_nothing() {
    for seed in 1..5 {
        let findings = run(seed, TICKS, false);
        assert_eq!((findings.late, findings.leaks), (0, 0), "seed {seed}: {findings:?}");
        assert!(findings.seen * 100 > findings.pairs && findings.appearances > 30, "seed {seed}: {findings:?}");
        assert!(findings.told * 2 < findings.pairs, "seed {seed}: most are hidden: {findings:?}");
        assert!(findings.ahead * 2 > findings.appearances, "seed {seed}: {findings:?}");
    }
}

/// The control: a fog that tells everybody of everybody is found out.
#[test]
fn a_fog_that_hides_nobody_is_found_out() {
    let findings = run(1, 60, true);
    assert!(findings.leaks * 4 > findings.pairs, "{findings:?}");
}
