//! Report: figures of all rounds as one table, and what is wrong with them.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Value, json};

use crate::plan::{Plan, Size};
use crate::runner::Outcome;

/// The load of which each client has a world of its own.
const SMALL_WORLDS: &str = "W4";

/// All rounds of a row as one.
struct Sums {
    /// The median of the round in which that was lowest.
    quiet_ms: f64,
    /// Over all ticks of all rounds.
    median_ms: f64,
    p99_ms: f64,
    quiet_wall_ms: f64,
    ticks: usize,
    bytes_per_client_s: f64,
    bytes_per_update: f64,
    updates_per_client_tick: f64,
    memory_peak_mb: f64,
    checked: u64,
    wrong: u64,
    missing: u64,
    extra: u64,
    behind_ticks: u64,
}

fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let index = (values.len() as f64 * share) as usize;
    values.get(index.min(values.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

impl Sums {
    fn of(outcome: &Outcome) -> Option<Self> {
        let rounds = &outcome.rounds;
        let last = rounds.last()?;
        let numbers = |key: &str| -> Vec<f64> {
            let lists = rounds.iter().filter_map(|round| round[key].as_array());
            lists.flatten().filter_map(Value::as_f64).collect()
        };
        let mut cpu_ms = numbers("cpu_ms_each");
        let quiet = |key: &str| {
            let medians = rounds.iter().filter_map(|round| round[key]["median"].as_f64());
            medians.fold(f64::NAN, f64::min)
        };
        let number = |key: &str| last[key].as_f64().unwrap_or(f64::NAN);
        let most = |key: &str| rounds.iter().filter_map(|round| round[key].as_f64()).fold(0.0, f64::max);
        let sum = |key: &str| rounds.iter().filter_map(|round| round["checks"][key].as_u64()).sum();
        let behind = rounds.iter().filter_map(|round| round["checks"]["behind_ticks_max"].as_u64());
        Some(Self {
            quiet_ms: quiet("cpu_ms"),
            median_ms: percentile(&mut cpu_ms, 0.5),
            p99_ms: percentile(&mut cpu_ms, 0.99),
            quiet_wall_ms: quiet("wall_ms"),
            ticks: cpu_ms.len(),
            bytes_per_client_s: number("bytes_per_client_s"),
            bytes_per_update: number("bytes_per_update"),
            updates_per_client_tick: number("updates_per_client_tick"),
            memory_peak_mb: most("memory_peak_mb"),
            checked: sum("checked"),
            wrong: sum("wrong"),
            missing: sum("missing"),
            extra: sum("extra"),
            behind_ticks: behind.max().unwrap_or(0),
        })
    }

    /// Of a load with as many worlds as clients. (us per tick)
    fn us_per_world(&self, size: Size) -> f64 {
        self.quiet_ms * 1e3 / f64::from(size.clients)
    }
}

fn find<'a>(outcomes: &'a [Outcome], name: &str, size: Size) -> Option<&'a Outcome> {
    outcomes.iter().find(|outcome| outcome.row.name == name && outcome.size == size)
}

pub fn table(plan: &Plan, outcomes: &[Outcome]) -> String {
    let mut out =
        String::from("# Peers\n\nServer CPU in ms per tick at 20 ticks/s; how to read it: `docs/peers.md`.\n");
    for &size in &plan.sizes {
        let Size { load, clients, entities } = size;
        let _ = write!(
            out,
            "\n## {load}: {clients} clients, {entities} entities\n\n\
             | peer | CPU ms | all rounds: median | p99 | x throng | B per client and s | B per update | updates per client and tick | \
             memory MB | wrong, missing, extra of checked | ticks behind | time includes |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|\n"
        );
        let ours = find(outcomes, "throng", size).and_then(Sums::of);
        for outcome in outcomes.iter().filter(|outcome| outcome.size == size) {
            let name = outcome.row.name;
            let Some(sums) = Sums::of(outcome) else {
                let failure = outcome.failure.as_deref().unwrap_or("no figures");
                let _ = writeln!(out, "| {name} | {failure} | | | | | | | | | | |");
                continue;
            };
            let ratio = ours.as_ref().map_or(f64::NAN, |ours| sums.quiet_ms / ours.quiet_ms);
            let _ = writeln!(
                out,
                "| {name} | {:.3} | {:.3} | {:.3} | {ratio:.2} | {:.0} | {:.2} | {:.1} | {:.1} | {}, {}, {} of {} | {} | {} |",
                sums.quiet_ms,
                sums.median_ms,
                sums.p99_ms,
                sums.bytes_per_client_s,
                sums.bytes_per_update,
                sums.updates_per_client_tick,
                sums.memory_peak_mb,
                sums.wrong,
                sums.missing,
                sums.extra,
                sums.checked,
                sums.behind_ticks,
                outcome.row.includes,
            );
        }
        workers(outcomes, size, &mut out);
        worlds(outcomes, size, &mut out);
    }
    growth(plan, outcomes, &mut out);
    out
}

