//! `throng load`: the daily load test. The work is the lab's; here its plan is made from the command line.

use std::path::{Path, PathBuf};

use clap::Args;
use throng_bots::Joins;
use throng_game::{Arguments, GameOption};
use throng_lab::{
    load::{LoadPlan, LoadRun, Progress, WindowBegin},
    report,
    seconds::Second,
    settling::STILL_FOR_S,
};
use throng_platform::signals;

use crate::{
    executable::Executable,
    outcome::{CommandResult, Verdict},
    output::{remark, say},
    played::Played,
    status_line::StatusLine,
};

/// A shorter window is not worth waiting for, unless somebody says so. (s)
const MEASURED_S_MIN: u32 = 60;

#[derive(Args)]
pub struct LoadArguments {
    /// Length of the window that is measured, once every bot is in and the run has settled (s).
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Wait at most so long for the run to settle before the window opens (s): until for 30 s players per kind of world,
    /// packets and memory have moved by no more than 2 %. 0: the window opens when every bot is in. Without this it is
    /// 300, and 0 for windows of less than 60 s: these are looks, and quick.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(0..=3_600))]
    settle_s_max: Option<u32>,
    /// Settings for the server; its address is replaced by a free port on loopback. Without it `throng.toml` here, if
    /// there is one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Threads that run worlds.
    #[arg(long)]
    workers: Option<u16>,
    /// Threads that drive the bots; without it, one for 400 bots at 20 Hz, and no more than there are cores.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    bots_threads: Option<u16>,
    /// Let the server take equally urgent worlds in any order instead of the costliest first.
    #[arg(long)]
    ignore_cost_estimates: bool,
    /// Let the server save captures of bad frames into this folder; without it, into `captures` in the report's.
    #[arg(long, value_name = "DIR")]
    captures: Option<PathBuf>,
    /// Let a server that dies leave a report of that in this folder; without it, in `crashes` in the report's.
    #[arg(long, value_name = "DIR")]
    crashes: Option<PathBuf>,
    /// Let the server record nothing, to see what recording costs.
    #[arg(long)]
    no_recorder: bool,
    /// Let the server record in every other third of a second only: `recorder_cpu_share` then says what recording
    /// costs.
    #[arg(long)]
    recorder_turns: bool,
    /// Write report.json and report.html into this folder.
    #[arg(long, value_name = "DIR", default_value = "reports/load")]
    report: PathBuf,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: LoadArguments, played: &Played<'_>, executable: Executable) -> CommandResult {
    report::make_folder(&arguments.report)?;
    let is_a_look = arguments.seconds < MEASURED_S_MIN;
    let settle_s_max = arguments.settle_s_max.unwrap_or(if is_a_look { 0 } else { LoadPlan::SETTLE_S_MAX });
    let mut plan = plan(played, arguments.seconds, settle_s_max)?;
    if let Some(path) = &arguments.config {
        let path = path.display().to_string();
        plan.serve_arguments.extend(["--config".to_owned(), path.clone()]);
        plan.bots_arguments.extend(["--config".to_owned(), path]);
    }
    if let Some(workers) = arguments.workers {
        plan.serve_arguments.extend(["--workers".to_owned(), workers.to_string()]);
    }
    if let Some(threads) = arguments.bots_threads {
        plan.bots_arguments.extend(["--threads".to_owned(), threads.to_string()]);
    }
    if arguments.ignore_cost_estimates {
        plan.serve_arguments.push("--ignore-cost-estimates".into());
    }
    if arguments.recorder_turns {
        plan.serve_arguments.push("--recorder-turns".into());
    }
    if arguments.no_recorder {
        plan.serve_arguments.push("--no-recorder".into());
    }
    keep(&mut plan, &arguments.report, arguments.captures, arguments.crashes);
    let mut run = run_plan(&plan)?;
    let html = report::write(&mut run, &arguments.report)?.html;
    tell(&run, &html, arguments.json, executable)
}

