//! Results: where long tasks put what they bring, for a frame's thread that waits for nobody.

use crate::shim::{Mutex, MutexGuard};

/// A place for results, shared by tasks and whoever started them.
pub struct Results<T>(Mutex<Vec<T>>);

impl<T> Default for Results<T> {
    fn default() -> Self {
        Self(Mutex::new("scheduler.long_results", Vec::new()))
    }
}

impl<T> Results<T> {
    /// For a task: waits for the lock if it must.
    pub fn put(&self, result: T) {
        self.0.lock().push(result);
    }

    /// Appends what has come, in the order in which it came. A thread of low priority may lose its core while it has the
    /// lock: then nothing has come, and the next frame asks again.
    pub fn take(&self, into: &mut Vec<T>) {
        if let Some(mut results) = self.try_lock() {
            into.append(&mut results);
        }
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Vec<T>>> {
        self.0.try_lock()
    }
}
