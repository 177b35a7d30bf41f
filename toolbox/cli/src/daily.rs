//! `throng load --daily`: a day of load runs, which are every scenario of every game, one after the other, in one folder.
//!
//! The runs are those of `load`, in child processes each; what they lead to is put together by the lab (`throng_lab::daily`). The
//! day's report is written after each run, so that a day which is killed has what there was until then. What cannot be written
//! ends no run that is to come, and hides none that was: the day is told first.
//!
//! On the main thread, for as long as the runs take. A stop ends the run that is on, with its report, and all that are to come.

use std::{
    error::Error,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use throng_lab::{
    daily::{DayFolder, DayReport, DayRun, DayVerdict, RECORDINGS, write_index},
    history::{self, OwnHistory},
    load::{LoadError, LoadRun},
    shell::shell_word,
};
use throng_platform::signals::{self, StopFlag};

use crate::{
    executable::Executable,
    load::{LoadArguments, keep_in_history, measure, remove_folder, tell_run},
    outcome::{CommandResult, Verdict},
    output::{remark, say},
    played::Played,
    uploads,
};

/// Where days go, if nobody says so.
const REPORT: &str = "reports/daily";

pub fn run(arguments: &LoadArguments, every: &[Played<'_>], executable: Executable) -> CommandResult {
    let stop = signals::install_stop();
    let root = arguments.report.clone().unwrap_or_else(|| PathBuf::from(REPORT));
    let day = DayFolder::make(&root, now_unix_s())?;
    let report = play_day(arguments, every, &day, executable, &stop)?;
    publish(arguments, &root, &day, &report)?;
    Ok(if report.passed { Verdict::Fine } else { Verdict::Failed })
}

/// All runs, one after the other, with the day's report after each.
fn play_day(
    arguments: &LoadArguments,
    every: &[Played<'_>],
    day: &DayFolder,
    executable: Executable,
    stop: &StopFlag,
) -> Result<DayReport, Box<dyn Error>> {
    let to_come = every.iter().map(|played| DayRun::to_come(played.game.name(), played.arguments.scenario.name));
    let (version, commit) = (executable.version, executable.commit);
    let mut report = DayReport::begin(day, now_unix_s(), version, commit, to_come.collect());
    report.write(day)?;
    for (number, played) in (1..).zip(every) {
        let (game, scenario) = (played.game.name(), played.arguments.scenario.name);
        remark(format_args!("daily: {number} of {}: {game}, {scenario}", every.len()));
        let made = one_run(arguments, played, day, executable);
        if stop.requested() {
            report.interrupt(now_unix_s());
        }
        let row = match made {
            Ok(row) => row,
            // It was stopped before there was anything to tell.
            Err(error) if matches!(error.downcast_ref(), Some(LoadError::Interrupted)) => {
                DayRun::to_come(game, scenario)
            }
            Err(error) => {
                remark(format_args!("FAIL {error}"));
                DayRun::without_report(game, scenario, error.to_string(), day, executable.name)
            }
        };
        if row.death.is_none() {
            // A gigabyte that leads to nothing.
            let removed = remove_folder(&day.of_run(game, scenario).join(RECORDINGS), "the recording");
            removed.unwrap_or_else(remark);
        }
        report.put(row, now_unix_s());
        if report.interrupted {
            break;
        }
        if let Err(error) = report.write(day) {
            // There are runs to come, and it is written again after each.
            remark(format_args!("note {error}"));
        }
    }
    Ok(report)
}

/// Writes the day and the index of all days, tells both, and sends them to the object store.
fn publish(arguments: &LoadArguments, root: &Path, day: &DayFolder, report: &DayReport) -> Result<(), Box<dyn Error>> {
    let written = report.write(day);
    tell(report, day.path());
    let index = write_index(root);
    match &index {
        Ok((_, skipped)) => skipped.iter().for_each(|(name, why)| {
            remark(format_args!("note {} is no day: {why}", root.join(name).display()));
        }),
        Err(error) => remark(format_args!("note {error}")),
    }
    let index_path = index.as_ref().ok().map(|(path, _)| path.as_path());
    uploads::push_day(arguments.config.as_deref(), day.path(), day.name(), index_path);
    if let Ok(files) = &written {
        remark(format_args!("report: {}", files.html.display()));
    }
    if let Ok((path, _)) = &index {
        remark(format_args!("all days: {}", path.display()));
    }
    if arguments.json {
        say(serde_json::to_string(report)?)?;
    }
    written?;
    Ok(())
}

/// Makes a run, and looks at what it leads to.
fn one_run(
    arguments: &LoadArguments,
    played: &Played<'_>,
    day: &DayFolder,
    executable: Executable,
) -> Result<DayRun, Box<dyn Error>> {
    let folder = day.of_run(played.game.name(), played.arguments.scenario.name);
    let recordings = folder.join(RECORDINGS);
    let (run, written) = measure(arguments, played, &folder, Some(&recordings))?;
    tell_run(&run, executable);
    // A run that was measured is no worse for a report or a history that cannot be written or read.
    let note = |what: &str, error: &dyn Error| {
        remark(format_args!("note {}, {}: {what}: {error}", run.report.game, run.report.scenario));
    };
    if let Err(error) = written {
        note("without its own page", &error);
    }
    let history = own_history(arguments, &run).unwrap_or_else(|error| {
        note("not held against its own history", &*error);
        None
    });
    Ok(DayRun::of(&run, day, history, executable.name))
}

/// Keeps a run, and asks what its history says of it.
fn own_history(arguments: &LoadArguments, run: &LoadRun) -> Result<Option<OwnHistory>, Box<dyn Error>> {
    match keep_in_history(arguments, run)? {
        Some(kept) => Ok(history::of_kept(&kept.record, &arguments.history)?),
        None => Ok(None),
    }
}

/// The day in some lines, for a person. Paths in it are relative to its folder.
fn tell(report: &DayReport, folder: &Path) {
    for run in &report.runs {
        let word = match run.verdict {
            DayVerdict::Passed => "ok  ",
            DayVerdict::Failed | DayVerdict::Died => "FAIL",
            DayVerdict::NotRun => "note",
        };
        remark(format_args!("{word} {}, {}: {}", run.game, run.scenario, run.verdict.name()));
        for slowdown in run.slowdowns() {
            remark(format_args!("     {}", slowdown.in_words()));
        }
        if let Some(death) = &run.death {
            let linked = [&death.crash_report, &death.capture, &death.recording];
            let linked: Vec<&str> = linked.into_iter().flatten().map(String::as_str).collect();
            remark(format_args!("     {}: {}", death.words, linked.join(", ")));
            if let Some(replay) = &death.replay {
                remark(format_args!("     cd {} && {replay}", shell_word(&folder.display().to_string())));
            }
        }
    }
}

fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
