//! Earlier runs: the reports that lie beside the one that is being written, to hold it against.
//!
//! A report's folder has neighbours, `reports/*`, of which each may hold the report of another run. Those of the same
//! game, the same size and the same machine are comparable: what a tick takes there says whether it takes more now.
//! What lay in the report's own folder is one of them, the last time that it is read.
//!
//! At most [`RUNS_MAX`] are kept, the latest, of [`FOLDERS_MAX`] that are looked at. What cannot be read is passed by: a
//! report is not worth less because an old one beside it is broken. Cost: some milliseconds for each report there.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::Value;
use throng_history::Machine;

use crate::load_report::LoadReport;

/// Runs that are held against each other, this one among them.
pub(crate) const RUNS_MAX: usize = 50;
/// Neighbours that are looked at: a folder of everything is no place of reports.
const FOLDERS_MAX: usize = 1_000;
/// A report of a day has 86,400 seconds of 400 bytes.
pub(crate) const REPORT_BYTES_MAX: u64 = 64 << 20;
/// As many more or fewer players are the same load, as a share.
const PLAYERS_DIFFER_MAX: f64 = 0.05;

/// A run as far as it is compared: keys of `report.json`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RunFigures {
    pub commit: String,
    /// When its report was written; of reports that do not say, when the file was.
    pub written_unix_s: u64,
    pub game: String,
    pub scenario: String,
    /// None of reports of earlier builds.
    pub conditions: BTreeMap<String, String>,
    pub players_connected: u64,
    pub npcs: u64,
    pub machine: Machine,
    pub interrupted: bool,
    pub not_filled: Option<Value>,
    pub ended_early: Option<Value>,
    pub seconds: f64,
    pub ticks: u64,
    pub workers: u64,
    pub categories_us_per_tick: BTreeMap<String, f64>,
    pub scopes_us_per_tick: BTreeMap<String, f64>,
    /// What the rules let them take; none of reports of earlier builds.
    pub budgets_us_per_tick: BTreeMap<String, f64>,
}

impl RunFigures {
    /// Of the run that this report is of, on this machine.
    pub(crate) fn of(report: &LoadReport, machine: &Machine) -> Result<Self, serde_json::Error> {
        let figures: Self = serde_json::from_value(serde_json::to_value(report)?)?;
        Ok(Self { machine: machine.clone(), written_unix_s: unix_s(SystemTime::now()), ..figures })
    }

    /// Whether it says what a tick takes.
    pub(crate) fn tells(&self) -> bool {
        self.ticks > 0 && !self.categories_us_per_tick.is_empty()
    }

    /// The time that all workers together had for each tick; none if the report does not say how many they were.
    pub(crate) fn tick_budget_us(&self) -> Option<f64> {
        (self.workers > 0 && self.ticks > 0).then(|| self.workers as f64 * self.seconds * 1e6 / self.ticks as f64)
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.not_whole().is_none()
    }

    /// What became of it instead, as the end of a sentence that begins with the run.
    pub(crate) fn not_whole(&self) -> Option<&'static str> {
        if self.not_filled.is_some() {
            Some("never had all its players")
        } else if self.ended_early.is_some() {
            Some("lost its server or its bots")
        } else if self.interrupted {
            Some("was stopped before its end")
        } else {
            None
        }
    }

    /// Whether the two can be held against each other.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.has_load_of(other) && self.machine.is_like(&other.machine)
    }

    /// Whether both were of the same game, played alike, by as many, under the same conditions.
    pub(crate) fn has_load_of(&self, other: &Self) -> bool {
        let are_alike =
            (&self.game, &self.scenario, &self.conditions) == (&other.game, &other.scenario, &other.conditions);
        // Conditions have the sizes that were wanted.
        are_alike && (!self.conditions.is_empty() || self.has_size_of(other))
    }

    fn has_size_of(&self, other: &Self) -> bool {
        let (players, others) = (self.players_connected as f64, other.players_connected as f64);
        self.npcs == other.npcs && (players - others).abs() <= PLAYERS_DIFFER_MAX * players.max(others)
    }

    /// In words: `precinct (usual) by 1000 players with 20000 NPCs; saves report, workers 2`.
    pub(crate) fn load_in_words(&self) -> String {
        let Self { game, scenario, players_connected, npcs, conditions, .. } = self;
        let conditions: Vec<String> = conditions.iter().map(|(key, value)| format!("{key} {value}")).collect();
        let separator = if conditions.is_empty() { "" } else { "; " };
        format!(
            "{game} ({scenario}) by {players_connected} players with {npcs} NPCs{separator}{}",
            conditions.join(", ")
        )
    }
}

/// The runs like this one whose reports lie in folders beside `folder`, or in it, the earliest first; this one is the
/// last.
pub(crate) fn beside(folder: &Path, own: RunFigures) -> Vec<RunFigures> {
    let parent = match folder.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => folder,
    };
    let folders = std::fs::read_dir(parent).into_iter().flatten().flatten().take(FOLDERS_MAX);
    let read = folders.filter_map(|entry| read(&entry.path().join("report.json")).ok());
    let mut runs: Vec<_> = read.filter(|run| run.tells() && run.is_whole() && run.is_like(&own)).collect();
    runs.sort_by_key(|run| run.written_unix_s);
    runs.drain(..runs.len().saturating_sub(RUNS_MAX - 1));
    runs.push(own);
    runs
}

