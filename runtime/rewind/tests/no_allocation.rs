//! Promise: a steady tick with shots allocates nothing: everybody recorded, poses sampled, phases without recording
//! begun and ended, and bodies that come and go.

use std::sync::Arc;

use glam::Vec3;
use throng_platform::{
    allocator::{AllocationCounts, CountingAllocator, thread_counts},
    time::Nanos,
};
use throng_query::{
    casts::Ray,
    geometry::{Aabb, LevelGeometry},
};
use throng_rewind::{
    history::{Body, History, HistorySettings},
    past_casts::{PastCasts, PastShot},
    person,
    rig::{Playing, Rig},
    view_limits::{ShooterView, ViewLimits},
    view_time::ViewTime,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_steady_tick_with_shots_allocates_nothing() {
    let rigs = vec![Arc::new(person::rig()), Arc::new(Rig::upright(0.4, 1.8).unwrap())];
    let mut history = History::new(&HistorySettings::new(128, 40), rigs).unwrap();
    (0..40).for_each(|slot| assert!(history.insert(slot, (slot % 2) as u16)));
    let wall = Aabb::new(Vec3::new(-50.0, 0.0, 30.0), Vec3::new(50.0, 3.0, 31.0));
    let level = LevelGeometry::from_boxes(&[wall]).unwrap();
    let (mut casts, mut hits) = (PastCasts::default(), Vec::new());
    let mut shots = Vec::with_capacity(8);
    let limits = ViewLimits::new(128);
    let mut shooters = [ShooterView::default(); 8];
    let mut hit_count = 0;
    let mut tick_once = |tick: u32| {
        // A buy phase of half a second in every four.
        if tick % 512 >= 64 {
            history.begin_tick(tick);
            for slot in 0..40 {
                let playing = Playing::one(2, tick as f32 / 128.0);
                let at = Vec3::new(slot as f32 - 20.0, 0.0, 10.0 + (tick % 64) as f32 * 0.05);
                history.place(slot, &Body::standing(at, 0.0, playing));
            }
            history.end_tick();
        }
        if tick.is_multiple_of(100) {
            history.insert(tick / 100 % 40, (tick / 100 % 2) as u16);
        }
        shots.clear();
        for (number, shooter) in shooters.iter_mut().enumerate() {
            let claimed = ViewTime::of_tick(tick).before(number as u64 * 700);
            let admitted = limits.admit(shooter, tick, claimed, Nanos::from_millis(number as u64 * 20));
            let origin = Vec3::new(number as f32 * 4.0 - 16.0, 1.5, 0.0);
            let direction = Vec3::new(0.1, -0.02, 1.0);
            let ray = Ray { origin, direction, distance_m_max: 60.0 };
            shots.push(PastShot { ray, at: admitted.at, shooter: Some(number as u32) });
        }
        casts.cast(&history, Some(&level), &shots, &mut hits);
        hit_count += hits.iter().flatten().count();
    };
    (0..1_024).for_each(&mut tick_once);
    let before = thread_counts();
    (1_024..3_072).for_each(&mut tick_once);
    assert_eq!(thread_counts() - before, AllocationCounts::default());
    assert!(hit_count > 1_000, "{hit_count} hits: the test tests something");
}

/// A world in which somebody shoots for the first time has not hit anybody yet.
#[test]
fn the_first_hit_after_a_miss_allocates_nothing() {
    let rig = Arc::new(Rig::upright(0.4, 1.8).unwrap());
    let mut history = History::new(&HistorySettings::new(20, 3), vec![rig]).unwrap();
    assert!(history.insert(2, 0));
    history.begin_tick(7);
    assert!(history.place(2, &Body::standing(Vec3::Z * 10.0, 0.0, Playing::default())));
    history.end_tick();
    let (mut casts, mut hits) = (PastCasts::default(), Vec::new());
    let shot = |direction| {
        let ray = Ray { origin: Vec3::Y, direction, distance_m_max: 60.0 };
        [PastShot { ray, at: ViewTime::of_tick(7), shooter: None }]
    };
    casts.cast(&history, None, &shot(Vec3::X), &mut hits);
    assert_eq!(hits, [None]);
    let before = thread_counts();
    casts.cast(&history, None, &shot(Vec3::Z), &mut hits);
    assert_eq!(thread_counts() - before, AllocationCounts::default());
    assert!(hits[0].is_some());
}
