//! What shots hit: what their shooter saw, where it was then, and nothing in a phase in which nobody can be hit.

use std::sync::{Arc, OnceLock};

use glam::{Quat, Vec3};
use proptest::prelude::*;
use throng_platform::time::Nanos;
use throng_query::{
    casts::Ray,
    geometry::{Aabb, LevelGeometry},
};
use throng_rewind::{
    history::{Body, History, HistoryError, HistorySettings},
    past_casts::{PastCasts, PastCounts, PastHit, PastShot, PastTarget},
    person,
    rig::{Layer, Playing, Rig},
    view_limits::{ShooterView, ViewLimits, ViewVerdict},
    view_time::ViewTime,
};

const TICKS_PER_S: u16 = 128;
const RUN_M_PER_S: f32 = 6.0;

fn rig() -> Arc<Rig> {
    static RIG: OnceLock<Arc<Rig>> = OnceLock::new();
    RIG.get_or_init(|| Arc::new(person::rig())).clone()
}

fn history(slots: u32) -> History {
    let mut history = History::new(&HistorySettings::new(TICKS_PER_S, slots), vec![rig()]).unwrap();
    (0..slots).for_each(|slot| assert!(history.insert(slot, 0)));
    history
}

/// Where a runner is: along x, 10 m ahead.
fn runner_at(tick: f32) -> Vec3 {
    Vec3::new(tick * RUN_M_PER_S / f32::from(TICKS_PER_S), 0.0, 10.0)
}

fn record(history: &mut History, tick: u32) {
    let running = Playing::one(rig().find_clip("run").unwrap(), tick as f32 / f32::from(TICKS_PER_S));
    history.begin_tick(tick);
    history.place(0, &Body::standing(runner_at(tick as f32), 1.57, running));
    history.end_tick();
}

fn shot_at(target: Vec3, at: ViewTime) -> PastShot {
    let origin = Vec3::new(target.x, 1.5, 0.0);
    PastShot { ray: Ray { origin, direction: target - origin, distance_m_max: 100.0 }, at, shooter: None }
}

fn cast(history: &History, level: Option<&LevelGeometry>, shot: PastShot) -> (Option<PastHit>, PastCounts) {
    let mut hits = Vec::new();
    let counts = PastCasts::default().cast(history, level, &[shot], &mut hits);
    (hits[0], counts)
}

fn slot_hit(hit: Option<PastHit>) -> Option<u32> {
    match hit?.target {
        PastTarget::Body { slot, .. } => Some(slot),
        PastTarget::Level => None,
    }
}

#[test]
fn a_shot_hits_what_its_shooter_saw_and_not_what_is_there_now() {
    let mut history = history(1);
    (0..200).for_each(|tick| record(&mut history, tick));
    let chest = Vec3::Y * 1.2;
    for ago in 0..25_u8 {
        let seen = ViewTime::new(198 - u32::from(ago), 77);
        let seen_at = runner_at(seen.tick() as f32 + seen.fraction());
        assert_eq!(slot_hit(cast(&history, None, shot_at(seen_at + chest, seen)).0), Some(0), "{ago} ticks ago");
        if ago > 18 {
            let now = runner_at(199.0) + chest;
            assert_eq!(slot_hit(cast(&history, None, shot_at(now, seen)).0), None, "it was not there then");
        }
    }
}

#[test]
fn a_head_is_hit_where_the_pose_has_it() {
    let mut history = history(2);
    for tick in 0..40 {
        history.begin_tick(tick);
        history.place(0, &Body::standing(Vec3::Z * 10.0, 0.0, Playing::one(0, tick as f32 / 128.0)));
        history.place(1, &Body::standing(Vec3::new(5.0, 0.0, 10.0), 0.0, Playing::one(3, tick as f32 / 128.0)));
        history.end_tick();
    }
    let at = ViewTime::new(30, 99);
    let (mut sampler, mut limbs) = (Default::default(), Vec::new());
    for slot in 0..2 {
        history.limbs_at(slot, at, &mut sampler, &mut limbs);
        let head = limbs[usize::from(person::HEAD)].to;
        let hit = cast(&history, None, shot_at(head, at)).0.unwrap();
        assert_eq!(hit.target, PastTarget::Body { slot, limb: person::HEAD });
    }
    // Who crouches is passed at the height of a head that stands.
    let above = shot_at(Vec3::new(5.0, 1.7, 10.0), at);
    assert_eq!(cast(&history, None, above).0, None);
}

