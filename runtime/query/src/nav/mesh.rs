//! The polygons of a nav mesh, in compact arrays.
//!
//! Edges of one polygon lie side by side, 36 bytes each with corner, inward normal and neighbour, because a walk reads
//! exactly those: a polygon of four edges is two or three cache lines. Connections are found here, from the corners
//! that polygons share, so a mesh from any source is connected in the same way.
//!
//! Never changes after [`NavMesh::from_polygons`]; shared by all worlds behind an `Arc`. A city block of 160 m is
//! about 750 polygons, 220 KB.

use std::collections::VecDeque;

use glam::{Vec2, Vec3};
use throng_pack::Pack;

use super::locate::PolygonGrid;
use crate::geometry::Aabb;

/// How far outside a polygon a point may lie by rounding and still be on it `(m)`. Coordinates of 4,000 m have steps
/// of 0.25 mm, so this holds for any level that fits the bake.
pub const SKIN_M: f32 = 0.001;

/// Edges of one polygon: what the bake makes at most, and the size of fixed arrays.
pub const EDGES_PER_POLYGON_MAX: usize = 8;

/// Marks an edge that is part of the border.
pub(super) const NONE: u32 = u32::MAX;

/// A polygon of one mesh: `0..polygon_count()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pack)]
#[pack(name = "throng.nav_polygon")]
pub struct PolygonId(pub u32);

/// A place on a mesh. Only meshes make them, so holding one means it was on the surface; it belongs to the mesh that
/// made it, and is worthless with another.
///
/// One that comes out of bytes is worth what these are: ask [`NavMesh::holds`] before anything else is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
#[pack(name = "throng.nav_point")]
pub struct NavPoint {
    #[pack(via = [f32; 3])]
    pub(super) position: Vec3,
    pub(super) polygon: PolygonId,
}

impl NavPoint {
    pub fn position(&self) -> Vec3 {
        self.position
    }

    pub fn polygon(&self) -> PolygonId {
        self.polygon
    }
}

/// What makes polygons unusable as a mesh. `polygon` counts in the slice that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NavMeshError {
    #[error("there is no polygon")]
    Empty,
    #[error("vertex {vertex} is not finite")]
    VertexNotFinite { vertex: usize },
    #[error("polygon {polygon} names vertex {vertex}, which does not exist")]
    NoSuchVertex { polygon: usize, vertex: u32 },
    #[error("polygon {polygon} has {count} corners, not 3 to {EDGES_PER_POLYGON_MAX}")]
    CornerCount { polygon: usize, count: usize },
    #[error("polygon {polygon} is not convex seen from above, or has no area")]
    NotConvex { polygon: usize },
    #[error("polygons {first} and {second} and at least one more share one edge on the same side")]
    EdgeShared { first: usize, second: usize },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Polygon {
    pub first_edge: u32,
    pub edge_count: u32,
    pub island: u32,
    /// Both equal on level ground, where heights need no looking up.
    pub height_min_m: f32,
    pub height_max_m: f32,
}

/// From `corner` to the next edge's corner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub corner: Vec3,
    /// Unit vector into the polygon, in the ground plane (x, z).
    pub inward: Vec2,
    /// The polygon behind this edge, or [`NONE`].
    pub neighbour: u32,
    /// The same edge as the neighbour has it, or [`NONE`].
    pub twin: u32,
    /// The polygon this edge belongs to.
    pub polygon: u32,
}

/// The walkable surface of a level.
pub struct NavMesh {
    pub(super) polygons: Vec<Polygon>,
    pub(super) edges: Vec<Edge>,
    /// Area up to and including each polygon `(m²)`, for random points.
    pub(super) area_sums_m2: Vec<f32>,
    pub(super) grid: PolygonGrid,
    bounds: Aabb,
    island_count: u32,
}

