//! Memory: who allocates, what is still live, and which scope's live memory grows and grows.
//!
//! [`install`] makes the profiler the allocator's observer. From then on
//! - every allocation and free is charged to the calling thread and its innermost scope ([`crate::thread`]);
//! - a large allocation inside a world's tick is recorded and can be fetched once ([`take_large_allocation`]);
//! - a sample of the live blocks is followed from birth to death, so that [`note`], [`view`] and [`leak()`] know the
//!   live bytes of each scope over time.
//!
//! ```text
//!  allocated --> charge --> 64 KiB passed? --> Table: address -> scope, weight     live bytes per scope
//!                                  |              ^                                        |  note, once a second
//!                               Filter <----------+                                  History: 600 moments
//!  freed -----> charge --> in Filter? -------> Table                                        |
//!                                                                                      view, leak
//! ```
//!
//! Samples are taken by bytes and not by calls: about one block per 64 KiB allocated (`sampling.rs`). Estimates are
//! unbiased, and with n samples live they are off by 1/sqrt(n): 100 MB in small blocks is known to 2.5 %. Blocks of 64
//! KiB and more are all followed, exactly. Blocks from before `install` are not known.
//!
//! Within the allocator nothing here locks, waits, allocates or calls the system. Cost per allocation and free
//! together: some stores to the thread's own memory and one load from the filter; `cargo xtask bench heap` measures it.
//! Memory: 2 MiB, and for the history 5 KB per scope that ever had live memory.

mod filter;
mod history;
mod large;
mod leak;
mod sampling;
mod table;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use throng_platform::allocator::{AllocationObserver, ObserverAlreadySet, set_observer};

use crate::site::{SITES_MAX, SiteId};
use crate::{is_recording, thread};

pub use history::{LiveBytes, View};
pub use large::LargeAllocation;
pub use leak::Leak;

use filter::Filter;
use history::History;
use large::LargestAllocation;
use sampling::{INTERVAL_BYTES, Sampler};
use table::{Sample, Table};

/// Begins to watch memory, for the rest of the process; the second time does nothing. Early in `main`, because only
/// blocks from then on are known. Does something only in a program whose allocator is
/// [`throng_platform::allocator::CountingAllocator`].
pub fn install() -> Result<(), ObserverAlreadySet> {
    static INSTALLED: OnceLock<Result<(), ObserverAlreadySet>> = OnceLock::new();
    *INSTALLED.get_or_init(|| set_observer(OBSERVER.get_or_init(MemoryObserver::new)))
}

/// Allocations of more than this inside a world's tick are recorded as large (bytes, at least 64 KiB, default 256 KiB).
/// Too low: the records fill with ordinary buffers. Too high: an allocation that stalls every other thread goes unseen.
pub fn set_large_allocation_bytes(above_bytes: usize) {
    LARGE_ABOVE_BYTES.store(above_bytes.max(INTERVAL_BYTES), Ordering::Relaxed);
}

/// The largest large allocation since the last call, if there was one. For one reader, once a frame; costs a load when
/// there was none.
pub fn take_large_allocation() -> Option<LargeAllocation> {
    LARGEST.take()
}

/// Notes the live bytes of every scope for [`view`] and [`leak()`]. `now_ns` on the recorder's clock; to be called
/// about once a second. `population` is how many clients and worlds there are, who may hold more when they are more.
///
/// Takes a few microseconds, and allocates when a scope has live memory for the first time. False, and nothing noted,
/// when another thread is in [`view`] just now: the caller is not made to wait for it.
pub fn note(now_ns: u64, population: u64) -> bool {
    let Some(observer) = OBSERVER.get() else {
        return false;
    };
    let Some(mut history) = history_unless_busy() else {
        return false;
    };
    let live_bytes = observer.live_bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed));
    history.get_or_insert_with(History::new).note(now_ns, population, live_bytes);
    true
}

/// What was noted, the last 600 moments: the live bytes of each scope. Any thread. Allocates; a moment at the same time
/// is left out.
pub fn view() -> View {
    HISTORY.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(History::view).unwrap_or_default()
}

/// The scope whose live memory has grown fastest and steadily through the last `window_s` seconds, by
/// `growth_bytes_min` at least, and by 256 KiB more for each client and world that has come since a window before it:
/// those hold memory for a good reason, and come to hold more of it for a while.
///
/// `None` as long as less than the window was noted, while [`view`] runs, and for growth that pauses, comes at once, or
/// stops; see [`Leak`]. A window of 60 s with 8 MB is quick, one of 600 s with 16 MB is sure. Too short: a cache that
/// fills is called a leak. Too long: memory is gone before it is over.
pub fn leak(window_s: u64, growth_bytes_min: u64) -> Option<Leak> {
    history_unless_busy()?.as_ref()?.leak(window_s, growth_bytes_min)
}

