//! `throng crash-monitor` and `throng crash-drill`, for those who look after crash reports.
//!
//! The monitor is what a server starts beside itself; all of it is in [`throng_crash::monitor`]. The drill dies on
//! purpose, in one of the ways that a server may, with a server's secrets in its memory: an operator sees on the host
//! itself that a report arrives, and the tests see that nothing secret is in it.

use std::{
    collections::BTreeMap,
    hint::black_box,
    io::{self, BufRead},
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
    sync::mpsc::{Sender, channel},
    thread,
    time::Duration,
};

use clap::Args;
use throng::{ids::WorldId, settings::PRIVATE_KEY_VARIABLE, world_facts::WorldFacts};
use throng_crash::{self as crash, CrashSettings, drill::Death};
use throng_platform::{
    signals,
    threads::{Priority, spawn_named},
};
use throng_profiler::{
    KindNumber, Recorder, RecorderSettings, scope,
    thread::{ThreadClass, enter_world, register},
};

use crate::{
    crash_state::{RecorderSource, WorldsSource},
    executable::Executable,
    outcome::{CommandResult, Verdict},
    output::remark,
};

/// Sleeps until the server at the other end of stdin ends.
pub fn monitor(executable: Executable) -> ExitCode {
    match crash::monitor::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            remark(format_args!("{}: crash monitor: {error}", executable.name));
            ExitCode::from(2)
        }
    }
}

#[derive(Args)]
pub struct DrillArguments {
    /// `stack-overflow`, `abort`, `segv`, `bus`, `out-of-memory`, `memory-limit` or `double-panic`; `panic` for one that
    /// nobody catches, on the thread that runs the frames; `wait` to be killed or stopped.
    death: Drill,
    /// Folder for the report.
    #[arg(long)]
    crashes: PathBuf,
    /// Deaths to keep; the oldest go first.
    #[arg(long, default_value_t = CrashSettings::CRASHES_KEPT)]
    kept: usize,
}

#[derive(Clone, Copy)]
enum Drill {
    Die(Death),
    Panic,
    Wait,
}

impl std::str::FromStr for Drill {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "wait" => Ok(Self::Wait),
            "panic" => Ok(Self::Panic),
            name => name.parse().map(Self::Die),
        }
    }
}

/// The thread that dies, and others that live beside it.
const CULPRIT: &str = "worker-1";
const BYSTANDERS: [&str; 3] = ["worker-0", "worker-2", "log"];
/// The culprit's world, its tick and its seed.
const WORLD: (u32, u32, u64) = (12, 5_012, 777);

struct DrillWorld;

impl WorldsSource for DrillWorld {
    fn facts(&self, number: u32) -> Option<WorldFacts> {
        let id = WorldId::from_number(number);
        (number == WORLD.0).then(|| WorldFacts { id, kind: "drill".into(), seed: WORLD.2, plan: 0, keeps_place: false })
    }
}

pub fn drill(arguments: DrillArguments, executable: Executable) -> CommandResult {
    let stop = signals::install_stop();
    // One a line: what the tests then search the report for.
    let mut secrets: Vec<String> = io::stdin().lock().lines().collect::<Result<_, _>>()?;
    secrets.extend(std::env::var(PRIVATE_KEY_VARIABLE));
    let facts = secrets.iter().enumerate().map(|(index, secret)| (format!("secret {index}"), secret.clone()));
    let facts: BTreeMap<_, _> = facts.collect();

    let captures =
        RecorderSettings { build: executable.full_name(), game: "drill".into(), ..RecorderSettings::default() };
    let mut recorder = Recorder::start(captures)?;
    let settings = CrashSettings {
        crashes_kept: arguments.kept,
        seed: Some(42),
        ..CrashSettings::new(arguments.crashes, executable.full_name(), "drill")?
    };
    let control = recorder.control();
    let control = Box::new(move || Some(control.clone()));
    let guard = crash::install(settings, RecorderSource::new(control, Box::new(DrillWorld), facts))?;

    let (busy, are_busy) = channel();
    for name in BYSTANDERS {
        let (busy, secrets) = (busy.clone(), secrets.clone());
        spawn_named(name, Priority::Normal, move || with_secrets_on_the_stack(&secrets, || wait_for_ever(&busy)))?;
    }
    are_busy.iter().take(BYSTANDERS.len()).for_each(drop);
    recorder.frame_begin(1, 50_000_000);
    recorder.frame_end();
    remark(format_args!("ready"));
    match arguments.death {
        Drill::Die(death) => {
            let dies = move || with_secrets_on_the_stack(&secrets, || die(death));
            let culprit = spawn_named(CULPRIT, Priority::Normal, dies)?;
            return Err(culprit.join().unwrap_or_else(|_| io::Error::other("it panicked, and lives")).into());
        }
        Drill::Panic => panic!("a panic that nobody catches, on purpose, about {}", secrets.join(" and ")),
        Drill::Wait => {
            while !stop.requested() {
                thread::sleep(Duration::from_millis(5));
            }
        }
    }
    drop(guard);
    Ok(Verdict::Fine)
}

fn die(death: Death) -> io::Error {
    register(ThreadClass::ShortTask);
    let _in_world = enter_world(KindNumber::NONE, WORLD.0, WORLD.1);
    scope!("world.tick");
    scope!("drill.last_words");
    death.die()
}

fn wait_for_ever(busy: &Sender<()>) -> ! {
    register(ThreadClass::Other);
    scope!("drill.wait");
    // Fails when nobody waits for it any more.
    let _ = busy.send(());
    loop {
        thread::park();
    }
}

/// Bytes of secrets that a thread has on its stack.
const SECRET_BYTES: usize = 2_048;

/// Runs `work` below a stack frame that holds all secrets, as text and as the bytes that they mean.
#[inline(never)]
fn with_secrets_on_the_stack<T>(secrets: &[String], work: impl FnOnce() -> T) -> T {
    let mut held = [0_u8; SECRET_BYTES];
    let mut places = held.iter_mut();
    for secret in secrets {
        let meant = bytes_meant_by(secret);
        let text = secret.as_bytes();
        text.iter().copied().chain(meant.iter().copied()).zip(&mut places).for_each(|(byte, place)| *place = byte);
    }
    black_box(&held);
    let done = work();
    black_box(&held);
    done
}

/// The bytes of a key in hexadecimal, or of an address as the kernel has it.
fn bytes_meant_by(secret: &str) -> Vec<u8> {
    if let Ok(SocketAddr::V4(address)) = secret.parse() {
        return [&address.ip().octets()[..], &address.port().to_be_bytes()].concat();
    }
    let digits = secret.chars().map(|digit| Some(digit.to_digit(16)? as u8));
    let digits: Vec<u8> = digits.collect::<Option<_>>().unwrap_or_default();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