/// What a second thread is good for. The floor's says what the machine's cores are worth together.
fn workers(outcomes: &[Outcome], size: Size, out: &mut String) {
    for (one, two) in [("floor, 1 worker", "floor, 2 workers"), ("throng, 1 worker", "throng, 2 workers")] {
        let (Some(alone), Some(together)) = (find(outcomes, one, size), find(outcomes, two, size)) else { continue };
        if let (Some(one_sums), Some(two_sums)) = (Sums::of(alone), Sums::of(together)) {
            let same = if bytes_hashes(alone) == bytes_hashes(together) { "identical" } else { "DIFFERENT" };
            let ratio = one_sums.quiet_wall_ms / two_sums.quiet_wall_ms;
            let _ = writeln!(out, "\n{two}: {ratio:.2} times the throughput of one (wall time), {same} bytes.");
        }
    }
}

/// What one small world costs in a tick, and how near that is to the floor of the same way out.
fn worlds(outcomes: &[Outcome], size: Size, out: &mut String) {
    if size.load != SMALL_WORLDS {
        return;
    }
    out.push_str("\n| peer | us per world and tick | x floor |\n|---|---|---|\n");
    for outcome in outcomes.iter().filter(|outcome| outcome.size == size) {
        let Some(sums) = Sums::of(outcome) else { continue };
        let floor = if outcome.row.name.ends_with(", UDP") { "floor, UDP" } else { "floor" };
        let floor_ms = find(outcomes, floor, size).and_then(Sums::of).map_or(f64::NAN, |floor| floor.quiet_ms);
        let (us, ratio) = (sums.us_per_world(size), sums.quiet_ms / floor_ms);
        let _ = writeln!(out, "| {} | {us:.3} | {ratio:.2} |", outcome.row.name);
    }
}

fn bytes_hashes(outcome: &Outcome) -> BTreeSet<String> {
    outcome.rounds.iter().filter_map(|round| round["bytes_hash"].as_str().map(str::to_owned)).collect()
}

/// The costliest size of W1 against the one of a quarter of its clients.
fn growth(plan: &Plan, outcomes: &[Outcome], out: &mut String) {
    let w1 = || plan.sizes.iter().filter(|size| size.load == "W1");
    let Some(large) = w1().max_by_key(|size| size.clients) else { return };
    let Some(small) = w1().find(|size| size.clients * 4 == large.clients) else { return };
    let (few, many) = (small.clients, large.clients);
    let _ = write!(
        out,
        "\n## Growth: W1 from {few} to {many} clients\n\n| peer | {few} | {many} | times |\n|---|---|---|---|\n"
    );
    for row in &plan.rows {
        let sums = [small, large].map(|size| find(outcomes, row.name, *size).and_then(Sums::of));
        if let [Some(few), Some(many)] = sums {
            let (few, many) = (few.quiet_ms, many.quiet_ms);
            let _ = writeln!(out, "| {} | {few:.3} | {many:.3} | {:.2} |", row.name, many / few);
        }
    }
}

