//! How far interpolated poses are off, in centimetres: those of every fourth tick against those of each, for a person who
//! stands, walks, runs and crouches, at 128 ticks a second. `cargo test -p throng-rewind --test pose_error -- --nocapture`
//! prints the table.

use std::sync::Arc;

use glam::Vec3;
use throng_rewind::{
    history::{Body, History, HistorySettings},
    person,
    pose_sampler::PoseSampler,
    rig::{Ends, Playing, Rig},
    view_time::ViewTime,
};

const TICKS_PER_S: u16 = 128;
const CLIPS: [&str; 4] = ["idle", "walk", "run", "crouch"];

struct Error {
    mean_cm: f32,
    max_cm: f32,
    /// The limb that is off by most.
    limb: usize,
}

/// A person plays a clip for two seconds; each tick's pose, a tick and a half later, against how it was.
fn error_of(rig: &Arc<Rig>, clip: u16, pose_every: u32) -> Error {
    let settings = HistorySettings { pose_every, ..HistorySettings::new(TICKS_PER_S, 1) };
    let mut history = History::new(&settings, vec![rig.clone()]).unwrap();
    assert!(history.insert(0, 0));
    let (mut sampler, mut limbs) = (PoseSampler::default(), Vec::new());
    let mut exact = vec![Ends::default(); rig.limbs()];
    let mut error = Error { mean_cm: 0.0, max_cm: 0.0, limb: 0 };
    let (mut sum_cm, mut count) = (0.0, 0);
    let at_s = |tick: u32| tick as f32 / f32::from(TICKS_PER_S);
    for tick in 0..2 * u32::from(TICKS_PER_S) {
        history.begin_tick(tick);
        assert!(history.place(0, &Body::standing(Vec3::ZERO, 0.0, Playing::one(clip, at_s(tick)))));
        history.end_tick();
        let Some(shown) = tick.checked_sub(6) else { continue };
        history.limbs_at(0, ViewTime::of_tick(shown), &mut sampler, &mut limbs);
        sampler.sample(rig, &Playing::one(clip, at_s(shown)), &mut exact);
        for (limb, (found, exact)) in limbs.iter().zip(&exact).enumerate() {
            let off_cm = found.from.distance(exact.from).max(found.to.distance(exact.to)) * 100.0;
            (sum_cm, count) = (sum_cm + off_cm, count + 1);
            if off_cm > error.max_cm {
                (error.max_cm, error.limb) = (off_cm, limb);
            }
        }
    }
    error.mean_cm = sum_cm / count as f32;
    error
}

/// Promise: half a centimetre on average and two at most, which is less than half of the thinnest limb.
#[test]
fn every_fourth_tick_is_as_good_as_each() {
    let rig = Arc::new(person::rig());
    let thinnest_cm = rig.radii_m().iter().fold(f32::MAX, |least, radius_m| least.min(*radius_m)) * 100.0;
    for name in CLIPS {
        let clip = rig.find_clip(name).unwrap();
        let Error { mean_cm, max_cm, limb } = error_of(&rig, clip, 4);
        println!("{name}: every 4th tick, {mean_cm:.2} cm on average, {max_cm:.2} cm at most (limb {limb})");
        assert!(mean_cm < 0.5 && max_cm < 2.0 && max_cm < thinnest_cm / 2.0, "{name}: {mean_cm} cm, {max_cm} cm");
        let each = error_of(&rig, clip, 1);
        assert!(each.max_cm < 0.01, "{name}: sampled in each tick it is exact, not {} cm off", each.max_cm);
    }
}
