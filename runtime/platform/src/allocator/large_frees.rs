//! A thread that gives back the large blocks of short tasks, for programs without another one that does.
//!
//! The flight recorder's thread does it beside its own work. A server that records nothing has this one: its ticks are not
//! to be those that pay for giving memory back.
//!
//! Low priority; looks 20 times a second, which costs some 0.2 ms of processor time in a second.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{defer_large_frees, free_deferred};
use crate::threads::{Priority, spawn_named};

/// How long a block waits at most. A queue of 256 MiB is then enough for 5 GB/s.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// While this lives, blocks that are large and given up in a short task are freed by a thread of low priority.
#[must_use = "without it nobody frees what is deferred"]
pub struct LargeFrees {
    must_end: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl LargeFrees {
    /// From now on, for blocks of more than `above_bytes`, see [`defer_large_frees`]. Fails when the host has no room for
    /// another thread.
    pub fn start(above_bytes: usize) -> io::Result<LargeFrees> {
        let must_end = Arc::new((Mutex::new(false), Condvar::new()));
        let of_thread = must_end.clone();
        let thread = spawn_named("large-frees", Priority::Low, move || {
            let (must_end, woken) = &*of_thread;
            let mut ends = must_end.lock().unwrap_or_else(PoisonError::into_inner);
            while !*ends {
                free_deferred();
                ends = woken.wait_timeout(ends, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
            }
        })?;
        defer_large_frees(above_bytes);
        Ok(LargeFrees { must_end, thread: Some(thread) })
    }
}

impl Drop for LargeFrees {
    fn drop(&mut self) {
        let (must_end, woken) = &*self.must_end;
        *must_end.lock().unwrap_or_else(PoisonError::into_inner) = true;
        woken.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // Nobody comes for what is given up from here on.
        defer_large_frees(usize::MAX);
        free_deferred();
    }
}
