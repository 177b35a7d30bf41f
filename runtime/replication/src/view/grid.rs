//! Grid: things with a place, sorted by cell, to find those near a place.
//!
//! ```text
//!        cell_m
//!       +---+---+---+---+---+      things of a row of cells lie side by side in `items`,
//!       |   | . |  .|   |   |      so a square is read as one run per row
//!       +---+---+---+---+---+
//!       |   |:  | C | . |   |      C: the place asked about
//!       +---+---+---+---+---+
//! ```
//!
//! Built anew by counting: about 8 us per 1,000 things. Where only a few of them move, they are followed one by one,
//! about 20 ns each: a thing stays in its cell until it has strayed too far from it, and is looked for that much
//! farther away. Few things are not sorted at all, and are read as one run. Holds buffers only and never allocates once
//! they have grown.

use throng_platform::headroom;

/// Things up to which nothing is sorted.
const UNSORTED_MAX: usize = 64;

/// Cells for each thing at most; beyond it cells are made larger, so that one far stray costs no memory.
const CELLS_PER_ITEM_MAX: usize = 4;

/// How far a thing may be from its cell, as a share of the cell's side.
const STRAY_SHARE_MAX: f32 = 0.25;

/// A thing and its place. (m)
#[derive(Copy, Clone)]
pub(crate) struct Item {
    pub index: u32,
    pub place: [f32; 2],
}

#[derive(Default)]
pub(crate) struct Grid {
    items: Vec<Item>,
    sorted: Vec<Item>,
    /// Items of cell `i` are `items[cell_begins[i]..cell_begins[i + 1]]`; empty when nothing is sorted.
    cell_begins: Vec<u32>,
    columns_count: usize,
    rows_count: usize,
    cell_m: f32,
    /// The corner of the first cell.
    origin: [f32; 2],
    /// How far things are from their cells at most. (m)
    stray_m: f32,
    /// By index of a thing, where in `items` it is; built when it is first asked for.
    positions: Vec<u32>,
    has_positions: bool,
    /// The rectangle around all places.
    low: [f32; 2],
    high: [f32; 2],
}

impl Grid {
    pub fn clear(&mut self) {
        headroom::clear(&mut self.items);
        headroom::clear(&mut self.cell_begins);
        self.has_positions = false;
        self.stray_m = 0.0;
        (self.low, self.high) = ([f32::MAX; 2], [f32::MIN; 2]);
    }

    /// Adds a thing; places are finite. Found after `sort`.
    #[inline]
    pub fn push(&mut self, index: u32, place: [f32; 2]) {
        self.low = [self.low[0].min(place[0]), self.low[1].min(place[1])];
        self.high = [self.high[0].max(place[0]), self.high[1].max(place[1])];
        self.items.push(Item { index, place });
    }

    /// Sorts what was pushed since `clear`.
    pub fn sort(&mut self, cell_m: f32) {
        if self.items.len() > UNSORTED_MAX {
            self.sort_into_cells(cell_m);
        }
    }

    /// Follows a thing to a place not far from where it was. False: it went too far, and all is to be pushed and sorted
    /// anew.
    pub fn move_to(&mut self, index: u32, place: [f32; 2]) -> bool {
        if !self.has_positions {
            self.note_positions();
        }
        let Some(position) = self.positions.get(index as usize).copied() else { return false };
        if !self.cell_begins.is_empty() {
            let cell = self.cell_begins.partition_point(|begin| *begin <= position) - 1;
            let nth = [cell % self.columns_count, cell / self.columns_count];
            let strays_m = |axis: usize| {
                let from = self.origin[axis] + nth[axis] as f32 * self.cell_m;
                (from - place[axis]).max(place[axis] - from - self.cell_m)
            };
            // On the edge it may be counted to the one or the other.
            let strays_m = strays_m(0).max(strays_m(1)).max(0.0) + self.cell_m / 1024.0;
            if strays_m > self.cell_m * STRAY_SHARE_MAX {
                return false;
            }
            self.stray_m = self.stray_m.max(strays_m);
        }
        match self.items.get_mut(position as usize).filter(|item| item.index == index) {
            Some(item) => item.place = place,
            None => return false,
        }
        self.low = [self.low[0].min(place[0]), self.low[1].min(place[1])];
        self.high = [self.high[0].max(place[0]), self.high[1].max(place[1])];
        true
    }

    fn note_positions(&mut self) {
        self.has_positions = true;
        for (position, item) in self.items.iter().enumerate() {
            let index = item.index as usize;
            if index >= self.positions.len() {
                self.positions.resize(index + 1, 0);
            }
            self.positions[index] = position as u32;
        }
    }

    /// The squared distance from a place to the farthest that a thing can be. (m²)
    pub fn farthest_m2(&self, centre: [f32; 2]) -> f32 {
        let farthest = |axis: usize| (centre[axis] - self.low[axis]).abs().max((self.high[axis] - centre[axis]).abs());
        farthest(0).powi(2) + farthest(1).powi(2)
    }

