//! The trial: a server runs with the image's root file system as all that it has, as nobody, and answers.
//!
//! `unshare` gives it a process tree and mounts of its own, as a container's runtime does. That takes root; who is somebody
//! else is told that nothing was tried.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{DATA, EXECUTABLE, NOBODY, unusable};
use crate::error::XtaskError;
use crate::step;

/// As small as a server gets, on ports that are free.
const SERVE: [&str; 10] = [
    "serve",
    "--players",
    "2",
    "--npcs",
    "0",
    "--address",
    "127.0.0.1:0",
    "--admin-address",
    "127.0.0.1:0",
    "--status-json",
];
/// Its first status comes after a second.
const SERVES_FOR: Duration = Duration::from_secs(2);
const ENDS_WITHIN: Duration = Duration::from_secs(20);

pub(super) fn run(root: &Path) -> Result<(), XtaskError> {
    if !step::succeeds(step::program("unshare".as_ref()).args(["--mount", "--pid", "--fork", "true"])) {
        eprintln!("── image: NOT TRIED: mounts and processes of its own take root (CAP_SYS_ADMIN)");
        return Ok(());
    }
    let data = root.join(DATA.trim_start_matches('/'));
    fs::create_dir_all(&data).map_err(|cause| unusable(&data, &cause))?;
    chown(&data, Some(NOBODY), Some(NOBODY)).map_err(|cause| unusable(&data, &cause))?;
    let tried = try_both(root);
    // In the image this folder belongs to somebody else; and what the trial left is nobody's.
    for left in [&data, &root.join("tmp")] {
        empty(left);
    }
    let _ = fs::remove_dir(&data);
    tried
}

fn try_both(root: &Path) -> Result<(), XtaskError> {
    let next = "a library or a file is missing in it; see xtask/src/image/root.rs";
    let version = step::output_of("the image's version", &mut isolated(root, &["--version"]), next)?;
    let answer = serve(root).map_err(|status| XtaskError::Step {
        name: "the image's server".to_owned(),
        status,
        next: next.to_owned(),
    })?;
    eprintln!("── image: {} served for {} s: {answer}", version.trim(), SERVES_FOR.as_secs());
    Ok(())
}

/// The image's executable with the root file system as its own, in a fresh process tree, as nobody.
fn isolated(root: &Path, arguments: &[&str]) -> Command {
    let mut command = step::program("unshare".as_ref());
    command.args(["--mount", "--mount-proc", "--pid", "--fork", "--kill-child"]);
    command.arg(format!("--root={}", root.display())).arg(format!("--wd={DATA}"));
    command.args([format!("--setgid={NOBODY}"), format!("--setuid={NOBODY}")]);
    command.arg(EXECUTABLE).args(arguments);
    // Where it looks for what it needs is up to the image.
    command.env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
    command
}

/// Ends with whoever holds it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server, asks for its health after a while, and has it end. Returns what it said of its health.
fn serve(root: &Path) -> Result<String, String> {
    let mut command = isolated(root, &SERVE);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = Running(command.spawn().map_err(|cause| format!("unshare could not be started: {cause}"))?);
    let mut lines = BufReader::new(server.0.stdout.take().ok_or("it has no output")?).lines();
    let ready = lines.next().and_then(Result::ok).ok_or("it ended before it was ready; its own words are above")?;
    let admin = admin_address(&ready).ok_or_else(|| format!("no admin address in: {ready}"))?;
    // Until its output ends, or it would wait for a reader.
    let reader = thread::spawn(move || lines.map_while(Result::ok).count());
    thread::sleep(SERVES_FOR);
    let answer = health(admin).map_err(|cause| format!("{admin} did not answer: {cause}"))?;
    if !answer.starts_with("HTTP/1.1 200 ") {
        return Err(format!("it is not well: {answer}"));
    }
    // The end of its input is the order to end.
    drop(server.0.stdin.take());
    let begun = Instant::now();
    let status = loop {
        match server.0.try_wait().map_err(|cause| cause.to_string())? {
            Some(status) => break status,
            None if begun.elapsed() > ENDS_WITHIN => return Err(format!("it did not end within {ENDS_WITHIN:?}")),
            None => thread::sleep(Duration::from_millis(20)),
        }
    };
    let told = reader.join().unwrap_or_default();
    if !status.success() || told == 0 {
        return Err(format!("{status}, and {told} lines after it was ready"));
    }
    Ok(answer.lines().last().unwrap_or_default().to_owned())
}

/// Out of `{"ready":{"address":"127.0.0.1:4000","admin_address":"127.0.0.1:9100",...}}`.
fn admin_address(ready: &str) -> Option<SocketAddr> {
    let (_, rest) = ready.split_once("\"admin_address\":\"")?;
    rest.split('"').next()?.parse().ok()
}

fn health(admin: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(admin)?;
    stream.set_read_timeout(Some(ENDS_WITHIN))?;
    write!(stream, "GET /health HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Takes away what is in the folder.
fn empty(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_admin_port_is_found_in_what_a_server_says_when_it_is_ready() {
        let check = |ready: &str, expect: Option<&str>| {
            assert_eq!(admin_address(ready).map(|address| address.to_string()).as_deref(), expect, "{ready}");
        };
        check(r#"{"ready":{"address":"127.0.0.1:4","admin_address":"127.0.0.1:9100"}}"#, Some("127.0.0.1:9100"));
        check(r#"{"ready":{"admin_address":null}}"#, None);
        check("throng: no such setting", None);
    }
}
