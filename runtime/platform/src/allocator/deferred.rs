//! Deferred frees: a short task that gives up a large block leaves the work to a thread that has time.
//!
//! Most frees are cheap: with `keep_memory`, 8 MiB go back to the allocator's map in less than 1 µs. Blocks that it
//! takes from the kernel directly are not: above 2 GiB, or aligned to more than 64 KiB, they are unmapped by whoever
//! lets go of them, at 0.6 ms for 8 MiB in small pages (9 ms at worst here) and 23 ms for 3 GiB. Without `keep_memory`
//! any large block may set that off. A thread that says it is in a short task puts large blocks into a queue instead,
//! about 0.15 µs each, and [`free_deferred`] empties it from a thread of low priority. `cargo xtask bench heap`
//! measures both.
//!
//! The queue holds 1,024 blocks and 256 MiB at most; a block that does not fit is given back at once, and counted.
//! Pushing neither locks nor allocates.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;
use mimalloc::MiMalloc;

use super::{CELLS, adopt_thread};

/// From now on, blocks of more than `above_bytes` that are given up in a short task (see [`super::short_task`]) wait
/// for [`free_deferred`]. Somebody must call that from time to time, best a thread of low priority.
///
/// 256 KiB is a good size. Too low: the queue is full of blocks whose free would have cost no more than queueing them.
/// Too high: the blocks that stall a task are freed in it. May be called again with another size.
///
/// Only blocks of [`super::CountingAllocator`] are deferred.
pub fn defer_large_frees(above_bytes: usize) {
    QUEUE.get_or_init(|| ArrayQueue::new(QUEUED_BLOCKS_MAX));
    ABOVE_BYTES.store(above_bytes, Ordering::Relaxed);
}

/// Gives back what waits in the queue now, and returns the number of blocks. Any thread outside short tasks.
pub fn free_deferred() -> u64 {
    let Some(queue) = QUEUE.get() else {
        return 0;
    };
    adopt_thread();
    let mut count = 0;
    // What comes in meanwhile is for the next call; otherwise a busy server could keep this thread for ever.
    for _ in 0..queue.len() {
        let Some(block) = queue.pop() else {
            break;
        };
        WAITING_BYTES.fetch_sub(block.layout.size() as u64, Ordering::Relaxed);
        // SAFETY: its owner gave it up with this layout, and the queue hands it out once.
        unsafe { MiMalloc.dealloc(std::ptr::with_exposed_provenance_mut(block.address), block.layout) };
        count += 1;
    }
    count
}

/// What was deferred since the start of the process.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct DeferredFrees {
    /// Blocks that were put into the queue.
    pub deferred: u64,
    /// Blocks that were given back at once because the queue was full: the thread that calls [`free_deferred`] comes
    /// too rarely.
    pub refused: u64,
    /// What waits now. (bytes)
    pub waiting_bytes: u64,
}

/// Counts since the start. Any thread, never allocates.
pub fn deferred_frees() -> DeferredFrees {
    DeferredFrees {
        deferred: DEFERRED.load(Ordering::Relaxed),
        refused: REFUSED.load(Ordering::Relaxed),
        waiting_bytes: WAITING_BYTES.load(Ordering::Relaxed),
    }
}

const QUEUED_BLOCKS_MAX: usize = 1_024;
/// Memory that nobody can use while it waits; a few frames' worth of the largest blocks that worlds drop. (bytes)
const QUEUED_BYTES_MAX: u64 = 256 << 20;

static QUEUE: OnceLock<ArrayQueue<Block>> = OnceLock::new();
/// Written at the program's start and read by every free; nothing else is published through it, so relaxed order is
/// enough.
static ABOVE_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Counts and a limit that may be off by what is being pushed just now: relaxed order is enough.
static WAITING_BYTES: AtomicU64 = AtomicU64::new(0);
static DEFERRED: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// A block without an owner. Its address as a number, as a queue between threads takes no pointers.
struct Block {
    address: usize,
    layout: Layout,
}

/// # Safety
/// The block came from mimalloc with this layout, and its owner gives it up.
#[inline]
pub(super) unsafe fn free_now_or_later(block: *mut u8, layout: Layout) {
    if is_deferred(layout.size()) && put_off(block, layout) {
        return;
    }
    // SAFETY: as promised to this function.
    unsafe { MiMalloc.dealloc(block, layout) };
}

