//! Upkeep: reference places, and the lists that follow from them.
//!
//! The band of a pair is a function of its two reference places and of nothing else. So when one of them changes,
//! everybody around the old and the new one is measured against both, and where the band differs, the other's list is
//! edited; the entity's own list is made anew. Nothing is looked for, nothing can get out of step.
//!
//! The new reference place is not where the entity is but ahead of it, in the direction in which it left the old one:
//! going straight on, it passes by and is scanned after up to a whole skin instead of half of one.

#![allow(clippy::needless_range_loop, reason = "lanes and bands index several columns at once")]

use super::grid::{Chunk, LANES};
use super::pairs::{BANDS, OUTSIDE, Outcome};
use super::{ABSENT, NeighbourLists, NeighbourMode, usable};

/// Cells of the grid per reach of a list. More → a scan touches fewer entities, in more cells.
pub(super) const CELLS_PER_REACH: f32 = 1.0;

/// How far ahead the reference place is put, as a share of half a skin. Too low → walkers are scanned more often; too
/// high → those who turn round are.
const AHEAD: f32 = 0.75;

/// Where an entity is before it is inserted and after it is removed: near nobody, not even an unused lane of the grid.
const NOWHERE: [f32; 2] = [-1.0e18; 2];

/// Rows compared at once in [`NeighbourLists::keep_up_all`].
const BLOCK: usize = 16;

/// Of all lists, the share whose groups are refreshed in each call of [`NeighbourLists::keep_up_all`]: 1 / this. At 20
/// calls a second, a group that has left is forgotten after at most 26 s, unless a scan forgets it sooner.
const REFRESH_CALLS: usize = 512;

/// Buffers that stay, each as long as there are rows.
#[derive(Default)]
pub(super) struct Scratch {
    /// Whom a scan found, and in which band.
    found: Vec<(u32, u8)>,
    /// Who is due for a scan.
    due: Vec<u32>,
    /// Whose dropped list can be made again.
    short: Vec<u32>,
    /// Whose groups are refreshed next.
    refresh_next: usize,
}

impl Scratch {
    pub fn bytes(&self) -> usize {
        self.found.capacity() * 8 + (self.due.capacity() + self.short.capacity()) * 4
    }
}

impl NeighbourLists {
    /// Makes room for this many rows.
    pub(super) fn reserve(&mut self, rows: usize) {
        if rows <= self.x_m.len() {
            return;
        }
        for column in [&mut self.x_m, &mut self.z_m, &mut self.reference_x_m, &mut self.reference_z_m] {
            column.resize(rows, ABSENT);
        }
        self.groups.resize(rows, 0);
        if self.settings.mode == NeighbourMode::ScanAll {
            return;
        }
        // Columns have grown in steps; what does not grow by itself follows those steps.
        let rows = self.groups.capacity();
        if self.scratch.found.len() < rows {
            self.scratch.found.resize(rows, (0, 0));
            self.scratch.due.reserve(rows);
            self.scratch.short.reserve(rows);
            self.lists.resize(rows);
            if self.grid.reserve(rows) {
                for row in 0..self.x_m.len() {
                    let place_m = self.reference(row);
                    if !place_m[0].is_nan() {
                        self.grid.insert(row as u32, place_m);
                    }
                }
            }
        }
    }

    /// A new entity, whose place and groups are set.
    pub(super) fn enter(&mut self, index: u32, place_m: [f32; 2]) {
        if self.settings.mode == NeighbourMode::ScanAll {
            return;
        }
        self.rescan(index, NOWHERE, place_m);
        self.grid.insert(index, place_m);
        self.set_reference(index, place_m);
        self.make_short_again();
    }

    pub(super) fn leave(&mut self, index: u32) {
        if self.settings.mode == NeighbourMode::ScanAll {
            return;
        }
        let old_m = self.reference(index as usize);
        self.rescan(index, old_m, NOWHERE);
        self.grid.remove(index, old_m);
        self.set_reference(index, [ABSENT; 2]);
        self.make_short_again();
    }

