//! `throng preflight`: two builds held against each other, subsystem by subsystem. The work is the lab's.

use std::{
    error::Error,
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use throng::{
    recording::RecordingFiles,
    text_table::{Cell, Column, TextTable},
};
use throng_game::Game;
use throng_history::Machine;
use throng_lab::preflight::{
    self, PreflightPlan, PreflightReport,
    binaries::{self, Builder},
    statistics::{Finding, Verdict as Seen, WHOLE, cut_in_words},
};
use throng_platform::signals::{self, StopFlag};

use crate::{
    executable::Executable,
    outcome::{CommandResult, Verdict},
    output::{remark, say},
    played::Played,
    recorded_game::check_game,
    status_line::StatusLine,
    workload::Slow,
};

/// What is played where nobody says otherwise: enough of every subsystem, and quick to start.
const PLAYERS: u32 = 40;

#[derive(Args)]
pub struct PreflightArguments {
    /// What is there already: a revision, which is checked out and built; a folder, which is built; or a program.
    #[arg(long, value_name = "REV|FOLDER|PROGRAM")]
    base: String,
    /// What is to go in, likewise.
    #[arg(long, value_name = "REV|FOLDER|PROGRAM")]
    change: String,
    /// A recording to compare them by, instead of bots that play: both replay it with the game, size and settings that it was made
    /// with, and nothing is sent. A folder (the newest recording in it) or one segment; say it again for more, each of which is a run
    /// of its own with a verdict of its own.
    #[arg(long, value_name = "FILE|FOLDER", conflicts_with = "config")]
    recording: Vec<PathBuf>,
    /// All pairs of processes together, once both are built (s); of each recording so long. Longer: smaller differences are seen.
    #[arg(long, default_value_t = 240, value_parser = clap::value_parser!(u32).range(5..=86_400))]
    seconds: u32,
    /// 30 s: sees what is large.
    #[arg(long, conflicts_with = "seconds")]
    quick: bool,
    /// What is measured of each pair of processes (s). More pairs are worth more than longer ones.
    #[arg(long, default_value_t = 3.0)]
    pair_s: f64,
    /// Frames that one process runs before it is the other's turn; of a recording, so many ticks for each world that ticks at one time.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    frames_per_step: u32,
    /// Settings for both.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where revisions are checked out and what was built of them is kept. Otherwise `throng/preflight` in the user's cache.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Where the processor does not count instructions, count those of some frames with valgrind: takes minutes.
    #[arg(long, conflicts_with = "repeat")]
    valgrind: bool,
    /// Run so often, and append each run to runs.jsonl in the report's folder; runs of the same builds, game and options on a machine
    /// like this one that are there already count, so that it can be stopped and started again. Ends with status 1 if any run saw something.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: Option<u32>,
    /// Test switch: the second takes so much more in a subsystem, in percent of its own time, by work, cache misses or a wait.
    #[arg(long, value_name = "SUBSYSTEM:KIND:PERCENT", hide = true, value_parser = Slow::parse)]
    slow_change: Option<Slow>,
    /// Test switch: the second records what enters its worlds, into a temporary folder.
    #[arg(long, hide = true, conflicts_with = "recording")]
    record_change: bool,
    /// Write report.json and report.html into this folder; of several recordings into one folder of it for each.
    #[arg(long, value_name = "DIR", default_value = "reports/preflight")]
    report: PathBuf,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
}

const QUICK_S: u32 = 30;
/// Exit status when nothing can be said, as when there is nothing to compare.
const NOTHING_SAID: u8 = 2;

pub fn run(
    arguments: PreflightArguments,
    played: &Played<'_>,
    executable: Executable,
    games: &[Game],
) -> CommandResult {
    check_recordings(&arguments, played, games)?;
    throng_lab::report::make_folder(&arguments.report)?;
    let cache = arguments.cache.clone().unwrap_or_else(Builder::default_cache);
    let builder = Builder { name: executable.name.to_owned(), here: ".".into(), cache };
    // From here on, so that a stop in the middle of a build leaves no checkout behind.
    let stop = signals::install_stop();
    let find = |option, text: &str| {
        let found = builder.find(option, text, &mut |words: String| remark(words));
        // The compiler was stopped, too, and that is no mistake in what it compiled.
        if stop.requested() { Err("stopped while building".into()) } else { found.map_err(Box::<dyn Error>::from) }
    };
    let base = find("--base", &arguments.base)?;
    let change = if arguments.change == arguments.base { base.clone() } else { find("--change", &arguments.change)? };
    let mut words = played.to_small_words(PLAYERS);
    if let Some(path) = &arguments.config {
        words.extend(["--config".to_owned(), path.display().to_string()]);
    }
    let (base_words, change_words) = words_of_sides(&arguments);
    let plan = PreflightPlan {
        base,
        change,
        recording: None,
        words,
        base_words,
        change_words,
        seconds: if arguments.quick { QUICK_S } else { arguments.seconds },
        pair_s: arguments.pair_s,
        frames_per_step: arguments.frames_per_step,
        valgrind: arguments.valgrind,
    };
    let of_recording = |path: &PathBuf| PreflightPlan {
        recording: Some(path.clone()),
        words: vec!["--recording".to_owned(), path.display().to_string()],
        ..plan.clone()
    };
    let plans: Vec<PreflightPlan> = arguments.recording.iter().map(of_recording).collect();
    match (&plans[..], arguments.repeat) {
        ([], Some(count)) => repeat(&plan, count, &arguments, &stop),
        ([], None) => run_each(&[plan], &arguments, &stop),
        ([only], Some(count)) => repeat(only, count, &arguments, &stop),
        (plans, _) => run_each(plans, &arguments, &stop),
    }
}

/// What test switches say to base and change alone.
fn words_of_sides(arguments: &PreflightArguments) -> (Vec<String>, Vec<String>) {
    let slow = |side: fn(&Slow) -> Slow| -> Vec<String> {
        arguments.slow_change.iter().flat_map(|slow| side(slow).to_words()).collect()
    };
    let mut change = slow(Slow::clone);
    change.extend(arguments.record_change.then(|| "--record".to_owned()));
    (slow(Slow::control), change)
}

/// Before anything is built: recordings can be opened and are of a game that is here, and nothing else is said of what is played.
fn check_recordings(arguments: &PreflightArguments, played: &Played<'_>, games: &[Game]) -> Result<(), Box<dyn Error>> {
    if arguments.recording.is_empty() {
        return Ok(());
    }
    if let Some(word) = played.said_words().first() {
        return Err(format!(
            "{word} has no meaning with --recording: a recording is replayed as it was made; leave one of them out"
        )
        .into());
    }
    if arguments.repeat.is_some() && arguments.recording.len() > 1 {
        return Err("--repeat takes one --recording at a time; its runs are kept in the folder of --report".into());
    }
    for path in &arguments.recording {
        let recording = RecordingFiles::open(path).map_err(|error| {
            format!("--recording {error}; name a folder into which a server recorded, or a segment of it")
        })?;
        check_game(recording.about(), path, games).map_err(|error| format!("--recording {error}"))?;
    }
    Ok(())
}

/// One run after the other: status 1 if anything is slower in one of them, otherwise 2 if nothing can be said of one.
fn run_each(plans: &[PreflightPlan], arguments: &PreflightArguments, stop: &StopFlag) -> CommandResult {
    let (mut reports, mut folders) = (Vec::new(), Vec::new());
    for plan in plans {
        let folder = match &plan.recording {
            Some(path) if plans.len() > 1 => folder_for(path, &arguments.report, &folders),
            _ => arguments.report.clone(),
        };
        let report = run_once(plan, &folder, stop)?;
        folders.push(folder);
        tell_report(&report, arguments.json)?;
        reports.push(report);
    }
    if arguments.json {
        match &reports[..] {
            [only] => say(serde_json::to_string(only)?)?,
            several => say(json!({"passed": several.iter().all(|report| report.passed), "workloads": several}))?,
        }
    }
    Ok(if reports.iter().any(|report| !report.passed) {
        Verdict::Failed
    } else if reports.iter().any(|report| report.verdict == Seen::Unknown) {
        Verdict::Status(NOTHING_SAID)
    } else {
        Verdict::Fine
    })
}

/// A folder of the report's that is called as the recording is, and as none before.
fn folder_for(recording: &Path, report: &Path, taken: &[PathBuf]) -> PathBuf {
    let name = recording.file_stem().map_or_else(|| "recording".into(), |name| name.to_string_lossy());
    let numbered = (2..).map(|number| report.join(format!("{name}-{number}")));
    let mut names = std::iter::once(report.join(&*name)).chain(numbered);
    names.find(|folder| !taken.contains(folder)).unwrap_or_else(|| report.to_owned())
}

fn run_once(plan: &PreflightPlan, folder: &Path, stop: &StopFlag) -> Result<PreflightReport, Box<dyn Error>> {
    let line = StatusLine::new();
    let of = plan.recording.as_ref().map_or_else(String::new, |path| format!("{}: ", path.display()));
    line.show(&format!("{of}the first pair of processes starts"));
    let report = preflight::run(plan, stop, |pairs, left_s| {
        line.show(&format!("{of}{pairs} pairs of processes, {left_s:.0} s left"))
    });
    line.finish();
    let mut report = report?;
    report.write(folder)?;
    Ok(report)
}

/// What a run was of. Runs count together only where all of this is the same, and machines are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Identity {
    base: BuildIdentity,
    change: BuildIdentity,
    played: Vec<String>,
    seconds: u32,
    pair_s: f64,
    frames_per_step: u32,
    /// By its names: a calibration of each start would part runs of one host.
    machine: Machine,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct BuildIdentity {
    content: String,
    words: Vec<String>,
}

impl Identity {
    fn new(plan: &PreflightPlan, machine: Machine) -> Self {
        let build =
            |path: &Path, words: &[String]| BuildIdentity { content: binaries::content(path), words: words.to_vec() };
        Self {
            base: build(&plan.base, &plan.base_words),
            change: build(&plan.change, &plan.change_words),
            played: plan.words.clone(),
            seconds: plan.seconds,
            pair_s: plan.pair_s,
            frames_per_step: plan.frames_per_step,
            machine,
        }
    }

    /// Whether the other is of the same in all but the machine.
    fn is_of_the_same(&self, other: &Self) -> bool {
        *self == Self { machine: self.machine.clone(), ..other.clone() }
    }
}

/// Runs that are in a file already.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    runs: u32,
    /// Of these: saw something; could say nothing.
    seen: u32,
    unknown: u32,
    /// Lines of other builds, games or options, or that do not say of which machine they are, which do not count.
    of_others: u32,
    /// Lines of another machine, which do not count either, and in what the last of them is unlike this one.
    of_other_machines: u32,
    machine_differences: Vec<String>,
    /// The last line was not written to its end: that run is run again.
    is_torn: bool,
}

