//! Landscape: the map that the server and every client have: hills, and where towns, camps and hearths are.
//!
//! Eight by eight kilometres of hills, the same for every server: a map is part of the game, who lives on it comes from
//! the world's seed. A grid of sites lies over it, each moved a little from the middle of its square. Eight sites are
//! towns; around the others monsters camp. Beside every second camp, out of its hearing, is a hearth, where players
//! begin and begin again.
//!
//! ```text
//!   +-------+-------+-------+     site  333 m from the next, so with 10,000 NPCs and 2,000 players about 50
//!   |   c   |  c    |    c  |     c     camp, 18 monsters          of them are within 300 m of anybody
//!   | h     |       | h     |     h     hearth
//!   +-------+-------+-------+     T     town: guards, bankers, doors
//!   |    c  |   T   |  c    |
//!   +-------+-------+-------+
//! ```
//!
//! Ground is heights on a grid of 16 m, straight in between; a line of sight is sampled every 4 m. Sites and hearths
//! are in order of their distance from the first town, so that a world with few NPCs is a small one, around that town.
//!
//! Read-only and shared. Made once in a process in some 20 ms, 1 MB. A height costs 5 ns, a line of sight of 40 m 60
//! ns.

use std::sync::{Arc, OnceLock};

use bevy_ecs::resource::Resource;
use rand::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;

/// The landscape reaches so far from its middle, each way. (m)
pub const HALF_SIDE_M: f32 = 4_096.0;
/// Nobody walks farther from the middle than this, each way. (m)
pub const EDGE_M: f32 = 4_000.0;
/// Where somebody sees from, above the ground. (m)
pub const EYE_M: f32 = 1.7;
/// Nobody is attacked so near to the middle of a town but by those who came after it. (m)
pub const TOWN_RADIUS_M: f32 = 60.0;

const HEIGHT_CELL_M: f32 = 16.0;
const HEIGHTS_PER_SIDE: usize = (2.0 * HALF_SIDE_M / HEIGHT_CELL_M) as usize + 1;
/// Between two samples along a line of sight. (m)
const SIGHT_STEP_M: f32 = 4.0;
const SITES_PER_SIDE: usize = 24;
const SITE_CELL_M: f32 = 2.0 * EDGE_M / SITES_PER_SIDE as f32;
/// How far a site may be from the middle of its square. (m)
const SITE_STRAY_M: f32 = 50.0;
/// From a camp to its hearth: out of everybody's hearing. (m)
const HEARTH_AWAY_M: f32 = 110.0;
/// Squares of the towns, column and row.
const TOWNS: [[usize; 2]; 8] = [[12, 11], [3, 4], [9, 3], [19, 5], [4, 12], [20, 14], [6, 20], [16, 19]];
/// Wavelength (m) and height (m) of the hills.
const HILLS: [[f32; 2]; 2] = [[640.0, 70.0], [160.0, 18.0]];
/// Crags rise where a noise of this wavelength (m) is above a part, so steeply (m): what one can hide behind, on a
/// third of the ground.
const CRAG_WAVE_M: f32 = 44.0;
const CRAG_ABOVE: f32 = 0.5;
const CRAG_RISE_M: f32 = 45.0;
const SEED: u64 = 0x5EED_7A11_71E5;

/// The map.
pub struct Landscape {
    heights: Vec<f32>,
    towns: Vec<[f32; 2]>,
    camps: Vec<[f32; 2]>,
    hearths: Vec<[f32; 2]>,
}

impl Landscape {
    /// The one there is, made by whoever asks first.
    pub fn load() -> Arc<Self> {
        static LANDSCAPE: OnceLock<Arc<Landscape>> = OnceLock::new();
        LANDSCAPE.get_or_init(|| Arc::new(Self::make())).clone()
    }

