//! A sector: one baked square of a level, and what of its surface ends at each of its sides.

use std::cell::Cell;
use std::sync::Arc;

use glam::{Vec2, Vec3};
use throng_profiler::scoped;

use super::damage::{Damage, solids_of};
use super::level::{SectorId, SectorLevel};
use super::slivers::without_slivers;
use super::store::Tally;
use crate::geometry::Aabb;
use crate::nav::bake::{BakeError, Extent, on_ground, polygons_of_ground};
use crate::nav::mesh::{NONE, NavMesh, SKIN_M, ground};

/// A side of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    LowX,
    HighX,
    LowZ,
    HighZ,
}

impl Side {
    pub const ALL: [Self; 4] = [Self::LowX, Self::HighX, Self::LowZ, Self::HighZ];

    pub fn opposite(self) -> Self {
        Self::ALL[self as usize ^ 1]
    }

    pub fn runs_along_z(self) -> bool {
        matches!(self, Self::LowX | Self::HighX)
    }

    /// The sector behind it, which the level may not have.
    pub fn behind(self, SectorId { row, column }: SectorId) -> Option<SectorId> {
        Some(match self {
            Self::LowX => SectorId { row, column: column.checked_sub(1)? },
            Self::HighX => SectorId { row, column: column.checked_add(1)? },
            Self::LowZ => SectorId { row: row.checked_sub(1)?, column },
            Self::HighZ => SectorId { row: row.checked_add(1)?, column },
        })
    }

    /// Where along it a place is (m).
    pub fn along(self, place: Vec2) -> f32 {
        if self.runs_along_z() { place.y } else { place.x }
    }
}

/// An edge of the mesh that lies on a side.
#[derive(Clone, Copy, Debug)]
pub(super) struct SideEdge {
    /// Where along the side it begins and ends (m), and how high it is there.
    pub low_m: f32,
    pub high_m: f32,
    low_height_m: f32,
    high_height_m: f32,
    pub edge: u32,
}

impl SideEdge {
    pub fn height_at(&self, along_m: f32) -> f32 {
        let share = ((along_m - self.low_m) / (self.high_m - self.low_m)).clamp(0.0, 1.0);
        self.low_height_m + (self.high_height_m - self.low_height_m) * share
    }
}

/// One baked square. Never changes; shared behind an `Arc` unless it is damaged.
pub struct Sector {
    id: SectorId,
    version: u32,
    /// None where nobody can stand.
    pub(super) mesh: Option<NavMesh>,
    min: Vec2,
    max: Vec2,
    /// By [`Side`], from low to high.
    sides: [Box<[SideEdge]>; 4],
    bytes: u64,
    tally: Arc<Tally>,
}

impl Sector {
    /// Bakes a sector of a level with so much damage, all of which must concern it.
    #[scoped("query.bake_sector")]
    pub(super) fn bake(
        level: &SectorLevel,
        id: SectorId,
        damage: &[Damage],
        tally: &Arc<Tally>,
    ) -> Result<Self, BakeError> {
        let version = damage.len() as u32;
        let Some(solids) = solids_of(level, id, damage) else {
            return Ok(Self::new(level, id, version, None, tally));
        };
        let bake = &level.settings().bake;
        let around = level.baked_box(id);
        // A cell below, so that ground on the lower bound is found.
        let bounds = Aabb::new(around.min - Vec3::Y * bake.cell_height_m, around.max + Vec3::Y * bake.cell_height_m);
        let recast = polygons_of_ground(&solids, bake, &Extent { bounds, border_cells: level.margin_cells() })?;
        let vertices: Vec<Vec3> = recast
            .vertices
            .iter()
            .map(|vertex| {
                let corner = Vec3::new(
                    level.line_m(0, id.column, vertex.x.into()),
                    recast.aabb.min.y + f32::from(vertex.y) * bake.cell_height_m,
                    level.line_m(2, id.row, vertex.z.into()),
                );
                on_ground(&solids, corner, bake)
            })
            .collect();
        let is_low = |corners: &Vec<u32>| {
            corners.iter().any(|corner| vertices[*corner as usize].y <= level.settings().ground_m_max)
        };
        let polygons = recast.polygons().map(|corners| corners.map(u32::from).collect());
        let polygons = without_slivers(&vertices, polygons.filter(is_low).collect());
        let mesh = if polygons.is_empty() { None } else { Some(NavMesh::from_polygons(&vertices, &polygons)?) };
        Ok(Self::new(level, id, version, mesh, tally))
    }

