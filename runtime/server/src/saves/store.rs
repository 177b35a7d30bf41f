//! Which store the settings mean, and opening it.

use std::{
    io,
    path::{Path, PathBuf},
};

use throng_persistence::{Embedded, Store, StoreError};
use throng_profiler::log_info;

use super::counts::SAVES;
use crate::{
    settings::{SaveStore, SavesSettings, Settings},
    token_journal::STATE_FOLDER_VARIABLE,
};

/// The file in its folder. Its name has no address in it: a server that is moved to another port has its saves still.
pub(super) const FILE: &str = "saves.redb";

/// The store that is opened when the first world is made that is to be saved.
#[derive(Default)]
pub(crate) struct StoreToOpen {
    pub settings: SavesSettings,
    pub beside: Option<PathBuf>,
    /// The settings are not asked any more, or never were.
    pub is_done: bool,
    /// It is written on the frame's thread.
    pub is_inline: bool,
}

impl StoreToOpen {
    /// As the settings have it.
    pub fn of(settings: &Settings) -> StoreToOpen {
        let beside = settings.folder();
        StoreToOpen { settings: settings.saves.clone(), beside, is_done: false, is_inline: false }
    }

    /// What a program says, if it says anything.
    pub fn untouched(settings: &Settings) -> StoreToOpen {
        StoreToOpen { settings: settings.saves.clone(), beside: None, is_done: true, is_inline: true }
    }
}

/// There are to be saves, and there cannot be. A server that began without would let players begin anew.
#[derive(Debug, thiserror::Error)]
pub enum StoreOpenError {
    #[error(
        "{}: the saves of another server that runs are in it; stop that one, or name another folder in [saves] folder", .0.display()
    )]
    InUse(PathBuf),
    #[error(
        "{}: cannot be opened for saves: {cause}; let this user write its folder, name another in [saves] folder, or write \
         [saves] store = \"none\" to keep nothing", .path.display()
    )]
    File { path: PathBuf, cause: StoreError },
    #[error("{}: cannot be read as saves: {cause}", .path.display())]
    Unreadable { path: PathBuf, cause: StoreError },
    #[error("the PostgreSQL of [saves] postgres cannot be used: {0}")]
    Postgres(StoreError),
    #[error(
        "[saves] store = \"postgres\": this program was built without it; build it with the feature `postgres` of `throng`"
    )]
    NoPostgres,
    #[error("[saves] store = \"embedded\": there is no place for the file; name a folder in [saves] folder")]
    NoFolder,
    #[error("a thread that saves cannot start: {0}; raise `ulimit -u` or the container's pids limit")]
    Thread(#[from] io::Error),
}

/// Where it is noted which worlds are being loaded: beside the file of the saves, or where that would be. `None`: nowhere.
pub(crate) fn loads_as_set(
    settings: &SavesSettings,
    beside: Option<&Path>,
    environment: impl Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    // Processes that share a PostgreSQL may share a folder.
    let folder = folder_as_set(settings, beside, environment)?;
    Some(folder.join(format!("loads-of-{}.journal", settings.process)))
}

pub(super) fn folder_as_set(
    settings: &SavesSettings,
    beside: Option<&Path>,
    environment: impl Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    let state = environment(STATE_FOLDER_VARIABLE);
    let state = state.and_then(|folders| folders.split(':').next().map(PathBuf::from));
    settings.folder.clone().or(state).or(beside.map(Path::to_owned))
}

/// Opens what the settings mean; `None` if nothing is to be kept. `beside` is the folder of the settings' file, if they are
/// from one; `environment` looks a variable up.
pub(crate) fn open_as_set(
    settings: &SavesSettings,
    beside: Option<&Path>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<Box<dyn Store>>, StoreOpenError> {
    match settings.store {
        SaveStore::None => Ok(None),
        SaveStore::Postgres => open_postgres(settings).map(Some),
        SaveStore::Embedded | SaveStore::Auto => match folder_as_set(settings, beside, environment) {
            Some(folder) => open_file(folder.join(FILE)).map(Some),
            None if settings.store == SaveStore::Embedded => Err(StoreOpenError::NoFolder),
            None => {
                log_info!(
                    SAVES,
                    "nothing is kept when this server ends, since there is no settings file and no state folder: write a \
                         throng.toml, or name a folder in [saves] folder"
                );
                Ok(None)
            }
        },
    }
}

fn open_file(path: PathBuf) -> Result<Box<dyn Store>, StoreOpenError> {
    match Embedded::open(&path) {
        Ok(store) => {
            log_info!(SAVES, file = %path.display(), "players and worlds are saved");
            Ok(Box::new(store))
        }
        Err(StoreError::InUse) => Err(StoreOpenError::InUse(path)),
        Err(cause) => Err(StoreOpenError::File { path, cause }),
    }
}

#[cfg(feature = "postgres")]
fn open_postgres(settings: &SavesSettings) -> Result<Box<dyn Store>, StoreOpenError> {
    let parameters = settings.postgres.as_deref().unwrap_or_default();
    let store = throng_persistence::postgres::Postgres::connect(parameters, u64::from(settings.process));
    let store = store.map_err(StoreOpenError::Postgres)?;
    log_info!(SAVES, process = settings.process, "players and worlds are saved in PostgreSQL");
    Ok(Box::new(store))
}

#[cfg(not(feature = "postgres"))]
fn open_postgres(_: &SavesSettings) -> Result<Box<dyn Store>, StoreOpenError> {
    Err(StoreOpenError::NoPostgres)
}