    fn make() -> Self {
        let mut towns = Vec::new();
        let (mut camps, mut hearths) = (Vec::new(), Vec::new());
        for row in 0..SITES_PER_SIDE {
            for column in 0..SITES_PER_SIDE {
                let site = site(column, row);
                if !TOWNS.contains(&[column, row]) {
                    camps.push(site);
                    if (column + row) % 2 == 0 {
                        let turn = random(column, row, 2) * std::f32::consts::TAU;
                        let (sin, cos) = turn.sin_cos();
                        hearths.push([site[0] + sin * HEARTH_AWAY_M, site[1] + cos * HEARTH_AWAY_M].map(within_edge));
                    }
                }
            }
        }
        towns.extend(TOWNS.map(|[column, row]| site(column, row)));
        for places in [&mut camps, &mut hearths] {
            places.sort_by(|a, b| distance_m2(*a, towns[0]).total_cmp(&distance_m2(*b, towns[0])));
        }
        let mut landscape = Self { heights: Vec::new(), towns, camps, hearths };
        landscape.heights = (0..HEIGHTS_PER_SIDE * HEIGHTS_PER_SIDE)
            .map(|index| {
                let coordinate = |index: usize| index as f32 * HEIGHT_CELL_M - HALF_SIDE_M;
                landscape.hill_at([coordinate(index % HEIGHTS_PER_SIDE), coordinate(index / HEIGHTS_PER_SIDE)])
            })
            .collect();
        landscape
    }

    /// Middles of the towns. The first is the middle of the smallest world.
    pub fn towns(&self) -> &[[f32; 2]] {
        &self.towns
    }

    /// Where monsters camp, if there are enough of them; from the first town outwards.
    pub fn camps(&self) -> &[[f32; 2]] {
        &self.camps
    }

    /// Where players begin, from the first town outwards.
    pub fn hearths(&self) -> &[[f32; 2]] {
        &self.hearths
    }

    /// How many hearths a world with so many camps has: as far from the first town as these reach. [at least 1]
    pub fn hearths_beside(&self, camps: usize) -> usize {
        (camps / 2).clamp(1, self.hearths.len())
    }

    /// Height of the ground. (m) Beyond the landscape that of its edge; 0 for what is no place.
    pub fn height_at(&self, [x, z]: [f32; 2]) -> f32 {
        let last = (HEIGHTS_PER_SIDE - 1) as f32;
        // `max` also turns what is not a number into 0.
        let cell = |metres: f32| ((metres + HALF_SIDE_M) / HEIGHT_CELL_M).max(0.0).min(last - 1e-3);
        let (x, z) = (cell(x), cell(z));
        let (column, row) = (x as usize, z as usize);
        let (right, down) = (x - column as f32, z - row as f32);
        let at = row * HEIGHTS_PER_SIDE + column;
        let (upper, lower) = (&self.heights[at..at + 2], &self.heights[at + HEIGHTS_PER_SIDE..][..2]);
        let above = upper[0] + (upper[1] - upper[0]) * right;
        let below = lower[0] + (lower[1] - lower[0]) * right;
        above + (below - above) * down
    }

    /// Whether somebody who stands at `a` and somebody at `b` see each other's eyes over the ground between them. The
    /// same both ways.
    pub fn is_line_clear(&self, a: [f32; 2], b: [f32; 2]) -> bool {
        // In one order whoever asks, so that rounding is the same.
        let (a, b) = if (a[0], a[1]) <= (b[0], b[1]) { (a, b) } else { (b, a) };
        let (from, to) = (self.height_at(a) + EYE_M, self.height_at(b) + EYE_M);
        let steps = (distance_m2(a, b).sqrt() / SIGHT_STEP_M).ceil().min(1_000.0) as u32;
        (1..steps).all(|step| {
            let part = step as f32 / steps as f32;
            let place = [a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part];
            self.height_at(place) <= from + (to - from) * part
        })
    }

    /// Hills, flat where towns are.
    fn hill_at(&self, place: [f32; 2]) -> f32 {
        let nearest_m2 = self.towns.iter().map(|town| distance_m2(*town, place)).fold(f32::INFINITY, f32::min);
        let flat = 1.0 - ((nearest_m2.sqrt() - TOWN_RADIUS_M) / TOWN_RADIUS_M).clamp(0.0, 1.0);
        let crag_m = (noise(place, CRAG_WAVE_M, 20) - CRAG_ABOVE).max(0.0) * CRAG_RISE_M;
        let hills = HILLS.iter().zip(10..);
        let hills_m: f32 = hills.map(|(&[wave_m, height_m], octave)| noise(place, wave_m, octave) * height_m).sum();
        (hills_m + crag_m) * (1.0 - flat)
    }
}

/// The map, as a resource.
#[derive(Resource, Clone)]
pub struct Land(pub Arc<Landscape>);

