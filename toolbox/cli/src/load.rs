//! `throng load`: the daily load test. The work is the lab's; here its plan is made from the command line.

use std::path::PathBuf;

use clap::Args;
use throng_lab::{
    load::{LoadPlan, LoadRun, Progress},
    report,
};
use throng_platform::signals;

use crate::{
    games::GameArguments,
    outcome::{CommandResult, Verdict},
    status_line::StatusLine,
};

#[derive(Args)]
pub struct LoadArguments {
    #[command(flatten)]
    game: GameArguments,
    /// Length of the steady window that is measured, after every bot is in (s).
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Settings for the server; its address is replaced by a free port on loopback.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Threads that run worlds.
    #[arg(long)]
    workers: Option<u16>,
    /// Let the server take equally urgent worlds in any order instead of the costliest first.
    #[arg(long)]
    ignore_cost_estimates: bool,
    /// Let the server save captures of bad frames into this folder.
    #[arg(long, value_name = "DIR")]
    captures: Option<PathBuf>,
    /// Let the server record nothing, to see what recording costs.
    #[arg(long)]
    no_recorder: bool,
    /// Let the server record in every other third of a second only: `recorder_cpu_share` then says what recording
    /// costs.
    #[arg(long)]
    recorder_turns: bool,
    /// Write report.json and report.html into this folder.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: LoadArguments) -> CommandResult {
    if let Some(folder) = &arguments.report {
        report::make_folder(folder)?;
    }
    let mut plan = plan(&arguments.game, arguments.seconds, arguments.config.as_deref(), arguments.workers)?;
    if arguments.ignore_cost_estimates {
        plan.serve_arguments.push("--ignore-cost-estimates".into());
    }
    if arguments.recorder_turns {
        plan.serve_arguments.push("--recorder-turns".into());
    }
    if arguments.no_recorder {
        plan.serve_arguments.push("--no-recorder".into());
    }
    if let Some(folder) = &arguments.captures {
        plan.serve_arguments.extend(["--captures".into(), folder.display().to_string()]);
    }
    let mut run = run_plan(&plan)?;
    let html = match &arguments.report {
        Some(folder) => Some(report::write(&mut run, folder)?.html),
        None => None,
    };
    tell(&run, html.as_deref(), arguments.json)
}

/// A plan for server and bots of this very executable.
pub fn plan(
    game: &GameArguments,
    seconds: u32,
    config: Option<&std::path::Path>,
    workers: Option<u16>,
) -> Result<LoadPlan, Box<dyn std::error::Error>> {
    game.check()?;
    let mut serve_arguments = game.to_arguments();
    serve_arguments.extend(["--address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0"].map(String::from));
    if game.could_be_all_awake() {
        serve_arguments.push("--all-awake".into());
    }
    let mut bots_arguments = game.to_bots_arguments();
    if let Some(path) = config {
        let path = path.display().to_string();
        serve_arguments.extend(["--config".to_owned(), path.clone()]);
        bots_arguments.extend(["--config".to_owned(), path]);
    }
    if let Some(workers) = workers {
        serve_arguments.extend(["--workers".to_owned(), workers.to_string()]);
    }
    Ok(LoadPlan {
        executable: std::env::current_exe()?,
        serve_arguments,
        bots_arguments,
        players: game.players(),
        seconds,
        join_within_s: LoadPlan::default_join_within_s(game.players()),
        stalled_after_s: LoadPlan::STALLED_AFTER_S,
        command: std::env::args().collect::<Vec<_>>().join(" "),
    })
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
        Progress::Measuring { second, of, last } => format!(
            "{second:>4} of {of} s  {} players  {} worlds awake  frame {:.1} ms max of {:.1}  missed {}  {} packets/s in, {} out  {:.2} \
             cores  {:.0} MB",
            last.players,
            last.worlds_awake,
            last.frame_ms_max,
            last.frame_budget_ms,
            last.ticks_missed,
            last.packets_in,
            last.packets_out,
            last.cpu_cores,
            last.rss_mb,
        ),
        Progress::Stopping => "stopping".into(),
    }
}

/// Prints the outcome: bars for a person, everything for a program.
pub fn tell(run: &LoadRun, html: Option<&std::path::Path>, json: bool) -> CommandResult {
    if let Some(not_filled) = &run.report.not_filled {
        eprintln!("FAIL {not_filled}\nthe server's last words:\n{}", not_filled.server_words);
    }
    for bar in &run.report.bars {
        eprintln!("{} {}", if bar.passed { "ok  " } else { "FAIL" }, bar);
    }
    if let Some(path) = html {
        eprintln!("report: {}", path.display());
    }
    if json {
        println!("{}", serde_json::to_string(&run.report)?);
    }
    Ok(if run.report.passed { Verdict::Fine } else { Verdict::Failed })
}
