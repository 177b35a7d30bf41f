//! Where a server's saves are: a file in a folder, or a PostgreSQL server.

use std::{
    fs,
    path::{Path, PathBuf},
};

use bazaar::Wealth;
use throng_persistence::{Embedded, Store, StoreError, postgres::Postgres};

use crate::cluster::Cluster;

/// Number of this process among those that share a store.
const LOOKER: u64 = 1_000;

pub enum Place {
    File(PathBuf),
    /// Its parameters.
    Postgres(String),
}

impl Place {
    pub fn of(cluster: &Cluster) -> Place {
        Place::Postgres(cluster.parameters())
    }

    /// `[saves]` of a server that saves here.
    fn section(&self) -> String {
        match self {
            Place::File(folder) => format!("store = \"embedded\"\nfolder = {:?}\n", folder.display().to_string()),
            Place::Postgres(parameters) => format!("store = \"postgres\"\npostgres = {parameters:?}\n"),
        }
    }

    /// Opens it as a server does after a death; nobody else may have the file.
    pub fn open(&self) -> Result<Box<dyn Store>, StoreError> {
        Ok(match self {
            Place::File(folder) => Box::new(Embedded::open(&folder.join("saves.redb"))?),
            Place::Postgres(parameters) => Box::new(Postgres::connect(parameters, LOOKER)?),
        })
    }

    /// What is in it; the error is that it does not hold together.
    pub fn wealth(&self) -> Result<Wealth, String> {
        let store = self.open().map_err(|error| error.to_string())?;
        bazaar::look_at(&*store.reader())
    }
}

/// How a server is to be.
pub struct Terms {
    pub period_s: u32,
    pub lease_s: u32,
    pub process: u32,
    pub first_market: u64,
    pub hoard_bytes_max: u32,
    pub stalls: u32,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms { period_s: 1, lease_s: 30, process: 1, first_market: bazaar::MARKETS[0], hoard_bytes_max: 0, stalls: 0 }
    }
}

/// Writes the settings of a server into its folder.
pub fn write_settings(folder: &Path, place: &Place, terms: &Terms) {
    let Terms { period_s, lease_s, process, first_market, hoard_bytes_max, stalls } = terms;
    let (saves, ledger) = (place.section(), folder.join("ledger").display().to_string());
    let text = format!(
        "[server]\nhost_heartbeat = false\n\n[saves]\n{saves}process = {process}\nperiod_s = {period_s}\nlease_s = {lease_s}\n\n\
         [game]\nledger = {ledger:?}\nfirst_market = {first_market}\nhoard_bytes_max = {hoard_bytes_max}\nstalls = {stalls}\n"
    );
    fs::write(folder.join("throng.toml"), text).unwrap();
}
