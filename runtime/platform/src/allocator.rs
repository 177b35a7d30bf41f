//! The allocator: mimalloc, with a count per thread of what passes through it.
//!
//! A steady tick must not allocate; only a count can say whether it does. Each thread counts in cells of its own, so
//! that counting costs about 1 ns and shares nothing, and a frame's allocations are the difference of two readings on
//! the same thread.
//!
//! Around that stand four things, each of which costs one predictable branch until it is asked for:
//! - [`keep_memory`] and [`commit_memory`]: memory is got from the kernel once and kept;
//! - [`set_observer`]: somebody is told of each block (the profiler charges scopes and looks for leaks);
//! - [`defer_large_frees`]: a short task hands its large blocks to a thread that has time, [`LargeFrees`] for one;
//! - in debug builds, fresh and freed memory is stamped, so that a read of either stands out as `0xA5A5…` or `0xDDDD…`.
//!
//! A program opts in, and the library never does:
//!
//! ```
//! use throng_platform::allocator::{CountingAllocator, thread_counts};
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator;
//!
//! let before = thread_counts();
//! let boxed = Box::new(7_u64);
//! let made = thread_counts() - before;
//! assert_eq!((made.allocations, made.frees, made.bytes), (1, 0, 8));
//! # drop(boxed);
//! ```

mod deferred;
mod kept;
mod large_frees;
mod observer;
mod stamp;

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ops::Sub;

use mimalloc::MiMalloc;

pub use deferred::{DeferredFrees, defer_large_frees, deferred_frees, free_deferred};
pub use kept::{commit_memory, hand_memory_back, keep_memory, take_small_pages};
pub use large_frees::LargeFrees;
pub use observer::{AllocationObserver, ObserverAlreadySet, set_observer};

/// mimalloc behind the counters. Without state of its own.
pub struct CountingAllocator;

/// What one thread has asked of the allocator since it started; all zero when another allocator is used.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocationCounts {
    /// Blocks handed out. A block that is resized counts as one handed out and one given back. A refused request counts
    /// nowhere.
    pub allocations: u64,
    /// Blocks given back by this thread, whichever thread they came from.
    pub frees: u64,
    /// Bytes handed out, as asked for.
    pub bytes: u64,
}

/// What happened between two readings of one thread.
impl Sub for AllocationCounts {
    type Output = AllocationCounts;
    fn sub(self, earlier: AllocationCounts) -> AllocationCounts {
        AllocationCounts {
            allocations: self.allocations - earlier.allocations,
            frees: self.frees - earlier.frees,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

/// The calling thread's counts. Any thread, never allocates, about 1 ns.
pub fn thread_counts() -> AllocationCounts {
    CELLS.with(|cells| AllocationCounts {
        allocations: cells.allocations.get(),
        frees: cells.frees.get(),
        bytes: cells.bytes.get(),
    })
}

/// Makes the calling thread known to the allocator. To be called in a thread that frees blocks and never
/// allocates one: until then, what it frees is not used again, and memory grows (mimalloc#1364).
pub fn adopt_thread() {
    // SAFETY: may be called any number of times, by any thread.
    unsafe { libmimalloc_sys::mi_thread_init() };
}

/// Says that the calling thread is now in a short task, or no longer: see [`defer_large_frees`]. About 1 ns.
pub fn short_task(is_in_one: bool) {
    CELLS.with(|cells| cells.is_in_short_task.set(is_in_one));
}

/// One thread's cells. Plain numbers with a constant start and no destructor, so that they can be used
/// while the thread itself is being set up or torn down.
struct Cells {
    allocations: Cell<u64>,
    frees: Cell<u64>,
    bytes: Cell<u64>,
    /// Whether the observer is running on this thread; what it allocates is not told to it.
    is_observing: Cell<bool>,
    is_in_short_task: Cell<bool>,
}

thread_local! {
    static CELLS: Cells = const {
        Cells {
            allocations: Cell::new(0),
            frees: Cell::new(0),
            bytes: Cell::new(0),
            is_observing: Cell::new(false),
            is_in_short_task: Cell::new(false),
        }
    };
}

/// Counts a block that was handed out.
#[inline]
fn count_allocation(block: *mut u8, bytes: usize) {
    if block.is_null() {
        return;
    }
    CELLS.with(|cells| {
        cells.allocations.set(cells.allocations.get() + 1);
        cells.bytes.set(cells.bytes.get() + bytes as u64);
        observer::tell_allocated(cells, block, bytes);
    });
}

/// Counts a block that is about to be given back. Before and not after, because another thread may get the same address
/// at once.
#[inline]
fn count_free(block: *mut u8, bytes: usize) {
    CELLS.with(|cells| {
        cells.frees.set(cells.frees.get() + 1);
        observer::tell_freed(cells, block, bytes);
    });
}

// SAFETY: blocks come from mimalloc and go back to it exactly once, some of them later and from another thread
// (`deferred`); what stands around that neither allocates nor unwinds.
// Not inlined, so that they are compiled at this crate's level, whatever that of the program which they are installed in.
unsafe impl GlobalAlloc for CountingAllocator {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        let block = unsafe { MiMalloc.alloc(layout) };
        count_allocation(block, layout.size());
        // SAFETY: the block is fresh and of this size, or null.
        unsafe { stamp::fresh(block, 0, layout.size()) };
        block
    }

    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        let block = unsafe { MiMalloc.alloc_zeroed(layout) };
        count_allocation(block, layout.size());
        block
    }

    #[inline(never)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count_free(block, layout.size());
        // SAFETY: nobody reads the block any more, and it is of this size.
        unsafe { stamp::freed(block, layout.size()) };
        // SAFETY: the caller gives up this block, which came from mimalloc with this layout.
        unsafe { deferred::free_now_or_later(block, layout) };
    }

