//! Places: where NPCs live, fight and hide, worked out once from the level and shared by all worlds.
//!
//! The level says where its spawn points and covers are. From that follows, for each spawn point taken as a
//! *post* that two factions fight for: the covers around it, which are what patrols walk between, and a
//! home for either faction, some way off on opposite sides, so that those who have died come back from two
//! directions and the fight never ends.
//!
//! Read-only, one table per process. Cost: spawn points x covers, once at start.

use std::sync::Arc;

use glam::Vec3;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_query::nav::NavPoint;

use crate::level::{CoverPoint, Level};

/// How far homes are from the post, if the level allows. (m)
const HOME_M: f32 = 55.0;
/// Covers around a post, at most.
const COVERS_PER_POST_MAX: usize = 24;
/// How far the covers around a post lie at most. (m)
const POST_RADIUS_M: f32 = 24.0;

struct Post {
    covers: Vec<u16>,
    homes: [u16; 2],
}

struct Tables {
    spawns: Vec<NavPoint>,
    covers: Vec<CoverPoint>,
    /// One per spawn point.
    posts: Vec<Post>,
}

/// The tables of a level.
#[derive(Clone)]
pub struct Places(Arc<Tables>);

impl Places {
    /// Works out the tables.
    pub fn of(level: &Level) -> Self {
        let (spawns, covers) = (level.spawn_points.clone(), level.cover_points.clone());
        assert!(!spawns.is_empty(), "a level has spawn points");
        let posts = spawns.iter().map(|&spawn| post(spawn, &spawns, &covers)).collect();
        Self(Arc::new(Tables { spawns, covers, posts }))
    }

    pub fn spawn_count(&self) -> usize {
        self.0.spawns.len()
    }

    /// A spawn point by number; numbers count around.
    pub fn spawn(&self, index: u16) -> NavPoint {
        self.0.spawns[usize::from(index) % self.0.spawns.len()]
    }

    pub fn any_spawn(&self, rng: &mut Xoshiro256PlusPlus) -> NavPoint {
        self.0.spawns[rng.random_range(0..self.0.spawns.len())]
    }

    /// Where the two factions that fight for a post come from.
    pub fn homes(&self, post: u16) -> [u16; 2] {
        self.0.posts[usize::from(post) % self.0.posts.len()].homes
    }

    /// Some cover at most `within_m` from the post, or the post itself.
    pub fn cover_around(&self, post: u16, within_m: f32, rng: &mut Xoshiro256PlusPlus) -> NavPoint {
        let centre = self.spawn(post);
        let covers = &self.0.posts[usize::from(post) % self.0.posts.len()].covers;
        // They are sorted by distance, so those within are the first ones.
        let near = |&cover: &u16| self.cover(cover).position().distance(centre.position()) <= within_m;
        let count = covers.partition_point(near);
        if count == 0 { centre } else { self.cover(covers[rng.random_range(0..count)]) }
    }

    /// The nearest cover within `within_m` of `from` that is nearer to it than the enemy and lies between both.
    pub fn cover_from(&self, from: Vec3, enemy: Option<Vec3>, within_m: f32) -> Option<NavPoint> {
        let protects = |cover: &CoverPoint| {
            let Some(enemy) = enemy else { return true };
            let to_enemy = enemy - cover.place.position();
            to_enemy.dot(cover.towards) > 0.0
                && to_enemy.length_squared() > cover.place.position().distance_squared(from)
        };
        let distances = self.0.covers.iter().map(|cover| (cover.place.position().distance_squared(from), cover));
        distances
            // Half a metre: the one it stands at is no place to go to.
            .filter(|&(distance_m2, _)| (0.25..within_m * within_m).contains(&distance_m2))
            .filter(|(_, cover)| protects(cover))
            .min_by(|one, other| one.0.total_cmp(&other.0))
            .map(|(_, cover)| cover.place)
    }

    fn cover(&self, index: u16) -> NavPoint {
        self.0.covers[usize::from(index)].place
    }
}

fn post(centre: NavPoint, spawns: &[NavPoint], covers: &[CoverPoint]) -> Post {
    let centre = centre.position();
    let distance_m = |point: &NavPoint| point.position().distance(centre);
    let mut near: Vec<u16> = (0..covers.len() as u16)
        .filter(|&cover| distance_m(&covers[usize::from(cover)].place) <= POST_RADIUS_M)
        .collect();
    near.sort_by(|&one, &other| {
        distance_m(&covers[usize::from(one)].place).total_cmp(&distance_m(&covers[usize::from(other)].place))
    });
    near.truncate(COVERS_PER_POST_MAX);

    let nearest_to = |wanted: &dyn Fn(&NavPoint) -> f32| {
        let numbered = spawns.iter().enumerate();
        let best = numbered.min_by(|(_, one), (_, other)| wanted(one).total_cmp(&wanted(other)));
        best.map_or(0, |(index, _)| index as u16)
    };
    let first = nearest_to(&|spawn| (distance_m(spawn) - HOME_M).abs());
    let opposite = (centre - spawns[usize::from(first)].position()).normalize_or_zero() * HOME_M + centre;
    let second = nearest_to(&|spawn| spawn.position().distance(opposite));
    Post { covers: near, homes: [first, second] }
}
