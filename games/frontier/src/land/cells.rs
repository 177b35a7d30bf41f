//! Cells: places in the landscape as squares of 2 m, plots of 8 x 8 cells and sectors of 32 x 32.
//!
//! ```text
//!   cell's number, 24 bits    | sector row 7 | sector column 7 | row in sector 5 | column in sector 5 |
//! ```
//!
//! 128 x 128 sectors cover the landscape, 16,777,216 cells. The cells of one sector have numbers that follow each other.
//!
//! Plain arithmetic, a few nanoseconds each.

use throng_pack::Pack;

use crate::landscape::{HALF_SIDE_M, distance_m2, mix};

use super::ground::{Ground, Growth};

/// Side of a cell. (m)
pub const CELL_M: f32 = 2.0;
const SECTOR_BITS: u32 = 5;
/// Cells along a sector's side.
pub const SECTOR_SIDE: u32 = 1 << SECTOR_BITS;
/// Cells of a sector.
pub const SECTOR_CELLS: usize = (SECTOR_SIDE * SECTOR_SIDE) as usize;
/// Sectors along the landscape's side.
pub const SECTORS_PER_SIDE: u32 = 128;
const CELLS_PER_SIDE: u32 = SECTORS_PER_SIDE * SECTOR_SIDE;
/// All cells of the landscape.
pub const CELLS: u32 = CELLS_PER_SIDE * CELLS_PER_SIDE;
const _: () = assert!(CELLS_PER_SIDE as f32 * CELL_M == 2.0 * HALF_SIDE_M);
/// Cells along a plot's side.
pub const PLOT_SIDE: u32 = 8;
const _: () = assert!(SECTOR_SIDE.is_multiple_of(PLOT_SIDE), "a plot lies in one sector");

/// One cell in so many has a tree, and one in so many a boulder.
const CELLS_PER_TREE: u64 = 12;
const CELLS_PER_BOULDER: u64 = 40;

/// A square of 32 x 32 cells, 64 m.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Pack)]
#[pack(name = "frontier.sector")]
pub struct Sector {
    #[pack(max = (SECTORS_PER_SIDE * SECTORS_PER_SIDE - 1) as u16)]
    number: u16,
}

impl Sector {
    /// The sector at a place; at the edge for places beyond it.
    pub fn at(place: [f32; 2]) -> Self {
        Cell::at(place).sector()
    }

    pub fn number(self) -> u16 {
        self.number
    }

    /// A cell of it, by its place in the sector. [0..1024]
    pub fn cell(self, index: u16) -> Cell {
        Cell { number: (u32::from(self.number) << (2 * SECTOR_BITS)) | (u32::from(index) % SECTOR_CELLS as u32) }
    }

    /// It and those that touch it: 9, fewer at the edge.
    pub fn around(self) -> impl Iterator<Item = Self> {
        let (row, column) = (u32::from(self.number) / SECTORS_PER_SIDE, u32::from(self.number) % SECTORS_PER_SIDE);
        let side = |middle: u32| middle.saturating_sub(1)..=(middle + 1).min(SECTORS_PER_SIDE - 1);
        side(row).flat_map(move |row| {
            side(column).map(move |column| Self { number: (row * SECTORS_PER_SIDE + column) as u16 })
        })
    }

    /// Whether it is among those around another.
    pub fn is_around(self, other: Self) -> bool {
        let apart = |one: u16, other: u16| one.abs_diff(other);
        let side = SECTORS_PER_SIDE as u16;
        apart(self.number / side, other.number / side) <= 1 && apart(self.number % side, other.number % side) <= 1
    }
}

/// A square of 2 m.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Pack)]
#[pack(name = "frontier.cell_number")]
pub struct Cell {
    #[pack(max = CELLS - 1)]
    number: u32,
}

impl Cell {
    /// The cell at a place; at the edge for places beyond it, and in the middle for what is no place.
    pub fn at([x, z]: [f32; 2]) -> Self {
        let index = |metres: f32| {
            let metres = if metres.is_nan() { 0.0 } else { metres };
            (((metres + HALF_SIDE_M) / CELL_M) as u32).min(CELLS_PER_SIDE - 1)
        };
        Self::of(index(x), index(z))
    }

    fn of(column: u32, row: u32) -> Self {
        let sector = (row >> SECTOR_BITS) * SECTORS_PER_SIDE + (column >> SECTOR_BITS);
        let within = ((row % SECTOR_SIDE) << SECTOR_BITS) | (column % SECTOR_SIDE);
        Self { number: (sector << (2 * SECTOR_BITS)) | within }
    }

    pub fn number(self) -> u32 {
        self.number
    }

    /// `None` for a number that is no cell's.
    pub fn by_number(number: u64) -> Option<Self> {
        let number = u32::try_from(number).ok().filter(|number| *number < CELLS)?;
        Some(Self { number })
    }

