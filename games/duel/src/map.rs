//! The map: two sites, three ways to each, walls, corners and cover. Every match takes place in it.
//!
//! Made once in a process from its drawing ([`layout`]) and shared behind an `Arc`: geometry for casts, the solids near
//! each square for movement, cell-to-cell visibility for the fog of war, sites, bases and ways. Nothing in it ever
//! changes, so any number of matches on any thread read it, and a new match costs no map at all. Server and bots make
//! the same map, byte for byte.
//!
//! Sketch of the cost: [`Map::load`] some 0.2 s, nearly all of it baking visibility; 0.1 MB.

pub mod layout;

use std::sync::{Arc, OnceLock};

use glam::Vec3;
use throng_query::{
    geometry::{Aabb, LevelGeometry},
    occlusion::{CellSettings, CellVisibility},
};

use crate::{
    components::Phase,
    teams::{Side, TEAM_SIZE},
};
use layout::{COLUMNS, ROWS, SQUARE_M, letters, middle_of, solids, square_of};

/// A place to plant the spike in.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    pub name: &'static str,
    /// All of its squares, from the ground up.
    pub area: Aabb,
    /// The attackers' ways to it.
    pub ways: [Way; 3],
}

impl Site {
    /// Whether the spike can be planted by somebody whose feet are here.
    pub fn holds(&self, feet: Vec3) -> bool {
        self.area.contains(feet)
    }

    /// In its middle, on the ground.
    pub fn middle(&self) -> Vec3 {
        self.area.center().with_y(0.0)
    }
}

/// A way from the attackers' base to a site.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    pub name: &'static str,
    /// Places on the ground, each in a straight walk from the one before it; the last is on the site.
    pub waypoints: Vec<Vec3>,
}

/// A map, read-only.
pub struct Map {
    /// Walls and crates, for casts. The ground is at 0 and not among them.
    pub geometry: LevelGeometry,
    /// Which cells may see which.
    pub cells: CellVisibility,
    /// The smallest box around all places where somebody can be.
    pub bounds: Aabb,
    /// A in the north, and B in the south.
    pub sites: [Site; 2],
    /// Where a side stands up, by [`Side::index`]: one place for each of a team.
    pub spawns: [[Vec3; TEAM_SIZE]; 2],
    /// What a side may not leave while it buys, by [`Side::index`].
    pub bases: [Aabb; 2],
    letters: [[u8; COLUMNS]; ROWS],
    /// Solids near each square, and where those of each square begin.
    near: Vec<Aabb>,
    near_begin: Vec<u32>,
}

/// Eyes and crowns are below this, whatever somebody stands on (m).
const TOP_M: f32 = 4.4;
/// Lowest of what is looked at (m).
const BOTTOM_M: f32 = 0.04;
/// Solids so close to a square count as near to all of it (m).
const NEAR_M: f32 = 0.6;
/// The attackers' base ends here in the east, and the defenders' base begins there (m).
const BASE_EDGES_X_M: [f32; 2] = [-30.0, 30.0];

impl Map {
    /// The map, which the first call makes.
    ///
    /// # Panics
    /// If the drawing cannot be made into a map. It is the same every time, so any test that loads it finds that out.
    pub fn load() -> Arc<Self> {
        static MAP: OnceLock<Arc<Map>> = OnceLock::new();
        MAP.get_or_init(|| Arc::new(Self::new())).clone()
    }

    fn new() -> Self {
        let solids = solids();
        let geometry = LevelGeometry::from_boxes(&solids).expect("the map is made of proper boxes");
        let (half_x, half_z) = (COLUMNS as f32 * SQUARE_M / 2.0, ROWS as f32 * SQUARE_M / 2.0);
        let bounds = Aabb::new(Vec3::new(-half_x, BOTTOM_M, -half_z), Vec3::new(half_x, TOP_M, half_z));
        let cells = CellVisibility::bake(&geometry, &CellSettings { proof_steps: 32, ..CellSettings::within(bounds) });
        let (near, near_begin) = near_squares(&solids);
        let base = |min_x: f32, max_x: f32| Aabb::new(bounds.min.with_x(min_x), bounds.max.with_x(max_x));
        Self {
            geometry,
            cells: cells.expect("the map has a size, and some hundred cells"),
            bounds,
            sites: [site("A", b'A'), site("B", b'B')],
            spawns: [spawns(b'a'), spawns(b'd')],
            bases: [base(bounds.min.x, BASE_EDGES_X_M[0]), base(BASE_EDGES_X_M[1], bounds.max.x)],
            letters: letters(),
            near,
            near_begin,
        }
    }

