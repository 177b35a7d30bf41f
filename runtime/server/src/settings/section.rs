//! One section of a settings file, read into a type: serde finds keys and types, the type checks its values.
//!
//! A game reads its own `[game]` in the same way as the server reads `[server]`:
//!
//! ```
//! use serde::Deserialize;
//! use throng::settings::{Checks, Section, Settings};
//!
//! #[derive(Debug, Default, Deserialize)]
//! #[serde(default)]
//! struct Rules {
//!     /// Wolves in the forest [count, 0 to 1,000]. Default 0.
//!     wolves: u32,
//! }
//!
//! impl Section for Rules {
//!     fn check(&self, checks: &mut Checks<'_>) {
//!         checks.range("wolves", self.wolves, 0..=1_000, "wolves");
//!     }
//! }
//!
//! let settings = Settings::parse("throng.toml", "[game]\nwolves = 5000\n").unwrap();
//! let error = settings.game::<Rules>().unwrap_err();
//! assert_eq!(error.to_string(), "throng.toml:2: [game] wolves: 5000 is too high; it may be 0 to 1000 wolves");
//! ```

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

use serde::de::{DeserializeOwned, Deserializer, Error as _, IgnoredAny, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use throng_world::tunable::{Tunable, Tune};
use toml::de::DeTable;

use super::document::Document;
use super::mistake::Mistake;

/// A type that a section is read into. Give it `#[derive(Deserialize)]` and `#[serde(default)]`.
pub trait Section: DeserializeOwned + Default {
    /// Adds what the types cannot say: ranges, and keys that must agree with each other.
    fn check(&self, checks: &mut Checks<'_>);
}

/// The section of a game that has no settings: whatever stands in it is a mistake.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct NoSection {}

impl Section for NoSection {
    fn check(&self, _checks: &mut Checks<'_>) {}
}

/// A section that is left to others: whatever stands in it is taken and not looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnySection {}

impl<'de> Deserialize<'de> for AnySection {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(from).map(|_| Self {})
    }
}

impl Section for AnySection {
    fn check(&self, _checks: &mut Checks<'_>) {}
}

/// Takes the mistakes that a [`Section`] finds in itself and gives them their lines.
pub struct Checks<'d> {
    document: &'d Document<'d>,
    section: &'d str,
    header: Range<usize>,
    table: &'d DeTable<'d>,
    /// False when ill-typed keys were left out of the value: then keys cannot be held against each other.
    whole: bool,
    mistakes: &'d mut Vec<Mistake>,
}

impl<'d> Checks<'d> {
    pub(super) fn new(
        document: &'d Document<'d>,
        section: &'d str,
        header: Range<usize>,
        table: &'d DeTable<'d>,
        whole: bool,
        mistakes: &'d mut Vec<Mistake>,
    ) -> Self {
        Self { document, section, header, table, whole, mistakes }
    }

    /// Is the key written in the file, rather than left at its default?
    pub fn has(&self, key: &str) -> bool {
        self.table.keys().any(|written| written.get_ref() == key)
    }

    /// Notes a mistake at the key's line, or at the section's when the key is not written.
    pub fn mistake(&mut self, key: &str, message: impl Into<String>) {
        if self.whole {
            self.note(key, message.into());
        }
    }

    /// True if the value lies in the range; else notes a mistake. A NaN lies in no range.
    pub fn range<N: PartialOrd + Display>(
        &mut self,
        key: &str,
        value: N,
        range: RangeInclusive<N>,
        unit: &str,
    ) -> bool {
        let (low, high) = (range.start(), range.end());
        let wrong = match () {
            () if value < *low => "is too low",
            () if value > *high => "is too high",
            () if !range.contains(&value) => "is not a number",
            () => return true,
        };
        self.note(key, format!("{value} {wrong}; it may be {low} to {high} {unit}"));
        false
    }

    /// The same for the key of a tunable, whose range is said where it is declared.
    pub fn tunable<T: Tune>(&mut self, tunable: &Tunable<T>, value: T) -> bool {
        self.range(tunable.name(), value, tunable.range().clone(), tunable.unit())
    }

    fn note(&mut self, key: &str, message: String) {
        let written = self.table.keys().find(|written| written.get_ref() == key);
        let span = written.map_or(self.header.clone(), toml::Spanned::span);
        self.mistakes.push(self.document.mistake(span, self.section, key, message));
    }
}

/// The keys a section's type knows, in the order of its fields; `None` if it takes any.
pub(crate) fn keys_of<T: Section>() -> Option<&'static [&'static str]> {
    let mut keys = None;
    // It always fails: it only listens to what the type asks for.
    let _ = T::deserialize(KeyListener { keys: &mut keys });
    keys
}

/// A source without data that notes the field names a derived `Deserialize` announces.
struct KeyListener<'k> {
    keys: &'k mut Option<&'static [&'static str]>,
}

impl<'de> Deserializer<'de> for KeyListener<'_> {
    type Error = serde::de::value::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.keys = Some(fields);
        Err(Self::Error::custom("holds no data"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Self::Error> {
        Err(Self::Error::custom("holds no data"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
