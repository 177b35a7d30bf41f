//! `serve --supervised`: the server as a child process, which is started again when it dies.
//!
//! ```text
//! supervisor                            server                            crash monitor
//!   starts ───────────────────────────▶ serves, and starts ─────────────▶ sleeps
//!   sleeps on its end, and on signals   dies                              writes its report, says where it is, ends
//!   pauses, starts another ───────────▶ serves
//!   SIGTERM, SIGINT: passes it on ────▶ ends in order (status 0)
//!   ends with the same status
//! ```
//!
//! It does next to nothing, since whatever it did could fail with the server: it reads no settings, opens no port, and
//! does not wake while the server plays. A server that hangs before its first tick is ended ([`start_watch`]). Reports of deaths are the server's own affair, and come as without a supervisor.
//! Pauses between restarts grow, and there is a maximum of them (see [`restarts`]), so there is no crash loop.
//!
//! No server is left behind: when the supervisor dies, however it does, the kernel asks the server to end. Nothing else
//! passes between the two but the command line, a word when the first tick has run, and what both inherit: standard input,
//! output and error, environment.

mod restarts;
mod start_watch;

use std::{
    ffi::OsString,
    io,
    os::{fd::AsFd, unix::process::ExitStatusExt},
    path::Path,
    process::{Child, Command, ExitStatus},
    time::{Duration, Instant},
};

use clap::Args;
use throng_crash::culprits;
use throng_platform::{children, poll::wait_readable, signals::StopFlag, time::Nanos};

use crate::{
    outcome::{CommandResult, Verdict},
    output::remark,
};
use restarts::{Maximum, Restarts};
use start_watch::StartWatch;

/// The word that makes a supervisor of this command, which its child is not given.
const SUPERVISED: &str = "--supervised";

/// Exit status after the last restart that is allowed.
const DIED_TOO_OFTEN: u8 = 3;

/// Exit status of a mistake in how the command was called, or in its surroundings.
const MISTAKE: i32 = 2;

/// The first server that ends with [`MISTAKE`] sooner than this has never served: another start would not help. Later ones
/// have, and may again: what failed may be the host's disk or port for a moment.
const SERVED_AFTER: Duration = Duration::from_secs(10);

#[derive(Args)]
pub struct SupervisionArguments {
    /// Start the server as a process of its own, and again when it dies of a crash, a kill, or an exit that nobody asked
    /// for.
    #[arg(long)]
    supervised: bool,
    /// With --supervised: restarts at most within `--restarts-within-s`. The next death ends the command, with exit status
    /// 3. Too low: a server that could run again does not; too high: one that never will keeps its players trying.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=100))]
    restarts_max: u32,
    /// With --supervised: the time in which restarts are counted.
    #[arg(long, value_name = "S", default_value_t = 900, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    restarts_within_s: u32,
    /// With --supervised: a server that has run no tick after so long hangs in its start, and is ended and started again; 0 =
    /// as long as it takes. Too low: one with many worlds never gets there; too high: nobody plays meanwhile.
    #[arg(long, value_name = "S", default_value_t = 120, value_parser = clap::value_parser!(u32).range(0..=86_400))]
    start_within_s: u32,
    /// The process that supervises this server, which ends with it.
    #[arg(long, hide = true, value_name = "PID", conflicts_with = "supervised")]
    supervisor: Option<u32>,
    /// The server before this one, of whose death there may be a report soon.
    #[arg(long, hide = true, value_name = "PID", requires = "supervisor")]
    after: Option<u32>,
}

/// What a server may do before it is given up.
#[derive(Clone, Copy)]
pub struct Limits {
    restarts: Maximum,
    /// `None`: a start may take as long as it takes.
    start_within: Option<Duration>,
}

/// A monitor that is at work for longer than this is not waited for: the report of a death takes 3 s, on a host that is not
/// busy.
const REPORT_WITHIN: Duration = Duration::from_secs(30);

/// What this process is to be.
pub enum Role {
    Supervisor(Limits),
    Server,
    /// A server whose supervisor is gone.
    Orphan,
}

impl SupervisionArguments {
    /// A server with a supervisor is asked to end with it from here on.
    pub fn role(&self) -> io::Result<Role> {
        if self.supervised {
            let within = Duration::from_secs(self.restarts_within_s.into());
            let restarts = Maximum { restarts: self.restarts_max, within };
            let start_within = (self.start_within_s > 0).then(|| Duration::from_secs(self.start_within_s.into()));
            return Ok(Role::Supervisor(Limits { restarts, start_within }));
        }
        match self.supervisor {
            Some(supervisor) if !children::end_with_parent(supervisor)? => Ok(Role::Orphan),
            _ => Ok(Role::Server),
        }
    }

