//! The guide: what bots know of the map before they come, as players do who have played it often.
//!
//! The map itself, as every client has it; a nav mesh to find ways on; and posts: places from which one watches where
//! enemies come in, each with cover a step or two aside. All bots of a process share one guide. Ways are searched one at a
//! time, behind a lock that is held for some 5 µs.
//!
//! Sketch of the cost: some 0.3 s to make, half of it the nav mesh; 0.2 MB.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use glam::Vec3;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_query::{
    casts::lines_of_sight,
    geometry::{Aabb, LevelGeometry},
    nav::{BakeSettings, NavMesh, NavPoint, PathSearch, WalkOutcome, bake},
};

use super::legs::flat_m;
use crate::{
    components::Cloud,
    map::{Map, Way, layout::solids},
    movement::{BODY_HALF_M, BODY_HEIGHT_M, EYE_M},
    smoke::is_hidden_by,
    teams::Side,
};

/// Waypoints of one way at most; a longer one is walked in parts.
const WAYPOINTS_MAX: usize = 32;
/// How far from the mesh a place may be that is on it (m).
const OFF_MESH_M: f32 = 3.0;
/// Posts that look at one entry, at most; and how far they are apart at least (m).
const POSTS_MAX: usize = 6;
const POSTS_APART_M: f32 = 2.5;
/// Places that are tried for posts of one entry.
const POST_TRIES: usize = 600;
/// How far the entry is that one looks at (m).
const POST_DISTANCE_M: [f32; 2] = [7.0, 24.0];
/// How far from the site a post may be (m).
const POST_OUTSIDE_M: f32 = 8.0;
/// Steps from a corner into cover (m).
const STEPS_ASIDE_M: [f32; 2] = [1.2, 2.2];
/// The height of a body that is watched for (m).
const CHEST_M: f32 = 1.2;
/// Waypoints from the end of a way: the entry to its site, and where attackers wait.
const ENTRY_FROM_END: usize = 3;
const STAGE_FROM_END: usize = 5;

/// A place to hold an angle from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Post {
    /// Here one is not seen from what one watches.
    pub cover: Vec3,
    /// Here one sees it.
    pub corner: Vec3,
    /// On the ground.
    pub watch: Vec3,
}

/// What all bots of a process share.
pub struct BotGuide {
    pub map: Arc<Map>,
    navmesh: NavMesh,
    search: Mutex<PathSearch>,
    /// By site, and by way to it.
    posts: [[Vec<Post>; 3]; 2],
}

impl BotGuide {
    /// The guide, which the first call makes.
    ///
    /// # Panics
    /// If the map cannot be walked on. It is the same every time, so any test that loads it finds that out.
    pub fn load() -> Arc<Self> {
        static GUIDE: OnceLock<Arc<BotGuide>> = OnceLock::new();
        GUIDE.get_or_init(|| Arc::new(Self::new(Map::load()))).clone()
    }

    fn new(map: Arc<Map>) -> Self {
        let navmesh = ground(&map);
        let search = Mutex::new(PathSearch::new(&navmesh));
        let mut guide = Self { map, navmesh, search, posts: Default::default() };
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(1);
        guide.posts = [0, 1].map(|site| [0, 1, 2].map(|way| guide.find_posts(site, way, rng)));
        guide
    }

    /// The way from one place to another, into `way`; empty if there is none.
    pub fn find_way(&self, from: Vec3, to: Vec3, way: &mut Vec<Vec3>) {
        way.clear();
        let (Some(from), Some(to)) = (self.on_mesh(from), self.on_mesh(to)) else { return };
        let mut waypoints = [Vec3::ZERO; WAYPOINTS_MAX];
        let mut search = self.search.lock().unwrap_or_else(PoisonError::into_inner);
        let path = search.find(&self.navmesh, from, to, &mut waypoints);
        way.extend_from_slice(&waypoints[..path.waypoint_count]);
    }

    /// Whether the map and the smoke leave each line free, into `free`.
    pub fn free_lines(&self, pairs: &[(Vec3, Vec3)], clouds: &[Cloud], free: &mut Vec<bool>) {
        lines_of_sight(&self.map.geometry, pairs, free);
        for (free, (from, to)) in free.iter_mut().zip(pairs) {
            *free &= !is_hidden_by(clouds, *from, *to);
        }
    }