impl NavMesh {
    /// Makes a mesh from convex polygons given by their corners' numbers, in either winding.
    ///
    /// Two polygons are neighbours where they have the same two corners in common.
    pub fn from_polygons(vertices: &[Vec3], polygons: &[Vec<u32>]) -> Result<Self, NavMeshError> {
        if let Some(vertex) = vertices.iter().position(|vertex| !vertex.is_finite()) {
            return Err(NavMeshError::VertexNotFinite { vertex });
        }
        let mut mesh_polygons = Vec::with_capacity(polygons.len());
        let mut edges = Vec::new();
        let mut sides = Vec::new();
        for (polygon, corners) in polygons.iter().enumerate() {
            let corners = counter_clockwise(polygon, corners, vertices)?;
            let positions: Vec<Vec3> = corners.iter().map(|corner| vertices[*corner as usize]).collect();
            mesh_polygons.push(Polygon {
                first_edge: edges.len() as u32,
                edge_count: corners.len() as u32,
                island: NONE,
                height_min_m: positions.iter().fold(f32::MAX, |low, corner| low.min(corner.y)),
                height_max_m: positions.iter().fold(f32::MIN, |high, corner| high.max(corner.y)),
            });
            for (i, from) in corners.iter().enumerate() {
                let next = (i + 1) % corners.len();
                sides.push(Side {
                    low: (*from).min(corners[next]),
                    high: (*from).max(corners[next]),
                    edge: edges.len(),
                });
                let along = ground(positions[next]) - ground(positions[i]);
                edges.push(Edge {
                    corner: positions[i],
                    inward: along.perp().normalize(),
                    neighbour: NONE,
                    twin: NONE,
                    polygon: polygon as u32,
                });
            }
        }
        connect(&mut edges, sides)?;
        let island_count = name_islands(&mut mesh_polygons, &edges);
        Self::finish(mesh_polygons, edges, island_count)
    }

    fn finish(polygons: Vec<Polygon>, mut edges: Vec<Edge>, island_count: u32) -> Result<Self, NavMeshError> {
        edges.shrink_to_fit(); // kept for as long as the level
        let first = edges.first().ok_or(NavMeshError::Empty)?;
        let bounds = edges.iter().fold(Aabb::new(first.corner, first.corner), |bounds, edge| {
            Aabb::new(bounds.min.min(edge.corner), bounds.max.max(edge.corner))
        });
        let mut sum_m2 = 0.0;
        let area_sums_m2 = polygons
            .iter()
            .map(|polygon| {
                let corners = &edges[polygon.first_edge as usize..][..polygon.edge_count as usize];
                sum_m2 += fan(corners).map(|[a, b, c]| triangle_area_m2(a, b, c)).sum::<f32>();
                sum_m2
            })
            .collect();
        let grid = PolygonGrid::new(&polygons, &edges, bounds);
        Ok(Self { polygons, edges, area_sums_m2, grid, bounds, island_count })
    }

    pub fn polygon_count(&self) -> usize {
        self.polygons.len()
    }

    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// The smallest box around the surface.
    pub fn bounds(&self) -> Aabb {
        self.bounds
    }

    pub fn area_m2(&self) -> f32 {
        self.area_sums_m2.last().copied().unwrap_or(0.0)
    }

    /// Parts of the surface that cannot be reached from each other.
    pub fn island_count(&self) -> u32 {
        self.island_count
    }

    /// Whether there is a way between two points: a comparison, no search.
    pub fn connected(&self, one: NavPoint, other: NavPoint) -> bool {
        self.polygon(one.polygon).island == self.polygon(other.polygon).island
    }

    /// Corners of a polygon, for debug views.
    pub fn corners(&self, polygon: PolygonId) -> impl Iterator<Item = Vec3> {
        self.edges_of(polygon).iter().map(|edge| edge.corner)
    }

