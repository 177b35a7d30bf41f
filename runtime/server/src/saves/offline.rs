//! Offline: the saves of a server that does not run, to be looked at by an operator.
//!
//! Nothing here writes: a file is opened to be read alone, and PostgreSQL is asked as anybody may. What a record is follows
//! from its heading (`record.rs`) and from the envelope of the game's value in it; what the value says is the game's.
//!
//! Any thread but a frame's: it waits for the disk.

use std::{path::Path, path::PathBuf, sync::Arc};

use throng_pack::envelope::Envelope;
use throng_persistence::Embedded;
pub use throng_persistence::{
    ItemKind, Key, Kind, Reads, Saved, StoreError,
    inspection::{Inspection, KindCount, inspect},
};

use super::{
    StoreOpenError, record,
    store::{FILE, folder_as_set},
};
use crate::settings::{SaveStore, Settings};

/// Where saves are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SavedAt {
    File(PathBuf),
    /// What PostgreSQL is reached by.
    Postgres(String),
}

/// Saves that can be read.
pub struct Opened {
    pub reads: Arc<dyn Reads>,
    /// What is wrong with the file as a whole, if anything is: some records may be read all the same.
    pub pages: Result<(), StoreError>,
}

impl SavedAt {
    /// Where a server with these settings has them; `None` if it keeps nothing, or has no place for it.
    pub fn of(settings: &Settings) -> Option<SavedAt> {
        match settings.saves.store {
            SaveStore::None => None,
            SaveStore::Postgres => settings.saves.postgres.clone().map(SavedAt::Postgres),
            SaveStore::Auto | SaveStore::Embedded => {
                let environment = |name: &str| std::env::var(name).ok();
                let folder = folder_as_set(&settings.saves, settings.folder().as_deref(), environment);
                folder.map(|folder| SavedAt::File(folder.join(FILE)))
            }
        }
    }

    /// This file, or the one in this folder.
    pub fn at(path: &Path) -> SavedAt {
        SavedAt::File(if path.is_dir() { path.join(FILE) } else { path.to_owned() })
    }

    /// Opens them to be read. A file must not be a running server's.
    ///
    /// # Errors
    /// If they are not there, somebody else's, of a newer program, or no saves at all.
    pub fn open(&self) -> Result<Opened, StoreOpenError> {
        match self {
            SavedAt::File(path) => match Embedded::open_to_read(path) {
                Ok(opened) => Ok(Opened { reads: opened.reads, pages: opened.pages }),
                Err(StoreError::InUse) => Err(StoreOpenError::InUse(path.clone())),
                Err(cause) => Err(StoreOpenError::Unreadable { path: path.clone(), cause }),
            },
            SavedAt::Postgres(parameters) => Ok(Opened { reads: open_postgres(parameters)?, pages: Ok(()) }),
        }
    }
}

#[cfg(feature = "postgres")]
fn open_postgres(parameters: &str) -> Result<Arc<dyn Reads>, StoreOpenError> {
    throng_persistence::postgres::open_to_read(parameters).map_err(StoreOpenError::Postgres)
}

#[cfg(not(feature = "postgres"))]
fn open_postgres(_: &str) -> Result<Arc<dyn Reads>, StoreOpenError> {
    Err(StoreOpenError::NoPostgres)
}

/// What a record says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents<'a> {
    pub place: Place,
    /// What the game packed.
    pub value: &'a [u8],
    /// The same as a value that says its type; `None` where a game packs in another way.
    pub envelope: Option<Envelope<'a>>,
}

/// Whose a record is, besides its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A player, and the number of the world that they are in, if it has one.
    InWorld(Option<u64>),
    /// A world of this kind.
    OfKind(String),
    /// A cell.
    Cell,
    /// That a player's record is too old.
    LeftOut,
}

impl Contents<'_> {
    /// Of the value of the record under this key.
    ///
    /// # Errors
    /// If its heading cannot be read, in words.
    pub fn of(key: Key, bytes: &[u8]) -> Result<Contents<'_>, String> {
        let (place, value) = match key.kind {
            Kind::Player => {
                let (world, _) = record::read_player(bytes).map_err(|error| error.to_string())?;
                (Place::InWorld(world), &bytes[record::PLAYER_HEADER_BYTES..])
            }
            Kind::World => {
                let (kind, state) = record::split_world(bytes).map_err(|error| error.to_string())?;
                (Place::OfKind(String::from_utf8_lossy(kind).into_owned()), state)
            }
            Kind::Cell => (Place::Cell, bytes),
            Kind::LeftOut => (Place::LeftOut, bytes),
        };
        let envelope = Envelope::parse(value).ok().filter(|(_, rest)| rest.is_empty()).map(|(envelope, _)| envelope);
        Ok(Contents { place, value, envelope })
    }
}

#[cfg(test)]
mod tests {
    use throng_pack::{Pack, envelope};
    use throng_world::transfer::Transfer;

    use super::*;

    #[derive(Pack)]
    #[pack(name = "spec.purse")]
    struct Purse {
        coins: u32,
    }

    #[test]
    fn a_record_says_whose_it_is_and_of_which_type() {
        let has = Transfer::of(&Purse { coins: 7 }).unwrap();
        let player = record::of_player(Some(11), &has);
        let contents = Contents::of(Key::player(1), &player).unwrap();
        assert_eq!((&contents.place, contents.value), (&Place::InWorld(Some(11)), has.bytes()));
        assert!(contents.envelope.is_some_and(|it| it.holds::<Purse>() && it.version == 1));

        let mut state = Vec::new();
        envelope::write(&Purse { coins: 8 }, &mut state).unwrap();
        let world = record::of_world("market", &state);
        let contents = Contents::of(Key::world(11), &world).unwrap();
        assert_eq!((contents.place, contents.value), (Place::OfKind("market".into()), &state[..]));

        let cell = Contents::of(Key::cell(11, 1), b"as the game likes").unwrap();
        assert_eq!((cell.place, cell.envelope), (Place::Cell, None));
        assert!(Contents::of(Key::player(1), &player[..9]).is_err());
        assert!(Contents::of(Key::world(1), &[2]).is_err());
    }

    #[test]
    fn saves_are_where_the_settings_have_them() {
        let at = |text: &str| SavedAt::of(&Settings::parse("throng.toml", text).unwrap());
        assert_eq!(at("[saves]\nstore = \"none\""), None);
        let postgres = at("[saves]\nstore = \"postgres\"\npostgres = \"host=here\"");
        assert_eq!(postgres, Some(SavedAt::Postgres("host=here".into())));
        let folder = at("[saves]\nfolder = \"/var/saves\"");
        assert_eq!(folder, Some(SavedAt::File("/var/saves/saves.redb".into())));
    }
}
