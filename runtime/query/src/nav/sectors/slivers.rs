//! Slivers: polygons without area, which Recast may make of an outline that has several corners on one line, as along a side.
//!
//! ```text
//!   a ------------- c      Above the line a polygon whose edge is a-c; below it two, whose edges are a-b and b-c; between
//!    \___b_________/       them the sliver a-b-c, all on one line. Nobody stands on a sliver, and no mesh has one: its middle
//!                          corners become corners of the polygon above, which so has the same edges as those below.
//! ```

use glam::{Vec2, Vec3};

use crate::nav::mesh::{EDGES_PER_POLYGON_MAX, SKIN_M, ground};

/// The polygons without those that have no area. Where a neighbour has no room for more corners, its edge becomes a wall.
pub(super) fn without_slivers(vertices: &[Vec3], mut polygons: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    let place = |corner: u32| ground(vertices[corner as usize]);
    // One sliver may lie on another: each round takes those off that lie on polygons.
    while let Some(index) = polygons.iter().position(|corners| is_sliver(corners, place)) {
        let mut line = polygons.swap_remove(index);
        let along = line_of(&line, place);
        line.sort_by(|one, other| place(*one).dot(along).total_cmp(&place(*other).dot(along)));
        line.dedup();
        if let [first, middle @ .., last] = &line[..] {
            insert(&mut polygons, (*first, *last), middle);
        }
    }
    polygons
}

/// Whether all corners lie on one line, or nearly.
fn is_sliver(corners: &[u32], place: impl Fn(u32) -> Vec2) -> bool {
    let along = line_of(corners, &place);
    let origin = place(corners[0]);
    corners.iter().all(|corner| along.perp_dot(place(*corner) - origin).abs() <= SKIN_M)
}

/// The direction of a polygon's longest edge.
fn line_of(corners: &[u32], place: impl Fn(u32) -> Vec2) -> Vec2 {
    let edges = (0..corners.len()).map(|index| place(corners[(index + 1) % corners.len()]) - place(corners[index]));
    let longest = edges.max_by(|one, other| one.length_squared().total_cmp(&other.length_squared()));
    longest.and_then(Vec2::try_normalize).unwrap_or(Vec2::X)
}

/// Puts corners into the edge that a polygon has between two others.
fn insert(polygons: &mut [Vec<u32>], (first, last): (u32, u32), middle: &[u32]) {
    for corners in polygons.iter_mut().filter(|corners| corners.len() + middle.len() <= EDGES_PER_POLYGON_MAX) {
        let count = corners.len();
        for index in 0..count {
            let edge = (corners[index], corners[(index + 1) % count]);
            if edge == (first, last) {
                corners.splice(index + 1..index + 1, middle.iter().copied());
                return;
            }
            if edge == (last, first) {
                corners.splice(index + 1..index + 1, middle.iter().rev().copied());
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nav::NavMesh;

    #[test]
    fn what_a_sliver_joined_stays_joined() {
        let corners =
            [(0.0, 0.0), (4.0, 0.0), (10.0, 0.0), (10.0, 5.0), (0.0, 5.0), (4.0, -5.0), (0.0, -5.0), (10.0, -5.0)];
        let vertices = corners.map(|(x, z)| Vec3::new(x, 0.0, z));
        let above = vec![0, 2, 3, 4];
        let below = [vec![0, 6, 5, 1], vec![1, 5, 7, 2]];
        let sliver = vec![0, 1, 2];
        let polygons = without_slivers(&vertices, vec![above, sliver, below[0].clone(), below[1].clone()]);
        assert_eq!(polygons.len(), 3);
        let mesh = NavMesh::from_polygons(&vertices, &polygons).unwrap();
        mesh.check();
        assert_eq!((mesh.island_count(), mesh.edge_count()), (1, 13));
    }

    #[test]
    fn a_sliver_at_a_border_is_nothing() {
        let vertices = [(0.0, 0.0), (4.0, 0.0), (10.0, 0.0)].map(|(x, z)| Vec3::new(x, 0.0, z));
        assert!(without_slivers(&vertices, vec![vec![0, 1, 2]]).is_empty());
    }
}
