//! Streaming: which sectors a world holds, which it asks for, and which it gives up.
//!
//! Around each player is a circle: what it touches is wanted. What a somewhat larger circle touches is kept, so that who
//! walks to and fro over a side has nothing baked. The nearest are asked for first, so many at a time.
//!
//! ```text
//!   follow(places)          what is wanted, from time to time
//!   next_work() -> work     to be done on a thread of low priority; its SectorDone comes back as a message
//!   take(done)              the sector is there: or, if nobody is near it any more, it is an orphan
//!   released()              what is given up: to be dropped on such a thread, too
//! ```
//!
//! A world's own thread; never locks but to fetch what has arrived. [`WorldSectors::follow`] allocates only when more
//! sectors are wanted than ever before. Cost: places times sectors in the larger circle, 10 ns each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use glam::Vec3;
use throng_profiler::scoped;

use super::damage::{DAMAGE_MAX, Damage};
use super::level::{SectorId, SectorLevel};
use super::sector::Sector;
use super::store::SectorStore;
use super::work::{Arrivals, DoneOutcome, Released, SectorDone, SectorWork, fetch};

/// Times of [`WorldSectors::follow`] that a sector which was refused is not asked for again.
const PATIENCE: u32 = 8;

/// What a world holds around its players.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamSettings {
    /// Sectors that come nearer to a player than this are wanted (m). Too low → players reach sides before what lies behind
    /// them, and ways end near; too high → memory.
    pub radius_m: f32,
    /// Sectors that are there are kept up to so much farther away (m). Too low → who walks to and fro has sectors come and
    /// go; too high → memory.
    pub keep_m: f32,
    /// Sectors on their way at a time [1 to 64]. Too low → who arrives waits; too high → what was asked for before a player
    /// turned around is done before what is needed now.
    pub pending_max: usize,
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self { radius_m: 96.0, keep_m: 32.0, pending_max: 8 }
    }
}

/// What a world did with sectors so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounts {
    /// Came, and were taken.
    pub streamed: u64,
    /// Came when nobody was near them any more, or were not baked for that reason.
    pub orphaned: u64,
    /// Replaced by one with more damage.
    pub rebaked: u64,
    /// Given up.
    pub released: u64,
    /// Refused for want of memory: asked for again later.
    pub refused: u64,
    /// Damage that was not taken: the list was full.
    pub damage_refused: u64,
}

#[derive(Clone)]
pub(super) struct Pending {
    pub ticket: u32,
    pub version: u32,
    pub is_unwanted: Arc<AtomicBool>,
    /// Of the caller, once it has begun.
    pub number: u64,
}

pub(super) struct Entry {
    pub id: SectorId,
    /// The last [`WorldSectors::follow`] that found a player near.
    pub seen: u32,
    /// The version that it should have.
    pub version: u32,
    /// Of the nearest player then (m).
    pub distance_m: f32,
    /// Not asked for before this one.
    pub not_before: u32,
    pub sector: Option<Arc<Sector>>,
    pub pending: Option<Pending>,
}

impl Entry {
    fn is_lacking(&self, follows: u32) -> bool {
        let has_it = self.sector.as_ref().is_some_and(|sector| sector.version() == self.version);
        !has_it && self.pending.is_none() && self.seen == follows && self.not_before <= follows
    }
}

/// The sectors of one world.
pub struct WorldSectors {
    pub(super) store: Arc<SectorStore>,
    pub(super) settings: StreamSettings,
    /// By id.
    pub(super) entries: Vec<Entry>,
    pub(super) damage: Vec<Damage>,
    pub(super) follows: u32,
    pub(super) next_ticket: u32,
    /// Changes when a sector comes, goes or is replaced: searches begin anew then.
    pub(super) generation: u32,
    pub(super) pending_count: usize,
    pub(super) arrivals: Arc<Arrivals>,
    pub(super) released: Vec<Arc<Sector>>,
    pub(super) counts: StreamCounts,
}

impl WorldSectors {
    /// Of a world that has none yet.
    pub fn new(store: Arc<SectorStore>, settings: StreamSettings) -> Self {
        Self {
            arrivals: Arrivals::of(&store),
            store,
            settings,
            entries: Vec::new(),
            damage: Vec::new(),
            follows: 0,
            next_ticket: 0,
            generation: 0,
            pending_count: 0,
            released: Vec::new(),
            counts: StreamCounts::default(),
        }
    }

    pub fn level(&self) -> &SectorLevel {
        self.store.level()
    }

    pub fn store(&self) -> &Arc<SectorStore> {
        &self.store
    }

    pub fn counts(&self) -> StreamCounts {
        self.counts
    }

    /// Sectors on their way.
    pub fn pending_count(&self) -> usize {
        self.pending_count
    }

