//! A disk in memory that fails when a test wants it, in the middle of what is being written.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
};

use redb::{Builder, Database, StorageBackend};
use throng_persistence::{
    Embedded, Store, StoreError,
    disk::{Disk, MemoryDisk},
    overlay::Overlay,
};

/// A disk that is broken.
const EIO: i32 = 5;

/// Clones are the same disk.
#[derive(Debug, Clone)]
pub struct FlakyDisk {
    disk: MemoryDisk,
    /// Writes that it takes yet; then all fail.
    writes_left: Arc<AtomicI64>,
    /// Then reads fail, too.
    is_broken: Arc<AtomicBool>,
    pub bytes_read: Arc<AtomicU64>,
}

impl Default for FlakyDisk {
    fn default() -> FlakyDisk {
        FlakyDisk {
            disk: MemoryDisk::default(),
            writes_left: Arc::new(AtomicI64::new(i64::MAX)),
            is_broken: Arc::default(),
            bytes_read: Arc::default(),
        }
    }
}

impl FlakyDisk {
    /// It takes so many writes more, and then none.
    pub fn fail_after(&self, writes: i64) {
        self.is_broken.store(false, Ordering::Relaxed);
        self.writes_left.store(writes, Ordering::Relaxed);
    }

    /// And then gives nothing back either.
    pub fn break_after(&self, writes: i64) {
        self.fail_after(writes);
        self.is_broken.store(true, Ordering::Relaxed);
    }

    pub fn heal(&self) {
        self.fail_after(i64::MAX);
    }

    pub fn store(&self) -> Box<dyn Store> {
        Box::new(Embedded::on(Box::new(self.clone())).unwrap())
    }

    fn write_one(&self) -> io::Result<()> {
        match self.writes_left.fetch_sub(1, Ordering::Relaxed) {
            ..=0 => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    fn read_one(&self) -> io::Result<()> {
        let fails = self.is_broken.load(Ordering::Relaxed) && self.writes_left.load(Ordering::Relaxed) <= 0;
        if fails { Err(io::Error::from_raw_os_error(EIO)) } else { Ok(()) }
    }
}

impl Disk for FlakyDisk {
    fn open(&mut self, builder: &Builder, _: bool) -> Result<Database, StoreError> {
        Ok(builder.create_with_backend(self.clone())?)
    }

    fn open_aside(&mut self, builder: &Builder) -> Result<Database, StoreError> {
        Ok(builder.create_with_backend(Overlay::new(Box::new(self.clone()))?)?)
    }
}

impl StorageBackend for FlakyDisk {
    fn len(&self) -> io::Result<u64> {
        self.read_one()?;
        self.disk.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read_one()?;
        self.bytes_read.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.disk.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.write_one()?;
        self.disk.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.write_one()?;
        self.disk.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_one()?;
        self.disk.write(offset, data)
    }
}
