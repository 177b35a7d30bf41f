//! Smoke: where the clouds of a match are, and what one cannot see for them.
//!
//! From within the smoke one sees what is close. Whom walls and smoke hide together is the fog's to find out, line by line
//! ([`crate::sight`]). Sketch of the cost: some nanoseconds for a line and a cloud.

use glam::Vec3;
use throng::prelude::*;
use throng_replication::table_resource;

use crate::components::{CLOUD_RADIUS_M, CLOUDS_MAX, Cloud};

/// All clouds of a match, the oldest first.
#[derive(Pack, Default)]
#[pack(name = "duel.smoke")]
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
const NEAR_M: f32 = 2.5;

/// Whether an eye cannot see a point for smoke: a cloud is between them, and they are not near each other.
pub fn is_hidden_by(clouds: &[Cloud], eye: Vec3, point: Vec3) -> bool {
    eye.distance_squared(point) > NEAR_M * NEAR_M && is_on_line(clouds, eye, point)
}

/// Whether a cloud is on the straight way between two points.
pub fn is_on_line(clouds: &[Cloud], from: Vec3, to: Vec3) -> bool {
    clouds.iter().any(|cloud| touches(cloud.middle(), from, to))
}

/// Whether a straight way comes into the ball of a cloud.
fn touches(middle: Vec3, from: Vec3, to: Vec3) -> bool {
    let way = to - from;
    let along = ((middle - from).dot(way) / way.length_squared().max(f32::EPSILON)).clamp(0.0, 1.0);
    (from + way * along).distance_squared(middle) <= CLOUD_RADIUS_M * CLOUD_RADIUS_M
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOUDS: [Cloud; 1] = [Cloud { x: 0.0, z: 0.0, until_tick: 0 }];

    /// From one place to another, at the height of eyes.
    #[track_caller]
    fn check(from: [f32; 2], to: [f32; 2], expect: bool) {
        let [eye, point] = [from, to].map(|[x, z]| Vec3::new(x, 1.65, z));
        assert_eq!(is_hidden_by(&CLOUDS, eye, point), expect);
    }

    #[test]
    fn what_is_behind_or_within_smoke_is_hidden_and_what_is_beside_it_or_near_is_not() {
        check([-15.0, 0.0], [5.0, 0.0], true);
        check([-15.0, 0.0], [0.0, 0.0], true);
        check([0.0, 0.0], [15.0, 0.0], true);
        check([-15.0, 0.0], [5.0, 5.0], false);
        check([-15.0, 0.0], [-5.0, 0.0], false);
        check([0.0, 0.0], [2.4, 0.0], false);
        check([0.0, 0.0], [2.6, 0.0], true);
        assert!(!is_hidden_by(&[], Vec3::NEG_X, Vec3::X * 5.0));
    }
}
