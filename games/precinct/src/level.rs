//! The level: one city block that every world of the game takes place in.
//!
//! Made once at start from a constant seed and shared behind an `Arc`: geometry for casts, nav mesh for movement,
//! places to spawn and to take cover, doorways. Nothing in it ever changes, so any number of worlds on any thread read
//! it, and a new world costs no level at all. Server and bots make the same level, byte for byte.
//!
//! Cost: [`Level::load`] about 0.15 s, nearly all of it baking the nav mesh; 0.3 MB.

mod layout;

use std::sync::{Arc, OnceLock};

use glam::Vec3;
use throng_query::geometry::{Aabb, LevelGeometry};
use throng_query::nav::{BakeSettings, NavMesh, NavPoint, bake};

use crate::components::{BODY_HEIGHT_M, BODY_RADIUS_M};
use layout::Layout;

/// A place behind something low.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoverPoint {
    pub place: NavPoint,
    /// Unit vector from the place towards the cover: where it protects from.
    pub towards: Vec3,
}

/// A gap in a wall that a door fills while it is closed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Doorway {
    pub solid: Aabb,
    /// Unit vector along the wall.
    pub along: Vec3,
}

impl Doorway {
    /// On the ground, in the middle of the gap.
    pub fn middle(&self) -> Vec3 {
        self.solid.center().with_y(self.solid.min.y)
    }
}

/// One city block, read-only.
pub struct Level {
    pub geometry: LevelGeometry,
    pub navmesh: NavMesh,
    /// The smallest box around all of it.
    pub bounds: Aabb,
    /// Two at every street crossing, in a constant order.
    pub spawn_points: Vec<NavPoint>,
    pub cover_points: Vec<CoverPoint>,
    /// Those of all halls. Neither geometry nor nav mesh know of doors: whether one is closed is a world's affair.
    pub doorways: Vec<Doorway>,
}

impl Level {
    /// The level, made by the first who asks in this process: a test that starts many servers makes it once.
    pub fn shared() -> Arc<Self> {
        static LEVEL: OnceLock<Arc<Level>> = OnceLock::new();
        LEVEL.get_or_init(Self::load).clone()
    }

