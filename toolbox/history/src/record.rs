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
    /// What else shaped the load, each with its value, such as `workers` and `2`: runs are compared only where all are the same. Of benches
    /// the words that they were given, if any; none in files of earlier builds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<String, String>,
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
    /// The same by category, of load runs.
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

/// Units of time in a bench's keys, and µs in one of each.
const UNITS_US: [(&str, f64); 4] = [("ns", 1e-3), ("us", 1.0), ("ms", 1e3), ("s", 1e6)];
/// Which of many times it is: may stand behind the unit.
const STATISTICS: [&str; 8] = ["mean", "median", "min", "max", "p50", "p90", "p99", "p999"];
/// A key of this name holds what a bench was told, of which nothing was measured.
const PARAMETERS: &str = "parameters";

/// What runs must have in common to be compared.
pub type Load<'a> = (RunKind, &'a str, &'a str, &'a BTreeMap<String, String>);

impl Record {
    /// Kind, name, scenario and conditions.
    pub fn load(&self) -> Load<'_> {
        (self.kind, &self.name, &self.scenario, &self.conditions)
    }

    /// A bench's run, of the object that it prints: every number in it by its path, and those whose path says a unit of time as
    /// times. Unit, statistic and what it is of stand behind the name: `frame_ms`, `frame_ms_p50`, `frame_us.p50`, `create_us_per_world`,
    /// and each number in `subsystems_us`. A rate such as `bytes_per_s` is none, nor is a ratio such as `tick_us_ratio`, nor what a bench
    /// was told and says in `parameters`.
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
            conditions: BTreeMap::new(),
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

/// Of the innermost key that says one.
fn unit_us(path: &str) -> Option<f64> {
    let mut keys = path.split('.');
    if keys.clone().any(|key| key == PARAMETERS) {
        return None;
    }
    keys.by_ref().rev().find_map(|key| {
        let words: Vec<&str> = key.split('_').take_while(|word| *word != "per").collect();
        let unit = words.into_iter().rev().find(|word| !STATISTICS.contains(word))?;
        UNITS_US.iter().find(|(name, _)| *name == unit).map(|(_, us)| *us)
    })
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

    /// Promise: of what the benches print (keys as in `bench/*/src`) each time is one, and nothing else is.
    #[test]
    fn each_bench_says_what_took_time() {
        let check = |printed: serde_json::Value, expect: &[&str]| {
            let record = Record::of_bench("it", &printed, "abc", Machine::default(), 7);
            assert_eq!(record.times_us.keys().map(String::as_str).collect::<Vec<_>>(), expect);
        };
        check(json!({"emit_ns": 2, "off_ns": 1, "emit_per_floor": 3, "bytes_per_event": 4}), &["emit_ns", "off_ns"]);
        check(
            json!({"rows": [{
                "threads": 2, "operations_per_s": 5, "operations_over_throng": 1, "frame_ms_p50": 6, "frame_ms_max": 6, "system_ms": 7,
                "rss_mb": 8, "pair_ns": 9, "pair_over_throng": 1, "aligned_deferred_free_us_p50": 2,
            }]}),
            &[
                "rows.0.aligned_deferred_free_us_p50",
                "rows.0.frame_ms_max",
                "rows.0.frame_ms_p50",
                "rows.0.pair_ns",
                "rows.0.system_ms",
            ],
        );
        check(
            json!({
                "matches": 60, "seconds": 10, "us_per_tick": 50, "matches_per_core": 131, "core_share": 0.5, "frame_us": {"mean": 1, "p99": 2},
                "frames_over_period": 1, "shots_per_s": 3, "subsystems_us": {"net.read": 4}, "categories_us": {"replication": 5},
                "server_rss_mb_with_bots": 6,
            }),
            &["categories_us.replication", "frame_us.mean", "frame_us.p99", "subsystems_us.net.read", "us_per_tick"],
        );
        check(
            json!({"bake_ms_max": 1, "found_us": 2, "bytes_per_world": 3, "own_bytes_per_world": 3}),
            &["bake_ms_max", "found_us"],
        );
        check(
            json!({"rows": [{"lists_us_per_s": 1, "lists_ns_per_question": 2, "questions_per_s": 3, "per_question": {"aura": {"scan_ns": 4}}}]}),
            &["rows.0.lists_ns_per_question", "rows.0.lists_us_per_s", "rows.0.per_question.aura.scan_ns"],
        );
        check(
            json!({"new_start_ms": 1, "old_tick_us": 2, "start_ms_ratio": 1.1, "tick_us_ratio": 1.1, "file_mb": 3}),
            &["new_start_ms", "old_tick_us"],
        );
        check(
            json!({"worlds_per_s": 40, "with_control": {"seconds": 40, "long_task_cpu_s": 1, "tick_lateness_ms_max": 2, "ticks_missed": 3}}),
            &["with_control.long_task_cpu_s", "with_control.tick_lateness_ms_max"],
        );
        check(
            json!({"rows": [{"parameters": {"round_trip_ms": 150}, "per_1000_ticks": 2, "correction_cm": {"max": 46}}]}),
            &[],
        );
        check(
            json!({"rows": [{"workers": 1, "scheduling_ns_per_world_p50": 90, "fork_join_us_p99": 30, "fork_join_over_best_p50": 1}]}),
            &["rows.0.fork_join_us_p99", "rows.0.scheduling_ns_per_world_p50"],
        );
        check(json!({"rows": [{"hot_ns": 2, "hot_over_floor": 1.5}], "floor_ns": 1}), &["floor_ns", "rows.0.hot_ns"]);
        check(
            json!({"worlds": 1000, "one_system_ns_per_world_and_tick": 1, "plain_ns_per_world_and_tick": 2, "ratio_spread": [1, 2]}),
            &["one_system_ns_per_world_and_tick", "plain_ns_per_world_and_tick"],
        );
        check(json!({"hints_us": 1, "first": {"hints": {"us": 2, "allocations": 3}}}), &["first.hints.us", "hints_us"]);
        check(
            json!({"rows": [{"batched_us": 1, "told_share": 0.5, "bake_ms": 300}]}),
            &["rows.0.bake_ms", "rows.0.batched_us"],
        );
        check(
            json!({
                "empty": {"create_us_per_world": 90, "start_to_first_tick_of_all_ms": 370, "bytes_per_world": 7},
                "dormant": {"cpu_cores": 0.1, "frames_per_s": 60},
            }),
            &["empty.create_us_per_world", "empty.start_to_first_tick_of_all_ms"],
        );
        check(json!({"naia": {"cpu_ms": 1, "bytes_per_client_s": 140, "memory_peak_mb": 14}}), &["naia.cpu_ms"]);
    }
}