    /// One on which nobody can stand.
    pub(super) fn without_ground(level: &SectorLevel, id: SectorId, version: u32, tally: &Arc<Tally>) -> Self {
        Self::new(level, id, version, None, tally)
    }

    fn new(level: &SectorLevel, id: SectorId, version: u32, mesh: Option<NavMesh>, tally: &Arc<Tally>) -> Self {
        let (min, max) = level.square(id);
        let sides = Side::ALL
            .map(|side| mesh.as_ref().map(|mesh| edges_on(mesh, side, line_of(side, min, max))).unwrap_or_default());
        let of_sides: usize = sides.iter().map(|side| size_of_val(&**side)).sum();
        let of_mesh = mesh.as_ref().map_or(0, NavMesh::heap_bytes);
        let bytes = (size_of::<Self>() + of_sides + of_mesh) as u64;
        tally.made(version > 0, bytes);
        Self { id, version, mesh, min, max, sides, bytes, tally: tally.clone() }
    }

    pub fn id(&self) -> SectorId {
        self.id
    }

    /// How many entries of its world's damage are in it: 0 for a shared one.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Its surface; none where nobody can stand.
    pub fn mesh(&self) -> Option<&NavMesh> {
        self.mesh.as_ref()
    }

    /// Memory held.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn edges_on(&self, side: Side) -> &[SideEdge] {
        &self.sides[side as usize]
    }

    /// The side that an edge of the mesh lies on, if it does.
    pub(super) fn side_of(&self, from: Vec3, to: Vec3) -> Option<Side> {
        Side::ALL.into_iter().find(|side| {
            let line_m = line_of(*side, self.min, self.max);
            across(*side, ground(from)) == line_m && across(*side, ground(to)) == line_m
        })
    }

    /// The sides at which a place lies and on or beyond which `target` does: two at a corner. With whether it is beyond.
    pub(super) fn sides_towards(&self, place: Vec2, target: Vec2) -> impl Iterator<Item = (Side, bool)> {
        let (min, max) = (self.min, self.max);
        Side::ALL.into_iter().filter_map(move |side| {
            let line_m = line_of(side, min, max);
            let beyond_m = match side {
                Side::LowX | Side::LowZ => line_m - across(side, target),
                Side::HighX | Side::HighZ => across(side, target) - line_m,
            };
            let is_towards = (across(side, place) - line_m).abs() <= SKIN_M && beyond_m >= -SKIN_M;
            is_towards.then_some((side, beyond_m > SKIN_M))
        })
    }
}

impl Drop for Sector {
    fn drop(&mut self) {
        self.tally.dropped(self.version > 0, self.bytes);
        DROPPED.set(DROPPED.get() + 1);
    }
}

thread_local! {
    static DROPPED: Cell<u64> = const { Cell::new(0) };
}

/// Sectors that the calling thread has dropped so far. On a thread that ticks worlds this should stay 0: such drops belong
/// on a thread of low priority.
pub fn dropped_on_this_thread() -> u64 {
    DROPPED.get()
}

/// The coordinate that is the same all along a side.
fn line_of(side: Side, min: Vec2, max: Vec2) -> f32 {
    match side {
        Side::LowX => min.x,
        Side::HighX => max.x,
        Side::LowZ => min.y,
        Side::HighZ => max.y,
    }
}

fn across(side: Side, place: Vec2) -> f32 {
    if side.runs_along_z() { place.x } else { place.y }
}

fn edges_on(mesh: &NavMesh, side: Side, line_m: f32) -> Box<[SideEdge]> {
    let mut on_side = Vec::new();
    for (number, edge) in mesh.edges.iter().enumerate() {
        let (from, to) = (edge.corner, mesh.edge_end(number as u32));
        if edge.neighbour != NONE || across(side, ground(from)) != line_m || across(side, ground(to)) != line_m {
            continue;
        }
        let (low, high) = if side.along(ground(from)) < side.along(ground(to)) { (from, to) } else { (to, from) };
        on_side.push(SideEdge {
            low_m: side.along(ground(low)),
            high_m: side.along(ground(high)),
            low_height_m: low.y,
            high_height_m: high.y,
            edge: number as u32,
        });
    }
    on_side.sort_by(|one, other| one.low_m.total_cmp(&other.low_m).then(one.edge.cmp(&other.edge)));
    on_side.into()
}
