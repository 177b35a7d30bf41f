//! Contract: a history answers what one answers that keeps everything and looks for it from end to end, whatever comes,
//! goes, jumps and is left out; and shots hit what each limb, asked by itself, says.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use glam::{Quat, Vec3};
use proptest::prelude::*;
use throng_platform::time::Nanos;
use throng_query::{
    casts::Ray,
    limbs::{Limbs, cast_ray_at_limbs},
};
use throng_rewind::{
    history::{Body, History, HistorySettings},
    past_casts::{PastCasts, PastShot, PastTarget},
    person,
    pose_sampler::PoseSampler,
    rig::{Ends, Playing, Rig},
    view_time::ViewTime,
};

const SLOTS: u32 = 6;
const RADIUS_M: f32 = 0.4;
const HEIGHT_M: f32 = 1.8;

/// 128 ticks a second: 26 ticks back.
fn settings() -> HistorySettings {
    HistorySettings { ticks_per_s: 128, back: Nanos::from_millis(200), slots: SLOTS, pose_every: 4 }
}

/// Slots 0 to 3 have bones, the others are upright capsules.
fn rigs() -> &'static [Arc<Rig>] {
    static RIGS: OnceLock<[Arc<Rig>; 2]> = OnceLock::new();
    RIGS.get_or_init(|| [Arc::new(person::rig()), Arc::new(Rig::upright(RADIUS_M, HEIGHT_M).unwrap())])
}

fn rig_number(slot: u32) -> u16 {
    u16::from(slot >= 4)
}

fn rig_of(slot: u32) -> &'static Rig {
    &rigs()[usize::from(rig_number(slot))]
}

#[derive(Clone, Debug)]
enum Step {
    /// A tick in which these are placed, each with a number that says where.
    Tick(Vec<(u32, u32)>),
    /// Ticks that nobody writes.
    Pause(u32),
    /// The slot is another body's.
    Insert(u32),
}

/// Everything that was ever written.
#[derive(Default)]
struct Naive {
    tick: u32,
    /// First tick of the newest run.
    begin: u32,
    bodies: BTreeMap<(u32, u32), Body>,
    /// From when on each slot is this body's.
    since: [u32; SLOTS as usize],
    /// How each body stood in each tick.
    poses: BTreeMap<(u32, u32), Vec<Ends>>,
    /// Those of them that a history samples, by slot and in order.
    keys: [Vec<u32>; SLOTS as usize],
}

impl Naive {
    fn body(&self, slot: u32, tick: u32) -> Option<&Body> {
        let begin = self.begin.max(self.since[slot as usize]);
        (begin <= tick && tick <= self.tick).then(|| self.bodies.get(&(slot, tick)))?
    }

    fn transform(&self, slot: u32, at: ViewTime) -> Option<(Vec3, Quat)> {
        let body = self.body(slot, at.tick())?;
        let next = self.body(slot, at.tick() + 1).filter(|next| at.part() > 0 && !next.jumped);
        let Some(next) = next else { return Some((body.at, body.rotation)) };
        let at_m = body.at + (next.at - body.at) * at.fraction();
        Some((at_m, body.rotation.lerp(next.rotation, at.fraction())))
    }

    fn pose(&self, slot: u32, at: ViewTime) -> Vec<Ends> {
        let rig = rig_of(slot);
        if !rig.has_bones() {
            return sample(rig, &Playing::default());
        }
        let keys = &self.keys[slot as usize];
        let earlier = *keys.iter().rfind(|tick| ViewTime::of_tick(**tick) <= at).expect("who is there has come");
        let pose = &self.poses[&(slot, earlier)];
        let later = keys.iter().copied().find(|tick| ViewTime::of_tick(*tick) > at);
        // Without a next pose, how it stands in the newest tick.
        let now = (self.body(slot, self.tick).is_some() && self.tick > earlier).then_some(self.tick);
        let later = later.or(now).filter(|later| later - earlier <= 4);
        let Some(later) = later.filter(|_| ViewTime::of_tick(earlier) != at) else { return pose.clone() };
        let way = ViewTime::of_tick(later).parts_since(ViewTime::of_tick(earlier)) as f32;
        let fraction = at.parts_since(ViewTime::of_tick(earlier)) as f32 / way;
        pose.iter().zip(&self.poses[&(slot, later)]).map(|(one, other)| one.towards(*other, fraction)).collect()
    }

