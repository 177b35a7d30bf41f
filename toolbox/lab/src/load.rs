//! The daily load test: a server and a swarm of bots as two processes, measured while steady, judged, and ended.
//!
//! ```text
//! start server ─ ready ─ start bots ─ all in ─ settle ─┬─ measure ─┬─ stop bots ─ stop server ─ merge ─ judge
//!                                              measure begin   measure end
//! ```
//!
//! The window opens only when every bot plays: log-ins cost more than playing, and a run's figures must not depend
//! on how long they took. A run that cannot be filled has no window; it ends, fails, and reports who is missing and
//! why. Both processes get one private key, made here, through their environment: a command line can be read by
//! every user of the host.
//!
//! Runs on the caller's thread for as long as the run takes; two threads per child read its output. No child outlives
//! the run: each is told to stop, killed if it does not, and stops by itself if this process dies (see [`child`]).
//!
//! [`child`]: crate::child

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use throng_platform::signals::StopFlag;
use throng_platform::{process, random};

use crate::child::Child;
use crate::listened::{LISTEN_EVERY, Listened, READY_WITHIN, STOP_WITHIN};
use crate::load_report::{FromOutside, LoadReport, NotFilled};
use crate::seconds::Second;

/// Bots that joined last may still be sending what a newcomer sends.
const SETTLE: Duration = Duration::from_secs(2);

/// What to run.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    /// The `throng` executable, usually this process's own.
    pub executable: PathBuf,
    /// For `throng serve`: the game and its size, `--address 127.0.0.1:0` for a free port. `--status-json` is added.
    pub serve_arguments: Vec<String>,
    /// For `throng bots`: the game. `--connect`, `--players` and `--status-json` are added.
    pub bots_arguments: Vec<String>,
    pub players: u32,
    /// Length of the steady window (s, >= 1).
    pub seconds: u32,
    /// All bots must be playing within this long after their start (s). Too low → a slow machine fails without being
    /// measured; too high → a broken log-in takes long to show.
    pub join_within_s: u32,
    /// Nor is it waited for longer than this without another bot that plays. Too low → a pause fails the run; too
    /// high → a server that lets nobody in takes long to show.
    pub stalled_after_s: u32,
    /// The command line as the person wrote it, for the report.
    pub command: String,
}

impl LoadPlan {
    /// Longer than a bot that was sent away rests before it tries again.
    pub const STALLED_AFTER_S: u32 = 30;

    /// Time in which `players` bots log in on a small machine: a minute, and one more per 1,000.
    pub fn default_join_within_s(players: u32) -> u32 {
        60 + players.div_ceil(1_000) * 60
    }
}

/// How far a run is, told about once a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    StartingServer,
    Joining { players: u64, of: u32 },
    Measuring { second: u64, of: u32, last: Second },
    Stopping,
}

