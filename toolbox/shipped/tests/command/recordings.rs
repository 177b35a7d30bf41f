//! Recordings of real servers with players over UDP: each game comes again to equal states on any number of threads.
//!
//! The full form is a thousand players for ten minutes, and what recording costs a server of as many, by its threads' own
//! account and in turns. Both are of the executable that `THRONG` names, if any: a release build.

use std::{fs, path::Path, time::Duration};

use serde_json::Value;
use throng_capture::model::Event;
use throng_history::student::student_two_sided;

use crate::{
    address::KEY,
    child::{Server, alone, finish, folder, throng, wait_until},
};

const WITHIN: Duration = Duration::from_secs(120);

/// Everything is hashed every second, and checkpoints come every other one.
const SETTINGS: &str = "[server]\ncheckpoint_period_s = 2\n[recording]\nhash_period_s = 1\nsegment_s = 3\n";

/// What is recorded, and how it is replayed.
struct Recorded {
    place: std::path::PathBuf,
    name: String,
}

impl Recorded {
    /// A server of a game with two workers, with bots that play on it for so long. `size`: words that say how large the game is.
    fn play(game: &str, size: &[&str], bots: u32, seconds: u32) -> Self {
        Self::play_with((SETTINGS, "2"), game, size, bots, seconds)
    }

    fn play_with((settings, workers): (&str, &str), game: &str, size: &[&str], bots: u32, seconds: u32) -> Self {
        let place = folder(&format!("recordings-{game}-{bots}-{workers}"));
        let path = place.join("throng.toml");
        fs::write(&path, settings).expect("a folder of ours");
        let [settings, folder] = [path, place.join("recordings")].map(|path| path.display().to_string());
        let serve =
            ["--game", game, "--config", &settings, "--record", &folder, "--workers", workers, "--saves", "none"];
        let server = Server::start(&[&serve[..], size].concat());
        let within = WITHIN + Duration::from_secs(seconds.into());
        let (bots, seconds) = (bots.to_string(), seconds.to_string());
        let address = server.address.to_string();
        let mut swarm =
            throng(&["bots", "--game", game, "--connect", &address, "--players", &bots, "--seconds", &seconds]);
        swarm.env("THRONG_PRIVATE_KEY", KEY);
        let played = finish(swarm, within);
        assert!(played.status.success(), "{}", played.stderr);
        let said = finish(throng(&["record", &server.admin_address.to_string(), "--json"]), WITHIN);
        let status = said.json();
        assert_eq!((&status["is_on"], &status["parts_lost"]), (&Value::from(true), &Value::from(0)), "{status}");
        let ended = server.stop();
        assert!(ended.status.success(), "{}", ended.stderr);
        Self { place: place.join("recordings"), name: game.to_owned() }
    }

    fn replay(&self, workers: &str) -> Value {
        replay(&self.place, &["--workers", workers], Some(0))
    }

    /// Every state is equal on one thread and on two, and something was there that could differ.
    fn check(&self, worlds_min: u64, ticks_min: u64) {
        let [one, two] = ["1", "2"].map(|workers| self.replay(workers));
        for report in [&one, &two] {
            assert_eq!(report["game"], self.name.as_str());
            for nothing in ["divergences", "failures", "faults"] {
                assert_eq!(report[nothing].as_array().map(Vec::len), Some(0), "{report}");
            }
            assert_eq!((&report["gaps"], &report["ticks_skipped"]), (&Value::from(0), &Value::from(0)), "{report}");
            let at_least = |key: &str, min: u64| report[key].as_u64().is_some_and(|count| count >= min);
            assert!(at_least("worlds", worlds_min) && at_least("ticks", ticks_min), "{report}");
            assert!(at_least("states_equal", ticks_min / 200), "{report}");
        }
        assert_eq!((&one["states"], &one["ticks"]), (&two["states"], &two["ticks"]));
    }
}

/// What `replay --json` says, with this exit status.
#[track_caller]
fn replay(recording: &Path, words: &[&str], status: Option<i32>) -> Value {
    let recording = recording.display().to_string();
    let finished = finish(throng(&[&["replay", &recording, "--json"], words].concat()), 10 * WITHIN);
    assert_eq!(finished.status.code(), status, "{}\n{}", finished.stdout, finished.stderr);
    finished.json()
}

#[test]
fn precinct_comes_again() {
    Recorded::play("precinct", &["--players", "12", "--npcs", "60"], 12, 10).check(2, 400);
}

#[test]
fn duel_comes_again() {
    Recorded::play("duel", &["--players", "12"], 12, 10).check(2, 400);
}