    #[inline(never)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
        CELLS.with(|cells| observer::tell_freed(cells, block, layout.size()));
        // SAFETY: the caller's promises are passed on.
        let resized = unsafe { deferred::resize(block, layout, size_bytes) };
        if resized.is_null() {
            // The block stays with its owner, who has lost nothing but the request.
            CELLS.with(|cells| observer::tell_allocated(cells, block, layout.size()));
            return resized;
        }
        CELLS.with(|cells| cells.frees.set(cells.frees.get() + 1));
        count_allocation(resized, size_bytes);
        // SAFETY: the block is of the new size, and what is beyond the old one is fresh.
        unsafe { stamp::fresh(resized, layout.size(), size_bytes) };
        resized
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: CountingAllocator = CountingAllocator;

    fn counted(work: impl FnOnce()) -> AllocationCounts {
        let before = thread_counts();
        work();
        thread_counts() - before
    }

    #[test]
    fn every_block_is_counted_on_its_own_thread() {
        let made = counted(|| drop(Vec::<u64>::with_capacity(100)));
        assert_eq!(made, AllocationCounts { allocations: 1, frees: 1, bytes: 800 });

        let grown = counted(|| {
            let mut bytes = vec![0_u8; 10];
            bytes.reserve_exact(90);
        });
        assert_eq!(grown, AllocationCounts { allocations: 2, frees: 2, bytes: 110 });
    }

    #[test]
    fn code_that_does_not_allocate_counts_nothing() {
        let mut numbers = [3, 1, 2];
        assert_eq!(counted(|| numbers.sort_unstable()), AllocationCounts::default());
    }

    #[test]
    fn a_block_freed_elsewhere_is_counted_there() {
        let block = Box::new([0_u8; 64]);
        let freed = std::thread::spawn(move || {
            adopt_thread();
            counted(|| drop(block))
        });
        assert_eq!(freed.join().unwrap(), AllocationCounts { allocations: 0, frees: 1, bytes: 0 });
    }

    #[test]
    fn a_refused_request_is_not_counted() {
        let refused = counted(|| {
            let mut bytes = vec![7_u8; 1_000];
            assert!(bytes.try_reserve_exact(isize::MAX as usize - 1_000).is_err());
            assert!(Vec::<u8>::new().try_reserve_exact(isize::MAX as usize).is_err());
            assert_eq!(bytes, [7; 1_000], "the block that could not grow is as it was");
        });
        assert_eq!(refused, AllocationCounts { allocations: 1, frees: 1, bytes: 1_000 });
    }
}
