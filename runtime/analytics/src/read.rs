//! Reading files of events again: whole lines in their order, and where numbers are missing.
//!
//! For tools and tests; allocates, and blocks on the disk.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

use crate::file_sink::event_files;

/// What a folder of events holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folder {
    pub files: u64,
    pub events: u64,
    /// Files whose last line is torn: their server died, or its disk was full.
    pub torn: u64,
    /// Lines that are no event.
    pub malformed: u64,
    /// Of each session.
    pub sessions: BTreeMap<String, Session>,
}

/// The events of one run of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    pub events: u64,
    /// Sequence numbers between the first and the last event that no event has: dropped, or in files that are gone.
    pub missing: u64,
    first: u64,
    last: u64,
}

impl Session {
    fn note(&mut self, sequence: u64) {
        self.first = if self.events == 0 { sequence } else { self.first.min(sequence) };
        self.last = self.last.max(sequence);
        self.events += 1;
        self.missing = (self.last - self.first + 1).saturating_sub(self.events);
    }

    /// The sequence number of the last event.
    pub fn last(&self) -> u64 {
        self.last
    }
}

/// Reads all files of a folder, in their order; `each` gets every event.
///
/// # Errors
/// If the folder or a file of it cannot be read.
pub fn folder(folder: &Path, mut each: impl FnMut(&serde_json::Value)) -> io::Result<Folder> {
    let mut files = event_files(folder)?;
    files.sort_unstable();
    let mut found = Folder::default();
    for (path, _) in files {
        found.files += 1;
        let mut reader = BufReader::new(File::open(path)?);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            if line.last() != Some(&b'\n') {
                found.torn += 1;
            } else if let Some((event, session, sequence)) = event(&line) {
                found.events += 1;
                found.sessions.entry(session).or_default().note(sequence);
                each(&event);
            } else {
                found.malformed += 1;
            }
            line.clear();
        }
    }
    Ok(found)
}

fn event(line: &[u8]) -> Option<(serde_json::Value, String, u64)> {
    let event: serde_json::Value = serde_json::from_slice(line).ok()?;
    let session = event.get("session")?.as_str()?.to_owned();
    let sequence = event.get("sequence")?.as_u64()?;
    Some((event, session, sequence))
}
