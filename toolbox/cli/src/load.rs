//! `throng load`: the load test. The work is the lab's; here its plan is made from the command line. With `--daily` there are as
//! many plans as runs in a day (`daily`).

use std::{
    io::ErrorKind,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use throng::text_table::{Cell, Column, TextTable};
use throng_bots::Joins;
use throng_game::{Arguments, GameOption};
use throng_history::Machine;
use throng_lab::{
    against::{Comparison, EarlierReport, WantedLoad},
    daily::CRASHES,
    history::{self, Kept},
    load::{LoadPlan, LoadRun, Progress, WindowBegin},
    load_report::condition,
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
    serve::NO_SAVES,
    status_line::{SAVES_ARE_AWAY, StatusLine},
    uploads,
};

/// A shorter window is not worth waiting for, unless somebody says so. (s)
const MEASURED_S_MIN: u32 = 60;

/// Of `--history`: keep the run nowhere.
const NO_HISTORY: &str = "none";

/// Where a run's report goes, if nobody says so.
const REPORT: &str = "reports/load";

#[derive(Args)]
pub struct LoadArguments {
    /// Make a day of load runs: every scenario of every game, one after the other, each a run of its own with these words, in one
    /// folder; `--game` and `--scenario` choose some of them. What ends one ends no other; what a server is told is recorded,
    /// and kept if it dies.
    #[arg(long, conflicts_with_all = ["captures", "crashes", "against", "admin_address"])]
    pub daily: bool,
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
    pub config: Option<PathBuf>,
    /// Let the server's admin port be here instead of on any free port, for a Prometheus that scrapes the run.
    #[arg(long, value_name = "IP:PORT")]
    admin_address: Option<SocketAddr>,
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
    #[command(flatten)]
    saves: SavesWord,
    /// Start the server without its flight recorder, to see what that costs.
    #[arg(long)]
    no_recorder: bool,
    /// Let the server's flight recorder run in every other third of a second only: `recorder_cpu_share` then says what it
    /// costs.
    #[arg(long)]
    recorder_turns: bool,
    /// Hold the run against the report of an earlier one, `report.json` or its folder: what each subsystem took in both. One of
    /// an unlike machine, or of another load, is refused before the run begins.
    #[arg(long, value_name = "REPORT")]
    against: Option<PathBuf>,
    /// Go on, though the report of `--against` is of an unlike machine.
    #[arg(long, requires = "against")]
    across_machines: bool,
    /// Append the run to the history in this folder, which `history` reads; "none" = to none.
    #[arg(long, value_name = "DIR", default_value = crate::history::FOLDER)]
    pub history: PathBuf,
    /// Write report.json and report.html into this folder; with --daily, into the day's in it. Without it into reports/load,
    /// and reports/daily.
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Print one JSON object as the last line.
    #[arg(long)]
    pub json: bool,
}

/// Where the server of a run saves.
#[derive(Args)]
pub struct SavesWord {
    /// Where the server saves players and worlds: "report" = into a file of its own in the report's folder, begun anew with
    /// each run, so that saving costs what it costs and touches nobody's saves; "none" = nowhere; "settings" = as its
    /// settings have it.
    #[arg(long, value_name = "WHERE", default_value = "report")]
    saves: SavesWhere,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SavesWhere {
    Report,
    None,
    Settings,
}

impl SavesWord {
    /// Tells the server of a plan where it saves, and removes what an earlier run has saved in the report's folder.
    pub fn prepare(&self, plan: &mut LoadPlan, report: &Path) -> Result<(), String> {
        let saves = self.saves.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        plan.conditions.insert(condition::SAVES.to_owned(), saves);
        let folder = match self.saves {
            SavesWhere::Settings => return Ok(()),
            SavesWhere::None => NO_SAVES.to_owned(),
            SavesWhere::Report => {
                let folder = report.join("saves");
                // What an earlier run left would make this one another.
                remove_folder(&folder, "an earlier run's saves")?;
                folder.display().to_string()
            }
        };
        plan.serve_arguments.extend(["--saves".to_owned(), folder]);
        Ok(())
    }
}

/// Removes a folder, if there is one; what is in it is told where it cannot be.
pub fn remove_folder(folder: &Path, what: &str) -> Result<(), String> {
    match std::fs::remove_dir_all(folder) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => {
            Err(format!("{}: {what} cannot be removed: {cause}", folder.display()))
        }
        _ => Ok(()),
    }
}

pub fn run(arguments: LoadArguments, played: &Played<'_>, executable: Executable) -> CommandResult {
    let earlier =
        arguments.against.as_ref().map(|path| EarlierReport::read(path, &Machine::here(), arguments.across_machines));
    let earlier = earlier.transpose()?;
    if let Some(earlier) = &earlier {
        let Arguments { players, npcs, scenario, .. } = &played.arguments;
        let npcs = played.game.npcs_size().map(|_| *npcs);
        let (game, scenario) = (played.game.name(), scenario.name);
        earlier.check_load(&WantedLoad { game, scenario, players: *players, npcs })?;
    }
    let folder = arguments.report.clone().unwrap_or_else(|| REPORT.into());
    let (run, written) = measure(&arguments, played, &folder, None)?;
    let kept = keep_in_history(&arguments, &run);
    if let Some(earlier) = earlier {
        tell_against(&run, &earlier);
    }
    if written.is_ok() {
        uploads::push_report(arguments.config.as_deref(), &folder);
    }
    let verdict = tell(&run, arguments.json, executable)?;
    // Last, since a run is worth its figures wherever it cannot be kept.
    kept?;
    written?;
    Ok(verdict)
}

/// Appends a run to the history, unless the command line says that it is kept nowhere. None of a run that is not kept.
pub fn keep_in_history(arguments: &LoadArguments, run: &LoadRun) -> Result<Option<Kept>, Box<dyn std::error::Error>> {
    if arguments.history == Path::new(NO_HISTORY) {
        return Ok(None);
    }
    let kept = history::keep(run, &arguments.history)?;
    match &kept {
        Some(kept) => remark(format_args!("kept in {}", kept.path.display())),
        None if run.report.conditions.contains_key(condition::FAULTS) => {
            remark("not kept in the history, since faults were injected");
        }
        None => {}
    }
    Ok(kept)
}

/// One run, and whether its report is in this folder: where that cannot be written there are figures all the same. `recordings`: where
/// the server records what enters its worlds.
pub fn measure(
    arguments: &LoadArguments,
    played: &Played<'_>,
    folder: &Path,
    recordings: Option<&Path>,
) -> Result<(LoadRun, Result<(), report::ReportError>), Box<dyn std::error::Error>> {
    report::make_folder(folder)?;
    let is_a_look = arguments.seconds < MEASURED_S_MIN;
    let settle_s_max = arguments.settle_s_max.unwrap_or(if is_a_look { 0 } else { LoadPlan::SETTLE_S_MAX });
    let mut plan = plan(played, arguments.seconds, settle_s_max)?;
    if let Some(path) = &arguments.config {
        let path = path.display().to_string();
        plan.serve_arguments.extend(["--config".to_owned(), path.clone()]);
        plan.bots_arguments.extend(["--config".to_owned(), path]);
    }
    if let Some(address) = arguments.admin_address {
        let place = plan.serve_arguments.iter().position(|word| word == "--admin-address");
        place.into_iter().for_each(|place| plan.serve_arguments[place + 1] = address.to_string());
    }
    if let Some(workers) = arguments.workers {
        plan.serve_arguments.extend(["--workers".to_owned(), workers.to_string()]);
    }
    if let Some(threads) = arguments.bots_threads {
        plan.bots_arguments.extend(["--threads".to_owned(), threads.to_string()]);
        plan.conditions.insert(condition::BOTS_THREADS.to_owned(), threads.to_string());
    }
    for (is_said, word, key, value) in [
        (arguments.ignore_cost_estimates, "--ignore-cost-estimates", condition::COST_ESTIMATES, "ignored"),
        (arguments.recorder_turns, "--recorder-turns", condition::RECORDER, "turns"),
        (arguments.no_recorder, "--no-recorder", condition::RECORDER, "off"),
    ] {
        if is_said {
            plan.serve_arguments.push(word.to_owned());
            plan.conditions.insert(key.to_owned(), value.to_owned());
        }
    }
    if let Some(recordings) = recordings {
        plan.serve_arguments.extend(["--record".to_owned(), recordings.display().to_string()]);
        plan.conditions.insert(condition::RECORDING.to_owned(), "on".to_owned());
    }
    arguments.saves.prepare(&mut plan, folder)?;
    set_folders(&mut plan, folder, arguments.captures.clone(), arguments.crashes.clone());
    let mut run = run_plan(&plan)?;
    let written = report::write(&mut run, folder).map(drop);
    Ok((run, written))
}

/// What each subsystem took in both runs, on stderr: the last line of stdout is the report's. Nothing here takes away what came of the run.
fn tell_against(run: &LoadRun, earlier: &EarlierReport) {
    for difference in &earlier.machine_differences {
        remark(format_args!("note across machines: {difference}"));
    }
    let Comparison { unlike, rows } = match earlier.compare(&run.report) {
        Ok(comparison) => comparison,
        Err(error) => return remark(format_args!("note {error}")),
    };
    if let Some(unlike) = unlike {
        remark(format_args!("note {unlike}"));
    }
    if rows.is_empty() {
        return remark("note this run does not say what a tick took: there is nothing to compare");
    }
    let mut table = TextTable::new([
        Column::text("subsystem", "subsystem"),
        Column::float("before µs", "before_us", 2),
        Column::float("now µs", "after_us", 2),
        Column::float("change %", "change_percent", 1),
    ]);
    for row in rows {
        let float = |value: Option<f64>| value.map_or(Cell::Empty, Cell::Float);
        let change = row.change().map(|change| 100.0 * change);
        table.row(&[Cell::Text(&row.subsystem), float(row.before_us), float(row.after_us), float(change)]);
    }
    remark(table.text().trim_end());
    remark("two runs say nothing of noise: `history` judges many, `preflight` two builds in turns");
}

/// A plan for server and bots of this very executable.
pub fn plan(played: &Played<'_>, seconds: u32, settle_s_max: u32) -> Result<LoadPlan, Box<dyn std::error::Error>> {
    let Arguments { players, scenario, .. } = played.arguments;
    let mut serve_arguments = played.to_words();
    let as_lab = ["--address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0", "--audit-samples"];
    serve_arguments.extend(as_lab.map(String::from));
    let all_awake = played.could_be_all_awake().then(|| format!("--{}", GameOption::ALL_AWAKE.name()));
    serve_arguments.extend(all_awake.clone());
    Ok(LoadPlan {
        conditions: played.conditions(all_awake.as_slice()),
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
pub fn set_folders(plan: &mut LoadPlan, report: &Path, captures: Option<PathBuf>, crashes: Option<PathBuf>) {
    let captures = captures.unwrap_or_else(|| report.join("captures"));
    let crashes = crashes.unwrap_or_else(|| report.join(CRASHES));
    let named = |folder: &Path| folder.display().to_string();
    plan.serve_arguments.extend(["--captures".into(), named(&captures), "--crashes".into(), named(&crashes)]);
    (plan.captures, plan.crashes) = (Some(captures), Some(crashes));
}

/// Runs a plan with its progress on the terminal.
pub fn run_plan(plan: &LoadPlan) -> Result<LoadRun, Box<dyn std::error::Error>> {
    let stop = signals::install_stop();
    let line = StatusLine::new();
    let run = throng_lab::load::run(plan, &stop, &mut |progress| match progress {
        // It stays to be read.
        Progress::ServerReady { .. } => remark(one_line(progress)),
        progress => line.show(&one_line(progress)),
    });
    line.finish();
    Ok(run?)
}

fn one_line(progress: Progress) -> String {
    match progress {
        Progress::StartingServer => "starting the server".into(),
        Progress::ServerReady { admin_address, play_url } => {
            let console = admin_address
                .map(|address| format!("its console: http://{address}/ in a browser, `top {address}` in a terminal"));
            let play = play_url.map(|url| format!("play among them: {url}"));
            let told: Vec<String> = console.into_iter().chain(play).collect();
            if told.is_empty() { "the server is ready".into() } else { told.join("\n") }
        }
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
        "{} players  {} worlds awake{}  frame {:.1} ms max of {:.1}  missed {} ({} the host's)  {} packets/s in, {} out  {:.2} cores  {:.0} MB",
        last.players,
        last.worlds_awake,
        if last.saves_are_away { SAVES_ARE_AWAY } else { "" },
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
pub fn tell(run: &LoadRun, json: bool, executable: Executable) -> CommandResult {
    tell_run(run, executable);
    if json {
        say(serde_json::to_string(&run.report)?)?;
    }
    Ok(if run.report.passed { Verdict::Fine } else { Verdict::Failed })
}

/// What came of a run, for a person.
pub fn tell_run(run: &LoadRun, executable: Executable) {
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
    if let Some(saves) = &run.report.saves {
        remark(format_args!("note {saves}"));
    }
    if let Some(last) = run.report.capture_files.last() {
        remark(format_args!(
            "{} captures of bad frames; the last one: {} capture show {last}",
            run.report.capture_files.len(),
            executable.name
        ));
    }
    if let Some(page) = &run.report.report {
        remark(format_args!("report: {page}"));
    }
}
