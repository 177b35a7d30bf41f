//! A PostgreSQL server for one test, as nobody where the test is root, whom it refuses to serve.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use throng_platform::{process::user_id, testing::not_permitted};

use crate::folder::Folder;

const NOBODY: u32 = 65_534;

pub struct Cluster {
    programs: PathBuf,
    server: Child,
    /// Last: it goes when the server is gone.
    folder: Folder,
}

impl Cluster {
    /// `None` where it cannot be tried, which was said.
    pub fn start(test: &str) -> Option<Cluster> {
        let Some(programs) = programs() else {
            not_permitted("PostgreSQL is not installed: `apt-get install postgresql`");
            return None;
        };
        let folder = Folder::new(test);
        if user_id() == 0 {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let mut initdb = command(&programs.join("initdb"));
        initdb.args(["--username=throng", "--auth=trust", "--no-locale", "--encoding=UTF8", "--pgdata"]);
        let made = initdb.arg(folder.path().join("data")).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let server = serve(&programs, folder.path());
        let cluster = Cluster { programs, server, folder };
        cluster.await_ready();
        Some(cluster)
    }

    pub fn parameters(&self) -> String {
        format!("host={} user=throng dbname=postgres connect_timeout=5", self.folder.path().display())
    }

    /// One statement, past the store.
    pub fn run(&self, statement: &str) {
        let done = self.client("psql").args(["--set=ON_ERROR_STOP=1", "--command", statement]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// What a query finds, past the store.
    #[allow(dead_code, reason = "for the tests of servers that save in it")]
    pub fn ask(&self, query: &str) -> String {
        let done = self.client("psql").args(["--tuples-only", "--no-align", "--command", query]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// A session that has done this in a transaction, and waits until it is dropped.
    #[allow(dead_code, reason = "for the tests of servers that save in it")]
    pub fn hold(&self, statement: &str) -> Held {
        let mut psql = self.client("psql").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut answers = BufReader::new(psql.stdout.take().unwrap()).lines();
        writeln!(psql.stdin.as_mut().unwrap(), "BEGIN; {statement};\n\\echo done").unwrap();
        assert!(answers.any(|line| line.unwrap() == "done"), "{statement}");
        Held(psql)
    }

    pub fn kill_and_start(&mut self) {
        self.kill();
        // Its children go when they see that it is gone; until then no other starts.
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            self.server = serve(&self.programs, self.folder.path());
            if self.becomes_ready() {
                return;
            }
            assert!(Instant::now() < deadline, "the server does not start again");
            self.kill();
        }
    }

    /// All of its processes stand still until what this returns is dropped.
    #[allow(dead_code, reason = "for the tests of servers that save in it")]
    pub fn stop(&self) -> Stopped {
        let main = self.server.id();
        let children = std::fs::read_to_string(format!("/proc/{main}/task/{main}/children")).unwrap_or_default();
        let all: Vec<String> =
            std::iter::once(main.to_string()).chain(children.split(' ').map(str::to_owned)).collect();
        let stopped = Stopped(all.into_iter().filter(|pid| !pid.is_empty()).collect());
        stopped.signal("-STOP");
        stopped
    }

    fn kill(&mut self) {
        _ = self.server.kill();
        _ = self.server.wait();
    }

    fn await_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.is_ready() {
            assert!(Instant::now() < deadline, "the server does not answer");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// False if it ends before.
    fn becomes_ready(&mut self) -> bool {
        while self.server.try_wait().unwrap().is_none() {
            if self.is_ready() {
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        false
    }

    fn is_ready(&self) -> bool {
        self.client("pg_isready").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.args(["--username=throng", "--dbname=postgres", "--host"]).arg(self.folder.path());
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill();
        // Its children write until they see that it is gone.
        thread::sleep(Duration::from_millis(200));
    }
}

/// A session with a transaction that nobody ends.
pub struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        _ = self.0.wait();
    }
}

/// Processes that stand still.
pub struct Stopped(Vec<String>);

impl Stopped {
    fn signal(&self, signal: &str) {
        // One of them may be gone.
        _ = Command::new("kill").arg(signal).args(&self.0).status();
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.signal("-CONT");
    }
}

fn serve(programs: &Path, folder: &Path) -> Child {
    let mut server = command(&programs.join("postgres"));
    server.arg("-D").arg(folder.join("data")).arg("-k").arg(folder).args(["-c", "listen_addresses="]);
    server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// As nobody, where this is root.
fn command(program: &Path) -> Command {
    if user_id() != 0 {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(program);
    command
}

/// Where Debian has them, the newest version; else the path.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    folders.extend(std::env::split_paths(&path));
    folders.into_iter().find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}
