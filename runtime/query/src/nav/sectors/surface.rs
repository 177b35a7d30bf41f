//! The surface of what is streamed: from any point to a point on it, and steps that cross sides.
//!
//! The same promises as of a whole mesh ([`walk`](crate::nav::walk)): a walk never skips an edge and never ends off the
//! surface. At a side it is looked up what lies behind: an edge of the neighbour at that place, no higher or lower than a
//! character steps. If the neighbour is not streamed, or has a wall there, the side is a wall.
//!
//! A point knows its sector and that one's version. Where the sector has been baked again since, the point is looked up
//! anew by its position, before anything else is done with it.
//!
//! Any thread, no allocation.

use glam::{Vec2, Vec3};
use rand::Rng;
use throng_pack::Pack;

use super::level::SectorId;
use super::sector::{Sector, Side};
use super::streaming::WorldSectors;
use crate::nav::locate::NavError;
use crate::nav::mesh::{NavPoint, PolygonId, SKIN_M, ground};
use crate::nav::walk::{SLIDES_MAX, Step, StepEnd, WalkOutcome};

/// Sides that one walk crosses at most: a straight line over four kilometres.
const SIDES_MAX: usize = 128;

/// How far what a point stood on may be from it after its sector was baked again (m): rubble that fell on somebody.
pub const RELOCATE_M: f32 = 12.0;

/// A place on the surface of streamed sectors: of the world whose [`WorldSectors`] made it, or another one of its level.
///
/// One that comes out of bytes is worth what these are: questions look it up anew if it is not what it says.
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
#[pack(name = "throng.sector_point")]
pub struct SectorPoint {
    pub(super) on: NavPoint,
    pub(super) sector: SectorId,
    /// Of the sector, as it was then.
    pub(super) version: u32,
}

impl SectorPoint {
    pub fn position(&self) -> Vec3 {
        self.on.position()
    }

    pub fn sector(&self) -> SectorId {
        self.sector
    }

    pub(super) fn on(sector: &Sector, on: NavPoint) -> Self {
        Self { on, sector: sector.id(), version: sector.version() }
    }
}

/// How a walk ended, and where.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SectorWalk {
    pub end: SectorPoint,
    pub outcome: WalkOutcome,
}

/// What lies behind a side at one place.
struct Behind<'a> {
    sector: &'a Sector,
    edge: u32,
    place: Vec2,
    /// Whether there is ground towards the target from there.
    leads_on: bool,
}

impl WorldSectors {
    /// The point of the streamed surface nearest to `point`, at most `reach_m` away, as [`NavMesh::nearest`] finds it.
    ///
    /// [`NavMesh::nearest`]: crate::nav::NavMesh::nearest
    pub fn nearest(&self, point: Vec3, reach_m: f32) -> Result<SectorPoint, NavError> {
        if !point.is_finite() || !reach_m.is_finite() {
            return Err(NavError::NotFinite);
        }
        let level = self.level();
        let reach = Vec3::new(reach_m, 0.0, reach_m);
        let (first, last) = (level.sector_at(point - reach), level.sector_at(point + reach));
        let mut best: Option<(f32, SectorPoint)> = None;
        for row in first.row..=last.row {
            for column in first.column..=last.column {
                let Some(sector) = self.sector(SectorId { row, column }) else { continue };
                let nearest_m = best.map_or(reach_m, |(distance_m, _)| distance_m);
                let found = sector.mesh.as_ref().and_then(|mesh| mesh.nearest(point, nearest_m).ok());
                let Some(found) = found else { continue };
                let distance_m = found.position().distance(point);
                if best.is_none_or(|(best_m, _)| distance_m < best_m) {
                    best = Some((distance_m, SectorPoint::on(sector, found)));
                }
            }
        }
        best.map(|(_, point)| point).ok_or(NavError::OffMesh)
    }

