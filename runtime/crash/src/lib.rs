//! Crash: a report of the process's own death.
//!
//! A server that dies without a cause is repaired by guessing. Here every death that the process can notice leaves a
//! folder: a minidump with the stacks of all threads, the scopes that were open, the worlds that were being ticked, and
//! a page that says it in plain words. It must work when least can be relied upon (a stack that is used up, a broken
//! heap), so the work is split by what each part may touch:
//!
//! | part | runs on | may |
//! | --- | --- | --- |
//! | [`crash_signal`] | the dying thread, on a stack of its own | write a few bytes, sleep; no heap, no lock of ours |
//! | [`StateSource`] | the state writer, a thread that was started in advance | everything, but the process is doomed: it has 1.5 s, and nobody relies on it |
//! | [`monitor`] | another process, asleep until then | everything: it reads the dead one from outside |
//!
//! ```text
//! server                                                monitor
//!   install ── start, settings, shared state ──────────▶ sleeps
//!   state writer tells what the process does, 4 times a second, to memory that both have
//!   SIGSEGV ─▶ handler wakes state writer ─▶ newest state
//!                  └─ context of the thread ───────────▶ stops all threads, writes crash.dmp, reads the stacks
//!   dies by its signal ◀────────────── done ────────────┘ finds names, writes report.json and report.txt
//! ```
//!
//! A process that is killed (`kill -9`, the kernel when memory runs out) can say nothing; the monitor sees the line go
//! dead and reports with the state that the state writer left last, at most 0.25 s old.
//!
//! Nothing secret may get out: of a stack only what points to code or to the stack itself is kept, of registers only
//! what points somewhere, and neither environment nor command line are looked at.
//!
//! Equal deaths have one signature, by which [`deaths`] groups the reports of a folder.
//!
//! Cost: a sleeping process, a sleeping thread that wakes 4 times a second, and nothing at all on any other thread.

mod cause;
pub mod culprits;
pub mod deaths;
pub mod drill;
mod dump;
pub mod last_words;
mod live;
mod maps;
pub mod monitor;
mod names;
mod panics;
mod report;
mod signature;
mod stack;
mod state;
mod state_writer;
mod symbols;
mod wire;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use thiserror::Error;
use throng_platform::{crash_signal, message_pair};

pub use live::LiveStacks;
pub use panics::PanicWords;
pub use report::{CrashReport, CrashedThread, Frame, SignalName};
pub use state::{ProcessState, StateSource, ThreadState, WorldState};
pub use throng_platform::crash_signal::CrashSite;

/// The first argument with which the executable must call [`monitor::run`]; the second is the id of the process to watch.
pub const MONITOR_COMMAND: &str = "crash-monitor";

/// What a report needs to know in advance, and where it goes.
#[derive(Clone, Debug)]
pub struct CrashSettings {
    /// Each death gets a folder in this one, `crash-<unix seconds>-<process>`. Made if it is not there.
    pub folder: PathBuf,
    /// Folders of deaths that are kept; the oldest go first. Too low → the first of a series of crashes, which is the
    /// telling one, is lost; too high → disk, about 1 MB each with a capture.
    pub crashes_kept: usize,
    /// Bytes of all of them together; the oldest go first, and the newest stays. Too low → a single death is kept; too
    /// high → disk, where a server dies over and over with large captures.
    pub bytes_kept: u64,
    /// Which build this is, so that addresses can be looked up later.
    pub build: String,
    pub game: String,
    /// The seed that the worlds' seeds come from.
    pub seed: Option<u64>,
    /// Started with [`MONITOR_COMMAND`] and this process's id as its arguments; as a rule this very executable.
    pub monitor_executable: PathBuf,
}

impl CrashSettings {
    pub const CRASHES_KEPT: usize = 10;
    /// A report takes 1 to 20 MB: stacks of all threads, and a capture of the last seconds.
    pub const BYTES_KEPT: u64 = 256 << 20;

    /// Reports into `folder`, with this executable as the monitor.
    pub fn new(folder: impl Into<PathBuf>, build: impl Into<String>, game: impl Into<String>) -> io::Result<Self> {
        Ok(Self {
            folder: folder.into(),
            crashes_kept: Self::CRASHES_KEPT,
            bytes_kept: Self::BYTES_KEPT,
            build: build.into(),
            game: game.into(),
            seed: None,
            monitor_executable: std::env::current_exe()?,
        })
    }
}