    /// Every fourth tick, bodies in turns; and who has none that is as new.
    fn note_key(&mut self, slot: u32) {
        let (tick, keys) = (self.tick, &mut self.keys[slot as usize]);
        if (tick + slot).is_multiple_of(4) || keys.last().is_none_or(|last| tick - last > 4) {
            keys.push(tick);
        }
    }
}

fn sample(rig: &Rig, playing: &Playing) -> Vec<Ends> {
    let mut limbs = vec![Ends::default(); rig.limbs()];
    PoseSampler::default().sample(rig, playing, &mut limbs);
    limbs
}

/// A body whose place, turn and movement follow from two numbers.
fn body(slot: u32, number: u32, tick: u32) -> Body {
    let at = Vec3::new(slot as f32 * 3.0 + (number % 7) as f32 * 0.2, (number % 3) as f32, tick as f32 * 0.05);
    let playing = Playing::fade(
        ((number % 4) as u16, tick as f32 / 128.0),
        ((number % 3) as u16, tick as f32 / 100.0),
        (number % 5) as f32 / 4.0,
    );
    Body { jumped: number.is_multiple_of(11), ..Body::standing(at, number as f32, playing) }
}

fn run(steps: &[Step]) -> (History, Naive) {
    let mut history = History::new(&settings(), rigs().to_vec()).unwrap();
    (0..SLOTS).for_each(|slot| assert!(history.insert(slot, rig_number(slot))));
    let mut naive = Naive { tick: 5, begin: 6, ..Naive::default() };
    for step in steps {
        match step {
            Step::Tick(placed) => {
                naive.tick += 1;
                history.begin_tick(naive.tick);
                for &(slot, number) in placed {
                    let body = body(slot, number, naive.tick);
                    assert!(history.place(slot, &body));
                    naive.bodies.insert((slot, naive.tick), body);
                    naive.poses.insert((slot, naive.tick), sample(rig_of(slot), &body.playing));
                    naive.note_key(slot);
                }
                history.end_tick();
            }
            Step::Pause(ticks) => {
                naive.tick += ticks;
                naive.begin = naive.tick + 1;
                naive.keys.iter_mut().for_each(Vec::clear);
            }
            Step::Insert(slot) => {
                history.insert(*slot, rig_number(*slot));
                naive.since[*slot as usize] = naive.tick + 1;
                naive.keys[*slot as usize].clear();
            }
        }
    }
    // A history that has begun no tick since a pause still has the run before it; the model has none.
    if naive.begin > naive.tick {
        naive.tick += 1;
        history.begin_tick(naive.tick);
        history.end_tick();
    }
    (history, naive)
}

fn step() -> impl Strategy<Value = Step> {
    let placed = prop::collection::btree_map(0..SLOTS, any::<u32>(), 3..SLOTS as usize + 1);
    prop_oneof![
        40 => placed.prop_map(|placed| Step::Tick(placed.into_iter().collect())),
        1 => (1_u32..9).prop_map(Step::Pause),
        2 => (0..SLOTS).prop_map(Step::Insert),
    ]
}

