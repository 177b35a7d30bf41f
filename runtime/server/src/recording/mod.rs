//! Recordings: all that enters the worlds of a running server, in files, so that they can be run again ([`crate::replay`]).
//!
//! ```text
//! worlds (workers)        tape: ticks of the input log, checkpoints, hashes      [`tape`]
//!    | parts, about one a second each
//!    v
//! queue, bounded          lost parts are counted; the world begins again         [`queue`]
//!    |
//!    v
//! thread, low priority    groups, compressed -> segments -> the oldest go        [`writer`]  [`folder`]
//! ```
//!
//! One format with checkpoint and input log: a recording is plans of worlds, checkpoints, ticks of input logs and hashes of
//! states, in blocks ([`blocks`]), in groups, in segments ([`segment`]); `docs/spec/recording.md` draws it. It holds what
//! players wrote and what their tokens say of them, and no key of anybody's.
//!
//! A process that dies by a signal has its last second written by a thread that lives ([`RecordingControl::write_last`]); one that is killed
//! loses what was not written yet: two seconds at most.
//!
//! What a world reads and no recording holds is listed in that document, too: nothing of it may matter to what a world
//! computes.
//!
//! Cost while nothing is recorded: one load of a number for each tick.

mod blocks;
mod counts;
mod folder;
mod other_game;
mod queue;
mod reader;
mod segment;
mod server;
mod tape;
#[cfg(test)]
mod tests;
mod writer;

use std::{
    fs, io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use throng_platform::{
    random,
    threads::{Priority, spawn_named},
};
use throng_profiler::log_info;

pub use blocks::{About, Block, CheckpointReason, EndReason, RecordedHash, RecordedTicks, WorldPlan};
pub use folder::{SegmentFile, segments_in};
pub use other_game::OtherGame;
pub use reader::{FaultKind, FileFault, OpenError, RecordingFiles};
pub use segment::{Group, SegmentFault, SegmentHeading, SegmentReader};

pub(crate) use blocks::{PartNumbers, short, shorter};
pub(crate) use counts::{RecordingCounter, RecordingFigures};
pub(crate) use queue::RecordingQueue;
pub(crate) use tape::{Due, SharedTape, turn_of};

use crate::settings::RecordingSettings;
use blocks::LIST_MAX;
use counts::RecordingTotals;
use folder::FolderLock;
use queue::lock_within;
use writer::{Files, Order, RECORDING, Writer};

/// How long worlds are given to hand over what they have when a recording is stopped: each does about once a second.
const LAST_PARTS_WITHIN: Duration = Duration::from_millis(1_200);

/// A recording cannot begin or end.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error(
        "nothing says where recordings go: give [recording] folder in the settings, or --record FOLDER, and start anew"
    )]
    NoFolder,
    #[error("[recording] folder = \"{}\": {cause}; name a folder that this user may write", folder.display())]
    Folder { folder: PathBuf, cause: io::Error },
    #[error(
        "[recording] folder = \"{}\": another server records there; give each a folder of its own", .0.display()
    )]
    FolderInUse(PathBuf),
    #[error("the recording's thread cannot start: {0}; raise `ulimit -u` or the container's pids limit")]
    Thread(io::Error),
    #[error("{count} {what}: a recording names {max} at most, and could not be read")]
    TooMany { what: &'static str, count: usize, max: u64 },
    #[error("a recording is on already")]
    IsOn,
    #[error("no recording is on")]
    IsOff,
    #[error("the server has not begun yet")]
    NotBegun,
}

/// How recording stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordingStatus {
    pub is_on: bool,
    /// `None`: nothing says where to.
    pub folder: Option<PathBuf>,
    /// Worlds that are recorded now: each from its next checkpoint on, where the recording began after it.
    pub worlds: u64,
    /// Since the server's start.
    pub bytes_written: u64,
    pub segments: u64,
    /// Dropped, since there is no more room for them.
    pub segments_dropped: u64,
    pub parts: u64,
    /// Parts that found no room in the queue, or none on the disk.
    pub parts_lost: u64,
    pub bytes_lost: u64,
    pub write_errors: u64,
    pub waiting_bytes: u64,
}