/// Why a report cannot be read, as the end of a sentence that begins with its path.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("is no file")]
    NoFile,
    #[error("has {bytes} bytes, and a report has {REPORT_BYTES_MAX} at most")]
    TooLarge { bytes: u64 },
    #[error("is no report of a load run: {0}")]
    NoReport(#[from] serde_json::Error),
}

pub(crate) fn read(path: &Path) -> Result<RunFigures, ReadError> {
    let about = std::fs::metadata(path)?;
    if !about.is_file() {
        return Err(ReadError::NoFile);
    }
    if about.len() > REPORT_BYTES_MAX {
        return Err(ReadError::TooLarge { bytes: about.len() });
    }
    let mut run: RunFigures = serde_json::from_slice(&std::fs::read(path)?)?;
    if run.written_unix_s == 0 {
        run.written_unix_s = about.modified().map_or(0, unix_s);
    }
    Ok(run)
}

pub(crate) fn unix_s(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    fn report(commit: &str, written_unix_s: u64) -> Value {
        json!({
            "commit": commit, "written_unix_s": written_unix_s, "game": "precinct", "scenario": "usual", "npcs": 20_000,
            "players_connected": 1_000, "machine": {"cpu": "EPYC", "cores": 2}, "seconds": 60.0, "ticks": 1_200_000, "workers": 2,
            "categories_us_per_tick": {"ai": 12.5}, "scopes_us_per_tick": {"ai": 12.5}, "by_second": [{"second": 1}],
        })
    }

    fn own() -> RunFigures {
        serde_json::from_value(report("own", 1_000)).unwrap()
    }

    /// A folder of reports; returns the commits of the runs beside `own` there.
    fn commits(test: &str, reports: &[(&str, String)]) -> Vec<String> {
        let parent: PathBuf = std::env::temp_dir().join(format!("throng-earlier-{test}-{}", std::process::id()));
        for (folder, text) in reports {
            std::fs::create_dir_all(parent.join(folder)).unwrap();
            std::fs::write(parent.join(folder).join("report.json"), text).unwrap();
        }
        let runs = beside(&parent.join("own"), own());
        std::fs::remove_dir_all(&parent).unwrap();
        runs.into_iter().map(|run| run.commit).collect()
    }

    #[test]
    fn runs_like_this_one_come_in_the_order_of_time_and_it_is_the_last() {
        let changed = |key: &str, value: Value| {
            let mut changed = report(key, 5);
            changed[key] = value;
            changed.to_string()
        };
        let reports = [
            ("b", report("second", 20).to_string()),
            ("a", report("third", 30).to_string()),
            ("own", report("first", 10).to_string()),
            ("c", changed("game", "frontier".into())),
            ("d", changed("npcs", 19_999.into())),
            ("e", changed("players_connected", 900.into())),
            ("f", changed("machine", json!({"cpu": "EPYC", "cores": 4}))),
            ("g", changed("interrupted", true.into())),
            ("h", changed("not_filled", json!({"players": 3}))),
            ("i", changed("categories_us_per_tick", json!({}))),
            ("j", "{".to_owned()),
            ("k", "[]".to_owned()),
        ];
        assert_eq!(commits("order", &reports), ["first", "second", "third", "own"]);
    }

    /// Promise: whatever shaped the load otherwise, the runs are not held against each other; and a few players who were not there at the
    /// end shape nothing.
    #[test]
    fn runs_of_other_conditions_are_other_loads() {
        let usual = [("players", "1000"), ("saves", "report"), ("workers", "2")];
        let run = |conditions: &[(&str, &str)], players_connected| {
            let conditions = conditions.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            RunFigures { conditions, players_connected, ..own() }
        };
        let one = run(&usual, 1_000);
        assert!(one.has_load_of(&run(&usual, 900)));
        for other in [
            [&usual[..], &[("faults", "slow-world")]].concat(),
            [&usual[..], &[("options", "--scan-everything")]].concat(),
            [("players", "1010"), usual[1], usual[2]].to_vec(),
            [usual[0], ("saves", "none"), usual[2]].to_vec(),
            [usual[0], usual[1], ("workers", "1")].to_vec(),
            Vec::new(),
        ] {
            let other = run(&other, 1_000);
            assert!(!one.has_load_of(&other) && !other.has_load_of(&one), "{}", other.load_in_words());
        }
    }

    #[test]
    fn the_latest_are_kept() {
        let named: Vec<_> =
            (0..60).map(|run| (format!("run-{run}"), report(&run.to_string(), run + 1).to_string())).collect();
        let reports: Vec<_> = named.iter().map(|(folder, text)| (folder.as_str(), text.clone())).collect();
        let kept = commits("many", &reports);
        assert_eq!((kept.len(), kept[0].as_str(), kept[RUNS_MAX - 1].as_str()), (RUNS_MAX, "11", "own"));
    }

    #[test]
    fn a_report_alone_is_alone() {
        assert_eq!(commits("alone", &[("own", "no report yet".to_owned())]), ["own"]);
        assert_eq!(beside(Path::new("/nowhere/load"), own()).len(), 1);
        assert_eq!(own().tick_budget_us(), Some(100.0));
    }
}