#[test]
fn walls_stop_shots_and_nobody_hits_himself() {
    let mut history = history(2);
    for tick in 0..10 {
        history.begin_tick(tick);
        history.place(0, &Body::standing(Vec3::Z * 10.0, 0.0, Playing::default()));
        history.place(1, &Body::standing(Vec3::ZERO, 0.0, Playing::default()));
        history.end_tick();
    }
    let shot = PastShot { shooter: Some(1), ..shot_at(Vec3::new(0.0, 1.2, 10.0), ViewTime::of_tick(8)) };
    let before = LevelGeometry::from_boxes(&[Aabb::new(Vec3::new(-1.0, 0.0, 5.0), Vec3::new(1.0, 3.0, 6.0))]).unwrap();
    let behind =
        LevelGeometry::from_boxes(&[Aabb::new(Vec3::new(-1.0, 0.0, 15.0), Vec3::new(1.0, 3.0, 16.0))]).unwrap();
    assert_eq!(cast(&history, Some(&before), shot).0.map(|hit| hit.target), Some(PastTarget::Level));
    assert_eq!(slot_hit(cast(&history, Some(&behind), shot).0), Some(0));
    assert_eq!(
        slot_hit(cast(&history, None, PastShot { shooter: None, ..shot }).0),
        Some(1),
        "it begins inside of him"
    );
    let aside = PastShot { ray: Ray { direction: Vec3::X, ..shot.ray }, ..shot };
    assert_eq!(cast(&history, Some(&behind), aside).0, None);
}

/// Promise: in a phase in which nothing is recorded nobody is hit, whenever the shot was made; nothing is sampled; and
/// from the first tick after it on everybody is hit where he stands, in his own pose.
#[test]
fn a_phase_without_recording_costs_nothing_and_leaves_no_wrong_hit() {
    let mut history = history(1);
    (0..100).for_each(|tick| record(&mut history, tick));
    let poses = history.counts().poses;
    assert!((25..=26).contains(&poses), "one tick in four: {poses}");
    let chest = Vec3::Y * 1.2;
    let seen = |tick: u32| shot_at(runner_at(tick as f32) + chest, ViewTime::of_tick(tick));
    // The phase begins: what was fired before it still hits, what is fired in it does not.
    assert_eq!(slot_hit(cast(&history, None, seen(97)).0), Some(0));
    for tick in [100, 101, 300, 499] {
        let (hit, counts) = cast(&history, None, seen(tick));
        assert_eq!((hit, counts.unrecorded, counts.bodies), (None, 1, 0));
    }
    record(&mut history, 501);
    assert_eq!(history.counts().poses, poses + 1, "sampled at once, though it is not its turn");
    assert_eq!(slot_hit(cast(&history, None, seen(501)).0), Some(0));
    for tick in [97, 99, 499, 500] {
        assert_eq!(slot_hit(cast(&history, None, seen(tick)).0), None, "of before the phase's end");
    }
    let late = PastShot { at: ViewTime::new(500, 255), ..seen(501) };
    assert_eq!(slot_hit(cast(&history, None, late).0), None);
}

/// The body crouches behind cover when its opponent shoots; the shot is on its way for as long as the shooter likes.
#[test]
fn who_delays_packets_on_purpose_hits_nothing_beyond_the_clamp() {
    let limits = ViewLimits::new(TICKS_PER_S);
    let mut history = history(1);
    let chest = Vec3::Y * 1.2;
    for lag_ticks in [0, 5, 20, 25, 26, 40, 120] {
        let mut shooter = ShooterView::default();
        let fired = 1_000;
        let arrives = fired + lag_ticks;
        (arrives - 60..=arrives).for_each(|tick| record(&mut history, tick));
        let claimed = ViewTime::of_tick(fired);
        let admitted = limits.admit(&mut shooter, arrives, claimed, Nanos::from_millis(700));
        let is_old = lag_ticks > 25;
        assert_eq!(admitted.verdict, if is_old { ViewVerdict::BeyondClamp } else { ViewVerdict::AsClaimed });
        let target = runner_at(fired as f32) + chest;
        let hit = cast(&history, None, shot_at(target, admitted.at)).0;
        // At 26 ticks he has moved on by some centimetres only.
        if lag_ticks <= 26 {
            assert_eq!(slot_hit(hit), Some(0), "{lag_ticks} ticks late");
        } else if lag_ticks > 40 {
            assert_eq!(slot_hit(hit), None, "{lag_ticks} ticks late");
        }
    }
}

