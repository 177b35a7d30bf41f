//! The promise: an old land costs what a new one costs. What a world holds in memory, hands in to be saved and reads when
//! somebody comes near depends on who is where and what was changed there, and not on how much was ever changed.
//!
//! Two stores are compared, in files: one with nothing but some changed cells around a place, and one with the same cells
//! there and many others everywhere else. Somebody comes to the place, changes some cells, and they are saved; then the
//! store is opened anew. What is counted is work: cells, records, and the bytes that the process reads and writes.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use frontier::land::{
    Cell, Ground, Map, Piece, PieceKind, Sector,
    cells::{CELLS, SECTOR_CELLS},
    map::Dirty,
    store::{SavedLand, packed},
};
use throng_persistence::{
    Commit, Embedded, Key, Store, Ticket,
    commit::{Order, Request},
    refused_keys::RefusedKeys,
};

const SEED: u64 = 3;
/// The world's number in keys.
const WORLD: u64 = 1;
/// Cells that are changed in each sector around the place.
const AT_PLACE: u16 = 100;
/// Cells that are changed there, and saved.
const SAVED: usize = 256;
/// Cells of a commit while a store is filled.
const PER_COMMIT: usize = 50_000;
const PLACE: [f32; 2] = [100.0, 100.0];

/// What the two are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Work {
    sectors: usize,
    cells_loaded: usize,
    cells_saved: usize,
    /// Of the commit, as the world hands it in.
    commit_bytes: usize,
    load_read_bytes: u64,
    save_written_bytes: u64,
    open_read_bytes: u64,
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("throng-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder can be made");
        Self(folder)
    }

    fn store(&self) -> PathBuf {
        self.0.join("land.redb")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind is a temporary file.
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Bytes that this thread has read and written by system calls.
fn io_bytes() -> (u64, u64) {
    let text = fs::read_to_string("/proc/thread-self/io").expect("the kernel says it");
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("it has the line");
        line.trim().parse().expect("a number")
    };
    (of("rchar:"), of("wchar:"))
}

fn changed(cell: Cell) -> Ground {
    let health = 1 + (cell.number() % 100) as u8;
    Ground { piece: Some(Piece { kind: PieceKind::Wall, health }), ..cell.untouched(SEED) }
}

fn apply(store: &mut Embedded, commit: Commit) {
    let order = Order { ticket: Ticket(1), seen: Ticket(0), request: Request::Commit(commit) };
    store.apply(&[order], &mut RefusedKeys::default()).unwrap().remove(0).unwrap();
}

/// A commit of cells, as the server makes one of what a cut has.
fn commit(dirty: &Dirty) -> Commit {
    let mut commit = Commit::new();
    for cell in packed(dirty).unwrap() {
        match cell.value {
            Some(value) => commit.put_bytes(Key::cell(WORLD, cell.cell), value),
            None => commit.delete(Key::cell(WORLD, cell.cell)),
        };
    }
    commit
}

/// Saves cells of a world by the world's own means.
fn save(store: &mut Embedded, cells: impl Iterator<Item = Cell>) {
    let mut dirty: Dirty = cells.map(|cell| (cell, Some(changed(cell)))).collect();
    while !dirty.is_empty() {
        let rest = dirty.split_off(dirty.len().min(PER_COMMIT));
        apply(store, commit(&dirty));
        dirty = rest;
    }
}

/// A store with the usual cells at the place, and so many others spread over the rest of the land.
fn filled(path: &Path, others: u32) -> Embedded {
    let mut store = Embedded::open(path).unwrap();
    let here = Sector::at(PLACE);
    save(&mut store, here.around().flat_map(|sector| (0..AT_PLACE).map(move |index| sector.cell(index * 9))));
    if others > 0 {
        let step = f64::from(CELLS) / f64::from(others) / 1.001;
        let spread = (0..).map(|number: u32| (f64::from(number) * step) as u64).map_while(Cell::by_number);
        let elsewhere = spread.filter(|cell| !cell.sector().is_around(here));
        let mut count = 0;
        let mut cells = elsewhere.inspect(|_| count += 1).peekable();
        while cells.peek().is_some() {
            save(&mut store, cells.by_ref().take(PER_COMMIT));
        }
        drop(cells);
        println!("{count} cells are changed elsewhere");
        assert!(count >= others - others / 100);
    }
    store
}