    /// The same point on the sector as it is now; none if that is not streamed, or left nothing to stand on nearby. Free
    /// where nothing has changed.
    pub fn up_to_date(&self, point: SectorPoint) -> Option<SectorPoint> {
        let sector = self.sector(point.sector)?;
        let mesh = sector.mesh.as_ref()?;
        let is_known = sector.version() == point.version && (point.on.polygon().0 as usize) < mesh.polygon_count();
        if is_known { Some(point) } else { self.nearest(point.position(), RELOCATE_M).ok() }
    }

    /// Whether a point is where it says, or of a sector that is not there as it was: then it is looked up anew before it is
    /// used. Ask it of points out of bytes.
    pub fn holds(&self, point: SectorPoint) -> bool {
        let same = self.sector(point.sector).filter(|sector| sector.version() == point.version);
        same.is_none_or(|sector| sector.mesh.as_ref().is_some_and(|mesh| mesh.holds(point.on)))
    }

    /// Walks straight towards `to` and stops where it cannot go on. None if the sector of `from` is not streamed.
    pub fn walk_straight(&self, from: SectorPoint, to: Vec3) -> Option<SectorWalk> {
        self.walk(from, to, 0)
    }

    /// Walks towards `to` and slides along walls: one validated step of a character. None if the sector of `from` is not
    /// streamed: whoever is there stands still.
    pub fn walk_sliding(&self, from: SectorPoint, to: Vec3) -> Option<SectorWalk> {
        self.walk(from, to, SLIDES_MAX)
    }

    fn walk(&self, from: SectorPoint, to: Vec3, slides_max: u32) -> Option<SectorWalk> {
        let from = self.up_to_date(from)?;
        if !to.is_finite() {
            return Some(SectorWalk { end: from, outcome: WalkOutcome::NotFinite });
        }
        let mut sector = self.sector(from.sector)?;
        let mut step = Step::new(from.on, ground(to), slides_max);
        for _ in 0..SIDES_MAX {
            let mesh = sector.mesh.as_ref()?;
            let end = mesh.go_on(&mut step, |polygon, place, target| {
                let height_m = mesh.height_m(polygon, place);
                sector.sides_towards(place, target).find_map(|(side, is_beyond)| {
                    let behind = self.behind(sector, side, place, height_m, target)?;
                    // Along a side it is crossed only where one neighbour has ground and the other has not.
                    (is_beyond || behind.leads_on).then_some(behind)
                })
            });
            match end {
                StepEnd::Ended(walk) => {
                    return Some(SectorWalk { end: SectorPoint::on(sector, walk.end), outcome: walk.outcome });
                }
                StepEnd::Crossed(behind) => {
                    let mesh = behind.sector.mesh.as_ref()?;
                    sector = behind.sector;
                    step.enter(PolygonId(mesh.edges[behind.edge as usize].polygon), behind.place, behind.edge);
                }
            }
        }
        let mesh = sector.mesh.as_ref()?;
        Some(SectorWalk { end: SectorPoint::on(sector, step.place_on(mesh)), outcome: WalkOutcome::Stopped })
    }

