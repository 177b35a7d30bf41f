//! Embedded: the store in one file beside the server, on redb.
//!
//! ```text
//! table      key           value
//! records    key           record
//! previous   key           the record before it, for when that is damaged
//! leases     key           owner u64, fence u64, end in ms since 1970 u64
//! items      kind u32      items created minus items destroyed i64
//! meta       "format"      1
//!            "batch"       number of the newest batch that is in the file
//! ```
//!
//! A batch is one write transaction, with two fsyncs: one for its pages and one for the header that points to them.
//! With them the state of the allocator is saved, so that opening after a crash takes no walk over the file, whatever
//! its size.
//!
//! The number of the batch tells what became of one that failed: the file has it or not ([`Store::settle`]).
//!
//! Any thread, which waits for the disk. A record is read and copied once when it is written over: it becomes the
//! previous one, unless it is damaged.

mod reading;

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::Path,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use redb::{Builder, Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use crate::{
    commit::{Order, Outcome, Write},
    disk::{Disk, FileDisk, ReadOnlyFile},
    judgement::{judge, leases_asked},
    key::{ItemKind, KEY_BYTES, Key},
    lease::Row,
    record,
    refused_keys::RefusedKeys,
    store::{Reads, Store},
    store_error::StoreError,
};

const RECORDS: TableDefinition<&[u8; KEY_BYTES], &[u8]> = TableDefinition::new("records");
const PREVIOUS: TableDefinition<&[u8; KEY_BYTES], &[u8]> = TableDefinition::new("previous");
const LEASES: TableDefinition<&[u8; KEY_BYTES], Row> = TableDefinition::new("leases");
const ITEMS: TableDefinition<ItemKind, i64> = TableDefinition::new("items");
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");

/// What this program writes. Files of a higher format are refused.
const FORMAT: u64 = 1;

/// Bytes of pages kept in memory. Too low: each read is the disk's. Too high: memory that worlds could have.
const CACHE_BYTES: usize = 32 << 20;

/// A store in one file.
pub struct Embedded {
    disk: Box<dyn Disk>,
    open: Arc<Open>,
    /// Number of the newest batch that is known to be on disk.
    batch: u64,
    /// Outcomes of a batch whose commit may or may not have come through.
    in_doubt: Option<Vec<Outcome>>,
    /// A batch has failed, and it is not opened anew yet. What is open meanwhile is for reading alone.
    is_down: bool,
}

/// A store that is only read.
pub struct ToRead {
    pub reads: Arc<dyn Reads>,
    /// What is wrong with its pages, if anything is.
    pub pages: Result<(), StoreError>,
}

/// What the writing thread and readers share.
pub(crate) struct Open {
    /// `None` while it is being opened anew. Written by the writing thread alone; readers hold it while they read.
    database: RwLock<Option<Database>>,
    /// Counted by readers; tells nothing else, so relaxed.
    damaged: AtomicU64,
    /// It writes nothing when it goes: it is for reading alone, or has panicked. Relaxed: whoever drops it is its last.
    goes_unwritten: AtomicBool,
}

impl Open {
    fn new(database: Database, goes_unwritten: bool) -> Open {
        Open {
            database: RwLock::new(Some(database)),
            damaged: AtomicU64::new(0),
            goes_unwritten: AtomicBool::new(goes_unwritten),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let database = self.database.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if self.goes_unwritten.load(Ordering::Relaxed) {
            return let_go_unwritten(database);
        }
        // A handle writes when it goes. What is wrong with that is told where something is asked of it.
        _ = catch_unwind(AssertUnwindSafe(|| drop(database)));
    }
}

/// Lets go of a handle that is to write nothing more. What a handle writes when it goes may panic over a damaged page, and
/// again while that unwinds, which ends the process; one that goes while its thread unwinds writes nothing.
fn let_go_unwritten(database: Option<Database>) {
    _ = catch_unwind(AssertUnwindSafe(move || {
        let _goes_with_the_unwinding = database;
        resume_unwind(Box::new(()));
    }));
}

impl Embedded {
    /// Opens the file, or makes one. What a crash left behind is put right here.
    pub fn open(path: &Path) -> Result<Embedded, StoreError> {
        Embedded::on(Box::new(FileDisk::new(path)))
    }

    /// Opens the file to read it alone: not a byte of it changes, and what a crash left behind is put right in memory. Nobody
    /// else can open it meanwhile. All checksums of its pages are verified first, which takes as long as reading the file.
    pub fn open_to_read(path: &Path) -> Result<ToRead, StoreError> {
        Embedded::open_to_read_on(&mut ReadOnlyFile::new(path))
    }

    /// The same on any disk that keeps to itself what is written.
    pub fn open_to_read_on(disk: &mut dyn Disk) -> Result<ToRead, StoreError> {
        let mut opened = |verifies| {
            let opened = catch_unwind(AssertUnwindSafe(|| open(disk, verifies)));
            opened.unwrap_or(Err(StoreError::Panicked))
        };
        let (database, pages) = match opened(true) {
            Ok((database, _)) => (database, Ok(())),
            // Most records may be whole all the same.
            Err(error @ (StoreError::Damaged(_) | StoreError::Panicked)) => (opened(false)?.0, Err(error)),
            Err(error) => return Err(error),
        };
        Ok(ToRead { reads: Arc::new(Open::new(database, true)), pages })
    }

    /// [`Embedded::open`] on any disk.
    pub fn on(mut disk: Box<dyn Disk>) -> Result<Embedded, StoreError> {
        // A file that something else damaged may make the code that opens it panic; at start-up that is an error, too.
        let opened = catch_unwind(AssertUnwindSafe(|| open(&mut *disk, false)));
        let (database, batch) = opened.unwrap_or(Err(StoreError::Panicked))?;
        Ok(Embedded { disk, open: Arc::new(Open::new(database, false)), batch, in_doubt: None, is_down: false })
    }

    fn transact(&mut self, orders: &[Order], refused: &mut RefusedKeys) -> Result<Vec<Outcome>, StoreError> {
        let open = Arc::clone(&self.open);
        let database = open.database.read().unwrap_or_else(PoisonError::into_inner);
        let mut transaction = database.as_ref().ok_or(StoreError::Down)?.begin_write()?;
        transaction.set_quick_repair(true);
        let outcomes = carry_out(&transaction, orders, refused)?;
        transaction.open_table(META)?.insert("batch", self.batch + 1)?;
        // From here on the disk may have it, whatever comes back.
        self.in_doubt = Some(outcomes);
        transaction.commit()?;
        self.batch += 1;
        Ok(self.in_doubt.take().unwrap_or_default())
    }
}

impl Store for Embedded {
    fn apply(&mut self, orders: &[Order], refused: &mut RefusedKeys) -> Result<Vec<Outcome>, StoreError> {
        if self.is_down {
            return Err(StoreError::Down);
        }
        self.in_doubt = None;
        let applied = catch_unwind(AssertUnwindSafe(|| self.transact(orders, refused))).unwrap_or_else(|_| {
            self.open.goes_unwritten.store(true, Ordering::Relaxed);
            Err(StoreError::Panicked)
        });
        self.is_down = applied.is_err();
        applied
    }

    fn settle(&mut self) -> Result<Option<Vec<Outcome>>, StoreError> {
        let mut database = self.open.database.write().unwrap_or_else(PoisonError::into_inner);
        // Two at a time the file's lock would not allow. What is open aside in its place is for reading alone.
        self.open.goes_unwritten.store(true, Ordering::Relaxed);
        let_go_unwritten(database.take());
        let disk = &mut *self.disk;
        let opened = catch_unwind(AssertUnwindSafe(|| open(disk, true))).unwrap_or(Err(StoreError::Panicked));
        let (opened, batch) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let aside = || disk.open_aside(Builder::new().set_cache_size(CACHE_BYTES)).ok();
                *database = catch_unwind(AssertUnwindSafe(aside)).ok().flatten();
                return Err(error);
            }
        };
        let newest = self.batch + u64::from(self.in_doubt.is_some());
        if !(self.batch..=newest).contains(&batch) {
            return Err(StoreError::Damaged(format!("it is at batch {batch}, and {newest} was written")));
        }
        *database = Some(opened);
        self.open.goes_unwritten.store(false, Ordering::Relaxed);
        self.is_down = false;
        let outcomes = self.in_doubt.take().filter(|_| batch == newest && batch != self.batch);
        self.batch = batch;
        Ok(outcomes)
    }

    fn reader(&self) -> Arc<dyn Reads> {
        Arc::<Open>::clone(&self.open)
    }
}

