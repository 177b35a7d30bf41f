//! The store: the sectors that all worlds of a level share.
//!
//! A sector is baked when the first world asks for it, by that world's long task; whoever asks meanwhile waits for the same
//! bake. It stays for as long as a world holds it. What nobody holds may stay too, up to [`StoreLimits::idle_bytes_max`]: the
//! least recently asked for goes first. All memory together has a maximum: what does not fit is refused and counted, and
//! its world does without for a while.
//!
//! Any thread, but no thread that ticks: [`SectorStore::sector`] bakes, what is given back is dropped where it is given back.
//! The figures ([`SectorStore::counts`]) are read without the lock. A lock is held for look-ups only, never for a bake.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use throng_profiler::sync::Mutex;

use super::damage::Damage;
use super::level::{SectorId, SectorLevel};
use super::sector::Sector;
use crate::nav::bake::BakeError;

/// How much memory sectors may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Of all sectors, damaged ones included. (bytes) Too low → worlds are refused sectors and their players stand before
    /// walls of air; too high → nothing but memory.
    pub bytes_max: u64,
    /// Of sectors that no world holds. (bytes) 0 → they are dropped when the last world gives them back; higher → who comes
    /// back does not wait for a bake.
    pub idle_bytes_max: u64,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self { bytes_max: 256 << 20, idle_bytes_max: 16 << 20 }
    }
}

/// What became of sectors, and what is there at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Shared sectors in memory.
    pub resident: u64,
    /// What they take. (bytes)
    pub bytes: u64,
    /// Worlds' own, damaged sectors in memory.
    pub damaged: u64,
    /// What they take. (bytes)
    pub damaged_bytes: u64,
    /// Shared ones baked so far.
    pub baked: u64,
    /// Asked for and already there.
    pub found: u64,
    /// Damaged ones baked so far.
    pub damaged_baked: u64,
    /// Of either kind, dropped so far.
    pub dropped: u64,
    /// Asked for while memory was full.
    pub refused: u64,
    /// Whose bake failed; they are without ground.
    pub failed: u64,
}

/// Counts of what a store's sectors do: each sector has it, so that its drop is counted wherever that happens.
#[derive(Default)]
pub(super) struct Tally {
    resident: AtomicU64,
    bytes: AtomicU64,
    damaged: AtomicU64,
    damaged_bytes: AtomicU64,
    baked: AtomicU64,
    found: AtomicU64,
    damaged_baked: AtomicU64,
    dropped: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

// Relaxed throughout: these are figures, and no other memory is read by what they say.
impl Tally {
    pub fn made(&self, is_damaged: bool, bytes: u64) {
        let [count, sum, baked] = self.of(is_damaged);
        count.fetch_add(1, Ordering::Relaxed);
        sum.fetch_add(bytes, Ordering::Relaxed);
        baked.fetch_add(1, Ordering::Relaxed);
    }

