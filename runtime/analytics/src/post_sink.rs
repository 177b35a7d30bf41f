//! The post sink: lines to a receiver over HTTP, and onto the disk while it does not take them.
//!
//! A request holds whole lines, of as many events as came within a period. What the receiver acknowledges is done. What
//! it does not take now goes into the spool, one file for each request, and is sent from there in its order, oldest
//! first, with pauses that grow from half a second to a minute. While anything is in the spool, what is new goes there,
//! too. The spool is bounded; what finds no room in it is dropped and counted. It outlives the server: the next run sends
//! what is there. Once the server has been told to stop, nothing is sent from the spool, and what is new goes there, but for one
//! last request, which is in it before it is sent: a receiver that is slow or never answers is waited for no longer than the server has
//! time, and nothing is lost by that which the spool has room for.
//!
//! A request whose answer was lost is sent again: a receiver knows an event by session and sequence.
//!
//! ```text
//! SPOOL/1764154800123-00000001-512.jsonl       ms since 1970 of the run's start, number, events
//! ```

use std::{
    collections::VecDeque,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use flate2::{Compression, write::GzEncoder};
use throng_profiler::{log_info, log_warn};

use crate::{
    backlog::{Backlog, Taken},
    counts::{SharedCounts, add},
    error::StartError,
    lines::Batch,
    log::ANALYTICS,
    pauses::Pauses,
};

/// Sends a request.
pub trait Post: Send {
    /// Sends JSON lines, packed with gzip or not, and waits for the answer; ends by itself when there is none.
    fn post(&mut self, body: &[u8], is_gzip: bool) -> Result<(), PostError>;
}

/// Why the receiver does not have a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostError {
    /// It may have it later: it is away, overloaded, or refuses the key.
    Later(String),
    /// It will never take these lines.
    Never(String),
}

/// How events are posted.
#[derive(Clone, Debug)]
pub struct PostSettings {
    /// The spool's folder; made if it is not there.
    pub spool: PathBuf,
    pub spool_bytes_max: u64,
    /// Lines of one request (bytes, before they are packed). A single batch is never divided.
    pub post_bytes_max: usize,
    /// How long the first event of a request waits for others.
    pub period: Duration,
    pub gzip: bool,
}

pub(crate) struct PostSink {
    settings: PostSettings,
    post: Box<dyn Post>,
    counts: Arc<SharedCounts>,
    spool: Spool,
    /// What the next request is to hold, and since when.
    gathered: Batch,
    since: Instant,
    pauses: Pauses,
    /// Nothing is sent before; none while the receiver takes what it gets.
    next_try: Option<Instant>,
    packed: Vec<u8>,
    /// The server has been told to stop.
    is_ending: bool,
}

impl PostSink {
    pub fn open(settings: PostSettings, post: Box<dyn Post>, counts: Arc<SharedCounts>) -> Result<Self, StartError> {
        let spool = Spool::open(&settings.spool, settings.spool_bytes_max);
        let spool = spool.map_err(|cause| StartError::Folder(settings.spool.clone(), cause))?;
        if !spool.files.is_empty() {
            log_info!(
                ANALYTICS,
                requests = spool.files.len(),
                "analytics events of an earlier run are in the spool, and are sent"
            );
        }
        Ok(Self {
            settings,
            post,
            counts,
            spool,
            gathered: Batch::default(),
            since: Instant::now(),
            pauses: Pauses::default(),
            next_try: None,
            packed: Vec::new(),
            is_ending: false,
        })
    }

    /// Until the backlog ends; then everything is with the receiver, in the spool, or counted as dropped.
    pub fn run(&mut self, backlog: &Backlog) {
        loop {
            let taken = backlog.take(self.wait_max());
            self.is_ending |= backlog.is_ending();
            let end = match taken {
                Taken::Batch(batch) => {
                    self.gather(&batch);
                    false
                }
                Taken::Nothing => false,
                Taken::End => true,
            };
            // Once the server ends there is time for one request, which is of what comes last.
            let is_due = self.gathered.events > 0 && self.since.elapsed() >= self.settings.period;
            if end || is_due && !self.is_ending {
                self.send_gathered();
            }
            if end {
                return;
            }
            if !self.is_ending {
                self.send_spooled();
            }
        }
    }

    fn wait_max(&self) -> Duration {
        let gathering = (self.gathered.events > 0).then(|| self.settings.period.saturating_sub(self.since.elapsed()));
        let spooled = (!self.spool.files.is_empty()).then(|| self.until_next_try());
        let soonest = [gathering, spooled].into_iter().flatten().min();
        soonest.unwrap_or(Duration::from_secs(60))
    }

