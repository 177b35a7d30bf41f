//! Children: the `throng` command run to its end, and servers that run while a test plays on them.
//!
//! A server is started as the lab starts it, with a pipe to its stdin: it ends when the pipe ends, so that none is left
//! behind by a test that was killed. Dropping a [`Server`] kills it.

use std::{
    ffi::OsString,
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

pub use nix::sys::signal::Signal;
use nix::{sys::signal::kill, unistd::Pid};
use serde_json::Value;
use throng_platform::testing::as_nobody;

use crate::address::KEY;

/// How often a child is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Time in which any child gets ready or ends, on a machine that is busy with other builds.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Lets one measuring test run at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    // A test that failed leaves nothing half done behind this lock.
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The command that is built with the tests, or another that `THRONG` names: what a full form measures is to be measured of a
/// release build.
pub fn executable() -> OsString {
    let named = std::env::var_os("THRONG").unwrap_or_else(|| env!("CARGO_BIN_EXE_throng").into());
    std::path::absolute(named).expect("there is a working folder").into()
}

/// The [`executable`] with `arguments`, and nothing of ours in its environment: no key, no log filter.
pub fn throng(arguments: &[&str]) -> Command {
    without_ours(Command::new(executable()), arguments)
}

/// The command as a user without privileges, through the shell line `before` (such as `ulimit -n 200`).
///
/// `None` where this process is root, cannot become somebody else who may run the command, and is to go without.
pub fn unprivileged(before: &str, arguments: &[&str]) -> Option<Command> {
    let executable = executable();
    let executable = executable.to_str().expect("a plain path");
    let line = format!("{before} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    if is_root() {
        command = as_nobody(executable)?;
        command.arg("sh");
    }
    command.args(["-c", &line, executable]);
    Some(without_ours(command, arguments))
}

fn without_ours(mut command: Command, arguments: &[&str]) -> Command {
    for ours in ["THRONG_PRIVATE_KEY", "THRONG_ADMIN_KEY", "THRONG_LOG"] {
        command.env_remove(ours);
    }
    command.args(arguments).stdin(Stdio::null());
    // Where what nobody gave a folder may be written.
    command.current_dir(env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Whether this user may start real-time processes, as a server's heartbeat is one.
pub fn may_be_real_time() -> bool {
    Command::new("chrt").args(["-f", "1", "true"]).status().is_ok_and(|status| status.success())
}

pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// What a command said until its end.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// It was refused with the status for that, and told the person at the terminal, and nobody else, all of this.
    #[track_caller]
    pub fn check_refused(&self, parts: &[&str]) {
        assert_eq!((self.status.code(), self.stdout.as_str()), (Some(2), ""), "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in {}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }

    /// The JSON object that `--json` promises as the last line.
    pub fn json(&self) -> Value {
        let line = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}\nstderr: {}", self.stderr))
    }
}

/// Runs a command to its end; kills it and fails if that takes longer than `within`.
pub fn finish(command: Command, within: Duration) -> Finished {
    Started::new(command).finish(within)
}

/// What `throng --version` says of the executable that is tested: `throng 0.1.0 (1234567890ab)`.
pub fn this_build() -> String {
    let said = finish(throng(&["--version"]), PATIENCE).stdout;
    said.trim_end().to_owned()
}

/// A command that runs. Killed when dropped.
pub struct Started {
    command: Command,
    running: Running,
    stdout: Collected,
    stderr: Collected,
}

impl Started {
    pub fn new(mut command: Command) -> Self {
        let mut running = Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"));
        let stdout = Collected::from(running.0.stdout.take().expect("a pipe was asked for"));
        let stderr = Collected::from(running.0.stderr.take().expect("a pipe was asked for"));
        Self { command, running, stdout, stderr }
    }

    /// Returns when it has said `words` to the person before the terminal.
    pub fn wait_for_words(&self, words: &str) {
        let said = wait_until(PATIENCE, || self.stderr.so_far().contains(words).then_some(()));
        assert!(said.is_some(), "{:?} never said {words:?}, but:\n{}", self.command, self.stderr.so_far());
    }

    pub fn pid(&self) -> u32 {
        self.running.0.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid() as i32), signal).expect("it is still there");
    }

    pub fn finish(mut self, within: Duration) -> Finished {
        let status = self.running.wait(within);
        drop(self.running);
        let (stdout, stderr) = (self.stdout.whole(), self.stderr.whole());
        let status = status
            .unwrap_or_else(|| panic!("{:?} still ran after {within:?}; it said:\n{stdout}\n{stderr}", self.command));
        Finished { status, stdout, stderr }
    }
}

/// What comes out of a pipe, kept by a thread so that the child never waits for us.
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Collected {
    fn from(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let kept = bytes.clone();
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4_096];
            while let Ok(len @ 1..) = pipe.read(&mut piece) {
                lock(&kept).extend_from_slice(&piece[..len]);
            }
        });
        Self { bytes, reader }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&lock(&self.bytes)).into_owned()
    }

    /// Everything; waits for the pipe's end.
    fn whole(self) -> String {
        self.reader.join().expect("a reader does not panic");
        String::from_utf8_lossy(&lock(&self.bytes)).into_owned()
    }
}

