//! The load test: a server and a swarm of bots as two processes, measured when settled, judged, and ended.
//!
//! ```text
//! start server ─ ready ─ start bots ─ all in ─ settle ─┬─ measure ─┬─ stop bots ─ stop server ─ merge ─ judge
//!                                              measure begin   measure end
//! ```
//!
//! The window opens only when every bot plays and nothing moves any more ([`settling`]): log-ins cost more than playing,
//! and in its first minute a run is not the load that it stands for. A scenario that is about log-ins has its window
//! open with the first bot.
//!
//! However a run ends, it reports. One that cannot be filled has no window, fails, and says who is missing and why; one
//! whose server or bots end before their time, or badly, fails, says how they ended, and has the figures that there are.
//! Without a report is only what never began: a server that does not get ready, bots that cannot be started, a stop before all bots
//! play.
//!
//! Both processes get one private key, made here, through their environment: a command line can be read by
//! every user of the host.
//!
//! Runs on the caller's thread for as long as the run takes; two threads per child read its output. No child outlives
//! the run: each is told to stop, killed if it does not, and stops by itself if this process dies (see [`child`]).
//!
//! [`child`]: crate::child
//! [`settling`]: crate::settling

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use throng_crash::deaths;
use throng_platform::signals::StopFlag;
use throng_platform::time::Nanos;
use throng_platform::{process, random};

use crate::child::Child;
use crate::left_behind::{captures_since, wait_for_crash_report};
use crate::listened::{Ending, LISTEN_EVERY, Listened, READY_WITHIN, STOP_WITHIN};
use crate::load_report::{EndedEarly, FromOutside, LoadReport, NotFilled, condition};
use crate::seconds::Second;
use crate::settling::Settling;

/// Bots that joined last may still be sending what a newcomer sends.
const NEWCOMERS_FOR: Duration = Duration::from_secs(2);

/// When the measured window opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowBegin {
    /// When all bots are in and the run has settled, which takes `s_min` at least by the game's word; or after `s_max`
    /// without (s). 0: it is not waited for.
    Settled { s_min: u32, s_max: u32 },
    /// With the first bot: it is the log-ins that are measured.
    FirstBot,
}

/// What to run.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    /// The executable with the commands `serve` and `bots`, usually this process's own.
    pub executable: PathBuf,
    /// What is played, and how, for the report: the lab knows no game.
    pub game: String,
    pub scenario: String,
    /// What else shapes the load, for the report, by the keys in [`condition`]; what follows from this plan's other fields and from the
    /// server's report is added.
    pub conditions: BTreeMap<String, String>,
    /// For `serve`: the game and its size, `--address 127.0.0.1:0` for a free port. `--status-json` is added.
    pub serve_arguments: Vec<String>,
    /// For `bots`: the game. `--connect`, `--players`, `--low-priority` and `--status-json` are added.
    pub bots_arguments: Vec<String>,
    pub players: u32,
    pub window_begin: WindowBegin,
    /// Length of the steady window (s, >= 1); of what follows the last bot's arrival, if it opens with the first.
    pub seconds: u32,
    /// A stop is how the window is to end; otherwise it is an interruption, and the run has not passed.
    pub until_stopped: bool,
    /// All bots must be playing within this long after their start (s). Too low → a slow machine fails without being
    /// measured; too high → a broken log-in takes long to show.
    pub join_within_s: u32,
    /// Nor is it waited for longer than this without another bot that plays. Too low → a pause fails the run; too
    /// high → a server that lets nobody in takes long to show.
    pub stalled_after_s: u32,
    /// Where the server was told to leave captures and crash reports, for the report to name them.
    pub captures: Option<PathBuf>,
    pub crashes: Option<PathBuf>,
    /// The command line as the person wrote it, for the report.
    pub command: String,
}

