//! Lines: along which one looks at another, now and within the grace.
//!
//! A viewer is an eye; who is looked at is a silhouette of three heights and three places across, from which the nine lines
//! are by which somebody counts as seen. Both may move meanwhile: how far is asked along eight directions, up to a wall
//! that the body comes to. Of what is within reach those places count from which one sees farthest around a corner: the
//! outermost ones to the left and to the right of the line between the two.

use glam::Vec3;

use crate::geometry::{Aabb, LevelGeometry, Line};

/// Somebody who is looked at, and who looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Body {
    /// Of whom it is: another number for whoever has the same index later, so that nothing that was found out about one
    /// holds for the other. 0: nobody is here.
    pub life: u32,
    /// The lowest point (m).
    pub feet: Vec3,
    /// From feet to eye (m).
    pub eye_m: f32,
    /// From feet to crown (m).
    pub height_m: f32,
    pub radius_m: f32,
    /// How fast it can get along the ground at most (m/s). Too low → it is told late; too high → it is told of to those
    /// who could never see it.
    pub speed_m_per_s_max: f32,
}

impl Default for Body {
    /// Nobody, of a person's size.
    fn default() -> Self {
        Self { life: 0, feet: Vec3::ZERO, eye_m: 1.65, height_m: 1.8, radius_m: 0.35, speed_m_per_s_max: 6.0 }
    }
}

impl Body {
    pub(super) fn is_finite(&self) -> bool {
        let sizes = Vec3::new(self.eye_m, self.height_m, self.radius_m);
        self.feet.is_finite() && sizes.is_finite() && self.speed_m_per_s_max.is_finite()
    }

    pub(super) fn eye(&self) -> Vec3 {
        self.feet + Vec3::Y * self.eye_m
    }

    /// The box around it, wider by `reach_m` on the ground and higher by `rise_m`.
    pub(super) fn region(&self, reach_m: f32, rise_m: f32) -> Aabb {
        let aside = self.radius_m + reach_m;
        let (wide, up) = (Vec3::new(aside, 0.0, aside), Vec3::Y * (self.height_m + rise_m));
        Aabb::new(self.feet + Vec3::Y * FOOT_M - wide, self.feet + wide + up)
    }

    /// The box in which its eye may be.
    pub(super) fn eye_region(&self, reach_m: f32, rise_m: f32) -> Aabb {
        let wide = Vec3::new(reach_m, 0.0, reach_m);
        Aabb::new(self.eye() - wide, self.eye() + wide + Vec3::Y * rise_m)
    }
}

/// Lowest of what is looked at: shoes are on the floor, and a line that ends there meets it. (m)
const FOOT_M: f32 = 0.05;
/// Heights that are looked at: below the crown, the middle, and above the feet. (m)
const BELOW_CROWN_M: f32 = 0.05;
const ABOVE_FEET_M: f32 = 0.1;

/// Directions in which is asked how far a body can get.
pub(super) const RING: usize = 8;

/// Where a body may be within a while: on the ground, straight on until it comes to a wall.
pub(super) fn ring(level: &LevelGeometry, body: &Body, reach_m: f32) -> [Vec3; RING] {
    let middle = body.feet + Vec3::Y * (body.height_m * 0.5);
    std::array::from_fn(|number| {
        let (sin, cos) = (number as f32 * (std::f32::consts::TAU / RING as f32)).sin_cos();
        let direction = Vec3::new(cos, 0.0, sin);
        let Some(line) = Line::new(middle, direction * reach_m) else { return body.feet };
        let far_m = match level.first_hit(&line) {
            Some((solid, at)) => {
                // Its side touches a wall before its middle does, the more so the flatter it comes to it.
                let straight = level.normal(solid, &line).dot(direction).abs().max(0.1);
                (at * reach_m - body.radius_m / straight).max(0.0)
            }
            None => reach_m,
        };
        body.feet + direction * far_m
    })
}

/// Two bodies, and what is to the left and right of the line from the one's eye to the other.
pub(super) struct Sight {
    eye: Vec3,
    body: Body,
    /// Across the line, on the ground, of length 1.
    across: Vec3,
}

/// Lines to somebody as it is.
pub(super) const LINES_NOW: u8 = 9;
/// Those, and the ones between places within reach.
pub(super) const LINES: u8 = LINES_NOW + 8;

/// The outermost places of a ring, to both sides of a line.
pub(super) type Sides = [Vec3; 2];

impl Sight {
    pub fn new(viewer: &Body, body: &Body) -> Self {
        let away = body.feet - viewer.feet;
        let across = Vec3::new(-away.z, 0.0, away.x).normalize_or(Vec3::X);
        Self { eye: viewer.eye(), body: *body, across }
    }

    /// One of the lines to somebody as it is. `number` below [`LINES_NOW`]; the first one ends in the middle of the body.
    pub fn line_now(&self, number: u8) -> (Vec3, Vec3) {
        let height_m = self.heights_m()[usize::from(number / 3)];
        let aside_m = [0.0, self.body.radius_m, -self.body.radius_m][usize::from(number % 3)];
        (self.eye, self.body.feet + Vec3::Y * height_m + self.across * aside_m)
    }

