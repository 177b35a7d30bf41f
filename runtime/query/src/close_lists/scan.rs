//! The scan over everybody: what lists are measured against, and what [`super::CloseMode::ScanAll`] does.
//!
//! Blocks of [`BLOCK`] rows are tested without a branch, which the compiler turns into vector instructions; only a
//! block with somebody near is looked at row by row. Whoever is absent has no number for a place and is near nothing.

/// Rows tested at once: long enough to pay for the branch at its end, short enough that most blocks are empty.
const BLOCK: usize = 32;

/// Places and groups of everybody, one row per index.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    pub x_m: &'a [f32],
    pub z_m: &'a [f32],
    pub groups: &'a [u32],
}

impl Columns<'_> {
    /// Appends all rows but `asker` that are in `groups` and at most `radius_m` from the place, ascending.
    pub fn near(&self, place_m: [f32; 2], radius_m: f32, groups: u32, asker: u32, found: &mut Vec<u32>) {
        let radius_m2 = radius_m * radius_m;
        self.each_block(place_m, radius_m2, groups, |row, _| {
            if row != asker {
                found.push(row);
            }
            radius_m2
        });
    }

    /// The nearest row but `asker`, of equally near ones the first.
    pub fn nearest(&self, place_m: [f32; 2], radius_m: f32, groups: u32, asker: u32) -> Option<u32> {
        let mut nearest = None;
        let mut nearest_m2 = radius_m * radius_m;
        self.each_block(place_m, nearest_m2, groups, |row, distance_m2| {
            if row != asker && (nearest.is_none() || distance_m2 < nearest_m2) {
                nearest = Some(row);
                nearest_m2 = distance_m2;
            }
            nearest_m2
        });
        nearest
    }

    /// Calls `hit` with each row within the radius, which it may shrink, and its squared distance.
    #[inline(always)]
    fn each_block(&self, [x_m, z_m]: [f32; 2], mut radius_m2: f32, groups: u32, mut hit: impl FnMut(u32, f32) -> f32) {
        let mut first = 0;
        let (xs, xs_rest) = self.x_m.as_chunks::<BLOCK>();
        let (zs, zs_rest) = self.z_m.as_chunks::<BLOCK>();
        let (gs, gs_rest) = self.groups.as_chunks::<BLOCK>();
        let mut rows = |first: u32, xs: &[f32], zs: &[f32], gs: &[u32], mut radius_m2: f32| {
            for (offset, ((x, z), g)) in xs.iter().zip(zs).zip(gs).enumerate() {
                let (dx, dz) = (x_m - x, z_m - z);
                let distance_m2 = dx * dx + dz * dz;
                if (g & groups != 0) & (distance_m2 <= radius_m2) {
                    radius_m2 = hit(first + offset as u32, distance_m2);
                }
            }
            radius_m2
        };
        for ((xs, zs), gs) in xs.iter().zip(zs).zip(gs) {
            let mut any = 0;
            for offset in 0..BLOCK {
                let (dx, dz) = (x_m - xs[offset], z_m - zs[offset]);
                let near = if dx * dx + dz * dz <= radius_m2 { u32::MAX } else { 0 };
                any |= near & gs[offset] & groups;
            }
            if any != 0 {
                radius_m2 = rows(first, xs, zs, gs, radius_m2);
            }
            first += BLOCK as u32;
        }
        rows(first, xs_rest, zs_rest, gs_rest, radius_m2);
    }
}
