//! Work: a sector that is got ready beside the ticks, and what comes of it.
//!
//! The sector itself does not go through the message: the work leaves it with the world ([`Arrivals`]) or, if the world
//! was made again since, it is got from the store once more. So all that a world is depends on its messages alone.
//!
//! Runs on threads of low priority. Allocates.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use throng_pack::Pack;
use throng_profiler::sync::Mutex;

use super::damage::Damage;
use super::level::SectorId;
use super::sector::Sector;
use super::store::SectorStore;

/// How much work a sector is: long tasks of a kind are estimated by those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// It is to be baked, for all worlds.
    Bake,
    /// It is there: a look-up.
    Share,
    /// It is to be baked with this world's damage.
    Damaged,
}

/// A sector to be got ready. Whoever has it runs it, on a thread that may take its time.
pub struct SectorWork {
    pub(super) ticket: u32,
    pub(super) id: SectorId,
    pub(super) damage: Box<[Damage]>,
    pub(super) store: Arc<SectorStore>,
    pub(super) arrivals: Arc<Arrivals>,
    pub(super) is_unwanted: Arc<AtomicBool>,
}

impl SectorWork {
    /// By which [`WorldSectors::started`](super::WorldSectors::started) and [`lost`](super::WorldSectors::lost) know it.
    pub fn ticket(&self) -> u32 {
        self.ticket
    }

    pub fn id(&self) -> SectorId {
        self.id
    }

    pub fn kind(&self) -> WorkKind {
        match self.damage.is_empty() {
            false => WorkKind::Damaged,
            true if self.store.is_here(self.id) => WorkKind::Share,
            true => WorkKind::Bake,
        }
    }

    /// Does it, and gives what the world is to be told. Bakes for some 20 ms where there is something to bake.
    pub fn run(self) -> SectorDone {
        let Self { ticket, id, damage, store, arrivals, is_unwanted } = self;
        // Relaxed: that it is not wanted is worth nothing but time.
        let outcome = if is_unwanted.load(Ordering::Relaxed) {
            DoneOutcome::Orphaned
        } else {
            match fetch(&store, id, &damage) {
                Some(sector) => {
                    arrivals.sectors.lock().push((ticket, sector));
                    DoneOutcome::Ready
                }
                None => DoneOutcome::Full,
            }
        };
        SectorDone { ticket, outcome }
    }
}

pub(super) fn fetch(store: &SectorStore, id: SectorId, damage: &[Damage]) -> Option<Arc<Sector>> {
    if damage.is_empty() { store.sector(id).ok() } else { store.damaged(id, damage).ok() }
}

/// What a world is told of work that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pack)]
#[pack(name = "throng.sector_done")]
pub struct SectorDone {
    pub(super) ticket: u32,
    pub(super) outcome: DoneOutcome,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pack)]
#[pack(name = "throng.sector_outcome")]
pub enum DoneOutcome {
    Ready,
    /// Its player had left before it was begun.
    Orphaned,
    /// There was no memory for it.
    Full,
}

/// Sectors that work has left for a world. If the world ends before it takes them, they end with the last work, on its thread.
pub(super) struct Arrivals {
    store: Arc<SectorStore>,
    sectors: Mutex<Vec<(u32, Arc<Sector>)>>,
}

impl Arrivals {
    pub fn of(store: &Arc<SectorStore>) -> Arc<Self> {
        Arc::new(Self { store: store.clone(), sectors: Mutex::new("nav.arrivals", Vec::new()) })
    }

    pub fn take(&self, ticket: u32) -> Option<Arc<Sector>> {
        let mut sectors = self.sectors.lock();
        let index = sectors.iter().position(|(of, _)| *of == ticket)?;
        Some(sectors.swap_remove(index).1)
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        let left = std::mem::take(&mut *self.sectors.lock());
        self.store.give_back(left.into_iter().map(|(_, sector)| sector));
    }
}

/// Sectors that a world has given up. Dropping it drops those that nobody else holds, which takes long.
pub struct Released {
    pub(super) store: Arc<SectorStore>,
    pub(super) sectors: Vec<Arc<Sector>>,
}

impl Released {
    pub fn count(&self) -> usize {
        self.sectors.len()
    }

    /// What they take, whether others hold them or not.
    pub fn bytes(&self) -> u64 {
        self.sectors.iter().map(|sector| sector.bytes()).sum()
    }
}

impl Drop for Released {
    fn drop(&mut self) {
        self.store.give_back(self.sectors.drain(..));
    }
}