    fn until_next_try(&self) -> Duration {
        self.next_try.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()))
    }

    fn gather(&mut self, batch: &Batch) {
        if self.gathered.events > 0 && self.gathered.lines.len() + batch.lines.len() > self.settings.post_bytes_max {
            if self.is_ending { self.put_gathered_away() } else { self.send_gathered() }
        }
        if self.gathered.events == 0 {
            self.since = Instant::now();
        }
        self.gathered.lines.extend_from_slice(&batch.lines);
        self.gathered.events += batch.events;
    }

    /// To the receiver, or into the spool if that is where things wait.
    fn send_gathered(&mut self) {
        if self.gathered.events == 0 {
            return;
        }
        let batch = std::mem::take(&mut self.gathered);
        let is_away = !self.spool.files.is_empty() || self.next_try.is_some();
        if !is_away && self.is_ending && matches!(self.spool.put(&batch), Ok(true)) {
            match self.send(&batch) {
                true => self.spool.remove_oldest(),
                false => add(&self.counts.spooled_events, batch.events),
            }
        } else if is_away || !self.send(&batch) {
            self.put_away(&batch);
        }
        self.gather_anew(batch);
    }

    fn put_gathered_away(&mut self) {
        let batch = std::mem::take(&mut self.gathered);
        self.put_away(&batch);
        self.gather_anew(batch);
    }

    /// Keeps the memory of what was gathered.
    fn gather_anew(&mut self, mut gathered: Batch) {
        gathered.lines.clear();
        self.gathered = Batch { lines: gathered.lines, events: 0 };
    }

    fn put_away(&mut self, batch: &Batch) {
        match self.spool.put(batch) {
            Ok(true) => add(&self.counts.spooled_events, batch.events),
            Ok(false) => {
                add(&self.counts.dropped_spool_full, batch.events);
                log_warn!(ANALYTICS, events = batch.events, "analytics events are dropped: the spool is full");
            }
            Err(error) => {
                add(&self.counts.dropped_spool_error, batch.events);
                log_warn!(ANALYTICS, events = batch.events, %error, "analytics events are dropped: the spool cannot be written");
            }
        }
    }

    /// The oldest of the spool, if it is time.
    fn send_spooled(&mut self) {
        if self.until_next_try() > Duration::ZERO {
            return;
        }
        let Some(oldest) = self.spool.files.front() else {
            self.next_try = None;
            return;
        };
        let events = oldest.events;
        match self.spool.read(oldest) {
            Ok(batch) if !self.send(&batch) => return,
            Ok(_) => {}
            Err(error) => {
                add(&self.counts.dropped_spool_error, events);
                log_warn!(ANALYTICS, events, %error, "analytics events are dropped: the spool cannot be read");
            }
        }
        self.spool.remove_oldest();
    }

    /// False: it is to be sent later.
    fn send(&mut self, batch: &Batch) -> bool {
        self.packed.clear();
        let body = if self.settings.gzip {
            let mut encoder = GzEncoder::new(&mut self.packed, Compression::fast());
            // Into memory: nothing can fail.
            let _ = encoder.write_all(&batch.lines);
            let _ = encoder.finish();
            &self.packed
        } else {
            &batch.lines
        };
        match self.post.post(body, self.settings.gzip) {
            Ok(()) => {
                add(&self.counts.posted_events, batch.events);
                self.is_back();
                true
            }
            Err(PostError::Never(error)) => {
                add(&self.counts.dropped_refused, batch.events);
                log_warn!(
                    ANALYTICS,
                    events = batch.events,
                    error,
                    "analytics events are dropped: the receiver refuses them for good"
                );
                self.is_back();
                true
            }
            Err(PostError::Later(error)) => {
                add(&self.counts.post_errors, 1);
                self.counts.receiver_is_away.store(true, Ordering::Relaxed);
                let pause = self.pauses.failed();
                self.next_try = Some(Instant::now() + pause);
                log_warn!(
                    ANALYTICS,
                    error,
                    pause_ms = pause.as_millis() as u64,
                    "the receiver of analytics events takes nothing; they wait in the spool"
                );
                false
            }
        }
    }

    fn is_back(&mut self) {
        self.pauses.succeeded();
        self.next_try = None;
        if self.counts.receiver_is_away.swap(false, Ordering::Relaxed) {
            log_info!(ANALYTICS, "the receiver of analytics events takes them again");
        }
    }
}

/// Requests on the disk.
struct Spool {
    folder: PathBuf,
    bytes_max: u64,
    bytes: u64,
    files: VecDeque<Spooled>,
    began_ms: u128,
    next_number: u32,
}

struct Spooled {
    path: PathBuf,
    bytes: u64,
    events: u64,
}

/// What a file is called until it is whole.
const UNFINISHED: &str = "unfinished";

impl Spool {
    fn open(folder: &Path, bytes_max: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            if path.extension().is_some_and(|end| end == UNFINISHED) {
                fs::remove_file(&path)?;
            } else if let Some(events) = events_of(&path) {
                files.push(Spooled { bytes: entry.metadata()?.len(), events, path });
            }
        }
        files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let began_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let bytes = files.iter().map(|file| file.bytes).sum();
        Ok(Self { folder: folder.to_owned(), bytes_max, bytes, files: files.into(), began_ms, next_number: 1 })
    }

    /// False: it is full.
    fn put(&mut self, batch: &Batch) -> io::Result<bool> {
        let bytes = batch.lines.len() as u64;
        if self.bytes + bytes > self.bytes_max {
            return Ok(false);
        }
        let path = self.folder.join(format!("{:013}-{:08}-{}.jsonl", self.began_ms, self.next_number, batch.events));
        let unfinished = path.with_extension(UNFINISHED);
        let written = File::create(&unfinished)
            .and_then(|mut file| file.write_all(&batch.lines).and_then(|()| file.sync_data()))
            .and_then(|()| fs::rename(&unfinished, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        self.next_number += 1;
        self.bytes += bytes;
        self.files.push_back(Spooled { path, bytes, events: batch.events });
        Ok(true)
    }

    fn read(&self, file: &Spooled) -> io::Result<Batch> {
        let mut lines = Vec::with_capacity(file.bytes as usize);
        File::open(&file.path)?.take(file.bytes).read_to_end(&mut lines)?;
        Ok(Batch { lines, events: file.events })
    }

    fn remove_oldest(&mut self) {
        let Some(file) = self.files.pop_front() else { return };
        self.bytes -= file.bytes;
        if let Err(error) = fs::remove_file(&file.path) {
            log_warn!(ANALYTICS, file = %file.path.display(), %error, "a request that was sent stays in the spool, and is sent again");
        }
    }
}

/// How many events a file of the spool says that it holds; `None` if it is none.
fn events_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
    let (numbers, events) = name.rsplit_once('-')?;
    let is_ours = numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    is_ours.then(|| events.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
