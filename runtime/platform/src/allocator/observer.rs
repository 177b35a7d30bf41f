//! The observer: one part of the program is told of every block.
//!
//! The profiler charges allocations to scopes and follows live memory; it sits above this room, so the allocator knows
//! it as a trait only. Without an observer a call costs a load and a branch that is never taken.

use std::sync::OnceLock;

use super::Cells;

/// Told of every block that the program gets and gives back, on the thread that does it.
///
/// Called within the allocator, hence: it may not unwind and may not wait for anything that another allocating thread
/// holds. It should not allocate; if it does, it is not told of that. Calls come from any thread, also while the thread
/// is being set up or torn down, so that thread-local variables must be without a destructor.
pub trait AllocationObserver: Sync {
    /// A block was handed out. `bytes` as asked for. A block that was resized comes as one given back and one handed
    /// out.
    fn allocated(&self, block: *mut u8, bytes: usize);

    /// A block is about to be given back; until this returns, no other block is at its address. With deferred frees
    /// ([`super::defer_large_frees`]) this is when the program gave it up.
    fn freed(&self, block: *mut u8, bytes: usize);
}

/// There is one observer for the life of the process, and it was set before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the allocator has an observer already; it is set once, at the program's start")]
pub struct ObserverAlreadySet;

/// Sets the observer for the rest of the process. What was allocated before is given back to it all the same.
pub fn set_observer(observer: &'static dyn AllocationObserver) -> Result<(), ObserverAlreadySet> {
    OBSERVER.set(observer).map_err(|_| ObserverAlreadySet)
}

static OBSERVER: OnceLock<&'static dyn AllocationObserver> = OnceLock::new();

#[inline(always)]
pub(super) fn tell_allocated(cells: &Cells, block: *mut u8, bytes: usize) {
    if let Some(&observer) = OBSERVER.get()
        && !cells.is_observing.replace(true)
    {
        observer.allocated(block, bytes);
        cells.is_observing.set(false);
    }
}

#[inline(always)]
pub(super) fn tell_freed(cells: &Cells, block: *mut u8, bytes: usize) {
    if let Some(&observer) = OBSERVER.get()
        && !cells.is_observing.replace(true)
    {
        observer.freed(block, bytes);
        cells.is_observing.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    /// Notes what the current thread does while it wants to know.
    struct Notes;

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Told {
        Allocated(usize, usize),
        Freed(usize, usize),
    }

    thread_local! {
        static IS_NOTING: Cell<bool> = const { Cell::new(false) };
        static TOLD: RefCell<Vec<Told>> = const { RefCell::new(Vec::new()) };
    }

    impl AllocationObserver for Notes {
        fn allocated(&self, block: *mut u8, bytes: usize) {
            if IS_NOTING.get() {
                // This vector grows within the allocator, on purpose: the observer must not hear of it.
                TOLD.with(|told| told.borrow_mut().push(Told::Allocated(block.addr(), bytes)));
            }
        }

        fn freed(&self, block: *mut u8, bytes: usize) {
            if IS_NOTING.get() {
                TOLD.with(|told| told.borrow_mut().push(Told::Freed(block.addr(), bytes)));
            }
        }
    }

    fn told_of(work: impl FnOnce()) -> Vec<Told> {
        let _ = set_observer(&Notes);
        IS_NOTING.set(true);
        work();
        IS_NOTING.set(false);
        TOLD.take()
    }

    #[test]
    fn the_observer_hears_of_blocks_and_not_of_its_own() {
        let mut at = 0;
        let told = told_of(|| {
            let boxed = Box::new([1_u8; 48]);
            at = std::ptr::from_ref(&*boxed).addr();
            drop(boxed);
            drop(vec![0_u8; 77]);
        });
        assert_eq!(told[..2], [Told::Allocated(at, 48), Told::Freed(at, 48)]);
        assert!(matches!(told[2..], [Told::Allocated(zeroed, 77), Told::Freed(freed, 77)] if zeroed == freed));
    }

    #[test]
    fn a_resized_block_is_given_back_and_handed_out() {
        let told = told_of(|| {
            let mut bytes = Vec::<u8>::with_capacity(10);
            bytes.reserve_exact(5_000);
        });
        let [
            Told::Allocated(first, 10),
            Told::Freed(resized, 10),
            Told::Allocated(second, 5_000),
            Told::Freed(last, 5_000),
        ] = told[..]
        else {
            panic!("{told:?}");
        };
        assert_eq!((first, second), (resized, last));
    }

    #[test]
    fn a_block_that_could_not_grow_is_still_known() {
        let told = told_of(|| {
            let mut bytes = Vec::<u8>::with_capacity(10);
            assert!(bytes.try_reserve_exact(isize::MAX as usize - 10).is_err());
        });
        let [Told::Allocated(first, 10), Told::Freed(tried, 10), Told::Allocated(kept, 10), Told::Freed(last, 10)] =
            told[..]
        else {
            panic!("{told:?}");
        };
        assert!([tried, kept, last].iter().all(|&block| block == first));
    }

    #[test]
    fn there_is_one_observer() {
        let _ = set_observer(&Notes);
        assert_eq!(set_observer(&Notes), Err(ObserverAlreadySet));
    }
}
