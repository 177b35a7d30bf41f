//! Overruns: scopes that took longer than their budget, and long waits for locks, on their way to the thread that
//! looks at triggers.
//!
//! The queues are bounded, because a scope that is always too long would fill any other. What finds its queue full is
//! counted and not kept; the first ones say enough.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_queue::ArrayQueue;

use crate::site::SiteId;
use crate::world_kind::KindNumber;

/// A scope over its budget.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Overrun {
    pub site: SiteId,
    pub ticks: u64,
    /// What it may take in this kind of world (ticks).
    pub allowed: u64,
    /// When it ended (ticks).
    pub at: u64,
    pub thread: u32,
    /// World and tick.
    pub world: Option<(u32, u32)>,
    pub kind: KindNumber,
}

/// A wait for a lock.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LongWait {
    pub lock: u32,
    pub ticks: u64,
    pub at: u64,
    pub world: Option<u32>,
    pub kind: KindNumber,
}

const WAITING_MAX: usize = 256;

static OVERRUNS: OnceLock<ArrayQueue<Overrun>> = OnceLock::new();
static LONG_WAITS: OnceLock<ArrayQueue<LongWait>> = OnceLock::new();
static NOT_KEPT: AtomicU64 = AtomicU64::new(0);
/// What counts as a long wait. Written with the rules, read by threads that have waited for a lock. No other memory
/// depends on it, so relaxed order is enough.
static LONG_WAIT_TICKS: AtomicU64 = AtomicU64::new(u64::MAX);

/// Makes the queues, so that no recording thread has to.
pub(crate) fn prepare() {
    OVERRUNS.get_or_init(|| ArrayQueue::new(WAITING_MAX));
    LONG_WAITS.get_or_init(|| ArrayQueue::new(WAITING_MAX));
}

#[cold]
pub(crate) fn note(overrun: Overrun) {
    keep(OVERRUNS.get(), overrun);
}

/// Keeps the wait if it is long by the rules: short ones, of which there may be many, must not crowd it out.
#[cold]
pub(crate) fn note_wait(wait: LongWait) {
    if wait.ticks > LONG_WAIT_TICKS.load(Ordering::Relaxed) {
        keep(LONG_WAITS.get(), wait);
    }
}

pub(crate) fn set_long_wait_ticks(threshold: u64) {
    LONG_WAIT_TICKS.store(threshold, Ordering::Relaxed);
}

fn keep<T>(queue: Option<&ArrayQueue<T>>, one: T) {
    if queue.is_some_and(|queue| queue.push(one).is_err()) {
        NOT_KEPT.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) fn take() -> Option<Overrun> {
    OVERRUNS.get()?.pop()
}

pub(crate) fn take_wait() -> Option<LongWait> {
    LONG_WAITS.get()?.pop()
}

/// How many found their queue full, since the start.
pub(crate) fn not_kept() -> u64 {
    NOT_KEPT.load(Ordering::Relaxed)
}