    pub fn dropped(&self, is_damaged: bool, bytes: u64) {
        let [count, sum, _] = self.of(is_damaged);
        count.fetch_sub(1, Ordering::Relaxed);
        sum.fetch_sub(bytes, Ordering::Relaxed);
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    fn of(&self, is_damaged: bool) -> [&AtomicU64; 3] {
        if is_damaged {
            [&self.damaged, &self.damaged_bytes, &self.damaged_baked]
        } else {
            [&self.resident, &self.bytes, &self.baked]
        }
    }
}

/// No sector: there is no memory for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sectors take as much memory as they may; raise StoreLimits::bytes_max or have fewer around each player")]
pub struct StoreFull;

/// The sectors of one level.
pub struct SectorStore {
    level: SectorLevel,
    limits: StoreLimits,
    shelves: Mutex<Shelves>,
    /// Whether each sector is there: a hint for whoever estimates what asking for it costs.
    is_here: Box<[AtomicU64]>,
    tally: Arc<Tally>,
}

struct Shelves {
    /// By [`SectorStore::place`].
    places: Vec<Option<Shelf>>,
    /// Counts requests, so that the least recent is known.
    requests: u64,
    /// The newest failure, for a log line.
    failure: Option<(SectorId, BakeError)>,
}

struct Shelf {
    baked: Arc<OnceLock<Arc<Sector>>>,
    asked: u64,
}

impl Shelf {
    /// Whether nobody else has it. Under the lock this cannot change: whoever gets it, gets it from here.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.baked) == 1 && self.baked.get().is_some_and(|sector| Arc::strong_count(sector) == 1)
    }
}

impl SectorStore {
    pub fn new(level: SectorLevel, limits: StoreLimits) -> Arc<Self> {
        let count = level.sector_count();
        let shelves = Shelves { places: (0..count).map(|_| None).collect(), requests: 0, failure: None };
        Arc::new(Self {
            is_here: (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            shelves: Mutex::new("nav.sectors", shelves),
            level,
            limits,
            tally: Arc::default(),
        })
    }

    pub fn level(&self) -> &SectorLevel {
        &self.level
    }

    pub fn limits(&self) -> StoreLimits {
        self.limits
    }

    /// A shared sector; baked now if it is not there. One whose bake fails is without ground, and counted.
    ///
    /// # Panics
    /// If the level has no such sector.
    pub fn sector(&self, id: SectorId) -> Result<Arc<Sector>, StoreFull> {
        assert!(self.level.holds(id), "{id:?} is no sector of the level");
        let place = self.place(id);
        let shelf = {
            let mut shelves = self.shelves.lock();
            shelves.requests += 1;
            let asked = shelves.requests;
            let shelf = shelves.places[place].get_or_insert_with(|| Shelf { baked: Arc::default(), asked });
            shelf.asked = asked;
            shelf.baked.clone()
        };
        if let Some(sector) = shelf.get() {
            self.tally.found.fetch_add(1, Ordering::Relaxed);
            return Ok(sector.clone());
        }
        if !self.has_room() {
            return Err(StoreFull);
        }
        // Others who want this one wait here, on their threads of low priority; nobody waits under the lock.
        let sector = shelf.get_or_init(|| Arc::new(self.bake(id, &[]))).clone();
        self.is_here[place / 64].fetch_or(1 << (place % 64), Ordering::Relaxed);
        Ok(sector)
    }

    /// A sector with damage, for one world alone.
    pub fn damaged(&self, id: SectorId, damage: &[Damage]) -> Result<Arc<Sector>, StoreFull> {
        assert!(self.level.holds(id), "{id:?} is no sector of the level");
        if !self.has_room() {
            return Err(StoreFull);
        }
        Ok(Arc::new(self.bake(id, damage)))
    }

    /// Takes sectors back, and drops what nobody holds beyond what may be idle.
    pub fn give_back(&self, sectors: impl IntoIterator<Item = Arc<Sector>>) {
        sectors.into_iter().for_each(drop);
        self.trim(self.limits.idle_bytes_max);
    }

    /// Whether the sector was there a moment ago: what it costs to ask for it, not what will come of it.
    pub fn is_here(&self, id: SectorId) -> bool {
        let place = self.place(id);
        self.is_here[place / 64].load(Ordering::Relaxed) >> (place % 64) & 1 == 1
    }

    pub fn counts(&self) -> StoreCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let tally = &*self.tally;
        StoreCounts {
            resident: read(&tally.resident),
            bytes: read(&tally.bytes),
            damaged: read(&tally.damaged),
            damaged_bytes: read(&tally.damaged_bytes),
            baked: read(&tally.baked),
            found: read(&tally.found),
            damaged_baked: read(&tally.damaged_baked),
            dropped: read(&tally.dropped),
            refused: read(&tally.refused),
            failed: read(&tally.failed),
        }
    }

    /// The newest sector whose bake failed, and why.
    pub fn failure(&self) -> Option<(SectorId, BakeError)> {
        self.shelves.lock().failure.clone()
    }

    fn place(&self, id: SectorId) -> usize {
        usize::from(id.row) * usize::from(self.level.columns()) + usize::from(id.column)
    }

    fn bake(&self, id: SectorId, damage: &[Damage]) -> Sector {
        Sector::bake(&self.level, id, damage, &self.tally).unwrap_or_else(|error| {
            self.tally.failed.fetch_add(1, Ordering::Relaxed);
            self.shelves.lock().failure = Some((id, error));
            Sector::without_ground(&self.level, id, damage.len() as u32, &self.tally)
        })
    }