    /// What a side may not leave in this phase of a match.
    pub fn zone(&self, phase: Phase, side: Side) -> Option<&Aabb> {
        matches!(phase, Phase::WarmUp | Phase::Buy).then(|| &self.bases[side.index()])
    }

    /// The solids that a body can touch whose middle is here; none outside of the map.
    pub fn near(&self, place: Vec3) -> &[Aabb] {
        let Some((column, row)) = square_of(place) else { return &[] };
        let square = row * COLUMNS + column;
        &self.near[self.near_begin[square] as usize..self.near_begin[square + 1] as usize]
    }

    /// Whether there is no solid over the ground here; false outside of the map.
    pub fn is_open(&self, place: Vec3) -> bool {
        square_of(place).is_some_and(|(column, row)| !matches!(self.letters[row][column], b'#' | b'c' | b'C'))
    }

    /// The site on which somebody stands whose feet are here.
    pub fn site_at(&self, feet: Vec3) -> Option<&Site> {
        self.sites.iter().find(|site| site.holds(feet))
    }

    pub fn spawn(&self, side: Side, number: usize) -> Vec3 {
        self.spawns[side.index()][number % TEAM_SIZE]
    }
}

/// The solids near each square, one square after the other, and where those of each begin.
fn near_squares(solids: &[Aabb]) -> (Vec<Aabb>, Vec<u32>) {
    let (mut near, mut begin) = (Vec::new(), vec![0]);
    let aside = Vec3::new(SQUARE_M / 2.0 + NEAR_M, 0.0, SQUARE_M / 2.0 + NEAR_M);
    for row in 0..ROWS {
        for column in 0..COLUMNS {
            let (min, max) = (middle_of(column, row) - aside, middle_of(column, row) + aside);
            let touches = |solid: &&Aabb| {
                solid.min.x < max.x && solid.max.x > min.x && solid.min.z < max.z && solid.max.z > min.z
            };
            near.extend(solids.iter().filter(touches));
            begin.push(near.len() as u32);
        }
    }
    (near, begin)
}

/// The squares with this letter, by row and then by column.
fn squares_of(letter: u8) -> Vec<(usize, usize)> {
    let letters = letters();
    let all = (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (column, row)));
    all.filter(|(column, row)| letters[*row][*column] == letter).collect()
}

fn site(name: &'static str, letter: u8) -> Site {
    let half = Vec3::new(SQUARE_M / 2.0, 0.0, SQUARE_M / 2.0);
    let middles: Vec<Vec3> = squares_of(letter).iter().map(|(column, row)| middle_of(*column, *row)).collect();
    let min = middles.iter().copied().fold(Vec3::MAX, Vec3::min) - half;
    let max = middles.iter().copied().fold(Vec3::MIN, Vec3::max) + half;
    let is_north = letter == b'A';
    let ways = WAYS.map(|(name, squares)| way(name, squares, is_north));
    Site { name, area: Aabb::new(min, max.with_y(TOP_M)), ways }
}

/// The ways to the northern site, by column and row of their waypoints.
const WAYS: [(&str, &[(usize, usize)]); 3] = [
    ("long", &[(5, 13), (4, 8), (4, 4), (10, 4), (20, 4), (24, 2), (27, 2), (29, 3)]),
    ("short", &[(5, 13), (9, 12), (19, 12), (21, 12), (21, 8), (24, 8), (27, 8), (29, 7)]),
    ("link", &[(5, 13), (9, 12), (18, 12), (21, 13), (26, 15), (30, 14), (33, 13), (33, 10), (33, 8), (32, 7)]),
];

fn way(name: &'static str, squares: &[(usize, usize)], is_north: bool) -> Way {
    let mirrored = |row: usize| if is_north { row } else { ROWS - 1 - row };
    Way { name, waypoints: squares.iter().map(|(column, row)| middle_of(*column, mirrored(*row))).collect() }
}

/// Five places of a base, spread over its squares.
fn spawns(letter: u8) -> [Vec3; TEAM_SIZE] {
    let squares = squares_of(letter);
    std::array::from_fn(|number| {
        let (column, row) = squares[(2 * number + 1) * squares.len() / (2 * TEAM_SIZE)];
        middle_of(column, row)
    })
}

#[cfg(test)]
mod tests {
    use throng_query::casts::lines_of_sight;

    use super::*;

