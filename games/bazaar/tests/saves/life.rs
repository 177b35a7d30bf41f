//! One life of a server: `bazaar serve` in a folder, what it says to its parent, and what it tells the ledger.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use bazaar::{DONE, Wealth, stalls::STALL};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

use crate::little_memory::LittleMemory;

/// Sixty-four hexadecimal digits, as the environment has them.
pub const KEY: [u8; 32] = [9; 32];
/// Time in which anything happens, on a machine that is busy with other builds.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What a ledger has heard.
#[derive(Debug, Default, Clone)]
pub struct Heard {
    /// Deeds that are on disk, by player.
    pub granted: BTreeMap<u64, u64>,
    /// Deeds that are done.
    pub done: BTreeMap<u64, u64>,
    pub receipts: u64,
    /// Of the stalls, by the lives that the server has had.
    pub lives: Vec<Stalls>,
}

/// What stalls have told in one life of their server.
#[derive(Debug, Clone, Default)]
pub struct Stalls {
    /// What each was made again with, which it tells with its first tick.
    pub made_with: BTreeMap<u64, u32>,
    /// When the newest of them told that.
    pub newest_at: Option<Instant>,
    /// When the first of them last told of a tick.
    pub first_at: Option<Instant>,
    /// When the server said no more: it was gone.
    pub ended_at: Option<Instant>,
}

impl Heard {
    fn take(&mut self, player: u64, deeds: u64) {
        if player & (STALL | DONE) == STALL {
            return self.take_stall(player & !STALL, deeds as u32);
        }
        let of = if player & DONE == 0 { &mut self.granted } else { &mut self.done };
        let entry = of.entry(player & !DONE).or_default();
        *entry = deeds.max(*entry);
        self.receipts += u64::from(player & DONE == 0);
    }

    fn take_stall(&mut self, number: u64, sold: u32) {
        let (now, life) = (Instant::now(), self.lives.last_mut().expect("somebody has called"));
        if number == 0 {
            life.first_at = Some(now);
        }
        life.made_with.entry(number).or_insert_with(|| {
            life.newest_at = Some(now);
            sold
        });
    }

    /// What was granted is there.
    pub fn check_granted(&self, wealth: &Wealth) -> Result<(), String> {
        Self::check(&self.granted, wealth, "were said to be on disk")
    }

    /// All that was ever done is there.
    pub fn check_done(&self, wealth: &Wealth) -> Result<(), String> {
        Self::check(&self.done, wealth, "were done")
    }

    fn check(of: &BTreeMap<u64, u64>, wealth: &Wealth, what: &str) -> Result<(), String> {
        for (player, deeds) in of {
            let saved = wealth.deeds.get(player).copied().map_or(0, u64::from);
            if saved < *deeds {
                return Err(format!("{deeds} deeds of player {player} {what}, and {saved} are there"));
            }
        }
        Ok(())
    }
}

/// What it says to its parent.
#[derive(Default)]
struct Said {
    ready: Option<Value>,
    status: Value,
    ticks: u64,
    /// But for those that the host took.
    ticks_missed: u64,
    /// The longest that a tick of a second ran into the time of the next, less what the host took in it. (ms)
    stall_ms_max: f64,
    report: Option<Value>,
}

/// A server's process. Killed when dropped.
pub struct Life {
    child: Child,
    /// Its end would end the server.
    _stdin: Option<ChildStdin>,
    said: Arc<Mutex<Said>>,
    stdout: Option<JoinHandle<()>>,
    stderr: PathBuf,
    heard: Arc<Mutex<Heard>>,
    ledger: Option<JoinHandle<()>>,
    began: Instant,
    pub address: SocketAddr,
    pub admin_address: SocketAddr,
}

impl Drop for Life {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets one measuring test run at a time; those that wait and count run beside it.
pub fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    lock(&MACHINE)
}

