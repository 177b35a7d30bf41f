//! The file sink: lines in files that rotate, within a bound of bytes.
//!
//! ```text
//! FOLDER/events-1764154800-9f3c5a7e11d2b480-000001.jsonl      second since 1970, session, number
//! ```
//!
//! A file is whole when the next one begins: it is on the disk then (fsync). One that was being written when the process
//! or its host died may end in the middle of a line, and nothing is ever appended behind it: a new run makes a new file.
//! A write that fails takes back what it left; the batch is tried again after a pause, and meanwhile what waits is
//! bounded by the sink's backlog.
//!
//! The oldest files go when all of them would be more than the bound, which holds for the files of earlier runs, too.
//! So each server has a folder of its own.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use throng_profiler::{log_info, log_warn};

use crate::{
    backlog::{Backlog, Taken},
    counts::{SharedCounts, add},
    error::StartError,
    lines::Batch,
    log::ANALYTICS,
    pauses::Pauses,
};

/// How often a file is asked for its age.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// Where and how large.
#[derive(Clone, Debug)]
pub struct FileSettings {
    /// Made if it is not there.
    pub folder: PathBuf,
    /// A file of this size is the last one's end (bytes).
    pub file_bytes_max: u64,
    /// So is one of this age.
    pub file_age_max: Duration,
    /// Of all files together (bytes).
    pub total_bytes_max: u64,
}

pub(crate) struct FileSink {
    settings: FileSettings,
    session: String,
    counts: Arc<SharedCounts>,
    current: Option<Current>,
    next_number: u32,
}

/// The file that is being written.
struct Current {
    file: File,
    path: PathBuf,
    bytes: u64,
    began: Instant,
}

impl FileSink {
    pub fn open(settings: FileSettings, session: &str, counts: Arc<SharedCounts>) -> Result<Self, StartError> {
        let made = fs::create_dir_all(&settings.folder).and_then(|()| fs::read_dir(&settings.folder));
        made.map_err(|cause| StartError::Folder(settings.folder.clone(), cause))?;
        Ok(Self { settings, session: session.to_owned(), counts, current: None, next_number: 1 })
    }

    /// Until the backlog ends; then the last file is whole.
    pub fn run(&mut self, backlog: &Backlog) {
        let mut pauses = Pauses::default();
        loop {
            match backlog.take(LOOK_PERIOD) {
                Taken::Batch(batch) => self.keep(&batch, backlog, &mut pauses),
                Taken::Nothing => {}
                Taken::End => break,
            }
            if self.current.as_ref().is_some_and(|current| current.began.elapsed() >= self.settings.file_age_max) {
                self.rotate();
            }
        }
        self.rotate();
    }

    /// Tries until it is written, or until the server ends.
    fn keep(&mut self, batch: &Batch, backlog: &Backlog, pauses: &mut Pauses) {
        let mut is_last_try = false;
        while let Err(error) = self.write(batch) {
            add(&self.counts.file_errors, 1);
            self.counts.file_is_away.store(true, Ordering::Relaxed);
            log_warn!(
                ANALYTICS, folder = %self.settings.folder.display(), %error,
                "analytics events cannot be written; it is tried again, and events are dropped when too many wait"
            );
            if is_last_try {
                add(&self.counts.dropped_file, batch.events);
                return;
            }
            is_last_try = backlog.pause(pauses.failed());
        }
        pauses.succeeded();
        if self.counts.file_is_away.swap(false, Ordering::Relaxed) {
            log_info!(ANALYTICS, "analytics events are written again");
        }
        add(&self.counts.file_events, batch.events);
        if self.current.as_ref().is_some_and(|current| current.bytes >= self.settings.file_bytes_max) {
            self.rotate();
        }
    }

    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        let mut current = match self.current.take() {
            Some(current) => current,
            None => self.begin()?,
        };
        if let Err(error) = current.file.write_all(&batch.lines) {
            // What was written of it is taken back; where even that fails the file ends here, in a torn line.
            if current.file.set_len(current.bytes).is_ok() {
                self.current = Some(current);
            }
            return Err(error);
        }
        current.bytes += batch.lines.len() as u64;
        self.current = Some(current);
        Ok(())
    }

    fn begin(&mut self) -> io::Result<Current> {
        self.make_room()?;
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let path =
            self.settings.folder.join(format!("events-{unix_s:010}-{}-{:06}.jsonl", self.session, self.next_number));
        let file = OpenOptions::new().append(true).create_new(true).open(&path)?;
        self.next_number += 1;
        Ok(Current { file, path, bytes: 0, began: Instant::now() })
    }

    /// The current file is whole: it is on the disk, and so is its name.
    fn rotate(&mut self) {
        let Some(current) = self.current.take() else { return };
        let folder = || File::open(&self.settings.folder)?.sync_all();
        if let Err(error) = current.file.sync_all().and_then(|()| folder()) {
            add(&self.counts.file_errors, 1);
            log_warn!(ANALYTICS, file = %current.path.display(), %error, "a file of analytics events may not be on the disk");
        }
    }

    /// Removes the oldest files until one more has room.
    fn make_room(&self) -> io::Result<()> {
        let mut files = event_files(&self.settings.folder)?;
        let mut total: u64 = files.iter().map(|(_, bytes)| bytes).sum();
        files.sort_unstable();
        for (path, bytes) in files {
            if total + self.settings.file_bytes_max <= self.settings.total_bytes_max {
                break;
            }
            fs::remove_file(&path)?;
            add(&self.counts.removed_files, 1);
            total -= bytes;
        }
        Ok(())
    }
}

/// The files of events in a folder, with their sizes.
pub(crate) fn event_files(folder: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with("events-") && name.ends_with(".jsonl")) {
            files.push((entry.path(), entry.metadata()?.len()));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
