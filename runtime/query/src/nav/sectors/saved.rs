//! Saved: the sectors of a world in a checkpoint. A short list: which are there, which are on their way, what is damaged.
//! No mesh: a bake gives the same one again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use throng_pack::{List, Pack};

use super::damage::{DAMAGE_MAX, Damage};
use super::level::{SECTORS_PER_SIDE_MAX, SectorId};
use super::streaming::{Entry, Pending, WorldSectors};

/// Sectors that one world may hold or ask for: all of the largest level.
pub const HELD_MAX: usize = (SECTORS_PER_SIDE_MAX * SECTORS_PER_SIDE_MAX) as usize;

/// The sectors of a world in a checkpoint: which, and what is damaged, but no mesh.
#[derive(Clone, Debug, Default, PartialEq, Pack)]
#[pack(name = "throng.world_sectors")]
pub struct SavedSectors {
    follows: u32,
    next_ticket: u32,
    generation: u32,
    damage: List<Damage, DAMAGE_MAX>,
    entries: List<SavedEntry, HELD_MAX>,
}

#[derive(Clone, Copy, Debug, PartialEq, Pack)]
#[pack(name = "throng.world_sector")]
struct SavedEntry {
    id: SectorId,
    seen: u32,
    distance_m: f32,
    not_before: u32,
    /// Of the sector that is there.
    version: Option<u32>,
    pending: Option<SavedPending>,
}

#[derive(Clone, Copy, Debug, PartialEq, Pack)]
#[pack(name = "throng.pending_sector")]
struct SavedPending {
    ticket: u32,
    version: u32,
    number: u64,
    is_unwanted: bool,
}

impl WorldSectors {
    /// What is kept of it between two ticks.
    pub fn save(&self) -> SavedSectors {
        let entry = |entry: &Entry| SavedEntry {
            id: entry.id,
            seen: entry.seen,
            distance_m: entry.distance_m,
            not_before: entry.not_before,
            version: entry.sector.as_ref().map(|sector| sector.version()),
            pending: entry.pending.as_ref().map(|pending| SavedPending {
                ticket: pending.ticket,
                version: pending.version,
                number: pending.number,
                is_unwanted: pending.is_unwanted.load(Ordering::Relaxed),
            }),
        };
        let entries: Vec<SavedEntry> = self.entries.iter().map(entry).collect();
        SavedSectors {
            follows: self.follows,
            next_ticket: self.next_ticket,
            generation: self.generation,
            damage: self.damage.clone().try_into().expect("no more than may be"),
            entries: entries.try_into().expect("no more than a level has"),
        }
    }

    /// Becomes what another run of this world held. Bakes what is not in the store: only where a world is being made. A
    /// sector for which there is no memory is asked for again.
    pub fn load(&mut self, saved: SavedSectors) {
        self.released.extend(self.entries.drain(..).filter_map(|entry| entry.sector));
        (self.follows, self.next_ticket, self.generation) = (saved.follows, saved.next_ticket, saved.generation);
        self.damage = saved.damage.into_vec();
        for entry in saved.entries.iter().filter(|entry| self.store.level().holds(entry.id)) {
            let SavedEntry { id, seen, distance_m, not_before, version, pending } = *entry;
            let sector = version.and_then(|version| self.fetch(id, version));
            let pending = pending.map(|SavedPending { ticket, version, number, is_unwanted }| Pending {
                ticket,
                version,
                number,
                is_unwanted: Arc::new(AtomicBool::new(is_unwanted)),
            });
            let version = self.version_of(id);
            self.entries.push(Entry { id, seen, version, distance_m, not_before, sector, pending });
        }
        self.entries.sort_unstable_by_key(|entry| entry.id);
        self.entries.dedup_by_key(|entry| entry.id);
        self.pending_count = self.entries.iter().filter(|entry| entry.pending.is_some()).count();
    }
}