impl Counted {
    fn read(text: &str, identity: &Identity) -> Self {
        let mut counted = Self { is_torn: !text.is_empty() && !text.ends_with('\n'), ..Self::default() };
        for line in text.lines().filter(|line| !line.is_empty()) {
            let Ok(run) = serde_json::from_str::<Value>(line) else { continue };
            let of = Identity::deserialize(&run["of"]).ok().filter(|of| identity.is_of_the_same(of));
            let Some(of) = of else {
                counted.of_others += 1;
                continue;
            };
            match of.machine.differences(&identity.machine) {
                differences if differences.is_empty() => counted.add(&run),
                differences => {
                    counted.of_other_machines += 1;
                    counted.machine_differences = differences;
                }
            }
        }
        counted
    }

    fn add(&mut self, run: &Value) {
        self.runs += 1;
        self.seen += u32::from(run["seen"].as_array().is_some_and(|seen| !seen.is_empty()));
        self.unknown += u32::from(run["verdict"] == json!(Seen::Unknown));
    }
}

/// Many runs, of which those that are in the file already are not run again.
fn repeat(plan: &PreflightPlan, count: u32, arguments: &PreflightArguments, stop: &StopFlag) -> CommandResult {
    let path = arguments.report.join("runs.jsonl");
    let identity = Identity::new(plan, Machine::by_name());
    let mut counted = Counted::read(&std::fs::read_to_string(&path).unwrap_or_default(), &identity);
    if counted.of_others > 0 {
        remark(format_args!(
            "note {} runs in {} are of other builds, another game or other options, or name no machine, and do not count; --report names another folder",
            counted.of_others,
            path.display()
        ));
    }
    if counted.of_other_machines > 0 {
        remark(format_args!(
            "note {} runs in {} were on another machine ({}), and do not count; --report names another folder",
            counted.of_other_machines,
            path.display(),
            counted.machine_differences.join("; ")
        ));
    }
    while counted.runs < count {
        let report = run_once(plan, &arguments.report, stop)?;
        if stop.requested() {
            return Err(format!("stopped after {} of {count} runs; the same command goes on", counted.runs).into());
        }
        let found: Vec<Value> = report.seen().map(|finding| json!(finding)).collect();
        let line = json!({
            "run": counted.runs + 1, "verdict": report.verdict, "seen": found, "pairs": report.findings.pairs,
            "undisturbed_share": report.findings.undisturbed_share, "took_disturbed": report.findings.took_disturbed,
            "all": report.findings.subsystems.first(), "base_commit": report.base.commit, "change_commit": report.change.commit,
            "of": identity,
        });
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        let torn = if std::mem::take(&mut counted.is_torn) { "\n" } else { "" };
        writeln!(file, "{torn}{line}")?;
        counted.add(&line);
        remark(format_args!(
            "run {} of {count}: {} seen, {:.0} % of steps undisturbed; {} runs saw something, {} could say nothing",
            counted.runs,
            found.len(),
            100.0 * report.findings.undisturbed_share,
            counted.seen,
            counted.unknown
        ));
    }
    let Counted { runs, seen, unknown, of_others, of_other_machines, .. } = counted;
    if arguments.json {
        say(json!({
            "runs": runs, "runs_that_saw_something": seen, "runs_that_could_say_nothing": unknown, "runs_of_others": of_others,
            "runs_of_other_machines": of_other_machines, "file": path,
        }))?;
    } else {
        let path = path.display();
        say(format_args!("{seen} of {runs} runs saw something, {unknown} could say nothing: {path}"))?;
    }
    Ok(if seen == 0 { Verdict::Fine } else { Verdict::Failed })
}

