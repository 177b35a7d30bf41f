//! `throng preflight`: two builds held against each other, subsystem by subsystem. The work is the lab's.

mod repeated;
mod told;

use std::{
    error::Error,
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;
use throng::{recording::RecordingFiles, settings::SettingsError};
use throng_game::Game;
use throng_lab::preflight::{
    self, PreflightError, PreflightPlan, PreflightReport, Side,
    binaries::{BinaryError, Builder},
};
use throng_platform::signals::{self, StopFlag};

use self::{repeated::repeat, told::tell_report};
use crate::{
    executable::Executable,
    outcome::{CommandResult, NOTHING_SAID, Verdict},
    output::{remark, say},
    played::Played,
    recorded_game::check_game,
    status_line::StatusLine,
    workload::{Slow, seconds_within},
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
    /// What is measured of each pair of processes (s, 0.1 to 600). More pairs are worth more than longer ones.
    #[arg(long, default_value_t = 3.0, value_parser = |text: &str| seconds_within(text, 0.1..=600.0))]
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
    /// Where the processor does not count instructions, count those of some frames with valgrind, twice of each build: takes minutes.
    #[arg(long, conflicts_with = "repeat")]
    valgrind: bool,
    /// Run until so many runs could say something, twice as often at most, and append each to runs.jsonl in the report's folder; runs of the
    /// same builds, game and options on a machine like this one that are there already count, so that it can be stopped and started again.
    /// The page of a run that saw something is kept beside it. Ends with status 1 if any run saw something, otherwise with 2 if too few
    /// could say anything.
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

pub fn run(
    arguments: PreflightArguments,
    played: &Played<'_>,
    executable: Executable,
    games: &[Game],
) -> CommandResult {
    check_recordings(&arguments, played, games)?;
    let reads = files_of_settings(&arguments, played)?;
    throng_lab::report::make_folder(&arguments.report)?;
    // From here on, so that a stop in the middle of a build leaves no checkout behind.
    let stop = signals::install_stop();
    let (base, change) = find_both(&arguments, executable, &stop)?;
    let plans = plans_of(&arguments, played, reads, base, change);
    match (&plans[..], arguments.repeat) {
        ([only], Some(count)) => repeat(only, count, &arguments, &stop),
        (plans, _) => run_each(plans, &arguments, &stop),
    }
}

/// The programs of base and change, built if need be.
fn find_both(
    arguments: &PreflightArguments,
    executable: Executable,
    stop: &StopFlag,
) -> Result<(PathBuf, PathBuf), BinaryError> {
    let cache = arguments.cache.clone().unwrap_or_else(Builder::default_cache);
    let builder = Builder { name: executable.name.to_owned(), here: ".".into(), cache };
    let find = |side, text: &str| {
        let found = builder.find(side, text, stop, &mut |words: String| remark(words));
        // Ctrl-C reaches git as well, and that is no mistake in a revision.
        if stop.requested() { Err(BinaryError::Stopped) } else { found }
    };
    let base = find(Side::Base, &arguments.base)?;
    let change = if arguments.change == arguments.base { base.clone() } else { find(Side::Change, &arguments.change)? };
    Ok((base, change))
}

/// What bots play by, here and now: their processes read the same. A recording brings its own.
fn files_of_settings(arguments: &PreflightArguments, played: &Played<'_>) -> Result<Vec<PathBuf>, SettingsError> {
    if !arguments.recording.is_empty() {
        return Ok(Vec::new());
    }
    let (settings, _) = played.game.find_settings(arguments.config.as_deref())?;
    Ok(settings.file().map(Path::to_owned).into_iter().chain(settings.recorder.rules).collect())
}

/// One of bots that play, or one of each recording.
fn plans_of(
    arguments: &PreflightArguments,
    played: &Played<'_>,
    reads: Vec<PathBuf>,
    base: PathBuf,
    change: PathBuf,
) -> Vec<PreflightPlan> {
    let mut of_game = played.to_small_words(PLAYERS);
    if let Some(path) = &arguments.config {
        of_game.extend(["--config".to_owned(), path.display().to_string()]);
    }
    let (base_arguments, change_arguments) = arguments_of_sides(arguments);
    let of_bots = PreflightPlan {
        base,
        change,
        recording: None,
        files_read: reads,
        arguments: of_game,
        base_arguments,
        change_arguments,
        seconds: if arguments.quick { QUICK_S } else { arguments.seconds },
        pair_s: arguments.pair_s,
        frames_per_step: arguments.frames_per_step,
        valgrind: arguments.valgrind,
    };
    if arguments.recording.is_empty() {
        return vec![of_bots];
    }
    let of_recording = |path: &PathBuf| PreflightPlan {
        recording: Some(path.clone()),
        files_read: vec![path.clone()],
        arguments: vec!["--recording".to_owned(), path.display().to_string()],
        ..of_bots.clone()
    };
    arguments.recording.iter().map(of_recording).collect()
}

/// What test switches say to base and change alone.
fn arguments_of_sides(arguments: &PreflightArguments) -> (Vec<String>, Vec<String>) {
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

/// One run after the other. What goes wrong with one of several hides none of the others: all are told, and then status 1 if anything is
/// slower in one of them, otherwise 2 if nothing can be said of one.
fn run_each(plans: &[PreflightPlan], arguments: &PreflightArguments, stop: &StopFlag) -> CommandResult {
    let (mut reports, mut folders) = (Vec::new(), Vec::new());
    let mut failures: Vec<String> = Vec::new();
    for (number, plan) in (1..).zip(plans) {
        let folder = match &plan.recording {
            Some(path) if plans.len() > 1 => folder_for(path, &arguments.report, &folders),
            _ => arguments.report.clone(),
        };
        match run_once(plan, stop) {
            Ok(mut report) => {
                failures.extend(report.write(&folder).err().map(|error| error.to_string()));
                tell_report(&report, arguments.json)?;
                reports.push(report);
            }
            Err(error) if plans.len() == 1 => return Err(error.into()),
            Err(error) => failures.push(error.to_string()),
        }
        folders.push(folder);
        if stop.requested() {
            let left = plans[number..].iter().filter_map(|plan| plan.recording.as_ref());
            failures.extend(left.map(|path| format!("{}: stopped before it was measured", path.display())));
            break;
        }
    }
    failures.iter().for_each(|why| remark(format_args!("FAIL {why}")));
    if arguments.json {
        match (&reports[..], plans) {
            ([only], [_]) => say(serde_json::to_string(only)?)?,
            (several, _) => {
                let passed = failures.is_empty() && several.iter().all(|report| report.passed);
                say(json!({"passed": passed, "workloads": several, "failures": failures}))?;
            }
        }
    }
    let of_each = reports.iter().map(|report| (report.passed, report.says_enough()));
    Ok(verdict(of_each, failures.is_empty()))
}

/// Of runs: whether each has passed, and whether it says enough; `all_went`: nothing went wrong with one of them.
fn verdict(mut runs: impl Iterator<Item = (bool, bool)> + Clone, all_went: bool) -> Verdict {
    if runs.clone().any(|(passed, _)| !passed) {
        Verdict::Failed
    } else if all_went && runs.all(|(_, says_enough)| says_enough) {
        Verdict::Fine
    } else {
        Verdict::Status(NOTHING_SAID)
    }
}

/// A folder of the report's that is called as the recording is, and as none before.
fn folder_for(recording: &Path, report: &Path, taken: &[PathBuf]) -> PathBuf {
    let name = recording.file_stem().map_or_else(|| "recording".into(), |name| name.to_string_lossy());
    let numbered = (2..).map(|number| report.join(format!("{name}-{number}")));
    let mut names = std::iter::once(report.join(&*name)).chain(numbered);
    names.find(|folder| !taken.contains(folder)).unwrap_or_else(|| report.to_owned())
}

/// A run, with its progress on the terminal.
fn run_once(plan: &PreflightPlan, stop: &StopFlag) -> Result<PreflightReport, PreflightError> {
    let line = StatusLine::new();
    let of = plan.recording.as_ref().map_or_else(String::new, |path| format!("{}: ", path.display()));
    line.show(&format!("{of}the first pair of processes starts"));
    let report = preflight::run(plan, stop, |pairs, left_s| {
        line.show(&format!("{of}{pairs} pairs of processes, {left_s:.0} s left"))
    });
    line.finish();
    report
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    /// Promise: what went wrong with one recording hides no slowdown in another, and is no pass.
    #[test]
    fn a_slowdown_comes_before_what_could_not_be_measured() {
        let status = |runs: &[(bool, bool)], all_went| match verdict(runs.iter().copied(), all_went) {
            Verdict::Fine => 0,
            Verdict::Failed => 1,
            Verdict::Status(status) => status,
        };
        let (fine, slower, unknown) = ((true, true), (false, true), (true, false));
        assert_eq!(status(&[fine, fine], true), 0);
        assert_eq!([status(&[fine, slower], true), status(&[slower, unknown], false)], [1, 1]);
        assert_eq!([status(&[fine, unknown], true), status(&[fine], false), status(&[], false)], [2, 2, 2]);
    }

    /// Promise: what a test switch plants is in the second alone; the first has what it is held against.
    #[test]
    fn test_switches_reach_one_side() {
        let check = |said: &str, base: &str, change: &str| {
            let words = format!("preflight --base a --change b {said}");
            let command = PreflightArguments::augment_args(clap::Command::new("preflight"));
            let matches = command.try_get_matches_from(words.split_whitespace()).unwrap();
            let sides = arguments_of_sides(&PreflightArguments::from_arg_matches(&matches).unwrap());
            assert_eq!((sides.0.join(" ").as_str(), sides.1.join(" ").as_str()), (base, change), "{said}");
        };
        check("", "", "");
        check("--record-change", "", "--record");
        check("--slow-change net:work:2", "--slow net:work:0", "--slow net:work:2");
        check("--slow-change net:misses:2 --record-change", "--slow net:hits:2", "--slow net:misses:2 --record");
    }
}