    /// Scans an entity if it is too far from its reference place.
    pub(super) fn keep_up(&mut self, index: u32) {
        if self.settings.mode == NeighbourMode::ScanAll {
            return;
        }
        let row = index as usize;
        let (place_m, old_m) = ([self.x_m[row], self.z_m[row]], self.reference(row));
        if self.reaches(old_m, place_m) {
            return;
        }
        let new_m = self.ahead(old_m, place_m);
        if distance_m2(old_m, new_m).sqrt() < (BANDS as f32) / self.bands_per_m {
            self.rescan(index, old_m, new_m);
        } else {
            // Between the two there may be much that is near neither.
            self.rescan(index, old_m, NOWHERE);
            self.rescan(index, NOWHERE, new_m);
        }
        self.grid.replace(index, old_m, new_m);
        self.set_reference(index, new_m);
        self.make_short_again();
    }

    pub(super) fn keep_up_all(&mut self, x_m: &[f32], z_m: &[f32]) {
        let rows = x_m.len().min(self.x_m.len());
        let half_skin_m2 = self.half_skin_m * self.half_skin_m;
        let lists = self.settings.mode == NeighbourMode::Lists;
        let mut due = std::mem::take(&mut self.scratch.due);
        due.clear();
        for begin in (0..rows).step_by(BLOCK) {
            let block = begin..(begin + BLOCK).min(rows);
            let (xs, zs) = (&x_m[block.clone()], &z_m[block.clone()]);
            let references = (&self.reference_x_m[block.clone()], &self.reference_z_m[block.clone()]);
            if lists && all_within(half_skin_m2, xs, zs, references) {
                self.x_m[block.clone()].copy_from_slice(xs);
                self.z_m[block].copy_from_slice(zs);
                continue;
            }
            for row in block {
                if self.groups[row] == 0 {
                    continue;
                }
                let place_m = [x_m[row], z_m[row]];
                if !usable(place_m) {
                    self.refuse();
                    continue;
                }
                [self.x_m[row], self.z_m[row]] = place_m;
                if lists && !self.reaches(self.reference(row), place_m) {
                    due.push(row as u32);
                }
            }
        }
        due.iter().for_each(|index| self.keep_up(*index));
        self.scratch.due = due;
        if lists {
            self.refresh();
        }
    }

    /// Those near an entity learn that it has joined groups.
    pub(super) fn tell_groups(&mut self, index: u32, joined: u32) {
        if self.settings.mode == NeighbourMode::ScanAll || self.lists.tell_groups(index, joined) {
            return;
        }
        let at_m = self.reference(index as usize);
        let (min_m, max_m) = around(at_m, self.reach_m());
        let (lists, bands_per_m) = (&mut self.lists, self.bands_per_m);
        self.grid.each_chunk(min_m, max_m, |chunk| {
            let bands = bands(chunk, at_m, bands_per_m);
            for (other, band) in chunk.indexes.iter().zip(bands) {
                if band < OUTSIDE && *other != index {
                    lists.add_groups(*other, band, joined);
                }
            }
        });
    }

    /// The pairs of an entity whose reference place changes: edits the others' lists and makes its own anew.
    fn rescan(&mut self, index: u32, old_m: [f32; 2], new_m: [f32; 2]) {
        let (old_min_m, old_max_m) = around(if old_m == NOWHERE { new_m } else { old_m }, self.reach_m());
        let (new_min_m, new_max_m) = around(if new_m == NOWHERE { old_m } else { new_m }, self.reach_m());
        let min_m = [old_min_m[0].min(new_min_m[0]), old_min_m[1].min(new_min_m[1])];
        let max_m = [old_max_m[0].max(new_max_m[0]), old_max_m[1].max(new_max_m[1])];
        let (grid, lists, counts, bands_per_m) = (&self.grid, &mut self.lists, &mut self.counts, self.bands_per_m);
        let Scratch { found, short, .. } = &mut self.scratch;
        let mut found_count = 0;
        let groups = self.groups[index as usize];
        grid.each_chunk(min_m, max_m, |chunk| {
            let (old, new) = (bands(chunk, old_m, bands_per_m), bands(chunk, new_m, bands_per_m));
            for lane in 0..LANES {
                // Written always, and kept if near: a guess of the branch predictor is costlier than a store.
                found[found_count] = (chunk.indexes[lane], new[lane]);
                found_count += usize::from((new[lane] < OUTSIDE) & (chunk.indexes[lane] != index));
            }
            if old == new {
                return;
            }
            for lane in 0..LANES {
                let (other, old, new) = (chunk.indexes[lane], old[lane], new[lane]);
                if old == new || other == index {
                    continue;
                }
                counts.pairs_entered += u64::from(old == OUTSIDE);
                counts.pairs_left += u64::from(new == OUTSIDE);
                match lists.change(other, index, old, new, groups) {
                    Outcome::Kept => {}
                    Outcome::Dropped => counts.lists_dropped += 1,
                    Outcome::Short => short.push(other),
                }
            }
        });
        counts.scans += 1;
        let dropped_before = lists.dropped(index);
        let dropped = lists.make(index, &found[..found_count], &self.groups);
        counts.lists_dropped += u64::from(dropped && !dropped_before);
    }

