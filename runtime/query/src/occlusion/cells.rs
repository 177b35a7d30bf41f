//! Cells: a level cut into boxes, and for each pair of them whether anything of the one may be seen from the other.
//!
//! A matrix of bits in rows, one row for each cell: 1,600 cells are 320 KB, and what a viewer may see is one row of 200
//! bytes. Hidden means proven hidden; whatever was not proven counts as visible. Made by [`CellBake`](super::CellBake),
//! read-only from then on: any thread, behind an `Arc`.

use glam::Vec3;

use crate::geometry::Aabb;

/// Cells at most: the matrix of so many is 8 MiB.
pub const CELLS_MAX: u32 = 8_192;

/// How a level is cut into cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellSettings {
    /// Where eyes and bodies may be, from ankles to crowns (m). Of what is outside nothing is known, so it counts as
    /// visible. It should end well below the tops of walls: what is seen over a wall is seen.
    pub bounds: Aabb,
    /// Side of a cell on the ground (m, above 0). Default 4. Too low → time and memory, with its fourth power; too high →
    /// a cell reaches around a corner, and sees what is behind it.
    pub cell_m: f32,
    /// Height of a cell (m, above 0). Default: one layer. For levels with floors above each other, the height of one.
    pub layer_m: f32,
    /// Steps in which a pair of cells may be proven hidden (from 1). Default 64. Too low → pairs that only several walls
    /// hide together count as visible; too high → the bake takes long over pairs that are visible through a gap.
    pub proof_steps: u32,
}

impl CellSettings {
    /// The defaults, for these bounds.
    pub fn within(bounds: Aabb) -> Self {
        Self { bounds, cell_m: 4.0, layer_m: f32::MAX, proof_steps: 64 }
    }
}

/// Why a level cannot be cut like that.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum CellError {
    #[error("the bounds are not finite, or a `min` is not below its `max`")]
    Bounds,
    #[error("cells of {cell_m} by {layer_m} m: both must be above 0")]
    Size { cell_m: f32, layer_m: f32 },
    #[error("{cells} cells, at most {CELLS_MAX} fit: take larger ones")]
    TooMany { cells: u64 },
}

/// The grid of cells.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CellGrid {
    bounds: Aabb,
    cell_m: Vec3,
    counts: [u32; 3],
}

/// Cells from `min` up to, but not with, `end` on each axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CellRange {
    pub min: [u32; 3],
    pub end: [u32; 3],
}

impl CellGrid {
    pub fn new(settings: &CellSettings) -> Result<Self, CellError> {
        let CellSettings { bounds, cell_m, layer_m, .. } = *settings;
        let is_sound = bounds.min.is_finite() && bounds.max.is_finite() && bounds.min.cmplt(bounds.max).all();
        if !is_sound {
            return Err(CellError::Bounds);
        }
        if !(cell_m > 0.0 && layer_m > 0.0) {
            return Err(CellError::Size { cell_m, layer_m });
        }
        let size = bounds.size_m();
        // More than fit on an axis are more than fit in all; no cell is cut off, so they are a little smaller than asked.
        let counts = (size / Vec3::new(cell_m, layer_m, cell_m)).ceil().max(Vec3::ONE).min(Vec3::splat(1e6));
        let cells: u64 = counts.to_array().map(|count| count as u64).iter().product();
        if cells > u64::from(CELLS_MAX) {
            return Err(CellError::TooMany { cells });
        }
        Ok(Self { bounds, cell_m: size / counts, counts: counts.to_array().map(|count| count as u32) })
    }

    pub fn count(&self) -> u32 {
        self.counts.iter().product()
    }

    pub fn all(&self) -> CellRange {
        CellRange { min: [0; 3], end: self.counts }
    }

    /// The number of a cell: along x first, then z, then y.
    pub fn number([x, y, z]: [u32; 3], [count_x, _, count_z]: [u32; 3]) -> u32 {
        (y * count_z + z) * count_x + x
    }

    pub fn bounds_of(&self, range: &CellRange) -> Aabb {
        let corner = |at: [u32; 3]| self.bounds.min + self.cell_m * Vec3::from_array(at.map(|at| at as f32));
        Aabb::new(corner(range.min), corner(range.end).min(self.bounds.max))
    }

