//! Index: one page over all days, made of their `report.json`.
//!
//! Days may come from other builds and other hosts, or be half written: what is no day is named with why, and passed by. Nothing
//! in a report sizes an allocation beyond what is there, and the newest [`DAYS_MAX`] are shown.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use maud::{Markup, html};
use serde::Deserialize;

use super::folder::{FORMAT, INDEX, parse};
use super::page::style;
use super::row::DayVerdict;
use crate::document::{Heading, document};

/// Three years.
const DAYS_MAX: usize = 1_100;
/// Folders that are told of one by one; more are counted.
const SKIPPED_TOLD_MAX: usize = 50;
/// A day of 100 runs has 200 KiB.
const REPORT_BYTES_MAX: u64 = 16 << 20;
/// Columns of runs; more are counted.
const RUNS_MAX: usize = 100;

/// Why there is no index.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("the days in {} cannot be listed: {cause}", root.display())]
    List { root: PathBuf, cause: io::Error },
    #[error("the index over all days cannot be written to {}: {cause}", path.display())]
    Write { path: PathBuf, cause: io::Error },
}

/// Of a day's report what the index shows.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Day {
    daily_format: u32,
    passed: bool,
    interrupted: bool,
    version: String,
    commit: String,
    runs: Vec<Run>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Run {
    game: String,
    scenario: String,
    verdict: DayVerdict,
    page: Option<String>,
}

impl Run {
    fn name(&self) -> String {
        format!("{}, {}", self.game, self.scenario)
    }
}

/// What a folder of days holds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Days {
    /// With the names of their folders, the newest first.
    pub days: Vec<(String, Day)>,
    /// What is no day, and why.
    pub skipped: Vec<(String, String)>,
    pub skipped_count: usize,
}

/// Reads all days in `root` and writes the page over them. Returns its file, and what was passed by, with why.
pub fn write(root: &Path) -> Result<(PathBuf, Vec<(String, String)>), IndexError> {
    let days = read(root).map_err(|cause| IndexError::List { root: root.to_owned(), cause })?;
    let path = root.join(INDEX);
    // Whoever reads it meanwhile has the one or the other.
    let unfinished = root.join(format!("{INDEX}.unfinished"));
    let written = std::fs::write(&unfinished, page(&days)).and_then(|()| std::fs::rename(&unfinished, &path));
    written.map_err(|cause| IndexError::Write { path: path.clone(), cause })?;
    Ok((path, days.skipped))
}

pub(super) fn read(root: &Path) -> io::Result<Days> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(root)? {
        let entry = entry?;
        if entry.path().is_dir() {
            folders.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    // What is no day comes last.
    folders.sort_by(|one, other| parse(other).cmp(&parse(one)).then(one.cmp(other)));
    let mut days = Days::default();
    for name in folders {
        let read = match parse(&name) {
            None => Err("its name is no day".to_owned()),
            Some(_) if days.days.len() >= DAYS_MAX => Err(format!("only the newest {DAYS_MAX} days are shown")),
            Some(_) => read_day(&root.join(&name).join("report.json")),
        };
        match read {
            Ok(day) => days.days.push((name, day)),
            Err(why) => {
                days.skipped_count += 1;
                if days.skipped.len() < SKIPPED_TOLD_MAX {
                    days.skipped.push((name, why));
                }
            }
        }
    }
    Ok(days)
}

fn read_day(path: &Path) -> Result<Day, String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        File::open(path)?.take(REPORT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|cause| format!("its report.json cannot be read: {cause}"))?;
    if bytes.len() as u64 > REPORT_BYTES_MAX {
        return Err(format!("its report.json has more than {REPORT_BYTES_MAX} bytes"));
    }
    let day: Day = serde_json::from_slice(&bytes).map_err(|cause| format!("its report.json is damaged: {cause}"))?;
    match day.daily_format {
        FORMAT => Ok(day),
        0 => Err("its report.json is of no day".to_owned()),
        other => Err(format!("it is of format {other}, and this build reads {FORMAT}")),
    }
}

pub(super) fn page(days: &Days) -> String {
    let newest = days.days.first();
    let title = match days.days.len() {
        0 => "no days yet".to_owned(),
        1 => "one day".to_owned(),
        count => format!("{count} days"),
    };
    let heading = Heading {
        tab: "Days of load runs",
        kind: "Throng days of load runs",
        title: &title,
        verdict: if newest.is_some_and(|(_, day)| day.passed) { "passed" } else { "failed" },
        subtitle: html! { "newest first; the verdict is the newest day's" },
    };
    let (names, untold) = columns(days);
    let sections = html! {
        section {
            h2 { "Days" }
            table {
                tr {
                    th { "Day" } th { "Commit" }
                    @for name in &names { th { (name) } }
                    @if untold > 0 { th { "and " (untold) " more" } }
                    th { "Verdict" }
                }
                @for (folder, day) in &days.days {
                    tr.(if day.passed { "passed" } else { "failed" }) {
                        td { a href={ (folder) "/report.html" } { (folder) } }
                        td { code { (day.commit) } }
                        @for name in &names { td { (cell(folder, day, name)) } }
                        @if untold > 0 { td {} }
                        td {
                            (if day.passed { "passed" } else { "failed" })
                            @if day.interrupted { ", stopped" }
                        }
                    }
                }
            }
        }
        @if days.skipped_count > 0 {
            section {
                h2 { "Not read" }
                p { (days.skipped_count) " folders are no days:" }
                ul { @for (name, why) in &days.skipped { li { code { (name) } ": " (why) } } }
            }
        }
    };
    document(heading, sections)
}

/// The runs of all days, those of the newest first, and how many there are beyond them.
fn columns(days: &Days) -> (Vec<String>, usize) {
    let mut names: Vec<String> = Vec::new();
    let mut known = HashSet::new();
    for run in days.days.iter().flat_map(|(_, day)| &day.runs) {
        if known.insert((&run.game, &run.scenario)) && names.len() < RUNS_MAX {
            names.push(run.name());
        }
    }
    let untold = known.len() - names.len();
    (names, untold)
}

fn cell(folder: &str, day: &Day, name: &str) -> Markup {
    let run = day.runs.iter().find(|run| run.name() == name);
    html! {
        @if let Some(run) = run {
            span.(style(run.verdict)) {
                @match &run.page {
                    // A path that leads out of the day's folder is none of its own.
                    Some(page) if !page.starts_with('/') && !page.contains("..") && !page.contains(':') => {
                        a href={ (folder) "/" (page) } { (run.verdict.name()) }
                    },
                    _ => (run.verdict.name()),
                }
            }
        }
    }
}
