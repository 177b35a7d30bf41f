//! The bench of preflight itself: slowdowns of a known size, planted one at a time in subsystems of all games; how many are found and
//! named, and whether the interval covers what was planted.
//!
//! Twenty: twelve of 2 % by the processor's work, five of 2 % by cache misses at equal instructions, three of 10 % by waits. A short
//! look at each game says which subsystems have 2 % of a frame; plants go round among them. The plan and each result are lines of a
//! file, so that a bench that was stopped goes on where it was: `reports/preflight-plants/results.jsonl`. Another program, another
//! length or another machine needs another file.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use clap::Parser;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::machine::machine_in_words;
use crate::error::XtaskError;
use crate::step::{self, cargo};
use crate::web::PLAYED;

pub(super) const NAME: &str = "preflight";

/// What is passed on behind `--`.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Words {
    /// Measured of each plant, once both processes are built (s).
    #[arg(long, default_value_t = 240)]
    seconds: u32,
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=20))]
    plants: u32,
    /// The look at each game (s).
    #[arg(long, default_value_t = 20)]
    look_seconds: u32,
    /// A program that is there, instead of one that is built of the working tree.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// The folder of results and reports.
    #[arg(long, value_name = "DIR", default_value = "reports/preflight-plants")]
    out: PathBuf,
    /// For `throng preflight`, behind another `--`.
    #[arg(last = true)]
    more: Vec<String>,
}

/// One slowdown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Plant {
    game: String,
    subsystem: String,
    /// `work`, `misses` or `wait`.
    kind: String,
    percent: f64,
}

/// The first line of a file of results: what they are all of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Plan {
    commit: String,
    /// Of the program, by its bytes.
    content_hash: String,
    machine: String,
    seconds: u32,
    more: Vec<String>,
    plants: Vec<Plant>,
}

/// What became of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Outcome {
    plant: Plant,
    /// Whether the run saw that something is slower, and whether it named the subsystem.
    found: bool,
    named: bool,
    /// Other subsystems that were named, slower or faster.
    also: Vec<String>,
    /// Of the subsystem.
    shift_percent: Option<f64>,
    low_percent: Option<f64>,
    high_percent: Option<f64>,
    /// The untrimmed shift; `None` if there is no interval.
    untrimmed_percent: Option<f64>,
    verdict: String,
    pairs: u64,
    undisturbed_share: f64,
    /// From the start of the command to its end.
    took_s: f64,
}

impl Outcome {
    /// Whether what was planted lies in the interval; `None` without one.
    fn interval_covers_plant(&self) -> Option<bool> {
        Some((self.low_percent?..=self.high_percent?).contains(&self.plant.percent))
    }
}

/// Of a frame's time: less is not asked for.
const SHARE_MIN: f64 = 0.02;
/// Kinds in the order in which they are planted, so that a bench of a few has all of them.
const KINDS: [(&str, f64); 20] = {
    const WORK: (&str, f64) = ("work", 2.0);
    const MISSES: (&str, f64) = ("misses", 2.0);
    const WAIT: (&str, f64) = ("wait", 10.0);
    [
        WORK, MISSES, WAIT, WORK, WORK, MISSES, WORK, WORK, WAIT, WORK, MISSES, WORK, WORK, WORK, MISSES, WORK, WAIT,
        WORK, MISSES, WORK,
    ]
};

pub(super) fn run(words: &[String]) -> Result<(), XtaskError> {
    let words = Words::try_parse_from(words).map_err(|error| XtaskError::Usage(error.to_string()))?;
    let program = match &words.program {
        Some(program) => program.clone(),
        None => {
            let mut build = cargo();
            build.args(["build", "--release", "--package", "throng-shipped"]);
            step::run("build", &mut build, "put right what the compiler names")?;
            step::target_folder().join("release/throng")
        }
    };
    let file = step::root().join(&words.out).join("results.jsonl");
    let (plan, mut done) = begin(&words, &program, &file)?;
    for (number, plant) in plan.plants.iter().enumerate().skip(done.len()) {
        eprintln!("── plant {} of {}: {plant:?}", number + 1, plan.plants.len());
        let (report, took_s) = play(&words, &program, number, plant)?;
        if content_hash_in(&report) != plan.content_hash {
            return Err(usage(&file, "is of another program than this one; name another folder with --out"));
        }
        let outcome = outcome(plant, &report, took_s);
        append(&file, &outcome)?;
        println!("{}", row(&outcome));
        done.push(outcome);
    }
    println!("\n{}", table(&done));
    println!("in {}", file.display());
    match done.iter().filter(|outcome| !(outcome.found && outcome.named)).count() {
        0 => Ok(()),
        missed => Err(XtaskError::Usage(format!(
            "{missed} of {} plants were not named; their reports are beside the results",
            done.len()
        ))),
    }
}

