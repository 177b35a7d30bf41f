//! A bench's figures, as `bench/peers` keeps them: one row for a peer's form in a load of a size.

use serde::Deserialize;
use throng_history::Machine;

use super::error::PictureError;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Bench {
    pub command: String,
    pub commit: String,
    pub machine: Machine,
    pub rows: Vec<Row>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Row {
    pub load: String,
    /// Such as `throng` or `throng, UDP`.
    pub peer: String,
    pub clients: u32,
    /// The server's processor time per tick; none if it could not be measured, as the next one.
    pub cpu_ms: Option<f64>,
    pub bytes_per_client_s: Option<f64>,
}

impl Bench {
    /// All that were measured of a peer's form in a load, the smallest first: clients and figure.
    pub(super) fn by_clients(
        &self,
        load: &str,
        peer: &str,
        figure: fn(&Row) -> Option<f64>,
    ) -> Result<Vec<(f64, f64)>, PictureError> {
        let rows = self.rows.iter().filter(|row| row.load == load && row.peer == peer);
        let mut found: Vec<_> = rows.filter_map(|row| Some((f64::from(row.clients), figure(row)?))).collect();
        found.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        if found.is_empty() {
            return Err(PictureError::Missing { what: format!("{peer} in {load}") });
        }
        Ok(found)
    }

    /// The server's processor time per tick; none if it was not measured.
    pub(super) fn cpu_ms(&self, load: &str, clients: u32, peer: &str) -> Option<f64> {
        let mut rows = self.rows.iter();
        rows.find(|row| row.load == load && row.clients == clients && row.peer == peer)?.cpu_ms
    }
}
