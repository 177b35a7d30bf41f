//! Against: one load run held against the report of another.
//!
//! What each subsystem took in both, and nothing more: two runs say nothing of noise, so there is no verdict here. `history`
//! judges many runs, and `preflight` two builds in turns. Reports of unlike machines are refused before anything runs, unless
//! somebody says that it is to go on.

use std::path::{Path, PathBuf};

use throng_history::Machine;

use crate::earlier_runs::{self, RunFigures};
use crate::load_report::LoadReport;

/// An earlier run, read from its `report.json`.
#[derive(Debug)]
pub struct EarlierReport {
    path: PathBuf,
    figures: RunFigures,
    /// In what its machine is unlike this one; empty if it is alike.
    pub machine_differences: Vec<String>,
}

/// Why a run is not held against another.
#[derive(Debug, thiserror::Error)]
pub enum AgainstError {
    #[error("--against {}: is no report of a load run that says what a tick took; name the report.json of one", path.display())]
    NoReport { path: PathBuf },
    #[error(
        "--against {}: was on another machine, and its figures say nothing about this one ({}); run it here, or go on with --across-machines",
        path.display(), differences.join("; ")
    )]
    OtherMachine { path: PathBuf, differences: Vec<String> },
    #[error("--against {}: {theirs} was played there, and {ours} here: there is nothing to compare", path.display())]
    OtherLoad { path: PathBuf, theirs: String, ours: String },
}

/// What a subsystem took in both runs (µs per tick); none where it was not there.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct AgainstRow {
    pub subsystem: String,
    pub before_us: Option<f64>,
    pub after_us: Option<f64>,
}

impl AgainstRow {
    /// Of the time before: 0.05 is 5 % more.
    pub fn change(&self) -> Option<f64> {
        let (before, after) = (self.before_us.filter(|before| *before > 0.0)?, self.after_us?);
        Some(after / before - 1.0)
    }
}

impl EarlierReport {
    /// Reads a report, or the one in a folder. Refuses one of a machine that is unlike `here`, unless `across_machines`.
    pub fn read(path: &Path, here: &Machine, across_machines: bool) -> Result<Self, AgainstError> {
        let path = if path.is_dir() { path.join("report.json") } else { path.to_owned() };
        let figures = earlier_runs::read(&path).filter(|figures| figures.tells() && figures.is_whole());
        let Some(figures) = figures else { return Err(AgainstError::NoReport { path }) };
        let differences = figures.machine.differences(here);
        if !differences.is_empty() && !across_machines {
            return Err(AgainstError::OtherMachine { path, differences });
        }
        Ok(Self { path, figures, machine_differences: differences })
    }

    /// All subsystems of both, those that took most first, the whole tick before them.
    pub fn rows(&self, report: &LoadReport) -> Result<Vec<AgainstRow>, AgainstError> {
        let now = serde_json::to_value(report).and_then(serde_json::from_value::<RunFigures>);
        let now = now.map_err(|_| AgainstError::NoReport { path: self.path.clone() })?;
        if !self.figures.has_load_of(&now) {
            let (theirs, ours) = (self.figures.load_in_words(), now.load_in_words());
            return Err(AgainstError::OtherLoad { path: self.path.clone(), theirs, ours });
        }
        let (before, after) = (&self.figures.scopes_us_per_tick, &now.scopes_us_per_tick);
        let mut names: Vec<&String> =
            before.keys().chain(after.keys().filter(|name| !before.contains_key(*name))).collect();
        let most = |name: &str| before.get(name).copied().unwrap_or(0.0).max(after.get(name).copied().unwrap_or(0.0));
        names.sort_by(|one, other| most(other).total_cmp(&most(one)));
        let all = |times: &std::collections::BTreeMap<String, f64>| Some(times.values().sum::<f64>());
        let whole = AgainstRow { subsystem: "all of a tick".to_owned(), before_us: all(before), after_us: all(after) };
        let rows = names.into_iter().map(|name| AgainstRow {
            subsystem: name.clone(),
            before_us: before.get(name).copied(),
            after_us: after.get(name).copied(),
        });
        Ok(std::iter::once(whole).chain(rows).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn figures() -> Value {
        json!({
            "commit": "abc", "game": "precinct", "scenario": "usual", "npcs": 20, "players_connected": 10, "ticks": 7, "workers": 2,
            "machine": {"cpu": "EPYC", "cores": 2}, "categories_us_per_tick": {"ai": 9.0}, "scopes_us_per_tick": {"ai": 9.0, "net": 1.0},
        })
    }

    fn read(name: &str, text: &str, across_machines: bool) -> Result<EarlierReport, AgainstError> {
        let folder = std::env::temp_dir().join(format!("throng-against-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("report.json"), text).unwrap();
        let here = Machine { cpu: "EPYC".into(), cores: 2, ..Machine::default() };
        let read = EarlierReport::read(&folder, &here, across_machines);
        std::fs::remove_dir_all(&folder).unwrap();
        read
    }

    #[test]
    fn reports_of_another_machine_are_refused_unless_it_is_wanted() {
        let mut other = figures();
        other["machine"]["cpu"] = "Xeon".into();
        let error = read("refused", &other.to_string(), false).unwrap_err().to_string();
        assert!(error.contains("processor: Xeon and EPYC") && error.contains("--across-machines"), "{error}");
        assert_eq!(read("wanted", &other.to_string(), true).unwrap().machine_differences.len(), 1);
        assert!(read("alike", &figures().to_string(), false).unwrap().machine_differences.is_empty());
        let error = read("none", "{}", true).unwrap_err().to_string();
        assert!(error.contains("is no report of a load run"), "{error}");
    }

    #[test]
    fn subsystems_of_both_stand_beside_each_other() {
        let earlier = read("rows", &figures().to_string(), false).unwrap();
        let mut now = figures();
        now["scopes_us_per_tick"] = json!({"ai": 18.0, "shots": 3.0});
        let mut report: LoadReport = serde_json::from_value(now).unwrap();
        let rows = earlier.rows(&report).unwrap();
        let told: Vec<_> =
            rows.iter().map(|row| (row.subsystem.as_str(), row.before_us, row.after_us, row.change())).collect();
        assert_eq!(
            told,
            [
                ("all of a tick", Some(10.0), Some(21.0), Some(1.1)),
                ("ai", Some(9.0), Some(18.0), Some(1.0)),
                ("shots", None, Some(3.0), None),
                ("net", Some(1.0), None, None)
            ]
        );
        report.players_connected = 20;
        let error = earlier.rows(&report).unwrap_err().to_string();
        assert!(error.contains("by 10 players") && error.contains("by 20 players"), "{error}");
    }
}
