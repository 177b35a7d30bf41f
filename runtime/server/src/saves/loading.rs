//! Loading: a world that is made with what was saved of it.
//!
//! Whoever makes the world reads its record, on its own thread: the maker's, or that of a server that has not begun. What
//! of it is not on disk yet is handed along. No record is a world that begins; one that cannot be read is an error, and
//! stays as it is: a world made over it would take its place with the next save. A store that cannot be read now is asked again
//! later, as long as it takes. One whose load is the end of the process is
//! told by the [`load_journal`](super::load_journal).

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use throng_persistence::{Key, Reads};
use throng_profiler::{log_info, log_warn};
use throng_world::GameWorld;

use super::{LoadJournal, SAVES, record};
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

impl Load {
    /// Loads a world that has just been built, if its kind saves worlds. True: there was something.
    pub fn into_world(self, world: &mut GameWorld) -> Result<bool, WorldError> {
        if !world.can_save_world() {
            return Ok(false);
        }
        let name = world.name().to_string();
        let journal = self.journal.clone();
        let load = || match journal {
            Some(journal) => journal.load(self.id, || self.load(world)),
            None => self.load(world),
        };
        catch_unwind(AssertUnwindSafe(load)).unwrap_or(Err(WorldError::Panicked(name)))
    }

    fn load(&self, world: &mut GameWorld) -> Result<bool, WorldError> {
        let refused = |why: String| WorldError::Unreadable { kind: world.name().to_string(), id: self.id, why };
        let bytes = match &self.newest {
            Some(bytes) => bytes.clone(),
            None => match self.reads.get(Key::world(self.id)) {
                Err(cause) if !cause.is_final() => {
                    return Err(WorldError::StoreAway { kind: world.name().to_string(), id: self.id, cause });
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
                Ok(Some(saved)) => {
                    if saved.is_previous {
                        log_warn!(
                            SAVES,
                            save = self.id,
                            "the record of a world is damaged, and the one before it is loaded"
                        );
                    }
                    Arc::new(saved.value)
                }
            },
        };
        let state = record::read_world(world.name(), &bytes).map_err(|error| refused(error.to_string()))?;
        world.load(state).map_err(|why| WorldError::Unreadable { kind: world.name().to_string(), id: self.id, why })?;
        Ok(true)
    }
}