/// A plan for server and bots of this very executable.
pub fn plan(played: &Played<'_>, seconds: u32, settle_s_max: u32) -> Result<LoadPlan, Box<dyn std::error::Error>> {
    let Arguments { players, scenario, .. } = played.arguments;
    let mut serve_arguments = played.to_words();
    let as_lab = ["--address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0", "--audit-samples"];
    serve_arguments.extend(as_lab.map(String::from));
    if played.could_be_all_awake() {
        serve_arguments.push(format!("--{}", GameOption::ALL_AWAKE.name()));
    }
    Ok(LoadPlan {
        executable: std::env::current_exe()?,
        game: played.game.name().to_owned(),
        scenario: scenario.name.to_owned(),
        serve_arguments,
        bots_arguments: played.to_bots_words(),
        players,
        window_begin: match scenario.joins {
            Joins::InTurn => WindowBegin::Settled { s_min: played.game.settles_after_s(), s_max: settle_s_max },
            Joins::AtOnce => WindowBegin::FirstBot,
        },
        seconds,
        until_stopped: false,
        join_within_s: LoadPlan::default_join_within_s(players),
        stalled_after_s: LoadPlan::STALLED_AFTER_S,
        captures: None,
        crashes: None,
        command: std::env::args().collect::<Vec<_>>().join(" "),
    })
}

/// Has the server keep captures and crash reports: in the report's folder, unless others are named.
pub fn keep(plan: &mut LoadPlan, report: &Path, captures: Option<PathBuf>, crashes: Option<PathBuf>) {
    let captures = captures.unwrap_or_else(|| report.join("captures"));
    let crashes = crashes.unwrap_or_else(|| report.join("crashes"));
    let named = |folder: &Path| folder.display().to_string();
    plan.serve_arguments.extend(["--captures".into(), named(&captures), "--crashes".into(), named(&crashes)]);
    (plan.captures, plan.crashes) = (Some(captures), Some(crashes));
}

/// Runs a plan with its progress on the terminal.
pub fn run_plan(plan: &LoadPlan) -> Result<LoadRun, Box<dyn std::error::Error>> {
    let stop = signals::install_stop();
    let line = StatusLine::new();
    let run = throng_lab::load::run(plan, &stop, &mut |progress| line.show(&one_line(progress)));
    line.finish();
    Ok(run?)
}

fn one_line(progress: Progress) -> String {
    match progress {
        Progress::StartingServer => "starting the server".into(),
        Progress::Joining { players, of } => format!("joining: {players} of {of} bots are playing"),
        Progress::Settling { second, last, settling } => {
            let moves = match settling.farthest() {
                Some((key, share)) if share > settling.moved_share_max => {
                    format!("{key} moves by {:.1} % of at most {:.1}", share * 100.0, settling.moved_share_max * 100.0)
                }
                _ => format!("{} s are waited for", settling.s_min.max(STILL_FOR_S as u32)),
            };
            format!("settling: {second:>4} of at most {} s  {moves}  {}", settling.s_max, figures(&last))
        }
        Progress::Measuring { second, of, last } => format!("{second:>4} of {of} s  {}", figures(&last)),
        Progress::Stopping => "stopping".into(),
    }
}

fn figures(last: &Second) -> String {
    format!(
        "{} players  {} worlds awake  frame {:.1} ms max of {:.1}  missed {} ({} the host's)  {} packets/s in, {} out  {:.2} cores  {:.0} MB",
        last.players,
        last.worlds_awake,
        last.frame_ms_max,
        last.frame_budget_ms,
        last.ticks_missed,
        last.ticks_missed_host,
        last.packets_in,
        last.packets_out,
        last.cpu_cores,
        last.rss_mb,
    )
}

/// Prints the outcome: bars for a person, everything for a program.
pub fn tell(run: &LoadRun, html: &Path, json: bool, executable: Executable) -> CommandResult {
    if let Some(not_filled) = &run.report.not_filled {
        remark(format_args!("FAIL {not_filled}\nthe server's last words:\n{}", not_filled.server_words));
    }
    if let Some(ended_early) = &run.report.ended_early {
        remark(format_args!("FAIL {ended_early}\nits last words:\n{}", ended_early.words));
    }
    if run.report.interrupted {
        remark("FAIL stopped before its time: the figures are of what there was of the window");
    }
    if let Some(settling) = &run.report.settling {
        remark(format_args!("{} {settling}", if settling.is_settled { "ok  " } else { "note" }));
    }
    for bar in &run.report.bars {
        remark(format_args!("{} {}", if bar.passed { "ok  " } else { "FAIL" }, bar));
    }
    if let Some(missed) = run.missed_ticks() {
        remark(format_args!("note {missed}"));
    }
    if let Some(last) = run.report.capture_files.last() {
        remark(format_args!(
            "{} captures of bad frames; the last one: {} capture show {last}",
            run.report.capture_files.len(),
            executable.name
        ));
    }
    remark(format_args!("report: {}", html.display()));
    if json {
        say(serde_json::to_string(&run.report)?)?;
    }
    Ok(if run.report.passed { Verdict::Fine } else { Verdict::Failed })
}
