//! Against: one load run held against the report of another.
//!
//! What each subsystem took in both, and nothing more: two runs say nothing of noise, so there is no verdict here. `history`
//! judges many runs, and `preflight` two builds in turns. Reports of unlike machines are refused before anything runs, unless
//! somebody says that it is to go on; so are those of another load. What comes of the run itself is never refused: it may have
//! taken hours, and a server that died in it is what somebody has to hear of.

use std::path::{Path, PathBuf};

use throng_history::Machine;

use crate::earlier_runs::{self, RunFigures};
use crate::load_report::{LoadReport, condition};

pub use crate::earlier_runs::ReadError;

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
    #[error("--against {}: {cause}; name the report.json of a load run, or its folder", path.display())]
    Read { path: PathBuf, cause: ReadError },
    #[error("--against {}: that run {why}; name one that came to its end", path.display())]
    NotWhole { path: PathBuf, why: &'static str },
    #[error(
        "--against {}: does not say what a tick took: it is no report of a load run, or of one whose server ran without its flight recorder; name another",
        path.display()
    )]
    NoTimes { path: PathBuf },
    #[error("--against {}: what this run reports cannot be held against it: {cause}", path.display())]
    ThisRun { path: PathBuf, cause: serde_json::Error },
    #[error(
        "--against {}: was on another machine, and its figures say nothing about this one ({}); run it here, or go on with --across-machines",
        path.display(), differences.join("; ")
    )]
    OtherMachine { path: PathBuf, differences: Vec<String> },
    #[error(
        "--against {}: {theirs} was played there, and {ours} is to be played here: there is nothing to compare; {way_out}, or name a \
         report of what is to be played here",
        path.display()
    )]
    OtherLoad { path: PathBuf, theirs: String, ours: String, way_out: String },
}

/// What a run is to play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantedLoad<'w> {
    pub game: &'w str,
    pub scenario: &'w str,
    pub players: u32,
    /// None of a game that has none.
    pub npcs: Option<u32>,
}