#[test]
fn frontier_comes_again() {
    let recorded = Recorded::play("frontier", &["--players", "12"], 12, 10);
    recorded.check(1, 150);
    // It can be ended before, and shows what its threads did then.
    let captures = recorded.place.join("captures").display().to_string();
    let report = replay(&recorded.place, &["--to-tick", "60", "--capture", &captures], Some(0));
    assert_eq!(report["ticks"], 61, "{report}");
    let capture = report["capture"].as_str().expect("a capture was asked for");
    let shown = finish(throng(&["capture", "show", "--json", capture]), WITHIN);
    assert!(shown.status.success(), "{}", shown.stderr);
    // It shows the world up to that tick, though two thirds of the recording come behind it.
    let shown = throng_capture::format::read(&fs::read(capture).expect("it was saved")).expect("a capture");
    let events = shown.threads.iter().flat_map(|thread| &thread.events);
    let ticks = events.filter_map(|event| match event {
        Event::World { world: Some(_), tick, .. } => Some(*tick),
        _ => None,
    });
    assert_eq!(ticks.max(), Some(60));
}

/// Promise: how many workers the recorded server had does not matter. A replay does a world's tick on one thread; the recorded
/// worlds' clients were served in one batch, in two and in three, on as many workers as were idle (from 128 clients on).
#[test]
fn a_world_that_many_workers_shared_comes_again_on_one_thread() {
    for workers in ["1", "2", "8"] {
        let size = ["--players", "200", "--npcs", "200"];
        Recorded::play_with((SETTINGS, workers), "frontier", &size, 200, 6).check(1, 80);
    }
}

#[test]
fn what_cannot_be_replayed_is_told() {
    let place = folder("recordings-none");
    let check = |path: &Path, parts: &[&str]| {
        finish(throng(&["replay", &path.display().to_string()]), WITHIN).check_refused(parts);
    };
    check(&place, &["there is no recording in this folder"]);
    check(&place.join("nowhere"), &["nowhere", "No such file"]);
    let other = place.join("other.throngrec");
    fs::write(&other, "a diary").expect("a folder of ours");
    check(&other, &["other.throngrec: these bytes are no recording"]);
    let server = Server::start(&["--players", "4", "--npcs", "4"]);
    let address = server.admin_address.to_string();
    finish(throng(&["record", &address, "start"]), WITHIN).check_refused(&["[recording] folder", "--record"]);
    finish(throng(&["record", &address, "stop"]), WITHIN).check_refused(&["no recording is on"]);
}

/// It begins and ends by hand; worlds are in it from their next checkpoints on.
#[test]
fn a_recording_is_started_and_stopped_on_a_server_that_runs() {
    let place = folder("recordings-by-hand");
    let settings = place.join("throng.toml");
    let text =
        "[server]\ncheckpoint_period_s = 1\n[recording]\nfolder = \"kept\"\nat_start = false\nhash_period_s = 0\n";
    fs::write(&settings, text).expect("a folder of ours");
    let server = Server::start(&["--game", "frontier", "--config", &settings.display().to_string(), "--saves", "none"]);
    let address = server.admin_address.to_string();
    let mut swarm = throng(&["bots", "--game", "frontier", "--connect", &server.address.to_string(), "--players", "2"]);
    swarm.args(["--seconds", "12"]).env("THRONG_PRIVATE_KEY", KEY);
    let swarm = crate::child::Started::new(swarm);
    server.wait_for_status("players", |players| players >= 2.0);
    let order = |order: &str| {
        let said = finish(throng(&["record", &address, order, "--json"]), WITHIN);
        assert!(said.status.success(), "{order}: {}", said.stderr);
        said.json()
    };
    assert_eq!(order("status")["is_on"], false);
    assert_eq!(order("start")["is_on"], true);
    finish(throng(&["record", &address, "start"]), WITHIN).check_refused(&["a recording is on already"]);
    // Its world is in it from the next checkpoint on.
    let is_written = || {
        let status = order("status");
        (status["worlds"] == 1 && status["bytes_written"].as_u64() > Some(0)).then_some(())
    };
    wait_until(WITHIN, is_written).expect("a world comes into the recording");
    let status = order("stop");
    assert!(status["is_on"] == false && status["bytes_written"].as_u64() > Some(0), "{status}");
    let report = replay(&place.join("kept"), &[], Some(0));
    assert!(report["worlds"] == 1 && report["ticks"].as_u64() > Some(0), "{report}");
    // One after each tick, but for that in which it was stopped; and where a checkpoint begins the record one before.
    let states = report["states_equal"].as_u64().zip(report["ticks"].as_u64());
    assert!(states.is_some_and(|(states, ticks)| states.abs_diff(ticks) <= 1), "{report}");
    assert_eq!(report["gaps"], 0, "{report}");
    assert!(swarm.finish(WITHIN).status.success());
}

/// The promise in full: ten minutes of a thousand players come again on another number of threads.
#[test]
#[ignore = "full form: 12 minutes"]
fn r29_ten_minutes_of_a_thousand_players_come_again() {
    let _alone = alone();
    // As shipped, but for room for all of it: what is dropped could not come again.
    let settings = ("[recording]\nmax_mb = 16384\n", "2");
    let size = ["--players", "1000", "--npcs", "20000"];
    let recorded = Recorded::play_with(settings, "precinct", &size, 1_000, 600);
    let bytes: u64 = fs::read_dir(&recorded.place)
        .expect("it was made")
        .map(|entry| entry.and_then(|entry| entry.metadata()).map_or(0, |about| about.len()))
        .sum();
    let mb_per_hour = bytes as f64 * 6.0 / 1e6;
    println!("{bytes} bytes: {:.2} MB for each player and hour, {mb_per_hour:.0} MB/h in all", mb_per_hour / 1e3);
    recorded.check(1_000, 1_000_000);
}

