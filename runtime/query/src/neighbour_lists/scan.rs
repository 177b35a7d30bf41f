//! Distances, measured: over everybody, which is what lists are compared with, and over the members of a list.
//!
//! Everybody: blocks of [`BLOCK`] rows are tested without a branch, which the compiler turns into vector instructions;
//! only a block with somebody near is looked at row by row. Whoever is absent has no number for a place and is near
//! nothing.

/// Rows tested at once: long enough to pay for the branch at its end, short enough that most blocks are empty.
const BLOCK: usize = 32;

/// The nearest of those offered, in any order.
pub(super) struct Nearest {
    index: u32,
    distance_m2: f32,
}

impl Nearest {
    pub fn within(radius_m: f32) -> Self {
        Self { index: u32::MAX, distance_m2: radius_m * radius_m }
    }

    #[inline(always)]
    pub fn offer(&mut self, index: u32, distance_m2: f32) {
        if distance_m2 < self.distance_m2 || (distance_m2 == self.distance_m2 && index < self.index) {
            (self.index, self.distance_m2) = (index, distance_m2);
        }
    }

    pub fn index(&self) -> Option<u32> {
        (self.index != u32::MAX).then_some(self.index)
    }
}

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
        let mut nearest = Nearest::within(radius_m);
        self.each_block(place_m, radius_m * radius_m, groups, |row, distance_m2| {
            if row != asker {
                nearest.offer(row, distance_m2);
            }
            nearest.distance_m2
        });
        nearest.index()
    }

    /// Appends those of a list that are in `groups` and at most `radius_m` from `asker`, ascending.
    #[inline]
    pub fn near_among(&self, list: &[u32], asker: u32, radius_m: f32, groups: u32, found: &mut Vec<u32>) {
        let (x_m, z_m) = (self.x_m[asker as usize], self.z_m[asker as usize]);
        let radius_m2 = radius_m * radius_m;
        let mut end = found.len();
        let begin = end;
        found.resize(end + list.len(), 0);
        for other in list {
            let row = *other as usize;
            let (dx, dz) = (x_m - self.x_m[row], z_m - self.z_m[row]);
            // Written always, and kept if near: a guess of the branch predictor is costlier than a store.
            found[end] = *other;
            end += usize::from((self.groups[row] & groups != 0) & (dx * dx + dz * dz <= radius_m2));
        }
        found.truncate(end);
        sort(&mut found[begin..]);
    }

    /// The nearest of a list, of equally near ones the lowest index.
    #[inline]
    pub fn nearest_among(&self, list: &[u32], asker: u32, radius_m: f32, groups: u32) -> Option<u32> {
        let (x_m, z_m) = (self.x_m[asker as usize], self.z_m[asker as usize]);
        // Distances are not negative, so their bits are in their order, and the least of these numbers is the answer.
        let key = |index: u32, distance_m2: f32| u64::from(distance_m2.to_bits()) << 32 | u64::from(index);
        let nobody = key(u32::MAX, radius_m * radius_m);
        let mut nearest = nobody;
        for other in list {
            let row = *other as usize;
            let (dx, dz) = (x_m - self.x_m[row], z_m - self.z_m[row]);
            let wanted = if self.groups[row] & groups != 0 { 0 } else { u64::MAX };
            nearest = nearest.min(key(*other, dx * dx + dz * dz) | wanted);
        }
        (nearest != nobody).then_some(nearest as u32)
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

/// Short answers are sorted by counting, for each, how many are less: no branch that depends on what they are.
fn sort(answer: &mut [u32]) {
    const SHORT: usize = 16;
    if answer.len() <= 1 {
        return;
    }
    if answer.len() > SHORT {
        answer.sort_unstable();
        return;
    }
    let mut unsorted = [u32::MAX; SHORT];
    unsorted[..answer.len()].copy_from_slice(answer);
    for one in &unsorted[..answer.len()] {
        let less: u32 = unsorted.iter().map(|other| u32::from(other < one)).sum();
        answer[less as usize] = *one;
    }
}
