//! Waking a thread that sleeps for sockets: a descriptor that another thread makes readable.
//!
//! The frame sleeps in `ppoll` until a datagram comes; what comes another way, from a browser, has to end that sleep,
//! too. One system call per [`Wake::wake`] and per [`Wake::clear`]; no allocation.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::eventfd::{EfdFlags, EventFd};

/// A descriptor that can be read from the first [`wake`](Self::wake) to the next [`clear`](Self::clear).
#[derive(Debug)]
pub struct Wake(EventFd);

impl Wake {
    /// # Errors
    /// If the process may have no more descriptors (`ulimit -n`).
    pub fn new() -> io::Result<Self> {
        Ok(Self(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?))
    }

    /// From any thread. Whoever is awake already notices when it next looks.
    pub fn wake(&self) {
        // It fails when it was called 2^64 - 2 times without a look, and then it is readable already.
        let _ = self.0.write(1);
    }

    /// What is said from now on wakes again.
    pub fn clear(&self) {
        // Nothing to read: nobody has called.
        let _ = self.0.read();
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{poll::wait_readable, time::Nanos};

    #[test]
    fn it_can_be_read_from_a_call_until_it_is_cleared() {
        let wake = Wake::new().unwrap();
        let is_readable = || wait_readable(&[wake.as_fd()], Some(Nanos::ZERO)).unwrap();
        assert!(!is_readable());
        wake.clear();
        std::thread::scope(|scope| _ = scope.spawn(|| (0..3).for_each(|_| wake.wake())));
        assert!(is_readable() && is_readable());
        wake.clear();
        assert!(!is_readable());
    }
}