/// Asks both about everybody at a moment. Moments before the oldest tick are nobody's; the model has those still.
fn compare(history: &History, naive: &Naive, at: ViewTime) {
    let (oldest, newest) = history.ticks().unwrap();
    let (mut sampler, mut limbs) = (PoseSampler::default(), Vec::new());
    for slot in 0..SLOTS {
        let found = history.transform_at(slot, at);
        history.limbs_at(slot, at, &mut sampler, &mut limbs);
        if at < ViewTime::of_tick(oldest) || at > ViewTime::of_tick(newest) {
            assert!(found.is_none() && limbs.is_empty());
            continue;
        }
        let expect = naive.transform(slot, at);
        assert_eq!(found, expect, "slot {slot} at {at:?}");
        let Some((place, rotation)) = expect else {
            assert!(limbs.is_empty());
            continue;
        };
        let pose = naive.pose(slot, at);
        assert_eq!(limbs.len(), pose.len());
        for (limb, local) in limbs.iter().zip(pose) {
            let (from, to) = (place + rotation * local.from, place + rotation * local.to);
            assert!(limb.from.abs_diff_eq(from, 1e-4) && limb.to.abs_diff_eq(to, 1e-4), "slot {slot} at {at:?}");
        }
    }
}

/// What a shot hits, asked limb by limb and without a broad phase.
fn naive_hit(history: &History, shot: &PastShot) -> Option<(u32, u16, f32)> {
    let (mut sampler, mut limbs) = (PoseSampler::default(), Vec::new());
    let mut nearest: Option<(u32, u16, f32)> = None;
    for slot in (0..SLOTS).filter(|slot| shot.shooter != Some(*slot)) {
        history.limbs_at(slot, shot.at, &mut sampler, &mut limbs);
        for (limb, (ends, radius_m)) in limbs.iter().zip(rig_of(slot).radii_m()).enumerate() {
            let one = Limbs { from: &[ends.from], to: &[ends.to], radius_m: &[*radius_m] };
            let Some(hit) = cast_ray_at_limbs(&shot.ray, &one) else { continue };
            if nearest.is_none_or(|(.., distance_m)| hit.distance_m < distance_m) {
                nearest = Some((slot, limb as u16, hit.distance_m));
            }
        }
    }
    nearest
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_history_answers_what_one_that_keeps_everything_answers(
        steps in prop::collection::vec(step(), 1..90),
        asked in prop::collection::vec((0_u32..34, any::<u8>()), 12),
    ) {
        let (history, naive) = run(&steps);
        for (ago, part) in asked {
            let at = ViewTime::new(naive.tick.saturating_sub(ago), part);
            compare(&history, &naive, at);
            compare(&history, &naive, ViewTime::of_tick(at.tick()));
        }
    }

    #[test]
    fn shots_hit_what_each_limb_by_itself_says(
        steps in prop::collection::vec(step(), 4..60),
        shots in prop::collection::vec((0_u32..20, any::<u8>(), -2.0_f32..20.0, 0.0_f32..2.5, 0_u32..SLOTS + 3), 20),
    ) {
        let (history, naive) = run(&steps);
        let (mut casts, mut hits) = (PastCasts::default(), Vec::new());
        let shots: Vec<PastShot> = shots.into_iter().map(|(ago, part, x, y, shooter)| {
            let at = ViewTime::new(naive.tick.saturating_sub(ago), part);
            let target = Vec3::new(x, y, at.tick() as f32 * 0.05);
            let origin = Vec3::new(8.0, 1.5, -20.0);
            let ray = Ray { origin, direction: target - origin, distance_m_max: 80.0 };
            PastShot { ray, at, shooter: Some(shooter) }
        }).collect();
        let counts = casts.cast(&history, None, &shots, &mut hits);
        prop_assert_eq!(counts.cast, 20);
        for (shot, hit) in shots.iter().zip(&hits) {
            let found = hit.map(|hit| match hit.target {
                PastTarget::Body { slot, limb } => (slot, limb, hit.distance_m),
                PastTarget::Level => (u32::MAX, 0, hit.distance_m),
            });
            match (found, naive_hit(&history, shot)) {
                (Some((slot, limb, far_m)), Some((expect_slot, expect_limb, expect_m))) => {
                    prop_assert!((far_m - expect_m).abs() < 1e-3);
                    // Limbs overlap at their joints: then either is right.
                    prop_assert!(slot == expect_slot && limb == expect_limb || (far_m - expect_m).abs() < 1e-5);
                }
                (found, expect) => prop_assert_eq!(found, expect),
            }
        }
    }
}
