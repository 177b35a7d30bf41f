//! Baking: level geometry in, nav mesh out.
//!
//! Recast's way (the `rerecast` crate): the level is cut into columns of cells, cells where a character can stand are
//! kept, the rest is grown by the character's radius, and outlines of what is left become convex polygons. On top of
//! that, three things that a server needs:
//! - Boxes are solid. To Recast they are shells with a floor inside; here their inside is marked as no ground.
//! - Corners stand on the ground. Recast's lie up to a cell above it; one downward cast puts each where the level is.
//!   Between corners heights are interpolated, so at a step they are off by up to [`BakeSettings::climb_m_max`].
//! - Only what can be reached is kept ([`BakeSettings::reachable_from`]), so that no random point is on a roof.
//!
//! Runs at start or in a long task, never in a tick. Allocates about 100 bytes for each cell of the ground while it
//! runs. Cost: about 0.5 µs for each cell of the ground, 0.15 s for 160 m x 160 m in cells of 0.3 m; halving `cell_m`
//! takes four times as long.

use glam::{UVec3, Vec2, Vec3, Vec3A};
use rerecast::{
    Aabb3d, AreaType, BuildContoursFlags, Contour, ContourSet, ConvexVolume, HeightfieldBuilder, PolygonNavmesh,
    RegionVertexId, TriMesh,
};
use throng_profiler::scoped;

use super::mesh::{NavMesh, NavMeshError};
use crate::geometry::{Aabb, LevelGeometry, Line};

/// Cells of the ground along one side at most: Recast counts them in 16 bits.
const CELLS_PER_SIDE_MAX: f32 = 8_000.0;

/// Corners of a baked polygon at most. More merges more triangles and makes longer edge lists; 6 is what Recast's
/// own users settled on.
const CORNERS_MAX: u16 = 6;

/// How a level is baked. The defaults suit a person on city streets.
#[derive(Clone, Debug, PartialEq)]
pub struct BakeSettings {
    /// Side of a cell on the ground `[m, 0.05 to 2]`. Too small → minutes and gigabytes; too large → doors and gaps
    /// narrower than two radii and two cells close. Half the radius to the whole radius is usual.
    pub cell_m: f32,
    /// Height of a cell `[m, 0.02 to 1]`. Too small → steep ground breaks apart; too large → steps and curbs blur into
    /// each other.
    pub cell_height_m: f32,
    /// How near to a wall the middle of a character may come `[m, 0 to 10]`, rounded up to whole cells; where outlines
    /// are simplified, nearer by up to half a cell. Too small → paths scrape along walls; too large → doors close.
    pub radius_m: f32,
    /// Room a character needs above the ground `[m, 3 cells to 10]`. Too low → ways under things it cannot pass; too
    /// high → no ways through doors.
    pub height_m: f32,
    /// The highest step a character takes without jumping `[m, 0 to height_m]`. Too low → curbs are walls; too high →
    /// cover is stairs.
    pub climb_m_max: f32,
    /// The steepest ground that can be walked `[degrees, 0 to 85]`.
    pub slope_degrees_max: f32,
    /// Pieces of ground smaller than this are dropped `[m², ≥ 0]`. Too small → islands on every crate; too large →
    /// small rooms are missing.
    pub area_m2_min: f32,
    /// How far outlines may be from the cells they follow `[cells, 0.5 to 3]`. Too small → many polygons, saw teeth on
    /// slanted walls; too large → corners are cut.
    pub outline_error_cells_max: f32,
    /// Keeps only the ground connected to the point of it nearest to this one. `None` keeps all of it, roofs too.
    pub reachable_from: Option<Vec3>,
}

impl Default for BakeSettings {
    fn default() -> Self {
        Self {
            cell_m: 0.3,
            cell_height_m: 0.2,
            radius_m: 0.4,
            height_m: 1.9,
            climb_m_max: 0.4,
            slope_degrees_max: 45.0,
            area_m2_min: 4.0,
            outline_error_cells_max: 1.0,
            reachable_from: None,
        }
    }
}