/// The plan and what is done of it; a new file begins with a look at each game.
fn begin(words: &Words, program: &Path, file: &Path) -> Result<(Plan, Vec<Outcome>), XtaskError> {
    let ours = |content_hash, plants| {
        let (commit, machine) = (super::peers::commit(), machine_in_words());
        Plan { commit, content_hash, machine, seconds: words.seconds, more: words.more.clone(), plants }
    };
    if let Ok(text) = fs::read_to_string(file) {
        let (plan, done) = read(&text).ok_or_else(|| usage(file, "has no plan in its first line"))?;
        // Of which program it is the next report says.
        let ours = ours(plan.content_hash.clone(), plan.plants.clone());
        if plan != ours || plan.plants.len() != words.plants as usize {
            return Err(usage(file, &other_plan(&plan, &ours)));
        }
        if !text.ends_with('\n') {
            // The last line was not written to its end.
            let whole: Vec<String> =
                std::iter::once(json!(plan).to_string()).chain(done.iter().map(|one| json!(one).to_string())).collect();
            fs::write(file, whole.join("\n") + "\n").map_err(|cause| usage(file, &cause.to_string()))?;
        }
        eprintln!("── {} of {} plants are done already: {}", done.len(), plan.plants.len(), file.display());
        return Ok((plan, done));
    }
    let (mut games, mut content_hash) = (Vec::new(), String::new());
    for game in PLAYED {
        let seconds = words.look_seconds.to_string();
        let out = words.out.join(format!("look-{game}"));
        let report = preflight(words, program, &["--game", game, "--seconds", &seconds], &out)?;
        content_hash = content_hash_in(&report);
        games.push((game.to_owned(), large(&report)));
    }
    let plants = plants(&games, words.plants as usize).map_err(XtaskError::Usage)?;
    let plan = ours(content_hash, plants);
    append(file, &plan)?;
    Ok((plan, Vec::new()))
}

/// Why a file is not gone on with.
fn other_plan(plan: &Plan, ours: &Plan) -> String {
    format!(
        "is of commit {}, {} s and {} plants, on {}; here are commit {} and {}, and results of both do not count together; name \
         another folder with --out",
        plan.commit,
        plan.seconds,
        plan.plants.len(),
        plan.machine,
        ours.commit,
        ours.machine
    )
}

fn read(text: &str) -> Option<(Plan, Vec<Outcome>)> {
    let mut lines = text.lines();
    let plan = serde_json::from_str(lines.next()?).ok()?;
    Some((plan, lines.map_while(|line| serde_json::from_str(line).ok()).collect()))
}

/// Subsystems that have enough of a frame to be asked for, the largest first.
fn large(report: &Value) -> Vec<String> {
    let rows = report["findings"]["subsystems"].as_array().into_iter().flatten();
    let named = rows.filter(|row| row["name"] != "all" && row["share"].as_f64() >= Some(SHARE_MIN));
    named.filter_map(|row| row["name"].as_str().map(str::to_owned)).collect()
}

/// Games in turn, and within a game its subsystems in turn.
fn plants(games: &[(String, Vec<String>)], count: usize) -> Result<Vec<Plant>, String> {
    let plant = |number: usize| {
        let (game, subsystems) = &games[number % games.len()];
        let subsystem = subsystems.get((number / games.len()) % subsystems.len().max(1));
        let subsystem = subsystem.ok_or_else(|| format!("{game} has no subsystem with 2 % of a frame"))?;
        let (kind, percent) = KINDS[number % KINDS.len()];
        Ok(Plant { game: game.clone(), subsystem: subsystem.clone(), kind: kind.to_owned(), percent })
    };
    (0..count).map(plant).collect()
}

/// The report, and how long it took from the start of the command to its end (s).
fn play(words: &Words, program: &Path, number: usize, plant: &Plant) -> Result<(Value, f64), XtaskError> {
    let (seconds, slow) = (words.seconds.to_string(), format!("{}:{}:{}", plant.subsystem, plant.kind, plant.percent));
    let begin = Instant::now();
    let out = words.out.join(format!("{:02}", number + 1));
    let report =
        preflight(words, program, &["--game", &plant.game, "--seconds", &seconds, "--slow-change", &slow], &out)?;
    Ok((report, begin.elapsed().as_secs_f64()))
}

/// Of the program that a report is of, twice.
fn content_hash_in(report: &Value) -> String {
    report["base"]["content"].as_str().unwrap_or_default().to_owned()
}

