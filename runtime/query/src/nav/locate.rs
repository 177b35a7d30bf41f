//! From any point to a point on the mesh: the nearest one, or a random one.
//!
//! A uniform grid over the ground lists, for each cell, the polygons whose bounds touch it. The nearest point is looked
//! for in rings of cells around the asked one, until the next ring cannot hold anything nearer.
//!
//! Any thread, no allocation. Cost: about 0.3 µs for a point on the mesh; a point far off it reads the rings up to its
//! reach.

use glam::{Vec2, Vec3};
use rand::Rng;

use super::mesh::{Edge, NavMesh, NavPoint, Polygon, PolygonId, SKIN_M, fan, ground, triangle_area_m2};
use crate::geometry::Aabb;

/// Cells of the grid at most; they grow beyond [`CELL_M_MIN`] to keep to it.
const CELLS_MAX: usize = 1 << 16;

/// Smaller cells than this would mostly list the same polygons as their neighbours `(m)`.
const CELL_M_MIN: f32 = 2.0;

/// Why no point on the mesh is the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NavError {
    #[error("the point or the reach is not finite")]
    NotFinite,
    #[error("no point of the mesh is within reach")]
    OffMesh,
}

impl NavMesh {
    /// The point of the mesh nearest to `point`, at most `reach_m` away; straight above and below count as distance
    /// too, so on a level with floors the right one is found. Of equally near polygons the lowest number wins.
    ///
    /// Use a reach of about a character's height: too short and a jumping player is off the mesh, too long and a
    /// player on a roof is found on the street.
    pub fn nearest(&self, point: Vec3, reach_m: f32) -> Result<NavPoint, NavError> {
        if !point.is_finite() || !reach_m.is_finite() {
            return Err(NavError::NotFinite);
        }
        let place = ground(point);
        let (column, row) = self.grid.column_row(place);
        let mut best: Option<(f32, NavPoint)> = None;
        for ring in 0..self.grid.columns.max(self.grid.rows) as i32 {
            let nearest_m = best.map_or(reach_m, |(distance_m2, _)| distance_m2.sqrt());
            if self.grid.ring_distance_m(place, ring) > nearest_m {
                break;
            }
            self.grid.each_in_ring(column, row, ring, |polygon| {
                let id = PolygonId(polygon);
                let candidate = self.point_on(id, self.closest_place(id, place));
                let distance_m2 = candidate.position.distance_squared(point);
                let better = best.is_none_or(|(best_m2, best)| {
                    distance_m2 < best_m2 || (distance_m2 == best_m2 && id < best.polygon)
                });
                if better && distance_m2 <= reach_m * reach_m {
                    best = Some((distance_m2, candidate));
                }
            });
        }
        best.map(|(_, point)| point).ok_or(NavError::OffMesh)
    }

    /// A point picked evenly over the whole surface. Uses three numbers of the generator.
    pub fn random_point(&self, rng: &mut impl Rng) -> NavPoint {
        let at_m2 = rng.random_range(0.0..1.0) * self.area_m2();
        let index = self.area_sums_m2.partition_point(|sum_m2| *sum_m2 <= at_m2).min(self.polygons.len() - 1);
        let id = PolygonId(index as u32);
        let mut left_m2 = at_m2 - if index == 0 { 0.0 } else { self.area_sums_m2[index - 1] };
        let (mut u, mut v) = (rng.random_range(0.0..1.0_f32), rng.random_range(0.0..1.0_f32));
        if u + v > 1.0 {
            (u, v) = (1.0 - u, 1.0 - v);
        }
        let edges = self.edges_of(id);
        let mut place = ground(edges[0].corner);
        for [a, b, c] in fan(edges) {
            place = ground(a) + (ground(b) - ground(a)) * u + (ground(c) - ground(a)) * v;
            left_m2 -= triangle_area_m2(a, b, c);
            if left_m2 <= 0.0 {
                break;
            }
        }
        self.point_on(id, place)
    }

    /// The place on a polygon closest to `place`, which is `place` itself if the polygon holds it.
    pub(super) fn closest_place(&self, id: PolygonId, place: Vec2) -> Vec2 {
        let edges = self.edges_of(id);
        if edges.iter().all(|edge| edge.distance_m(place) >= 0.0) {
            return place;
        }
        let mut closest = place;
        let mut distance_m2 = f32::MAX;
        for (i, edge) in edges.iter().enumerate() {
            let (from, to) = (ground(edge.corner), ground(edges[(i + 1) % edges.len()].corner));
            let candidate = closest_on_segment(from, to, place);
            if candidate.distance_squared(place) < distance_m2 {
                distance_m2 = candidate.distance_squared(place);
                closest = candidate;
            }
        }
        closest
    }
}

pub(super) fn closest_on_segment(from: Vec2, to: Vec2, place: Vec2) -> Vec2 {
    let along = to - from;
    let at = ((place - from).dot(along) / along.length_squared()).clamp(0.0, 1.0);
    from + along * at
}

/// Which polygons touch which cell of the ground.
pub(super) struct PolygonGrid {
    min: Vec2,
    cell_m: f32,
    pub columns: usize,
    pub rows: usize,
    /// `starts[c]..starts[c + 1]` of `polygons` touch cell `c`.
    starts: Vec<u32>,
    polygons: Vec<u32>,
}