    /// The edge behind a side at a place of such a height, if there is one that can be stepped onto. Where two meet, the one
    /// that leads on.
    fn behind(&self, sector: &Sector, side: Side, place: Vec2, height_m: f32, target: Vec2) -> Option<Behind<'_>> {
        let behind = self.sector(side.behind(sector.id())?)?;
        let mesh = behind.mesh.as_ref()?;
        let along_m = side.along(place);
        let climb_m = self.climb_m();
        let step_m = |height_at: f32| (height_at - height_m).abs();
        let (_, _, found) = behind
            .edges_on(side.opposite())
            .iter()
            .filter(|edge| edge.low_m - SKIN_M <= along_m && along_m <= edge.high_m + SKIN_M)
            .map(|edge| {
                let on_m = along_m.clamp(edge.low_m, edge.high_m);
                let line = ground(mesh.edges[edge.edge as usize].corner);
                let place = if side.runs_along_z() { Vec2::new(line.x, on_m) } else { Vec2::new(on_m, line.y) };
                let leads_on = mesh.leads_on(edge.edge, place, target);
                let found = Behind { sector: behind, edge: edge.edge, place, leads_on };
                (step_m(edge.height_at(along_m)), !leads_on, found)
            })
            .filter(|(step_m, _, _)| *step_m <= climb_m)
            .min_by(|one, other| one.1.cmp(&other.1).then(one.0.total_cmp(&other.0)))?;
        Some(found)
    }

    /// What two sectors may differ in height where they join, and still be one surface (m).
    pub(super) fn climb_m(&self) -> f32 {
        let bake = &self.level().settings().bake;
        bake.climb_m_max + bake.cell_height_m
    }

    /// A point picked evenly over the streamed surface; none if nothing is streamed. Uses up to three numbers.
    pub fn random_point(&self, rng: &mut impl Rng) -> Option<SectorPoint> {
        let areas = || self.resident().filter_map(|sector| Some((sector, sector.mesh.as_ref()?)));
        let mut left_m2 = rng.random_range(0.0..1.0) * areas().map(|(_, mesh)| mesh.area_m2()).sum::<f32>();
        let mut picked = None;
        for (sector, mesh) in areas() {
            picked = Some((sector, mesh));
            left_m2 -= mesh.area_m2();
            if left_m2 <= 0.0 {
                break;
            }
        }
        picked.map(|(sector, mesh)| SectorPoint::on(sector, mesh.random_point(rng)))
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::geometry::{Aabb, LevelGeometry};
    use crate::nav::sectors::level::SectorLevel;
    use crate::nav::sectors::store::{SectorStore, StoreLimits};
    use crate::nav::sectors::streaming::StreamSettings;
    use crate::nav::sectors::testing::{SIDE_M, everywhere, level_of, settings, stream, town, town_boxes, whole};

    fn world(level: SectorLevel) -> WorldSectors {
        everywhere(SectorStore::new(level, StoreLimits::default()))
    }

    fn area_m2(sectors: &WorldSectors) -> f32 {
        sectors.resident().filter_map(Sector::mesh).map(|mesh| mesh.area_m2()).sum()
    }

    /// Promise: cut into sectors or not, the ground is the same, and a walk ends in the same place.
    #[test]
    fn walks_over_sides_end_where_they_end_on_a_whole_mesh() {
        let (mut same, mut crossed) = (0, 0);
        for seed in 0..6 {
            let (cut, one) = (world(town(seed, 4)), whole(&town_boxes(seed, 4), 4));
            let ratio = area_m2(&cut) / area_m2(&one);
            assert!((0.985..1.015).contains(&ratio), "seed {seed}: {ratio}");
            cut.resident().filter_map(Sector::mesh).for_each(|mesh| mesh.check());
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            for _ in 0..300 {
                let from = one.random_point(&mut rng).unwrap();
                let Ok(start) = cut.nearest(from.position(), 0.5) else { continue };
                let to = from.position() + Vec3::new(rng.random_range(-30.0..30.0), 0.0, rng.random_range(-30.0..30.0));
                let expect = one.walk_straight(from, to).unwrap();
                let walk = cut.walk_straight(start, to).unwrap();
                assert!(cut.up_to_date(walk.end) == Some(walk.end) && cut.holds(walk.end));
                let off_m = walk.end.position().distance(expect.end.position());
                // Outlines are simplified from other corners, by up to a cell.
                same += u32::from(off_m < 1.0 && walk.outcome == expect.outcome);
                crossed += u32::from(walk.end.sector() != start.sector());
            }
        }
        println!("{same} of 1,800 end alike, {crossed} in another sector");
        assert!(same > 1_720, "{same}");
        assert!(crossed > 500, "{crossed}");
    }

    #[test]
    fn small_steps_over_every_side_of_open_ground_come_through() {
        let floor = Aabb::new(Vec3::new(0.0, -1.0, 0.0), Vec3::new(3.0 * SIDE_M, 0.0, 3.0 * SIDE_M));
        let sectors = world(level_of(&[floor]));
        let middle = Vec3::new(1.5 * SIDE_M, 0.0, 1.5 * SIDE_M);
        for eighth in 0..64 {
            let (sin, cos) = (eighth as f32 * std::f32::consts::TAU / 64.0).sin_cos();
            let mut at = sectors.nearest(middle, 1.0).unwrap();
            for step in 1..=100 {
                let to = middle + Vec3::new(cos, 0.0, sin) * (0.25 * step as f32);
                at = sectors.walk_sliding(at, to).unwrap().end;
                assert!(at.position().distance(to) < 0.01, "{to}: {at:?}");
            }
        }
        // Along a side, and through a corner.
        let begin = sectors.nearest(Vec3::new(SIDE_M, 0.0, 2.0), 1.0).unwrap();
        for to in [Vec3::new(SIDE_M, 0.0, 2.5 * SIDE_M), Vec3::new(2.0 * SIDE_M, 0.0, SIDE_M + 2.0)] {
            assert!(sectors.walk_straight(begin, to).unwrap().end.position().distance(to) < 0.01);
        }
    }

    #[test]
    fn ramps_are_walked_over_a_side_and_ledges_are_not() {
        let half = Vec3::new(SIDE_M, -1.0, 0.0);
        let low = Aabb::new(half * Vec3::new(0.0, 1.0, 1.0), Vec3::new(SIDE_M, 0.0, SIDE_M));
        let level = |high_m: f32| level_of(&[low, Aabb::new(half, Vec3::new(2.0 * SIDE_M, high_m, SIDE_M))]);
        let to = Vec3::new(1.5 * SIDE_M, 0.0, 0.5 * SIDE_M);
        for (high_m, arrives) in [(0.3, true), (1.5, false)] {
            let sectors = world(level(high_m));
            let from = sectors.nearest(Vec3::new(0.5 * SIDE_M, 0.0, 0.5 * SIDE_M), 1.0).unwrap();
            let walk = sectors.walk_straight(from, to).unwrap();
            assert_eq!(walk.outcome == WalkOutcome::Arrived, arrives, "a ledge of {high_m} m: {walk:?}");
        }
        let slope = |x: f32, z: f32| Vec3::new(x, x * 0.3, z);
        let (end, side) = (2.0 * SIDE_M, SIDE_M);
        let ramp = [
            [slope(0.0, 0.0), slope(0.0, side), slope(end, side)],
            [slope(0.0, 0.0), slope(end, side), slope(end, 0.0)],
        ];
        let geometry = LevelGeometry::from_triangles(&ramp).unwrap();
        let sectors = world(SectorLevel::new(geometry, settings()).unwrap());
        let from = sectors.nearest(slope(5.0, 9.0), 1.0).unwrap();
        let walk = sectors.walk_straight(from, slope(35.0, 12.0)).unwrap();
        assert!(walk.outcome == WalkOutcome::Arrived && (walk.end.position().y - 10.5).abs() < 0.5, "{walk:?}");
    }

    #[test]
    fn what_is_not_streamed_is_a_wall() {
        let floor = Aabb::new(Vec3::new(0.0, -1.0, 0.0), Vec3::new(3.0 * SIDE_M, 0.0, SIDE_M));
        let store = SectorStore::new(level_of(&[floor]), StoreLimits::default());
        let settings = StreamSettings { radius_m: 1.0, keep_m: 0.0, ..StreamSettings::default() };
        let mut sectors = WorldSectors::new(store, settings);
        let place = Vec3::new(10.0, 0.0, 10.0);
        assert_eq!(sectors.nearest(place, 1.0), Err(NavError::OffMesh));
        assert_eq!(stream(&mut sectors, &[place]), 1);
        let from = sectors.nearest(place, 1.0).unwrap();
        let walk = sectors.walk_sliding(from, Vec3::new(50.0, 0.0, 12.0)).unwrap();
        assert!(walk.end.position().x == SIDE_M && walk.outcome != WalkOutcome::Arrived, "{walk:?}");
        stream(&mut sectors, &[Vec3::new(50.0, 0.0, 10.0)]);
        assert_eq!(sectors.walk_straight(from, place), None, "whoever is there stands still");
        assert_eq!(sectors.nearest(Vec3::NAN, 1.0), Err(NavError::NotFinite));
    }
}