    pub fn sector(self) -> Sector {
        Sector { number: (self.number >> (2 * SECTOR_BITS)) as u16 }
    }

    /// Its place in the sector. [0..1024]
    pub fn index(self) -> u16 {
        (self.number as usize % SECTOR_CELLS) as u16
    }

    fn column_and_row(self) -> (u32, u32) {
        let (sector, within) = (u32::from(self.sector().number), u32::from(self.index()));
        let column = sector % SECTORS_PER_SIDE * SECTOR_SIDE + within % SECTOR_SIDE;
        let row = sector / SECTORS_PER_SIDE * SECTOR_SIDE + within / SECTOR_SIDE;
        (column, row)
    }

    /// x and z of its middle. (m)
    pub fn middle(self) -> [f32; 2] {
        let (column, row) = self.column_and_row();
        [column, row].map(|index| (index as f32 + 0.5) * CELL_M - HALF_SIDE_M)
    }

    /// Squared distance of its middle to a place. (m²)
    pub fn away_m2(self, place: [f32; 2]) -> f32 {
        distance_m2(self.middle(), place)
    }

    pub fn plot(self) -> Plot {
        let (column, row) = self.column_and_row();
        Plot { corner: Self::of(column - column % PLOT_SIDE, row - row % PLOT_SIDE) }
    }

    /// What it is like as nobody has touched it, in the world of this seed.
    pub fn untouched(self, seed: u64) -> Ground {
        let mixed = mix(seed ^ (u64::from(self.number) << 20));
        let growth = match mixed {
            mixed if mixed.is_multiple_of(CELLS_PER_TREE) => Growth::Tree,
            mixed if (mixed >> 32).is_multiple_of(CELLS_PER_BOULDER) => Growth::Boulder,
            _ => Growth::Bare,
        };
        Ground { growth, ..Ground::BARE }
    }
}

/// A square of 8 x 8 cells that somebody may call its own. Lies in one sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Pack)]
#[pack(name = "frontier.plot")]
pub struct Plot {
    corner: Cell,
}

impl Plot {
    /// The cell that says whose it is.
    pub fn corner(self) -> Cell {
        // Also of bytes that name another cell of it.
        self.corner.plot().corner
    }

    pub fn cells(self) -> impl Iterator<Item = Cell> {
        let (column, row) = self.corner().column_and_row();
        (0..PLOT_SIDE).flat_map(move |down| (0..PLOT_SIDE).map(move |right| Cell::of(column + right, row + down)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    #[test]
    fn places_cells_sectors_and_plots_agree() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
        for _ in 0..10_000 {
            let place = [(); 2].map(|()| rng.random_range(-HALF_SIDE_M..HALF_SIDE_M));
            let cell = Cell::at(place);
            let middle = cell.middle();
            assert!(
                (0..2).all(|axis| (place[axis] - middle[axis]).abs() <= CELL_M / 2.0 + 1e-3),
                "{place:?} {middle:?}"
            );
            assert_eq!(Cell::at(middle), cell);
            assert_eq!(Cell::by_number(cell.number().into()), Some(cell));
            assert_eq!(cell.sector().cell(cell.index()), cell);
            assert_eq!(Sector::at(place), cell.sector());
            let cells: BTreeSet<Cell> = cell.plot().cells().collect();
            assert!(cells.len() == 64 && cells.contains(&cell));
            assert!(cells.iter().all(|other| other.plot() == cell.plot() && other.sector() == cell.sector()));
        }
        assert_eq!(Cell::by_number(CELLS.into()), None);
    }

    #[test]
    fn what_is_no_place_has_a_cell_all_the_same() {
        for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -1e30] {
            assert!(Cell::at([poison, poison]).number() < CELLS);
        }
    }

    #[test]
    fn around_a_sector_are_nine_and_fewer_at_the_edge() {
        let sectors = |place| Sector::at(place).around().collect::<BTreeSet<_>>();
        assert_eq!([[0.0; 2], [4_090.0, 0.0], [-4_096.0; 2]].map(|place| sectors(place).len()), [9, 6, 4]);
        let (middle, around) = (Sector::at([0.0; 2]), sectors([0.0; 2]));
        for number in 0..(SECTORS_PER_SIDE * SECTORS_PER_SIDE) as u16 {
            let other = Sector { number };
            assert_eq!(other.is_around(middle), around.contains(&other));
        }
    }

    #[test]
    fn untouched_land_follows_from_the_seed() {
        let count = |seed: u64, growth| {
            (0..20_000).filter(|number| Cell { number: *number }.untouched(seed).growth == growth).count()
        };
        assert!((1_400..2_000).contains(&count(1, Growth::Tree)) && (300..700).contains(&count(1, Growth::Boulder)));
        let differ =
            (0..1_000).filter(|number| Cell { number: *number }.untouched(1) != Cell { number: *number }.untouched(2));
        assert!(differ.count() > 100);
    }
}
