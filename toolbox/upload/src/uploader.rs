//! The uploader: brings what a server leaves in its folders to the object store, while it runs.
//!
//! ```text
//! captures/hub/1764000000-812-0.capture   ->   PREFIX/NAME/captures/hub/1764000000-812-0.capture
//! crashes/1764000000-812/report.json      ->   PREFIX/NAME/crashes/1764000000-812/report.json
//! analytics/events-....jsonl              ->   PREFIX/NAME/analytics/events-....jsonl
//! ```
//!
//! One thread of low priority looks through the folders every so often, and sends one file at a time, oldest names first. The
//! folders are the queue: they have bounds of their own, so nothing piles up here, and what the store does not take stays where it is
//! and is tried again, with pauses that grow to five minutes. After a restart the store is asked once what it has, and
//! the same is not sent again. A file is sent when nobody has written to it for a while.

use std::{
    collections::BTreeMap,
    fs, io,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, SystemTime},
};

use throng::{
    settings::{ObjectStoreSettings, Uploaded},
    uploads::SharedUploadCounts,
};
use throng_platform::threads::{Priority, spawn_named};
use throng_profiler::{log_category, log_info, log_warn};

use crate::{
    folder::{Found, as_folder, files, listed, put_unless_same},
    store::{Store, StoreError},
};

log_category!(STORE = "server.object_store");

/// A file that was written to within this may not be whole.
const SETTLED_AFTER: Duration = Duration::from_secs(5);
/// The first pause after an error, and the longest.
const PAUSE_MIN: Duration = Duration::from_secs(2);
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// A folder that is uploaded.
#[derive(Clone, Debug)]
pub struct Watched {
    pub what: Uploaded,
    pub folder: PathBuf,
    /// Whoever writes files there may leave one alone for so long and still go on with it.
    pub settled_after: Duration,
}

impl Watched {
    /// Of files that are written at once.
    pub fn new(what: Uploaded, folder: PathBuf) -> Self {
        Self { what, folder, settled_after: SETTLED_AFTER }
    }
}

/// Uploads until it is dropped; a file that is on its way then is sent again by the next run.
pub struct Uploader {
    /// Nothing is ever sent: its end is the order to stop.
    order: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Uploader {
    /// `name`: this server's folder in the store.
    pub fn start(
        store: Store,
        settings: &ObjectStoreSettings,
        watched: Vec<Watched>,
        name: &str,
        counts: Arc<SharedUploadCounts>,
    ) -> io::Result<Self> {
        let (order, orders) = sync_channel(1);
        let period = Duration::from_secs(settings.period_s.into());
        let prefix = format!("{}{name}", as_folder(&settings.prefix));
        let mut rounds = Rounds { store, prefix, keep_local: settings.keep_local, watched, counts, known: None };
        log_info!(STORE, prefix = %rounds.prefix, "files go to the object store");
        let thread = spawn_named("uploader", Priority::Low, move || {
            let (mut wait, mut pause) = (Duration::ZERO, PAUSE_MIN);
            while orders.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let is_asked_to_stop = || orders.try_recv() == Err(std::sync::mpsc::TryRecvError::Disconnected);
                match rounds.go(is_asked_to_stop) {
                    Ok(()) => (wait, pause) = (period, PAUSE_MIN),
                    Err(error) => {
                        rounds.counts.failed();
                        log_warn!(STORE, %error, pause_s = pause.as_secs(), "the object store takes nothing; files stay where they are");
                        (wait, pause) = (pause, (pause * 2).min(PAUSE_MAX));
                    }
                }
            }
        })?;
        Ok(Self { order: Some(order), thread: Some(thread) })
    }

    /// Waits for `wait_max` for the file that is on its way. Without it, dropping waits for nothing.
    pub fn finish(mut self, wait_max: Duration) {
        drop(self.order.take());
        let end = std::time::Instant::now() + wait_max;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            log_warn!(
                STORE,
                "the object store has not answered, and is not waited for; files stay where they are, and the next start sends them"
            );
        }
    }
}

/// What a file was when it was last seen in the store: its size and when it was written.
type Seen = (u64, Option<SystemTime>);

struct Rounds {
    store: Store,
    prefix: String,
    keep_local: bool,
    watched: Vec<Watched>,
    counts: Arc<SharedUploadCounts>,
    /// By name below the prefix; none before the store has been asked.
    known: Option<Known>,
}

#[derive(Default)]
struct Known {
    /// Sizes of objects of earlier runs, until their files are looked at.
    there: BTreeMap<String, u64>,
    stored: BTreeMap<String, Seen>,
}

impl Rounds {
    /// Looks through all folders once.
    fn go(&mut self, stop: impl Fn() -> bool) -> Result<(), StoreError> {
        if self.known.is_none() {
            self.known = Some(Known { there: listed(&self.store, &self.prefix)?, stored: BTreeMap::new() });
        }
        for index in 0..self.watched.len() {
            let watched = self.watched[index].clone();
            // Made by whoever first puts something into it.
            if !watched.folder.is_dir() {
                continue;
            }
            let found = match files(&watched.folder) {
                Ok(found) => found,
                Err(error) => {
                    self.counts.cannot_be_read();
                    log_warn!(STORE, %error, "a folder cannot be looked through, and is not uploaded");
                    continue;
                }
            };
            let before = format!("{}/", watched.what.name());
            let Some(known) = &mut self.known else { return Ok(()) };
            // What is gone here needs not be remembered; what is in the store stays there.
            let is_here = |name: &str| found.binary_search_by(|file| file.name.as_str().cmp(name)).is_ok();
            known.stored.retain(|name, _| name.strip_prefix(&before).is_none_or(is_here));
            for file in found {
                if stop() {
                    return Ok(());
                }
                self.look_at(&watched, Found { name: format!("{before}{}", file.name), ..file })?;
            }
        }
        Ok(())
    }

    fn look_at(&mut self, watched: &Watched, file: Found) -> Result<(), StoreError> {
        let Some(known) = &mut self.known else { return Ok(()) };
        let written = fs::metadata(&file.path).ok().and_then(|metadata| metadata.modified().ok());
        let age = written.and_then(|written| SystemTime::now().duration_since(written).ok()).unwrap_or_default();
        let seen = (file.size_bytes, written);
        // Events that wait for their receiver are no files of events.
        let is_spool = watched.what == Uploaded::Analytics && !is_events(&file.name);
        if is_spool || age < watched.settled_after || known.stored.get(&file.name) == Some(&seen) {
            return Ok(());
        }
        match put_unless_same(&self.store, &self.prefix, &file, known.there.get(&file.name).copied()) {
            Ok(true) => self.counts.uploaded(file.size_bytes),
            Ok(false) => self.counts.was_there(),
            Err(error @ (StoreError::Local { .. } | StoreError::TooLarge { .. })) => {
                self.counts.cannot_be_read();
                log_warn!(STORE, %error, "a file cannot be uploaded; the others go on");
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        known.there.remove(&file.name);
        let is_removed = !self.keep_local && watched.what != Uploaded::Crashes;
        if is_removed && let Err(error) = fs::remove_file(&file.path) {
            log_warn!(STORE, file = %file.path.display(), %error, "a file that is in the object store stays here, too");
        }
        known.stored.insert(file.name, seen);
        Ok(())
    }
}

fn is_events(name: &str) -> bool {
    name.strip_prefix("analytics/").is_some_and(|name| name.starts_with("events-"))
}
