//! What waits: long tasks by deadline, and those of equal deadlines in the order in which they were started.
//!
//! Knows no thread and no clock.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use throng_platform::time::Nanos;

use super::LongTask;

/// A task that waits, with what was counted for it.
pub(super) struct Entry {
    pub task: LongTask,
    /// What the gauge was raised by.
    pub cost: Nanos,
    pub started_at: Nanos,
    pub sequence: u64,
}

impl Entry {
    /// The least is the next to begin.
    fn place(&self) -> (Nanos, u64) {
        (self.task.deadline, self.sequence)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The other way round: the heap gives the greatest.
impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        other.place().cmp(&self.place())
    }
}

#[derive(Default)]
pub(super) struct Waiting(BinaryHeap<Entry>);

impl Waiting {
    pub fn push(&mut self, entry: Entry) {
        self.0.push(entry);
    }

    /// The most urgent one.
    pub fn pop(&mut self) -> Option<Entry> {
        self.0.pop()
    }

    /// What that will cost.
    pub fn next_cost(&self) -> Option<Nanos> {
        self.0.peek().map(|entry| entry.cost)
    }
}
