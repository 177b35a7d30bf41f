//! Kinds of long tasks: their names, what each usually takes, and what was counted of it.
//!
//! A table of fixed size that is written by whichever thread meets a name first, and never shrinks: so whoever starts or
//! ends a task finds its row by number, without a lock. Where the table is full, further names share the last row.
//!
//! All numbers are plain sums that several threads add to and anybody reads; nothing else follows from their order, so
//! relaxed order is enough. An estimate that two threads change at once may lose one of two measures, and gets the next.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use throng_platform::time::Nanos;
use throng_profiler::{Site, site};

use crate::cost::smoothed_after;

/// Kinds that have a row of their own. Engine and game together have a dozen.
pub const KINDS_MAX: usize = 64;

/// The name of the row that kinds share for which there is none left.
const OTHERS: &str = "others";

/// What a task is taken to cost of whose kind nothing is known: an idle server does not care, and a busy one knows its
/// kinds. (ns)
const UNKNOWN_COST: Nanos = Nanos::from_millis(1);

/// The kind of a long task, as [`LongTasks::kind`](crate::LongTasks::kind) numbers it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct LongKind(pub(super) u16);

/// What is known of the long tasks of one kind, since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongKindRow {
    pub name: &'static str,
    pub started: u64,
    pub finished: u64,
    /// Of those finished, how many were so after their deadline.
    pub missed: u64,
    /// Of those finished, how many panicked.
    pub panicked: u64,
    /// Not started, because too many waited.
    pub refused: u64,
    /// What such a task usually takes of a core.
    pub usual_cost: Nanos,
    /// The longest time from a task's start to its begin on a thread.
    pub wait_max: Nanos,
}

/// One row.
pub(super) struct Kind {
    pub name: &'static str,
    pub site: &'static Site,
    pub started: AtomicU64,
    pub finished: AtomicU64,
    pub missed: AtomicU64,
    pub panicked: AtomicU64,
    pub refused: AtomicU64,
    /// Smoothed, zero while nothing is known. (ns)
    usual_cost: AtomicU64,
    wait_max: AtomicU64,
}

impl Kind {
    fn new(name: &'static str) -> Kind {
        Kind {
            name,
            site: site::intern(&format!("long.{name}"), None),
            started: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            panicked: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            usual_cost: AtomicU64::new(0),
            wait_max: AtomicU64::new(0),
        }
    }

    /// What a task is taken to cost of which nothing else is known.
    pub fn cost(&self) -> Nanos {
        match Nanos(self.usual_cost.load(Ordering::Relaxed)) {
            Nanos::ZERO => UNKNOWN_COST,
            known => known,
        }
    }

    pub fn measured(&self, cost: Nanos) {
        // Not zero, which would mean that nothing is known.
        let smoothed = smoothed_after(Nanos(self.usual_cost.load(Ordering::Relaxed)), cost.max(Nanos(1)));
        self.usual_cost.store(smoothed.0, Ordering::Relaxed);
    }

    pub fn waited(&self, wait: Nanos) {
        self.wait_max.fetch_max(wait.0, Ordering::Relaxed);
    }

    fn row(&self) -> LongKindRow {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LongKindRow {
            name: self.name,
            started: read(&self.started),
            finished: read(&self.finished),
            missed: read(&self.missed),
            panicked: read(&self.panicked),
            refused: read(&self.refused),
            usual_cost: Nanos(read(&self.usual_cost)),
            wait_max: Nanos(read(&self.wait_max)),
        }
    }
}

/// All kinds.
pub(super) struct Kinds([OnceLock<Kind>; KINDS_MAX]);

impl Kinds {
    pub fn new() -> Kinds {
        Kinds([const { OnceLock::new() }; KINDS_MAX])
    }

    /// The number of this name, which is the same from then on. Allocates for a new one.
    pub fn number(&self, name: &'static str) -> LongKind {
        for (number, place) in (0..).zip(&self.0[..KINDS_MAX - 1]) {
            if place.get_or_init(|| Kind::new(name)).name == name {
                return LongKind(number);
            }
        }
        self.0[KINDS_MAX - 1].get_or_init(|| Kind::new(OTHERS));
        LongKind(KINDS_MAX as u16 - 1)
    }

    pub fn get(&self, kind: LongKind) -> &Kind {
        self.0[usize::from(kind.0)].get().expect("a number is given with its row")
    }

    pub fn rows(&self) -> Vec<LongKindRow> {
        self.0.iter().filter_map(OnceLock::get).map(Kind::row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number_and_too_many_share_the_last() {
        let names: Vec<&'static str> = (0..KINDS_MAX + 4).map(|n| &*format!("kind {n}").leak()).collect();
        let kinds = Kinds::new();
        let numbers: Vec<_> = names.iter().map(|name| kinds.number(name)).collect();
        assert_eq!(numbers[5], kinds.number(names[5]));
        assert_eq!(numbers[KINDS_MAX - 2].0 as usize, KINDS_MAX - 2);
        assert!(numbers[KINDS_MAX - 1..].iter().all(|number| usize::from(number.0) == KINDS_MAX - 1));
        let rows = kinds.rows();
        assert_eq!((rows.len(), rows[5].name, rows[KINDS_MAX - 1].name), (KINDS_MAX, "kind 5", OTHERS));
    }

    #[test]
    fn what_a_kind_costs_is_learnt_from_its_tasks() {
        let kinds = Kinds::new();
        let kind = kinds.get(kinds.number("drop"));
        assert_eq!(kind.cost(), UNKNOWN_COST);
        kind.measured(Nanos(400));
        assert_eq!(kind.cost(), Nanos(400));
        kind.measured(Nanos(800));
        assert_eq!(kind.cost(), Nanos(600), "up by half");
        kind.measured(Nanos::ZERO);
        assert_eq!(kind.cost(), Nanos(562), "down by a sixteenth");
    }
}
