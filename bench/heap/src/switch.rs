//! The program's allocator: one of several, chosen by the environment before the first allocation.
//!
//! A process has one global allocator, and every block must go back to where it came from, so each process of this
//! bench has one choice for its whole life. [`Locked`](Heap::Locked) is the system's allocator with one lock around
//! every block above 256 KiB, which is what a heap looks like whose large blocks come from one place.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use throng_platform::allocator::{CountingAllocator, commit_memory, keep_memory};
use throng_profiler::{memory, pool::PoolSettings, start_recording};

/// An allocator, and how it is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heap {
    /// mimalloc as `throng` runs it: counted, memory kept.
    Throng,
    /// The same, with the profiler recording scopes and watching memory.
    Tracked,
    /// The same as the first, with all the memory that will be needed committed at the start.
    Committed,
    /// mimalloc as it comes (and counted).
    Defaults,
    /// The system's.
    System,
    /// The system's, one lock around large blocks.
    Locked,
}

impl Heap {
    pub(crate) const ALL: [Heap; 6] =
        [Heap::Throng, Heap::Tracked, Heap::Committed, Heap::Defaults, Heap::System, Heap::Locked];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Heap::Throng => "throng",
            Heap::Tracked => "throng-tracked",
            Heap::Committed => "throng-committed",
            Heap::Defaults => "mimalloc-defaults",
            Heap::System => "system",
            Heap::Locked => "system-one-lock",
        }
    }

    /// What to put into the environment of a process that shall use it.
    pub(crate) fn environment(self) -> (&'static str, String) {
        ("THRONG_BENCH_HEAP", (self as u8).to_string())
    }

    /// This process's.
    pub(crate) fn current() -> Heap {
        Heap::ALL[usize::from(chosen())]
    }

    /// Whether blocks pass through our own layer. Those of the system's allocator are not ours to defer.
    pub(crate) fn is_ours(self) -> bool {
        !matches!(self, Heap::System | Heap::Locked)
    }

    /// What a program does first in `main`; `peak_bytes` is what it will need.
    pub(crate) fn set_up(self, peak_bytes: u64) -> Result<(), throng_platform::allocator::ObserverAlreadySet> {
        if self.is_ours() && self != Heap::Defaults {
            keep_memory();
        }
        if self == Heap::Committed {
            commit_memory(peak_bytes);
        }
        if self != Heap::Tracked {
            return Ok(());
        }
        // A few scopes a tick: far from filling this.
        start_recording(PoolSettings { blocks_max: 1_024, reserve: 64, history: 0 });
        memory::install()
    }
}

/// Nanoseconds that threads waited for the one lock.
pub(crate) fn lock_wait_ns() -> u64 {
    LOCK_WAIT_NS.load(Ordering::Relaxed)
}

pub(crate) struct Switch;

/// Place in `Heap::ALL` plus one; 0 before the first allocation. All threads would find the same, so relaxed order is
/// enough.
static CHOICE: AtomicU8 = AtomicU8::new(0);
const ENVIRONMENT: &std::ffi::CStr = c"THRONG_BENCH_HEAP";

#[inline(always)]
fn chosen() -> u8 {
    match CHOICE.load(Ordering::Relaxed) {
        0 => choose(),
        choice => choice - 1,
    }
}

#[cold]
fn choose() -> u8 {
    // SAFETY: the name ends with a zero; nothing changes the environment before `main`, when the first allocation is
    // made.
    let value = unsafe { libc::getenv(ENVIRONMENT.as_ptr()) };
    // SAFETY: a variable's value has at least the zero at its end.
    let digit = if value.is_null() { b'0' } else { unsafe { *value.cast::<u8>() } };
    let choice = digit.wrapping_sub(b'0').min(Heap::ALL.len() as u8 - 1);
    CHOICE.store(choice + 1, Ordering::Relaxed);
    choice
}

const LARGE_BYTES: usize = 256 << 10;
static ONE_LOCK: Mutex<()> = Mutex::new(());
static LOCK_WAIT_NS: AtomicU64 = AtomicU64::new(0);

fn lock_if_large(bytes: usize) -> Option<MutexGuard<'static, ()>> {
    if bytes < LARGE_BYTES {
        return None;
    }
    if let Ok(guard) = ONE_LOCK.try_lock() {
        return Some(guard);
    }
    let begin = Instant::now();
    let guard = ONE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    LOCK_WAIT_NS.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
    Some(guard)
}

const SYSTEM: u8 = Heap::System as u8;
const LOCKED: u8 = Heap::Locked as u8;

// SAFETY: the choice never changes, so a block goes back to the allocator that it came from; the lock neither allocates
// nor unwinds.
unsafe impl GlobalAlloc for Switch {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let choice = chosen();
        let _guard = if choice == LOCKED { lock_if_large(layout.size()) } else { None };
        // SAFETY: the caller's promises are passed on.
        unsafe { if choice >= SYSTEM { System.alloc(layout) } else { CountingAllocator.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let choice = chosen();
        let _guard = if choice == LOCKED { lock_if_large(layout.size()) } else { None };
        // SAFETY: the caller's promises are passed on.
        unsafe { if choice >= SYSTEM { System.alloc_zeroed(layout) } else { CountingAllocator.alloc_zeroed(layout) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let choice = chosen();
        let _guard = if choice == LOCKED { lock_if_large(layout.size()) } else { None };
        // SAFETY: the caller's promises are passed on.
        unsafe {
            if choice >= SYSTEM { System.dealloc(block, layout) } else { CountingAllocator.dealloc(block, layout) }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let choice = chosen();
        let _guard = if choice == LOCKED { lock_if_large(layout.size().max(bytes)) } else { None };
        // SAFETY: the caller's promises are passed on.
        unsafe {
            if choice >= SYSTEM {
                System.realloc(block, layout, bytes)
            } else {
                CountingAllocator.realloc(block, layout, bytes)
            }
        }
    }
}