/// What recording costs a server of a thousand players: a hundredth of its processor time at most.
///
/// By the threads' own account, which leaves out what workers copy and hash; and in turns on one server that runs, which has all of it.
/// In turns the machine's unrest is in it, too: the whole interval must be below the limit, and where that is wider than the limit
/// the machine cannot tell, which is said and is no pass.
#[test]
#[ignore = "full form: 20 minutes of 1,000 players"]
fn recording_takes_a_hundredth_of_a_server() {
    const TURNS: usize = 16;
    const WINDOW: Duration = Duration::from_secs(20);
    const LIMIT: f64 = 0.01;
    let _alone = alone();
    let place = folder("recordings-cost");
    let settings = place.join("throng.toml");
    fs::write(&settings, "[recording]\nfolder = \"kept\"\nat_start = false\n").expect("a folder of ours");
    let size = ["--players", "1000", "--npcs", "20000", "--workers", "2", "--saves", "none"];
    let server = Server::start(&[&["--config", &settings.display().to_string()][..], &size].concat());
    let admin = server.admin_address.to_string();
    // Of each turn both windows, what worlds need to be recorded, and what a stop takes; and a while in which all join.
    let seconds = (120 + TURNS * (2 * WINDOW.as_secs() as usize + 30)).to_string();
    let mut swarm = throng(&["bots", "--connect", &server.address.to_string(), "--players", "1000"]);
    swarm.args(["--seconds", &seconds]).env("THRONG_PRIVATE_KEY", KEY);
    let swarm = crate::child::Started::new(swarm);
    server.wait_for_status("players", |players| players >= 1_000.0);
    std::thread::sleep(Duration::from_secs(20));
    let order = |order: &str| {
        let said = finish(throng(&["record", &admin, order, "--json"]), WITHIN);
        assert!(said.status.success(), "{order}: {}", said.stderr);
        said.json()
    };
    // Of a window: what the server took, and its recording's thread.
    let window = || {
        let before = ThreadTimes::of(server.pid());
        std::thread::sleep(WINDOW);
        let took = ThreadTimes::of(server.pid()).since(&before);
        assert!(server.status()["players"].as_f64() >= Some(1_000.0), "the bots are gone: {}", server.status());
        took
    };
    let (mut shares, mut of_thread) = (Vec::new(), Vec::new());
    let mut before = window();
    for _ in 0..TURNS {
        order("start");
        // A world is recorded from its next checkpoint on, and not all are awake.
        let all_are_recorded = || {
            let (recorded, awake) = (order("status")["worlds"].as_f64()?, server.status()["worlds_awake"].as_f64()?);
            (awake > 0.0 && recorded >= 0.99 * awake).then_some(())
        };
        wait_until(WITHIN, all_are_recorded).expect("all worlds come into the recording");
        let with = window();
        let status = order("stop");
        assert_eq!(status["parts_lost"], 0, "{status}");
        let after = window();
        let without = (before.all + after.all) / 2.0;
        shares.push((with.all - without) / without);
        of_thread.push(with.recording / with.all);
        before = after;
    }
    drop(swarm);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (thread, all) = (mean(&of_thread), mean(&shares));
    let variance = shares.iter().map(|share| (share - all).powi(2)).sum::<f64>() / (TURNS - 1) as f64;
    let apart = student_two_sided(0.05, (TURNS - 1) as u32) * (variance / TURNS as f64).sqrt();
    let told = format!(
        "of the server's processor time the recording's thread takes {:.2} %, and recording in turns {:.2} % +- {:.2} (95 %)",
        100.0 * thread,
        100.0 * all,
        100.0 * apart
    );
    println!("{told}");
    assert!(thread > 0.0 && thread <= LIMIT, "{told}: {of_thread:?}");
    assert!(all - apart <= LIMIT, "{told}: it takes more than the limit: {shares:?}");
    assert!(all + apart <= LIMIT, "{told}: this machine is too restless to tell it from the limit: {shares:?}");
}

/// What threads of a process had of processors (s).
#[derive(Default)]
struct ThreadTimes {
    all: f64,
    /// Of the thread that packs and writes a recording.
    recording: f64,
}

impl ThreadTimes {
    fn of(pid: u32) -> Self {
        let mut times = Self::default();
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the server runs");
        for task in tasks.flatten() {
            let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
            let ns = read("schedstat").split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0);
            times.all += ns / 1e9;
            if read("comm").trim() == "recording" {
                times.recording += ns / 1e9;
            }
        }
        times
    }

    fn since(&self, before: &Self) -> Self {
        Self { all: self.all - before.all, recording: self.recording - before.recording }
    }
}