    /// Makes those dropped lists anew that [`NeighbourLists::rescan`] found to be short, once the grid is up to date.
    fn make_short_again(&mut self) {
        while let Some(index) = self.scratch.short.pop() {
            self.make_again(index);
        }
    }

    fn make_again(&mut self, index: u32) {
        let at_m = self.reference(index as usize);
        let (min_m, max_m) = around(at_m, self.reach_m());
        let found = &mut self.scratch.found;
        let mut found_count = 0;
        let bands_per_m = self.bands_per_m;
        self.grid.each_chunk(min_m, max_m, |chunk| {
            let bands = bands(chunk, at_m, bands_per_m);
            for lane in 0..LANES {
                found[found_count] = (chunk.indexes[lane], bands[lane]);
                found_count += usize::from((bands[lane] < OUTSIDE) & (chunk.indexes[lane] != index));
            }
        });
        self.counts.scans += 1;
        self.lists.make(index, &found[..found_count], &self.groups);
    }

    /// Reference places, grid and lists anew, after the reach of lists has changed; the grid is empty.
    pub(super) fn make_all_again(&mut self) {
        if self.settings.mode == NeighbourMode::ScanAll {
            return;
        }
        self.grid.reserve(self.scratch.found.len());
        let before = self.lengths().entries;
        for row in 0..self.groups.len() {
            if self.groups[row] != 0 {
                let place_m = [self.x_m[row], self.z_m[row]];
                self.grid.insert(row as u32, place_m);
                self.set_reference(row as u32, place_m);
            }
        }
        for index in 0..self.groups.len() as u32 {
            if self.groups[index as usize] == 0 {
                continue;
            }
            let dropped_before = self.lists.dropped(index);
            self.make_again(index);
            self.counts.lists_dropped += u64::from(self.lists.dropped(index) && !dropped_before);
        }
        // Each pair is in two lists.
        self.counts.pairs_left += before / 2;
        self.counts.pairs_entered += self.lengths().entries / 2;
    }

    /// A share of all lists forgets the groups of those who have left.
    fn refresh(&mut self) {
        for _ in 0..self.groups.len().div_ceil(REFRESH_CALLS) {
            self.scratch.refresh_next = (self.scratch.refresh_next + 1) % self.groups.len();
            self.lists.refresh(self.scratch.refresh_next as u32, &self.groups);
        }
    }

    pub(super) fn reference(&self, row: usize) -> [f32; 2] {
        [self.reference_x_m[row], self.reference_z_m[row]]
    }

    pub(super) fn check_upkeep(&self) {
        let mut in_grid = vec![None; self.x_m.len()];
        self.grid.each(|index, place_m| assert_eq!(in_grid[index as usize].replace(place_m), None, "{index} twice"));
        for (row, in_grid) in in_grid.into_iter().enumerate() {
            let index = row as u32;
            let reference_m = self.reference(row);
            assert_eq!(in_grid, self.contains(index).then_some(reference_m), "{index}: place in the grid");
            assert!(in_grid.is_none() || self.reaches(reference_m, [self.x_m[row], self.z_m[row]]), "{index}: too far");
            let band_of = |other: u32| band(reference_m, self.reference(other as usize), self.bands_per_m);
            let near = |other: &u32| {
                in_grid.is_some() && *other != index && self.contains(*other) && band_of(*other) < OUTSIDE
            };
            let expect: Vec<u32> = (0..self.x_m.len() as u32).filter(near).collect();
            assert_eq!(self.lists.pairs(index), expect.len() as u32, "{index}: pairs");
            if self.lists.dropped(index) {
                assert!(expect.len() > usize::from(self.settings.list_max) * 3 / 4, "{index}: short enough for a list");
                continue;
            }
            let mut members = Vec::new();
            self.lists.each(index, |member, band, groups| {
                assert_eq!(band, band_of(member), "{index}: band of {member}");
                assert_eq!(self.groups[member as usize] & !groups, 0, "{index}: groups of {member}");
                members.push(member);
            });
            members.sort_unstable();
            assert_eq!(members, expect, "{index}: members");
        }
    }