/// Somebody comes to the place, changes something, and it is saved; then the server starts anew.
fn measure(name: &str, others: u32) -> Work {
    let folder = Folder::new(name);
    let begun = Instant::now();
    drop(filled(&folder.store(), others));
    let file_mib = fs::metadata(folder.store()).unwrap().len() >> 20;
    println!("{name}: filled in {:.1?}, {file_mib} MiB", begun.elapsed());

    let begun = Instant::now();
    let before = io_bytes();
    let mut store = Embedded::open(&folder.store()).unwrap();
    let open_read_bytes = io_bytes().0 - before.0;
    println!("{name}: opened in {:.1?}", begun.elapsed());

    let land = SavedLand::new(store.reader(), WORLD);
    let mut map = Map::new(SEED, true);
    let here = Sector::at(PLACE);
    here.around().for_each(|sector| _ = map.enter(sector, 0));
    let begun = Instant::now();
    let before = io_bytes();
    let mut cells_loaded = 0;
    for wanted in map.take_wanted().collect::<Vec<_>>() {
        let loaded = land.load(wanted.sector).unwrap();
        cells_loaded += loaded.len();
        assert!(map.arrived(wanted, loaded.iter().map(|cell| (cell.index, cell.ground))));
    }
    let load_read_bytes = io_bytes().0 - before.0;
    println!("{name}: nine sectors loaded in {:.1?}", begun.elapsed());

    for index in 0..SAVED {
        let cell = here.cell((index * SECTOR_CELLS / SAVED) as u16);
        let ground = map.ground(cell).expect("it has come");
        assert!(map.change(cell, Ground { depth: ground.depth + 1, ..ground }));
    }
    map.check();
    let dirty = map.take_dirty(1);
    let commit = commit(&dirty);
    let commit_bytes = commit.bytes();
    let begun = Instant::now();
    let before = io_bytes();
    apply(&mut store, commit);
    let save_written_bytes = io_bytes().1 - before.1;
    println!("{name}: saved in {:.1?}", begun.elapsed());
    map.saved(1);
    map.check();

    // What was saved is there, cell by cell.
    for (cell, ground) in &dirty {
        let saved = land.load(cell.sector()).unwrap().iter().find(|saved| saved.index == cell.index()).copied();
        assert_eq!(saved.map(|saved| saved.ground), *ground);
    }
    let sectors = map.sectors_count();
    Work {
        sectors,
        cells_loaded,
        cells_saved: dirty.len(),
        commit_bytes,
        load_read_bytes,
        save_written_bytes,
        open_read_bytes,
    }
}

/// Holds a land with so many changed cells against a new one.
fn check(name: &str, others: u32) {
    let (new, old) = (measure(&format!("{name}-new"), 0), measure(&format!("{name}-old"), others));
    println!("new: {new:?}\nold: {old:?}");
    let of_world = |work: Work| (work.sectors, work.cells_loaded, work.cells_saved, work.commit_bytes);
    assert_eq!(of_world(old), of_world(new), "the world's own work is the same");
    assert_eq!((new.sectors, new.cells_loaded, new.cells_saved), (9, 9 * usize::from(AT_PLACE), SAVED));
    // The store is a tree: a larger one has a few more levels, each of one page on the way to where something is; nine
    // sectors are in three rows of the land, so there are few ways. What says which pages are free is read at the start
    // and written with each save: a bit for each page, in some layers.
    const PAGE: u64 = 4_096;
    let free_pages = u64::from(others) / 40_000 * PAGE;
    assert!(old.load_read_bytes <= new.load_read_bytes + 64 * PAGE, "{new:?} {old:?}");
    assert!(old.save_written_bytes <= new.save_written_bytes + 24 * PAGE + free_pages, "{new:?} {old:?}");
    // With debug assertions redb looks at every page that is in use when it opens a file; without, at none.
    let is_shipped = !cfg!(debug_assertions);
    assert!(!is_shipped || old.open_read_bytes <= new.open_read_bytes + 24 * PAGE + free_pages, "{new:?} {old:?}");
}

#[test]
fn an_old_land_costs_what_a_new_one_costs() {
    check("land", 200_000);
}

/// The large form: most of the land was changed once.
#[test]
#[ignore = "takes minutes, and 2 GB of disk"]
fn o5_ten_million_changed_cells_cost_what_none_do() {
    check("land-full", 10_000_000);
}
