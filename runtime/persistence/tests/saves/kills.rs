//! R30, kills: a process that is killed while it saves loses nothing that it acknowledged.
//!
//! This program starts itself again; the child saves payments as fast as it can and tells the number of each that is
//! acknowledged over a socket, which is the ledger outside. It is killed at a random moment. What a payment does follows
//! from its number, so what the store must have is known to the byte: the accounts after some number, at least the
//! newest in the ledger.

use std::{
    io::{ErrorKind, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_persistence::{Commit, Embedded, Key, Store, Writer, WriterSettings};
use throng_platform::time::Nanos;

use crate::{accounts::Accounts, folder::Folder};

const CHILD: &str = "kills::child_that_saves_until_it_is_killed";
const FOLDER: &str = "THRONG_SAVES_FOLDER";
/// Set where the child is to tell of saves that are only on their way.
const TELLS_EARLY: &str = "THRONG_SAVES_TELLS_EARLY";
/// Payments on their way at most.
const IN_FLIGHT: u64 = 64;
/// What recovery may take, by the contract.
const RECOVERY_MAX: Duration = Duration::from_secs(1);

fn pay(accounts: &mut Accounts, number: u64) -> Commit {
    accounts.pay(number, &mut Xoshiro256PlusPlus::seed_from_u64(number))
}

fn newest(accounts: &Accounts) -> u64 {
    accounts.0.values().map(|account| account.written_by).max().unwrap_or_default()
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("ledger")
}

/// Not a test by itself: what the tests below start and kill.
#[test]
#[ignore = "the other tests of this file start it"]
fn child_that_saves_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let tells_early = std::env::var_os(TELLS_EARLY).is_some();
    let mut ledger = UnixStream::connect(socket(&folder)).unwrap();
    let store = Embedded::open(&folder.join("saves.redb")).unwrap();
    let (mut accounts, _) = Accounts::read(&*store.reader()).unwrap();
    // Short, so that there are many batches to be killed in.
    let settings = WriterSettings { gather: Nanos::from_micros(200), ..WriterSettings::default() };
    let mut writer = Writer::start(Box::new(store), settings).unwrap();
    let base = newest(&accounts);
    let (mut given, mut acked) = (base, base);
    ledger.write_all(&base.to_le_bytes()).unwrap();
    loop {
        while given - acked < IN_FLIGHT {
            given += 1;
            let commit = pay(&mut accounts, given);
            writer.submit(commit).unwrap();
            if tells_early {
                ledger.write_all(&given.to_le_bytes()).unwrap();
            }
        }
        while let Some(ack) = writer.take_ack() {
            ack.outcome.unwrap();
            acked += 1;
            assert_eq!(ack.ticket.0, acked - base);
            if !tells_early {
                ledger.write_all(&acked.to_le_bytes()).unwrap();
            }
        }
        thread::yield_now();
    }
}

/// Starts a child, kills it, and returns the newest number in the ledger.
fn kill_one(folder: &Folder, listener: &UnixListener, delay: Duration, tells_early: bool) -> u64 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", CHILD]).env(FOLDER, folder.path()).stdout(Stdio::null());
    if tells_early {
        command.env(TELLS_EARLY, "1");
    }
    let mut child = command.spawn().unwrap();
    let mut ledger = accept(listener, &mut child);
    thread::sleep(delay);
    let died = child.try_wait().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(died, None, "it died by itself");
    let mut numbers = Vec::new();
    ledger.read_to_end(&mut numbers).unwrap();
    // What it was killed in the middle of telling is not told.
    numbers.chunks_exact(8).map(|number| u64::from_le_bytes(number.try_into().unwrap())).max().unwrap_or_default()
}

/// The child's connection; fails if it ends before.
fn accept(listener: &UnixListener, child: &mut std::process::Child) -> UnixStream {
    listener.set_nonblocking(true).unwrap();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).unwrap();
                return stream;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                assert_eq!(child.try_wait().unwrap(), None, "it died by itself");
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// How often, beside how many worlds, and how long after the child has begun at most.
struct Kills {
    count: u32,
    worlds: u64,
    delay_ms_max: u64,
    tells_early: bool,
}

/// The longest recovery, or what was wrong after a kill.
fn check(name: &str, kills: &Kills) -> Result<Duration, String> {
    let folder = Folder::new(name);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(u64::from(kills.count));
    let listener = UnixListener::bind(socket(folder.path())).unwrap();
    let (mut accounts, first) = Accounts::found(16);
    let store = Embedded::open(&folder.store()).unwrap();
    let mut writer = Writer::start(Box::new(store), WriterSettings::default()).unwrap();
    writer.submit(first).unwrap();
    for world in 0..kills.worlds {
        let mut commit = Commit::new();
        commit.put_bytes(Key::world(world), vec![world as u8; 8_192]);
        writer.submit(commit).unwrap();
    }
    assert!(writer.finish().iter().all(|ack| ack.outcome.is_ok()));

    let (mut number, mut acknowledged, mut slowest) = (0, 0, Duration::ZERO);
    for kill in 1..=kills.count {
        let delay = Duration::from_micros(rng.random_range(0..kills.delay_ms_max * 1_000));
        let acked = kill_one(&folder, &listener, delay, kills.tells_early);
        let began = Instant::now();
        let store = Embedded::open(&folder.store()).map_err(|error| format!("kill {kill}: {error}"))?;
        slowest = slowest.max(began.elapsed());
        let (read, count) = Accounts::read(&*store.reader()).map_err(|error| format!("kill {kill}: {error}"))?;
        if !count.holds() || count.records != 16 + kills.worlds {
            return Err(format!("kill {kill}: {count:?}"));
        }
        let stored = newest(&read);
        if stored < acked {
            return Err(format!("kill {kill}: {acked} was acknowledged, and {stored} is there"));
        }
        acknowledged += acked.saturating_sub(number);
        while number < stored {
            number += 1;
            pay(&mut accounts, number);
        }
        if read != accounts {
            return Err(format!("kill {kill}: not what payment {stored} left"));
        }
    }
    eprintln!("{} kills, {acknowledged} saves acknowledged, {number} there; slowest recovery {slowest:?}", kills.count);
    assert!(acknowledged > u64::from(kills.count), "hardly anything was saved");
    Ok(slowest)
}

#[test]
fn r30_a_killed_process_loses_nothing_that_it_acknowledged() {
    let kills = Kills { count: 20, worlds: 0, delay_ms_max: 150, tells_early: false };
    check("kills", &kills).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
#[ignore = "full form: minutes"]
fn r30_a_killed_process_loses_nothing_that_it_acknowledged_full() {
    let kills = Kills { count: 1_000, worlds: 1_000, delay_ms_max: 400, tells_early: false };
    let slowest = check("kills-full", &kills).unwrap_or_else(|error| panic!("{error}"));
    assert!(slowest <= RECOVERY_MAX, "{slowest:?}");
}

/// The control: the same check finds a process that tells of saves before they are on disk.
#[test]
fn r30_a_process_that_tells_too_early_is_found_out() {
    let kills = Kills { count: 50, worlds: 0, delay_ms_max: 50, tells_early: true };
    let error = check("kills-early", &kills).expect_err("it told of saves that were not made");
    assert!(error.contains("was acknowledged"), "{error}");
}