    /// May go over by one sector for each thread that bakes.
    fn has_room(&self) -> bool {
        let is_full = || {
            let counts = self.counts();
            counts.bytes + counts.damaged_bytes >= self.limits.bytes_max
        };
        if is_full() {
            self.trim(0);
        }
        let has_room = !is_full();
        if !has_room {
            self.tally.refused.fetch_add(1, Ordering::Relaxed);
        }
        has_room
    }

    fn trim(&self, idle_bytes_max: u64) {
        let mut dropped: Vec<Shelf> = Vec::new();
        {
            let mut shelves = self.shelves.lock();
            let mut idle: Vec<(u64, usize, u64)> = shelves
                .places
                .iter()
                .enumerate()
                .filter_map(|(place, shelf)| {
                    let shelf = shelf.as_ref().filter(|shelf| shelf.is_idle())?;
                    Some((shelf.asked, place, shelf.baked.get()?.bytes()))
                })
                .collect();
            let mut bytes: u64 = idle.iter().map(|(_, _, bytes)| bytes).sum();
            idle.sort_unstable();
            for (_, place, of_one) in idle {
                if bytes <= idle_bytes_max {
                    break;
                }
                bytes -= of_one;
                self.is_here[place / 64].fetch_and(!(1 << (place % 64)), Ordering::Relaxed);
                dropped.extend(shelves.places[place].take());
            }
        }
        drop(dropped); // outside of the lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nav::sectors::testing::town;

    fn store(limits: StoreLimits) -> Arc<SectorStore> {
        SectorStore::new(town(1, 4), limits)
    }

    fn id(row: u16, column: u16) -> SectorId {
        SectorId { row, column }
    }

    #[test]
    fn a_sector_is_baked_once_and_shared() {
        let store = store(StoreLimits::default());
        let (one, other) = (store.sector(id(1, 1)).unwrap(), store.sector(id(1, 1)).unwrap());
        assert!(Arc::ptr_eq(&one, &other));
        let counts = store.counts();
        assert_eq!((counts.baked, counts.found, counts.resident, counts.bytes), (1, 1, 1, one.bytes()));
        assert!(store.is_here(id(1, 1)) && !store.is_here(id(1, 2)));
    }

    #[test]
    fn threads_that_want_the_same_sector_bake_it_once() {
        let store = store(StoreLimits::default());
        let sectors: Vec<Arc<Sector>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| store.sector(id(2, 2)).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(sectors.iter().all(|sector| Arc::ptr_eq(sector, &sectors[0])));
        assert_eq!(store.counts().baked, 1);
    }

    #[test]
    fn what_nobody_holds_goes_the_least_recent_first() {
        let probe = store(StoreLimits::default()).sector(id(0, 0)).unwrap().bytes();
        let store = store(StoreLimits { idle_bytes_max: 2 * probe + probe / 2, ..StoreLimits::default() });
        let held = store.sector(id(0, 0)).unwrap();
        let others: Vec<_> = (0..4).map(|column| store.sector(id(1, column)).unwrap()).collect();
        store.give_back(others);
        let counts = store.counts();
        assert!(store.is_here(id(0, 0)), "somebody holds it");
        assert!(!store.is_here(id(1, 0)) && store.is_here(id(1, 3)), "{counts:?}");
        assert!(counts.bytes - held.bytes() <= store.limits().idle_bytes_max && counts.dropped > 0, "{counts:?}");
    }

    #[test]
    fn what_does_not_fit_is_refused_and_counted() {
        let store = store(StoreLimits { bytes_max: 1, idle_bytes_max: 0 });
        let held = store.sector(id(0, 0)).unwrap();
        assert_eq!(store.sector(id(0, 1)).err(), Some(StoreFull));
        assert_eq!(store.damaged(id(0, 0), &[Damage::Removed { solid: 1 }]).err(), Some(StoreFull));
        assert_eq!(store.counts().refused, 2);
        drop(held);
        assert!(store.sector(id(0, 1)).is_ok(), "what is idle makes room");
        assert!(!store.is_here(id(0, 0)));
    }
}