impl LoadPlan {
    /// Longer than a bot that was sent away rests before it tries again.
    pub const STALLED_AFTER_S: u32 = 30;
    /// Half a minute of stillness is waited for at most so long: what has not settled by then does so in hours, if at
    /// all, and is told.
    pub const SETTLE_S_MAX: u32 = 300;

    fn all_conditions(&self, workers: Option<u64>) -> BTreeMap<String, String> {
        let mut conditions = self.conditions.clone();
        conditions.insert(condition::PLAYERS.to_owned(), self.players.to_string());
        if let WindowBegin::Settled { s_max: 0, .. } = self.window_begin {
            conditions.insert(condition::SETTLING.to_owned(), "none".to_owned());
        }
        conditions.extend(workers.map(|workers| (condition::WORKERS.to_owned(), workers.to_string())));
        conditions
    }

    /// Time in which `players` bots log in on a small machine: a minute, and one more per 1,000.
    pub fn default_join_within_s(players: u32) -> u32 {
        60 + players.div_ceil(1_000) * 60
    }
}

/// How far a run is, told about once a second.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    StartingServer,
    /// The server can be used: where it can be watched, and where a person plays in a browser, if anywhere.
    ServerReady {
        admin_address: Option<String>,
        play_url: Option<String>,
    },
    Joining {
        players: u64,
        of: u32,
    },
    /// `settling` says what moved in the last half minute.
    Settling {
        second: u64,
        last: Second,
        settling: Settling,
    },
    Measuring {
        second: u64,
        of: u32,
        last: Second,
    },
    Stopping,
}