    /// Whether `point` lies on its polygon: within [`SKIN_M`] of it seen from above, and at its height. A point of another
    /// mesh, or of bytes from anywhere, is answered as well.
    pub fn holds(&self, point: NavPoint) -> bool {
        if point.polygon.0 as usize >= self.polygon_count() {
            return false;
        }
        let place = ground(point.position);
        let inside = self.edges_of(point.polygon).iter().all(|edge| edge.distance_m(place) >= -SKIN_M);
        inside && (self.height_m(point.polygon, place) - point.position.y).abs() <= 0.01
    }

    /// Heap memory held.
    pub fn heap_bytes(&self) -> usize {
        self.polygons.capacity() * size_of::<Polygon>()
            + self.edges.capacity() * size_of::<Edge>()
            + self.area_sums_m2.capacity() * size_of::<f32>()
            + self.grid.heap_bytes()
    }

    /// Asserts every invariant that walks and searches rely on.
    pub fn check(&self) {
        for (index, polygon) in self.polygons.iter().enumerate() {
            assert!((3..=EDGES_PER_POLYGON_MAX as u32).contains(&polygon.edge_count));
            assert!(polygon.height_min_m <= polygon.height_max_m);
            assert!(polygon.island < self.island_count);
            let edges = self.edges_of(PolygonId(index as u32));
            for edge in edges {
                assert_eq!(edge.polygon, index as u32);
                assert!(edge.corner.is_finite());
                assert!((edge.inward.length() - 1.0).abs() < 1e-3);
                assert!(edges.iter().all(|other| edge.distance_m(ground(other.corner)) >= -SKIN_M), "convex");
            }
        }
        for (index, edge) in self.edges.iter().enumerate() {
            assert_eq!(edge.neighbour == NONE, edge.twin == NONE);
            if edge.twin != NONE {
                let twin = &self.edges[edge.twin as usize];
                assert_eq!(twin.twin, index as u32);
                assert_eq!(twin.polygon, edge.neighbour);
                assert_eq!(twin.corner, self.edge_end(index as u32));
                assert_eq!(self.polygons[twin.polygon as usize].island, self.polygons[edge.polygon as usize].island);
            }
        }
        assert!(self.area_m2() > 0.0);
    }

    pub(super) fn polygon(&self, id: PolygonId) -> &Polygon {
        &self.polygons[id.0 as usize]
    }

    pub(super) fn edges_of(&self, id: PolygonId) -> &[Edge] {
        let polygon = self.polygon(id);
        &self.edges[polygon.first_edge as usize..][..polygon.edge_count as usize]
    }

    /// The corner at which an edge ends: its polygon's next corner.
    pub(super) fn edge_end(&self, edge: u32) -> Vec3 {
        self.edges[self.edge_after(edge) as usize].corner
    }

    pub(super) fn edge_after(&self, edge: u32) -> u32 {
        let polygon = &self.polygons[self.edges[edge as usize].polygon as usize];
        let last = polygon.first_edge + polygon.edge_count - 1;
        if edge == last { polygon.first_edge } else { edge + 1 }
    }

    pub(super) fn edge_before(&self, edge: u32) -> u32 {
        let polygon = &self.polygons[self.edges[edge as usize].polygon as usize];
        let last = polygon.first_edge + polygon.edge_count - 1;
        if edge == polygon.first_edge { last } else { edge - 1 }
    }

    /// Height of a polygon at a place on it; just outside, that of the nearest part of it.
    pub(super) fn height_m(&self, id: PolygonId, place: Vec2) -> f32 {
        let polygon = self.polygon(id);
        if polygon.height_min_m == polygon.height_max_m {
            return polygon.height_min_m;
        }
        // A polygon need not be flat: of the triangles it fans out to, take the one that holds the place best.
        let mut height_m = polygon.height_min_m;
        let mut best = f32::MIN;
        for [a, b, c] in fan(self.edges_of(id)) {
            let (ab, ac, to) = (ground(b) - ground(a), ground(c) - ground(a), place - ground(a));
            let area = ab.perp_dot(ac);
            if area <= 0.0 {
                continue;
            }
            let (u, v) = (to.perp_dot(ac) / area, ab.perp_dot(to) / area);
            let inside = u.min(v).min(1.0 - u - v);
            if inside > best {
                best = inside;
                height_m = a.y + (b.y - a.y) * u + (c.y - a.y) * v;
            }
        }
        height_m.clamp(polygon.height_min_m, polygon.height_max_m)
    }

