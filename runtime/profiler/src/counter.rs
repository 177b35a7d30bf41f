//! Counters in a capture: values that change from frame to frame, drawn beside its scopes.
//!
//! For a handful of values a frame, such as players or packets; sums over time belong to `throng-metrics`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::thread;

/// A named value. Made as a `static`; known to captures from its first value on.
#[derive(Debug)]
pub struct Counter {
    name: &'static str,
    /// Number in the list of counters, plus one; 0 until the first value.
    id: AtomicU32,
}

static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

impl Counter {
    pub const fn new(name: &'static str) -> Counter {
        Counter { name, id: AtomicU32::new(0) }
    }

    /// Records that the value is now `value`. A record of 16 bytes in the calling thread's block.
    pub fn set(&self, value: f32) {
        if crate::is_recording() {
            thread::record_count(self.id(), value);
        }
    }

    fn id(&self) -> u32 {
        if let Some(id) = self.id.load(Ordering::Relaxed).checked_sub(1) {
            return id;
        }
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = names.iter().position(|&other| other == self.name);
        let id = known.unwrap_or_else(|| {
            names.push(self.name);
            names.len() - 1
        });
        self.id.store(id as u32 + 1, Ordering::Relaxed);
        id as u32
    }
}

/// Names of all counters that have had a value, by number. Allocates.
pub(crate) fn names() -> Vec<&'static str> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