/// Resizes as `realloc` does. When a large block has to move within a short task, the old place is deferred like any
/// other.
///
/// # Safety
/// As for `GlobalAlloc::realloc`, with a block from mimalloc.
#[inline]
pub(super) unsafe fn resize(block: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
    if is_deferred(layout.size()) {
        // SAFETY: as promised to this function.
        return unsafe { resize_deferred(block, layout, size_bytes) };
    }
    // SAFETY: as promised to this function.
    unsafe { MiMalloc.realloc(block, layout, size_bytes) }
}

#[cold]
unsafe fn resize_deferred(block: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
    // SAFETY: a live block of mimalloc.
    let usable_bytes = unsafe { libmimalloc_sys::mi_usable_size(block.cast()) };
    // mimalloc leaves a block where it is when it fills at least half of its place.
    if (usable_bytes / 2..=usable_bytes).contains(&size_bytes) {
        // SAFETY: as promised to this function.
        return unsafe { MiMalloc.realloc(block, layout, size_bytes) };
    }
    // SAFETY: the caller promises that the new size is above zero and makes a valid layout with the old alignment; the
    // new block is another one, and both are of at least the bytes that are copied.
    unsafe {
        let moved = MiMalloc.alloc(Layout::from_size_align_unchecked(size_bytes, layout.align()));
        if !moved.is_null() {
            moved.copy_from_nonoverlapping(block, layout.size().min(size_bytes));
            free_now_or_later(block, layout);
        }
        moved
    }
}

#[inline(always)]
fn is_deferred(size_bytes: usize) -> bool {
    size_bytes > ABOVE_BYTES.load(Ordering::Relaxed) && CELLS.with(|cells| cells.is_in_short_task.get())
}