/// Starts and stops recordings of a server, from any thread but the frame's and the workers'.
#[derive(Clone)]
pub struct RecordingControl(Arc<Inner>);

struct Inner {
    settings: RecordingSettings,
    /// `None`: nothing says where to.
    queue: Option<Arc<RecordingQueue>>,
    /// Taken to start, to stop, which keeps it for as long as that takes, to ask how it stands, and by the thread that writes a death
    /// down; never by a frame that is running.
    state: Mutex<State>,
    /// See [`RecordingControl::set_rules`].
    rules: Arc<Mutex<Vec<String>>>,
}

#[derive(Default)]
struct State {
    /// Known once the server is put together.
    about: Option<About>,
    recordings_begun: u32,
    thread: Option<JoinHandle<()>>,
    /// While a recording is on.
    folder_lock: Option<FolderLock>,
    /// What the thread writes with, so that another can where the process dies.
    writer: Option<Arc<Mutex<Writer<Files>>>>,
}

impl RecordingControl {
    pub(crate) fn new(settings: &RecordingSettings) -> Self {
        let queue = settings.folder.as_ref().map(|_| {
            let queue = RecordingQueue::new(settings.queue_mb as usize * MIB as usize, settings.hash_period_s);
            if settings.at_start {
                // Worlds that are made before the first frame are recorded as they are built.
                queue.set_recording_number(1);
            }
            Arc::new(queue)
        });
        Self(Arc::new(Inner { settings: settings.clone(), queue, state: Mutex::default(), rules: Arc::default() }))
    }

    /// Where worlds put what they record; `None` if nothing ever is.
    pub(crate) fn queue(&self) -> Option<&Arc<RecordingQueue>> {
        self.0.queue.as_ref()
    }

    /// The server is put together: this is what a recording of it says of itself. Begins one if the settings want that.
    pub(crate) fn introduce(&self, about: About) -> Result<(), RecordingError> {
        let lists = [
            ("tunables", &about.tunables),
            ("kinds of worlds", &about.kinds),
            ("words of a command line", &about.arguments),
        ];
        if self.0.queue.is_some()
            && let Some((what, list)) = lists.into_iter().find(|(_, list)| list.len() as u64 > LIST_MAX)
        {
            return Err(RecordingError::TooMany { what, count: list.len(), max: LIST_MAX });
        }
        let mut state = self.lock();
        state.about = Some(about);
        if self.0.queue.is_some() && self.0.settings.at_start { self.begin(&mut state) } else { Ok(()) }
    }

    /// These rules are in force: texts, each on top of those before it. Segments that begin from now on have them.
    pub(crate) fn set_rules(&self, texts: Vec<String>) {
        *self.0.rules.lock().unwrap_or_else(PoisonError::into_inner) = texts;
    }

    /// Begins a recording. Worlds are in it from their next checkpoint on, and those that are made from now on as they are
    /// built.
    ///
    /// # Errors
    /// If one is on, or it cannot be written.
    pub fn start(&self) -> Result<(), RecordingError> {
        self.begin(&mut self.lock())
    }

