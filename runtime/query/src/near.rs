//! Near: for each of some points, all points within a radius, found anew in each call.
//!
//! NPCs ask every few ticks who is near. A world has 10 to 300 characters, so the answer must not cost a tree: up to
//! [`BRUTE_FORCE_POINTS_MAX`] points every pair is tested, above that the points are counting-sorted into a uniform
//! grid with cells no smaller than the radius, and only the nine cells around each asker are read. The grid is made
//! anew in each call, in buffers that stay: nothing to keep in step with the world, nothing to clean up at removal.
//!
//! Heights are ignored: a world is wide and flat. Lists hold no asker itself and are in ascending order, so both ways
//! give the same lists.
//!
//! Runs on the world's own thread; a warm [`NearList`] does not allocate. It grows to what it was asked: at most
//! askers x points entries of 4 bytes, and [`CELLS_PER_POINT_MAX`] cells for each point. Cost on a shared core at
//! 2.4 GHz: about 2 ns for each of all pairs; with a grid 5 ns for each pair tested, its share of sorting included, so
//! 36 µs when 300 points in a city block of 160 m ask for 15 m around them.

use std::ops::Range;

/// Up to this many points all pairs are tested: 32 x 32 / 2 tests cost less than sorting.
pub const BRUTE_FORCE_POINTS_MAX: usize = 32;

/// Cells grow until there are at most this many for each point, however far apart the points are.
pub const CELLS_PER_POINT_MAX: usize = 4;

/// The answers of the latest [`NearList::find`].
#[derive(Default)]
pub struct NearList {
    /// `starts[i]..starts[i + 1]` of `near` belongs to asker `i`.
    starts: Vec<u32>,
    near: Vec<u32>,
    /// `cell_starts[c]..cell_starts[c + 1]` of `cell_points` lies in cell `c`.
    cell_starts: Vec<u32>,
    cell_points: Vec<CellPoint>,
}

/// A point where its cell is, so that a cell is read without looking anything up.
#[derive(Clone, Copy, Default)]
struct CellPoint {
    x_m: f32,
    z_m: f32,
    index: u32,
}

/// What a call did, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NearCounts {
    /// Pairs whose distance was measured.
    pub tested: u32,
    /// Entries in all lists.
    pub found: u32,
    /// Askers whose list is empty because they, or the radius, are not usable: not finite, or negative, or beyond 1e19.
    pub rejected: u32,
}

impl NearList {
    /// Finds, for each index in `askers`, all other points at most `radius_m` away in the ground plane.
    ///
    /// The columns must be equally long and `askers` must index them. Points that are not finite are in no list.
    pub fn find(&mut self, x_m: &[f32], z_m: &[f32], askers: &[u32], radius_m: f32) -> NearCounts {
        assert_eq!(x_m.len(), z_m.len());
        self.starts.clear();
        self.near.clear();
        self.starts.push(0);
        let points = Points { x_m, z_m, radius_m };
        let sorted = x_m.len() > BRUTE_FORCE_POINTS_MAX && usable_radius(radius_m);
        let grid = if sorted { self.sort_into_cells(&points) } else { None };
        let mut counts = NearCounts::default();
        for asker in askers {
            if points.finite(*asker) && usable_radius(radius_m) {
                counts.tested += match &grid {
                    Some(grid) => self.gather_from_cells(&points, grid, *asker),
                    None => self.gather_from_all(&points, *asker),
                };
            } else {
                counts.rejected += 1;
            }
            self.starts.push(self.near.len() as u32);
        }
        counts.found = self.near.len() as u32;
        counts
    }

    /// The points near `askers[index]`, ascending.
    pub fn of(&self, index: usize) -> &[u32] {
        &self.near[self.starts[index] as usize..self.starts[index + 1] as usize]
    }

    fn gather_from_all(&mut self, points: &Points, asker: u32) -> u32 {
        let all = points.x_m.iter().zip(points.z_m).zip(0..points.x_m.len() as u32);
        let all = all.map(|((x_m, z_m), index)| CellPoint { x_m: *x_m, z_m: *z_m, index });
        append_near(&mut self.near, points, asker, all)
    }