    /// Whether no sector is there or on its way.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sectors that are there, by id.
    pub fn resident(&self) -> impl Iterator<Item = &Sector> {
        self.entries.iter().filter_map(|entry| entry.sector.as_deref())
    }

    /// A sector, if it is there.
    pub fn sector(&self, id: SectorId) -> Option<&Sector> {
        let index = self.index(id).ok()?;
        self.entries[index].sector.as_deref()
    }

    /// Memory held beside the sectors themselves.
    pub fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.damage.capacity() * size_of::<Damage>()
            + self.released.capacity() * size_of::<Arc<Sector>>()
    }

    /// What has come into being since the last call of this number is another surface.
    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// Looks which sectors are wanted by players at these places; not finite ones want none. Twice a second is enough:
    /// a runner is 3 m farther by then.
    #[scoped("query.follow")]
    pub fn follow(&mut self, places: impl IntoIterator<Item = Vec3>) {
        self.follows += 1;
        let kept_m = self.settings.radius_m + self.settings.keep_m;
        for place in places.into_iter().filter(|place| place.is_finite()) {
            let reach = Vec3::new(kept_m, 0.0, kept_m);
            let (first, last) = (self.level().sector_at(place - reach), self.level().sector_at(place + reach));
            for row in first.row..=last.row {
                for column in first.column..=last.column {
                    let id = SectorId { row, column };
                    let distance_m = self.level().distance_m(id, place);
                    if distance_m <= kept_m {
                        self.see(id, distance_m);
                    }
                }
            }
        }
        self.give_up_unseen();
    }

    fn see(&mut self, id: SectorId, distance_m: f32) {
        let follows = self.follows;
        let index = match self.index(id) {
            Ok(index) => index,
            Err(_) if distance_m > self.settings.radius_m => return,
            Err(index) => {
                let version = self.version_of(id);
                let entry = Entry { id, seen: 0, version, distance_m, not_before: 0, sector: None, pending: None };
                self.entries.insert(index, entry);
                index
            }
        };
        let entry = &mut self.entries[index];
        let is_first = entry.seen != follows;
        entry.distance_m = if is_first { distance_m } else { entry.distance_m.min(distance_m) };
        entry.seen = follows;
        if let Some(pending) = &entry.pending {
            pending.is_unwanted.store(false, Ordering::Relaxed);
        }
    }

    fn give_up_unseen(&mut self) {
        let (follows, released, generation) = (self.follows, &mut self.released, &mut self.generation);
        let released_before = released.len();
        self.entries.retain_mut(|entry| {
            if entry.seen == follows {
                return true;
            }
            if let Some(sector) = entry.sector.take() {
                released.push(sector);
                *generation += 1;
            }
            if let Some(pending) = &entry.pending {
                pending.is_unwanted.store(true, Ordering::Relaxed);
            }
            entry.pending.is_some()
        });
        self.counts.released += (self.released.len() - released_before) as u64;
    }

    /// The next sector to be got ready, the nearest to a player first; none if as many are on their way as may be.
    pub fn next_work(&mut self) -> Option<SectorWork> {
        if self.pending_count >= self.settings.pending_max {
            return None;
        }
        let follows = self.follows;
        let lacking = self.entries.iter_mut().filter(|entry| entry.is_lacking(follows));
        let entry = lacking.min_by(|one, other| one.distance_m.total_cmp(&other.distance_m))?;
        let pending = Pending {
            ticket: self.next_ticket,
            version: entry.version,
            is_unwanted: Arc::new(AtomicBool::new(false)),
            number: u64::MAX,
        };
        let work = SectorWork {
            ticket: pending.ticket,
            id: entry.id,
            damage: concerning(self.store.level(), entry.id, &self.damage).copied().collect(),
            store: self.store.clone(),
            arrivals: self.arrivals.clone(),
            is_unwanted: pending.is_unwanted.clone(),
        };
        entry.pending = Some(pending);
        self.next_ticket += 1;
        self.pending_count += 1;
        Some(work)
    }

    /// Work has begun under a number of the caller's.
    pub fn started(&mut self, ticket: u32, number: u64) {
        let pending = self.entries.iter_mut().filter_map(|entry| entry.pending.as_mut());
        if let Some(pending) = pending.into_iter().find(|pending| pending.ticket == ticket) {
            pending.number = number;
        }
    }

    /// Nothing will come of the work of this number: what it was for is asked for again in a while. False if it was none.
    pub fn lost(&mut self, number: u64) -> bool {
        let Some(index) = self.pending_where(|pending| pending.number == number) else { return false };
        self.end_pending(index);
        self.put_off(index);
        true
    }

    /// Work is done. What it brought is taken or, if nobody is near it any more, given up. False if this world does not know
    /// of it.
    pub fn take(&mut self, done: SectorDone) -> bool {
        let arrived = self.arrivals.take(done.ticket);
        let Some(index) = self.pending_where(|pending| pending.ticket == done.ticket) else {
            self.released.extend(arrived);
            return false;
        };
        let Some(pending) = self.end_pending(index) else { return false };
        let is_wanted = self.entries[index].seen == self.follows;
        match done.outcome {
            DoneOutcome::Ready if is_wanted => self.settle(index, pending.version, arrived),
            DoneOutcome::Ready | DoneOutcome::Orphaned => {
                self.counts.orphaned += 1;
                self.released.extend(arrived);
            }
            DoneOutcome::Full => {
                self.counts.refused += 1;
                self.put_off(index);
            }
        }
        if !is_wanted && self.entries[index].sector.is_none() {
            self.entries.remove(index);
        }
        true
    }

    fn settle(&mut self, index: usize, version: u32, arrived: Option<Arc<Sector>>) {
        let id = self.entries[index].id;
        // Not there only in a world that was made again: the one that had asked took it, or it went with that one.
        let sector = arrived.or_else(|| self.fetch(id, version));
        let Some(sector) = sector else {
            self.put_off(index);
            return;
        };
        self.generation += 1;
        self.counts.streamed += 1;
        if let Some(before) = self.entries[index].sector.replace(sector) {
            self.counts.rebaked += 1;
            self.released.push(before);
        }
    }

    /// A sector with the first so many entries of what concerns it.
    pub(super) fn fetch(&self, id: SectorId, version: u32) -> Option<Arc<Sector>> {
        let damage = concerning(self.level(), id, &self.damage).take(version as usize).copied();
        fetch(&self.store, id, &damage.collect::<Vec<_>>())
    }

    fn put_off(&mut self, index: usize) {
        self.entries[index].not_before = self.follows + PATIENCE;
    }

    fn pending_where(&self, is_it: impl Fn(&Pending) -> bool) -> Option<usize> {
        self.entries.iter().position(|entry| entry.pending.as_ref().is_some_and(&is_it))
    }

    fn end_pending(&mut self, index: usize) -> Option<Pending> {
        self.pending_count -= 1;
        self.entries[index].pending.take()
    }

    /// What was given up since the last call, to be dropped on a thread of low priority.
    pub fn released(&mut self) -> Option<Released> {
        let sectors = std::mem::take(&mut self.released);
        (!sectors.is_empty()).then(|| Released { store: self.store.clone(), sectors })
    }

    /// What was changed of the level here, in order.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Takes a change of the level in this world: sectors that it concerns are baked again, and the old ones answer until
    /// then. False if it changes nothing (no such box, one that is gone, one without volume) or there were [`DAMAGE_MAX`].
    pub fn change(&mut self, change: Damage) -> bool {
        let is_news = match change {
            Damage::Removed { solid } => {
                (solid as usize) < self.level().geometry().boxes().len() && !self.damage.contains(&change)
            }
            Damage::Added { min, max } => min.is_finite() && max.is_finite() && min.cmplt(max).all(),
        };
        if !is_news {
            return false;
        }
        if self.damage.len() == DAMAGE_MAX {
            self.counts.damage_refused += 1;
            return false;
        }
        self.damage.push(change);
        let level = self.store.level();
        for entry in &mut self.entries {
            entry.version += u32::from(change.concerns(level, entry.id));
        }
        true
    }

    pub(super) fn version_of(&self, id: SectorId) -> u32 {
        concerning(self.level(), id, &self.damage).count() as u32
    }

    fn index(&self, id: SectorId) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&id, |entry| entry.id)
    }

    /// Asserts what all else relies on.
    pub fn check(&self) {
        assert!(self.entries.is_sorted_by(|one, other| one.id < other.id));
        assert_eq!(self.entries.iter().filter(|entry| entry.pending.is_some()).count(), self.pending_count);
        assert!(self.pending_count <= self.settings.pending_max);
        for entry in &self.entries {
            assert_eq!(entry.version, self.version_of(entry.id));
            assert!(entry.sector.as_ref().is_none_or(|sector| sector.id() == entry.id));
            assert!(entry.sector.as_ref().is_none_or(|sector| sector.version() <= entry.version));
        }
    }
}

impl Drop for WorldSectors {
    /// On the thread that drops the world, which is one of low priority.
    fn drop(&mut self) {
        let held = self.entries.drain(..).filter_map(|entry| entry.sector);
        self.store.give_back(held.chain(self.released.drain(..)));
    }
}

fn concerning<'a>(level: &SectorLevel, id: SectorId, damage: &'a [Damage]) -> impl Iterator<Item = &'a Damage> {
    damage.iter().filter(move |change| change.concerns(level, id))
}
