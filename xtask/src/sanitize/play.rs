//! Play: the shipped server under the address sanitizer, with bots on it, for so long (R39: 15 minutes).
//!
//! Each game has a server of its own, one after the other, and bots in another process of the same build. What the sanitizer
//! finds ends the process that did it, and lies in a file beside the build; a run without such a file, whose bots have played
//! to the end and whose server ends in order, has passed. Nobody judges how fast it was: instrumented code is several times as
//! slow.
//!
//! A sanitized build has the system's allocator in place of ours, in which it could not tell blocks apart. The standard library
//! is not built along, as the thread sanitizer's is: what it reads and writes beyond a block by itself is not found.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{Sanitizer, TARGET, TOOLCHAIN};
use crate::error::XtaskError;
use crate::step::{self, cargo_of};

/// Each with so many NPCs, where it has any.
const GAMES: [(&str, Option<u32>); 3] = [("precinct", Some(160)), ("frontier", Some(160)), ("duel", None)];

/// Any key will do, on loopback.
const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

const NEXT: &str = "the report above says which memory; make it a test, then repair it";

pub(super) fn run(seconds: u32, players: u32) -> Result<(), XtaskError> {
    let executable = build()?;
    let reports = step::root().join(Sanitizer::Address.folder()).join("reports");
    let each_s = (seconds / GAMES.len() as u32).max(1);
    for (game, npcs) in GAMES {
        play(&Run { executable: &executable, reports: &reports, game, npcs, seconds: each_s, players })?;
    }
    Ok(())
}

/// The shipped command, instrumented.
fn build() -> Result<PathBuf, XtaskError> {
    let mut command = cargo_of(TOOLCHAIN);
    command.args(["build", "--locked", "--package", "throng-shipped", "--bin", "throng", "--target", TARGET]);
    command.args(["--target-dir", &Sanitizer::Address.folder()]);
    command.env("RUSTFLAGS", Sanitizer::Address.flags());
    step::run("build for address", &mut command, "put right what it names")?;
    Ok(step::root().join(Sanitizer::Address.folder()).join(TARGET).join("debug/throng"))
}

struct Run<'a> {
    executable: &'a Path,
    /// Where the sanitizer writes.
    reports: &'a Path,
    game: &'a str,
    npcs: Option<u32>,
    seconds: u32,
    players: u32,
}

impl Run<'_> {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = step::program(self.executable.as_os_str());
        command.args(words).args(["--game", self.game]).env("THRONG_PRIVATE_KEY", KEY).env_remove("THRONG_LOG");
        // What lives as long as the process is leaked on purpose. A report ends the process: nothing after it counts.
        let log = self.reports.join(self.game).display().to_string();
        command.env("ASAN_OPTIONS", format!("detect_leaks=0:halt_on_error=1:log_path={log}"));
        command
    }

    /// What the sanitizer has written.
    fn found(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.reports).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }
}

/// A server that is not left behind.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn play(run: &Run<'_>) -> Result<(), XtaskError> {
    let name = format!("sanitize address, {}", run.game);
    let failed = |status: String| XtaskError::Step { name: name.clone(), status, next: NEXT.to_owned() };
    // Of an earlier run.
    let _ = fs::remove_dir_all(run.reports);
    fs::create_dir_all(run.reports).map_err(|cause| failed(format!("no folder for reports: {cause}")))?;

    let players = run.players.to_string();
    let mut command = run.command(&["serve", "--address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0"]);
    command.args(["--status-json", "--crashes", "off", "--audit-samples", "--players", &players]);
    command.args(run.npcs.iter().flat_map(|npcs| ["--npcs".to_owned(), npcs.to_string()]));
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut server = Server(started.map_err(|cause| failed(format!("the server does not start: {cause}")))?);
    let stdout = server.0.stdout.take().ok_or_else(|| failed("it has no output".to_owned()))?;
    let mut lines = BufReader::new(stdout).lines();
    let address = lines.by_ref().map_while(Result::ok).find_map(|line| address_in(&line));
    let Some(address) = address else { return Err(tell(run, failed("the server never was ready".to_owned()))) };
    // It says something every second, and nobody is to make it wait.
    std::thread::spawn(move || lines.for_each(drop));

    let seconds = run.seconds.to_string();
    let mut bots = run.command(&["bots", "--connect", &address, "--players", &players, "--seconds", &seconds]);
    bots.arg("--low-priority");
    let played = step::run(&name, &mut bots, NEXT);
    // The end of its input is the order to end.
    drop(server.0.stdin.take());
    let status = server.0.wait().map_err(|cause| failed(format!("the server cannot be waited for: {cause}")))?;
    match (played, status.success(), run.found().is_empty()) {
        (Ok(()), true, true) => Ok(()),
        (Err(error), true, true) => Err(error),
        (_, _, false) => Err(tell(run, failed("the sanitizer found something".to_owned()))),
        (_, false, true) => Err(failed(format!("the server ended with {status}"))),
    }
}

/// Shows what the sanitizer wrote.
fn tell(run: &Run<'_>, error: XtaskError) -> XtaskError {
    for path in run.found() {
        eprintln!("── {}\n{}", path.display(), fs::read_to_string(&path).unwrap_or_default());
    }
    error
}

/// Where players find the server, in the line that says it is ready.
fn address_in(line: &str) -> Option<String> {
    let said: Value = serde_json::from_str(line).ok()?;
    said.get("ready")?.get("address")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_in_the_line_that_says_it_is_ready() {
        assert_eq!(address_in(r#"{"status":{"players":3}}"#), None);
        assert_eq!(address_in("no JSON"), None);
        let ready = r#"{"ready":{"address":"127.0.0.1:40123","admin_address":"127.0.0.1:40124"}}"#;
        assert_eq!(address_in(ready).as_deref(), Some("127.0.0.1:40123"));
    }
}