/// Whether the block went into the queue.
#[cold]
fn put_off(block: *mut u8, layout: Layout) -> bool {
    let size_bytes = layout.size() as u64;
    let is_queued = QUEUE.get().is_some_and(|queue| {
        let waiting_bytes = WAITING_BYTES.fetch_add(size_bytes, Ordering::Relaxed);
        let fits = waiting_bytes.saturating_add(size_bytes) <= QUEUED_BYTES_MAX;
        let is_queued = fits && queue.push(Block { address: block.expose_provenance(), layout }).is_ok();
        if !is_queued {
            WAITING_BYTES.fetch_sub(size_bytes, Ordering::Relaxed);
        }
        is_queued
    });
    if is_queued { &DEFERRED } else { &REFUSED }.fetch_add(1, Ordering::Relaxed);
    is_queued
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::{AllocationCounts, LargeFrees, short_task, thread_counts};
    use std::sync::{Mutex, MutexGuard};
    use std::time::{Duration, Instant};

    const LARGE_BYTES: usize = 300 << 10;

    /// The queue is the process's: one test at a time, beginning and ending with an empty one.
    fn alone() -> MutexGuard<'static, ()> {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        defer_large_frees(256 << 10);
        while free_deferred() > 0 {}
        turn
    }

    /// In a short task; returns what was deferred and refused by it.
    fn in_short_task(work: impl FnOnce()) -> (u64, u64) {
        let before = deferred_frees();
        short_task(true);
        work();
        short_task(false);
        let after = deferred_frees();
        (after.deferred - before.deferred, after.refused - before.refused)
    }

    #[test]
    fn large_blocks_of_a_short_task_wait_for_another_thread() {
        let _turn = alone();
        let before = thread_counts();
        let deferred = in_short_task(|| {
            drop(Vec::<u8>::with_capacity(LARGE_BYTES));
            drop(vec![0_u8; 256 << 10]);
            drop(vec![1_u8; 2 * LARGE_BYTES]);
        });
        assert_eq!(deferred, (2, 0));
        let made = thread_counts() - before;
        assert_eq!((made.allocations, made.frees), (3, 3), "given up is freed, whenever it happens");
        assert_eq!(deferred_frees().waiting_bytes, 3 * LARGE_BYTES as u64);
        assert_eq!(std::thread::spawn(free_deferred).join().unwrap(), 2);
        assert_eq!((free_deferred(), deferred_frees().waiting_bytes), (0, 0));
    }

    /// Promise: without a recorder there is a thread that frees what short tasks leave, and no block is lost when it ends.
    #[test]
    fn a_thread_of_its_own_frees_what_waits() {
        let _turn = alone();
        let thread = LargeFrees::start(256 << 10).unwrap();
        let (deferred, refused) = in_short_task(|| drop(vec![1_u8; LARGE_BYTES]));
        assert_eq!((deferred, refused), (1, 0));
        let given_up_at = Instant::now() + Duration::from_secs(60);
        while deferred_frees().waiting_bytes > 0 {
            assert!(Instant::now() < given_up_at, "nobody freed it");
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(thread);
        assert_eq!(in_short_task(|| drop(vec![1_u8; LARGE_BYTES])), (0, 0), "nobody would come for it");
        assert_eq!(deferred_frees().waiting_bytes, 0);
    }

    #[test]
    fn outside_a_short_task_nothing_waits() {
        let _turn = alone();
        drop(vec![0_u8; LARGE_BYTES]);
        assert_eq!(free_deferred(), 0);
    }

    #[test]
    fn a_large_block_that_moves_leaves_its_old_place_to_the_queue() {
        let _turn = alone();
        let mut bytes: Vec<u8> = (0..LARGE_BYTES).map(|at| at as u8).collect();
        bytes.shrink_to_fit();
        let before = thread_counts();
        let deferred = in_short_task(|| {
            bytes.reserve_exact(3 * LARGE_BYTES);
            bytes.truncate(1_000);
            bytes.shrink_to_fit();
        });
        assert_eq!(deferred, (2, 0));
        assert_eq!(
            thread_counts() - before,
            AllocationCounts { allocations: 2, frees: 2, bytes: 4 * LARGE_BYTES as u64 + 1_000 }
        );
        assert!(bytes.iter().enumerate().all(|(at, &byte)| byte == at as u8));
        assert_eq!(free_deferred(), 2);
    }

    #[test]
    fn a_full_queue_frees_at_once_and_says_so() {
        let _turn = alone();
        let blocks: Vec<Vec<u8>> = (0..QUEUED_BLOCKS_MAX + 10).map(|_| Vec::with_capacity(LARGE_BYTES)).collect();
        let (deferred, refused) = in_short_task(|| drop(blocks));
        // Blocks of 300 KiB reach the limit of bytes before that of blocks.
        assert_eq!(deferred, QUEUED_BYTES_MAX / LARGE_BYTES as u64);
        assert_eq!(deferred + refused, QUEUED_BLOCKS_MAX as u64 + 10);
        assert_eq!(free_deferred(), deferred);

        let huge = Vec::<u8>::with_capacity(QUEUED_BYTES_MAX as usize + 1);
        assert_eq!(in_short_task(|| drop(huge)), (0, 1));
    }

    #[test]
    fn blocks_pass_between_threads_whole_and_once() {
        let _turn = alone();
        const THREADS: u64 = 4;
        const ROUNDS: u64 = 500;
        let before = deferred_frees();
        let freed_elsewhere = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let freed_elsewhere = &freed_elsewhere;
                scope.spawn(move || {
                    // Two threads fill and free, two empty the queue beside them: a block freed twice or handed out
                    // while in use would lose its pattern.
                    for round in 0..ROUNDS {
                        if thread % 2 == 1 {
                            freed_elsewhere.fetch_add(free_deferred(), Ordering::Relaxed);
                            continue;
                        }
                        let pattern = thread * ROUNDS + round;
                        let block = vec![pattern; LARGE_BYTES / 8 + 1];
                        std::thread::yield_now();
                        assert!(block.iter().step_by(512).all(|&word| word == pattern));
                        in_short_task(|| drop(block));
                    }
                });
            }
        });
        let rest = free_deferred();
        let after = deferred_frees();
        let (deferred, refused) = (after.deferred - before.deferred, after.refused - before.refused);
        assert_eq!(deferred + refused, THREADS / 2 * ROUNDS);
        assert_eq!(freed_elsewhere.load(Ordering::Relaxed) + rest, deferred, "each deferred block was freed once");
        assert_eq!(after.waiting_bytes, 0);
    }
}
