//! The declaration of an event: its name, the version of its schema, its fields.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU16, Ordering},
};

use crate::field::FieldType;

/// Most kinds of events of a process. They are in a program's text, so it takes a generator to get here; what comes
/// after is dropped and counted.
pub const KINDS_MAX: usize = 4_096;

/// A kind that has no number yet.
const UNKNOWN: u16 = u16::MAX;
/// One too many, or one whose name has another schema elsewhere.
pub(crate) const REFUSED: u16 = u16::MAX - 1;

/// Declares an analytics event: a struct with these fields and a method `emit`. Name, version of the schema, and fields
/// of any type that is a [`Field`](crate::field::Field): whole numbers, `f32`, `f64`, `bool`, `&'static str`, `Text<N>`.
///
/// ```
/// throng_analytics::analytics!(
///     /// A round of a match is over.
///     pub RoundWon = "round.won", 1 { team: u8, seconds: f32, reason: &'static str }
/// );
/// RoundWon { team: 1, seconds: 71.5, reason: "time" }.emit();
/// ```
///
/// The version counts up whenever a field is added, goes, or means something else, so that readers can tell. Names are
/// made of a-z, 0-9, `_` and `.`, a letter first.
#[macro_export]
macro_rules! analytics {
    ($(#[$note:meta])* $vis:vis $event:ident = $name:literal, $version:literal {
        $($field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$note])*
        #[derive(Clone, Copy, Debug)]
        $vis struct $event {
            $($vis $field: $type,)*
        }

        impl $crate::AnalyticsEvent for $event {
            fn kind() -> &'static $crate::Kind {
                static KIND: $crate::Kind = $crate::Kind::new(
                    $name,
                    $version,
                    &[$((stringify!($field), <$type as $crate::field::Field>::TYPE)),*],
                );
                &KIND
            }

            #[inline]
            fn size_bytes(&self) -> usize {
                0 $(+ $crate::field::Field::size_bytes(&self.$field))*
            }

            #[inline]
            #[allow(unused_variables, reason = "an event may have no field")]
            fn write(&self, out: &mut Vec<u8>) {
                $($crate::field::Field::write(&self.$field, out);)*
            }
        }

        impl $event {
            /// Emits it from the world whose tick runs on this thread; outside of a tick it does nothing. Neither
            /// allocates nor waits.
            #[inline]
            $vis fn emit(self) {
                $crate::tick::emit(&self);
            }
        }
    };
}

/// An event as [`analytics!`](crate::analytics) declares it.
pub trait AnalyticsEvent {
    fn kind() -> &'static Kind;
    /// How many bytes `write` adds.
    fn size_bytes(&self) -> usize;
    /// Adds its fields, in the order of the declaration.
    fn write(&self, out: &mut Vec<u8>);
}

/// What all events of a declaration have in common.
pub struct Kind {
    pub name: &'static str,
    pub version: u16,
    pub fields: &'static [(&'static str, FieldType)],
    /// Its place in the process's list. Written once or twice with the same number; nothing else depends on it, so
    /// relaxed order is enough.
    number: AtomicU16,
}

impl Kind {
    /// # Panics
    /// While compiling: when the name is none, or the version is 0.
    pub const fn new(name: &'static str, version: u16, fields: &'static [(&'static str, FieldType)]) -> Kind {
        assert!(is_name(name), "an event's name is made of a-z, 0-9, `_` and `.`, a letter first");
        assert!(version > 0, "the first version of an event is 1");
        Kind { name, version, fields, number: AtomicU16::new(UNKNOWN) }
    }

    #[inline]
    pub(crate) fn number(&'static self) -> u16 {
        match self.number.load(Ordering::Relaxed) {
            UNKNOWN => self.learn(),
            known => known,
        }
    }

    #[cold]
    fn learn(&'static self) -> u16 {
        let mut kinds = kinds();
        let is_same = |other: &&'static Kind| other.name == self.name && other.version == self.version;
        let number = match kinds.iter().position(is_same) {
            Some(number) if kinds[number].fields == self.fields => number as u16,
            Some(_) => REFUSED,
            None if kinds.len() >= KINDS_MAX => REFUSED,
            None => {
                if kinds.capacity() == 0 {
                    kinds.reserve(KINDS_EXPECTED);
                }
                kinds.push(self);
                kinds.len() as u16 - 1
            }
        };
        self.number.store(number, Ordering::Relaxed);
        drop(kinds);
        debug_assert!(number != REFUSED, "`{}` has other fields of the same version elsewhere", self.name);
        number
    }
}

/// The kinds of the process. The place of a kind is its number.
static KINDS: Mutex<Vec<&'static Kind>> = Mutex::new(Vec::new());

/// Kinds that there is room for from the start: one that is first emitted long after allocates nothing in its tick.
const KINDS_EXPECTED: usize = 256;

fn kinds() -> MutexGuard<'static, Vec<&'static Kind>> {
    KINDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Brings `known` up to date, for whoever reads pages.
pub(crate) fn copy_kinds(known: &mut Vec<&'static Kind>) {
    let kinds = kinds();
    known.extend_from_slice(&kinds[known.len()..]);
}

const fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let is_fine = bytes[at].is_ascii_lowercase() || at > 0 && matches!(bytes[at], b'0'..=b'9' | b'_' | b'.');
        if !is_fine {
            return false;
        }
        at += 1;
    }
    !bytes.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_declaration_in_two_places_is_one_kind() {
        static ONE: Kind = Kind::new("event.same", 1, &[("a", FieldType::Bool)]);
        static SAME: Kind = Kind::new("event.same", 1, &[("a", FieldType::Bool)]);
        static NEWER: Kind = Kind::new("event.same", 2, &[("b", FieldType::Bool)]);
        assert_eq!(ONE.number(), SAME.number());
        assert_ne!(ONE.number(), NEWER.number());
    }

    #[test]
    #[should_panic(expected = "`event.other` has other fields of the same version elsewhere")]
    fn two_schemas_of_one_version_are_a_bug_that_tests_see() {
        static ONE: Kind = Kind::new("event.other", 1, &[("a", FieldType::Bool)]);
        static OTHER: Kind = Kind::new("event.other", 1, &[("a", FieldType::F32)]);
        let _ = (ONE.number(), OTHER.number());
    }
}
