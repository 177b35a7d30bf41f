//! Post: what a thread for long tasks is at, for whoever watches it from another thread.

use std::sync::OnceLock;

use throng_platform::time::Nanos;

use super::kinds::LongKind;
use crate::shim::Thread;
use crate::shim::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Written by its thread, read by anybody.
///
/// A task is there while `since` is not 0. It is written last and cleared first (release), and read before and after the
/// others (acquire): who reads the same twice has read the others of that task.
pub(super) struct Post {
    /// The thread waits for work, or is about to. See `Shared::wake_one` for why sequential order is needed.
    pub is_asleep: AtomicBool,
    /// Set once, before the thread first sleeps.
    pub thread: OnceLock<Thread>,
    thread_id: AtomicU32,
    kind: AtomicU32,
    /// [`NOTHING`]: about nothing.
    about: AtomicU64,
    cost: AtomicU64,
    within: AtomicU64,
    since: AtomicU64,
}

const NOTHING: u64 = u64::MAX;

/// A long task that runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RunningLong {
    /// The kernel's number of its thread.
    pub thread_id: u32,
    pub kind: LongKind,
    /// What its starter called it by ([`LongTask::about`](super::LongTask::about)).
    pub about: Option<u64>,
    /// What it was taken to cost.
    pub cost: Nanos,
    /// Its deadline was so long after its start.
    pub within: Nanos,
    /// When it began on its thread.
    pub since: Nanos,
}

impl Post {
    pub fn new() -> Post {
        Post {
            is_asleep: AtomicBool::new(false),
            thread: OnceLock::new(),
            thread_id: AtomicU32::new(0),
            kind: AtomicU32::new(0),
            about: AtomicU64::new(NOTHING),
            cost: AtomicU64::new(0),
            within: AtomicU64::new(0),
            since: AtomicU64::new(0),
        }
    }

    pub fn begin(&self, running: RunningLong) {
        let RunningLong { thread_id, kind, about, cost, within, since } = running;
        self.thread_id.store(thread_id, Ordering::Relaxed);
        self.kind.store(kind.0.into(), Ordering::Relaxed);
        self.about.store(about.unwrap_or(NOTHING), Ordering::Relaxed);
        self.cost.store(cost.0, Ordering::Relaxed);
        self.within.store(within.0, Ordering::Relaxed);
        self.since.store(since.0.max(1), Ordering::Release);
    }

    pub fn end(&self) {
        self.since.store(0, Ordering::Release);
    }

    /// The task that it is at, if it is at one.
    pub fn running(&self) -> Option<RunningLong> {
        let since = Nanos(self.since.load(Ordering::Acquire));
        let running = RunningLong {
            thread_id: self.thread_id.load(Ordering::Acquire),
            kind: LongKind(self.kind.load(Ordering::Acquire) as u16),
            about: Some(self.about.load(Ordering::Acquire)).filter(|about| *about != NOTHING),
            cost: Nanos(self.cost.load(Ordering::Acquire)),
            within: Nanos(self.within.load(Ordering::Acquire)),
            since,
        };
        (since > Nanos::ZERO && self.since.load(Ordering::Acquire) == since.0).then_some(running)
    }
}
