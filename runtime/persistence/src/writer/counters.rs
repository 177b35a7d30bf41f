//! Counters of saving: what an operator looks at when saves are late.

use std::sync::atomic::{AtomicU64, Ordering};

use throng_platform::time::Nanos;

/// What the writer has done so far.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveCounters {
    /// Commits on disk.
    pub commits: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Transactions that they were written in.
    pub batches: u64,
    /// Orders that were taken, and then refused by the store.
    pub refused: u64,
    /// Orders that were not even taken.
    pub full: u64,
    /// Failures of the store, each try to open it anew included.
    pub errors: u64,
    /// Times that it was opened anew.
    pub reopened: u64,
    /// Damaged records that were met.
    pub damaged: u64,
    /// Orders that are on their way, or whose acknowledgement nobody took.
    pub queued_orders: u64,
    /// Bytes of the orders that wait or are being written.
    pub queued_bytes: u64,
    /// What the newest transaction took, its fsyncs included.
    pub newest_batch: Nanos,
    /// What the longest took.
    pub longest_batch: Nanos,
    /// Processor time of the thread that saves; zero where there is none.
    pub thread_cpu: Nanos,
}

/// Written by the thread that saves, `full` by the frame's; read by the frame's. Numbers that stand for nothing else:
/// relaxed.
#[derive(Debug, Default)]
pub(super) struct Cells {
    commits: AtomicU64,
    bytes: AtomicU64,
    batches: AtomicU64,
    refused: AtomicU64,
    full: AtomicU64,
    errors: AtomicU64,
    reopened: AtomicU64,
    newest_batch_ns: AtomicU64,
    longest_batch_ns: AtomicU64,
    /// The longest since the frame's thread last asked, which takes it away.
    longest_since_ns: AtomicU64,
    thread_cpu_ns: AtomicU64,
}

impl Cells {
    pub fn count_commit(&self, bytes: usize) {
        add(&self.commits, 1);
        add(&self.bytes, bytes as u64);
    }

    pub fn count_batch(&self, time: Nanos) {
        add(&self.batches, 1);
        self.newest_batch_ns.store(time.0, Ordering::Relaxed);
        self.longest_batch_ns.fetch_max(time.0, Ordering::Relaxed);
        self.longest_since_ns.fetch_max(time.0, Ordering::Relaxed);
    }

    /// What the longest batch took since this was last asked.
    pub fn take_longest(&self) -> Nanos {
        Nanos(self.longest_since_ns.swap(0, Ordering::Relaxed))
    }

    pub fn set_thread_cpu(&self, time: Nanos) {
        self.thread_cpu_ns.store(time.0, Ordering::Relaxed);
    }

    pub fn count_refused(&self) {
        add(&self.refused, 1);
    }

    pub fn count_full(&self) {
        add(&self.full, 1);
    }

    pub fn count_error(&self) {
        add(&self.errors, 1);
    }

    pub fn count_reopened(&self) {
        add(&self.reopened, 1);
    }

    pub fn read(&self, queued_orders: u64, queued_bytes: usize, damaged: u64) -> SaveCounters {
        let of = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        SaveCounters {
            commits: of(&self.commits),
            bytes: of(&self.bytes),
            batches: of(&self.batches),
            refused: of(&self.refused),
            full: of(&self.full),
            errors: of(&self.errors),
            reopened: of(&self.reopened),
            damaged,
            queued_orders,
            queued_bytes: queued_bytes as u64,
            newest_batch: Nanos(of(&self.newest_batch_ns)),
            longest_batch: Nanos(of(&self.longest_batch_ns)),
            thread_cpu: Nanos(of(&self.thread_cpu_ns)),
        }
    }
}

fn add(cell: &AtomicU64, count: u64) {
    cell.fetch_add(count, Ordering::Relaxed);
}
