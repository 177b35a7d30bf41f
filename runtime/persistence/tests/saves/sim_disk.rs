//! A disk in memory that knows what is on it and what the kernel only remembers.
//!
//! Programs read what the kernel remembers (`cache`). What survives a power loss is what an fsync certified
//! (`certified`), and of what was written since (`pending`) any part: whole writes, some sectors of them, or nothing.
//! After an fsync that fails the kernel calls its pages clean although some never reached the disk; who reads them back
//! is deceived until the next power loss.
//!
//! It counts every call, reads too, and can make one of them fail, or all from one on.

use std::{
    fmt, io,
    ops::Range,
    sync::{Arc, Mutex},
};

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use redb::{Builder, Database, StorageBackend};
use throng_persistence::{StoreError, disk::Disk, overlay::Overlay};

/// What a disk writes in one piece or not at all (bytes).
const SECTOR_BYTES: usize = 512;

/// Something that changes what is on the disk.
#[derive(Clone, Debug)]
pub enum Change {
    Write { offset: usize, data: Vec<u8> },
    SetLen(usize),
    Sync,
}

/// How it fails, and when.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Calls that fail, counted from 0 over reads, writes, lengths and fsyncs.
    pub fails: Option<(u64, u64)>,
    /// Reads neither count nor fail.
    pub spares_reads: bool,
    /// No page is kept in memory: whatever the store looks at, it reads.
    pub is_uncached: bool,
    pub is_full: bool,
    /// Fsyncs are said to be done and are not.
    pub omits_sync: bool,
    /// What the kernel remembers is believed when the store is opened.
    pub trusts_cache: bool,
}

pub struct State {
    pub plan: Plan,
    pub calls: u64,
    pub failed: u64,
    cache: Vec<u8>,
    certified: Vec<u8>,
    pending: Vec<Change>,
    rng: Xoshiro256PlusPlus,
    /// Everything since the beginning, if it is kept.
    pub tape: Option<Vec<Change>>,
}

/// Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk(pub Arc<Mutex<State>>);

impl SimDisk {
    pub fn new(image: Vec<u8>, seed: u64) -> SimDisk {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        SimDisk(Arc::new(Mutex::new(State {
            plan: Plan::default(),
            calls: 0,
            failed: 0,
            certified: image.clone(),
            cache: image,
            pending: Vec::new(),
            rng,
            tape: None,
        })))
    }

    /// What is on a disk with an empty store, which a file becomes in one step.
    pub fn empty_store() -> Vec<u8> {
        let disk = SimDisk::new(Vec::new(), 0);
        Builder::new().create_with_backend(disk.clone()).unwrap().close().unwrap();
        disk.with(|state| state.cache.clone())
    }

    pub fn recorded(image: Vec<u8>) -> SimDisk {
        let disk = SimDisk::new(image, 0);
        disk.with(|state| state.tape = Some(Vec::new()));
        disk
    }

    pub fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap())
    }

    /// What a power loss now leaves: what was certified, and any part of the rest.
    pub fn power_loss(&self) -> Vec<u8> {
        self.with(|state| {
            let mut image = state.certified.clone();
            apply_some(&mut image, &state.pending, &mut state.rng);
            image
        })
    }
}

impl State {
    /// What the kernel remembers.
    pub fn cached(&self) -> Vec<u8> {
        self.cache.clone()
    }

    fn reading(&mut self) -> io::Result<()> {
        if self.plan.spares_reads { Ok(()) } else { self.call() }
    }

    fn call(&mut self) -> io::Result<()> {
        let call = self.calls;
        self.calls += 1;
        match self.plan.fails {
            Some((first, end)) if (first..end).contains(&call) => {
                self.failed += 1;
                Err(if self.plan.is_full { io::ErrorKind::StorageFull.into() } else { io::Error::from_raw_os_error(5) })
            }
            _ => Ok(()),
        }
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.cache, &change, None);
        self.tape.iter_mut().for_each(|tape| tape.push(change.clone()));
        self.pending.push(change);
    }
}