    fn begin(&self, state: &mut State) -> Result<(), RecordingError> {
        if state.thread.is_some() {
            return Err(RecordingError::IsOn);
        }
        let (Some(queue), Some(folder)) = (&self.0.queue, &self.0.settings.folder) else {
            return Err(RecordingError::NoFolder);
        };
        let mut about = state.about.clone().ok_or(RecordingError::NotBegun)?;
        let of_folder = |cause| RecordingError::Folder { folder: folder.clone(), cause };
        fs::create_dir_all(folder).map_err(of_folder)?;
        let lock = FolderLock::take(folder).map_err(of_folder)?;
        let lock = lock.ok_or_else(|| RecordingError::FolderInUse(folder.clone()))?;
        about.unix_s = about.unix_s.max(now_unix_s());
        while folder::segment_path(folder, about.unix_s, 1).exists() {
            about.unix_s += 1;
        }
        let recording_id = random::seed().first_chunk().copied().map_or(0, u64::from_le_bytes);
        let Inner { settings, .. } = &*self.0;
        let order = Order {
            folder: folder.clone(),
            bytes_max: u64::from(settings.max_mb) * MIB,
            segment_s: settings.segment_s,
            about,
            rules: self.0.rules.clone(),
            recording_id,
        };
        queue.set_running();
        let writer = Arc::new(Mutex::new(Writer::new(queue.clone(), order, Files)));
        let its = writer.clone();
        let thread = spawn_named("recording", Priority::Low, move || Writer::run(&its));
        state.thread = Some(thread.map_err(RecordingError::Thread)?);
        (state.writer, state.folder_lock) = (Some(writer), Some(lock));
        state.recordings_begun += 1;
        queue.set_recording_number(state.recordings_begun);
        log_info!(RECORDING, folder = %folder.display(), "what enters the worlds is recorded");
        Ok(())
    }

    /// Ends the recording. Waits until it is written: a second and a half.
    ///
    /// # Errors
    /// If none is on.
    pub fn stop(&self) -> Result<(), RecordingError> {
        let mut state = self.lock();
        let (Some(queue), Some(thread)) = (&self.0.queue, state.thread.take()) else {
            return Err(RecordingError::IsOff);
        };
        state.writer = None;
        queue.set_recording_number(0);
        std::thread::sleep(LAST_PARTS_WITHIN);
        end(queue, thread);
        state.folder_lock = None;
        Ok(())
    }

    /// No world ticks any more, and all have handed over what they had.
    pub(crate) fn close(&self) {
        let (thread, _folder_lock) = {
            let mut state = self.lock();
            state.writer = None;
            (state.thread.take(), state.folder_lock.take())
        };
        if let (Some(queue), Some(thread)) = (&self.0.queue, thread) {
            queue.set_recording_number(0);
            end(queue, thread);
        }
    }

    /// The process dies, and says so here, on a thread that has not crashed: what worlds have entered is written, the ticks included
    /// that they are in. Nothing is recorded after it. Waits `within` at most for who has the recording's locks. False: nothing is
    /// recorded, or that was too short.
    ///
    /// A world whose thread died in the recorder's own work keeps its last second. What is written is with the kernel, and so
    /// outlives the process, not the host.
    pub fn write_last(&self, within: Duration) -> bool {
        let Some(queue) = &self.0.queue else { return false };
        let Some(state) = lock_within(&self.0.state, within) else { return false };
        let Some(writer) = &state.writer else { return false };
        queue.hand_over_last();
        let Some(mut writer) = lock_within(writer, within) else { return false };
        writer.write_now();
        true
    }

    /// How it stands. Waits for who starts or stops.
    pub fn status(&self) -> RecordingStatus {
        let folder = self.0.settings.folder.clone();
        let Some(queue) = &self.0.queue else { return RecordingStatus::default() };
        let RecordingTotals {
            worlds,
            parts,
            parts_lost,
            bytes_lost,
            bytes_written,
            segments,
            segments_dropped,
            write_errors,
        } = queue.counts.read();
        let is_on = self.lock().thread.is_some();
        RecordingStatus {
            is_on,
            folder,
            worlds: if is_on { worlds } else { 0 },
            bytes_written,
            segments,
            segments_dropped,
            parts,
            parts_lost,
            bytes_lost,
            write_errors,
            waiting_bytes: queue.waiting_bytes() as u64,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn end(queue: &RecordingQueue, thread: JoinHandle<()>) {
    queue.end();
    // Its panic was told by its own message.
    let _ = thread.join();
}

fn now_unix_s() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

const MIB: u64 = 1 << 20;
