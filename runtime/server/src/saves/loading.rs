//! Loading: a world that is made with what was saved of it, and what is read of a player.
//!
//! A world's record is read first, where the disk may be waited for: by the thread for that ([`super::reader`]), or that of a server
//! that has not begun. Whoever makes the world has it take up what was read. What of it is not on disk yet is handed along. No record
//! is a world that begins; one that cannot be read is an error, and stays as it is: a world made over it would take its place with the
//! next save. A store that cannot be read now is asked again later, as long as it takes. One whose load is the end of the process is
//! told by the [`load_journal`](super::load_journal).

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use throng_persistence::{Key, Reads, Saved, StoreError};
use throng_profiler::{log_info, log_warn};
use throng_world::GameWorld;

use super::{
    counts::SAVES,
    load_journal::{LoadJournal, Running},
    reader::ToRead,
    record,
};
use crate::lifecycle::WorldError;

/// What a world is loaded from.
#[derive(Clone)]
pub(crate) struct Load {
    pub id: u64,
    /// What is newer than the store.
    pub newest: Option<Arc<Vec<u8>>>,
    pub reads: Arc<dyn Reads>,
    /// Where loads are noted that are running.
    pub journal: Option<Arc<LoadJournal>>,
}

/// What is saved of a world, as it was read.
pub(crate) struct Record {
    id: u64,
    found: Result<Option<Arc<Vec<u8>>>, StoreError>,
    /// The load is running until this is dropped.
    _running: Option<Running>,
}

/// The record under a key. Waits for the disk; a panic of the store's is an error of this read alone.
pub(crate) fn get(reads: &dyn Reads, key: Key) -> Result<Option<Saved>, StoreError> {
    catch_unwind(AssertUnwindSafe(|| reads.get(key))).unwrap_or(Err(StoreError::Panicked))
}

/// What a player is loaded from.
pub(crate) struct PlayerLoad {
    pub player: u64,
    /// Whether they were left out of a save ([`throng_persistence::Kind::LeftOut`]), where that is newer than the store.
    pub is_left_out: Option<bool>,
    pub reads: Arc<dyn Reads>,
}

/// What is saved of a player, as it was read.
pub(crate) struct PlayerRecord {
    pub player: u64,
    pub found: Result<PlayerFound, StoreError>,
}

pub(crate) struct PlayerFound {
    pub saved: Option<Saved>,
    /// It is older than what others have of them.
    pub is_left_out: bool,
}

impl ToRead for PlayerLoad {
    type Found = PlayerRecord;
    const THREAD: &'static str = "player-reader";

    fn read(self) -> PlayerRecord {
        let PlayerLoad { player, is_left_out, reads } = self;
        let find = || -> Result<PlayerFound, StoreError> {
            let is_left_out = match is_left_out {
                Some(is_left_out) => is_left_out,
                None => get(&*reads, Key::left_out(player))?.is_some(),
            };
            Ok(PlayerFound { saved: get(&*reads, Key::player(player))?, is_left_out })
        };
        PlayerRecord { player, found: find() }
    }
}

impl ToRead for Load {
    type Found = Record;
    const THREAD: &'static str = "world-reader";

    /// Notes that the world is being loaded, and reads its record.
    fn read(self) -> Record {
        let running = self.journal.as_ref().map(|journal| journal.begin(self.id));
        let found = match &self.newest {
            Some(bytes) => Ok(Some(bytes.clone())),
            None => self.read_from_store(),
        };
        Record { id: self.id, found, _running: running }
    }
}

impl Load {
    fn read_from_store(&self) -> Result<Option<Arc<Vec<u8>>>, StoreError> {
        let saved = get(&*self.reads, Key::world(self.id))?;
        if saved.as_ref().is_some_and(|saved| saved.is_previous) {
            log_warn!(SAVES, save = self.id, "the record of a world is damaged, and the one before it is loaded");
        }
        Ok(saved.map(|saved| Arc::new(saved.value)))
    }

    /// Loads a world that has just been built, if its kind saves worlds. True: there was something. Waits for the disk.
    pub fn into_world(self, world: &mut GameWorld) -> Result<bool, WorldError> {
        if !world.can_save_world() {
            return Ok(false);
        }
        let journal = self.journal.clone();
        let loaded = self.read().into_world(world);
        journal.iter().for_each(|journal| journal.write_if_stale());
        loaded
    }
}

impl Record {
    /// Has a world that has just been built take up what was read, if its kind saves worlds. True: there was something.
    pub fn into_world(self, world: &mut GameWorld) -> Result<bool, WorldError> {
        if !world.can_save_world() {
            return Ok(false);
        }
        let name = world.name().to_string();
        let load = || self.load(world);
        catch_unwind(AssertUnwindSafe(load)).unwrap_or(Err(WorldError::Panicked(name)))
    }

    fn load(&self, world: &mut GameWorld) -> Result<bool, WorldError> {
        let kind = || world.name().to_string();
        let refused = |why: String| WorldError::Unreadable { kind: kind(), id: self.id, why };
        let bytes = match &self.found {
            Err(cause) if !cause.is_final() => {
                return Err(WorldError::StoreAway { kind: kind(), id: self.id, cause: cause.clone() });
            }
            Err(cause) => return Err(refused(cause.to_string())),
            Ok(None) => {
                log_info!(
                    SAVES,
                    kind = &**world.name(),
                    save = self.id,
                    "nothing is saved of this world yet: it begins anew"
                );
                return Ok(false);
            }
            Ok(Some(bytes)) => bytes,
        };
        let state = record::read_world(world.name(), bytes).map_err(|error| refused(error.to_string()))?;
        world.load(state).map_err(|why| WorldError::Unreadable { kind: world.name().to_string(), id: self.id, why })?;
        Ok(true)
    }
}