    /// The server has a supervisor.
    pub fn is_supervised(&self) -> bool {
        self.supervisor.is_some()
    }

    /// The server before this one has just died: waits until its report says of what, while somebody writes one.
    pub fn wait_for_report(&self, crashes: &Path) {
        if let Some(pid) = self.after {
            culprits::wait_for_report_of(pid, crashes, REPORT_WITHIN);
        }
    }
}

/// Keeps a server running until it ends by itself, until `stop`, or until it has died too often.
pub fn run(limits: Limits, stop: &StopFlag) -> CommandResult {
    let executable = std::env::current_exe()?;
    let began = Instant::now();
    let mut restarts = Restarts::new(limits.restarts);
    let mut watch = StartWatch::open(limits.start_within)?;
    let mut died = None;
    loop {
        let started = Instant::now();
        let mut command = Command::new(&executable);
        command.args(words_for_server(std::env::args_os(), died));
        let mut server = watch.tell(&mut command).spawn()?;
        let status = wait(&mut server, &mut watch, stop)?;
        // A crash monitor that outlives its server becomes the child of a container's first process, which may be this.
        children::clear_away_inherited();
        if stop.requested() || status.success() {
            return ended(status);
        }
        let has_restarted = restarts.has_any();
        if status.code() == Some(MISTAKE) && !has_restarted && started.elapsed() < SERVED_AFTER {
            return ended(status);
        }
        let (lived_s, maximum) = (started.elapsed().as_secs(), restarts.maximum());
        let Some(restart) = restarts.next(began.elapsed()) else {
            remark(format_args!(
                "the server died once more ({status}, after {lived_s} s), and has been restarted {} times within {} s, \
                 which is all that --restarts-max allows; its reports say why (`throng crash list FOLDER`)",
                maximum.restarts,
                maximum.within.as_secs()
            ));
            return Ok(Verdict::Status(DIED_TOO_OFTEN));
        };
        tracing::error!(
            %status,
            lived_s,
            restart = restart.number,
            restarts_max = maximum.restarts,
            pause_ms = restart.pause.as_millis() as u64,
            "the server died, and is started again; its crash monitor says where the report is"
        );
        // One that ended by itself leaves no report.
        died = status.signal().map(|_| server.id());
        if pause(restart.pause, stop)? {
            return Ok(Verdict::Fine);
        }
    }
}

/// The words of this command, for a server that is told who supervises it.
/// `died`: the one before it.
fn words_for_server(own: impl Iterator<Item = OsString>, died: Option<u32>) -> Vec<OsString> {
    let mut words: Vec<_> = own.skip(1).filter(|word| word != SUPERVISED).collect();
    words.extend(["--supervisor".into(), std::process::id().to_string().into()]);
    words.extend(died.iter().flat_map(|pid| ["--after".into(), pid.to_string().into()]));
    words
}

/// Sleeps until the server has ended, and passes an order to end on. One that hangs in its start is ended.
fn wait(server: &mut Child, watch: &mut StartWatch, stop: &StopFlag) -> io::Result<ExitStatus> {
    let end = children::end_of(server.id())?;
    watch.begin();
    let mut is_told = false;
    loop {
        if stop.requested() && !is_told {
            children::ask_to_end(server.id());
            is_told = true;
        }
        // Also comes back when there is the order.
        if watch.wait(end.as_fd())? {
            return server.wait();
        }
        watch.end_if_it_hangs(server);
    }
}

/// True: the pause has ended with the order to stop.
fn pause(length: Duration, stop: &StopFlag) -> io::Result<bool> {
    let end = Instant::now() + length;
    while !stop.requested() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        wait_readable(&[], Some(Nanos(left.as_nanos() as u64)))?;
    }
    Ok(true)
}

/// The server's status as this command's own. One that was killed has none.
fn ended(status: ExitStatus) -> CommandResult {
    match status.code().and_then(|code| u8::try_from(code).ok()) {
        Some(code) => Ok(Verdict::Status(code)),
        None => Err(format!("the server died while it was ending: {status}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_called_as_the_command_was_and_told_who_supervises_it() {
        let own = ["throng", "serve", "--supervised", "--workers", "2"].map(OsString::from);
        let id = std::process::id().to_string();
        let words = ["serve", "--workers", "2", "--supervisor", &id];
        assert_eq!(words_for_server(own.clone().into_iter(), None), words);
        assert_eq!(words_for_server(own.into_iter(), Some(77)), [&words[..], &["--after", "77"]].concat());
    }
}
