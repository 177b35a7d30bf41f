//! Faults beside the worlds: threads and processes that take what the worlds need.
//!
//! They live as long as the process; foreign processes end by themselves within seconds, whatever becomes of us.

use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use throng_platform::cores;
use throng_platform::threads::{Priority, spawn_named};
use throng_profiler::sync::Mutex;
use throng_profiler::thread::{self, ThreadClass};
use throng_profiler::{log_category, log_error, scope};

use throng::server::{Server, ServerError};

use crate::{turnover::Turnover, world::compute_until};

log_category!(FAULTS = "faults");

/// Something that goes on beside the worlds, from five seconds after the start on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundFault {
    /// A save takes a lock every so often, and holds it for so long once a world waits for it.
    HoldLock { hold_ms: u64, every_s: u64 },
    /// Busy processes take all cores for so long every so often. As root, or with CAP_SYS_NICE, they are real-time ones,
    /// one for each core, and nothing of ours runs meanwhile. Without, there are eight for each core that weigh as much
    /// as we do, which a server that is mostly idle hardly feels.
    ForeignProcesses { ms: u64, every_s: u64 },
    /// Eight busy threads of ours for each core.
    LongTasks { seconds: u64, every_s: u64 },
    /// A thread allocates and frees.
    Allocate { bytes_per_s: usize },
    /// Worlds come and go by the thousand.
    Turnover(Turnover),
    /// The server sleeps for so long (s) before its first frame.
    HangStart { s: u64 },
}

/// So many that the kernel's turns of a few ms each add up to a wait that a frame feels.
const BUSY_PER_CORE: usize = 8;

/// When backgrounds begin: players should be in by then.
const BEGIN_AFTER: Duration = Duration::from_secs(5);

impl BackgroundFault {
    /// Starts it.
    pub(crate) fn start(self, server: &mut Server) -> Result<(), ServerError> {
        match self {
            BackgroundFault::Turnover(turnover) => turnover.start(server),
            other => other.start_threads().map_err(ServerError::Thread),
        }
    }

    fn start_threads(self) -> io::Result<()> {
        match self {
            BackgroundFault::Turnover(_) => Ok(()),
            BackgroundFault::HangStart { s } => {
                std::thread::sleep(Duration::from_secs(s));
                Ok(())
            }
            BackgroundFault::HoldLock { hold_ms, every_s } => {
                repeat("save-0", Priority::Low, ThreadClass::LongTask, every_s, move || {
                    LEDGER.hold_for_waiter(Duration::from_millis(hold_ms))
                })
            }
            BackgroundFault::ForeignProcesses { ms, every_s } => {
                repeat("thief", Priority::Normal, ThreadClass::Other, every_s, move || run_foreign_processes(ms))
            }
            BackgroundFault::LongTasks { seconds, every_s } => {
                for number in 0..BUSY_PER_CORE * cores::usable().count {
                    repeat(&format!("export-{number}"), Priority::Normal, ThreadClass::LongTask, every_s, move || {
                        scope!("export.compress");
                        compute_until(Instant::now() + Duration::from_secs(seconds));
                    })?;
                }
                Ok(())
            }
            BackgroundFault::Allocate { bytes_per_s } => {
                let piece = bytes_per_s / 100;
                spawn_named("chatter", Priority::Normal, move || {
                    std::thread::sleep(BEGIN_AFTER);
                    loop {
                        std::thread::sleep(Duration::from_millis(10));
                        scope!("chatter.remember");
                        for _ in 0..16 {
                            std::hint::black_box(Vec::<u8>::with_capacity(piece / 16));
                        }
                    }
                })?;
                Ok(())
            }
        }
    }
}

fn repeat(
    name: &str,
    priority: Priority,
    class: ThreadClass,
    every_s: u64,
    work: impl Fn() + Send + 'static,
) -> io::Result<()> {
    spawn_named(name, priority, move || {
        thread::register(class);
        std::thread::sleep(BEGIN_AFTER);
        loop {
            work();
            std::thread::sleep(Duration::from_secs(every_s));
        }
    })?;
    Ok(())
}

/// A record of what happened that worlds look at and a save writes out: with a lock that is held for too long.
pub(crate) struct Ledger {
    pages: Mutex<u64>,
    /// Set by a world that is about to look, so that the save holds the lock for the whole of its wait. A hint:
    /// relaxed.
    is_wanted: AtomicBool,
}

pub(crate) static LEDGER: Ledger = Ledger { pages: Mutex::new("faults.ledger", 0), is_wanted: AtomicBool::new(false) };

impl Ledger {
    pub fn read(&self) -> u64 {
        self.is_wanted.store(true, Ordering::Relaxed);
        let pages = *self.pages.lock();
        self.is_wanted.store(false, Ordering::Relaxed);
        pages
    }

    fn hold_for_waiter(&self, hold: Duration) {
        scope!("save.flush");
        let mut pages = self.pages.lock();
        while !self.is_wanted.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(hold);
        *pages += 1;
    }
}

/// Processes of the shell that do nothing but count, each with its own end.
fn run_foreign_processes(ms: u64) {
    let seconds = format!("{}.{:03}", ms / 1_000, ms % 1_000);
    // Whoever ends them must come before them.
    let (ends, counts): (&[&str], &[&str]) =
        if may_be_real_time() { (&["chrt", "-f", "2"], &["chrt", "-f", "1"]) } else { (&["env"], &[]) };
    let count = cores::usable().count * if counts.is_empty() { BUSY_PER_CORE } else { 1 };
    let busy = |_| {
        let mut command = Command::new(ends[0]);
        command.args(&ends[1..]).args(["timeout", "-s", "KILL", &seconds]);
        command.args(counts).args(["sh", "-c", "while :; do :; done"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    };
    let children: Vec<io::Result<Child>> = (0..count).map(busy).collect();
    for child in children {
        match child {
            Ok(mut child) => drop(child.wait()),
            Err(cause) => log_error!(FAULTS, %cause, "no foreign process could be started: is timeout installed?"),
        }
    }
}

/// Whether this process may start real-time ones.
fn may_be_real_time() -> bool {
    let mut command = Command::new("chrt");
    let tried = command.args(["-f", "1", "true"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}
