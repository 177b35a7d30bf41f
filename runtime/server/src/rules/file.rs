//! The rules file while the server runs: looked at about once a second, read when it has changed.
//!
//! Editors and copying tools write in steps: a file is empty for a moment, or half there, and half a rules file may
//! well be a valid one. So a change is read only when the file has looked the same twice, a second apart: rules come
//! into force 1 to 2 s after they were saved. What cannot be used is told once, and looked at again when the file
//! changes again.
//!
//! Runs on a low-priority thread; touches the disk, and may wait for it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use throng_profiler::{log_category, log_error, log_warn};

use super::{RuleNames, ServerRules};
use crate::settings::SettingsError;

log_category!(RULES = "server.rules");

/// A rules file that is watched.
#[derive(Debug)]
pub struct RulesFile {
    path: PathBuf,
    names: RuleNames,
    /// What was last read, or last found to be of no use.
    judged: Stamp,
    /// What it looked like at the last look.
    seen: Stamp,
}

/// What changes when a file does. `None`: it cannot be looked at.
type Stamp = Option<FileStamp>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    /// Another file in its place, with an older time and the same length, is a change, too.
    inode: u64,
    length_bytes: u64,
    modified: (i64, i64),
}

impl RulesFile {
    /// Reads the file for the first time; from then on it is watched.
    pub fn open(path: &Path, names: RuleNames) -> Result<(RulesFile, ServerRules), SettingsError> {
        // Before reading: what is written meanwhile is a change.
        let stamp = stamp_of(path);
        let rules = ServerRules::load(path, &names).inspect(tell_warnings)?;
        Ok((RulesFile { path: path.to_owned(), names, judged: stamp, seen: stamp }, rules))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn names(&self) -> &RuleNames {
        &self.names
    }

    /// Reads the file now, changed or not; then it counts as read. What is wrong with it is told to the caller alone.
    pub fn reload(&mut self) -> Result<ServerRules, SettingsError> {
        // Before reading, as in `open`.
        self.judged = stamp_of(&self.path);
        self.seen = self.judged;
        ServerRules::load(&self.path, &self.names).inspect(tell_warnings)
    }

    /// The new rules if the file has changed since the last call but one, or why they cannot be used: then those before
    /// stay in force. What is wrong is logged here. To be called about once a second.
    pub fn changed(&mut self) -> Option<Result<ServerRules, SettingsError>> {
        let stamp = stamp_of(&self.path);
        let is_settled = stamp == self.seen;
        self.seen = stamp;
        if stamp == self.judged || !is_settled {
            return None;
        }
        let read = ServerRules::load(&self.path, &self.names);
        if stamp_of(&self.path) != stamp {
            // It was written to while it was read.
            return None;
        }
        self.judged = stamp;
        match &read {
            Ok(rules) => tell_warnings(rules),
            Err(SettingsError::Mistakes(mistakes)) => {
                for mistake in mistakes {
                    log_error!(RULES, %mistake, "the rules file is wrong; the rules before it stay in force");
                }
            }
            Err(cause) => log_error!(RULES, %cause, "the rules file cannot be read; the rules before it stay in force"),
        }
        Some(read)
    }
}

fn tell_warnings(rules: &ServerRules) {
    for warning in &rules.warnings {
        log_warn!(RULES, %warning, "a rule is without effect");
    }
}

fn stamp_of(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some(FileStamp {
        inode: metadata.ino(),
        length_bytes: metadata.len(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
    })
}