/// A finished run: its figures, judged, and what its charts are drawn from.
#[derive(Debug, Clone)]
pub struct LoadRun {
    pub report: LoadReport,
    pub command: String,
    /// Every second of the server's life.
    pub seconds: Vec<Second>,
    /// Places in `seconds` where the steady window began and ended.
    pub window: std::ops::Range<usize>,
    /// Somebody asked for a stop before the window was over.
    pub interrupted: bool,
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("`{executable} {name}` could not be started: {cause}")]
    Start { executable: String, name: &'static str, cause: std::io::Error },
    #[error(
        "`throng {name}` ended early ({status}); run it by hand to look closer: {command}\nits last words:\n{words}"
    )]
    EndedEarly { name: &'static str, status: String, command: String, words: String },
    #[error("`throng serve` was not ready after {} s; its last words:\n{words}", READY_WITHIN.as_secs())]
    NotReady { words: String },
    #[error("`throng {name}` did not report within {} s of the order to stop and was killed", STOP_WITHIN.as_secs())]
    NoReport { name: &'static str },
    #[error("`throng {name}` reported what cannot be read: {cause}; is it of the same build?")]
    BadReport { name: &'static str, cause: String },
    #[error("stopped before all bots were playing: there is nothing to report")]
    Interrupted,
}

/// Runs the plan to its end. `Ok` means that figures were taken; whether they are good is in `report.passed`.
pub fn run(plan: &LoadPlan, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Result<LoadRun, LoadError> {
    let key: String = random::seed().iter().map(|byte| format!("{byte:02x}")).collect();
    let environment = [("THRONG_PRIVATE_KEY", key.as_str())];
    let start = |name, arguments: Vec<String>| -> Result<Listened, LoadError> {
        let child = Child::start(&plan.executable, name, &arguments, &environment)
            .map_err(|cause| LoadError::Start { executable: plan.executable.display().to_string(), name, cause })?;
        let command = format!("{} {name} {}", plan.executable.display(), arguments.join(" "));
        Ok(Listened { child, command, seconds: Vec::new(), last_status: None, report: None })
    };
    let status_json = || ["--status-json".to_owned()];

    progress(Progress::StartingServer);
    let mut server = start("serve", [&plan.serve_arguments[..], &status_json()].concat())?;
    let address = server.wait_ready(stop)?;

    let joining = ["--connect", &address, "--players", &plan.players.to_string()].map(str::to_owned);
    let mut bots = start("bots", [&plan.bots_arguments[..], &joining, &status_json()].concat())?;
    if let Some(not_filled) = wait_all_in(plan, &mut server, &mut bots, stop, progress)? {
        return report_unfilled(plan, server, bots, not_filled, stop, progress);
    }
    listen_for(SETTLE, &mut server, &mut bots, stop, &mut |_| {})?;

    server.child.order("measure begin");
    bots.child.order("measure begin");
    let began = Instant::now();
    let cpu_before = [&server, &bots].map(Listened::cpu_time);
    let window_begin = server.seconds.len();
    let length = Duration::from_secs(plan.seconds.into());
    listen_for(length, &mut server, &mut bots, stop, &mut |server| {
        if let Some(last) = server.seconds.last().copied() {
            progress(Progress::Measuring { second: began.elapsed().as_secs(), of: plan.seconds, last });
        }
    })?;
    let cpu_after = [&server, &bots].map(Listened::cpu_time);
    let measured_s = began.elapsed().as_secs_f64();
    let server_rss_mb = process::rss_bytes_of(server.child.pid()).unwrap_or(0) as f64 / f64::from(1 << 20);
    let window_end = server.seconds.len();
    server.child.order("measure end");
    bots.child.order("measure end");

    progress(Progress::Stopping);
    let bots_report = bots.finish()?;
    let server_report = server.finish()?;

    let cores = |i: usize| cpu_after[i].saturating_sub(cpu_before[i]).as_secs_f64() / measured_s;
    let outside = FromOutside { server_cpu_cores: cores(0), server_rss_mb, bots_cpu_cores: cores(1) };
    let mut report = merge(server_report, bots_report, outside)?;
    report.judge(plan.players);
    Ok(LoadRun {
        report,
        command: plan.command.clone(),
        seconds: server.seconds,
        window: window_begin..window_end,
        interrupted: stop.requested(),
    })
}

fn wait_all_in(
    plan: &LoadPlan,
    server: &mut Listened,
    bots: &mut Listened,
    stop: &StopFlag,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<NotFilled>, LoadError> {
    let began = Instant::now();
    let mut moved = began;
    let mut told = None;
    loop {
        server.listen()?;
        let has_ended = match bots.listen() {
            // They had begun to come in, and none is left, or all are done: what they last said tells why.
            Err(LoadError::EndedEarly { .. }) if bots.last_status.is_some() => true,
            listened => listened.map(|()| false)?,
        };
        let players = bots.players_connected();
        if told != Some(players) {
            progress(Progress::Joining { players, of: plan.players });
            told = Some(players);
            moved = Instant::now();
        }
        if players >= plan.players.into() && !has_ended {
            return Ok(None);
        }
        if stop.requested() {
            return Err(LoadError::Interrupted);
        }
        let is_over = began.elapsed() >= Duration::from_secs(plan.join_within_s.into());
        let is_stalled = moved.elapsed() >= Duration::from_secs(plan.stalled_after_s.into());
        if is_over || is_stalled || has_ended {
            let after_s = began.elapsed().as_secs_f64();
            let status = bots.last_status.clone().unwrap_or_default();
            return Ok(Some(NotFilled::from_status(&status, plan.players, after_s, server.words())));
        }
        std::thread::sleep(LISTEN_EVERY);
    }
}

/// Ends a run that never became steady: what both sides say, and a verdict that it failed.
fn report_unfilled(
    plan: &LoadPlan,
    mut server: Listened,
    mut bots: Listened,
    not_filled: NotFilled,
    stop: &StopFlag,
    progress: &mut dyn FnMut(Progress),
) -> Result<LoadRun, LoadError> {
    progress(Progress::Stopping);
    let last_status = bots.last_status.clone();
    let bots_report = match (bots.finish(), last_status) {
        (Ok(report), _) => report,
        // Bots of which none got in have no report; their last status has the same figures.
        (Err(_), Some(Value::Object(status))) => status,
        (Err(error), _) => return Err(error),
    };
    let mut report = merge(server.finish()?, bots_report, FromOutside::default())?;
    report.not_filled = Some(not_filled);
    report.judge(plan.players);
    let window = server.seconds.len()..server.seconds.len();
    let command = plan.command.clone();
    Ok(LoadRun { report, command, seconds: server.seconds, window, interrupted: stop.requested() })
}

fn merge(server: Map<String, Value>, bots: Map<String, Value>, outside: FromOutside) -> Result<LoadReport, LoadError> {
    LoadReport::merge(server, bots, outside)
        .map_err(|cause| LoadError::BadReport { name: "serve", cause: cause.to_string() })
}

/// Lets time pass and listens; ends early when a stop is asked for. `each` is called after every new server status.
fn listen_for(
    length: Duration,
    server: &mut Listened,
    bots: &mut Listened,
    stop: &StopFlag,
    each: &mut dyn FnMut(&Listened),
) -> Result<(), LoadError> {
    let end = Instant::now() + length;
    while Instant::now() < end && !stop.requested() {
        std::thread::sleep(LISTEN_EVERY.min(end.saturating_duration_since(Instant::now())));
        let count_before = server.seconds.len();
        server.listen()?;
        bots.listen()?;
        if server.seconds.len() > count_before {
            each(server);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
