//! Kinds of worlds: what a thread records says which kind of world it works for, so that each kind has cooldowns, a
//! folder of captures and, if somebody wants, budgets of its own.
//!
//! A kind also has a period, that of its worlds' ticks. What a tick may take by default follows from it ([`fitted`]):
//! half of a period at 20 Hz is three periods at 128.
//!
//! A kind is known by its name and has a number from the first time that somebody asks for it to the end of the
//! process. Any thread. To ask takes a lock, and allocates for a new name; how many there are takes neither.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Kinds that are told apart. Later ones share one number, and with it their folders and cooldowns; they have no
/// budgets of their own.
pub const KINDS_MAX: usize = 14;

/// Rows of a table by kind: one for no world, one for each kind, one for those beyond.
pub const KIND_ROWS: usize = KINDS_MAX + 2;

/// What kinds beyond [`KINDS_MAX`] are called together.
const OTHERS: &str = "others";

/// A kind of world, or none.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct KindNumber(u8);

impl KindNumber {
    /// No world.
    pub const NONE: KindNumber = KindNumber(0);

    /// Its place in a table by kind.
    #[inline(always)]
    pub fn row(self) -> usize {
        usize::from(self.0) % KIND_ROWS
    }

    #[inline(always)]
    pub fn of_row(row: usize) -> KindNumber {
        KindNumber((row % KIND_ROWS) as u8)
    }

    /// `None` for no world.
    pub fn name(self) -> Option<&'static str> {
        let place = self.row().checked_sub(1)?;
        if place == KINDS_MAX { Some(OTHERS) } else { names().get(place).copied() }
    }
}

static KINDS: Mutex<Kinds> = Mutex::new(Kinds { names: Vec::new() });

/// Rows in use. Written under the lock of `KINDS`, read by the frame's thread once a frame without it; the number is all
/// there is to see, so relaxed order is enough.
static ROWS: AtomicUsize = AtomicUsize::new(1);

/// Kinds in the order of their numbers.
struct Kinds {
    names: Vec<&'static str>,
}

impl Kinds {
    /// The row of a kind, which is told apart from now on if it can be.
    fn row_of(&mut self, name: &str) -> usize {
        let known = self.names.iter().position(|&other| other == name);
        let place = known.unwrap_or_else(|| {
            if self.names.len() < KINDS_MAX {
                self.names.push(Box::leak(name.to_owned().into_boxed_str()));
                return self.names.len() - 1;
            }
            KINDS_MAX
        });
        place + 1
    }
}

/// Periods of the ticks of each kind (ns), by its row; 0 where nobody has said one. Written at most a few times per
/// kind, read when budgets are looked up and when a tick is late; each for its own sake: relaxed.
static PERIODS_NS: [AtomicU64; KIND_ROWS] = [const { AtomicU64::new(0) }; KIND_ROWS];

/// Counts kinds and periods that were not known before. As `ROWS`.
static CHANGES: AtomicUsize = AtomicUsize::new(0);

/// What defaults in time are made for: 30 Hz and slower. (ns)
const MADE_FOR_PERIOD_NS: u64 = 1_000_000_000 / 30;

/// The kind of this name, which is told apart from now on.
pub fn number_of(name: &str) -> KindNumber {
    let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    let row = kinds.row_of(name);
    if ROWS.fetch_max(row + 1, Ordering::Relaxed) <= row {
        CHANGES.fetch_add(1, Ordering::Relaxed);
    }
    KindNumber::of_row(row)
}

/// Says how long it is from one tick of a world of this kind to the next (ns, above 0). Of several, as kinds have that
/// share a number, the longest counts: nothing is too long by another kind's measure.
pub fn set_period(kind: KindNumber, period_ns: u64) {
    if PERIODS_NS[kind.row()].fetch_max(period_ns, Ordering::Relaxed) < period_ns {
        CHANGES.fetch_add(1, Ordering::Relaxed);
    }
}

/// The period of a kind's ticks (ns), if somebody has said it.
pub fn period_ns(kind: KindNumber) -> Option<u64> {
    Some(PERIODS_NS[kind.row()].load(Ordering::Relaxed)).filter(|&period_ns| period_ns > 0)
}

/// The shortest period of all kinds (ns), if there is any: what concerns no single kind has to fit into that.
pub fn shortest_period_ns() -> Option<u64> {
    (0..KIND_ROWS).filter_map(|row| period_ns(KindNumber::of_row(row))).min()
}

/// What is left at a rate of a default that is made for 30 Hz and slower: as much less as the period is shorter, so that
/// it stays the same share of it. Without a period, all of it. (ns)
pub fn fitted(default_ns: u64, period_ns: Option<u64>) -> u64 {
    let period_ns = period_ns.unwrap_or(MADE_FOR_PERIOD_NS).min(MADE_FOR_PERIOD_NS);
    // In 128 bits, because a default may be anything.
    (u128::from(default_ns) * u128::from(period_ns) / u128::from(MADE_FOR_PERIOD_NS)) as u64
}

/// Grows when there is a kind or a period that was not known before.
pub(crate) fn changes() -> usize {
    CHANGES.load(Ordering::Relaxed)
}

/// How many rows of a table by kind are in use.
pub(crate) fn rows() -> usize {
    ROWS.load(Ordering::Relaxed)
}

/// Names of the kinds that are told apart, in the order of their numbers. Allocates.
pub(crate) fn names() -> Vec<&'static str> {
    KINDS.lock().unwrap_or_else(PoisonError::into_inner).names.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number() {
        let hub = number_of("kind_test.hub");
        assert_eq!(number_of(&String::from("kind_test.hub")), hub);
        assert_eq!(hub.name(), Some("kind_test.hub"));
        assert_eq!(KindNumber::NONE.name(), None);
        assert!(hub.row() < rows());
    }

    /// Promise: what is made for 30 Hz is the same at 20, and as much less at 128 as a period is shorter.
    #[test]
    fn a_default_follows_the_period() {
        let at = |hz: u64| fitted(25_000_000, Some(1_000_000_000 / hz));
        assert_eq!([at(10), at(20), at(30)], [25_000_000; 3]);
        assert_eq!([at(60), at(128)], [12_499_999, 5_859_375]);
        assert_eq!((fitted(25_000_000, None), fitted(u64::MAX, Some(1))), (25_000_000, u64::MAX / MADE_FOR_PERIOD_NS));
    }

    #[test]
    fn kinds_that_share_a_number_have_the_longest_period() {
        let (kind, before) = (number_of("kind_test.arena"), changes());
        assert_eq!(period_ns(kind), None);
        [7_812_500, 50_000_000, 7_812_500].into_iter().for_each(|period| set_period(kind, period));
        assert_eq!(period_ns(kind), Some(50_000_000));
        assert!(shortest_period_ns().is_some_and(|shortest| shortest <= 50_000_000));
        assert!(changes() >= before + 2);
    }

    /// Promise: no number of kinds is too many.
    #[test]
    fn late_kinds_share_a_number() {
        let mut kinds = Kinds { names: Vec::new() };
        let rows: Vec<usize> = (0..KINDS_MAX + 2).map(|n| kinds.row_of(&n.to_string())).collect();
        assert_eq!((rows[0], rows[KINDS_MAX - 1]), (1, KINDS_MAX));
        assert_eq!((rows[KINDS_MAX], rows[KINDS_MAX + 1]), (KINDS_MAX + 1, KINDS_MAX + 1));
        assert_eq!(kinds.row_of("3"), 4);
        assert_eq!(KindNumber::of_row(KINDS_MAX + 1).name(), Some(OTHERS));
    }
}
