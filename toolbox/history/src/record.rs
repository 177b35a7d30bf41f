//! Record: one run, as the history keeps it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::machine::Machine;

/// Of the format that is written; higher ones are refused.
pub const FORMAT: u32 = 1;

/// One run: what was measured, where, of which commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub format: u32,
    /// When it was over (s since 1970).
    pub written_unix_s: u64,
    pub kind: RunKind,
    /// The game, or the bench.
    pub name: String,
    /// How it was played, with the size: runs are compared only where both are the same.
    #[serde(default)]
    pub scenario: String,
    /// Of what was measured; empty where unknown.
    pub commit: String,
    /// How a bench was called; empty of load runs, whose scenario says it, and in files of earlier builds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    #[serde(default)]
    pub machine: Machine,
    /// Length of what was measured (s).
    #[serde(default)]
    pub seconds: f64,
    /// What each subsystem took (µs per tick), or what a bench timed, by the key of its report.
    pub times_us: BTreeMap<String, f64>,
    /// The same by heading, of load runs.
    #[serde(default)]
    pub categories_us: BTreeMap<String, f64>,
    /// What the rules let a subsystem take (µs per tick), by the same names; nothing of those of which they said nothing, and none
    /// of benches and in files of earlier builds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub budgets_us: BTreeMap<String, f64>,
    /// What a tick may take in all (µs), of load runs that say it.
    #[serde(default)]
    pub tick_budget_us: Option<f64>,
    /// None was judged: of benches.
    #[serde(default)]
    pub passed: Option<bool>,
    #[serde(default)]
    pub bars: Vec<KeptBar>,
    /// What else may be asked for later, by the key of the report.
    #[serde(default)]
    pub figures: BTreeMap<String, f64>,
}

/// What ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    Load,
    Bench,
}

impl RunKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Bench => "bench",
        }
    }
}

/// A bar that the run was judged by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptBar {
    pub key: String,
    pub measured: f64,
    pub limit: f64,
    pub passed: bool,
}

/// Endings of a bench's keys that are times, and µs in one of each.
const UNITS_US: [(&str, f64); 4] = [("_ns", 1e-3), ("_us", 1.0), ("_ms", 1e3), ("_s", 1e6)];

impl Record {
    /// A bench's run, of the object that it prints: every number in it by its path, and those whose key says a unit of time
    /// as times. A rate such as `bytes_per_s` is none.
    pub fn of_bench(
        name: &str,
        printed: &serde_json::Value,
        commit: &str,
        machine: Machine,
        written_unix_s: u64,
    ) -> Self {
        let mut figures = BTreeMap::new();
        collect("", printed, &mut figures);
        let times = figures.iter().filter_map(|(key, value)| Some((key.clone(), value * unit_us(key)?)));
        Self {
            format: FORMAT,
            written_unix_s,
            kind: RunKind::Bench,
            name: name.to_owned(),
            scenario: String::new(),
            commit: commit.to_owned(),
            command: String::new(),
            machine,
            seconds: 0.0,
            times_us: times.collect(),
            categories_us: BTreeMap::new(),
            budgets_us: BTreeMap::new(),
            tick_budget_us: None,
            passed: None,
            bars: Vec::new(),
            figures,
        }
    }
}

fn unit_us(key: &str) -> Option<f64> {
    let last = key.rsplit('.').next().unwrap_or(key);
    if last.contains("_per_") {
        return None;
    }
    UNITS_US.iter().find(|(ending, _)| last.ends_with(ending)).map(|(_, us)| *us)
}

fn collect(path: &str, value: &serde_json::Value, into: &mut BTreeMap<String, f64>) {
    use serde_json::Value;
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Number(number) => into.extend(number.as_f64().map(|number| (path.to_owned(), number))),
        Value::Object(object) => object
            .iter()
            .filter(|(key, _)| *key != "machine")
            .for_each(|(key, value)| collect(&below(key), value, into)),
        Value::Array(rows) => {
            rows.iter().enumerate().for_each(|(row, value)| collect(&below(&row.to_string()), value, into))
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bench_is_kept_by_its_keys() {
        let printed = json!({
            "bench": "rewind", "machine": {"cores": 2}, "ratio": 4.5,
            "rows": [{"shot_ns": 1500.0, "bytes_per_s": 7}, {"shot_ns": 2500.0, "tick_ms": 2}],
        });
        let record = Record::of_bench("rewind", &printed, "abc", Machine::default(), 7);
        let times: Vec<_> = record.times_us.iter().map(|(key, us)| (key.as_str(), *us)).collect();
        assert_eq!(times, [("rows.0.shot_ns", 1.5), ("rows.1.shot_ns", 2.5), ("rows.1.tick_ms", 2_000.0)]);
        assert_eq!((record.figures["ratio"], record.figures.len()), (4.5, 5));
    }
}