/// Why no mesh came out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BakeError {
    #[error("setting {name} is {value}, outside {range}")]
    Setting { name: &'static str, value: f32, range: &'static str },
    #[error("the level is {size_m} m long, at most {} m fit cells of {cell_m} m: use larger cells", CELLS_PER_SIDE_MAX * cell_m)]
    LevelTooLarge { size_m: f32, cell_m: f32 },
    #[error("no ground in the level can be walked on with these settings")]
    NoGround,
    #[error("recast failed while {step}: {reason}")]
    Recast { step: &'static str, reason: String },
    #[error(transparent)]
    Mesh(#[from] NavMeshError),
}

/// Bakes the walkable surface of a level.
#[scoped("query.bake")]
pub fn bake(level: &LevelGeometry, settings: &BakeSettings) -> Result<NavMesh, BakeError> {
    settings.check_size(level.bounds())?;
    let recast = polygons_of_ground(level, settings, &Extent::of_whole(level, settings))?;
    let (vertices, polygons) = unpack(&recast, level, settings);
    if polygons.is_empty() {
        return Err(BakeError::NoGround);
    }
    let mesh = NavMesh::from_polygons(&vertices, &polygons)?;
    let Some(origin) = settings.reachable_from else {
        return Ok(mesh);
    };
    // The level's diagonal reaches whatever there is.
    let reach_m = level.bounds().size_m().length() + origin.distance(level.bounds().center());
    let origin = mesh.nearest(origin, reach_m).map_err(|_| BakeError::NoGround)?;
    let island = mesh.polygon(origin.polygon()).island;
    let reachable: Vec<Vec<u32>> = polygons
        .into_iter()
        .zip(&mesh.polygons)
        .filter_map(|(corners, polygon)| (polygon.island == island).then_some(corners))
        .collect();
    Ok(NavMesh::from_polygons(&vertices, &reachable)?)
}

/// Which part of a level is baked.
pub(super) struct Extent {
    pub bounds: Aabb,
    /// Cells along the sides of the bounds that are baked with the rest and cut off.
    pub border_cells: u16,
}

impl Extent {
    /// Half a cell of margin puts walls on round coordinates into the middle of cells, so that they grow alike on both
    /// sides; the cell below lets ground on the lower bound be found.
    fn of_whole(level: &LevelGeometry, settings: &BakeSettings) -> Self {
        let margin = Vec3::new(settings.cell_m * 0.5, settings.cell_height_m, settings.cell_m * 0.5);
        let bounds = Aabb::new(level.bounds().min - margin, level.bounds().max + margin);
        Self { bounds, border_cells: 0 }
    }
}

impl BakeSettings {
    pub(super) fn check(&self) -> Result<(), BakeError> {
        let ranges = [
            ("cell_m", self.cell_m, 0.05, 2.0, "0.05 to 2"),
            ("cell_height_m", self.cell_height_m, 0.02, 1.0, "0.02 to 1"),
            ("radius_m", self.radius_m, 0.0, 10.0, "0 to 10"),
            ("height_m", self.height_m, 3.0 * self.cell_height_m, 10.0, "3 cell heights to 10"),
            ("climb_m_max", self.climb_m_max, 0.0, self.height_m, "0 to height_m"),
            ("slope_degrees_max", self.slope_degrees_max, 0.0, 85.0, "0 to 85"),
            ("area_m2_min", self.area_m2_min, 0.0, 1e6, "0 to 1,000,000"),
            ("outline_error_cells_max", self.outline_error_cells_max, 0.5, 3.0, "0.5 to 3"),
        ];
        for (name, value, low, high, range) in ranges {
            if !(low..=high).contains(&value) {
                return Err(BakeError::Setting { name, value, range });
            }
        }
        if self.reachable_from.is_some_and(|point| !point.is_finite()) {
            return Err(BakeError::Setting { name: "reachable_from", value: f32::NAN, range: "finite points" });
        }
        Ok(())
    }

    fn check_size(&self, bounds: Aabb) -> Result<(), BakeError> {
        self.check()?;
        let size_m = bounds.size_m().x.max(bounds.size_m().z);
        if size_m > CELLS_PER_SIDE_MAX * self.cell_m {
            return Err(BakeError::LevelTooLarge { size_m, cell_m: self.cell_m });
        }
        Ok(())
    }
}

/// Recast's steps from solids to polygons, in its order.
pub(super) fn polygons_of_ground(
    level: &LevelGeometry,
    settings: &BakeSettings,
    extent: &Extent,
) -> Result<PolygonNavmesh, BakeError> {
    let (cell_m, cell_height_m) = (settings.cell_m, settings.cell_height_m);
    let height_cells = (settings.height_m / cell_height_m).ceil() as u16;
    let climb_cells = (settings.climb_m_max / cell_height_m).floor() as u16;
    let radius_cells = (settings.radius_m / cell_m).ceil() as u16;
    let area_cells_min = (settings.area_m2_min / (cell_m * cell_m)).min(f32::from(u16::MAX)) as u16;

    let bounds = Aabb3d { min: extent.bounds.min, max: extent.bounds.max };
    let mut field = HeightfieldBuilder { aabb: bounds, cell_size: cell_m, cell_height: cell_height_m }
        .build()
        .map_err(|error| failed("laying out cells", &error))?;
    let mut triangles = as_triangles(level);
    triangles.mark_walkable_triangles(settings.slope_degrees_max.to_radians());
    field.rasterize_triangles(&triangles, climb_cells).map_err(|error| failed("filling cells", &error))?;
    field.filter_low_hanging_walkable_obstacles(climb_cells);
    field.filter_ledge_spans(height_cells, climb_cells);
    field.filter_walkable_low_height_spans(height_cells);

    let mut ground = field.into_compact(height_cells, climb_cells).map_err(|error| failed("finding ground", &error))?;
    for solid in level.boxes() {
        // In a lower box there is no room to stand anyway.
        if solid.size_m().y >= settings.height_m {
            ground.mark_convex_poly_area(&inside(solid, cell_height_m));
        }
    }
    ground.erode_walkable_area(radius_cells);
    ground.build_distance_field();
    ground
        .build_regions(extent.border_cells, area_cells_min, area_cells_min.max(400))
        .map_err(|error| failed("dividing the ground", &error))?;
    let outlines = |share: f32| {
        let error_max = settings.outline_error_cells_max * share;
        ground.build_contours(error_max, 0, BuildContoursFlags::default())
    };
    if let Ok(polygons) = polygons_of(outlines(1.0)) {
        return Ok(polygons);
    }
    // An outline that is simplified too much may cross itself, and Recast makes nothing at all of a level that has one. Now
    // with more corners, and without those that even so cannot be cut into triangles: a piece of ground is missing then. Not
    // with every corner there is: to cut those into triangles takes minutes.
    let mut contours = outlines(0.5);
    let all = std::mem::take(&mut contours.contours);
    let has_polygons = |contour: &Contour| {
        let alone = ContourSet { contours: vec![contour.clone()], ..contours.clone() };
        polygons_of(alone).is_ok()
    };
    let sound = all.into_iter().filter(has_polygons).collect();
    contours.contours = sound;
    polygons_of(contours)
}

/// Polygons of outlines. Corners that only the border of an extent has made stay in them.
///
/// Recast takes such a corner off its polygons, and rerecast 0.5.0 never comes back from that (`remove_vertex` in its `poly_mesh.rs`): its
/// search for the edges of the hole stays at one that does not match. Where the corner stays, an edge on a side is two, and what lies
/// behind a side is found by place.
fn polygons_of(mut outlines: ContourSet) -> Result<PolygonNavmesh, BakeError> {
    let corners = outlines.contours.iter_mut().flat_map(|contour| &mut contour.vertices);
    corners.for_each(|(_, bits)| *bits &= !RegionVertexId::BORDER_VERTEX.bits());
    outlines.into_polygon_mesh(CORNERS_MAX).map_err(|error| failed("making polygons", &error))
}

fn failed(step: &'static str, error: &dyn std::fmt::Display) -> BakeError {
    BakeError::Recast { step, reason: error.to_string() }
}

/// The part of a box where Recast would find ground that is none: all of it but its top.
fn inside(solid: &Aabb, cell_height_m: f32) -> ConvexVolume {
    let (min, max) = (solid.min, solid.max);
    ConvexVolume {
        vertices: vec![
            Vec2::new(min.x, min.z),
            Vec2::new(max.x, min.z),
            Vec2::new(max.x, max.z),
            Vec2::new(min.x, max.z),
        ],
        min_y: min.y - cell_height_m,
        max_y: max.y - 2.0 * cell_height_m,
        area: AreaType::NOT_WALKABLE,
    }
}

/// All solids as triangles that face outwards: Recast walks only on what faces up.
fn as_triangles(level: &LevelGeometry) -> TriMesh {
    // Corners are numbered by bits x, y, z; each face counter-clockwise seen from outside.
    const FACES: [[u32; 4]; 6] = [[0, 4, 6, 2], [1, 3, 7, 5], [0, 1, 5, 4], [2, 6, 7, 3], [0, 2, 3, 1], [4, 5, 7, 6]];
    let mut mesh = TriMesh::default();
    for solid in level.boxes() {
        let first = mesh.vertices.len() as u32;
        mesh.vertices.extend((0..8).map(|corner| {
            let pick = |bit: usize| {
                if corner >> bit & 1 == 0 { solid.min[bit] } else { solid.max[bit] }
            };
            Vec3A::new(pick(0), pick(1), pick(2))
        }));
        for [a, b, c, d] in FACES {
            mesh.indices.push(UVec3::splat(first) + UVec3::new(a, b, c));
            mesh.indices.push(UVec3::splat(first) + UVec3::new(a, c, d));
        }
    }
    for corners in level.triangles() {
        let first = mesh.vertices.len() as u32;
        mesh.vertices.extend(corners.map(Vec3A::from));
        mesh.indices.push(UVec3::new(first, first + 1, first + 2));
    }
    mesh.area_types = vec![AreaType::NOT_WALKABLE; mesh.indices.len()];
    mesh
}

/// Recast's polygons with corners in metres, standing on the level.
fn unpack(recast: &PolygonNavmesh, level: &LevelGeometry, settings: &BakeSettings) -> (Vec<Vec3>, Vec<Vec<u32>>) {
    let cell = Vec3::new(recast.cell_size, recast.cell_height, recast.cell_size);
    let vertices = recast
        .vertices
        .iter()
        .map(|vertex| {
            let corner = recast.aabb.min + vertex.as_vec3() * cell;
            on_ground(level, corner, settings)
        })
        .collect();
    let polygons = recast.polygons().map(|corners| corners.map(u32::from).collect()).collect();
    (vertices, polygons)
}

pub(super) fn on_ground(level: &LevelGeometry, corner: Vec3, settings: &BakeSettings) -> Vec3 {
    let above_m = settings.cell_height_m;
    let below_m = settings.climb_m_max + 2.0 * settings.cell_height_m;
    let down = Line::new(corner + Vec3::Y * above_m, Vec3::NEG_Y * (above_m + below_m));
    match down.and_then(|down| level.first_hit(&down)) {
        Some((_, at)) => corner + Vec3::Y * (above_m - at * (above_m + below_m)),
        None => corner, // over a gap narrower than a cell
    }
}

#[cfg(test)]
mod tests {
    use glam::U16Vec3;

    use super::*;

    /// Promise: a corner that the border has made cannot keep a thread for ever.
    #[test]
    fn a_corner_of_the_border_stays_in_its_polygon() {
        let corners = [[0, 2], [2, 4], [4, 4], [6, 2], [4, 0], [2, 0]];
        let vertices = corners.map(|[x, z]| (U16Vec3::new(x, 0, z), 0));
        let mut outline = Contour { vertices: vertices.to_vec(), ..Contour::default() };
        outline.vertices[3].1 |= RegionVertexId::BORDER_VERTEX.bits();
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let outlines = ContourSet { contours: vec![outline], border_size: 1, ..ContourSet::default() };
            done.send(polygons_of(outlines).map(|mesh| mesh.polygons().map(|corners| corners.count()).sum::<usize>()))
        });
        let corners = is_done.recv_timeout(std::time::Duration::from_secs(60)).expect("it ends").unwrap();
        assert_eq!(corners, 6);
    }

    fn solid(min: [f32; 3], max: [f32; 3]) -> Aabb {
        Aabb::new(Vec3::from_array(min), Vec3::from_array(max))
    }

    fn yard(more: &[Aabb]) -> LevelGeometry {
        let floor = solid([-10.0, -1.0, -10.0], [10.0, 0.0, 10.0]);
        LevelGeometry::from_boxes(&[&[floor], more].concat()).unwrap()
    }

    #[test]
    fn ground_ends_a_radius_before_walls_and_stands_on_the_floor() {
        let level = yard(&[solid([-2.0, 0.0, -2.0], [2.0, 5.0, 2.0])]);
        let settings = BakeSettings { reachable_from: Some(Vec3::splat(6.0)), ..Default::default() };
        let mesh = bake(&level, &settings).unwrap();
        mesh.check();
        assert_eq!(mesh.island_count(), 1, "neither the roof nor the inside of the box");
        for polygon in 0..mesh.polygon_count() as u32 {
            for corner in mesh.corners(super::super::PolygonId(polygon)) {
                assert!(corner.y.abs() < 1e-4, "{corner}");
                let gap = (corner.abs() - Vec3::splat(2.0)).with_y(f32::MIN).max_element();
                assert!(gap >= settings.radius_m - 1e-3, "{corner} is too near to the box");
                assert!(corner.abs().max_element() <= 10.0);
            }
        }
        let whole_m2 = 20.0 * 20.0 - 4.0 * 4.0;
        assert!((0.75 * whole_m2..whole_m2).contains(&mesh.area_m2()), "{}", mesh.area_m2());
        // What a step straight at the box gives: a stop before it.
        let start = mesh.nearest(Vec3::new(5.0, 0.0, 0.0), 1.0).unwrap();
        let stop = mesh.walk_straight(start, Vec3::ZERO).end.position();
        assert!((2.0 + settings.radius_m - 1e-3..3.3).contains(&stop.x), "{stop}");
    }

    #[test]
    fn roofs_are_islands_unless_only_the_reachable_is_kept() {
        let level = yard(&[solid([-4.0, 0.0, -4.0], [4.0, 5.0, 4.0])]);
        let mesh = bake(&level, &BakeSettings::default()).unwrap();
        assert_eq!(mesh.island_count(), 2);
        let on_roof = BakeSettings { reachable_from: Some(Vec3::Y * 5.0), ..Default::default() };
        let roof = bake(&level, &on_roof).unwrap();
        assert!((roof.bounds().min.y - 5.0).abs() < 1e-4);
    }

    #[test]
    fn low_steps_are_walked_up_and_high_ones_are_walls() {
        for (height_m, connected) in [(0.35, true), (1.2, false)] {
            let level = yard(&[solid([0.0, 0.0, -10.0], [10.0, height_m, 10.0])]);
            let mesh = bake(&level, &BakeSettings::default()).unwrap();
            let low = mesh.nearest(Vec3::new(-5.0, 0.0, 0.0), 0.5).unwrap();
            let high = mesh.nearest(Vec3::new(5.0, height_m, 0.0), 0.5).unwrap();
            assert!((high.position().y - height_m).abs() < BakeSettings::default().climb_m_max);
            assert_eq!(mesh.connected(low, high), connected, "a step of {height_m} m");
        }
    }

    #[test]
    fn ramps_of_triangles_are_ground() {
        let (a, b) = (Vec3::new(-9.0, 0.0, -3.0), Vec3::new(-9.0, 0.0, 3.0));
        let (c, d) = (Vec3::new(1.0, 3.0, 3.0), Vec3::new(1.0, 3.0, -3.0));
        let floor = solid([-10.0, -1.0, -10.0], [10.0, 0.0, 10.0]);
        let deck = solid([1.0, 0.0, -4.0], [9.0, 3.0, 4.0]);
        let level = LevelGeometry::new(&[floor, deck], &[[a, b, c], [a, c, d]]).unwrap();
        let mesh = bake(&level, &BakeSettings::default()).unwrap();
        let start = mesh.nearest(Vec3::new(-9.5, 0.0, 0.0), 1.0).unwrap();
        let up = mesh.walk_straight(start, Vec3::new(5.0, 0.0, 0.0)).end.position();
        assert!((up.y - 3.0).abs() < 0.05 && up.x == 5.0, "{up}");
    }

    #[test]
    fn a_setting_out_of_range_is_named() {
        let level = yard(&[]);
        let check = |settings: BakeSettings, expect: &str| {
            let error = bake(&level, &settings).err().unwrap();
            assert!(error.to_string().contains(expect), "{error}");
        };
        check(BakeSettings { cell_m: 0.0, ..Default::default() }, "setting cell_m is 0, outside 0.05 to 2");
        check(BakeSettings { radius_m: f32::NAN, ..Default::default() }, "setting radius_m is NaN");
        check(BakeSettings { height_m: 0.3, ..Default::default() }, "setting height_m is 0.3");
        let sheer = LevelGeometry::from_triangles(&[[Vec3::ZERO, Vec3::Y * 9.0, Vec3::X * 9.0]]).unwrap();
        assert_eq!(bake(&sheer, &BakeSettings::default()).err(), Some(BakeError::NoGround));
        let wide = LevelGeometry::from_boxes(&[solid([0.0; 3], [9_000.0, 1.0, 1.0])]).unwrap();
        assert!(matches!(bake(&wide, &BakeSettings::default()), Err(BakeError::LevelTooLarge { .. })));
    }
}