    /// Makes the level. Call once, then share.
    ///
    /// # Panics
    ///
    /// If the layout cannot be baked. It is the same every time, so this is found by any test that loads the level.
    pub fn load() -> Arc<Self> {
        let layout = Layout::city_block();
        let geometry = LevelGeometry::from_boxes(&layout.boxes).expect("the city block is made of proper boxes");
        let settings = BakeSettings {
            radius_m: BODY_RADIUS_M,
            height_m: BODY_HEIGHT_M,
            reachable_from: Some(layout.spawns[0]),
            ..BakeSettings::default()
        };
        let navmesh = bake(&geometry, &settings).expect("the city block has ground to walk on");
        let on_mesh = |place: Vec3| navmesh.nearest(place, 1.0).ok();
        let spawn_points = layout.spawns.iter().filter_map(|place| on_mesh(*place)).collect();
        let cover_points = layout
            .covers
            .iter()
            .filter_map(|(place, towards)| Some(CoverPoint { place: on_mesh(*place)?, towards: *towards }))
            .collect();
        let doorways = layout.doorways.iter().map(|(solid, along)| Doorway { solid: *solid, along: *along }).collect();
        Arc::new(Self { bounds: geometry.bounds(), geometry, navmesh, spawn_points, cover_points, doorways })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{components::EYE, page};
    use throng_query::casts::lines_of_sight;
    use throng_query::nav::{PathOutcome, PathSearch, PolygonId};

    #[test]
    fn every_load_gives_the_same_level() {
        let (one, other) = (Level::load(), Level::load());
        assert_eq!(one.geometry.boxes(), other.geometry.boxes());
        assert_eq!(one.spawn_points, other.spawn_points);
        assert_eq!(one.cover_points, other.cover_points);
        assert_eq!(one.navmesh.polygon_count(), other.navmesh.polygon_count());
        assert_eq!(one.navmesh.area_m2(), other.navmesh.area_m2());
    }

    /// Promise: the page that plays draws the walls that there are; `UPDATE_EXPECT=1 cargo test -p precinct --lib level`
    /// writes them anew, and `cargo xtask web` the page.
    #[test]
    fn the_page_draws_these_walls() {
        let layout = Layout::city_block();
        // What a body meets: the ground is below, and roofs are above.
        let walls = layout.boxes.iter().filter(|solid| solid.max.y > 0.0 && solid.min.y < BODY_HEIGHT_M);
        let lines = walls.map(|Aabb { min, max }| {
            format!("  [{:.2}, {:.2}, {:.2}, {:.2}, {:.2}],\n", min.x, min.z, max.x, max.z, max.y)
        });
        let text = format!(
            "// Walls of the city block, made of games/precinct/src/level.rs by `UPDATE_EXPECT=1 cargo test -p precinct --lib level`.\n\n\
             /** West, south, east and north of each, and how high it is (m). */\n\
             export const WALLS: readonly (readonly [number, number, number, number, number])[] = [\n{}];\n",
            lines.collect::<String>()
        );
        page::check("play/precinct/walls.ts", &text);
    }

    /// Promise: the page that plays predicts walks on the ground that there is; written anew as the walls are.
    #[test]
    fn the_page_walks_on_this_ground() {
        let level = Level::shared();
        let cell_m = BakeSettings::default().cell_m;
        // From where the bake counts its cells.
        let [west_m, south_m] = [level.bounds.min.x, level.bounds.min.z].map(|metres| metres - cell_m / 2.0);
        let cells = |metres: f32| {
            let cells = metres / cell_m;
            assert!((cells - cells.round()).abs() < 1e-3, "a corner {metres} m off is none of a cell");
            cells.round() as u32
        };
        let mut lines = String::new();
        for polygon in 0..level.navmesh.polygon_count() as u32 {
            let corner = |at: Vec3| format!("{}, {}", cells(at.x - west_m), cells(at.z - south_m));
            let corners: Vec<String> = level.navmesh.corners(PolygonId(polygon)).map(corner).collect();
            lines += &format!("  [{}],\n", corners.join(", "));
        }
        let text = format!(
            "// Ground of the city block, made of games/precinct/src/level.rs by `UPDATE_EXPECT=1 cargo test -p precinct --lib level`.\n\n\
             /** Its corners are counted in cells from here to the east and to the north (m). */\n\
             export const CELL_M = {cell_m:?};\n\
             export const WEST_M = {west_m:.2};\n\
             export const SOUTH_M = {south_m:.2};\n\n\
             /** Where the middle of a body may be: convex polygons, of each its corners' x and z in turn. */\n\
             export const GROUND: readonly (readonly number[])[] = [\n{lines}];\n"
        );
        page::check("play/precinct/ground.ts", &text);
    }

    #[test]
    fn it_is_one_connected_city_block() {
        let level = Level::load();
        level.navmesh.check();
        assert_eq!(level.navmesh.island_count(), 1);
        assert!((160.0..164.0).contains(&level.bounds.size_m().x), "{:?}", level.bounds);
        assert!((160.0..164.0).contains(&level.bounds.size_m().z), "{:?}", level.bounds);
        let area_m2 = level.navmesh.area_m2();
        assert!((10_000.0..20_000.0).contains(&area_m2), "{area_m2} m² of ground: neither all open nor all built up");
        assert!(level.navmesh.bounds().max.y < 0.5, "nobody walks on roofs");
    }

    #[test]
    fn everybody_can_go_from_any_spawn_to_any_other() {
        let level = Level::load();
        assert_eq!(level.spawn_points.len(), 32);
        let mut search = PathSearch::new(&level.navmesh);
        let mut waypoints = [Vec3::ZERO; 64];
        for from in &level.spawn_points {
            for to in &level.spawn_points {
                let path = search.find(&level.navmesh, *from, *to, &mut waypoints);
                assert_eq!(path.outcome, PathOutcome::Complete, "{from:?} to {to:?}");
                assert!(path.length_m < 400.0, "{path:?}");
            }
        }
    }

    #[test]
    fn every_doorway_leads_through_a_wall() {
        let level = Level::load();
        assert!(level.doorways.len() >= 8, "{:?}", level.doorways);
        for doorway in &level.doorways {
            let across = Vec3::new(doorway.along.z, 0.0, doorway.along.x);
            let [one, other] = [-1.5, 1.5].map(|side| doorway.middle() + across * side);
            let from = level.navmesh.nearest(one, 1.0).expect("there is ground on this side");
            let walk = level.navmesh.walk_straight(from, other);
            assert!(walk.end.position().distance(other) < 1.0, "{doorway:?}: {walk:?}");
        }
    }

    #[test]
    fn cover_hides_who_crouches_and_not_who_stands() {
        let level = Level::load();
        assert!(level.cover_points.len() > 100, "{}", level.cover_points.len());
        let behind = |eyes: Vec3| -> Vec<(Vec3, Vec3)> {
            level
                .cover_points
                .iter()
                .map(|cover| {
                    let place = cover.place.position() + eyes;
                    (place, place + cover.towards * 3.0)
                })
                .collect()
        };
        let mut seen = Vec::new();
        lines_of_sight(&level.geometry, &behind(Vec3::Y * 0.8), &mut seen);
        assert!(seen.iter().all(|seen| !seen), "cover between a crouching character and what it hides from");
        lines_of_sight(&level.geometry, &behind(EYE), &mut seen);
        let open = seen.iter().filter(|seen| **seen).count();
        assert!(open * 4 > seen.len() * 3, "{open} of {} can shoot over their cover when standing", seen.len());
    }
}