    fn gather_from_cells(&mut self, points: &Points, grid: &Grid, asker: u32) -> u32 {
        let begin = self.near.len();
        let mut tested = 0;
        let (column, row) = grid.column_row(points.x_m[asker as usize], points.z_m[asker as usize]);
        for row in around(row, grid.rows) {
            // The cells of one row lie side by side, so three of them are one run of points.
            let columns = around(column, grid.columns);
            let first = self.cell_starts[row * grid.columns + columns.start] as usize;
            let end = self.cell_starts[row * grid.columns + columns.end] as usize;
            let run = self.cell_points[first..end].iter().copied();
            tested += append_near(&mut self.near, points, asker, run);
        }
        self.near[begin..].sort_unstable();
        tested
    }

    /// Counting sort of all finite points by cell; `None` if there are none.
    fn sort_into_cells(&mut self, points: &Points) -> Option<Grid> {
        let grid = Grid::around(points)?;
        let finite = || (0..points.x_m.len() as u32).filter(|point| points.finite(*point));
        let cell_of = |point: u32| {
            let (column, row) = grid.column_row(points.x_m[point as usize], points.z_m[point as usize]);
            row * grid.columns + column
        };
        self.cell_starts.clear();
        self.cell_starts.resize(grid.columns * grid.rows + 1, 0);
        let mut finite_count = 0;
        for point in finite() {
            self.cell_starts[cell_of(point)] += 1;
            finite_count += 1;
        }
        let mut end = 0;
        for start in &mut self.cell_starts {
            end += *start;
            *start = end; // the end of the cell, which filling backwards turns into its start
        }
        self.cell_points.clear();
        self.cell_points.resize(finite_count, CellPoint::default());
        for index in finite() {
            let start = &mut self.cell_starts[cell_of(index)];
            *start -= 1;
            let (x_m, z_m) = (points.x_m[index as usize], points.z_m[index as usize]);
            self.cell_points[*start as usize] = CellPoint { x_m, z_m, index };
        }
        Some(grid)
    }
}

/// Distances are compared as squares, so the square must be a number too.
fn usable_radius(radius_m: f32) -> bool {
    radius_m >= 0.0 && (radius_m * radius_m).is_finite()
}

struct Points<'a> {
    x_m: &'a [f32],
    z_m: &'a [f32],
    radius_m: f32,
}

impl Points<'_> {
    fn finite(&self, point: u32) -> bool {
        self.x_m[point as usize].is_finite() && self.z_m[point as usize].is_finite()
    }
}

/// Appends those of a run that are near the asker, and says how many were tested.
///
/// Every point is written and only near ones move the end on: who is near is a coin toss to the branch predictor, and
/// a wrong guess costs more than all else here. What is not finite is near nothing, and nobody is near itself.
fn append_near(near: &mut Vec<u32>, points: &Points, asker: u32, run: impl ExactSizeIterator<Item = CellPoint>) -> u32 {
    let (x_m, z_m) = (points.x_m[asker as usize], points.z_m[asker as usize]);
    let radius_m2 = points.radius_m * points.radius_m;
    let tested = run.len();
    let mut end = near.len();
    near.resize(end + tested, 0);
    for other in run {
        let (dx, dz) = (x_m - other.x_m, z_m - other.z_m);
        near[end] = other.index;
        end += usize::from((dx * dx + dz * dz <= radius_m2) & (other.index != asker));
    }
    near.truncate(end);
    tested as u32
}

struct Grid {
    min_x_m: f64,
    min_z_m: f64,
    cell_m: f64,
    columns: usize,
    rows: usize,
}