/// A handle whose tables are all there, and the number of the newest batch.
fn open(disk: &mut dyn Disk, after_failure: bool) -> Result<(Database, u64), StoreError> {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(after_failure);
    let database = disk.open(&builder, after_failure)?;
    match newest_batch(&database) {
        Ok(batch) => Ok((database, batch)),
        Err(error) => {
            let_go_unwritten(Some(database));
            Err(error)
        }
    }
}

/// Makes the tables where there are none.
fn newest_batch(database: &Database) -> Result<u64, StoreError> {
    let is_new = database.begin_read()?.list_tables()?.next().is_none();
    if is_new {
        let mut transaction = database.begin_write()?;
        transaction.set_quick_repair(true);
        transaction.open_table(RECORDS)?;
        transaction.open_table(PREVIOUS)?;
        transaction.open_table(LEASES)?;
        transaction.open_table(ITEMS)?;
        transaction.open_table(META)?.insert("format", FORMAT)?;
        transaction.commit()?;
    }
    let meta = database.begin_read()?.open_table(META)?;
    let number = |name| Ok::<u64, StoreError>(meta.get(name)?.map_or(0, |value| value.value()));
    match number("format")? {
        0 => return Err(StoreError::Damaged("it does not say its format".into())),
        found if found > FORMAT => return Err(StoreError::Newer { found, known: FORMAT }),
        _ => {}
    }
    number("batch")
}