/// Why no reports would be written.
#[derive(Debug, Error)]
pub enum CrashError {
    #[error("crash reports cannot go to {}: {source} (name a folder that this user may write)", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error("the crash monitor {} cannot be started: {source}", executable.display())]
    Monitor { executable: PathBuf, source: io::Error },
    #[error("the crash monitor did not answer: {0} (does `{MONITOR_COMMAND}` of this executable call the monitor?)")]
    MonitorSilent(io::Error),
    #[error("this process has a crash handler already: install it once, in main")]
    InstalledAlready,
    #[error("the kernel refused what a crash handler needs: {0}")]
    System(#[from] io::Error),
}

/// Reports deaths until it is dropped, which says that the process ends in good order. Dropped by a panic on its way out
/// of the process it says no such thing: it ends the process by SIGABRT there and then, with a report. That has all
/// threads and their scopes, and what the panic said and where it was, though its frames are gone by then.
#[must_use = "without it nothing is reported"]
pub struct CrashGuard {
    state_writer: Option<state_writer::Running>,
    handler: Option<crash_signal::Installed>,
    monitor: Child,
}

/// From now on a death of this process is reported.
///
/// Call it once, from the main thread, before worlds are ticked; it starts a process and a thread. Works beside
/// [`throng_platform::signals`], which handles other signals. Afterwards SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE and
/// SIGTRAP are reported and then end the process as they would have.
pub fn install(settings: CrashSettings, source: impl StateSource + 'static) -> Result<CrashGuard, CrashError> {
    let claim = crash_signal::Claim::new().ok_or(CrashError::InstalledAlready)?;
    std::fs::create_dir_all(&settings.folder)
        .map_err(|source| CrashError::Folder { folder: settings.folder.clone(), source })?;
    // The monitor has another working directory one day; the folder must not move with it.
    let folder = std::path::absolute(&settings.folder)?;

    let (line, monitors_end) = message_pair::new()?;
    let shared = state::SharedState::new()?;
    let monitor = start_monitor(&settings.monitor_executable, monitors_end)?;
    let hello = wire::Hello {
        folder: folder.clone(),
        crashes_kept: settings.crashes_kept,
        bytes_kept: settings.bytes_kept,
        build: settings.build,
        game: settings.game,
        seed: settings.seed,
        pid: std::process::id(),
    };
    wire::send_hello(line.as_fd(), &hello, shared.as_fd()).map_err(CrashError::MonitorSilent)?;
    wire::wait_ready(line.as_fd(), MONITOR_PATIENCE).map_err(CrashError::MonitorSilent)?;

    let state_writer = state_writer::start(Box::new(source), shared, hello)?;
    panics::note_from_now_on();
    let installed = claim.install(line, state_writer.wake(), monitor.id());
    let handler = installed.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => CrashError::InstalledAlready,
        _ => CrashError::System(error),
    })?;
    Ok(CrashGuard { state_writer: Some(state_writer), handler: Some(handler), monitor })
}

/// Time in which a monitor starts even on a host that is busy.
const MONITOR_PATIENCE: Duration = Duration::from_secs(10);

impl Drop for CrashGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Nobody has caught it, so it is the server's death.
            std::process::abort();
        }
        // The handler first: it uses the state writer. Dropping it says goodbye, on which the monitor ends.
        drop(self.handler.take());
        drop(self.state_writer.take());
        let _ = self.monitor.wait();
    }
}

fn start_monitor(executable: &Path, line: OwnedFd) -> Result<Child, CrashError> {
    Command::new(executable)
        .arg(MONITOR_COMMAND)
        // For `ps`, and for the next server, which waits for what it writes.
        .arg(std::process::id().to_string())
        // Its end of the line. Everything else that this process has open closes by itself.
        .stdin(Stdio::from(line))
        .stdout(Stdio::null())
        // Ctrl-C is for the server, which then says goodbye.
        .process_group(0)
        .spawn()
        .map_err(|source| CrashError::Monitor { executable: executable.to_owned(), source })
}