/// A process that does not outlive its owner.
struct Running(Child);

impl Running {
    fn wait(&mut self, within: Duration) -> Option<ExitStatus> {
        wait_until(within, || self.0.try_wait().expect("a child of ours"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Looks again and again until there is an answer; `None` when there is none in time.
pub fn wait_until<T>(within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + within;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// What a server has said so far. Written by the thread that reads its stdout.
#[derive(Default)]
struct Heard {
    ready: Option<Value>,
    status: Option<Value>,
    report: Option<Value>,
}

/// A server that runs.
pub struct Server {
    running: Running,
    stdin: Option<ChildStdin>,
    /// When it was first told to end.
    ordered_at: Option<Instant>,
    heard: Arc<Mutex<Heard>>,
    stdout: JoinHandle<()>,
    stderr: Collected,
    pub address: SocketAddr,
    pub admin_address: SocketAddr,
}

/// What is left of a server.
pub struct Ended {
    pub status: ExitStatus,
    /// From the order to end.
    pub after: Duration,
    pub report: Value,
    pub stderr: String,
}

impl Server {
    /// `throng serve` with `arguments`, on free ports of loopback, with [`KEY`], and with audit samples for those who ask;
    /// returns when it is ready.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_command(serve(arguments))
    }

    /// The same with every log line that there is.
    pub fn start_talkative(arguments: &[&str]) -> Self {
        let mut command = serve(arguments);
        command.env("THRONG_LOG", "trace");
        Self::start_command(command)
    }

    /// A `serve` that is put together already, with both addresses.
    pub fn start_command(mut command: Command) -> Self {
        command.arg("--status-json").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running(command.spawn().expect("it starts"));
        let heard = Arc::new(Mutex::new(Heard::default()));
        let stdout = running.0.stdout.take().expect("a pipe was asked for");
        let listener = {
            let heard = heard.clone();
            std::thread::spawn(move || listen(stdout, &heard))
        };
        let stderr = Collected::from(running.0.stderr.take().expect("a pipe was asked for"));
        let ready = wait_until(PATIENCE, || {
            lock(&heard).ready.take().or_else(|| running.0.try_wait().expect("a child of ours").map(|_| Value::Null))
        });
        let Some([address, admin_address]) = ready.as_ref().and_then(addresses_in) else {
            drop(running);
            panic!("{command:?} said {ready:?} instead of two addresses\n{}", stderr.whole());
        };
        let stdin = running.0.stdin.take();
        Self { running, stdin, ordered_at: None, heard, stdout: listener, stderr, address, admin_address }
    }

    pub fn pid(&self) -> u32 {
        self.running.0.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid() as i32), signal).expect("it runs");
    }

    /// What it has written to its log so far.
    pub fn said(&self) -> String {
        self.stderr.so_far()
    }

    /// The status of the last second; nothing before the first.
    pub fn status(&self) -> Value {
        lock(&self.heard).status.clone().unwrap_or_default()
    }

    /// A figure of the last second's status, once there is one for which `is_so` holds.
    pub fn wait_for_status(&self, key: &str, is_so: impl Fn(f64) -> bool) -> f64 {
        let found =
            wait_until(PATIENCE, || lock(&self.heard).status.as_ref()?.get(key)?.as_f64().filter(|&it| is_so(it)));
        found.unwrap_or_else(|| panic!("`{key}` stays wrong; the last status is {:?}", lock(&self.heard).status))
    }

    /// Waits for the server that comes after one that died, where there is a supervisor; its addresses are new.
    pub fn wait_until_ready_again(&mut self) {
        let ready = wait_until(PATIENCE, || lock(&self.heard).ready.take());
        let addresses = ready.as_ref().and_then(addresses_in);
        [self.address, self.admin_address] =
            addresses.unwrap_or_else(|| panic!("it said {ready:?}\n{}", self.stderr.so_far()));
    }

    pub fn is_running(&mut self) -> bool {
        self.running.0.try_wait().expect("a child of ours").is_none()
    }

    /// What `kill PID` sends.
    pub fn signal_to_end(&mut self) {
        self.ordered_at.get_or_insert_with(Instant::now);
        kill(Pid::from_raw(self.pid() as i32), Signal::SIGTERM).expect("it is still there");
    }

    /// Ends it as its parent would, and returns what it leaves.
    pub fn stop(mut self) -> Ended {
        self.ordered_at.get_or_insert_with(Instant::now);
        self.stdin = None;
        self.wait()
    }

    /// Waits for the end that was ordered by now.
    pub fn wait(mut self) -> Ended {
        let ordered_at = self.ordered_at.expect("it was told to end");
        let status = self.running.wait(PATIENCE).expect("a server that was told to end does so");
        let after = ordered_at.elapsed();
        self.stdout.join().expect("every line of a server is JSON that is known");
        let stderr = self.stderr.whole();
        let report = lock(&self.heard).report.take();
        let report = report.unwrap_or_else(|| panic!("no report, {status}; stderr:\n{stderr}"));
        Ended { status, after, report, stderr }
    }
}

fn serve(arguments: &[&str]) -> Command {
    let mut command =
        throng(&["serve", "--address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0", "--audit-samples"]);
    command.args(arguments).env("THRONG_PRIVATE_KEY", KEY);
    command
}

/// For players, and for operators.
fn addresses_in(ready: &Value) -> Option<[SocketAddr; 2]> {
    let address = |key| ready.get(key)?.as_str()?.parse().ok();
    Some([address("address")?, address("admin_address")?])
}

fn listen(stdout: impl Read, heard: &Mutex<Heard>) {
    for line in BufReader::new(stdout).lines() {
        let Ok(line) = line else { break };
        let Ok(Value::Object(said)) = serde_json::from_str(&line) else { panic!("not a JSON object: {line:?}") };
        let mut heard = lock(heard);
        for (key, value) in said {
            match key.as_str() {
                "ready" => heard.ready = Some(value),
                "status" => heard.status = Some(value),
                "report" => heard.report = Some(value),
                _ => panic!("an unknown word: {line:?}"),
            }
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A settings file of its own for a test.
pub fn settings_file(name: &str, text: &str) -> std::path::PathBuf {
    let path = folder(name).join("throng.toml");
    std::fs::write(&path, text).expect("a folder of ours");
    path
}

/// Captures in a folder and in those in it, by path.
pub fn captures_in(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = |folder: &std::path::Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries(folder).map(|entry| entry.path()).filter(|path| path.is_dir());
    let inside = folders.flat_map(|inside| entries(&inside).collect::<Vec<_>>());
    let paths = entries(folder).chain(inside).map(|entry| entry.path());
    let mut captures: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "capture")).collect();
    captures.sort();
    captures
}

/// A folder of its own for a test, empty.
pub fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It is there when the test ran before.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}