fn outcome(plant: &Plant, report: &Value, took_s: f64) -> Outcome {
    let rows: Vec<&Value> = report["findings"]["subsystems"].as_array().into_iter().flatten().collect();
    let of_plant = rows.iter().find(|row| row["name"] == *plant.subsystem).map_or(&Value::Null, |row| *row);
    let is_seen = |row: &&&Value| ["slower", "faster", "new", "gone"].iter().any(|verdict| row["verdict"] == *verdict);
    let also = rows.iter().filter(is_seen).filter_map(|row| row["name"].as_str());
    Outcome {
        plant: plant.clone(),
        found: report["verdict"] == "slower",
        named: of_plant["verdict"] == "slower",
        also: also.filter(|name| *name != "all" && *name != plant.subsystem).map(str::to_owned).collect(),
        shift_percent: of_plant["shift_percent"].as_f64(),
        low_percent: of_plant["low_percent"].as_f64(),
        high_percent: of_plant["high_percent"].as_f64(),
        untrimmed_percent: of_plant["untrimmed_percent"].as_f64(),
        verdict: of_plant["verdict"].as_str().unwrap_or("not there").to_owned(),
        pairs: report["findings"]["pairs"].as_u64().unwrap_or(0),
        undisturbed_share: report["findings"]["undisturbed_share"].as_f64().unwrap_or(0.0),
        took_s,
    }
}

/// A preflight of the program against itself: its report. It says by its status whether something is slower, which it may be.
fn preflight(words: &Words, program: &Path, more: &[&str], out: &Path) -> Result<Value, XtaskError> {
    let mut command = step::program(program.as_os_str());
    command.arg("preflight").arg("--base").arg(program).arg("--change").arg(program).args(more);
    command.arg("--report").arg(out).arg("--json").args(&words.more).stderr(Stdio::inherit());
    let next = "name the program with --program";
    let output = command.output().map_err(|cause| XtaskError::Start {
        program: program.display().to_string(),
        cause,
        next: next.to_owned(),
    })?;
    let said = String::from_utf8_lossy(&output.stdout);
    let report = said.lines().last().and_then(|line| serde_json::from_str(line).ok());
    report.ok_or_else(|| XtaskError::Step {
        name: "preflight".to_owned(),
        status: output.status.to_string(),
        next: "its own words are above; the same command goes on".to_owned(),
    })
}

fn append(file: &Path, line: &impl Serialize) -> Result<(), XtaskError> {
    let folder = file.parent().unwrap_or(file);
    let written = fs::create_dir_all(folder)
        .and_then(|()| OpenOptions::new().create(true).append(true).open(file))
        .and_then(|mut file| writeln!(file, "{}", json!(line)));
    written.map_err(|cause| usage(file, &cause.to_string()))
}

fn usage(file: &Path, words: &str) -> XtaskError {
    XtaskError::Usage(format!("{}: {words}", file.display()))
}

fn row(outcome: &Outcome) -> String {
    let Outcome { plant, found, named, also, verdict, pairs, took_s, .. } = outcome;
    let Outcome { shift_percent, low_percent, high_percent, untrimmed_percent, .. } = outcome;
    let percent = |value: &Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:+.2}"));
    let word = |is: &bool| if *is { "yes" } else { "no" };
    format!(
        "{:<9} {:<28} {:<6} {:>5} {:>6} {:>6} {:>8} {:>8} {:>8} {:>6} {:>11} {:<10} {:>6} {:>6.0} {:>5.0}  {}",
        plant.game,
        plant.subsystem,
        plant.kind,
        plant.percent,
        word(found),
        word(named),
        percent(shift_percent),
        percent(low_percent),
        percent(high_percent),
        outcome.interval_covers_plant().map_or("-", |is| word(&is)),
        percent(untrimmed_percent),
        verdict,
        pairs,
        100.0 * outcome.undisturbed_share,
        took_s,
        also.join(", ")
    )
}