    fn set_reference(&mut self, index: u32, place_m: [f32; 2]) {
        [self.reference_x_m[index as usize], self.reference_z_m[index as usize]] = place_m;
    }

    fn reach_m(&self) -> f32 {
        BANDS as f32 / self.bands_per_m * 1.00001
    }

    /// Whether a reference place serves an entity that is at `place_m`.
    fn reaches(&self, reference_m: [f32; 2], place_m: [f32; 2]) -> bool {
        distance_m2(reference_m, place_m) <= self.half_skin_m * self.half_skin_m
    }

    fn ahead(&self, old_m: [f32; 2], place_m: [f32; 2]) -> [f32; 2] {
        let share = AHEAD * self.half_skin_m / distance_m2(old_m, place_m).sqrt();
        let new_m = [place_m[0] + (place_m[0] - old_m[0]) * share, place_m[1] + (place_m[1] - old_m[1]) * share];
        // Far from the origin a step between numbers may be wider than the skin.
        if self.reaches(new_m, place_m) && usable(new_m) { new_m } else { place_m }
    }
}

/// Whether all places are near their reference places. Whoever is absent, and what is no number, is not.
#[inline(always)]
fn all_within(limit_m2: f32, xs: &[f32], zs: &[f32], (reference_xs, reference_zs): (&[f32], &[f32])) -> bool {
    let far = |x: &f32, z: &f32, reference_x: &f32, reference_z: &f32| {
        let (dx, dz) = (x - reference_x, z - reference_z);
        if dx * dx + dz * dz <= limit_m2 { 0_u32 } else { 1 }
    };
    let mut any_far = 0;
    // A length that the compiler knows becomes vector instructions.
    let whole = (xs.as_array::<BLOCK>(), zs.as_array::<BLOCK>());
    let references = (reference_xs.as_array::<BLOCK>(), reference_zs.as_array::<BLOCK>());
    if let ((Some(xs), Some(zs)), (Some(reference_xs), Some(reference_zs))) = (whole, references) {
        for row in 0..BLOCK {
            any_far |= far(&xs[row], &zs[row], &reference_xs[row], &reference_zs[row]);
        }
    } else {
        for row in 0..xs.len() {
            any_far |= far(&xs[row], &zs[row], &reference_xs[row], &reference_zs[row]);
        }
    }
    any_far == 0
}

/// The band of each lane, seen from a place. One formula for every use: both lists of a pair must agree to the last
/// bit.
#[inline(always)]
fn bands(chunk: &Chunk, [x_m, z_m]: [f32; 2], bands_per_m: f32) -> [u8; LANES] {
    let mut bands = [0; LANES];
    for lane in 0..LANES {
        bands[lane] = band([x_m, z_m], [chunk.x_m[lane], chunk.z_m[lane]], bands_per_m);
    }
    bands
}

#[inline(always)]
pub(super) fn band(a_m: [f32; 2], b_m: [f32; 2], bands_per_m: f32) -> u8 {
    let band = distance_m2(a_m, b_m).sqrt() * bands_per_m;
    (if band < BANDS as f32 { band } else { BANDS as f32 }) as i32 as u8
}

#[inline(always)]
fn distance_m2(a_m: [f32; 2], b_m: [f32; 2]) -> f32 {
    let (dx, dz) = (a_m[0] - b_m[0], a_m[1] - b_m[1]);
    dx * dx + dz * dz
}

fn around([x_m, z_m]: [f32; 2], radius_m: f32) -> ([f32; 2], [f32; 2]) {
    ([x_m - radius_m, z_m - radius_m], [x_m + radius_m, z_m + radius_m])
}
