//! String pulling: the shortest line through a row of polygons.
//!
//! The way leads through portals, the edges between one polygon and the next. A funnel from the last corner keeps the
//! range of directions that pass all portals so far; when a portal lies outside, the line bends around the side it
//! lies beyond, that end becomes a corner and the funnel starts there anew (the "simple stupid funnel algorithm" of
//! Mononen).

use glam::Vec3;

use super::mesh::{SKIN_M, ground};

/// Ends of an edge as seen when walking through it.
#[derive(Clone, Copy)]
pub(super) struct Portal {
    pub left: Vec3,
    pub right: Vec3,
}

/// Calls `corner` for each bend of the shortest line from `from` through the portals to `to`, and for `to` itself.
/// Stops when `corner` says so. The last portal must be `to` on both sides.
pub(super) fn pull_string(from: Vec3, portals: &[Portal], to: Vec3, mut corner: impl FnMut(Vec3) -> bool) {
    let mut apex = from;
    let (mut left, mut right) = (from, from);
    let (mut left_index, mut right_index) = (0, 0);
    let mut index = 0;
    let mut bent = false;
    while index < portals.len() {
        let portal = portals[index];
        // The right side moves inwards, or it has not moved yet.
        if turn(apex, right, portal.right) >= 0.0 {
            if same(apex, right) || turn(apex, left, portal.right) < 0.0 {
                (right, right_index) = (portal.right, index);
            } else {
                bent = true;
                if !corner(left) {
                    return;
                }
                (apex, index) = (left, left_index + 1);
                (left, right, left_index, right_index) = (apex, apex, index - 1, index - 1);
                continue;
            }
        }
        if turn(apex, left, portal.left) <= 0.0 {
            if same(apex, left) || turn(apex, right, portal.left) > 0.0 {
                (left, left_index) = (portal.left, index);
            } else {
                bent = true;
                if !corner(right) {
                    return;
                }
                (apex, index) = (right, right_index + 1);
                (left, right, left_index, right_index) = (apex, apex, index - 1, index - 1);
                continue;
            }
        }
        index += 1;
    }
    let there = bent && same(apex, to); // the last bend was at the goal
    if !there {
        corner(to);
    }
}

/// Above 0 if `b` lies to the left of the line from `apex` to `a` (counter-clockwise in x, z).
fn turn(apex: Vec3, a: Vec3, b: Vec3) -> f32 {
    (ground(a) - ground(apex)).perp_dot(ground(b) - ground(apex))
}

fn same(one: Vec3, other: Vec3) -> bool {
    ground(one).distance_squared(ground(other)) < SKIN_M * SKIN_M
}

#[cfg(test)]
mod tests {
    use super::*;

    type Place = (f32, f32);

    fn check(portals: &[(Place, Place)], to: Place, expect: &[Place]) {
        let place = |(x, z): Place| Vec3::new(x, 0.0, z);
        let mut row: Vec<Portal> =
            portals.iter().map(|(left, right)| Portal { left: place(*left), right: place(*right) }).collect();
        row.push(Portal { left: place(to), right: place(to) });
        let mut corners = Vec::new();
        pull_string(Vec3::ZERO, &row, place(to), |corner| {
            corners.push((corner.x, corner.z));
            true
        });
        assert_eq!(corners, expect);
    }

    #[test]
    fn a_line_bends_only_where_it_must() {
        check(&[], (3.0, 3.0), &[(3.0, 3.0)]);
        // Walking along z: left is towards -x.
        check(&[((-1.0, 2.0), (1.0, 2.0)), ((-1.0, 4.0), (1.0, 4.0))], (0.0, 6.0), &[(0.0, 6.0)]);
        check(&[((-1.0, 2.0), (1.0, 2.0)), ((-1.0, 4.0), (1.0, 4.0))], (9.0, 5.0), &[(1.0, 4.0), (9.0, 5.0)]);
        check(
            &[((-9.0, 2.0), (-3.0, 2.0)), ((3.0, 4.0), (9.0, 4.0))],
            (3.0, 9.0),
            &[(-3.0, 2.0), (3.0, 4.0), (3.0, 9.0)],
        );
    }
}