fn tell_report(report: &PreflightReport, json: bool) -> Result<(), Box<dyn Error>> {
    if !report.did_the_same {
        remark(format_args!(
            "note the two {}: they play differently, and times are those of different games",
            report.other_by()
        ));
    }
    if report.findings.took_disturbed {
        remark(format_args!(
            "note only {:.0} % of steps had the core to themselves, and others were taken, too: the host is busy, and intervals are wide",
            100.0 * report.findings.undisturbed_share
        ));
    }
    if let Some(missing) = &report.instructions.missing {
        let by = if report.instructions.by == "none" {
            "not counted".to_owned()
        } else {
            format!("by {}", report.instructions.by)
        };
        remark(format_args!("note instructions: {by}; {missing}"));
    }
    if json {
        return Ok(());
    }
    say(format_args!("{}; times are per {}", report.workload, report.per))?;
    say(table(&report.findings.subsystems).text())?;
    say(table(&report.findings.categories).text())?;
    let mut counts = TextTable::new([
        Column::text(if report.per == "tick" { "per tick" } else { "per frame" }, "name"),
        Column::float("base", "base", 2),
        Column::float("change", "change", 2),
        Column::text("verdict", "verdict"),
    ]);
    for count in &report.counts {
        counts.row(&[
            Cell::Text(count.name),
            Cell::Float(count.base),
            Cell::Float(count.change),
            Cell::Text(count.verdict),
        ]);
    }
    say(counts.text())?;
    say(cut_in_words())?;
    let uncut: Vec<String> =
        report.uncut_outside().map(|(finding, percent)| format!("{} {percent:+.1} %", finding.name)).collect();
    if !uncut.is_empty() {
        say(format_args!("of all steps, outside of the interval and not judged: {}", uncut.join(", ")))?;
    }
    for count in report.counts_that_differ() {
        say(format_args!("{}; it changes no exit status", count.in_words(report.per)))?;
    }
    let pairs = format!("{} pairs of processes: {}", report.findings.pairs, report.workload);
    let seen: Vec<String> = report.seen().map(|finding| told(finding, report.per)).collect();
    let unknown: Vec<String> = report.unknown().map(name).collect();
    if !unknown.is_empty() {
        say(format_args!("cannot be said: {}; a longer run or a quieter host says more", unknown.join(", ")))?;
    }
    match report.verdict {
        Seen::Unknown => say(format_args!("too little was measured to say anything, in {pairs}"))?,
        _ if seen.is_empty() && unknown.is_empty() => {
            say(format_args!("{} in {pairs}", report.nothing_seen()))?;
        }
        _ if seen.is_empty() => say(format_args!("{} of the others, in {pairs}", report.nothing_seen()))?,
        _ => say(format_args!("{}\nin {pairs}", seen.join("\n")))?,
    }
    if let Some(page) = &report.report {
        remark(format_args!("report: {page}"));
    }
    Ok(())
}

