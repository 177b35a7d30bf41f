//! Latest: a value that the frame's thread replaces now and then, and others read.
//!
//! The lock is held for the copy of a pointer. A low-priority thread that is preempted while it holds it may keep it for
//! tens of milliseconds on a host without a free core: so the frame's thread tries the lock and never waits for it. What
//! it could not publish is out of date a second later, and then it tries again.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};

#[derive(Debug, Default)]
pub(crate) struct Latest<T> {
    current: Mutex<Arc<T>>,
}

impl<T> Latest<T> {
    /// What was published last. Any thread; allocates nothing.
    pub fn read(&self) -> Arc<T> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same for the frame's thread: `None` while somebody else reads or publishes at this very moment. Never waits.
    pub fn try_read(&self) -> Option<Arc<T>> {
        match self.current.try_lock() {
            Ok(current) => Some(current.clone()),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner().clone()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Replaces it, unless somebody is reading at this very moment. Never waits. What was there before is freed by
    /// whoever is the last to have it.
    pub fn publish(&self, value: T) {
        let value = Arc::new(value);
        let before = match self.current.try_lock() {
            Ok(mut current) => std::mem::replace(&mut *current, value),
            Err(TryLockError::Poisoned(poisoned)) => std::mem::replace(&mut *poisoned.into_inner(), value),
            Err(TryLockError::WouldBlock) => return,
        };
        // Without the lock: it may be large.
        drop(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_waits_for_no_reader() {
        let latest = Latest::<u32>::default();
        latest.publish(1);
        let held = latest.read();
        let lock = latest.current.lock().unwrap();
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                latest.publish(2);
                done.send(()).unwrap();
            });
            assert!(latest.try_read().is_none());
            let waited = is_done.recv_timeout(std::time::Duration::from_secs(60));
            drop(lock);
            waited.expect("it publishes while the lock is held");
        });
        assert_eq!((*held, *latest.read()), (1, 1), "it was being read");
        latest.publish(3);
        assert_eq!(latest.try_read().as_deref(), Some(&3));
        assert_eq!((*held, *latest.read()), (1, 3), "what is held stays as it was");
    }
}
