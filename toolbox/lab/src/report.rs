//! The report of a load run on disk: `report.json` for programs, `report.html` for people.
//!
//! The page is one file without scripts, fonts or links to fetch, so that it can be attached to a ticket and still be
//! read in ten years.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use throng_history::Machine;

use crate::charts::{self, ChartError};
use crate::earlier_runs::{self, RunFigures};
use crate::load::LoadRun;
use crate::page;

/// Where the report is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportFiles {
    pub json: PathBuf,
    pub html: PathBuf,
}

impl ReportFiles {
    pub(crate) fn within(folder: &Path) -> Self {
        Self::named(folder, "report")
    }

    pub(crate) fn named(folder: &Path, name: &str) -> Self {
        Self { json: folder.join(format!("{name}.json")), html: folder.join(format!("{name}.html")) }
    }

    /// Writes both into `folder`, which is made if it is missing.
    pub(crate) fn write(&self, folder: &Path, object: &Value, html: &str) -> Result<(), ReportError> {
        let text = serde_json::to_string_pretty(object)? + "\n";
        make_folder(folder)?;
        for (path, text) in [(&self.json, &*text), (&self.html, html)] {
            std::fs::write(path, text).map_err(|cause| ReportError::Write { path: path.clone(), cause })?;
        }
        Ok(())
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error("the report cannot be written to {}: {cause}; name a folder that can be with --report", path.display())]
    Write { path: PathBuf, cause: std::io::Error },
    #[error(transparent)]
    Chart(#[from] ChartError),
    #[error("the report cannot be put into JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Makes the folder of a report. Before the run, since a run of hours whose report has no place is lost.
pub fn make_folder(folder: &Path) -> Result<(), ReportError> {
    std::fs::create_dir_all(folder).map_err(|cause| ReportError::Write { path: folder.to_owned(), cause })
}

/// Writes both files into `folder`, which is made if it is missing, and notes the page's path in the run's report.
///
/// # Errors
/// If they cannot be written. The run then names no page.
pub fn write(run: &mut LoadRun, folder: &Path) -> Result<ReportFiles, ReportError> {
    let files = ReportFiles::within(folder);
    run.report.report = Some(files.html.display().to_string());
    write_files(run, folder, &files).inspect_err(|_| run.report.report = None)?;
    Ok(files)
}

fn write_files(run: &mut LoadRun, folder: &Path, files: &ReportFiles) -> Result<(), ReportError> {
    let machine = Machine::here();
    run.report.more.insert("machine".to_owned(), serde_json::to_value(&machine)?);

    // Before this run's report takes the place of one that is compared.
    let runs = earlier_runs::beside(folder, RunFigures::of(&run.report, &machine)?);
    let written_unix_s = runs.last().map_or(0, |own| own.written_unix_s);
    let html = page::page(run, &machine, &charts::draw_all(run)?, &charts::chart_by_build(&runs)?);
    let mut object = serde_json::to_value(&run.report)?;
    if let Some(object) = object.as_object_mut() {
        object.insert("command".to_owned(), run.command.clone().into());
        object.insert("written_unix_s".to_owned(), written_unix_s.into());
        object.insert("window".to_owned(), json!({"begin": run.window.start, "end": run.window.end}));
        object.insert("by_second".to_owned(), serde_json::to_value(&run.seconds)?);
    }
    files.write(folder, &object, &html)
}

#[cfg(test)]
mod tests;