fn name(one: &Finding) -> String {
    let of = if one.category.is_empty() && one.name != WHOLE { "category " } else { "" };
    format!("{of}{}", one.name)
}

/// What is known of one that differs.
fn told(one: &Finding, per: &str) -> String {
    let (name, verdict) = (name(one), one.verdict.name());
    match (one.verdict, one.shift_percent, one.low_percent, one.high_percent) {
        (Seen::New, ..) => format!("{name} is new: {:.1} µs per {per}", one.change_us),
        (Seen::Gone, ..) => format!("{name} is gone: {:.1} µs per {per}", one.base_us),
        (_, Some(shift), Some(low), Some(high)) => {
            format!("{name} is {verdict} by {shift:+.1} % ({low:+.1} to {high:+.1})")
        }
        _ => format!("{name} is {verdict}"),
    }
}

fn table(findings: &[Finding]) -> TextTable {
    let mut table = TextTable::new([
        Column::text("subsystem", "name"),
        Column::float("share %", "share_percent", 1),
        Column::float("base µs", "base_us", 2),
        Column::float("change µs", "change_us", 2),
        Column::float("shift %", "shift_percent", 2),
        Column::float("low %", "low_percent", 2),
        Column::float("high %", "high_percent", 2),
        Column::float("of all steps %", "uncut_percent", 2),
        Column::text("verdict", "verdict"),
    ]);
    let percent = |percent: Option<f64>| percent.map_or(Cell::Empty, Cell::Float);
    for finding in findings.iter().filter(|finding| finding.verdict != Seen::Small) {
        table.row(&[
            Cell::Text(&finding.name),
            Cell::Float(100.0 * finding.share),
            Cell::Float(finding.base_us),
            Cell::Float(finding.change_us),
            percent(finding.shift_percent),
            percent(finding.low_percent),
            percent(finding.high_percent),
            percent(finding.uncut_percent_outside()),
            Cell::Text(finding.verdict.name()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    /// Promise: what a test switch plants is in the second alone; the first has what it is held against.
    #[test]
    fn test_switches_reach_one_side() {
        let check = |said: &str, base: &str, change: &str| {
            let words = format!("preflight --base a --change b {said}");
            let command = PreflightArguments::augment_args(clap::Command::new("preflight"));
            let matches = command.try_get_matches_from(words.split_whitespace()).unwrap();
            let sides = words_of_sides(&PreflightArguments::from_arg_matches(&matches).unwrap());
            assert_eq!((sides.0.join(" ").as_str(), sides.1.join(" ").as_str()), (base, change), "{said}");
        };
        check("", "", "");
        check("--record-change", "", "--record");
        check("--slow-change net:work:2", "--slow net:work:0", "--slow net:work:2");
        check("--slow-change net:misses:2 --record-change", "--slow net:hits:2", "--slow net:misses:2 --record");
    }

    fn plan(words: &str) -> PreflightPlan {
        PreflightPlan {
            base: "no-base".into(),
            change: "no-change".into(),
            recording: None,
            words: words.split(' ').map(str::to_owned).collect(),
            base_words: Vec::new(),
            change_words: Vec::new(),
            seconds: 30,
            pair_s: 0.3,
            frames_per_step: 20,
            valgrind: false,
        }
    }

    /// Promise: runs of another build, game, option or machine are not taken for ours, and a torn line is no run.
    #[test]
    fn only_runs_of_the_same_builds_and_the_same_play_count() {
        let here = || Machine { cpu: "EPYC".into(), cores: 2, memory_mb: 4_000, ..Machine::default() };
        let of = |words, machine| json!(Identity::new(&plan(words), machine));
        let (ours, other) = (of("--game duel", here()), of("--game frontier", here()));
        let line = |of: &Value, seen: Value, verdict: Seen| {
            format!("{}\n", json!({"of": of, "seen": seen, "verdict": verdict}))
        };
        let text = [
            line(&ours, json!([]), Seen::None),
            line(&ours, json!([{"name": "all"}]), Seen::Slower),
            line(&other, json!([{"name": "all"}]), Seen::Slower),
            format!("{}\n", json!({"run": 1, "seen": [], "pairs": 4})),
            line(&ours, json!([]), Seen::Unknown),
            "{\"run\": 4, \"ver".to_owned(),
        ];
        let identity = Identity::new(&plan("--game duel"), here());
        let counted = Counted::read(&text.concat(), &identity);
        let expect = Counted { runs: 3, seen: 1, unknown: 1, of_others: 2, is_torn: true, ..Counted::default() };
        assert_eq!(counted, expect);
        assert_eq!(Counted::read("", &identity), Counted::default());

        let mut nobodys = ours.clone();
        nobodys.as_object_mut().unwrap().remove("machine");
        let text = [
            line(&of("--game duel", Machine { cpu: "Xeon".into(), ..here() }), json!([]), Seen::None),
            line(&of("--game duel", Machine { memory_mb: 4_001, ..here() }), json!([]), Seen::None),
            line(&nobodys, json!([]), Seen::None),
        ];
        let counted = Counted::read(&text.concat(), &identity);
        assert_eq!((counted.runs, counted.of_other_machines, counted.of_others), (1, 1, 1), "{counted:?}");
        assert_eq!(counted.machine_differences, ["processor: Xeon and EPYC"]);
    }
}
