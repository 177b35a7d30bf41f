//! A request to stop, from Ctrl-C, from `kill`, or from the program itself.
//!
//! A signal handler may do almost nothing, so ours does two things: it sets a flag, and it makes an
//! eventfd readable. The flag is what the server's loop reads each frame; the eventfd is what wakes a
//! thread that sleeps in the kernel. It is needed beside the interrupted system call because a signal is
//! given to any one thread, and because it may arrive just before the sleep begins.
//!
//! Any thread. Reading the flag costs one load and never blocks.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, OnceLock};

use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction, signal};

/// Whether somebody asked for a stop; clones show the same answer. Never taken back.
#[derive(Clone)]
pub struct StopFlag {
    shared: Arc<Stop>,
}

struct Stop {
    /// Written by whoever requests, read by the loops. Relaxed: it carries no other data.
    requested: AtomicBool,
    /// Readable from the request on, for ever.
    wake: OwnedFd,
}

impl StopFlag {
    /// A flag that no signal sets, for servers that live inside a test or a tool.
    pub fn new() -> io::Result<StopFlag> {
        let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(StopFlag { shared: Arc::new(Stop { requested: AtomicBool::new(false), wake: wake.into() }) })
    }

    pub fn requested(&self) -> bool {
        self.shared.requested.load(Ordering::Relaxed)
    }

    /// Asks for the stop. May be called again; the second time changes nothing.
    pub fn request(&self) {
        self.shared.requested.store(true, Ordering::Relaxed);
        let one = 1_u64;
        // SAFETY: 8 readable bytes. The only failure is a full eventfd, which is readable already.
        unsafe { libc::write(self.shared.wake.as_raw_fd(), (&raw const one).cast(), 8) };
    }
}

/// Readable once the stop was requested: part of a `wait_readable` that must end then.
impl AsFd for StopFlag {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.wake.as_fd()
    }
}

/// From now on SIGINT and SIGTERM set the returned flag instead of ending the process.
///
/// Called again, it returns the same flag. A second signal finds the flag set and changes nothing: an
/// impatient operator has SIGKILL, and a save that is under way must not be cut short by a second Ctrl-C.
pub fn install_stop() -> StopFlag {
    let flag =
        SIGNALLED.get_or_init(|| StopFlag::new().expect("no descriptor left for the stop request (see `ulimit -n`)"));
    // Only now, so that a handler always finds the flag.
    INSTALLED.call_once(|| {
        // Without SA_RESTART, so that the thread that gets the signal leaves its system call.
        let action = SigAction::new(SigHandler::Handler(on_signal), SaFlags::empty(), SigSet::empty());
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            // SAFETY: `on_signal` only does what is async-signal-safe: loads, stores and one write().
            unsafe { sigaction(signal, &action) }.expect("SIGINT and SIGTERM can be handled");
        }
    });
    flag.clone()
}

/// From now on these signals do nothing to this process: for one that ends by itself when another does.
pub fn ignore(ignored: &[Signal]) -> io::Result<()> {
    for &one in ignored {
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe { signal(one, SigHandler::SigIgn) }?;
    }
    Ok(())
}

/// Kept for the life of the process, so that the handler's descriptor is never closed.
static SIGNALLED: OnceLock<StopFlag> = OnceLock::new();
static INSTALLED: Once = Once::new();

extern "C" fn on_signal(_signal: i32) {
    // `errno` belongs to the code that was interrupted.
    let errno = nix::errno::Errno::last_raw();
    if let Some(flag) = SIGNALLED.get() {
        flag.request();
    }
    nix::errno::Errno::set_raw(errno);
}

thread_local! {
    static STOP_SEEN: Cell<bool> = const { Cell::new(false) };
}

/// What a wait of this thread should also watch: the signals' descriptor, until it has woken this thread
/// once. After that a server that is shutting down sleeps between its last frames instead of spinning.
pub(crate) fn unseen_stop() -> Option<BorrowedFd<'static>> {
    if STOP_SEEN.get() { None } else { SIGNALLED.get().map(AsFd::as_fd) }
}

pub(crate) fn mark_stop_seen() {
    STOP_SEEN.set(true);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::wait_readable;
    use crate::time::Nanos;

    #[test]
    fn a_flag_of_ones_own_is_set_by_hand_and_ends_a_wait() {
        let flag = StopFlag::new().unwrap();
        let other = flag.clone();
        assert!(!other.requested());
        flag.request();
        flag.request();
        assert!(other.requested());
        assert!(wait_readable(&[other.as_fd()], Some(Nanos::from_secs(600))).unwrap());
    }
}