pub fn figures(plan: &Plan, outcomes: &[Outcome]) -> Value {
    let rows = outcomes.iter().map(|outcome| {
        let size = outcome.size;
        let mut row = json!({
            "peer": outcome.row.name,
            "load": size.load,
            "clients": size.clients,
            "entities": size.entities,
            "failure": outcome.failure,
        });
        if let (Some(sums), Some(last)) = (Sums::of(outcome), outcome.rounds.last()) {
            row["ticks"] = json!(sums.ticks);
            row["cpu_ms"] = json!(sums.quiet_ms);
            row["cpu_ms_median"] = json!(sums.median_ms);
            row["cpu_ms_p99"] = json!(sums.p99_ms);
            if size.load == SMALL_WORLDS {
                row["us_per_world_tick"] = json!(sums.us_per_world(size));
            }
            row["wall_ms"] = json!(sums.quiet_wall_ms);
            row["bytes_per_client_s"] = json!(sums.bytes_per_client_s);
            row["bytes_per_update"] = json!(sums.bytes_per_update);
            row["updates_per_client_tick"] = json!(sums.updates_per_client_tick);
            row["memory_peak_mb"] = json!(sums.memory_peak_mb);
            row["checked"] = json!(sums.checked);
            row["wrong"] = json!(sums.wrong);
            row["missing"] = json!(sums.missing);
            row["extra"] = json!(sums.extra);
            row["ticks_behind"] = json!(sums.behind_ticks);
            row["scene_hash"] = last["scene_hash"].clone();
            row["bytes_hash"] = last["bytes_hash"].clone();
            row["more"] = last["more"].clone();
        }
        row
    });
    json!({ "bench": plan.name, "rounds": plan.rounds, "rows": rows.collect::<Vec<_>>() })
}

/// What a history keeps of a row; none if it was not measured. One time: the others are of rounds that the host disturbed, and would be
/// named for it.
pub fn kept(outcome: &Outcome) -> Option<Value> {
    let sums = Sums::of(outcome)?;
    Some(json!({
        "cpu_ms": sums.quiet_ms,
        "bytes_per_client_s": sums.bytes_per_client_s,
        "bytes_per_update": sums.bytes_per_update,
        "updates_per_client_tick": sums.updates_per_client_tick,
        "memory_peak_mb": sums.memory_peak_mb,
    }))
}

/// Figures as a file: a row to a line, so that a diff shows which have changed.
pub fn row_by_row(figures: &Value) -> String {
    let mut figures = figures.clone();
    let rows = figures["rows"].take();
    let rows: Vec<String> = rows.as_array().into_iter().flatten().map(Value::to_string).collect();
    figures.to_string().replace("\"rows\":null", &format!("\"rows\":[\n{}\n]", rows.join(",\n"))) + "\n"
}

/// What makes the table worthless: peers that ran different scenes, clients that hold what is not so.
pub fn problems(outcomes: &[Outcome]) -> Vec<String> {
    let mut problems = Vec::new();
    for outcome in outcomes {
        let Size { load, clients, entities } = outcome.size;
        let place = format!("{load} {clients}x{entities} {}", outcome.row.name);
        if let Some(failure) = outcome.failure.as_deref().filter(|failure| *failure != "not built") {
            problems.push(format!("{place}: {failure}"));
        }
        let Some(sums) = Sums::of(outcome) else { continue };
        if sums.wrong + sums.missing + sums.extra > 0 || sums.checked == 0 {
            let Sums { checked, wrong, missing, extra, .. } = sums;
            problems.push(format!("{place}: {wrong} wrong, {missing} missing, {extra} extra of {checked}"));
        }
        let forms = ["throng", "throng, 1 worker", "throng, 2 workers"];
        let hashes = forms.iter().filter_map(|name| find(outcomes, name, outcome.size)).flat_map(bytes_hashes);
        if outcome.row.name == "throng" && hashes.collect::<BTreeSet<_>>().len() > 1 {
            problems.push(format!("{place}: other bytes in another round, or from two workers"));
        }
        let alike = outcomes.iter().filter(|other| other.size == outcome.size).flat_map(|other| &other.rounds);
        let hashes: BTreeSet<&str> = alike.filter_map(|round| round["scene_hash"].as_str()).collect();
        if hashes.len() > 1 {
            problems.push(format!("{place}: not the same scene as the others: {hashes:?}"));
        }
    }
    problems
}