fn table(done: &[Outcome]) -> String {
    let mut lines = vec![format!(
        "{:<9} {:<28} {:<6} {:>5} {:>6} {:>6} {:>8} {:>8} {:>8} {:>6} {:>11} {:<10} {:>6} {:>6} {:>5}  also named",
        "game",
        "subsystem",
        "kind",
        "%",
        "found",
        "named",
        "shift %",
        "low %",
        "high %",
        "covers",
        "untrimmed %",
        "verdict",
        "pairs",
        "quiet%",
        "s"
    )];
    lines.extend(done.iter().map(row));
    let named = done.iter().filter(|outcome| outcome.found && outcome.named).count();
    lines.push(format!("{named} of {} found and named", done.len()));
    let not_covered = done.iter().filter(|outcome| outcome.interval_covers_plant() == Some(false));
    lines.extend(not_covered.map(|outcome| {
        let Outcome { plant, low_percent, high_percent, .. } = outcome;
        let [low, high] = [low_percent, high_percent].map(|end| end.unwrap_or_default());
        format!(
            "the interval does not cover what was planted: {} {}, {} of {} %, told as {low:+.1} to {high:+.1}",
            plant.game, plant.subsystem, plant.kind, plant.percent
        )
    }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn games() -> Vec<(String, Vec<String>)> {
        let of = |game: &str, names: &[&str]| (game.to_owned(), names.iter().map(|name| (*name).to_owned()).collect());
        vec![of("precinct", &["ai", "replication", "query"]), of("frontier", &["ai", "net"]), of("duel", &["rewind"])]
    }

    #[test]
    fn twenty_plants_are_of_all_games_five_of_them_misses_and_three_waits() {
        let plants = plants(&games(), 20).unwrap();
        let count = |is: &dyn Fn(&Plant) -> bool| plants.iter().filter(|plant| is(plant)).count();
        assert_eq!(["work", "misses", "wait"].map(|kind| count(&|plant| plant.kind == kind)), [12, 5, 3]);
        assert!(plants.iter().all(|plant| plant.percent == if plant.kind == "wait" { 10.0 } else { 2.0 }));
        assert!(PLAYED.iter().all(|game| count(&|plant| plant.game == *game) >= 6));
        for (kind, at_least) in [("misses", 2), ("wait", 1)] {
            let games: std::collections::BTreeSet<&str> =
                plants.iter().filter(|plant| plant.kind == kind).map(|plant| plant.game.as_str()).collect();
            assert!(games.len() >= at_least, "{kind}: {games:?}");
        }
        assert!(plants.iter().any(|plant| plant.subsystem == "query"));
        assert!(super::plants(&[("duel".to_owned(), Vec::new())], 1).is_err());
    }

    #[test]
    fn an_outcome_says_what_was_named_and_what_else() {
        let plant = plants(&games(), 1).unwrap().remove(0);
        let finding = |name: &str, verdict: &str| json!({"name": name, "verdict": verdict, "share": 0.1, "shift_percent": 2.1, "low_percent": 1.5, "high_percent": 2.7});
        let report = |of_plant: &str| {
            let rows =
                [finding("all", "slower"), finding("ai", of_plant), finding("net", "faster"), finding("query", "none")];
            json!({"verdict": "slower", "findings": {"subsystems": rows, "pairs": 40, "undisturbed_share": 0.9}})
        };
        let found = outcome(&plant, &report("slower"), 240.0);
        assert_eq!((found.found, found.named, found.also.as_slice()), (true, true, &["net".to_owned()][..]));
        assert_eq!((found.low_percent, found.pairs), (Some(1.5), 40));
        let missed = outcome(&plant, &report("unknown"), 240.0);
        assert!(missed.found && !missed.named);
        let mut not_covered = found.clone();
        not_covered.plant.percent = 10.0;
        assert_eq!([&found, &not_covered].map(Outcome::interval_covers_plant), [Some(true), Some(false)]);
        assert!(table(&[found, missed]).ends_with("1 of 2 found and named"));
        let told = table(&[not_covered]);
        assert!(
            told.ends_with("does not cover what was planted: precinct ai, work of 10 %, told as +1.5 to +2.7"),
            "{told}"
        );
        assert_eq!(large(&report("slower")), ["ai", "net", "query"]);
    }

    #[test]
    fn a_file_of_results_is_gone_on_with_after_its_last_whole_line() {
        let plants = plants(&games(), 3).unwrap();
        let (commit, machine) = ("1234".to_owned(), "AMD EPYC".to_owned());
        let plan = Plan {
            commit,
            content_hash: String::new(),
            machine,
            seconds: 240,
            more: Vec::new(),
            plants: plants.clone(),
        };
        let one = outcome(&plants[0], &Value::Null, 1.0);
        let text = format!("{}\n{}\n{{\"plant\":", json!(plan), json!(one));
        assert_eq!(read(&text), Some((plan, vec![one])));
        assert_eq!(read("nothing\n"), None);
    }

    /// Promise: results of another machine are not gone on with, whatever else is the same.
    #[test]
    fn a_file_of_another_machine_is_refused() {
        let folder = std::env::temp_dir().join(format!("throng-plants-{}", std::process::id()));
        let file = folder.join("results.jsonl");
        let words = Words::try_parse_from(["--plants", "3"]).unwrap();
        let begun = |machine: &str| {
            let plants = plants(&games(), 3).unwrap();
            let (commit, machine) = (super::super::peers::commit(), machine.to_owned());
            let plan =
                Plan { commit, content_hash: String::new(), machine, seconds: words.seconds, more: Vec::new(), plants };
            let _ = fs::remove_dir_all(&folder);
            append(&file, &plan).unwrap();
            begin(&words, Path::new("no-program"), &file).map(|(plan, _)| plan.machine)
        };
        assert_eq!(begun(&machine_in_words()).unwrap(), machine_in_words());
        let error = begun("Xeon, 64 cores").unwrap_err().to_string();
        assert!(error.contains("on Xeon, 64 cores; here are") && error.contains("--out"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
