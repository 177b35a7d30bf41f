//! The same question asked by many: cheaper than one after the other.
//!
//! Most askers have nobody of interest near, and whether one has is a coin toss to the branch predictor; lists are
//! spread over more memory than a core keeps at hand. So a block of askers is sorted out first, without a branch; then
//! the lists of those left are touched, all at once; then they are read.

use super::pairs::BANDS;
use super::{Candidates, NeighbourLists, NeighbourMode, usable_radius};

/// In answers to [`NeighbourLists::nearest_each`]: nobody.
pub const NOBODY: u32 = u32::MAX;

/// Askers in a block: enough for memory to answer all at once, few enough to stay close by.
const BLOCK: usize = 32;

impl NeighbourLists {
    /// Appends, for each asker, the nearest other in any of the asker's groups at most `radius_m` away, or [`NOBODY`].
    ///
    /// Askers are indexes with the groups that they ask about. One that is not in use finds nobody.
    pub fn nearest_each(&self, radius_m: f32, askers: &[(u32, u32)], nearest: &mut Vec<u32>) {
        let begin = nearest.len();
        nearest.resize(begin + askers.len(), NOBODY);
        let answers = &mut nearest[begin..];
        self.each_with_candidates(radius_m, askers, |asker, candidates| {
            let (index, groups) = askers[asker];
            answers[asker] = self.nearest_of_candidates(candidates, index, radius_m, groups).unwrap_or(NOBODY);
        });
    }

    /// Appends, for each asker, all others in any of the asker's groups at most `radius_m` away, ascending; and to
    /// `ends` the length of `found` after it.
    ///
    /// Askers are indexes with the groups that they ask about. One that is not in use finds nobody.
    pub fn near_each(&self, radius_m: f32, askers: &[(u32, u32)], found: &mut Vec<u32>, ends: &mut Vec<u32>) {
        let begin = ends.len();
        self.each_with_candidates(radius_m, askers, |asker, candidates| {
            // Whoever was left out since the one before has found nobody.
            ends.resize(begin + asker, found.len() as u32);
            let (index, groups) = askers[asker];
            self.near_of_candidates(candidates, index, radius_m, groups, found);
        });
        ends.resize(begin + askers.len(), found.len() as u32);
    }

    /// Calls `visit` with those who may have an answer, in order.
    #[inline(always)]
    fn each_with_candidates(&self, radius_m: f32, askers: &[(u32, u32)], mut visit: impl FnMut(usize, Candidates<'_>)) {
        let by_list = self.settings.mode == NeighbourMode::Lists && radius_m <= self.settings.range_m;
        if !by_list || !usable_radius(radius_m) {
            for (asker, (index, groups)) in askers.iter().enumerate() {
                visit(asker, self.candidates(*index, radius_m, *groups));
            }
            return;
        }
        let band = self.band_of_radius(radius_m).min(BANDS - 1);
        for (number, block) in askers.chunks(BLOCK).enumerate() {
            let mut left = [0; BLOCK];
            let mut left_count = 0;
            for (offset, (index, groups)) in block.iter().enumerate() {
                left[left_count] = offset;
                left_count += usize::from(self.lists.may_hold(*index, band, *groups));
            }
            let touched =
                left[..left_count].iter().fold(0, |touched, offset| touched ^ self.lists.touch(block[*offset].0, band));
            std::hint::black_box(touched);
            for offset in &left[..left_count] {
                let candidates = self.candidates(block[*offset].0, radius_m, block[*offset].1);
                visit(number * BLOCK + offset, candidates);
            }
        }
    }
}
