//! Under way: what entered the tick that a world is in, where another thread finds it.
//!
//! A tick that ends its process is never whole, and the log that it is in dies with the thread that writes it. So the world
//! leaves a copy here before its systems run, and whoever writes the last of a recording takes it from here: what led to the
//! death is then on the disk.
//!
//! Written by the world's thread, once a tick; read by one other thread, when the process dies. So the lock is free at all
//! other times. Cost: a copy and a checksum of what entered. Allocates until it has the size that a tick needs.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One tick, as it stands in a log; empty between two.
#[derive(Debug, Default)]
pub struct TickUnderWay(Mutex<Vec<u8>>);

impl TickUnderWay {
    pub(super) fn put(&self, tick: &[u8]) {
        let mut bytes = self.lock();
        bytes.clear();
        bytes.extend_from_slice(tick);
    }

    /// The tick is over, and whoever wants it has it.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Appends the tick, with its heading, to `out`. False: there is none, or its thread has stopped while it wrote it.
    pub fn append_to(&self, out: &mut Vec<u8>) -> bool {
        let Ok(bytes) = self.0.try_lock() else { return false };
        out.extend_from_slice(&bytes);
        !bytes.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