/// A run beside an earlier one.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Why the two are hardly comparable, if they are not. The run may have come out otherwise than it was to.
    pub unlike: Option<String>,
    /// All subsystems of both, those that took most first, the whole tick before them. None if this run does not say what a tick took.
    pub rows: Vec<AgainstRow>,
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
        let figures = match earlier_runs::read(&path) {
            Ok(figures) => figures,
            Err(cause) => return Err(AgainstError::Read { path, cause }),
        };
        if let Some(why) = figures.not_whole() {
            return Err(AgainstError::NotWhole { path, why });
        }
        if !figures.tells() {
            return Err(AgainstError::NoTimes { path });
        }
        let differences = figures.machine.differences(here);
        if !differences.is_empty() && !across_machines {
            return Err(AgainstError::OtherMachine { path, differences });
        }
        Ok(Self { path, figures, machine_differences: differences })
    }

    /// Before a run: whether it is to play what was played there.
    pub fn check_load(&self, wanted: &WantedLoad<'_>) -> Result<(), AgainstError> {
        let theirs = &self.figures;
        // What else shapes the load is known for sure only after the run: a difference in it is a remark then.
        let mut conditions = theirs.conditions.clone();
        for (key, size) in [(condition::PLAYERS, Some(wanted.players)), (condition::NPCS, wanted.npcs)] {
            if let (Some(theirs), Some(ours)) = (conditions.get_mut(key), size) {
                *theirs = ours.to_string();
            }
        }
        let ours = RunFigures {
            conditions,
            game: wanted.game.to_owned(),
            scenario: wanted.scenario.to_owned(),
            players_connected: wanted.players.into(),
            // A game that counts no NPCs may have some all the same.
            npcs: wanted.npcs.filter(|_| theirs.npcs > 0).map_or(theirs.npcs, u64::from),
            ..RunFigures::default()
        };
        if theirs.has_load_of(&ours) {
            return Ok(());
        }
        let wanted_there =
            |key: &str, there: u64| theirs.conditions.get(key).cloned().unwrap_or_else(|| there.to_string());
        let npcs = wanted_there(condition::NPCS, theirs.npcs);
        let npcs_here = ours.conditions.get(condition::NPCS).cloned().unwrap_or_else(|| ours.npcs.to_string());
        let npcs = if npcs == npcs_here { String::new() } else { format!(" --npcs {npcs}") };
        let players = wanted_there(condition::PLAYERS, theirs.players_connected);
        let words = format!("say --scenario {} --players {players}{npcs}", theirs.scenario);
        let way_out = if theirs.game == ours.game { words } else { format!("play {}, and {words}", theirs.game) };
        Err(AgainstError::OtherLoad {
            path: self.path.clone(),
            theirs: theirs.load_in_words(),
            ours: ours.load_in_words(),
            way_out,
        })
    }

    /// After a run: both beside each other.
    ///
    /// # Errors
    /// If what the run's server said is not what a report says, as where it is of another build.
    pub fn compare(&self, report: &LoadReport) -> Result<Comparison, AgainstError> {
        let now = serde_json::to_value(report).and_then(serde_json::from_value::<RunFigures>);
        let now = now.map_err(|cause| AgainstError::ThisRun { path: self.path.clone(), cause })?;
        Ok(Comparison { rows: self.rows(&now), unlike: self.unlike(now) })
    }

    fn unlike(&self, mut now: RunFigures) -> Option<String> {
        if self.figures.conditions.is_empty() {
            // It is of a build that did not tell them.
            now.conditions.clear();
        }
        let path = self.path.display();
        if !now.is_whole() {
            Some(format!("--against {path}: this run did not come to its end, and that one did"))
        } else if !self.figures.has_load_of(&now) {
            let (theirs, ours) = (self.figures.load_in_words(), now.load_in_words());
            Some(format!("--against {path}: {theirs} was played there, and {ours} here"))
        } else {
            None
        }
    }

    fn rows(&self, now: &RunFigures) -> Vec<AgainstRow> {
        if !now.tells() {
            return Vec::new();
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
        std::iter::once(whole).chain(rows).collect()
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
    }

    /// Promise: whoever names the wrong thing hears which mistake it is.
    #[test]
    fn what_is_no_report_to_compare_with_says_why() {
        let refused = |name: &str, text: &str, why: &str| {
            let error = read(name, text, true).unwrap_err().to_string();
            assert!(error.starts_with("--against /") && error.contains(why), "{name}: {error}");
        };
        let with = |key: &str, value: Value| {
            let mut figures = figures();
            figures[key] = value;
            figures.to_string()
        };
        refused(
            "another-command",
            "{\"passed\":true}",
            "report.json: does not say what a tick took: it is no report of a load",
        );
        refused(
            "nothing-recorded",
            &with("categories_us_per_tick", json!({})),
            "of one whose server ran without its flight recorder",
        );
        refused("broken", "{\"ticks\":7", "is no report of a load run: EOF while parsing");
        refused("other-types", &with("ticks", "seven".into()), "is no report of a load run: invalid type: string");
        refused(
            "stopped",
            &with("interrupted", true.into()),
            "that run was stopped before its end; name one that came to its end",
        );
        refused("died", &with("ended_early", json!({"process": "serve"})), "that run lost its server or its bots;");
        refused("not-filled", &with("not_filled", json!({"players": 3})), "that run never had all its players;");

        let read = |path: &Path| EarlierReport::read(path, &Machine::default(), true).unwrap_err().to_string();
        let error = read(Path::new("/nowhere/report.json"));
        let expect = "--against /nowhere/report.json: cannot be read: No such file or directory (os error 2); name the report.json of a load \
                      run, or its folder";
        assert_eq!(error, expect);
        assert!(read(Path::new("/dev/null")).contains("/dev/null: is no file; name"));
        let large = std::env::temp_dir().join(format!("throng-against-large-{}", std::process::id()));
        std::fs::File::create(&large).unwrap().set_len(earlier_runs::REPORT_BYTES_MAX + 1).unwrap();
        let error = read(&large);
        std::fs::remove_file(&large).unwrap();
        assert!(error.contains("has 67108865 bytes, and a report has 67108864 at most"), "{error}");
    }

    /// Promise: figures that cannot be read are not taken for none.
    #[test]
    fn a_run_that_does_not_speak_as_reports_do_is_told() {
        let earlier = read("this-run", &figures().to_string(), false).unwrap();
        let mut now = figures();
        now["scopes_us_per_tick"] = json!({"ai": "much"});
        let error = earlier.compare(&serde_json::from_value(now).unwrap()).unwrap_err().to_string();
        assert!(
            error.contains("what this run reports cannot be held against it: invalid type: string \"much\""),
            "{error}"
        );
    }

    #[test]
    fn subsystems_of_both_stand_beside_each_other() {
        let earlier = read("rows", &figures().to_string(), false).unwrap();
        let mut now = figures();
        now["scopes_us_per_tick"] = json!({"ai": 18.0, "shots": 3.0});
        let mut report: LoadReport = serde_json::from_value(now).unwrap();
        let Comparison { unlike, rows } = earlier.compare(&report).unwrap();
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
        assert_eq!(unlike, None);
        report.conditions = [("saves".to_owned(), "none".to_owned())].into();
        assert_eq!(earlier.compare(&report).unwrap().unlike, None, "the earlier one does not tell them");
        report.players_connected = 20;
        let other = earlier.compare(&report).unwrap();
        let told = other.unlike.unwrap();
        assert!(told.contains("by 10 players") && told.contains("by 20 players"), "{told}");
        assert_eq!(other.rows, rows, "it is told, and takes nothing away");
    }

    /// Promise: what came of a run is heard of, also where it is nothing to compare.
    #[test]
    fn a_run_whose_server_died_is_remarked() {
        let earlier = read("died", &figures().to_string(), false).unwrap();
        let mut now = figures();
        now["ended_early"] = json!({"process": "serve", "during": "measuring"});
        now["players_connected"] = 0.into();
        let mut report: LoadReport = serde_json::from_value(now).unwrap();
        let Comparison { unlike, rows } = earlier.compare(&report).unwrap();
        let told = unlike.unwrap();
        assert!(told.contains("did not come to its end"), "{told}");
        assert_eq!(rows.len(), 3, "what it took until then");
        report.ticks = 0;
        assert_eq!(earlier.compare(&report).unwrap().rows, []);
    }

    /// Promise: who asks for another load hears of it before the run, with both and what to say.
    #[test]
    fn another_load_is_refused_before_the_run() {
        let earlier = read("load", &figures().to_string(), false).unwrap();
        let same = WantedLoad { game: "precinct", scenario: "usual", players: 10, npcs: Some(20) };
        let refused = |wanted: WantedLoad<'_>, parts: &[&str]| {
            let error = earlier.check_load(&wanted).unwrap_err().to_string();
            parts.iter().for_each(|part| assert!(error.contains(part), "{part:?} is not in {error}"));
        };
        earlier.check_load(&same).unwrap();
        let both = [
            "precinct (usual) by 10 players with 20 NPCs was played",
            "precinct (usual) by 500 players with 20 NPCs is to be",
        ];
        refused(WantedLoad { players: 500, ..same }, &both);
        refused(WantedLoad { players: 500, ..same }, &["say --scenario usual --players 10, or name a report"]);
        refused(WantedLoad { npcs: Some(21), ..same }, &["say --scenario usual --players 10 --npcs 20, or"]);
        refused(WantedLoad { scenario: "dark-zone", ..same }, &["say --scenario usual --players 10, or"]);
        refused(WantedLoad { game: "frontier", ..same }, &["play precinct, and say --scenario"]);

        // Where the report says how many were wanted, those count, however many there were.
        let mut wanted = figures();
        wanted["conditions"] = json!({"players": "11", "npcs": "20", "saves": "none"});
        let wanted = read("wanted-sizes", &wanted.to_string(), false).unwrap();
        wanted.check_load(&WantedLoad { players: 11, ..same }).unwrap();
        let error = wanted.check_load(&WantedLoad { npcs: Some(21), ..same }).unwrap_err().to_string();
        assert!(error.contains("--players 11 --npcs 20, or"), "{error}");
        let error = wanted.check_load(&same).unwrap_err().to_string();
        assert!(error.contains("say --scenario usual --players 11, or"), "{error}");

        let mut uncounted = figures();
        uncounted["npcs"] = 0.into();
        let uncounted = read("uncounted", &uncounted.to_string(), false).unwrap();
        uncounted.check_load(&same).unwrap();
        uncounted.check_load(&WantedLoad { npcs: None, ..same }).unwrap();
    }
}
