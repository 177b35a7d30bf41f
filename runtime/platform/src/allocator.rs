//! The allocator: mimalloc, with a count per thread of what passes through it.
//!
//! A steady tick must not allocate; only a count can say whether it does. Each thread counts in cells of
//! its own, so that counting costs about 1 ns and shares nothing, and a frame's allocations are the
//! difference of two readings on the same thread.
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

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ops::Sub;

use mimalloc::MiMalloc;

/// mimalloc behind the counters. Without state of its own.
pub struct CountingAllocator;

/// What one thread has asked of the allocator since it started; all zero when another allocator is used.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocationCounts {
    /// Blocks handed out. A block that is resized counts as one handed out and one given back.
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
    COUNTS.with(|counts| AllocationCounts {
        allocations: counts.allocations.get(),
        frees: counts.frees.get(),
        bytes: counts.bytes.get(),
    })
}

/// Keeps freed memory for the next use instead of handing it back to the kernel. Call first thing in `main`.
///
/// A server's memory is at its peak again a moment later, and each page handed back costs a fault to get
/// again: 500 MiB freed and taken in turns made 631 page faults a round with the default, 0 with this.
/// The price: memory use shown by the host stays at its peak.
pub fn keep_memory() {
    // SAFETY: sets one number inside mimalloc; -1 is its documented "never purge".
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) };
}

/// `mi_option_purge_delay` of mimalloc.h (v3), which the bindings do not name.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Makes the calling thread known to the allocator. To be called in a thread that frees blocks and never
/// allocates one: until then, what it frees is not used again, and memory grows (mimalloc#1364).
pub fn adopt_thread() {
    // SAFETY: may be called any number of times, by any thread.
    unsafe { libmimalloc_sys::mi_thread_init() };
}

/// One thread's cells. Plain numbers with a constant start and no destructor, so that they can be used
/// while the thread itself is being set up or torn down.
struct Counts {
    allocations: Cell<u64>,
    frees: Cell<u64>,
    bytes: Cell<u64>,
}

thread_local! {
    static COUNTS: Counts = const {
        Counts { allocations: Cell::new(0), frees: Cell::new(0), bytes: Cell::new(0) }
    };
}

fn count_allocation(bytes: usize) {
    COUNTS.with(|counts| {
        counts.allocations.set(counts.allocations.get() + 1);
        counts.bytes.set(counts.bytes.get() + bytes as u64);
    });
}

fn count_free() {
    COUNTS.with(|counts| counts.frees.set(counts.frees.get() + 1));
}

// SAFETY: every call is handed to mimalloc unchanged; the counters neither allocate nor unwind.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_allocation(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_allocation(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count_free();
        // SAFETY: the caller's promises are passed on.
        unsafe { MiMalloc.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
        count_allocation(size_bytes);
        count_free();
        // SAFETY: the caller's promises are passed on.
        unsafe { MiMalloc.realloc(block, layout, size_bytes) }
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
    fn memory_can_be_kept() {
        keep_memory();
        // SAFETY: reads one number inside mimalloc.
        assert_eq!(unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) }, -1);
    }
}
