//! Tasks are contained: what one panics with ends neither its worker nor the others.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs it. Says whether it panicked.
///
/// What it panicked with is a value of the game's, whose own drop may panic; what that one panics with is left where it is.
pub(crate) fn panics(run: impl FnOnce()) -> bool {
    let Err(payload) = catch_unwind(AssertUnwindSafe(run)) else { return false };
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(second);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics when it is dropped, with another one of its kind.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new(Bomb));
        }
    }

    #[test]
    fn a_payload_that_panics_when_it_is_dropped_ends_nothing() {
        assert!(!panics(|| {}));
        assert!(panics(|| std::panic::resume_unwind(Box::new("a bug"))));
        assert!(panics(|| std::panic::resume_unwind(Box::new(Bomb))));
    }
}