/// A finished run: its figures, judged, and what its charts are drawn from.
#[derive(Debug, Clone)]
pub struct LoadRun {
    pub report: LoadReport,
    pub command: String,
    /// Every second of the server's life.
    pub seconds: Vec<Second>,
    /// Places in `seconds` where the window began and ended.
    pub window: std::ops::Range<usize>,
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("`{executable} {name}` could not be started: {cause}")]
    Start { executable: String, name: &'static str, cause: std::io::Error },
    #[error("`{name}` ended early ({status}); run it by hand to look closer: {command}\nits last words:\n{words}")]
    EndedEarly { name: &'static str, status: String, command: String, words: String },
    #[error("`serve` was not ready after {} s; its last words:\n{words}", READY_WITHIN.as_secs())]
    NotReady { words: String },
    #[error("`{name}` did not report within {} s of the order to stop and was killed", STOP_WITHIN.as_secs())]
    NoReport { name: &'static str },
    #[error("`{name}` reported, still ran {} s after the order to stop, and was killed", STOP_WITHIN.as_secs())]
    StillRuns { name: &'static str },
    #[error("`{name}` reported what cannot be read: {cause}; is it of the same build?")]
    BadReport { name: &'static str, cause: String },
    #[error("stopped before all bots were playing: there is nothing to report")]
    Interrupted,
}

/// Runs the plan to its end. `Ok` means that there is a report; whether it is good is in `report.passed`.
pub fn run(plan: &LoadPlan, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Result<LoadRun, LoadError> {
    let key: String = random::seed().iter().map(|byte| format!("{byte:02x}")).collect();
    let environment = [("THRONG_PRIVATE_KEY", key.as_str())];
    let start = |name, arguments: Vec<String>| -> Result<Listened, LoadError> {
        let child = Child::start(&plan.executable, name, &arguments, &environment)
            .map_err(|cause| LoadError::Start { executable: plan.executable.display().to_string(), name, cause })?;
        let command = format!("{} {name} {}", plan.executable.display(), arguments.join(" "));
        Ok(Listened { child, command, ready: Value::Null, seconds: Vec::new(), last_status: None, report: None })
    };
    let status_json = || ["--status-json".to_owned()];

    progress(Progress::StartingServer);
    let started_at = SystemTime::now();
    let mut server = start("serve", [&plan.serve_arguments[..], &status_json()].concat())?;
    let ready = server.wait_ready(stop);
    if let (Err(LoadError::EndedEarly { .. }), Some(folder)) = (&ready, plan.crashes.as_deref())
        && server.died()
    {
        // Here there is no run for it to be told in; who looks into the folder then finds all of it.
        let _ = wait_for_crash_report(folder, server.child.pid());
    }
    let address = ready.inspect_err(|_| drop(server.finish()))?;
    let told = |key: &str| server.ready.get(key).and_then(Value::as_str).map(str::to_owned);
    progress(Progress::ServerReady { admin_address: told("admin_address"), play_url: told("play_url") });
    // Bots are players from elsewhere: a worker of the server that wakes must not wait until one's turn is over.
    let joining = ["--connect", &address, "--players", &plan.players.to_string(), "--low-priority"].map(str::to_owned);
    let bots = start("bots", [&plan.bots_arguments[..], &joining, &status_json()].concat());
    let bots = bots.inspect_err(|_| drop(server.finish()))?;

    let began = Instant::now();
    let mut course =
        Course { plan, stop, server, bots, started_at, began, during: "joining", settling: None, window: None };
    let played = course.play(progress);
    progress(Progress::Stopping);
    course.finish(played)
}

/// The window, from when it opens.
struct Window {
    /// Places in the server's seconds.
    begin: usize,
    end: Option<usize>,
    /// Somebody wanted it to end before its time.
    interrupted: bool,
    began: Instant,
    cpu_before: [Nanos; 2],
    outside: FromOutside,
}

/// A run under way.
struct Course<'a> {
    plan: &'a LoadPlan,
    stop: &'a StopFlag,
    server: Listened,
    bots: Listened,
    started_at: SystemTime,
    /// When the bots were started.
    began: Instant,
    /// What the run is at, in a word.
    during: &'static str,
    settling: Option<Settling>,
    window: Option<Window>,
}

impl Course<'_> {
    /// From the start of the bots to the end of the window.
    fn play(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<Option<NotFilled>, LoadError> {
        if self.plan.window_begin == WindowBegin::FirstBot {
            self.open_window();
        }
        if let Some(not_filled) = self.wait_all_in(progress)? {
            return Ok(Some(not_filled));
        }
        if let WindowBegin::Settled { s_min, s_max } = self.plan.window_begin {
            self.during = "settling";
            self.settle(s_min, s_max, progress)?;
            if self.stop.requested() {
                return Ok(None);
            }
            self.open_window();
        }
        self.during = "measuring";
        let (began, of) = (Instant::now(), self.plan.seconds);
        self.listen_until(Duration::from_secs(of.into()), &mut |seconds| {
            if let Some(last) = seconds.last().cloned() {
                progress(Progress::Measuring { second: began.elapsed().as_secs(), of, last });
            }
            false
        })?;
        self.close_window();
        Ok(None)
    }

    fn wait_all_in(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<Option<NotFilled>, LoadError> {
        let Self { plan, stop, server, bots, began, .. } = self;
        let mut moved = *began;
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
                // Bots also end when their server does; then that is why.
                server.listen()?;
                let after_s = began.elapsed().as_secs_f64();
                let status = bots.last_status.clone().unwrap_or_default();
                return Ok(Some(NotFilled::from_status(&status, plan.players, after_s, server.words())));
            }
            std::thread::sleep(LISTEN_EVERY);
        }
    }

    /// Waits until nothing moves any more, or as long as it may.
    fn settle(&mut self, s_min: u32, s_max: u32, progress: &mut dyn FnMut(Progress)) -> Result<(), LoadError> {
        let (began, first) = (Instant::now(), self.server.seconds.len());
        self.listen_until(NEWCOMERS_FOR, &mut |_| false)?;
        if s_max == 0 {
            return Ok(());
        }
        let mut settling = Settling::new(self.plan.players, s_min, s_max);
        let left = Duration::from_secs(s_max.into()).saturating_sub(began.elapsed());
        let looked = self.listen_until(left, &mut |seconds| {
            let is_settled = settling.look(&seconds[first..]);
            if let Some(last) = seconds.last().cloned() {
                let second = began.elapsed().as_secs();
                progress(Progress::Settling { second, last, settling: settling.clone() });
            }
            is_settled
        });
        settling.after_s = began.elapsed().as_secs_f64();
        self.settling = Some(settling);
        looked
    }

    fn open_window(&mut self) {
        self.server.child.order("measure begin");
        self.bots.child.order("measure begin");
        self.window = Some(Window {
            begin: self.server.seconds.len(),
            end: None,
            interrupted: false,
            began: Instant::now(),
            cpu_before: [self.server.cpu_time(), self.bots.cpu_time()],
            outside: FromOutside::default(),
        });
    }

    fn close_window(&mut self) {
        let cpu_after = [self.server.cpu_time(), self.bots.cpu_time()];
        if let Some(window) = &mut self.window {
            let measured_s = window.began.elapsed().as_secs_f64();
            let cores = |i: usize| cpu_after[i].saturating_sub(window.cpu_before[i]).as_secs_f64() / measured_s;
            let rss_bytes = process::rss_bytes_of(self.server.child.pid()).unwrap_or(0);
            window.outside = FromOutside {
                server_cpu_cores: cores(0),
                server_rss_mb: rss_bytes as f64 / 1e6,
                bots_cpu_cores: cores(1),
            };
            window.end = Some(self.server.seconds.len());
            window.interrupted = self.stop.requested() && !self.plan.until_stopped;
        }
        self.server.child.order("measure end");
        self.bots.child.order("measure end");
    }

    /// Lets time pass and listens; ends early when a stop is asked for, or when `each`, which is called after every new
    /// status of the server with all of its seconds, says that it is enough.
    fn listen_until(&mut self, length: Duration, each: &mut dyn FnMut(&[Second]) -> bool) -> Result<(), LoadError> {
        let end = Instant::now() + length;
        while Instant::now() < end && !self.stop.requested() {
            std::thread::sleep(LISTEN_EVERY.min(end.saturating_duration_since(Instant::now())));
            let count_before = self.server.seconds.len();
            self.server.listen()?;
            self.bots.listen()?;
            if self.server.seconds.len() > count_before && each(&self.server.seconds) {
                break;
            }
        }
        Ok(())
    }

    /// Ends both processes, puts together what there is to say, and judges it.
    fn finish(mut self, played: Result<Option<NotFilled>, LoadError>) -> Result<LoadRun, LoadError> {
        let played = match played {
            Ok(not_filled) => Ok((not_filled, None)),
            Err(error) => self.early_end(error).map(|ended| (None, Some(ended))),
        };
        self.during = "stopping";
        let last_status = self.bots.last_status.clone();
        // Whatever there is to say of it: a server that were killed would leave the report of a death.
        let of_bots = self.bots.finish();
        let bots_ended_after_s = self.began.elapsed().as_secs_f64();
        let of_server = self.server.finish();
        let (not_filled, mut ended_early) = played?;
        let Ending { report, fault } = of_bots;
        // Bots of which none got in have no report, nor have those that died; their last status has the same figures.
        let bots_report = report.or_else(|| last_status.as_ref().and_then(Value::as_object).cloned());
        if let Some(fault) = fault
            && ended_early.is_none()
        {
            if bots_report.is_none() {
                return Err(fault);
            }
            if not_filled.is_none() {
                ended_early = Some(EndedEarly { after_s: bots_ended_after_s, ..self.early_end(fault)? });
            }
        }
        let Ending { report: server_report, fault } = of_server;
        let is_told = ended_early.as_ref().is_some_and(|ended| ended.process == "serve");
        if let Some(fault) = fault
            && !is_told
        {
            // Bots end, too, when their server no longer answers: the server's end takes the place of theirs.
            let of_server = self.early_end(fault)?;
            let of_bots = ended_early.map(|ended| ended.to_string());
            ended_early = Some(EndedEarly { other: of_bots, ..of_server });
        }

        let Self { plan, stop, server, settling, window, .. } = self;
        let is_measured = window.is_some();
        let Window { begin, end, outside, interrupted, .. } = window.unwrap_or(Window {
            begin: server.seconds.len(),
            end: None,
            interrupted: stop.requested(),
            began: self.began,
            cpu_before: [Nanos::ZERO; 2],
            outside: FromOutside::default(),
        });
        let range = begin..end.unwrap_or(server.seconds.len());
        let of_window = if is_measured { &server.seconds[range.clone()] } else { &server.seconds[..] };
        let server_report = server_report.unwrap_or_else(|| Second::sum_up(of_window));
        let mut report = LoadReport::merge(server_report, bots_report.unwrap_or_default(), outside)
            .map_err(|cause| LoadError::BadReport { name: "serve", cause: cause.to_string() })?;
        if report.game.is_empty() {
            report.game.clone_from(&plan.game);
        }
        // Also of a server that died without a report.
        let said_at_start = |key: &str| server.ready.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        (report.version, report.commit) = (said_at_start("version"), said_at_start("commit"));
        report.scenario.clone_from(&plan.scenario);
        report.conditions = plan.all_conditions(report.more.get("workers").and_then(Value::as_u64));
        report.settling = settling;
        report.players_by_kind = Second::mean_players_by_kind(&server.seconds[range.clone()]);
        report.not_filled = not_filled;
        report.ended_early = ended_early;
        report.interrupted = interrupted;
        let captures = plan.captures.as_deref().map(|folder| captures_since(folder, self.started_at));
        report.capture_files = captures.unwrap_or_default();
        // No death, no folder.
        let deaths = plan.crashes.as_deref().and_then(|folder| deaths::in_folder(folder).ok());
        report.deaths = deaths.unwrap_or_default().groups;
        report.judge(plan.players);
        // Nothing was measured, so nothing has passed.
        report.passed &= is_measured;
        Ok(LoadRun { report, command: plan.command.clone(), seconds: server.seconds, window: range })
    }

    /// What there is to say of a process that ended before its time. What never began to work stays an error, since it
    /// is somebody's mistake, and it is told how to mend it.
    fn early_end(&mut self, error: LoadError) -> Result<EndedEarly, LoadError> {
        let after = format!("{} s after the order to stop", STOP_WITHIN.as_secs());
        let (name, status, words) = match error {
            LoadError::EndedEarly { name: "bots", .. } if self.bots.last_status.is_none() => return Err(error),
            LoadError::EndedEarly { name, status, words, .. } => (name, status, words),
            LoadError::NoReport { name } => (name, format!("no report {after}"), self.words_of(name)),
            LoadError::StillRuns { name } => (name, format!("it reported, and still ran {after}"), self.words_of(name)),
            other => return Err(other),
        };
        let is_server = name == "serve";
        let folder = self.plan.crashes.as_deref().filter(|_| is_server);
        let crash = folder.and_then(|folder| wait_for_crash_report(folder, self.server.child.pid()));
        let (crash_report, crash_words) =
            crash.map_or((None, None), |(path, words)| (Some(path.display().to_string()), Some(words)));
        Ok(EndedEarly {
            process: name.to_owned(),
            during: self.during.to_owned(),
            after_s: self.began.elapsed().as_secs_f64(),
            status,
            words,
            crash_report,
            crash_words,
            command: if is_server { self.server.command.clone() } else { self.bots.command.clone() },
            other: None,
        })
    }

    fn words_of(&mut self, name: &str) -> String {
        let child = if name == "serve" { &mut self.server } else { &mut self.bots };
        child.words()
    }
}

#[cfg(test)]
mod tests;
