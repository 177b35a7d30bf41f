//! The atomics, locks and queues of the lock-free parts, so that the model checkers run the code that ships.
//!
//! `block` and `pool` take theirs from here: the standard library's and crossbeam's, or those of loom and shuttle when
//! a model test is built. A checker cannot look into crossbeam's queue; the models have one with a lock in its place,
//! which promises what crossbeam's does (who pops a value sees all that was done before it was pushed) and a little
//! more: an order of all operations.

#[cfg(all(feature = "loom", not(feature = "shuttle")))]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64},
};
#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64},
};
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
pub(crate) use {
    crossbeam_queue::ArrayQueue,
    std::sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU32, AtomicU64},
    },
};

/// What the pool uses of crossbeam's queue.
#[cfg(any(feature = "loom", feature = "shuttle"))]
pub(crate) struct ArrayQueue<T> {
    values: Mutex<std::collections::VecDeque<T>>,
    capacity: usize,
}

#[cfg(any(feature = "loom", feature = "shuttle"))]
impl<T> ArrayQueue<T> {
    pub fn new(capacity: usize) -> ArrayQueue<T> {
        ArrayQueue { values: Mutex::new(std::collections::VecDeque::new()), capacity }
    }

    pub fn push(&self, value: T) -> Result<(), T> {
        let mut values = self.values.lock().expect("no model panics here and goes on");
        if values.len() >= self.capacity {
            return Err(value);
        }
        values.push_back(value);
        Ok(())
    }

    pub fn pop(&self) -> Option<T> {
        self.values.lock().expect("no model panics here and goes on").pop_front()
    }

    pub fn len(&self) -> usize {
        self.values.lock().expect("no model panics here and goes on").len()
    }
}
