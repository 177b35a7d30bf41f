//! Ledger: which tests have been run at this commit, and what became of them.
//!
//! A line of JSON for each, in `target/reliability/COMMIT.jsonl`. A tree with changes has one that begins anew with
//! each run: nobody can say what it was that passed.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::XtaskError;
use crate::step;

/// What became of a test.
#[derive(Serialize)]
pub(crate) struct Entry<'a> {
    pub package: &'a str,
    pub test: &'a str,
    pub passed: bool,
    pub seconds: f64,
}

#[derive(Deserialize)]
struct Read {
    package: String,
    test: String,
    passed: bool,
}

pub(crate) struct Ledger {
    path: PathBuf,
    file: File,
    /// Package and test, in the order in which they were run; the last word counts.
    read: Vec<Read>,
}

impl Ledger {
    pub(crate) fn open() -> Result<Self, XtaskError> {
        let git = |words: &[&str]| {
            step::output_of(
                "git",
                step::program("git".as_ref()).args(words),
                "this is to be a checkout of the repository",
            )
        };
        let commit = git(&["rev-parse", "--short=12", "HEAD"])?.trim().to_owned();
        let is_clean = git(&["status", "--porcelain"])?.trim().is_empty();
        let folder = step::target_folder().join("reliability");
        let name = if is_clean { commit } else { format!("{commit}-changed") };
        Self::at(&folder.join(name).with_extension("jsonl"), is_clean)
    }

    /// `keep`: what it says already counts.
    fn at(path: &Path, keep: bool) -> Result<Self, XtaskError> {
        let failed = |cause: std::io::Error| XtaskError::Usage(format!("{}: {cause}", path.display()));
        fs::create_dir_all(path.parent().unwrap_or(path)).map_err(failed)?;
        let text = if keep { fs::read_to_string(path).unwrap_or_default() } else { String::new() };
        // A line that was cut off is of a test that was not over.
        let read = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let file =
            OpenOptions::new().create(true).append(keep).write(true).truncate(!keep).open(path).map_err(failed)?;
        Ok(Self { path: path.to_owned(), file, read })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn has_passed(&self, package: &str, test: &str) -> bool {
        let of_it = self.read.iter().rev().find(|read| read.package == package && read.test == test);
        of_it.is_some_and(|read| read.passed)
    }

    pub(crate) fn note(&mut self, entry: &Entry<'_>) -> Result<(), XtaskError> {
        let line = serde_json::to_string(entry).expect("texts and numbers");
        writeln!(self.file, "{line}").map_err(|cause| XtaskError::Usage(format!("{}: {cause}", self.path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(ledger: &mut Ledger, test: &str, passed: bool) {
        ledger.note(&Entry { package: "net", test, passed, seconds: 1.5 }).unwrap();
    }

    #[test]
    fn what_passed_is_known_to_the_next_run_and_what_failed_is_run_again() {
        let folder = std::env::temp_dir().join(format!("throng-ledger-{}", std::process::id()));
        let path = folder.join("abc.jsonl");
        let mut ledger = Ledger::at(&path, true).unwrap();
        note(&mut ledger, "r07_one", true);
        note(&mut ledger, "r08_two", false);
        note(&mut ledger, "r09_three", false);
        note(&mut ledger, "r09_three", true);
        ledger.file.write_all(br#"{"package":"net","test":"r10_cut"#).unwrap();
        drop(ledger);
        let passed =
            |ledger: &Ledger| ["r07_one", "r08_two", "r09_three", "r10_cut"].map(|test| ledger.has_passed("net", test));
        assert_eq!(passed(&Ledger::at(&path, true).unwrap()), [true, false, true, false]);
        assert!(!Ledger::at(&path, true).unwrap().has_passed("server", "r07_one"), "another package's");
        assert_eq!(passed(&Ledger::at(&path, false).unwrap()), [false; 4], "a tree with changes begins anew");
        fs::remove_dir_all(&folder).unwrap();
    }
}