    pub(super) fn point_on(&self, polygon: PolygonId, place: Vec2) -> NavPoint {
        NavPoint { position: Vec3::new(place.x, self.height_m(polygon, place), place.y), polygon }
    }
}

impl Edge {
    /// How far inside this edge a place is `(m)`; negative outside.
    pub fn distance_m(&self, place: Vec2) -> f32 {
        self.inward.dot(place - ground(self.corner))
    }
}

/// A point seen from above: x and z.
pub(super) fn ground(point: Vec3) -> Vec2 {
    Vec2::new(point.x, point.z)
}

/// The triangles of a convex polygon, all with its first corner.
pub(super) fn fan(edges: &[Edge]) -> impl Iterator<Item = [Vec3; 3]> {
    edges[1..].windows(2).map(|pair| [edges[0].corner, pair[0].corner, pair[1].corner])
}

pub(super) fn triangle_area_m2(a: Vec3, b: Vec3, c: Vec3) -> f32 {
    (ground(b) - ground(a)).perp_dot(ground(c) - ground(a)) * 0.5
}

/// The corners in the order every other part relies on, if they make a usable polygon.
fn counter_clockwise(polygon: usize, corners: &[u32], vertices: &[Vec3]) -> Result<Vec<u32>, NavMeshError> {
    let count = corners.len();
    if !(3..=EDGES_PER_POLYGON_MAX).contains(&count) {
        return Err(NavMeshError::CornerCount { polygon, count });
    }
    if let Some(vertex) = corners.iter().find(|corner| **corner as usize >= vertices.len()) {
        return Err(NavMeshError::NoSuchVertex { polygon, vertex: *vertex });
    }
    let place = |i: usize, corners: &[u32]| ground(vertices[corners[i % count] as usize]);
    let mut corners = corners.to_vec();
    let area: f32 = (0..count).map(|i| place(i, &corners).perp_dot(place(i + 1, &corners))).sum();
    if area < 0.0 {
        corners.reverse();
    }
    for i in 0..count {
        let (from, to) = (place(i, &corners), place(i + 1, &corners));
        let inward = (to - from).perp().try_normalize().ok_or(NavMeshError::NotConvex { polygon })?;
        let depth = |j: usize| inward.dot(place(j, &corners) - from);
        let convex = (0..count).all(|j| depth(j) >= -SKIN_M) && (0..count).any(|j| depth(j) > SKIN_M);
        if !convex {
            return Err(NavMeshError::NotConvex { polygon });
        }
    }
    Ok(corners)
}

/// An edge under its two vertices, whichever way round.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Side {
    low: u32,
    high: u32,
    edge: usize,
}

fn connect(edges: &mut [Edge], mut sides: Vec<Side>) -> Result<(), NavMeshError> {
    sides.sort_unstable();
    for same in sides.chunk_by(|one, other| (one.low, one.high) == (other.low, other.high)) {
        let [one, other] = match same {
            [_] => continue,
            [one, other] => [one.edge, other.edge],
            more => {
                let polygon = |i: usize| edges[more[i].edge].polygon as usize;
                return Err(NavMeshError::EdgeShared { first: polygon(0), second: polygon(1) });
            }
        };
        // Neighbours run along their common edge in opposite directions; otherwise they lie on the same side of it.
        if edges[one].corner == edges[other].corner {
            let (first, second) = (edges[one].polygon as usize, edges[other].polygon as usize);
            return Err(NavMeshError::EdgeShared { first, second });
        }
        (edges[one].twin, edges[one].neighbour) = (other as u32, edges[other].polygon);
        (edges[other].twin, edges[other].neighbour) = (one as u32, edges[one].polygon);
    }
    Ok(())
}