/// Looks again and again until there is an answer.
#[track_caller]
pub fn wait_for<T>(what: &str, within: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + within;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {within:?} for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A command of the bazaar's, in a folder.
pub fn bazaar(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bazaar"));
    let key: String = KEY.iter().map(|byte| format!("{byte:02x}")).collect();
    command.args(words).current_dir(folder).env("THRONG_PRIVATE_KEY", key).env_remove("THRONG_LOG");
    command
}

impl Life {
    /// Starts a server by the settings in this folder; returns when it is about to tick.
    pub fn start(folder: &Path) -> Life {
        Self::start_as(folder, &["--crashes", "off"], 0, None)
    }

    /// A supervised server whose first stall ends it once, in a control group if there is one.
    pub fn start_to_die(folder: &Path, fault: &str, group: Option<&LittleMemory>) -> Life {
        let crashes = folder.join("crashes").display().to_string();
        Self::start_as(folder, &["--supervised", "--inject", fault, "--crashes", &crashes], 1, group)
    }

    /// With these words beside the usual ones, and so many deaths that another server comes after.
    fn start_as(folder: &Path, with: &[&str], deaths: usize, group: Option<&LittleMemory>) -> Life {
        let _ = fs::remove_file(folder.join("ledger"));
        let listener = UnixListener::bind(folder.join("ledger")).unwrap();
        let words = ["serve", "--address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0", "--status-json"];
        let mut command = bazaar(folder, &[&words[..], with].concat());
        if let Some(group) = group {
            command = group.enter(&command);
        }
        let stderr = folder.join("log");
        let began = Instant::now();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(fs::File::create(&stderr).unwrap());
        let mut child = command.spawn().unwrap();
        let (said, heard) = (Arc::new(Mutex::new(Said::default())), Arc::new(Mutex::new(Heard::default())));
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let of_listener = said.clone();
        let stdout = thread::spawn(move || listen(stdout, &of_listener));
        let of_ledger = heard.clone();
        let ledger = thread::spawn(move || keep_ledger(&listener, &of_ledger, 1 + deaths));
        let mut life = Life {
            child,
            _stdin: stdin,
            said,
            stdout: Some(stdout),
            stderr,
            heard,
            ledger: Some(ledger),
            began,
            address: ([127, 0, 0, 1], 0).into(),
            admin_address: ([127, 0, 0, 1], 0).into(),
        };
        let ready = wait_for("a server that is ready", PATIENCE, || {
            let has_ended = life.child.try_wait().unwrap();
            assert!(has_ended.is_none(), "{has_ended:?}: {}", life.log());
            lock(&life.said).ready.take()
        });
        let address = |key: &str| ready[key].as_str().unwrap().parse().unwrap();
        (life.address, life.admin_address) = (address("address"), address("admin_address"));
        life
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn since_start(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn heard(&self) -> Heard {
        lock(&self.heard).clone()
    }

    /// It has told its parent how it ends.
    pub fn has_reported(&self) -> bool {
        lock(&self.said).report.is_some()
    }

    pub fn status(&self) -> Value {
        lock(&self.said).status.clone()
    }

    /// The longest that ticks stood still since this was asked, but for the host. (ms)
    pub fn take_stall_ms_max(&self) -> f64 {
        std::mem::take(&mut lock(&self.said).stall_ms_max)
    }

    /// Ticks of all its seconds so far, and those that were missed and not the host's.
    pub fn ticks(&self) -> [u64; 2] {
        let said = lock(&self.said);
        [said.ticks, said.ticks_missed]
    }

    /// Waits until it has granted this much more than before.
    #[track_caller]
    pub fn wait_for_receipts(&self, more: u64) {
        let before = self.heard().receipts;
        wait_for("receipts", PATIENCE, || (self.heard().receipts >= before + more).then_some(()));
    }

    /// Waits until so many stalls tick in this life of the server, counted from 0; what they told.
    #[track_caller]
    pub fn wait_for_stalls(&self, life: usize, count: usize) -> Stalls {
        let all = || lock(&self.heard).lives.get(life).filter(|stalls| stalls.made_with.len() >= count).cloned();
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(stalls) = all() {
                return stalls;
            }
            thread::sleep(Duration::from_millis(2));
        }
        panic!("of {count} stalls not all tick in life {life}: {:?}\n{}", self.heard().lives, self.log());
    }

    /// Where players find the server that came after one that died.
    #[track_caller]
    pub fn address_again(&self) -> SocketAddr {
        let ready = wait_for("another server", PATIENCE, || lock(&self.said).ready.take());
        ready["address"].as_str().unwrap().parse().unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid() as i32), signal).unwrap();
    }

    /// Ends it by force; what it granted until then.
    pub fn kill(mut self) -> Heard {
        assert_eq!(self.child.try_wait().unwrap(), None, "it died by itself: {}", self.log());
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        // What it was killed in the middle of telling is not told.
        let _ = self.ledger.take().unwrap().join();
        self.heard()
    }

    /// Tells it to end, and waits; `meanwhile` is done after the order.
    pub fn end(mut self, meanwhile: impl FnOnce(&Life)) -> Ended {
        let began = Instant::now();
        self.signal(Signal::SIGTERM);
        meanwhile(&self);
        let status = wait_for("its end", PATIENCE, || self.child.try_wait().unwrap());
        let after = began.elapsed();
        let _ = self.stdout.take().unwrap().join();
        let _ = self.ledger.take().unwrap().join();
        let report = lock(&self.said).report.take();
        Ended { status, after, report, heard: self.heard(), log: self.log() }
    }
}

/// What is left of a server that was told to end.
pub struct Ended {
    pub status: ExitStatus,
    pub after: Duration,
    pub report: Option<Value>,
    pub heard: Heard,
    pub log: String,
}

fn listen(stdout: impl Read, said: &Mutex<Said>) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let mut said = lock(said);
        let count = |key: &str| line["status"][key].as_u64().unwrap_or_default();
        said.ticks += count("ticks");
        said.ticks_missed += count("ticks_missed").saturating_sub(count("ticks_missed_host"));
        let ms = |key: &str| line["status"][key].as_f64().unwrap_or_default();
        said.stall_ms_max = said.stall_ms_max.max(ms("tick_lateness_ms_max") - ms("host_took_ms_max"));
        match &line {
            line if line["ready"].is_object() => said.ready = Some(line["ready"].clone()),
            line if line["status"].is_object() => said.status = line["status"].clone(),
            line => said.report = line.get("report").cloned(),
        }
    }
}

fn keep_ledger(listener: &UnixListener, heard: &Mutex<Heard>, lives: usize) {
    for _ in 0..lives {
        let (ledger, _) = listener.accept().unwrap();
        let (mut ledger, mut entry) = (BufReader::new(ledger), [0; 16]);
        lock(heard).lives.push(Stalls::default());
        while ledger.read_exact(&mut entry).is_ok() {
            let [player, deeds] = [0, 8].map(|at| u64::from_le_bytes(entry[at..at + 8].try_into().unwrap()));
            lock(heard).take(player, deeds);
        }
        lock(heard).lives.last_mut().expect("it called").ended_at = Some(Instant::now());
    }
}