/// What a scope has live now, estimated from samples (bytes); `None` for what was allocated outside of every scope. Any
/// thread, about 1 ns.
pub fn live_bytes(site: Option<SiteId>) -> u64 {
    let place = site.map_or(0, |site| site.0 as usize);
    let live_bytes = OBSERVER.get().and_then(|observer| observer.live_bytes.get(place));
    live_bytes.map_or(0, |bytes| bytes.load(Ordering::Relaxed))
}

/// How well the samples cover what is live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Blocks that are followed now.
    pub samples: u64,
    /// Blocks that should have been followed and found no place; live bytes are too low by their weight.
    pub samples_dropped: u64,
    /// Large allocations within worlds' ticks, whether or not somebody took them.
    pub large_allocations: u64,
}

/// How well the samples cover what is live, since the start. Any thread.
pub fn coverage() -> Coverage {
    let samples = |count: fn(&MemoryObserver) -> &AtomicU64| {
        OBSERVER.get().map_or(0, |observer| count(observer).load(Ordering::Relaxed))
    };
    Coverage {
        samples: samples(|observer| &observer.samples),
        samples_dropped: samples(|observer| &observer.samples_dropped),
        large_allocations: LARGE_ALLOCATIONS.load(Ordering::Relaxed),
    }
}

static OBSERVER: OnceLock<MemoryObserver> = OnceLock::new();
/// Never touched within the allocator, so that whoever holds it may be slow.
static HISTORY: Mutex<Option<History>> = Mutex::new(None);
static LARGEST: LargestAllocation = LargestAllocation::new();
/// Written by settings, read by large allocations; stands for itself, so relaxed order is enough. The same goes for the
/// counts.
static LARGE_ABOVE_BYTES: AtomicUsize = AtomicUsize::new(256 << 10);
static LARGE_ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static SAMPLER: Sampler = const { Sampler::new() };
}

/// The history, empty before the first note; `None` while another thread has it.
fn history_unless_busy() -> Option<MutexGuard<'static, Option<History>>> {
    match HISTORY.try_lock() {
        Ok(history) => Some(history),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// What is known of live memory. Written by all threads at once, from within the allocator.
struct MemoryObserver {
    filter: Filter,
    table: Table,
    /// Live bytes by site; place 0 is for what was allocated outside of every scope.
    live_bytes: Box<[AtomicU64]>,
    samples: AtomicU64,
    samples_dropped: AtomicU64,
}

impl MemoryObserver {
    fn new() -> MemoryObserver {
        MemoryObserver {
            filter: Filter::new(),
            table: Table::new(),
            live_bytes: (0..=SITES_MAX).map(|_| AtomicU64::new(0)).collect(),
            samples: AtomicU64::new(0),
            samples_dropped: AtomicU64::new(0),
        }
    }

    /// Follows this block from now on. What it weighs counts for the scope until the block is freed.
    #[cold]
    fn follow(&self, address: usize, bytes: usize, weight_bytes: u64) {
        if bytes > LARGE_ABOVE_BYTES.load(Ordering::Relaxed) {
            note_large(bytes as u64);
        }
        let site = thread::current_site().map_or(0, |site| site.0);
        let Some(live_bytes) = self.live_bytes.get(site as usize) else {
            return;
        };
        if self.table.insert(address, Sample { site, weight_bytes }) {
            self.filter.add(address);
            live_bytes.fetch_add(weight_bytes, Ordering::Relaxed);
            self.samples.fetch_add(1, Ordering::Relaxed);
        } else {
            self.samples_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The block may be one that is followed.
    #[cold]
    fn forget(&self, address: usize) {
        if let Some(sample) = self.table.remove(address) {
            self.filter.remove(address);
            self.live_bytes[sample.site as usize].fetch_sub(sample.weight_bytes, Ordering::Relaxed);
            self.samples.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl AllocationObserver for MemoryObserver {
    #[inline]
    fn allocated(&self, block: *mut u8, bytes: usize) {
        if !is_recording() {
            return;
        }
        thread::count_allocation(bytes);
        if let Some(weight_bytes) = SAMPLER.with(|sampler| sampler.weight_of(bytes)) {
            self.follow(block.addr(), bytes, weight_bytes);
        }
    }

    #[inline]
    fn freed(&self, block: *mut u8, _bytes: usize) {
        if is_recording() {
            thread::count_free();
        }
        // What is followed is known to be gone in any case.
        if self.filter.may_have(block.addr()) {
            self.forget(block.addr());
        }
    }
}

/// Records a large allocation if the thread works for a world.
fn note_large(bytes: u64) {
    let Some(world) = thread::current_world() else {
        return;
    };
    LARGE_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    thread::record_large_allocation(bytes);
    LARGEST.offer(LargeAllocation {
        bytes,
        site: thread::current_site(),
        world,
        kind: thread::current_kind_of_world(),
        thread: thread::current_index().unwrap_or_default(),
    });
}

/// The site at a place of [`MemoryObserver::live_bytes`].
fn site_at(place: usize) -> Option<SiteId> {
    (place > 0).then_some(SiteId(place as u32))
}
