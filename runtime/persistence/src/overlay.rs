//! Overlay: a store's bytes as they lie on a disk that takes no writes, and what opening it would write, in memory.
//!
//! To open a store after a failure redb puts its header right, which a disk that is broken or became read-only refuses.
//! What is committed can be read all the same: the few pages that opening writes are kept here, and the disk is only
//! read. Nothing of it is ever saved.
//!
//! Cost: one map entry of 4 KB for each page that opening touches.

use std::{
    collections::BTreeMap,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use redb::StorageBackend;

const PAGE_BYTES: usize = 4_096;
/// Pages kept at most, 64 MB: what putting right a store of any reasonable size takes. Beyond it opening fails.
const PAGES_MAX: usize = 16_384;

/// The disk below, which is only read, and what was changed above it.
#[derive(Debug)]
pub struct Overlay {
    below: Box<dyn StorageBackend>,
    changed: Mutex<Changed>,
}

#[derive(Debug)]
struct Changed {
    length: u64,
    /// Up to here the disk counts; beyond it what is not in `pages` is zero.
    below_length: u64,
    pages: BTreeMap<u64, Box<[u8; PAGE_BYTES]>>,
}

impl Overlay {
    pub fn new(below: Box<dyn StorageBackend>) -> io::Result<Overlay> {
        let length = below.len()?;
        Ok(Overlay { below, changed: Mutex::new(Changed { length, below_length: length, pages: BTreeMap::new() }) })
    }

    fn changed(&self) -> MutexGuard<'_, Changed> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes from `offset` on as the disk has them.
    fn read_below(&self, changed: &Changed, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = changed.below_length.saturating_sub(offset).min(out.len() as u64) as usize;
        let (disk, beyond) = out.split_at_mut(there);
        beyond.fill(0);
        if disk.is_empty() { Ok(()) } else { self.below.read(offset, disk) }
    }
}

/// The pages that a range of bytes lies in: number, first byte within the page, and how many.
fn pages(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let (page_bytes, end) = (PAGE_BYTES as u64, offset + length as u64);
    (offset / page_bytes..end.div_ceil(page_bytes)).map(move |page| {
        let begin = offset.max(page * page_bytes);
        let within = (begin - page * page_bytes) as usize;
        (page, within, (end.min((page + 1) * page_bytes) - begin) as usize)
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.changed().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let changed = self.changed();
        if offset + out.len() as u64 > changed.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut done = 0;
        for (page, within, count) in pages(offset, out.len()) {
            let part = &mut out[done..done + count];
            match changed.pages.get(&page) {
                Some(bytes) => part.copy_from_slice(&bytes[within..within + count]),
                None => self.read_below(&changed, page * PAGE_BYTES as u64 + within as u64, part)?,
            }
            done += count;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut changed = self.changed();
        if length < changed.length {
            changed.below_length = changed.below_length.min(length);
            changed.pages.split_off(&length.div_ceil(PAGE_BYTES as u64));
            let within = (length % PAGE_BYTES as u64) as usize;
            if let Some(last) = changed.pages.get_mut(&(length / PAGE_BYTES as u64)) {
                last[within..].fill(0);
            }
        }
        changed.length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut changed = self.changed();
        let mut done = 0;
        for (page, within, count) in pages(offset, data.len()) {
            if !changed.pages.contains_key(&page) {
                if changed.pages.len() >= PAGES_MAX {
                    return Err(io::ErrorKind::OutOfMemory.into());
                }
                let mut bytes = Box::new([0; PAGE_BYTES]);
                self.read_below(&changed, page * PAGE_BYTES as u64, &mut bytes[..])?;
                changed.pages.insert(page, bytes);
            }
            if let Some(bytes) = changed.pages.get_mut(&page) {
                bytes[within..within + count].copy_from_slice(&data[done..done + count]);
            }
            done += count;
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.below.close()
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use redb::backends::InMemoryBackend;

    use super::*;

    fn contents(disk: &dyn StorageBackend) -> Vec<u8> {
        let mut bytes = vec![0; disk.len().unwrap() as usize];
        disk.read(0, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn it_reads_as_if_it_were_written_and_what_is_below_stays() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let below = InMemoryBackend::new();
        let mut model: Vec<u8> = (0..40_000).map(|_| rng.random()).collect();
        below.set_len(model.len() as u64).unwrap();
        below.write(0, &model).unwrap();
        let before = model.clone();
        let overlay = Overlay::new(Box::new(below)).unwrap();
        for _ in 0..2_000 {
            if rng.random_bool(0.1) {
                let length = rng.random_range(10_000..60_000);
                model.resize(length, 0);
                overlay.set_len(length as u64).unwrap();
            }
            let begin = rng.random_range(0..model.len());
            let end = rng.random_range(begin..model.len().min(begin + 9_000));
            let data: Vec<u8> = (begin..end).map(|_| rng.random()).collect();
            model[begin..end].copy_from_slice(&data);
            overlay.write(begin as u64, &data).unwrap();
            assert!(contents(&overlay) == model);
        }
        assert!(contents(&*overlay.below) == before);
        assert!(overlay.read(model.len() as u64, &mut [0]).is_err());
    }
}
