//! Proof: whether one region is hidden from another, whatever point of each is taken.
//!
//! What a convex solid hides from a point is convex: with two hidden points it hides all between them. So it hides a box
//! from the point if it hides the corners; and what holds for the corners of a second box, as points, holds for all of that
//! one. One solid is thus asked 64 lines and no more, and its answer is exact. Where one solid is not enough, the larger
//! region is cut in two, and both halves have to be hidden.
//!
//! Solids are taken a little smaller than they are, so that no rounding of a cast finds a way past.

use glam::Vec3;

use crate::geometry::{Aabb, LevelGeometry, Line};

/// How much smaller (m). Rounding of a line of 1 km is a tenth of it.
const MARGIN_M: f32 = 0.002;

/// Whether the solid meets every line from a point of `from` to one of `to`.
pub(super) fn hides(level: &LevelGeometry, solid: u32, from: &Aabb, to: &Aabb) -> bool {
    let Some(solid) = level.shrunk(solid, MARGIN_M) else { return false };
    let (ends, ends_count) = corners(to);
    let (begins, begins_count) = corners(from);
    begins[..begins_count].iter().all(|begin| {
        let meets = |end: &Vec3| Line::new(*begin, *end - *begin).is_some_and(|line| solid.meets(&line));
        ends[..ends_count].iter().all(meets)
    })
}

/// The corners of a box, and how many: one, if it is a point.
fn corners(of: &Aabb) -> ([Vec3; 8], usize) {
    let corner = |number: usize| {
        let pick = |axis: usize| if number >> axis & 1 == 0 { of.min[axis] } else { of.max[axis] };
        Vec3::new(pick(0), pick(1), pick(2))
    };
    (std::array::from_fn(corner), if of.min == of.max { 1 } else { 8 })
}

/// What the line from the middle of `from` to that of `to` says: whether the first solid on it, or the last one, hides all of
/// `to` from all of `from`.
pub(super) fn is_hidden_by_one(level: &LevelGeometry, from: &Aabb, to: &Aabb) -> Middle {
    let (begin, end) = (from.center(), to.center());
    let there = Line::new(begin, end - begin);
    let Some((first, _)) = there.and_then(|line| level.first_hit(&line)) else { return Middle::Clear };
    if hides(level, first, from, to) {
        return Middle::Hidden;
    }
    let back = Line::new(end, begin - end);
    let last = back.and_then(|line| level.first_hit(&line)).map(|(last, _)| last).filter(|last| *last != first);
    if last.is_some_and(|last| hides(level, last, from, to)) { Middle::Hidden } else { Middle::Blocked }
}

/// What one line says of two regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Middle {
    /// The middle of the one sees that of the other.
    Clear,
    /// One solid hides the one from the other.
    Hidden,
    /// Neither is known.
    Blocked,
}

/// Whether all of `to` is hidden from all of `from`, found by cutting them into up to `steps` pairs of parts. False where
/// they are not, or where more steps would be needed.
pub(super) fn is_hidden(level: &LevelGeometry, from: &Aabb, to: &Aabb, steps: u32) -> bool {
    let mut left = steps;
    is_hidden_in(level, from, to, &mut left)
}

fn is_hidden_in(level: &LevelGeometry, from: &Aabb, to: &Aabb, steps: &mut u32) -> bool {
    let Some(left) = steps.checked_sub(1) else { return false };
    *steps = left;
    match is_hidden_by_one(level, from, to) {
        Middle::Clear => false,
        Middle::Hidden => true,
        Middle::Blocked if from.size_m().max_element() >= to.size_m().max_element() => {
            halves(from).iter().all(|half| is_hidden_in(level, half, to, steps))
        }
        Middle::Blocked => halves(to).iter().all(|half| is_hidden_in(level, from, half, steps)),
    }
}

/// A box cut across its longest side; across its height only if that is by far the longest, since walls are high.
fn halves(of: &Aabb) -> [Aabb; 2] {
    let size = of.size_m() * Vec3::new(1.0, 0.25, 1.0);
    let axis = (0..3).max_by(|one, other| size[*one].total_cmp(&size[*other])).unwrap_or(0);
    let middle = of.center()[axis];
    let (mut lower, mut upper) = (*of, *of);
    (lower.max[axis], upper.min[axis]) = (middle, middle);
    [lower, upper]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(x: f32, z: f32, half_m: f32) -> Aabb {
        Aabb::new(Vec3::new(x - half_m, 0.5, z - half_m), Vec3::new(x + half_m, 1.8, z + half_m))
    }

    fn wall(min_x: f32, max_x: f32) -> Aabb {
        Aabb::new(Vec3::new(min_x, 0.0, 4.5), Vec3::new(max_x, 3.0, 5.5))
    }

    /// Regions of 2 m, 5 m before and behind.
    fn check(solids: &[Aabb], steps: u32, expect: bool) {
        let level = LevelGeometry::from_boxes(solids).unwrap();
        let (from, to) = (around(0.0, 0.0, 1.0), around(0.0, 10.0, 1.0));
        assert_eq!(is_hidden(&level, &from, &to, steps), expect, "{solids:?}");
        assert_eq!(is_hidden(&level, &to, &from, steps), expect, "{solids:?}, from behind");
    }

    #[test]
    fn one_wall_hides_and_an_end_of_it_does_not() {
        check(&[wall(-1.2, 1.2)], 1, true);
        check(&[wall(-1.2, 0.9)], 200, false);
        check(&[wall(-9.0, -1.2)], 200, false);
        let low = Aabb { max: Vec3::new(1.2, 1.5, 5.5), ..wall(-1.2, 1.2) };
        check(&[low], 200, false);
    }

    #[test]
    fn two_walls_hide_together_if_they_overlap_and_steps_suffice() {
        let [left, right] = [wall(-1.5, 0.3), Aabb::new(Vec3::new(-0.3, 0.0, 5.6), Vec3::new(1.5, 3.0, 6.0))];
        check(&[left, right], 1, false);
        check(&[left, right], 20_000, true);
        let ajar = Aabb { min: Vec3::new(0.6, 0.0, 5.6), ..right };
        check(&[left, ajar], 400, false);
    }

    #[test]
    fn a_triangle_hides_what_lies_on_its_two_sides() {
        let corners = [Vec3::new(-9.0, -5.0, 5.0), Vec3::new(9.0, -5.0, 5.0), Vec3::new(0.0, 20.0, 5.0)];
        let level = LevelGeometry::from_triangles(&[corners]).unwrap();
        let (from, to) = (around(0.0, 0.0, 1.0), around(0.0, 10.0, 1.0));
        assert!(is_hidden(&level, &from, &to, 1));
        assert!(!is_hidden(&level, &from, &around(0.0, 5.5, 1.0), 50), "it stands in it");
    }
}