impl Grid {
    fn around(points: &Points) -> Option<Self> {
        let mut bounds: Option<[f64; 4]> = None;
        for (x, z) in points.x_m.iter().zip(points.z_m).filter(|(x, z)| x.is_finite() && z.is_finite()) {
            let (x, z) = (f64::from(*x), f64::from(*z));
            let [min_x, min_z, max_x, max_z] = bounds.unwrap_or([x, z, x, z]);
            bounds = Some([min_x.min(x), min_z.min(z), max_x.max(x), max_z.max(z)]);
        }
        let [min_x_m, min_z_m, max_x_m, max_z_m] = bounds?;
        // A little more than the radius: rounding may call two points near that are a hair farther apart.
        let mut cell_m = f64::from(points.radius_m * 1.00001).max(0.01);
        let cells_max = (points.x_m.len() * CELLS_PER_POINT_MAX) as f64;
        let cells = |length_m: f64, cell_m: f64| (length_m / cell_m).floor() + 1.0;
        while cells(max_x_m - min_x_m, cell_m) * cells(max_z_m - min_z_m, cell_m) > cells_max {
            cell_m *= 1.5;
        }
        let columns = cells(max_x_m - min_x_m, cell_m) as usize;
        let rows = cells(max_z_m - min_z_m, cell_m) as usize;
        Some(Self { min_x_m, min_z_m, cell_m, columns, rows })
    }

    fn column_row(&self, x_m: f32, z_m: f32) -> (usize, usize) {
        let column = (f64::from(x_m) - self.min_x_m) / self.cell_m;
        let row = (f64::from(z_m) - self.min_z_m) / self.cell_m;
        (column as usize, row as usize)
    }
}

/// A cell and its neighbours on either side, inside the grid.
fn around(cell: usize, count: usize) -> Range<usize> {
    cell.saturating_sub(1)..(cell + 2).min(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(points: &[(f32, f32)], radius_m: f32) {
        let x_m: Vec<f32> = points.iter().map(|point| point.0).collect();
        let z_m: Vec<f32> = points.iter().map(|point| point.1).collect();
        let askers: Vec<u32> = (0..points.len() as u32).rev().step_by(2).collect();
        let mut list = NearList::default();
        let counts = list.find(&x_m, &z_m, &askers, radius_m);
        let mut found = 0;
        for (index, asker) in askers.iter().enumerate() {
            let (ax, az) = points[*asker as usize];
            let expect: Vec<u32> = (0..points.len() as u32)
                .filter(|other| {
                    let (bx, bz) = points[*other as usize];
                    let (dx, dz) = (ax - bx, az - bz);
                    other != asker && usable_radius(radius_m) && dx * dx + dz * dz <= radius_m * radius_m
                })
                .collect();
            assert_eq!(list.of(index), expect, "asker {asker}");
            found += expect.len() as u32;
        }
        assert_eq!(counts.found, found);
    }

    fn coordinate() -> impl Strategy<Value = f32> {
        prop_oneof![
            20 => -80.0_f32..80.0,
            4 => Just(0.0_f32),
            1 => -1e6_f32..1e6,
            1 => prop_oneof![Just(f32::NAN), Just(f32::INFINITY), Just(f32::MAX)],
        ]
    }

    proptest! {
        #[test]
        fn lists_agree_with_brute_force(
            points in prop::collection::vec((coordinate(), coordinate()), 0..200),
            radius_m in prop_oneof![0.0_f32..200.0, Just(0.0), Just(-1.0), Just(f32::NAN), Just(f32::MAX)],
        ) {
            check(&points, radius_m);
        }
    }

    #[test]
    fn a_grid_tests_far_fewer_pairs() {
        let x_m: Vec<f32> = (0..1_000).map(|i| (i % 40) as f32 * 4.0).collect();
        let z_m: Vec<f32> = (0..1_000).map(|i| (i / 40) as f32 * 4.0).collect();
        let askers: Vec<u32> = (0..1_000).collect();
        let counts = NearList::default().find(&x_m, &z_m, &askers, 8.0);
        assert!(counts.tested < 1_000 * 1_000 / 10, "{counts:?}");
        assert_eq!(counts.rejected, 0);
    }

    #[test]
    fn a_list_is_reused_for_other_points() {
        let mut list = NearList::default();
        list.find(&[0.0, 1.0, 50.0], &[0.0; 3], &[0, 2], 2.0);
        assert_eq!((list.of(0), list.of(1)), (&[1][..], &[][..]));
        let counts = list.find(&[f32::NAN, 1.0], &[0.0; 2], &[0, 1], 2.0);
        assert_eq!(counts.rejected, 1);
        assert_eq!((list.of(0), list.of(1)), (&[][..], &[][..]));
    }
}
