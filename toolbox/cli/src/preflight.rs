//! `throng preflight`: two builds held against each other, subsystem by subsystem. The work is the lab's.

use std::{
    error::Error,
    fs::OpenOptions,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::{Value, json};
use throng::text_table::{Cell, Column, TextTable};
use throng_lab::preflight::{
    self, PreflightPlan, PreflightReport,
    binaries::Builder,
    statistics::{Finding, Verdict as Seen, WHOLE},
};
use throng_platform::signals::{self, StopFlag};

use crate::{
    executable::Executable,
    outcome::{CommandResult, Verdict},
    output::{remark, say},
    played::Played,
    status_line::StatusLine,
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
    /// All runs together, once both are built (s). Longer: smaller differences are seen.
    #[arg(long, default_value_t = 240, value_parser = clap::value_parser!(u32).range(5..=86_400))]
    seconds: u32,
    /// 30 s: sees what is large.
    #[arg(long, conflicts_with = "seconds")]
    quick: bool,
    /// What is measured of each pair of processes (s). More pairs are worth more than longer ones.
    #[arg(long, default_value_t = 3.0)]
    pair_s: f64,
    /// Frames that one process runs before it is the other's turn.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    frames_per_step: u32,
    /// Settings for both.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where revisions are checked out and what was built of them is kept. Otherwise `throng/preflight` in the user's cache.
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Run so often, and append each run to runs.jsonl in the report's folder; runs that are there already count, so that it can be
    /// stopped and started again. Ends with status 1 if any run saw something.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: Option<u32>,
    /// Test switch: the second takes so much more in a subsystem, in percent of its own time.
    #[arg(long, value_name = "SUBSYSTEM=PERCENT", hide = true)]
    slow_change: Option<String>,
    /// Write report.json and report.html into this folder.
    #[arg(long, value_name = "DIR", default_value = "reports/preflight")]
    report: PathBuf,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
}

const QUICK_S: u32 = 30;

pub fn run(arguments: PreflightArguments, played: &Played<'_>, executable: Executable) -> CommandResult {
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
    let slow = arguments.slow_change.iter().flat_map(|slow| ["--slow".to_owned(), slow.clone()]);
    let plan = PreflightPlan {
        base,
        change,
        words,
        base_words: Vec::new(),
        change_words: slow.collect(),
        seconds: if arguments.quick { QUICK_S } else { arguments.seconds },
        pair_s: arguments.pair_s,
        frames_per_step: arguments.frames_per_step,
    };
    match arguments.repeat {
        Some(count) => repeat(&plan, count, &arguments, &stop),
        None => {
            let report = run_once(&plan, &arguments.report, &stop)?;
            tell_report(&report, arguments.json)?;
            Ok(if report.passed { Verdict::Fine } else { Verdict::Failed })
        }
    }
}

fn run_once(plan: &PreflightPlan, folder: &Path, stop: &StopFlag) -> Result<PreflightReport, Box<dyn Error>> {
    let line = StatusLine::new();
    line.show("the first pair of processes starts");
    let report = preflight::run(plan, stop, |pairs, left_s| {
        line.show(&format!("{pairs} pairs of processes, {left_s:.0} s left"))
    });
    line.finish();
    let mut report = report?;
    report.write(folder)?;
    Ok(report)
}

/// Many runs, of which those that are in the file already are not run again.
fn repeat(plan: &PreflightPlan, count: u32, arguments: &PreflightArguments, stop: &StopFlag) -> CommandResult {
    let path = arguments.report.join("runs.jsonl");
    let (mut runs, mut seen) = (0, 0);
    if let Ok(file) = std::fs::File::open(&path) {
        for line in BufReader::new(file).lines() {
            // The last line may be torn: that run is run again.
            let Ok(run) = serde_json::from_str::<Value>(&line?) else { continue };
            runs += 1;
            seen += u32::from(run["seen"].as_array().is_some_and(|seen| !seen.is_empty()));
        }
    }
    while runs < count {
        let report = run_once(plan, &arguments.report, stop)?;
        if stop.requested() {
            return Err(format!("stopped after {runs} of {count} runs; the same command goes on").into());
        }
        let found: Vec<Value> = report.seen().map(|finding| json!(finding)).collect();
        seen += u32::from(!found.is_empty());
        runs += 1;
        remark(format_args!("run {runs} of {count}: {} seen; {seen} runs saw something", found.len()));
        let line = json!({"run": runs, "verdict": report.verdict, "seen": found, "pairs": report.findings.pairs, "all": report.findings.subsystems.first()});
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        writeln!(file, "{line}")?;
    }
    if arguments.json {
        say(json!({"runs": runs, "runs_that_saw_something": seen, "file": path}))?;
    } else {
        say(format_args!("{seen} of {runs} runs saw something: {}", path.display()))?;
    }
    Ok(if seen == 0 { Verdict::Fine } else { Verdict::Failed })
}

fn tell_report(report: &PreflightReport, json: bool) -> Result<(), Box<dyn Error>> {
    if !report.did_the_same {
        remark(
            "note the two sent other packets in the same steps: they play differently, and times are those of different games",
        );
    }
    if report.findings.took_disturbed {
        remark(format_args!(
            "note only {:.0} % of steps had the core to themselves, and others were taken, too: the host is busy, and intervals are wide",
            100.0 * report.findings.undisturbed_share
        ));
    }
    remark(format_args!("note instructions are not counted: {}", report.instructions_missing));
    if json {
        return Ok(say(serde_json::to_string(report)?)?);
    }
    say(table(&report.findings.subsystems).text())?;
    say(table(&report.findings.categories).text())?;
    let mut counts = TextTable::new([
        Column::text("per frame", "name"),
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
    let told = |one: &Finding| {
        let of = if one.category.is_empty() && one.name != WHOLE { "category " } else { "" };
        let (name, verdict) = (&one.name, one.verdict.name());
        format!(
            "{of}{name} is {verdict} by {:+.1} % ({:+.1} to {:+.1})",
            one.shift_percent, one.low_percent, one.high_percent
        )
    };
    let seen: Vec<String> = report.seen().map(told).collect();
    let pairs = report.findings.pairs;
    if seen.is_empty() {
        say(format_args!("no difference seen in {pairs} pairs of processes"))?;
    } else {
        say(format_args!("{}\nin {pairs} pairs of processes", seen.join("\n")))?;
    }
    if let Some(page) = &report.report {
        remark(format_args!("report: {page}"));
    }
    Ok(())
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
        Column::text("verdict", "verdict"),
    ]);
    for finding in findings.iter().filter(|finding| finding.verdict != Seen::Small) {
        table.row(&[
            Cell::Text(&finding.name),
            Cell::Float(100.0 * finding.share),
            Cell::Float(finding.base_us),
            Cell::Float(finding.change_us),
            Cell::Float(finding.shift_percent),
            Cell::Float(finding.low_percent),
            Cell::Float(finding.high_percent),
            Cell::Text(finding.verdict.name()),
        ]);
    }
    table
}