    /// Calls `look` with runs of things that together have all that are within `radius_m`, and some that are not.
    #[inline]
    pub fn look_around(&self, centre: [f32; 2], radius_m: f32, mut look: impl FnMut(&[Item])) {
        if self.cell_begins.is_empty() {
            look(&self.items);
            return;
        }
        // Casts saturate, so that a centre far outside gives an empty or a border range, never a wrong index.
        let cells = |axis: usize, count: usize| {
            let from = (centre[axis] - radius_m - self.stray_m - self.origin[axis]) / self.cell_m;
            let to = (centre[axis] + radius_m + self.stray_m - self.origin[axis]) / self.cell_m;
            (from as usize)..(to as isize).saturating_add(1).clamp(0, count as isize) as usize
        };
        let columns = cells(0, self.columns_count);
        if columns.is_empty() {
            return;
        }
        for row in cells(1, self.rows_count) {
            let first = row * self.columns_count;
            let begin = self.cell_begins[first + columns.start] as usize;
            let end = self.cell_begins[first + columns.end] as usize;
            look(&self.items[begin..end]);
        }
    }

    pub fn heap_bytes(&self) -> usize {
        (self.items.capacity() + self.sorted.capacity()) * size_of::<Item>()
            + (self.cell_begins.capacity() + self.positions.capacity()) * 4
    }

    /// Counting sort of `items` by cell, row by row.
    fn sort_into_cells(&mut self, cell_m: f32) {
        let (low, high) = (self.low, self.high);
        self.origin = low;
        let cells_max = (self.items.len() * CELLS_PER_ITEM_MAX) as f64;
        // f64: the distance between two places can be more than f32 holds.
        let mut side_m = f64::from(cell_m);
        let counts = loop {
            let extent = |axis: usize| f64::from(high[axis]) - f64::from(low[axis]);
            let counts = [extent(0), extent(1)].map(|extent| (extent / side_m).floor() + 1.0);
            if counts[0] * counts[1] <= cells_max {
                break counts;
            }
            side_m *= 2.0;
        };
        self.cell_m = side_m as f32;
        self.columns_count = counts[0] as usize;
        self.rows_count = counts[1] as usize;
        let cells_count = self.columns_count * self.rows_count;
        let (columns_count, rows_count, cell_m) = (self.columns_count, self.rows_count, self.cell_m);
        let cell_of = |item: &Item| {
            let column = (((item.place[0] - low[0]) / cell_m) as usize).min(columns_count - 1);
            let row = (((item.place[1] - low[1]) / cell_m) as usize).min(rows_count - 1);
            row * columns_count + column
        };
        // `cell_begins` first counts each cell's items, then says where the next one goes.
        self.cell_begins.resize(cells_count + 1, 0);
        for item in &self.items {
            self.cell_begins[cell_of(item)] += 1;
        }
        let mut begin = 0;
        for count in &mut self.cell_begins {
            begin += std::mem::replace(count, begin);
        }
        self.sorted.clear();
        if self.sorted.capacity() < self.items.len() {
            self.sorted.reserve_exact(self.items.capacity());
        }
        self.sorted.resize(self.items.len(), Item { index: 0, place: [0.0; 2] });
        for item in &self.items {
            let next = &mut self.cell_begins[cell_of(item)];
            self.sorted[*next as usize] = *item;
            *next += 1;
        }
        // Every begin has moved on to its cell's end, which is the next cell's begin.
        self.cell_begins.rotate_right(1);
        self.cell_begins[0] = 0;
        std::mem::swap(&mut self.items, &mut self.sorted);
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    #[test]
    fn one_far_stray_does_not_blow_up_the_grid() {
        let mut grid = Grid::default();
        grid.clear();
        (0..100).for_each(|index| grid.push(index, [0.0; 2]));
        grid.push(100, [3e38, -3e38]);
        grid.sort(1.0);
        assert!(grid.cell_begins.len() <= 101 * CELLS_PER_ITEM_MAX + 1);
        let mut found = 0;
        grid.look_around([0.0; 2], 60.0, |items| found += items.len());
        assert_eq!(found, 100);
    }

    #[test]
    fn what_is_followed_is_found_where_it_is() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        for count in [40, 400] {
            let mut places: Vec<[f32; 2]> =
                (0..count).map(|_| [0, 1].map(|_| random.random_range(0.0..200.0))).collect();
            let mut grid = Grid::default();
            let mut sorted_anew = 0;
            for turn in 0..400 {
                let moved = random.random_range(0..20);
                places[moved] = places[moved].map(|at: f32| at + random.random_range(-1.5..1.5));
                if turn == 0 || !grid.move_to(moved as u32, places[moved]) {
                    sorted_anew += 1;
                    grid.clear();
                    (0..).zip(&places).for_each(|(index, place)| grid.push(index, *place));
                    grid.sort(20.0);
                }
                // Just within reach, in one of the four directions.
                let mut centre = places[moved];
                centre[random.random_range(0..2)] += if random.random() { 29.9 } else { -29.9 };
                let is_near = |place: [f32; 2]| (place[0] - centre[0]).hypot(place[1] - centre[1]) <= 30.0;
                let mut found = Vec::new();
                grid.look_around(centre, 30.0, |items| {
                    found.extend(items.iter().filter(|item| is_near(item.place)).map(|item| item.index as usize));
                });
                found.sort_unstable();
                let expect: Vec<usize> = (0..count).filter(|index| is_near(places[*index])).collect();
                assert_eq!(found, expect, "{count} things, turn {turn}");
            }
            assert!(sorted_anew < 40, "followed too seldom: {sorted_anew} of 400, {count} things");
        }
        assert!(!Grid::default().move_to(3, [0.0; 2]), "it was never there");
    }
}
