//! `[saves]`: whether and where players and worlds are kept, and how often.

use std::path::PathBuf;

use serde::Deserialize;

use super::{Checks, Section};

/// What keeps the saves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SaveStore {
    /// One file beside the server, wherever the settings or the service manager give the server a place.
    #[default]
    Auto,
    /// Nothing is kept.
    None,
    /// One file beside the server.
    Embedded,
    /// A PostgreSQL server, which several processes may share.
    Postgres,
}

/// `[saves]`: see docs/persistence.md.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct SavesSettings {
    /// What keeps the saves of a game that has any: "embedded", one file; "postgres"; "none"; or "auto", which is
    /// "embedded" where there is a place for it, beside the settings file or where systemd's StateDirectory is, and "none" in
    /// a folder without settings, where somebody only has a look. Default "auto".
    /// "none" → a restart begins anew.
    pub store: SaveStore,
    /// The folder of the file, which must be there. Default: where used connect tokens are remembered, too.
    pub folder: Option<PathBuf>,
    /// How to reach PostgreSQL, as libpq has it, such as "host=/run/postgresql user=throng dbname=saves".
    pub postgres: Option<String>,
    /// Number of this process among those that share a store [1 to 1,000,000,000]. Default 1.
    /// The same in two processes → the second does not start.
    pub process: u32,
    /// Every world and everybody in it are saved so often [s, 1 to 3,600]. Default 10. Who leaves is saved within a
    /// second, who travels at once. Too low → disk and ticks are busy with saves; too high → a crash costs that much play.
    pub period_s: u32,
    /// A player, or a world in a store that several processes share, is this process's for so long without a word of it [s, 5 to
    /// 3,600]. Default 30; prolonged after a third. Too low → a store that is slow for a moment costs players, and takes worlds
    /// back to their last save; too high → after a crash they are to be had elsewhere that much later.
    pub lease_s: u32,
    /// What is saved of a world that is asked for, or of a player who logs in, must be read within this [s, 1 to 600]. Default 15; then
    /// the world is not made, or the player is refused, and whoever asked is told so. Too low → a store that is slow for a moment, or a
    /// rush of worlds, costs worlds and log-ins; too high → players wait for a read that hangs for as long as `[server]
    /// placement_timeout_s` lets them.
    pub load_within_s: u32,
    /// Bytes that may wait for the disk [bytes, 1 MiB to 16 GiB]. Default 64 MiB.
    /// Too low → saves are put off in a wave; too high → memory, while the disk is slow.
    pub queue_bytes_max: usize,
}

impl Default for SavesSettings {
    fn default() -> Self {
        Self {
            store: SaveStore::Auto,
            folder: None,
            postgres: None,
            process: 1,
            period_s: 10,
            lease_s: 30,
            load_within_s: 15,
            queue_bytes_max: 64 << 20,
        }
    }
}

impl Section for SavesSettings {
    fn check(&self, checks: &mut Checks<'_>) {
        checks.range("process", self.process, 1..=1_000_000_000, "");
        checks.range("period_s", self.period_s, 1..=3_600, "s");
        checks.range("lease_s", self.lease_s, 5..=3_600, "s");
        checks.range("load_within_s", self.load_within_s, 1..=600, "s");
        checks.range("queue_bytes_max", self.queue_bytes_max, 1 << 20..=16 << 30, "bytes");
        match self.store {
            SaveStore::Postgres if self.postgres.is_none() => checks.mistake(
                "store",
                "is \"postgres\", and nothing says how to reach it: write postgres = \"host=/run/postgresql user=throng dbname=saves\"",
            ),
            SaveStore::Auto | SaveStore::None | SaveStore::Embedded if self.postgres.is_some() => {
                checks.mistake("postgres", "does nothing without store = \"postgres\"; write that, or remove it");
            }
            SaveStore::Postgres | SaveStore::None if self.folder.is_some() => {
                checks.mistake("folder", "does nothing with this store; remove it, or write store = \"embedded\"");
            }
            _ => {}
        }
        if self.folder.as_ref().is_some_and(|folder| folder.as_os_str().is_empty()) {
            checks.mistake("folder", "names nothing; write a path, or remove the key");
        }
    }
}