#[test]
fn who_is_there_keeps_its_past_when_room_is_made_for_others() {
    let mut history = history(1);
    (0..40).for_each(|tick| record(&mut history, tick));
    assert!(history.make_room(3) && history.make_room(2));
    assert_eq!(history.slots(), 3);
    let chest = Vec3::Y * 1.2;
    let seen = |tick: u32| shot_at(runner_at(tick as f32) + chest, ViewTime::of_tick(tick));
    for tick in [20, 31, 39] {
        assert_eq!(slot_hit(cast(&history, None, seen(tick)).0), Some(0), "of tick {tick}");
    }
    assert!(!history.place(2, &Body::standing(Vec3::ZERO, 0.0, Playing::default())), "nobody has the slot yet");
    assert!(history.insert(2, 0));
    history.begin_tick(40);
    let aside = runner_at(40.0) + Vec3::X * 5.0;
    for (slot, at) in [(0, runner_at(40.0)), (2, aside)] {
        assert!(history.place(slot, &Body::standing(at, 0.0, Playing::default())));
    }
    history.end_tick();
    assert_eq!(slot_hit(cast(&history, None, seen(40)).0), Some(0));
    let of_newcomer = shot_at(aside + chest, ViewTime::of_tick(40));
    assert_eq!(slot_hit(cast(&history, None, of_newcomer).0), Some(2));
    let before_it_came = shot_at(aside + chest, ViewTime::of_tick(39));
    assert_eq!(slot_hit(cast(&history, None, before_it_came).0), None);
    assert!(!history.make_room(u32::MAX));
    assert_eq!(history.slots(), 3);
}

#[test]
fn a_history_that_cannot_be_is_refused() {
    let good = HistorySettings::new(128, 10);
    let new = |settings: HistorySettings| History::new(&settings, vec![rig()]).map(drop);
    assert_eq!(new(good), Ok(()));
    assert_eq!(new(HistorySettings { ticks_per_s: 0, ..good }), Err(HistoryError::Rate));
    assert_eq!(new(HistorySettings { back: Nanos::from_secs(3), ..good }), Err(HistoryError::Back));
    assert_eq!(new(HistorySettings { slots: 0, ..good }), Err(HistoryError::Slots { slots: 0 }));
    assert_eq!(new(HistorySettings { slots: 1 << 17, ..good }), Err(HistoryError::Slots { slots: 1 << 17 }));
    assert_eq!(History::new(&good, vec![]).map(drop), Err(HistoryError::Rigs { rigs: 0 }));
    assert_eq!(new(HistorySettings { pose_every: 0, ..good }), Ok(()), "as often as can be");
}

/// Any number at all, and as often one that may mean something.
fn number() -> impl Strategy<Value = f32> {
    prop_oneof![prop::num::f32::ANY, -20.0_f32..20.0]
}

fn any_vec() -> impl Strategy<Value = Vec3> {
    prop::array::uniform3(number()).prop_map(Vec3::from_array)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Promise: no number that a game or a client gives panics, and who is refused is not hit.
    #[test]
    fn any_numbers_are_answered(
        bodies in prop::collection::vec(
            (any::<u32>(), any_vec(), prop::array::uniform4(number()), (any::<u16>(), number(), number())),
            1..20,
        ),
        shots in prop::collection::vec((any_vec(), any_vec(), number(), any::<u32>(), any::<u8>()), 1..20),
        first_tick in any::<u32>(),
    ) {
        let mut history = history(4);
        let mut tick = first_tick;
        for (number, at, rotation, (clip, at_s, weight)) in bodies {
            history.begin_tick(tick);
            let layers = [Layer { clip, at_s, weight }, Layer { clip: 2, at_s, weight: 1.0 }, Layer::default()];
            let playing = Playing { layers };
            let body = Body { at, rotation: Quat::from_array(rotation), jumped: number % 5 == 0, playing };
            history.place(number % 6, &body);
            history.end_tick();
            tick = if number % 13 == 0 { number } else { tick.wrapping_add(number % 3) };
        }
        let (mut casts, mut hits) = (PastCasts::default(), Vec::new());
        let shots: Vec<PastShot> = shots.into_iter().map(|(origin, direction, distance_m_max, ago, part)| {
            let at = ViewTime::new(if ago % 2 == 0 { ago } else { tick.wrapping_sub(ago % 8) }, part);
            PastShot { ray: Ray { origin, direction, distance_m_max }, at, shooter: Some(ago % 9) }
        }).collect();
        let counts = casts.cast(&history, None, &shots, &mut hits);
        prop_assert_eq!(hits.len(), shots.len());
        prop_assert_eq!((counts.cast + counts.rejected) as usize, shots.len());
        for hit in hits.into_iter().flatten() {
            prop_assert!(hit.distance_m >= 0.0 && hit.point.is_finite());
        }
    }
}