fn name_islands(polygons: &mut [Polygon], edges: &[Edge]) -> u32 {
    let mut count = 0;
    let mut queue = VecDeque::new();
    for start in 0..polygons.len() {
        if polygons[start].island != NONE {
            continue;
        }
        polygons[start].island = count;
        queue.push_back(start);
        while let Some(index) = queue.pop_front() {
            let polygon = polygons[index];
            for edge in &edges[polygon.first_edge as usize..][..polygon.edge_count as usize] {
                if edge.neighbour != NONE && polygons[edge.neighbour as usize].island == NONE {
                    polygons[edge.neighbour as usize].island = count;
                    queue.push_back(edge.neighbour as usize);
                }
            }
        }
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(points: &[(f32, f32)]) -> Vec<Vec3> {
        points.iter().map(|(x, z)| Vec3::new(*x, 0.0, *z)).collect()
    }

    #[test]
    fn neighbours_and_islands_come_from_shared_corners() {
        // 0-1-2 in a row, the last quad apart; windings mixed.
        let vertices = flat(&[
            (0.0, 0.0),
            (1.0, 0.0),
            (2.0, 0.0),
            (0.0, 1.0),
            (1.0, 1.0),
            (2.0, 1.0),
            (5.0, 0.0),
            (6.0, 0.0),
            (6.0, 1.0),
        ]);
        let mesh = NavMesh::from_polygons(&vertices, &[vec![0, 1, 4, 3], vec![4, 5, 2, 1], vec![6, 7, 8]]).unwrap();
        mesh.check();
        assert_eq!((mesh.polygon_count(), mesh.island_count()), (3, 2));
        assert_eq!(mesh.area_m2(), 2.5);
        let points = [0, 1, 2].map(|polygon| mesh.point_on(PolygonId(polygon), Vec2::ZERO));
        assert!(mesh.connected(points[0], points[1]));
        assert!(!mesh.connected(points[0], points[2]));
    }

    #[test]
    fn unusable_polygons_are_named() {
        let vertices = flat(&[(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.5, 0.5)]);
        let check = |polygons: &[Vec<u32>], expect: NavMeshError| {
            assert_eq!(NavMesh::from_polygons(&vertices, polygons).err(), Some(expect));
        };
        check(&[], NavMeshError::Empty);
        check(&[vec![0, 1]], NavMeshError::CornerCount { polygon: 0, count: 2 });
        check(&[vec![0, 1, 9]], NavMeshError::NoSuchVertex { polygon: 0, vertex: 9 });
        check(&[vec![0, 1, 2], vec![0, 1, 4, 2, 3]], NavMeshError::NotConvex { polygon: 1 });
        check(&[vec![0, 4, 2]], NavMeshError::NotConvex { polygon: 0 });
        check(&[vec![0, 1, 2], vec![0, 1, 4]], NavMeshError::EdgeShared { first: 0, second: 1 });
        let broken = [Vec3::NAN; 3];
        assert_eq!(
            NavMesh::from_polygons(&broken, &[vec![0, 1, 2]]).err(),
            Some(NavMeshError::VertexNotFinite { vertex: 0 })
        );
    }

    #[test]
    fn heights_follow_the_slope() {
        let vertices = [Vec3::ZERO, Vec3::new(4.0, 2.0, 0.0), Vec3::new(4.0, 2.0, 4.0), Vec3::new(0.0, 0.0, 4.0)];
        let mesh = NavMesh::from_polygons(&vertices, &[vec![0, 1, 2, 3]]).unwrap();
        for (x, z) in [(0.0, 0.0), (1.0, 3.0), (2.0, 2.0), (3.5, 0.1), (4.0, 4.0)] {
            assert!((mesh.height_m(PolygonId(0), Vec2::new(x, z)) - x * 0.5).abs() < 1e-5);
        }
    }
}