impl PolygonGrid {
    pub fn new(polygons: &[Polygon], edges: &[Edge], bounds: Aabb) -> Self {
        let (min, size_m) = (ground(bounds.min), ground(bounds.size_m()));
        let cells = |length_m: f32, cell_m: f32| (length_m / cell_m) as usize + 1;
        let mut cell_m = CELL_M_MIN;
        while cells(size_m.x, cell_m).saturating_mul(cells(size_m.y, cell_m)) > CELLS_MAX {
            cell_m *= 1.5;
        }
        let (columns, rows) = (cells(size_m.x, cell_m), cells(size_m.y, cell_m));
        let mut grid = Self { min, cell_m, columns, rows, starts: Vec::new(), polygons: Vec::new() };

        let mut pairs = Vec::new();
        for (index, polygon) in polygons.iter().enumerate() {
            let corners = &edges[polygon.first_edge as usize..][..polygon.edge_count as usize];
            let low = corners.iter().fold(Vec2::MAX, |low, edge| low.min(ground(edge.corner)));
            let high = corners.iter().fold(Vec2::MIN, |high, edge| high.max(ground(edge.corner)));
            let (first_column, first_row) = grid.column_row(low);
            let (last_column, last_row) = grid.column_row(high);
            for row in first_row..=last_row {
                pairs.extend(
                    (first_column..=last_column).map(|column| (row as usize * columns + column as usize, index as u32)),
                );
            }
        }
        pairs.sort_unstable();
        grid.starts = (0..=columns * rows).map(|cell| pairs.partition_point(|pair| pair.0 < cell) as u32).collect();
        grid.polygons = pairs.iter().map(|pair| pair.1).collect();
        grid
    }

    pub fn heap_bytes(&self) -> usize {
        (self.starts.capacity() + self.polygons.capacity()) * size_of::<u32>()
    }

    /// The cell of a place; for a place outside, the nearest cell.
    fn column_row(&self, place: Vec2) -> (i32, i32) {
        let cell = (place - self.min) / self.cell_m;
        ((cell.x as i32).clamp(0, self.columns as i32 - 1), (cell.y as i32).clamp(0, self.rows as i32 - 1))
    }

    /// How far from `place` anything listed only in ring number `ring` around its cell is at least `(m)`.
    fn ring_distance_m(&self, place: Vec2, ring: i32) -> f32 {
        let high = self.min + Vec2::new(self.columns as f32, self.rows as f32) * self.cell_m;
        let inside = place.clamp(self.min, high);
        let in_cell = ((inside - self.min) / self.cell_m).fract();
        let to_next_cell = in_cell.min(1.0 - in_cell).min_element();
        let ring_m = ((ring - 1) as f32 + to_next_cell).max(0.0) * self.cell_m;
        // Rounding may have put a place that lies on the line between two cells into either.
        place.distance(inside).max(ring_m - SKIN_M)
    }

    /// Calls for the polygons of all cells exactly `ring` steps away; a polygon may come more than once.
    fn each_in_ring(&self, column: i32, row: i32, ring: i32, mut each: impl FnMut(u32)) {
        for r in (row - ring).max(0)..=(row + ring).min(self.rows as i32 - 1) {
            let whole_row = (r - row).abs() == ring;
            let step = if whole_row { 1 } else { (2 * ring).max(1) };
            let mut c = column - ring;
            while c <= column + ring {
                if (0..self.columns as i32).contains(&c) {
                    let cell = r as usize * self.columns + c as usize;
                    let listed = self.starts[cell] as usize..self.starts[cell + 1] as usize;
                    self.polygons[listed].iter().for_each(|polygon| each(*polygon));
                }
                c += step;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nav::walk::tests::courtyard;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn nearest_agrees_with_trying_every_polygon() {
        let mesh = courtyard();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        for _ in 0..2_000 {
            let point =
                Vec3::new(rng.random_range(-30.0..30.0), rng.random_range(-3.0..3.0), rng.random_range(-30.0..30.0));
            let reach_m = rng.random_range(0.0..12.0);
            let expect_m = (0..mesh.polygon_count() as u32)
                .map(|polygon| {
                    let place = mesh.closest_place(PolygonId(polygon), ground(point));
                    mesh.point_on(PolygonId(polygon), place).position.distance(point)
                })
                .fold(f32::MAX, f32::min);
            match mesh.nearest(point, reach_m) {
                Ok(found) => {
                    assert!((found.position.distance(point) - expect_m).abs() < 1e-4, "{point}");
                    assert!(mesh.holds(found));
                }
                Err(error) => {
                    assert_eq!(error, NavError::OffMesh);
                    assert!(expect_m > reach_m - 1e-4, "{point}: {expect_m} is within {reach_m}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_finite_is_named() {
        let mesh = courtyard();
        assert_eq!(mesh.nearest(Vec3::NAN, 1.0), Err(NavError::NotFinite));
        assert_eq!(mesh.nearest(Vec3::ZERO, f32::INFINITY), Err(NavError::NotFinite));
        assert_eq!(mesh.nearest(Vec3::splat(1e30), 1.0), Err(NavError::OffMesh));
    }

    #[test]
    fn random_points_lie_on_the_mesh_and_cover_it_evenly() {
        let mesh = courtyard();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
        let mut counts = vec![0_u32; mesh.polygon_count()];
        const SAMPLES: u32 = 50_000;
        for _ in 0..SAMPLES {
            let point = mesh.random_point(&mut rng);
            assert!(mesh.holds(point));
            counts[point.polygon().0 as usize] += 1;
        }
        for (polygon, count) in counts.iter().enumerate() {
            let before_m2 = if polygon == 0 { 0.0 } else { mesh.area_sums_m2[polygon - 1] };
            let expect = (mesh.area_sums_m2[polygon] - before_m2) / mesh.area_m2() * SAMPLES as f32;
            assert!((*count as f32 - expect).abs() < 6.0 * expect.sqrt() + 6.0, "{polygon}: {count}, not {expect}");
        }
    }
}
