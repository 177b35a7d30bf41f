//! `[budgets.…]`: names with what they may take. Any name will do: a scope is known only once it has run.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};

use super::levels::check_name;
use crate::settings::{Checks, Section};

/// What each name may take.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Budgets(BTreeMap<String, Micros>);

impl Budgets {
    pub(super) fn to_ns(&self) -> Vec<(String, u64)> {
        self.0.iter().map(|(name, budget)| (name.clone(), budget.0 as u64 * 1_000)).collect()
    }
}

impl Section for Budgets {
    fn check(&self, checks: &mut Checks<'_>) {
        for (name, budget) in &self.0 {
            check_name(name, checks);
            // A minute: longer than any frame that somebody waits for.
            checks.range(name, budget.0, 1..=60_000_000, "us");
        }
    }
}

/// A whole number of microseconds.
#[derive(Debug, Clone, Copy)]
struct Micros(i64);

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Whole;
        impl Visitor<'_> for Whole {
            type Value = Micros;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a whole number of microseconds, after a name in quotes such as \"world.tick\"")
            }
            fn visit_i64<E: serde::de::Error>(self, us: i64) -> Result<Micros, E> {
                Ok(Micros(us))
            }
        }
        from.deserialize_any(Whole)
    }
}