    /// The cells that a region touches. `None` if its middle is outside of the bounds, or a part of it above or below
    /// them: of what may be seen over a wall nothing is known. What juts out at a side is left out: bodies stay within.
    fn touched_by(&self, region: &Aabb) -> Option<CellRange> {
        let is_tall = region.min.y < self.bounds.min.y || region.max.y > self.bounds.max.y;
        if is_tall || !self.bounds.contains(region.center()) {
            return None;
        }
        let place = |point: Vec3| {
            let at = ((point - self.bounds.min) / self.cell_m).floor().max(Vec3::ZERO).to_array();
            [0, 1, 2].map(|axis| (at[axis] as u32).min(self.counts[axis] - 1))
        };
        Some(CellRange { min: place(region.min), end: place(region.max).map(|last| last + 1) })
    }

    fn numbers(&self, range: CellRange) -> impl Iterator<Item = u32> + use<> {
        let counts = self.counts;
        let [x, y, z] = [0, 1, 2].map(|axis| range.min[axis]..range.end[axis]);
        y.flat_map(move |y| {
            let x = x.clone();
            z.clone().flat_map(move |z| x.clone().map(move |x| CellGrid::number([x, y, z], counts)))
        })
    }
}

impl CellRange {
    pub fn is_one_cell(&self) -> bool {
        (0..3).all(|axis| self.end[axis] - self.min[axis] == 1)
    }

    pub fn cells(&self) -> u64 {
        (0..3).map(|axis| u64::from(self.end[axis] - self.min[axis])).product()
    }

    /// Cut across its longest axis; it has more than one cell.
    pub fn halves(&self) -> [CellRange; 2] {
        let axis = (0..3).max_by_key(|axis| self.end[*axis] - self.min[*axis]).unwrap_or(0);
        let middle = self.min[axis].midpoint(self.end[axis]);
        let (mut lower, mut upper) = (*self, *self);
        (lower.end[axis], upper.min[axis]) = (middle, middle);
        [lower, upper]
    }
}

/// For each pair of a level's cells, whether anything of the one may be seen from the other.
#[derive(Debug, Clone, PartialEq)]
pub struct CellVisibility {
    grid: CellGrid,
    words_per_row: usize,
    /// Bit `cell % 64` of word `cell / 64` of a row: visible.
    rows: Vec<u64>,
}

impl CellVisibility {
    /// In which nothing is visible yet.
    pub(super) fn all_hidden(grid: CellGrid) -> Self {
        let words_per_row = grid.count().div_ceil(64) as usize;
        let rows = vec![0; words_per_row * grid.count() as usize];
        Self { grid, words_per_row, rows }
    }

    pub(super) fn grid(&self) -> &CellGrid {
        &self.grid
    }

    /// All cells of the one range may see all of the other, and be seen.
    pub(super) fn set_visible(&mut self, one: CellRange, other: CellRange) {
        for from in self.grid.numbers(one) {
            for to in self.grid.numbers(other) {
                for (from, to) in [(from as usize, to as usize), (to as usize, from as usize)] {
                    self.rows[from * self.words_per_row + to / 64] |= 1 << (to % 64);
                }
            }
        }
    }

    /// Whether anything of one region may be seen from anywhere in the other; false means that nothing can be, by any line
    /// that begins and ends within the bounds. True where the middle of a region is outside of them.
    #[inline]
    pub fn may_see(&self, from: &Aabb, to: &Aabb) -> bool {
        let (Some(from), Some(to)) = (self.grid.touched_by(from), self.grid.touched_by(to)) else { return true };
        self.grid.numbers(from).any(|from| {
            let row = self.row(from);
            self.grid.numbers(to).any(|to| row[to as usize / 64] >> (to % 64) & 1 == 1)
        })
    }

    /// The cell in which a point is, if it is within the bounds.
    pub fn cell_of(&self, point: Vec3) -> Option<u32> {
        let touched = self.grid.touched_by(&Aabb::new(point, point))?;
        Some(CellGrid::number(touched.min, self.grid.counts))
    }

    /// What may be seen from a cell: bit `other % 64` of word `other / 64`.
    ///
    /// # Panics
    /// If there is no such cell.
    pub fn row(&self, cell: u32) -> &[u64] {
        &self.rows[cell as usize * self.words_per_row..][..self.words_per_row]
    }