/// Keeps a coordinate where one may walk. What is not a number becomes 0.
pub fn within_edge(metres: f32) -> f32 {
    if metres.is_nan() { 0.0 } else { metres.clamp(-EDGE_M, EDGE_M) }
}

/// Squared distance of two places. (m²)
pub fn distance_m2(a: [f32; 2], b: [f32; 2]) -> f32 {
    let (x, z) = (a[0] - b[0], a[1] - b[1]);
    x * x + z * z
}

fn site(column: usize, row: usize) -> [f32; 2] {
    let middle = |index: usize| (index as f32 + 0.5) * SITE_CELL_M - EDGE_M;
    let stray = |salt| (random(column, row, salt) * 2.0 - 1.0) * SITE_STRAY_M;
    [middle(column) + stray(0), middle(row) + stray(1)]
}

/// Smooth noise in 0..1.
fn noise([x, z]: [f32; 2], wave_m: f32, octave: u64) -> f32 {
    let (x, z) = ((x + HALF_SIDE_M) / wave_m, (z + HALF_SIDE_M) / wave_m);
    let (column, row) = (x as usize, z as usize);
    let smooth = |part: f32| part * part * (3.0 - 2.0 * part);
    let (right, down) = (smooth(x.fract()), smooth(z.fract()));
    let corner = |right: usize, down: usize| random(column + right, row + down, octave);
    let above = corner(0, 0) + (corner(1, 0) - corner(0, 0)) * right;
    let below = corner(0, 1) + (corner(1, 1) - corner(0, 1)) * right;
    above + (below - above) * down
}

/// A number in 0..1 that belongs to a square, the same on every machine.
fn random(column: usize, row: usize, salt: u64) -> f32 {
    let mixed = mix(SEED ^ salt << 48 ^ (column as u64) << 24 ^ row as u64);
    (mixed >> 40) as f32 / (1_u64 << 24) as f32
}

/// Spreads every bit over all others.
pub(crate) fn mix(value: u64) -> u64 {
    SplitMix64::seed_from_u64(value).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_inside_and_apart() {
        let landscape = Landscape::load();
        assert_eq!(landscape.towns().len(), 8);
        assert_eq!(landscape.camps().len(), SITES_PER_SIDE * SITES_PER_SIDE - 8);
        assert!(landscape.hearths().len() > 250);
        let all = [landscape.towns(), landscape.camps(), landscape.hearths()].concat();
        assert!(all.iter().flatten().all(|metres| metres.abs() <= EDGE_M));
        for hearth in landscape.hearths() {
            let nearest_m2 =
                landscape.camps().iter().map(|camp| distance_m2(*camp, *hearth)).fold(f32::INFINITY, f32::min);
            assert!(nearest_m2.sqrt() > 60.0, "a camp is {} m from a hearth", nearest_m2.sqrt());
        }
    }

    #[test]
    fn the_ground_is_hilly_and_towns_are_flat() {
        let landscape = Landscape::load();
        let heights: Vec<f32> = landscape.camps().iter().map(|camp| landscape.height_at(*camp)).collect();
        let (low, high) =
            (heights.iter().copied().fold(f32::MAX, f32::min), heights.iter().copied().fold(0.0, f32::max));
        assert!(high - low > 30.0, "{low} to {high}");
        for town in landscape.towns() {
            assert!(landscape.is_line_clear([town[0] - 30.0, town[1]], [town[0] + 30.0, town[1]]));
        }
    }

    /// Promise: whatever is asked about, there is an answer, the same both ways; and hills do hide something.
    #[test]
    fn sight_is_mutual_and_sometimes_blocked() {
        let landscape = Landscape::load();
        let (mut clear, mut blocked) = (0, 0);
        for (index, &camp) in landscape.camps().iter().enumerate() {
            let (sin, cos) = (index as f32).sin_cos();
            let other = [camp[0] + sin * 30.0, camp[1] + cos * 30.0];
            assert_eq!(landscape.is_line_clear(camp, other), landscape.is_line_clear(other, camp));
            if landscape.is_line_clear(camp, other) { clear += 1 } else { blocked += 1 }
        }
        assert!(clear > 100 && blocked > 20, "{clear} clear, {blocked} blocked");
        for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
            assert!(landscape.height_at([poison, 0.0]).is_finite());
            landscape.is_line_clear([poison, 0.0], [0.0, poison]);
        }
        assert!(landscape.is_line_clear([5.0, 5.0], [5.0, 5.0]));
    }
}
