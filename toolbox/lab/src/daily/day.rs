//! Day: what came of a day's runs, and its two files.

use serde::Serialize;
use throng_history::Machine;

use super::folder::{DayFolder, FORMAT};
use super::page;
use super::row::{DayRun, DayVerdict};
use crate::report::{ReportError, ReportFiles};

/// A day's runs, as `report.json` has them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DayReport {
    pub daily_format: u32,
    /// Of its folder: `2026-11-26`.
    pub day: String,
    pub began_unix_s: u64,
    pub ended_unix_s: u64,
    /// All runs have, and none is missing.
    pub passed: bool,
    /// Somebody stopped it before its last run was over.
    pub interrupted: bool,
    pub version: String,
    pub commit: String,
    pub command: String,
    pub machine: Machine,
    pub runs: Vec<DayRun>,
}

impl DayReport {
    /// A day on this machine, with all that is to be run, of which nothing has.
    pub fn begin(day: &DayFolder, began_unix_s: u64, version: &str, commit: &str, runs: Vec<DayRun>) -> Self {
        Self {
            daily_format: FORMAT,
            day: day.name().to_owned(),
            began_unix_s,
            ended_unix_s: began_unix_s,
            passed: false,
            interrupted: false,
            version: version.to_owned(),
            commit: commit.to_owned(),
            command: std::env::args().collect::<Vec<_>>().join(" "),
            machine: Machine::here(),
            runs,
        }
    }

    /// Puts what came of a run into the place that it has in the day.
    pub fn put(&mut self, run: DayRun, now_unix_s: u64) {
        if let Some(place) = self.runs.iter_mut().find(|other| other.folder == run.folder) {
            *place = run;
        }
        self.ended_unix_s = now_unix_s;
        self.passed = !self.interrupted && self.runs.iter().all(|run| run.verdict == DayVerdict::Passed);
    }

    /// It was stopped.
    pub fn interrupt(&mut self, now_unix_s: u64) {
        (self.interrupted, self.passed, self.ended_unix_s) = (true, false, now_unix_s);
    }

    /// How many runs came to this.
    pub fn count(&self, verdict: DayVerdict) -> usize {
        self.runs.iter().filter(|run| run.verdict == verdict).count()
    }

    /// Writes `report.json` and `report.html` into the day's folder, over those of earlier in the day.
    pub fn write(&self, day: &DayFolder) -> Result<ReportFiles, ReportError> {
        let files = ReportFiles::within(day.path());
        files.write(day.path(), &serde_json::to_value(self)?, &page::page(self))?;
        Ok(files)
    }
}
