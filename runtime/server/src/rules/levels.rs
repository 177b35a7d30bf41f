//! `[log]`: categories with their levels.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Unexpected, Visitor};
use throng_profiler::log::Level;

use crate::settings::{Checks, Section, nearest_name};

/// The level of each category. Any name will do: a category is known only once it has been asked.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Levels(BTreeMap<String, NamedLevel>);

impl Levels {
    pub(super) fn into_list(self) -> Vec<(String, Level)> {
        self.0.into_iter().map(|(name, level)| (name, level.0)).collect()
    }
}

impl Section for Levels {
    fn check(&self, checks: &mut Checks<'_>) {
        for name in self.0.keys() {
            check_name(name, checks);
        }
    }
}

/// A dotted name that no scope and no category can have matches nothing, without a word; so it is a mistake.
pub(super) fn check_name(name: &str, checks: &mut Checks<'_>) {
    if name.split('.').any(str::is_empty) || name.contains(char::is_whitespace) {
        checks.mistake(name, "is no name; names are words with dots between them, such as \"server.clients\"");
    }
}

#[derive(Debug, Clone, Copy)]
struct NamedLevel(Level);

impl<'de> Deserialize<'de> for NamedLevel {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = NamedLevel;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(
                    "\"off\", \"error\", \"warn\", \"info\", \"debug\" or \"trace\", after a name in quotes such as \
                     \"server.clients\"",
                )
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<NamedLevel, E> {
                if let Ok(level) = text.parse() {
                    return Ok(NamedLevel(level));
                }
                Err(match nearest_name(text, Level::ALL.into_iter().map(Level::name)) {
                    Some(meant) => E::custom(format_args!("\"{text}\" is no level; did you mean \"{meant}\"?")),
                    None => E::invalid_value(Unexpected::Str(text), &self),
                })
            }
        }
        from.deserialize_any(Name)
    }
}
