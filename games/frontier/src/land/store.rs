//! Store: changed cells as records, read by sector and written one by one.
//!
//! A cell's record is its [`Ground`], under [`Key::cell`] with the cell's number, so the records of a sector lie beside each
//! other and are read as one range. A cell that is again as nobody has touched it has no record.
//!
//! [`SavedLand`] is for threads that load: it waits for the disk. Packing ([`packed`]) is a cut's, in a tick; 40 bytes a cell.

use std::sync::Arc;

use thiserror::Error;
use throng::prelude::CellToSave;
use throng_pack::{List, Pack, PackError, envelope};
use throng_persistence::{Key, Reads, StoreError, versions::Versions};

use super::{Cell, Ground, Sector, cells::SECTOR_CELLS, map::Dirty};

/// A changed cell, by its place in the sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.saved_cell")]
pub struct SavedCell {
    #[pack(max = (SECTOR_CELLS - 1) as u16)]
    pub index: u16,
    pub ground: Ground,
}

/// What is saved of a sector, as the world is sent it.
#[derive(Debug, Clone, PartialEq, Eq, Pack)]
#[pack(name = "frontier.loaded_sector")]
pub struct LoadedSector {
    pub sector: Sector,
    /// The number of the question.
    pub ask: u32,
    /// `None`: it cannot be read.
    pub cells: Option<SavedCells>,
}

/// The changed cells of a sector.
pub type SavedCells = List<SavedCell, SECTOR_CELLS>;

/// Why a sector could not be read. Nothing of it counts, so it is not ready and nothing in it can be changed.
#[derive(Debug, Error)]
pub enum LoadError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the record of cell {cell} cannot be read")]
    Record {
        cell: u64,
        #[source]
        cause: PackError,
    },
    #[error("there is a record of cell {0}, which no sector has")]
    NoCell(u64),
}

/// The cells of one world in a store.
pub struct SavedLand {
    reads: Arc<dyn Reads>,
    world: u64,
    versions: Versions<Ground>,
}

impl SavedLand {
    /// `world`: its number in keys, the same in every run.
    pub fn new(reads: Arc<dyn Reads>, world: u64) -> Self {
        Self { reads, world, versions: Versions::new() }
    }

    /// What is saved of a sector. Waits for the disk; reads as many records as were changed in this sector, however many
    /// there are in others.
    pub fn load(&self, sector: Sector) -> Result<SavedCells, LoadError> {
        let [first, last] = [0, SECTOR_CELLS as u16 - 1].map(|index| key(self.world, sector.cell(index)));
        let mut outcome = Ok(());
        let mut cells = List::new();
        self.reads.range(first..=last, &mut |key, saved| {
            if outcome.is_ok() {
                outcome = saved.map_err(LoadError::from).and_then(|saved| self.read(key, &saved.value)).map(|cell| {
                    // There are no more keys between the two than fit.
                    _ = cells.push(cell);
                });
            }
        })?;
        outcome.map(|()| cells)
    }

    fn read(&self, key: Key, value: &[u8]) -> Result<SavedCell, LoadError> {
        let number = key.id as u64;
        let cell = Cell::by_number(number).ok_or(LoadError::NoCell(number))?;
        let ground = self.versions.read(value).map_err(|cause| LoadError::Record { cell: number, cause })?;
        Ok(SavedCell { index: cell.index(), ground })
    }
}

fn key(world: u64, cell: Cell) -> Key {
    Key::cell(world, cell.number().into())
}

/// Changed cells as they are saved, each as a record of its own.
///
/// # Errors
/// If one breaks its type's limits.
pub fn packed(dirty: &Dirty) -> Result<Vec<CellToSave>, PackError> {
    let pack = |(cell, ground): &(Cell, Option<Ground>)| {
        let mut value = ground.map(|_| Vec::new());
        if let (Some(ground), Some(bytes)) = (ground, &mut value) {
            envelope::write(ground, bytes)?;
        }
        Ok(CellToSave { cell: cell.number().into(), value })
    };
    dirty.iter().map(pack).collect()
}
