//! The heap of one connection, counted at one desk.
//!
//! Everything a connection keeps on the heap (queued messages, fragments held behind a gap, records of
//! packets in flight) is taken from its `HeapBudget` first. So a peer cannot make us remember more
//! than [`HEAP_BYTES_MAX`], whatever it sends, and `held_bytes` is the exact figure to show an operator.
//!
//! A number and a comparison; it holds no memory itself. Owned by its connection, on that one's thread.

/// The most one connection may ever hold on the heap (bytes).
pub const HEAP_BYTES_MAX: usize = 256 * 1024;

/// The budget would not cover it; nothing was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection's heap budget of {HEAP_BYTES_MAX} bytes is spent")]
pub struct OverBudget;

/// What a connection holds of its [`HEAP_BYTES_MAX`].
#[derive(Debug, Default)]
pub struct HeapBudget {
    held_bytes: usize,
}

impl HeapBudget {
    /// Books `bytes` that are about to be allocated.
    pub fn take(&mut self, bytes: usize) -> Result<(), OverBudget> {
        if bytes > HEAP_BYTES_MAX - self.held_bytes {
            return Err(OverBudget);
        }
        self.held_bytes += bytes;
        Ok(())
    }

    /// Returns `bytes` that have been freed.
    pub fn give(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.held_bytes, "gave back more than was taken");
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
    }

    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_byte_is_granted_and_the_next_is_not() {
        let mut budget = HeapBudget::default();
        assert_eq!(budget.take(HEAP_BYTES_MAX), Ok(()));
        assert_eq!(budget.take(1), Err(OverBudget));
        assert_eq!(budget.take(usize::MAX), Err(OverBudget));
        budget.give(1);
        assert_eq!(budget.take(1), Ok(()));
        assert_eq!(budget.held_bytes(), HEAP_BYTES_MAX);
    }
}