    #[test]
    fn each_site_has_three_ways_that_one_can_walk() {
        let map = Map::load();
        for site in &map.sites {
            for Way { name, waypoints } in &site.ways {
                assert!(map.bases[Side::Attackers.index()].contains(waypoints[0].with_y(1.0)), "{} {name}", site.name);
                assert!(waypoints.last().is_some_and(|end| site.holds(*end)), "{} {name}", site.name);
                // At the height of knees, and as wide as a body.
                let legs = waypoints.windows(2).flat_map(|leg| {
                    let across = Vec3::new(leg[0].z - leg[1].z, 0.0, leg[1].x - leg[0].x).normalize() * 0.4;
                    [-1.0, 0.0, 1.0].map(|aside| [leg[0], leg[1]].map(|end| end + across * aside + Vec3::Y * 0.4))
                });
                let legs: Vec<(Vec3, Vec3)> = legs.map(|[from, to]| (from, to)).collect();
                let mut free = Vec::new();
                lines_of_sight(&map.geometry, &legs, &mut free);
                let blocked = free.iter().position(|free| !free).map(|leg| legs[leg]);
                assert_eq!(blocked, None, "{} {name}", site.name);
            }
        }
    }

    #[test]
    fn both_halves_are_alike() {
        let map = Map::load();
        let [a, b] = &map.sites;
        assert_eq!(a.area.min.z, -b.area.max.z);
        assert_eq!(a.area.size_m(), b.area.size_m());
        assert!(a.middle().z > 0.0 && b.middle().z < 0.0);
    }

    #[test]
    fn everybody_stands_up_in_the_base_and_apart() {
        let map = Map::load();
        for side in [Side::Attackers, Side::Defenders] {
            let spawns = &map.spawns[side.index()];
            for (number, spawn) in spawns.iter().enumerate() {
                assert!(map.is_open(*spawn) && map.bases[side.index()].contains(spawn.with_y(1.0)));
                assert!(spawns[..number].iter().all(|other| other.distance(*spawn) > 1.0), "{spawns:?}");
            }
        }
    }

    #[test]
    fn bases_and_sites_do_not_see_each_other() {
        let map = Map::load();
        let eye = |place: Vec3| place + Vec3::Y * 1.6;
        let [attackers, defenders] = [0, 1].map(|side| map.spawns[side][2]);
        let [a, b] = [0, 1].map(|site| map.sites[site].middle());
        let pairs = [(attackers, defenders), (attackers, a), (attackers, b), (a, b), (defenders, a)];
        let mut seen = Vec::new();
        lines_of_sight(&map.geometry, &pairs.map(|(from, to)| (eye(from), eye(to))), &mut seen);
        assert_eq!(seen, [false; 5]);
        assert!(map.cells.visible_share() < 0.6, "{}", map.cells.visible_share());
    }

    /// Promise: while one buys, nobody sees anybody of the other side, wherever in its base and however high. What is in
    /// a base and sees into the other sees over the inner edges of both, so all pairs of places on those are enough.
    #[test]
    fn from_no_place_of_one_base_one_sees_into_the_other() {
        let map = &Map::load();
        let [west, east] = [map.bases[0].max.x, map.bases[1].min.x];
        let steps = (map.bounds.size_m().z / 0.25) as usize;
        let edge = |x: f32, height_m: f32| {
            let places = (0..=steps).map(move |step| Vec3::new(x, height_m, map.bounds.min.z + step as f32 * 0.25));
            places.filter(|place| map.is_open(place.with_x(x + 0.1 * x.signum()))).collect::<Vec<_>>()
        };
        let mut seen = Vec::new();
        for height_m in [0.3, 1.65, 4.3] {
            let (from, to) = (edge(west, height_m), edge(east, height_m));
            assert!(from.len() > 100 && to.len() > 100);
            let pairs: Vec<(Vec3, Vec3)> = from.iter().flat_map(|from| to.iter().map(|to| (*from, *to))).collect();
            lines_of_sight(&map.geometry, &pairs, &mut seen);
            let open = seen.iter().position(|seen| *seen).map(|pair| pairs[pair]);
            assert_eq!(open, None, "{} of {} pairs", seen.iter().filter(|seen| **seen).count(), pairs.len());
        }
    }

    #[test]
    fn solids_near_a_place_are_those_that_a_body_there_could_touch() {
        let map = Map::load();
        let place = middle_of(11, 3);
        assert!(map.near(place).iter().any(|solid| solid.max.y == 0.9), "the crate beside it");
        assert!(map.near(middle_of(12, 3)).len() < 4);
        assert!(map.near(Vec3::X * 100.0).is_empty());
    }
}
