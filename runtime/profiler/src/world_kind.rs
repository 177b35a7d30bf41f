//! Kinds of worlds: what a thread records says which kind of world it works for, so that each kind has cooldowns and a
//! folder of captures of its own.
//!
//! A kind is known by its name and has a number from the first time that somebody asks for it to the end of the
//! process. Any thread. Takes a lock, and allocates for a new name.

use std::sync::{Mutex, PoisonError};

/// Kinds that are told apart. Later ones share one number, and with it their folders and cooldowns.
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

static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// The kind of this name, which is told apart from now on.
pub fn number_of(name: &str) -> KindNumber {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let place = names.iter().position(|&other| other == name).unwrap_or_else(|| {
        if names.len() < KINDS_MAX {
            names.push(Box::leak(name.to_owned().into_boxed_str()));
            return names.len() - 1;
        }
        KINDS_MAX
    });
    KindNumber::of_row(place + 1)
}

/// Names of the kinds that are told apart, in the order of their numbers. Allocates.
pub(crate) fn names() -> Vec<&'static str> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise: so many kinds are told apart, each by its name, and no number of kinds is too many.
    #[test]
    fn a_name_has_one_number_and_late_ones_share_theirs() {
        let hub = number_of("kind_test.hub");
        assert_eq!(number_of(&String::from("kind_test.hub")), hub);
        assert_eq!(hub.name(), Some("kind_test.hub"));
        assert_ne!(hub, KindNumber::NONE);
        assert_eq!(KindNumber::NONE.name(), None);
        let late: Vec<KindNumber> = (0..KINDS_MAX + 2).map(|n| number_of(&format!("kind_test.{n}"))).collect();
        assert_eq!(late[KINDS_MAX], late[KINDS_MAX + 1]);
        assert_eq!(late[KINDS_MAX].name(), Some(OTHERS));
        assert_eq!(number_of("kind_test.hub"), hub);
    }
}
