//! The level of sectors: its solids, and which square is where.
//!
//! Squares are whole numbers of the bake's cells, counted from the level's lowest corner, so that the cells of two
//! neighbours are cells of one grid. Coordinates of sides are computed from these numbers in one place
//! ([`SectorLevel::line_m`]), so that both neighbours have them to the last bit.
//!
//! Read-only; about 100 bytes a solid, as any [`LevelGeometry`].

use glam::{Vec2, Vec3};
use throng_pack::Pack;

use crate::geometry::{Aabb, LevelGeometry};
use crate::nav::bake::{BakeError, BakeSettings};

/// Sectors along one side of a level at most: 16 km of 64 m.
pub const SECTORS_PER_SIDE_MAX: u32 = 256;

/// Which sector of its level: columns along x, rows along z, from the lowest corner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pack)]
#[pack(name = "throng.nav_sector")]
pub struct SectorId {
    pub row: u16,
    pub column: u16,
}

/// How a level is cut, and how its sectors are baked.
#[derive(Clone, Debug, PartialEq)]
pub struct SectorSettings {
    /// Of each sector. [`BakeSettings::reachable_from`] must be none: what can be reached is not known from one square.
    pub bake: BakeSettings,
    /// Side of a sector in cells `[32 to 1,024]`. Too few → a player has hundreds of sectors around, and much of what is
    /// baked is margin; too many → each one takes long, and damage anywhere in it has all of it baked again.
    pub cells_per_side: u16,
    /// Ground that begins above this is left out (m): roofs that nobody gets to. Too low → high streets are missing; too high →
    /// memory, and random points up there.
    pub ground_m_max: f32,
}

impl Default for SectorSettings {
    /// 64 m, of 200 cells of 0.32 m, with all roofs.
    fn default() -> Self {
        let bake = BakeSettings { cell_m: 0.32, ..BakeSettings::default() };
        Self { bake, cells_per_side: 200, ground_m_max: f32::INFINITY }
    }
}

/// Why a level cannot be cut so.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SectorLevelError {
    #[error("cells_per_side is {0}, outside 32 to 1,024")]
    CellsPerSide(u16),
    #[error("sectors cannot keep only what is reachable from a point: leave bake.reachable_from out")]
    ReachableFrom,
    #[error("{sectors} sectors along one side, at most {SECTORS_PER_SIDE_MAX} are possible: use larger ones")]
    TooManySectors { sectors: u32 },
    #[error(transparent)]
    Bake(#[from] BakeError),
}

/// A level, cut into sectors that are not baked yet.
pub struct SectorLevel {
    geometry: LevelGeometry,
    settings: SectorSettings,
    columns: u16,
    rows: u16,
}

impl SectorLevel {
    pub fn new(geometry: LevelGeometry, settings: SectorSettings) -> Result<Self, SectorLevelError> {
        if !(32..=1_024).contains(&settings.cells_per_side) {
            return Err(SectorLevelError::CellsPerSide(settings.cells_per_side));
        }
        if settings.bake.reachable_from.is_some() {
            return Err(SectorLevelError::ReachableFrom);
        }
        settings.bake.check()?;
        let size_m = geometry.bounds().size_m();
        let side_m = f32::from(settings.cells_per_side) * settings.bake.cell_m;
        // A level of whole sectors has no sliver more by rounding.
        let count = |length_m: f32| (length_m / side_m - 1e-3).ceil().max(1.0) as u32;
        let [columns, rows] = [size_m.x, size_m.z].map(count);
        let sectors = columns.max(rows);
        if sectors > SECTORS_PER_SIDE_MAX {
            return Err(SectorLevelError::TooManySectors { sectors });
        }
        Ok(Self { geometry, settings, columns: columns as u16, rows: rows as u16 })
    }

    pub fn geometry(&self) -> &LevelGeometry {
        &self.geometry
    }

    pub fn settings(&self) -> &SectorSettings {
        &self.settings
    }

    /// Side of a sector (m).
    pub fn side_m(&self) -> f32 {
        f32::from(self.settings.cells_per_side) * self.settings.bake.cell_m
    }

    pub fn columns(&self) -> u16 {
        self.columns
    }

    pub fn rows(&self) -> u16 {
        self.rows
    }

    pub fn sector_count(&self) -> usize {
        usize::from(self.columns) * usize::from(self.rows)
    }

    /// All of them, by rows.
    pub fn ids(&self) -> impl Iterator<Item = SectorId> + use<> {
        let columns = self.columns;
        (0..self.rows).flat_map(move |row| (0..columns).map(move |column| SectorId { row, column }))
    }

    pub fn holds(&self, id: SectorId) -> bool {
        id.column < self.columns && id.row < self.rows
    }

    /// The sector of a place; of one outside the level, that which is nearest. Not finite is the first.
    pub fn sector_at(&self, place: Vec3) -> SectorId {
        let min = self.geometry.bounds().min;
        let index = |at_m: f32, count: u16| (at_m / self.side_m()).clamp(0.0, f32::from(count - 1)) as u16;
        SectorId { row: index(place.z - min.z, self.rows), column: index(place.x - min.x, self.columns) }
    }

    /// Lowest and highest corner of a sector, in the ground plane.
    pub fn square(&self, id: SectorId) -> (Vec2, Vec2) {
        let corner = |column: u16, row: u16| Vec2::new(self.line_m(0, column, 0), self.line_m(2, row, 0));
        (corner(id.column, id.row), corner(id.column + 1, id.row + 1))
    }

    /// How far a place is from a sector, seen from above (m).
    pub fn distance_m(&self, id: SectorId, place: Vec3) -> f32 {
        let (min, max) = self.square(id);
        let place = Vec2::new(place.x, place.z);
        place.distance(place.clamp(min, max))
    }

    /// Cells around a sector that are baked with it and cut off: as far as a wall out there grows, and what Recast needs
    /// to see where it does.
    pub(super) fn margin_cells(&self) -> u16 {
        (self.settings.bake.radius_m / self.settings.bake.cell_m).ceil() as u16 + 3
    }

    /// A coordinate on `axis` (0 or 2): so many cells beyond the side at which the sector of this number begins.
    pub(super) fn line_m(&self, axis: usize, number: u16, cells: i32) -> f32 {
        let cell = i32::from(number) * i32::from(self.settings.cells_per_side) + cells;
        self.geometry.bounds().min[axis] + cell as f32 * self.settings.bake.cell_m
    }

    /// All that matters to the bake of a sector: its square with the margin, over the level's whole height.
    pub(super) fn baked_box(&self, id: SectorId) -> Aabb {
        let margin = i32::from(self.margin_cells());
        let (side, bounds) = (i32::from(self.settings.cells_per_side), self.geometry.bounds());
        let low = |axis: usize, number: u16| self.line_m(axis, number, -margin);
        let high = |axis: usize, number: u16| self.line_m(axis, number, side + margin);
        Aabb::new(
            Vec3::new(low(0, id.column), bounds.min.y, low(2, id.row)),
            Vec3::new(high(0, id.column), bounds.max.y, high(2, id.row)),
        )
    }

    /// Heap memory held.
    pub fn heap_bytes(&self) -> usize {
        self.geometry.heap_bytes()
    }
}