/// Whole, or some of its sectors.
fn apply(image: &mut Vec<u8>, change: &Change, sectors: Option<&mut dyn FnMut() -> bool>) {
    match change {
        Change::SetLen(length) => image.resize(*length, 0),
        Change::Sync => {}
        Change::Write { offset, data } => {
            // What lies beyond the end that the disk knows of is nowhere.
            let end = image.len().min(offset + data.len());
            if *offset >= end {
                return;
            }
            let Some(keeps) = sectors else {
                return image[*offset..end].copy_from_slice(&data[..end - offset]);
            };
            for piece in pieces(*offset..end) {
                if keeps() {
                    image[piece.clone()].copy_from_slice(&data[piece.start - offset..piece.end - offset]);
                }
            }
        }
    }
}

/// A range cut at the borders of sectors.
fn pieces(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let first = range.start / SECTOR_BYTES;
    let last = range.end.div_ceil(SECTOR_BYTES);
    (first..last)
        .map(move |sector| (sector * SECTOR_BYTES).max(range.start)..((sector + 1) * SECTOR_BYTES).min(range.end))
}

/// Any part of what was not certified, in one of several manners.
pub fn apply_some(image: &mut Vec<u8>, pending: &[Change], rng: &mut Xoshiro256PlusPlus) {
    let manner = rng.random_range(0..6);
    let special = rng.random_range(0..pending.len().max(1));
    for (index, change) in pending.iter().enumerate() {
        let is_kept = match manner {
            0 => false,
            1 => true,
            // All but one, and one alone: what a protocol forgets to wait for is often a single write.
            2 => index != special,
            3 => index == special || matches!(change, Change::SetLen(_)),
            _ => rng.random_bool(0.5),
        };
        if is_kept {
            let mut keeps = || manner != 5 || rng.random_bool(0.7);
            apply(image, change, Some(&mut keeps));
        }
    }
}

/// Walks a tape: after each change, what is certain and what is not.
pub fn each_moment(start: &[u8], tape: &[Change], mut at: impl FnMut(usize, &[u8], &[Change])) {
    let mut certified = start.to_vec();
    let mut certain_until = 0;
    for (index, change) in tape.iter().enumerate() {
        if matches!(change, Change::Sync) {
            tape[certain_until..index].iter().for_each(|change| apply(&mut certified, change, None));
            certain_until = index;
        }
        at(index + 1, &certified, &tape[certain_until..=index]);
    }
}

impl Disk for SimDisk {
    fn open(&mut self, builder: &Builder, after_failure: bool) -> Result<Database, StoreError> {
        let is_uncached = self.with(|state| {
            if !state.plan.trusts_cache {
                // What was written and is not certified is still remembered as to be written; the rest is forgotten.
                state.cache = state.certified.clone();
                let State { cache, pending, .. } = state;
                pending.iter().for_each(|change| apply(cache, change, None));
            }
            state.plan.is_uncached
        });
        let mut uncached = Builder::new();
        uncached.set_cache_size(0).set_check_integrity_on_open(after_failure);
        Ok(if is_uncached { &uncached } else { builder }.create_with_backend(self.clone())?)
    }

    fn open_aside(&mut self, builder: &Builder) -> Result<Database, StoreError> {
        Ok(builder.create_with_backend(Overlay::new(Box::new(self.clone()))?)?)
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SimDisk")
    }
}

impl StorageBackend for SimDisk {
    fn len(&self) -> io::Result<u64> {
        self.with(|state| state.reading().map(|()| state.cache.len() as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.with(|state| {
            state.reading()?;
            let from = state.cache.get(offset as usize..offset as usize + out.len());
            out.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.with(|state| {
            state.call()?;
            state.change(Change::SetLen(length as usize));
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.with(|state| {
            if state.plan.omits_sync {
                return Ok(());
            }
            let outcome = state.call();
            let State { certified, pending, rng, tape, .. } = state;
            if outcome.is_ok() {
                pending.iter().for_each(|change| apply(certified, change, None));
                tape.iter_mut().for_each(|tape| tape.push(Change::Sync));
            } else {
                // Some of it got there. The rest is lost, and the kernel calls it clean.
                apply_some(certified, pending, rng);
            }
            pending.clear();
            outcome
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.with(|state| {
            state.call()?;
            state.change(Change::Write { offset: offset as usize, data: data.to_vec() });
            Ok(())
        })
    }
}
