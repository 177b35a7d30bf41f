//! Versions: what an older program saved, this one reads.
//!
//! A saved value is an envelope of `throng-pack`, which says the type, its version and the hash of its layout. Most
//! changes need nothing here: a field with `since` and a default is read from older bytes by the type itself. A change
//! that needs more (one field became two, coins became a purse) keeps the old type in the program, and a function that
//! makes the new one of it:
//!
//! ```
//! use throng_pack::Pack;
//! use throng_persistence::versions::Versions;
//!
//! #[derive(Pack)]
//! #[pack(name = "example.hero", version = 1)]
//! struct HeroV1 {
//!     coins: u32,
//! }
//!
//! #[derive(Debug, PartialEq, Pack)]
//! #[pack(name = "example.hero", version = 2)]
//! struct Hero {
//!     gold: u32,
//!     silver: u8,
//! }
//!
//! let heroes = Versions::<Hero>::new().migrate(|old: HeroV1| Hero { gold: old.coins / 100, silver: (old.coins % 100) as u8 });
//!
//! let mut saved = Vec::new();
//! throng_pack::envelope::write(&HeroV1 { coins: 230 }, &mut saved)?;
//! assert_eq!(heroes.read(&saved)?, Hero { gold: 2, silver: 30 });
//! # Ok::<(), throng_pack::PackError>(())
//! ```
//!
//! What a newer program saved is refused by name ([`throng_pack::Fault::NewerVersion`]), and so are fields that changed
//! under the same version ([`throng_pack::Fault::LayoutChanged`]); neither touches what is in the store. A record is
//! written in the new version when it is next saved.
//!
//! Built once at start-up. A read of the current version costs what unpacking costs.

use throng_pack::{HasSchema, PackError, envelope::Envelope};

/// Reads values of a type in all versions that it is known in.
pub struct Versions<T> {
    migrations: Vec<Migration<T>>,
}

struct Migration<T> {
    version: u16,
    read: Box<Read<T>>,
}

type Read<T> = dyn Fn(&[u8]) -> Result<T, PackError> + Send + Sync;

impl<T: HasSchema> Versions<T> {
    /// The type as it is, and older versions as far as its own fields say.
    pub fn new() -> Versions<T> {
        Versions { migrations: Vec::new() }
    }

    /// Bytes of the version that `Old` is are read as `Old`, and handed to `into`.
    ///
    /// # Panics
    /// If `Old` has another name than `T`, no older version, or one that is registered already: a mistake in the program.
    #[must_use]
    pub fn migrate<Old: HasSchema + 'static>(mut self, into: impl Fn(Old) -> T + Send + Sync + 'static) -> Versions<T> {
        let (old, new) = (Old::SCHEMA, T::SCHEMA);
        assert_eq!(old.name, new.name, "versions of one type have one name");
        assert!(old.version < new.version, "{}: {} is no version before {}", new.name, old.version, new.version);
        assert!(self.of(old.version).is_none(), "{}: version {} is registered twice", new.name, old.version);
        let read = move |bytes: &[u8]| throng_pack::envelope::read::<Old>(bytes).map(&into);
        self.migrations.push(Migration { version: old.version, read: Box::new(read) });
        self
    }

    /// The value in an envelope that is all there is in `bytes`.
    pub fn read(&self, bytes: &[u8]) -> Result<T, PackError> {
        let registered = Envelope::parse(bytes).ok().filter(|(envelope, _)| envelope.holds::<T>());
        match registered.and_then(|(envelope, _)| self.of(envelope.version)) {
            Some(migration) => (migration.read)(bytes),
            None => throng_pack::envelope::read(bytes),
        }
    }

    fn of(&self, version: u16) -> Option<&Migration<T>> {
        self.migrations.iter().find(|migration| migration.version == version)
    }
}

impl<T: HasSchema> Default for Versions<T> {
    fn default() -> Versions<T> {
        Versions::new()
    }
}
