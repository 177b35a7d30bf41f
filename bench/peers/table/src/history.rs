//! History: a run of this bench, as `throng history` reads it: one record for each size, with every peer by its name.
//!
//! A size is a scenario of its own, since a tick of one says nothing of a tick of another. Peers that ran together stand in one record:
//! where all of them are named slower at one commit, the floor among them, it was the host.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use throng_history::store::{self, StoreError};
use throng_history::{Machine, Record};

use crate::plan::{Plan, Size};
use crate::report;
use crate::runner::Outcome;

/// What was run, where and of what.
#[derive(Clone, Copy)]
pub struct About<'a> {
    pub commit: &'a str,
    pub command: &'a str,
    pub machine: &'a Machine,
}

/// Appends a record for each size in which anything was measured.
pub fn keep(folder: &Path, plan: &Plan, outcomes: &[Outcome], about: About<'_>) -> Result<(), StoreError> {
    let now_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    records(plan, outcomes, about, now_unix_s).iter().try_for_each(|record| store::append(folder, record).map(drop))
}

fn records(plan: &Plan, outcomes: &[Outcome], about: About<'_>, now_unix_s: u64) -> Vec<Record> {
    let record = |&size: &Size| {
        let peers: Map<String, Value> = (outcomes.iter())
            .filter(|outcome| outcome.size == size)
            .filter_map(|outcome| Some((outcome.row.name.to_owned(), report::kept(outcome)?)))
            .collect();
        let Size { load, clients, entities } = size;
        let printed = Value::Object(peers);
        let record = Record::of_bench(plan.name, &printed, about.commit, about.machine.clone(), now_unix_s);
        let scenario = format!("{load}, {clients} clients, {entities} entities");
        Record { scenario, command: about.command.to_owned(), ..record }
    };
    plan.sizes.iter().map(record).filter(|record| !record.times_us.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::peers::ROWS;

    const W1: Size = Size { load: "W1", clients: 50, entities: 50 };
    const W4: Size = Size { load: "W4", clients: 50, entities: 1_000 };

    fn outcome(name: &str, size: Size, cpu_ms: &[f64]) -> Outcome {
        let round = |ms: &f64| {
            json!({
                "cpu_ms_each": [ms, ms], "cpu_ms": {"median": ms}, "wall_ms": {"median": 2.0 * ms}, "bytes_per_client_s": 140.0,
                "bytes_per_update": 13.0, "updates_per_client_tick": 50.0, "memory_peak_mb": 14.0,
            })
        };
        let row = ROWS.iter().find(|row| row.name == name).unwrap();
        Outcome { row, size, rounds: cpu_ms.iter().map(round).collect(), failure: None }
    }

    #[test]
    fn each_size_is_a_run_of_its_own_with_every_peer_that_was_measured() {
        let plan = Plan {
            name: "peers",
            sizes: vec![W1, W4],
            rows: Vec::new(),
            rounds: 2,
            ticks: 2,
            warmup: 0,
            seconds_max: 1,
            patience_s: 1,
        };
        let outcomes = [
            outcome("floor", W1, &[0.5, 0.25]),
            outcome("throng, UDP", W1, &[1.5]),
            outcome("naia", W1, &[]),
            outcome("floor", W4, &[]),
        ];
        let machine = Machine { cores: 2, ..Machine::default() };
        let about = About { commit: "abc", command: "cargo xtask bench peers", machine: &machine };
        let records = records(&plan, &outcomes, about, 7);
        let [record] = &records[..] else { panic!("nothing was measured in W4: {records:?}") };
        let Record { name, scenario, commit, command, .. } = record;
        let told = [name, scenario, commit, command].map(String::as_str);
        assert_eq!(told, ["peers", "W1, 50 clients, 50 entities", "abc", "cargo xtask bench peers"]);
        assert_eq!((record.machine.cores, record.written_unix_s), (2, 7));
        let times: Vec<_> = record.times_us.iter().map(|(key, us)| (key.as_str(), *us)).collect();
        assert_eq!(times, [("floor.cpu_ms", 250.0), ("throng, UDP.cpu_ms", 1_500.0)], "the quietest round");
        assert_eq!(record.figures["floor.bytes_per_client_s"], 140.0);
    }
}
