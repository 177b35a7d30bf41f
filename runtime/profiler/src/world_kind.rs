//! Kinds of worlds: what a thread records says which kind of world it works for, so that each kind has cooldowns, a
//! folder of captures and, if somebody wants, budgets of its own.
//!
//! A kind is known by its name and has a number from the first time that somebody asks for it to the end of the
//! process. Any thread. To ask takes a lock, and allocates for a new name; how many there are takes neither.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Kinds that are told apart. Later ones share one number, and with it their folders and cooldowns; they have no
/// budgets of their own.
pub const KINDS_MAX: usize = 14;

/// Rows of a table by kind: one for no world, one for each kind, one for those beyond.
pub(crate) const KIND_ROWS: usize = KINDS_MAX + 2;

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
    pub(crate) fn row(self) -> usize {
        usize::from(self.0) % KIND_ROWS
    }

    #[inline(always)]
    pub(crate) fn of_row(row: usize) -> KindNumber {
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

/// The kind of this name, which is told apart from now on.
pub fn number_of(name: &str) -> KindNumber {
    let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    let row = kinds.row_of(name);
    ROWS.fetch_max(row + 1, Ordering::Relaxed);
    KindNumber::of_row(row)
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
