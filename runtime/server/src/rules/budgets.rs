//! `[budgets.…]`: names with what they may take (µs), in all worlds, in those of one kind, or in a tick of one of these. At
//! 128 Hz that is less than a microsecond for some, so parts of one may be said. Any name of a scope will do: it is
//! known only once it has run. Kinds of worlds are known; one that the game does not have is no mistake, because a file
//! may be for several games, and is told.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use throng_profiler::rules::{KindBudgets, Rules};
use throng_profiler::world_kind::KINDS_MAX;

use super::levels::check_name;
use super::replication::RuleNames;
use crate::settings::document::{Document, unknown_name};
use crate::settings::{Checks, Mistake, Section};

/// Puts what the file says into the rules; what it says without effect goes to `warnings`.
pub(super) fn read(
    document: &Document<'_>,
    names: &RuleNames,
    rules: &mut Rules,
    mistakes: &mut Vec<Mistake>,
    warnings: &mut Vec<Mistake>,
) {
    rules.scope_budgets_ns = document.section::<Budgets>("budgets.scopes_us", mistakes).to_ns();
    rules.subsystem_budgets_ns = document.section::<Budgets>("budgets.subsystems_us", mistakes).to_ns();
    let known: Vec<&str> = names.world_kinds.iter().map(String::as_str).collect();
    for last in ["scopes_us", "subsystems_us", "per_tick_us"] {
        for (kind, place, budgets) in document.sections_of_any_name::<Budgets>("budgets", last, mistakes) {
            let message = match known.iter().position(|known| *known == kind) {
                None => Some(unknown_name("kind of world", &kind, &known)),
                Some(place) if place >= KINDS_MAX => {
                    Some(format!("has no effect: the first {KINDS_MAX} kinds of worlds have budgets of their own"))
                }
                Some(_) => None,
            };
            if let Some(message) = message {
                warnings.push(document.mistake(place, &format!("budgets.{kind}.{last}"), "", message));
                continue;
            }
            let of_kinds = &mut rules.kind_budgets;
            let place = of_kinds.iter().position(|other| other.kind == kind).unwrap_or_else(|| {
                of_kinds.push(KindBudgets { kind, ..KindBudgets::default() });
                of_kinds.len() - 1
            });
            let of_kind = &mut of_kinds[place];
            let list = match last {
                "scopes_us" => &mut of_kind.scopes_ns,
                "subsystems_us" => &mut of_kind.subsystems_ns,
                _ => &mut of_kind.per_tick_ns,
            };
            *list = budgets.to_ns();
        }
    }
}

/// What each name may take.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
struct Budgets(BTreeMap<String, Micros>);

impl Budgets {
    fn to_ns(&self) -> Vec<(String, u64)> {
        // Never 0: the least that may be said is a nanosecond.
        self.0.iter().map(|(name, budget)| (name.clone(), (budget.0 * 1_000.0).round() as u64)).collect()
    }
}

impl Section for Budgets {
    fn check(&self, checks: &mut Checks<'_>) {
        for (name, budget) in &self.0 {
            check_name(name, checks);
            // A minute: longer than any frame that somebody waits for.
            checks.range(name, budget.0, 0.001..=60_000_000.0, "us");
        }
    }
}

/// Microseconds, whole or not.
#[derive(Debug, Clone, Copy)]
struct Micros(f64);

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Micros;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a number of microseconds, after a name in quotes such as \"world.tick\"")
            }
            fn visit_i64<E: serde::de::Error>(self, us: i64) -> Result<Micros, E> {
                Ok(Micros(us as f64))
            }
            fn visit_f64<E: serde::de::Error>(self, us: f64) -> Result<Micros, E> {
                Ok(Micros(us))
            }
        }
        from.deserialize_any(Number)
    }
}
