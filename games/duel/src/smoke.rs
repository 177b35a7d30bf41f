//! Smoke: which bodies a cloud hides from which eyes.
//!
//! A cloud hides a body for sure when no line from where the eye may get within the grace to where the body may get
//! misses it. What a ball hides from a point is convex, and so is the set of points from which it hides one; so it is
//! enough to ask for the corners of the two regions. Who is told a little too early is told; who is hidden cannot be
//! seen, so nobody steps out of smoke unannounced.
//!
//! From within the smoke one sees what is close. Sketch of the cost: up to 64 lines against a ball, some 0.2 µs; far
//! clouds end sooner.

use glam::Vec3;
use throng::prelude::*;
use throng_query::{geometry::Aabb, occlusion::Body};
use throng_replication::table_resource;

use crate::components::{CLOUD_RADIUS_M, CLOUDS_MAX, Cloud};

/// All clouds of a match, the oldest first.
#[derive(Default)]
pub struct Smoke {
    pub clouds: ArrayVec<Cloud, CLOUDS_MAX>,
}

table_resource!(Smoke);

impl StateHash for Smoke {
    fn hash_state(&self, hasher: &mut StateHasher) {
        hasher.write_u64(self.clouds.len() as u64);
        for Cloud { x, z, until_tick } in &self.clouds {
            hasher.write_f32(*x);
            hasher.write_f32(*z);
            hasher.write_u64((*until_tick).into());
        }
    }
}

impl Smoke {
    /// Adds a cloud; if there are as many as can be, in place of the oldest.
    pub fn add(&mut self, cloud: Cloud) {
        if self.clouds.is_full() {
            self.clouds.remove(0);
        }
        self.clouds.push(cloud);
    }

    /// Those whose time is over are gone.
    pub fn clear_until(&mut self, tick: u32) {
        self.clouds.retain(|cloud| tick < cloud.until_tick);
    }
}

/// So near one sees somebody in any smoke (m).
pub const NEAR_M: f32 = 2.5;

/// Whether one of the clouds hides a body from an eye, wherever the two get within `reach_s`.
pub fn hides(clouds: &[Cloud], viewer: &Body, body: &Body, reach_s: f32) -> bool {
    if clouds.is_empty() {
        return false;
    }
    let [eye_reach_m, reach_m] = [viewer, body].map(|one| one.speed_m_per_s_max * reach_s);
    let near_m = NEAR_M + eye_reach_m + reach_m;
    if viewer.feet.distance_squared(body.feet) <= near_m * near_m {
        return false;
    }
    let eyes = around(viewer.feet + Vec3::Y * viewer.eye_m, viewer.feet + Vec3::Y * viewer.eye_m, eye_reach_m);
    let crown = body.feet + Vec3::Y * body.height_m;
    let places = around(body.feet, crown, body.radius_m + reach_m);
    clouds.iter().any(|cloud| is_between(cloud.middle(), &eyes, &places))
}

/// Whether a cloud is on the straight way between two points.
pub fn is_on_line(clouds: &[Cloud], from: Vec3, to: Vec3) -> bool {
    clouds.iter().any(|cloud| touches(cloud.middle(), from, to))
}

/// Everything from one point up to another, and so far to the sides.
fn around(low: Vec3, high: Vec3, aside_m: f32) -> Aabb {
    let aside = Vec3::new(aside_m, 0.0, aside_m);
    Aabb::new(low - aside, high + aside)
}

fn is_between(middle: Vec3, eyes: &Aabb, places: &Aabb) -> bool {
    touches(middle, eyes.center(), places.center())
        && corners(eyes).iter().all(|eye| corners(places).iter().all(|place| touches(middle, *eye, *place)))
}

fn corners(region: &Aabb) -> [Vec3; 8] {
    let ends = [region.min, region.max];
    std::array::from_fn(|corner| Vec3::new(ends[corner & 1].x, ends[corner >> 1 & 1].y, ends[corner >> 2 & 1].z))
}

/// Whether a straight way comes into the ball of a cloud.
fn touches(middle: Vec3, from: Vec3, to: Vec3) -> bool {
    let way = to - from;
    let along = ((middle - from).dot(way) / way.length_squared().max(f32::EPSILON)).clamp(0.0, 1.0);
    (from + way * along).distance_squared(middle) <= CLOUD_RADIUS_M * CLOUD_RADIUS_M
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    const CLOUD: Cloud = Cloud { x: 0.0, z: 0.0, until_tick: 0 };

    fn body(x: f32, z: f32) -> Body {
        Body { life: 1, feet: Vec3::new(x, 0.0, z), ..Body::default() }
    }

    #[track_caller]
    fn check(viewer: [f32; 2], other: [f32; 2], expect: bool) {
        let [viewer, other] = [viewer, other].map(|[x, z]| body(x, z));
        assert_eq!(hides(&[CLOUD], &viewer, &other, 0.1), expect);
    }

    #[test]
    fn who_is_behind_or_within_smoke_is_hidden_and_who_is_beside_it_is_not() {
        check([-15.0, 0.0], [5.0, 0.0], true);
        check([-15.0, 0.0], [0.0, 0.0], true);
        check([0.0, 0.0], [15.0, 0.0], true);
        check([-15.0, 0.0], [5.0, 4.0], false);
        check([-15.0, 0.0], [-5.0, 0.0], false);
        check([-15.0, 6.0], [15.0, 6.0], false);
        check([0.0, 0.0], [1.0, 0.0], false);
        assert!(!hides(&[], &body(-15.0, 0.0), &body(5.0, 0.0), 0.1));
    }

    /// Promise: of whom is hidden no point can be seen from anywhere that the eye may get to, within the grace.
    #[test]
    fn nothing_of_whom_is_hidden_can_be_seen_within_the_grace() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
        let reach_s = 0.18;
        let mut hidden = 0;
        for _ in 0..20_000 {
            let [viewer, other] = [(); 2].map(|()| body(rng.random_range(-12.0..12.0), rng.random_range(-12.0..12.0)));
            if !hides(&[CLOUD], &viewer, &other, reach_s) {
                continue;
            }
            hidden += 1;
            for _ in 0..20 {
                let mut within = |reach_m: f32| {
                    let angle: f32 = rng.random_range(0.0..6.3);
                    Vec3::new(angle.sin(), 0.0, angle.cos()) * rng.random_range(0.0..reach_m)
                };
                let reach_m = viewer.speed_m_per_s_max * reach_s;
                let eye = viewer.feet + Vec3::Y * viewer.eye_m + within(reach_m);
                let aside = within(reach_m + other.radius_m);
                let seen = other.feet + aside + Vec3::Y * rng.random_range(0.0..other.height_m);
                assert!(is_on_line(&[CLOUD], eye, seen), "{eye} sees {seen}");
            }
        }
        assert!(hidden > 500, "{hidden}");
    }
}