    /// Whether somebody who stands at `from` sees this point.
    fn sees(&self, from: Vec3, point: Vec3) -> bool {
        let mut free = Vec::with_capacity(1);
        lines_of_sight(&self.map.geometry, &[(from + Vec3::Y * EYE_M, point)], &mut free);
        free[0]
    }

    fn on_mesh(&self, place: Vec3) -> Option<NavPoint> {
        self.navmesh.nearest(place.with_y(0.0), OFF_MESH_M).ok()
    }

    /// The nearest place to stand on the ground.
    pub fn standing(&self, place: Vec3) -> Vec3 {
        self.on_mesh(place).map_or(place, |point| point.position().with_y(0.0))
    }

    /// One of the posts from which the attackers' way to a site is watched.
    pub fn post(&self, (site, way): (usize, usize), rng: &mut Xoshiro256PlusPlus) -> Post {
        let posts = &self.posts[site][way];
        let middle = self.standing(self.map.sites[site].middle());
        let anywhere = Post { cover: middle, corner: middle, watch: self.entry(site, way) };
        if posts.is_empty() { anywhere } else { posts[rng.random_range(0..posts.len())] }
    }

    /// Where a way comes into its site.
    pub fn entry(&self, site: usize, way: usize) -> Vec3 {
        let waypoints = &self.map.sites[site].ways[way].waypoints;
        waypoints[waypoints.len().saturating_sub(ENTRY_FROM_END)]
    }

    /// The waypoint at which attackers wait who do not go yet.
    pub fn stage(&self, way: &Way) -> usize {
        way.waypoints.len().saturating_sub(STAGE_FROM_END)
    }

    /// A post from which something on the ground is watched, so far away; where there is none, where it stands itself.
    pub fn post_around(&self, watch: Vec3, [near_m, far_m]: [f32; 2], rng: &mut Xoshiro256PlusPlus) -> Post {
        let found = (0..40).find_map(|_| {
            let corner = self.try_place(watch, far_m, rng)?;
            let is_so_far = (near_m..far_m).contains(&flat_m(corner, watch));
            (is_so_far && self.sees(corner, watch + Vec3::Y * CHEST_M)).then_some(corner)
        });
        let corner = found.unwrap_or_else(|| self.standing(watch));
        Post { cover: self.cover_beside(corner, watch).unwrap_or(corner), corner, watch }
    }

    /// A place near by that cannot be seen from there.
    pub fn hiding_place(&self, feet: Vec3, from: Vec3, rng: &mut Xoshiro256PlusPlus) -> Option<Vec3> {
        let near_m = 7.0;
        let mut places = (0..24).filter_map(|_| self.try_place(feet, near_m, rng));
        places.find(|place| !self.sees(from, *place + Vec3::Y * EYE_M))
    }

    /// A place on the ground at random, in a square around `middle`.
    fn try_place(&self, middle: Vec3, half_m: f32, rng: &mut Xoshiro256PlusPlus) -> Option<Vec3> {
        let [x, z] = [0.0; 2].map(|_: f32| rng.random_range(-half_m..half_m));
        let point = self.navmesh.nearest((middle + Vec3::new(x, 0.0, z)).with_y(0.0), 0.5).ok()?;
        Some(point.position().with_y(0.0))
    }

