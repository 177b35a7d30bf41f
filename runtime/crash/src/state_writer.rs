//! The state writer: a thread that asks the [`StateSource`] what the process does, 4 times a second and when it dies.
//!
//! It is ordinary code on an ordinary stack, which is its point: what it writes would be hard to get out of a signal
//! handler. Should it hang because the crash left a lock held, the handler stops waiting and the monitor takes the
//! state from before.

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fs, io, thread};

use nix::sys::eventfd::{EfdFlags, EventFd};
use throng_platform::crash_signal::{BOARD, CrashSite};
use throng_platform::threads::{Priority, spawn_named, this_thread_id};

use crate::report::{self, CrashReport};
use crate::state::{ProcessState, SharedState, StateSource};
use crate::{cause, last_words, panics, wire};

/// How often the state is written: a process that is killed leaves one that is at most this old.
const STATE_EVERY: Duration = Duration::from_millis(250);
/// How long the thread waits to hear whether the monitor has the crash.
const MONITOR_DOUBT: Duration = Duration::from_millis(200);

/// The thread; ends when dropped.
pub(crate) struct Running {
    wake: Arc<EventFd>,
    must_end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// The descriptor by which a signal handler wakes it.
    pub fn wake(&self) -> RawFd {
        self.wake.as_fd().as_raw_fd()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.must_end.store(true, Ordering::Relaxed);
        // Fails only if it is awake already.
        let _ = self.wake.write(1);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) fn start(source: Box<dyn StateSource>, shared: SharedState, hello: wire::Hello) -> io::Result<Running> {
    let wake = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?);
    let must_end = Arc::new(AtomicBool::new(false));
    let mut writer = StateWriter { source, shared, hello };
    let thread = spawn_named("crash-state", Priority::Normal, {
        let (wake, must_end) = (wake.clone(), must_end.clone());
        move || {
            BOARD.set_state_writer(this_thread_id());
            while !must_end.load(Ordering::Relaxed) {
                if let Some(site) = BOARD.crash() {
                    writer.write_last_words(&site);
                    return;
                }
                writer.write_state();
                let _ = wire::readable_within(wake.as_fd(), STATE_EVERY);
            }
        }
    })?;
    Ok(Running { wake, must_end, thread: Some(thread) })
}

struct StateWriter {
    source: Box<dyn StateSource>,
    shared: SharedState,
    hello: wire::Hello,
}

impl StateWriter {
    /// A state that cannot be had or written leaves the one before.
    fn write_state(&mut self) -> Option<ProcessState> {
        let mut state = catch_unwind(AssertUnwindSafe(|| self.source.state())).ok()?;
        state.panics = panics::all();
        state.last_words = last_words::said();
        let _ = self.shared.write(&state);
        Some(state)
    }

    fn write_last_words(&mut self, site: &CrashSite) {
        let state = self.write_state();
        BOARD.state_is_written();
        let folder = self.hello.folder.join(report::folder_name(site.died_at_unix_s, self.hello.pid));
        if fs::create_dir_all(&folder).is_ok() {
            let _ = catch_unwind(AssertUnwindSafe(|| self.source.attach(site, &folder)));
            if monitor_is_lost() {
                let _ = self.report_alone(site, state.unwrap_or_default(), &folder);
            }
        }
        BOARD.is_attached();
    }

    /// Without a monitor there are no stacks, but all the rest.
    fn report_alone(&self, site: &CrashSite, state: ProcessState, folder: &Path) -> io::Result<()> {
        let mut report = CrashReport::new(&self.hello, site.died_at_unix_s);
        report.signal = Some(cause::signal_name(site.signal));
        report.meaning = cause::plain_meaning(site.signal).to_owned();
        report.incomplete.push("the crash monitor had ended: no minidump and no stacks".into());
        report.describe_process(state, Duration::ZERO, Some(site.tid));
        cause::tell_of_own_end(&mut report);
        report.write(folder)
    }
}

fn monitor_is_lost() -> bool {
    const LOOK_EVERY: Duration = Duration::from_millis(2);
    for _ in 0..MONITOR_DOUBT.as_millis() / LOOK_EVERY.as_millis() {
        if let Some(has_it) = BOARD.monitor_has_it() {
            return !has_it;
        }
        thread::sleep(LOOK_EVERY);
    }
    false
}