/// Judges the orders, and writes what is left of them.
fn carry_out(
    transaction: &WriteTransaction,
    orders: &[Order],
    refused: &mut RefusedKeys,
) -> Result<Vec<Outcome>, StoreError> {
    let mut leases = transaction.open_table(LEASES)?;
    let mut rows = BTreeMap::new();
    for key in leases_asked(orders) {
        if let Some(row) = leases.get(&key.to_bytes())? {
            rows.insert(key, row.value());
        }
    }
    let judged = judge(orders, rows, refused, None);
    for (key, row) in &judged.leases {
        leases.insert(&key.to_bytes(), *row)?;
    }
    write(transaction, &judged.writes, &judged.items)?;
    Ok(judged.outcomes)
}

fn write(
    transaction: &WriteTransaction,
    writes: &BTreeMap<Key, &Write>,
    items: &BTreeMap<ItemKind, i64>,
) -> Result<(), StoreError> {
    let mut records = transaction.open_table(RECORDS)?;
    let mut previous = transaction.open_table(PREVIOUS)?;
    for (key, write) in writes {
        let bytes = key.to_bytes();
        match write {
            Write::Put(value) => {
                let before = records.insert(&bytes, &*record::seal(*key, value))?;
                // A damaged record must not push out the good one before it.
                if let Some(before) = before.filter(|before| record::open(*key, before.value()).is_some()) {
                    previous.insert(&bytes, before.value())?;
                }
            }
            Write::Delete => {
                records.remove(&bytes)?;
                previous.remove(&bytes)?;
            }
        }
    }
    let mut balances = transaction.open_table(ITEMS)?;
    for (kind, count) in items {
        let before = balances.get(kind)?.map_or(0, |balance| balance.value());
        balances.insert(kind, before + count)?;
    }
    Ok(())
}

impl From<redb::Error> for StoreError {
    fn from(cause: redb::Error) -> StoreError {
        match cause {
            redb::Error::Io(cause) => cause.into(),
            redb::Error::DatabaseAlreadyOpen => StoreError::InUse,
            redb::Error::DatabaseClosed | redb::Error::PreviousIo => StoreError::Down,
            other => StoreError::Damaged(other.to_string()),
        }
    }
}

/// Each kind of error of redb's is a part of its `Error`.
macro_rules! from_parts {
    ($($part:ident),*) => {
        $(impl From<redb::$part> for StoreError {
            fn from(cause: redb::$part) -> StoreError {
                redb::Error::from(cause).into()
            }
        })*
    };
}
from_parts!(CommitError, DatabaseError, StorageError, TableError, TransactionError);

#[cfg(test)]
mod tests {
    use redb::StorageBackend as _;

    use super::*;
    use crate::{
        commit::{Commit, Request, Ticket},
        disk::MemoryDisk,
    };

    fn bytes_of(disk: &MemoryDisk) -> Vec<u8> {
        let mut bytes = vec![0; disk.len().unwrap() as usize];
        disk.read(0, &mut bytes).unwrap();
        bytes
    }

    /// Does a store write when it goes, after its readers have panicked or not?
    fn writes_when_it_goes(has_panicked: bool) -> bool {
        let disk = MemoryDisk::default();
        let mut store = Embedded::on(Box::new(disk.clone())).unwrap();
        let mut commit = Commit::new();
        commit.put_bytes(Key::player(1), vec![1]);
        let order = Order { ticket: Ticket(1), seen: Ticket(0), request: Request::Commit(commit) };
        assert!(store.apply(&[order], &mut RefusedKeys::default()).unwrap()[0].is_ok());
        if has_panicked {
            let panics = store.open.visit(&mut |_, _| resume_unwind(Box::new(())));
            assert!(matches!(panics, Err(StoreError::Panicked)));
        }
        let before = bytes_of(&disk);
        drop(store);
        bytes_of(&disk) != before
    }

    #[test]
    fn a_store_over_whose_pages_readers_panicked_writes_nothing_when_it_goes() {
        assert!(writes_when_it_goes(false), "the control: it says that it was closed in order");
        assert!(!writes_when_it_goes(true));
    }
}