    fn find_posts(&self, site: usize, way: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<Post> {
        let (area, watch) = (&self.map.sites[site].area, self.entry(site, way));
        let half_m = area.size_m().x.max(area.size_m().z) / 2.0 + POST_OUTSIDE_M;
        let mut posts: Vec<Post> = Vec::with_capacity(POSTS_MAX);
        for _ in 0..POST_TRIES {
            let Some(corner) = self.try_place(area.center(), half_m, rng) else { continue };
            let is_apart = posts.iter().all(|post| flat_m(post.corner, corner) > POSTS_APART_M);
            let [near_m, far_m] = POST_DISTANCE_M;
            let is_so_far = (near_m..far_m).contains(&flat_m(corner, watch));
            if !is_apart || !is_so_far || !self.sees(corner, watch + Vec3::Y * CHEST_M) {
                continue;
            }
            if let Some(cover) = self.cover_beside(corner, watch) {
                posts.push(Post { cover, corner, watch });
            }
            if posts.len() == POSTS_MAX {
                break;
            }
        }
        posts
    }

    /// A step or two aside from a corner, where one is not seen from `watch`.
    fn cover_beside(&self, corner: Vec3, watch: Vec3) -> Option<Vec3> {
        let from = self.on_mesh(corner)?;
        let ways = (0..8).flat_map(|eighth| {
            let (sin, cos) = (eighth as f32 * std::f32::consts::FRAC_PI_4).sin_cos();
            STEPS_ASIDE_M.map(|far_m| corner + Vec3::new(sin, 0.0, cos) * far_m)
        });
        let walks = ways.map(|to| self.navmesh.walk_straight(from, to));
        let mut places = walks.filter(|walk| walk.outcome == WalkOutcome::Arrived).map(|walk| walk.end.position());
        places.find(|place| !self.sees(watch, place.with_y(EYE_M))).map(|place| place.with_y(0.0))
    }
}

/// The map's ground as a nav mesh. The map has no ground among its solids, so one is laid under it.
fn ground(map: &Map) -> NavMesh {
    let floor = Aabb::new(map.bounds.min.with_y(-1.0), map.bounds.max.with_y(0.0));
    let boxes: Vec<Aabb> = solids().into_iter().chain([floor]).collect();
    let geometry = LevelGeometry::from_boxes(&boxes).expect("the map and its ground are made of proper boxes");
    let settings = BakeSettings {
        cell_m: 0.2,
        radius_m: BODY_HALF_M,
        height_m: BODY_HEIGHT_M,
        reachable_from: Some(map.spawn(Side::Attackers, 0)),
        ..BakeSettings::default()
    };
    bake(&geometry, &settings).expect("the map has ground to walk on")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_every_way_can_be_walked_to() {
        let guide = BotGuide::load();
        let mut way = Vec::new();
        for place in guide.map.sites.iter().flat_map(|site| &site.ways).flat_map(|way| &way.waypoints) {
            for spawn in guide.map.spawns.iter().flatten() {
                guide.find_way(*spawn, *place, &mut way);
                let end = way.last().expect("there is a way");
                assert!(flat_m(*end, *place) < 0.5, "from {spawn} to {place} it ends at {end}");
            }
        }
    }

    /// Promise: every entry to a site is watched from somewhere, and who watches it can step back.
    #[test]
    fn every_entry_is_watched_from_places_with_cover_beside() {
        let guide = BotGuide::load();
        for (site, way) in (0..2).flat_map(|site| (0..3).map(move |way| (site, way))) {
            let posts = &guide.posts[site][way];
            assert!(!posts.is_empty(), "site {site}, way {way}");
            for post in posts {
                assert!(guide.sees(post.corner, post.watch + Vec3::Y * CHEST_M), "{post:?}");
                assert!(!guide.sees(post.watch, post.cover + Vec3::Y * EYE_M), "{post:?}");
                assert!(flat_m(post.cover, post.corner) <= STEPS_ASIDE_M[1] + 0.1, "{post:?}");
                assert!(guide.map.is_open(post.cover) && guide.map.is_open(post.corner), "{post:?}");
            }
        }
    }

    #[test]
    fn a_line_is_free_where_there_is_neither_wall_nor_smoke() {
        let guide = BotGuide::load();
        let spawn = guide.map.spawn(Side::Attackers, 0) + Vec3::Y;
        let lines = [2.0, 6.0, 80.0].map(|far_m| (spawn, spawn + Vec3::X * far_m));
        let mut free = Vec::new();
        guide.free_lines(&lines, &[], &mut free);
        assert_eq!(free, [true, true, false]);
        let cloud = Cloud { x: spawn.x, z: spawn.z, until_tick: 9 };
        guide.free_lines(&lines, &[cloud], &mut free);
        assert_eq!(free, [true, false, false], "but one sees one's neighbour");
    }
}
