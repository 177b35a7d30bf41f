//! Stores: files with a land in them, filled without a server.

use std::{
    fs,
    path::{Path, PathBuf},
};

use frontier::{
    land::{
        Cell, Ground, Piece, PieceKind, Sector,
        cells::{CELLS, SECTOR_CELLS},
        map::Dirty,
        store::packed,
    },
    landscape::Landscape,
    server::SAVE_ID,
};
use throng_persistence::{
    Commit, Embedded, Key, Store, Ticket,
    commit::{Order, Request},
    refused_keys::RefusedKeys,
};

/// Cells of a commit while a store is filled.
const PER_COMMIT: usize = 50_000;
/// Around the hearth where players begin no cell is changed beforehand, so that both lands play the same. (m)
const LEFT_M: f32 = 600.0;
/// Cells of a commit that is measured.
const SAVED: usize = 256;
/// Of the world, as `FrontierSettings` are given it.
const SEED: u64 = 7;

/// A folder that goes with the bench.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("throng-old-land-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder can be made");
        Self(folder)
    }

    pub fn store(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.redb"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind is a temporary file.
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Makes a store with about so many changed cells, spread over the land. Returns how many there are.
pub fn fill(path: &Path, cells: u32) -> usize {
    let mut store = Embedded::open(path).expect("a store can be made");
    if cells == 0 {
        return 0;
    }
    let hearth = hearth();
    let step = f64::from(CELLS) / f64::from(cells) / 1.02;
    let spread = (0..).map(|number: u32| (f64::from(number) * step) as u64).map_while(Cell::by_number);
    let mut elsewhere = spread.filter(|cell| cell.away_m2(hearth) > LEFT_M * LEFT_M);
    let mut count = 0;
    loop {
        let dirty: Dirty = elsewhere.by_ref().take(PER_COMMIT).map(|cell| (cell, Some(changed(cell, 0)))).collect();
        if dirty.is_empty() {
            return count;
        }
        count += dirty.len();
        apply(&mut store, commit(&dirty));
    }
}

/// Cells of one sector, as a player who builds changes them; with every number they are others than before. It is out of the
/// way of those who play.
pub fn commit_of_cells(number: usize) -> Commit {
    let [x, z] = hearth();
    let sector = Sector::at([x + LEFT_M * 0.75, z]);
    let cells = (0..SAVED).map(|index| sector.cell((index * SECTOR_CELLS / SAVED) as u16));
    commit(&cells.map(|cell| (cell, Some(changed(cell, number)))).collect())
}

pub fn apply(store: &mut Embedded, commit: Commit) {
    let order = Order { ticket: Ticket(1), seen: Ticket(0), request: Request::Commit(commit) };
    let mut done = store.apply(&[order], &mut RefusedKeys::default()).expect("the disk takes it");
    done.remove(0).expect("the commit is in order");
}

fn hearth() -> [f32; 2] {
    Landscape::load().hearths()[0]
}

fn changed(cell: Cell, number: usize) -> Ground {
    let health = 1 + ((cell.number() as usize + number) % 100) as u8;
    Ground { piece: Some(Piece { kind: PieceKind::Wall, health }), ..cell.untouched(SEED) }
}

/// A commit of cells, as the server makes one of what a cut has.
fn commit(dirty: &Dirty) -> Commit {
    let mut commit = Commit::new();
    for cell in packed(dirty).expect("cells can be packed") {
        match cell.value {
            Some(value) => commit.put_bytes(Key::cell(SAVE_ID, cell.cell), value),
            None => commit.delete(Key::cell(SAVE_ID, cell.cell)),
        };
    }
    commit
}