    pub fn cells(&self) -> u32 {
        self.grid.count()
    }

    /// Of all pairs of cells, those that may see each other (0 to 1): how much the matrix leaves to casts.
    pub fn visible_share(&self) -> f64 {
        let visible: u64 = self.rows.iter().map(|word| u64::from(word.count_ones())).sum();
        visible as f64 / f64::from(self.cells()).powi(2)
    }

    /// Heap memory held.
    pub fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(size: [f32; 3]) -> CellSettings {
        CellSettings::within(Aabb::new(Vec3::ZERO, Vec3::from_array(size)))
    }

    fn check(settings: &CellSettings, expect: CellError) {
        assert_eq!(CellGrid::new(settings).err(), Some(expect));
    }

    #[test]
    fn grids_that_cannot_be_are_named() {
        check(&settings([9.0, 0.0, 9.0]), CellError::Bounds);
        check(&settings([9.0, f32::NAN, 9.0]), CellError::Bounds);
        let none = CellSettings { cell_m: 0.0, ..settings([9.0; 3]) };
        check(&none, CellError::Size { cell_m: 0.0, layer_m: f32::MAX });
        check(&settings([400.0, 2.0, 400.0]), CellError::TooMany { cells: 10_000 });
    }

    /// 3 cells along x and 2 along z, in 2 layers.
    fn grid() -> CellGrid {
        CellGrid::new(&CellSettings { layer_m: 3.0, ..settings([12.0, 6.0, 8.0]) }).unwrap()
    }

    #[test]
    fn a_region_touches_the_cells_that_it_reaches_into() {
        let grid = grid();
        let touched = |min: [f32; 3], max: [f32; 3]| {
            let region = Aabb::new(Vec3::from_array(min), Vec3::from_array(max));
            grid.touched_by(&region).map(|range| grid.numbers(range).collect::<Vec<_>>())
        };
        assert_eq!(touched([1.0; 3], [1.0; 3]), Some(vec![0]));
        assert_eq!(touched([3.0, 1.0, 3.0], [5.0, 2.0, 5.0]), Some(vec![0, 1, 3, 4]));
        assert_eq!(touched([9.0, 1.0, 1.0], [10.0, 4.0, 2.0]), Some(vec![2, 8]));
        assert_eq!(touched([10.0, 1.0, 1.0], [13.0, 2.0, 2.0]), Some(vec![2]), "what is outside is left out");
        assert_eq!(touched([11.5, 1.0, 1.0], [13.5, 2.0, 2.0]), None, "its middle is outside");
        assert_eq!(touched([1.0, 5.0, 1.0], [2.0, 6.5, 2.0]), None, "a part of it is above");
        assert_eq!(touched([f32::NAN; 3], [1.0; 3]), None);
    }

    #[test]
    fn what_is_seen_sees() {
        let grid = grid();
        let one = |x, y, z| CellRange { min: [x, y, z], end: [x + 1, y + 1, z + 1] };
        let mut cells = CellVisibility::all_hidden(grid);
        cells.set_visible(one(0, 0, 0), one(2, 1, 1));
        let point = |x: f32, y: f32, z: f32| Aabb::new(Vec3::new(x, y, z), Vec3::new(x, y, z));
        let (near, far) = (point(1.0, 1.0, 1.0), point(11.0, 5.0, 7.0));
        assert!(cells.may_see(&near, &far) && cells.may_see(&far, &near));
        assert!(!cells.may_see(&near, &point(11.0, 1.0, 7.0)) && !cells.may_see(&near, &near));
        assert!(cells.may_see(&near, &point(13.0, 1.0, 7.0)), "nothing is known of what is outside");
        assert_eq!((cells.cell_of(near.min), cells.cell_of(far.min)), (Some(0), Some(11)));
        assert_eq!((cells.row(0), cells.row(11)), (&[1 << 11][..], &[1][..]));
        assert!((cells.visible_share() - 2.0 / 144.0).abs() < 1e-9 && cells.heap_bytes() >= 96);
    }

    #[test]
    fn halves_are_the_whole() {
        let all = grid().all();
        let [lower, upper] = all.halves();
        assert_eq!((lower.cells() + upper.cells(), all.is_one_cell()), (all.cells(), false));
        assert_eq!((lower.end, upper.min), ([1, 2, 2], [1, 0, 0]));
    }
}