    /// One of the lines between places within reach. `number` from [`LINES_NOW`] to below [`LINES`]; `eyes` and `feet` are the
    /// sides of the viewer's and of the other's ring.
    pub fn line_within_reach(&self, number: u8, eyes: &Sides, feet: &Sides) -> (Vec3, Vec3) {
        let eye_at = |side: usize| Vec3::new(eyes[side].x, self.eye.y, eyes[side].z);
        // What comes around a corner first is its side.
        let outermost = [-self.body.radius_m, self.body.radius_m];
        let crown_at = |side: usize| feet[side] + self.across * outermost[side] + Vec3::Y * self.heights_m()[1];
        let crown = self.body.feet + Vec3::Y * self.heights_m()[1];
        match number - LINES_NOW {
            0 => (self.eye, crown_at(0)),
            1 => (self.eye, crown_at(1)),
            2 => (eye_at(0), crown),
            3 => (eye_at(1), crown),
            4 => (eye_at(0), crown_at(0)),
            5 => (eye_at(1), crown_at(1)),
            6 => (eye_at(0), crown_at(1)),
            _ => (eye_at(1), crown_at(0)),
        }
    }

    /// From all places that the eye may get to, to the crown at all that the other may.
    pub fn lines_between(&self, eyes: &[Vec3; RING], feet: &[Vec3; RING]) -> impl Iterator<Item = (Vec3, Vec3)> {
        let crown = Vec3::Y * self.heights_m()[1];
        let eyes = eyes.iter().map(|place| place.with_y(self.eye.y)).chain([self.eye]);
        let feet = feet.iter().copied().chain([self.body.feet]);
        eyes.flat_map(move |eye| feet.clone().map(move |feet| (eye, feet + crown)))
    }

    /// As both would look over what is between them if they rose.
    pub fn line_raised(&self, rise_m: f32) -> (Vec3, Vec3) {
        let rise = Vec3::Y * rise_m;
        (self.eye + rise, self.body.feet + Vec3::Y * self.heights_m()[1] + rise)
    }

    pub fn sides(&self, ring: &[Vec3; RING]) -> Sides {
        let aside = |place: &&Vec3| self.across.dot(**place);
        let by_side = |one: &&Vec3, other: &&Vec3| aside(one).total_cmp(&aside(other));
        [ring.iter().min_by(by_side), ring.iter().max_by(by_side)].map(|place| place.copied().unwrap_or(self.body.feet))
    }

    /// Middle, below the crown, above the feet.
    fn heights_m(&self) -> [f32; 3] {
        let height_m = self.body.height_m;
        [height_m * 0.5, height_m - BELOW_CROWN_M, ABOVE_FEET_M]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(x: f32, z: f32) -> Body {
        Body { life: 1, feet: Vec3::new(x, 0.0, z), ..Body::default() }
    }

    #[test]
    fn a_body_gets_as_far_as_the_wall_that_it_comes_to() {
        let wall = Aabb::new(Vec3::new(1.0, 0.0, -9.0), Vec3::new(2.0, 3.0, 9.0));
        let level = LevelGeometry::from_boxes(&[wall]).unwrap();
        let body = Body { radius_m: 0.25, ..body(0.0, 0.0) };
        let far_m = ring(&level, &body, 1.5).map(|place| (place.length() * 1_000.0).round() / 1_000.0);
        // At 45 degrees it comes to the wall later, but its side touches it sooner: 1.414 less 0.354.
        assert_eq!([far_m[0], far_m[1], far_m[7]], [0.75, 1.061, 1.061]);
        assert_eq!([far_m[2], far_m[4], far_m[6]], [1.5; 3]);
    }

    #[test]
    fn the_lines_now_end_at_the_whole_silhouette() {
        let sight = Sight::new(&body(0.0, 0.0), &body(0.0, 5.0));
        let ends: Vec<Vec3> = (0..LINES_NOW).map(|number| sight.line_now(number).1).collect();
        assert_eq!(ends[0], Vec3::new(0.0, 0.9, 5.0));
        let region = body(0.0, 5.0).region(0.0, 0.0);
        assert!(ends.iter().all(|end| region.contains(*end)), "{ends:?}");
        let wide = |ends: &[Vec3]| ends.iter().map(|end| (end.x * 100.0).round() as i32).collect::<Vec<_>>();
        assert_eq!(wide(&ends[3..6]), [0, -35, 35]);
    }

    #[test]
    fn the_lines_within_reach_begin_and_end_where_one_may_be() {
        let (viewer, other) = (body(0.0, 0.0), body(0.0, 5.0));
        let far = LevelGeometry::from_boxes(&[Aabb::new(Vec3::splat(500.0), Vec3::splat(501.0))]).unwrap();
        let sight = Sight::new(&viewer, &other);
        let [eyes, feet] = [&viewer, &other].map(|body| sight.sides(&ring(&far, body, 1.0)));
        let (begins, ends) = (viewer.eye_region(1.01, 0.0), other.region(1.01, 0.0));
        for number in LINES_NOW..LINES {
            let (begin, end) = sight.line_within_reach(number, &eyes, &feet);
            assert!(begins.contains(begin) && ends.contains(end), "{number}: {begin} to {end}");
        }
        let (_, outermost) = sight.line_within_reach(LINES_NOW, &eyes, &feet);
        assert!((outermost.x.abs() - 1.35).abs() < 0.001, "{outermost}");
    }
}
