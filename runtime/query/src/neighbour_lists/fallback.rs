//! Questions that no list answers: about a place, beyond the range, or of somebody whose list was dropped.
//!
//! Answered from the grid of reference places: whoever is within the radius has its reference place within half a skin
//! more. Where that is most of the world, everybody is scanned.

use super::grid::LANES;
use super::scan::Nearest;
use super::{NeighbourLists, NeighbourMode};

/// Rows of a scan that cost as much as one cell of the grid.
const CELL_ROWS: f32 = 64.0;

impl NeighbourLists {
    /// Appends all but `asker` in any of `groups` at most `radius_m` from a place, ascending.
    pub(super) fn near_by_grid(&self, place_m: [f32; 2], radius_m: f32, groups: u32, asker: u32, found: &mut Vec<u32>) {
        if self.scan_is_cheaper(radius_m) {
            self.columns().near(place_m, radius_m, groups, asker, found);
            return;
        }
        let begin = found.len();
        let radius_m2 = radius_m * radius_m;
        self.each_in_grid(place_m, radius_m, groups, |other, distance_m2| {
            if (distance_m2 <= radius_m2) & (other != asker) {
                found.push(other);
            }
        });
        found[begin..].sort_unstable();
    }

    /// The nearest but `asker`, of equally near ones the lowest index.
    pub(super) fn nearest_by_grid(&self, place_m: [f32; 2], radius_m: f32, groups: u32, asker: u32) -> Option<u32> {
        if self.scan_is_cheaper(radius_m) {
            return self.columns().nearest(place_m, radius_m, groups, asker);
        }
        let mut nearest = Nearest::within(radius_m);
        self.each_in_grid(place_m, radius_m, groups, |other, distance_m2| {
            if other != asker {
                nearest.offer(other, distance_m2);
            }
        });
        nearest.index()
    }

    fn scan_is_cheaper(&self, radius_m: f32) -> bool {
        let cells = self.grid.cells_in(2.0 * (radius_m + self.half_skin_m));
        self.settings.mode == NeighbourMode::ScanAll || cells * CELL_ROWS > self.x_m.len() as f32
    }

    /// Calls `visit` with everybody in any of `groups` who may be within the radius, and the squared distance.
    #[inline(always)]
    fn each_in_grid(&self, [x_m, z_m]: [f32; 2], radius_m: f32, groups: u32, mut visit: impl FnMut(u32, f32)) {
        let reach_m = (radius_m + self.half_skin_m) * 1.00001;
        let reach_m2 = reach_m * reach_m;
        self.grid.each_chunk([x_m - reach_m, z_m - reach_m], [x_m + reach_m, z_m + reach_m], |chunk| {
            let mut near = 0_u32;
            for lane in 0..LANES {
                let (dx, dz) = (x_m - chunk.x_m[lane], z_m - chunk.z_m[lane]);
                near |= u32::from(dx * dx + dz * dz <= reach_m2) << lane;
            }
            while near != 0 {
                let other = chunk.indexes[near.trailing_zeros() as usize];
                near &= near - 1;
                let row = other as usize;
                if self.groups[row] & groups != 0 {
                    let (dx, dz) = (x_m - self.x_m[row], z_m - self.z_m[row]);
                    visit(other, dx * dx + dz * dz);
                }
            }
        });
    }
}
