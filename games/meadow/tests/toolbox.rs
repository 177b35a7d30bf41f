//! Promise: a game of one file has the whole toolbox, and nothing of it knows the game.
//!
//! The commands run as a user types them, in a folder of their own.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Output, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// Two servers on a small machine measure each other.
fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

fn meadow(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meadow"));
    command.args(line.split_whitespace()).current_dir(folder).stdin(Stdio::null());
    command.env_remove("THRONG_LOG").env_remove("THRONG_ADMIN_KEY").env("THRONG_PRIVATE_KEY", KEY).env("NO_COLOR", "1");
    command
}

struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn run(folder: &Path, line: &str) -> Said {
    let Output { status, stdout, stderr } = meadow(folder, line).output().expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
    Said { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

impl Said {
    #[track_caller]
    fn json(&self) -> Value {
        let line = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}\n{}", self.stderr))
    }

    #[track_caller]
    fn check_refused(&self, parts: &[&str]) {
        assert_eq!((self.code, self.stdout.as_str()), (Some(2), ""), "{}", self.stderr);
        parts.iter().for_each(|part| assert!(self.stderr.contains(part), "{part:?} is not in {}", self.stderr));
    }
}

/// A server, or a workload, that speaks with its parent. Killed when dropped.
struct Server {
    child: Child,
    lines: BufReader<ChildStdout>,
    ready: Value,
}

impl Server {
    fn start(folder: &Path, line: &str) -> Self {
        let line = format!("serve --address 127.0.0.1:0 --admin-address 127.0.0.1:0 --status-json {line}");
        let mut command = meadow(folder, &line);
        command.stderr(fs::File::create(folder.join("log")).unwrap());
        let mut server = Self::speaking(command);
        server.ready = server.hear("ready");
        server
    }

    fn speaking(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe was asked for"));
        Self { child, lines, ready: Value::Null }
    }

    /// What its next line says; it is `kind` and nothing else.
    fn hear(&mut self, kind: &str) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("it speaks");
        let Ok(Value::Object(mut said)) = serde_json::from_str(&line) else { panic!("no object: {line:?}") };
        let value = said.remove(kind).unwrap_or_else(|| panic!("no {kind}: {line:?}"));
        assert!(said.is_empty(), "more than one kind in {line:?}");
        value
    }

    fn address(&self, key: &str) -> &str {
        self.ready[key].as_str().expect("an address")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn check_played(report: &Value, players: u64) {
    for (key, expect) in [("players_connected", players), ("state_errors", 0), ("disconnects", 0)] {
        assert_eq!(report[key].as_f64(), Some(expect as f64), "{key}: {report}");
    }
}

#[test]
fn a_server_and_bots_play_as_the_protocol_with_their_parent_says() {
    let _alone = alone();
    let folder = folder("meadow-serve");
    fs::write(folder.join("throng.toml"), "[server]\naudit_samples = true\n[game]\nspeed_m_per_s = 3.0\n").unwrap();
    let mut server = Server::start(&folder, "--npcs 40 --at-night --speed 2");
    assert_eq!(server.ready["version"], env!("CARGO_PKG_VERSION"), "{}", server.ready);
    assert!(server.ready["commit"].is_string());
    let log = fs::read_to_string(folder.join("log")).unwrap();
    let first = log.lines().next().unwrap_or_default();
    assert!(first.contains("settings") && first.contains("throng.toml"), "{log}");

    let connect = server.address("address").to_owned();
    let bots = run(&folder, &format!("bots --connect {connect} --players 3 --seconds 2 --audited-one-in 1 --json"));
    assert_eq!(bots.code, Some(0), "{}", bots.stderr);
    let report = bots.json();
    check_played(&report, 3);
    assert!(report["state_checks"].as_u64() > Some(0) && report["counters"]["turns"].as_u64() > Some(0), "{report}");
    assert!(report["machine"]["calibration"]["integer_ns"].as_f64() > Some(0.0), "{report}");

    let admin = server.address("admin_address").to_owned();
    let help = run(&folder, &format!("console --connect {admin} help"));
    assert!(help.stdout.contains("rules.reload"), "{}", help.stderr);

    assert!(server.hear("status")["second"].is_u64());
    // The end of its input is the order to stop; what it says last is the report.
    drop(server.child.stdin.take());
    let rest: Vec<String> = (&mut server.lines).lines().map(|line| line.expect("text")).collect();
    let last: Value = serde_json::from_str(rest.last().expect("it says more")).expect("JSON");
    assert!(last["report"]["ticks"].as_u64() > Some(0), "{last}");
    assert!(server.child.wait().expect("a child of ours").success());
}

#[test]
fn a_load_run_and_a_demo_start_this_very_executable() {
    let _alone = alone();
    let folder = folder("meadow-load");
    for line in ["load --players 4 --npcs 40 --seconds 2 --json", "demo --players 3 --seconds 2 --json --at-night"] {
        let said = run(&folder, line);
        let report = said.json();
        let players = if line.starts_with("load") { 4 } else { 3 };
        check_played(&report, players);
        assert_eq!((&report["game"], &report["version"]), (&"meadow".into(), &env!("CARGO_PKG_VERSION").into()));
        assert!(report["bots"]["counters"]["turns"].is_u64(), "the game's own: {report}");
        // A machine that others use too may be late; nothing else may have failed.
        let late = ["ticks_missed_ours", "tick_lateness_ms.max", "bots.thinks_skipped_share"];
        for bar in report["bars"].as_array().expect("a list").iter().filter(|bar| bar["passed"] == false) {
            assert!(late.iter().any(|key| bar["key"] == *key), "{bar}");
        }
    }
    assert!(folder.join("reports/load/report.html").exists() && folder.join("reports/demo/report.html").exists());
    fs::create_dir_all(folder.join("reports/load/captures")).unwrap();
    let listed = run(&folder, "capture list reports/load/captures --json");
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
}

#[test]
fn tokens_are_made_with_the_key_of_the_settings_in_the_working_folder() {
    let folder = folder("meadow-token");
    let line = "token --client-id 7 --server 127.0.0.1:40000 --json";
    let token = |folder: &Path| meadow(folder, line).env_remove("THRONG_PRIVATE_KEY").output().expect("it starts");
    assert_eq!(token(&folder).status.code(), Some(2), "there is no key anywhere");
    fs::write(folder.join("throng.toml"), format!("[server]\nprivate_key = \"{KEY}\"\n")).unwrap();
    let made = token(&folder);
    let made: Value = serde_json::from_slice(&made.stdout).unwrap_or_else(|error| panic!("{error}: {made:?}"));
    assert_eq!(made["client_id"], 7);
}

#[test]
fn all_mistakes_of_the_file_are_told_at_once_those_of_the_game_among_them() {
    let folder = folder("meadow-mistakes");
    fs::write(folder.join("throng.toml"), "[server]\nwrokers = 2\n[game]\nspeed_m_per_s = 99.0\nsed = 3\n").unwrap();
    run(&folder, "serve").check_refused(&[
        "throng.toml:2: [server] wrokers: unknown key; did you mean `workers`?",
        "throng.toml:4: [game] speed_m_per_s: 99 is too high; it may be 0.1 to 20 m/s",
        "throng.toml:5: [game] sed: unknown key; did you mean `seed`?",
    ]);
    run(&folder, "serve --config other.toml").check_refused(&["other.toml: no such file"]);
}

#[test]
fn the_command_line_has_the_games_own_words_and_no_others() {
    let folder = folder("meadow-words");
    let help = run(&folder, "serve --help").stdout;
    for part in ["--at-night", "--speed <M_PER_S>", "--npcs", "throng.toml"] {
        assert!(help.contains(part), "{part:?} is not in {help}");
    }
    assert!(!help.contains("--game") && !help.contains("--inject") && !help.contains("precinct"), "{help}");
    let version = concat!("meadow ", env!("CARGO_PKG_VERSION"), " (", env!("THRONG_COMMIT"), ")\n");
    assert_eq!(run(&folder, "--version").stdout, version);
    run(&folder, "serve --speed fast").check_refused(&["--speed fast: invalid float literal"]);
    run(&folder, "serve --all-awake").check_refused(&["--all-awake"]);
    run(&folder, "load --scenario rush").check_refused(&["`rush`", "log-in-at-once"]);
}

/// Promise: bots that could not play are a failure, and the exit status says so.
#[test]
fn bots_that_nobody_lets_in_are_no_success() {
    let folder = folder("meadow-nobody");
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("it is bound");
    let said = run(&folder, &format!("bots --connect {address} --players 2 --seconds 1"));
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("FAIL none of 2 bots got into a world"), "{}", said.stderr);
}

/// The subsystem that is slower by most, of a preflight's report.
fn slower_by_most(report: &serde_json::Value) -> &str {
    let rows = report["findings"]["subsystems"].as_array().expect("rows");
    let slower = rows.iter().filter(|row| row["verdict"] == "slower" && row["name"] != "all");
    let most = slower
        .max_by(|one, other| one["shift_percent"].as_f64().partial_cmp(&other["shift_percent"].as_f64()).unwrap());
    most.expect("one is slower")["name"].as_str().expect("a name")
}

/// Promise: a preflight of a program against itself sees nothing, since both do the same work; what takes longer is named.
#[test]
fn a_preflight_names_the_subsystem_that_is_slower_and_sees_nothing_between_equals() {
    let _alone = alone();
    let folder = folder("meadow-preflight");
    let program = env!("CARGO_BIN_EXE_meadow");
    let both = format!(
        "preflight --base {program} --change {program} --seconds 5 --pair-s 0.3 --frames-per-step 30 --players 20 --json"
    );
    let same = run(&folder, &both);
    let report = same.json();
    // On a host with others' work five seconds may be too few to say anything, which has a status of its own.
    let told = (same.code, report["verdict"].as_str().unwrap_or_default());
    assert!([(Some(0), "none"), (Some(2), "unknown")].contains(&told), "{told:?}: {report}");
    assert_eq!(report["did_the_same"], true, "{report}");
    let planted = run(&folder, &format!("{both} --slow-change replication:work:150"));
    let report = planted.json();
    assert_eq!((planted.code, &report["verdict"]), (Some(1), &"slower".into()), "{report}");
    assert_eq!(slower_by_most(&report), "replication", "{report}");
    assert!(folder.join("reports/preflight/report.html").is_file());

    let gone = run(&folder, "preflight --base no-such-thing --change no-such-thing");
    gone.check_refused(&["--base no-such-thing is no file, no folder, and no revision"]);
}

/// Promise: a workload that is to record does so while it is measured, and leaves nothing behind.
#[test]
fn a_workload_records_where_it_is_told_to_and_removes_that() {
    let _alone = alone();
    let check = |words: &str, records: bool| {
        let folder = folder("meadow-workload");
        let mut command = meadow(&folder, &format!("workload --players 5 {words}"));
        command.env("TMPDIR", &folder);
        let mut workload = Server::speaking(command);
        workload.hear("ready");
        let recorded = folder.join(format!("throng-workload-{}", workload.child.id()));
        assert_eq!(recorded.exists(), records, "{words}");
        // Its thread writes once a second.
        let is_written = !records
            || (0..100_000).any(|_| {
                writeln!(workload.child.stdin.as_mut().expect("a pipe was asked for"), "step 1").expect("it listens");
                workload.hear("status");
                fs::read_dir(&recorded).expect("it is there").next().is_some()
            });
        assert!(is_written, "no segment in {}", recorded.display());
        drop(workload.child.stdin.take());
        workload.hear("report");
        assert!(workload.child.wait().expect("a child of ours").success());
        assert!(!recorded.exists(), "{words}");
    };
    check("--record", true);
    check("", false);
}

/// Promise: a recording is a workload as bots are, and what cannot be replayed is told with its file.
#[test]
fn a_preflight_of_a_recording_names_what_is_slower_and_sees_nothing_between_equals() {
    let _alone = alone();
    let folder = folder("meadow-preflight-recording");
    let mut server = Server::start(&folder, "--players 20 --record recordings");
    let connect = server.address("address").to_owned();
    let bots = run(&folder, &format!("bots --connect {connect} --players 20 --seconds 10 --json"));
    assert_eq!(bots.code, Some(0), "{}", bots.stderr);
    drop(server.child.stdin.take());
    assert!(server.child.wait().expect("a child of ours").success());

    let program = env!("CARGO_BIN_EXE_meadow");
    let both = format!("preflight --base {program} --change {program} --seconds 5 --pair-s 0.3 --json");
    let both = format!("{both} --frames-per-step 5 --recording recordings");
    let same = run(&folder, &both);
    let report = same.json();
    let told = (same.code, report["verdict"].as_str().unwrap_or_default());
    assert!([(Some(0), "none"), (Some(2), "unknown")].contains(&told), "{told:?}: {report}");
    assert_eq!((&report["did_the_same"], &report["per"]), (&true.into(), &"tick".into()), "{report}");
    assert!(report["workload"].as_str().expect("words").starts_with("recording recordings (meadow"), "{report}");
    assert!(report["counts"][0]["name"] == "allocations", "{report}");

    let subsystems = report["findings"]["subsystems"].as_array().expect("rows");
    let largest = subsystems.iter().filter(|row| row["name"] != "all");
    let largest = largest.max_by(|one, other| one["share"].as_f64().partial_cmp(&other["share"].as_f64()).unwrap());
    let largest = largest.expect("it takes time")["name"].as_str().expect("a name");
    let planted = run(&folder, &format!("{both} --slow-change {largest}:work:400"));
    let report = planted.json();
    assert_eq!((planted.code, &report["verdict"]), (Some(1), &"slower".into()), "{report}");
    assert_eq!(slower_by_most(&report), largest, "{report}");
    let scopes = report["scopes"].as_array().expect("scopes");
    assert!(scopes.iter().any(|scope| scope["subsystem"] == largest), "{report}");
    assert!(fs::read_to_string(folder.join("reports/preflight/report.html")).unwrap().contains("recording recordings"));

    let start = format!("preflight --base {program} --change {program} --seconds 5");
    run(&folder, &format!("{start} --frames-per-step 1000 --recording recordings")).check_refused(&[
        "recordings is too short",
        "record for longer",
        "--frames-per-step",
    ]);
    run(&folder, &format!("{start} --players 5 --recording recordings")).check_refused(&["--players has no meaning"]);
    run(&folder, &format!("{start} --recording reports")).check_refused(&["reports", "no recording in this folder"]);
    run(&folder, &format!("{start} --recording nowhere")).check_refused(&["--recording nowhere", "a server recorded"]);
    let segment = first_file(&folder.join("recordings"));
    let mut bytes = fs::read(&segment).unwrap();
    bytes[60] ^= 1;
    fs::write(folder.join("damaged.throngrec"), bytes).unwrap();
    run(&folder, &format!("{start} --recording damaged.throngrec")).check_refused(&["damaged.throngrec", "damaged"]);
}

#[test]
fn runs_are_kept_in_a_history_and_one_is_held_against_another() {
    let _alone = alone();
    let folder = folder("meadow-history");
    let load = "load --players 3 --seconds 1 --report reports/one";
    let first = run(&folder, load);
    assert!(first.stderr.contains("kept in reports/history/"), "{}", first.stderr);
    // A host whose cores are taken meanwhile calibrates as another machine.
    let second = run(&folder, &format!("{load} --against reports/one --across-machines"));
    assert!(
        second.stderr.contains("all of a tick") && second.stderr.contains("two runs say nothing of noise"),
        "{}",
        second.stderr
    );

    let report = folder.join("reports/one/report.json");
    let mut other: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    assert!(other["machine"]["calibration"]["memory_ns"].as_f64() > Some(0.0), "{}", other["machine"]);
    other["machine"]["cpu"] = "another one".into();
    fs::create_dir_all(folder.join("reports/other")).unwrap();
    fs::write(folder.join("reports/other/report.json"), other.to_string()).unwrap();
    run(&folder, &format!("{load} --against reports/other"))
        .check_refused(&["processor: another one and", "--across-machines"]);

    let mut text = fs::read(first_file(&folder.join("reports/history"))).unwrap();
    text.extend(b"no record\n");
    fs::write(folder.join("mine.jsonl"), text).unwrap();
    let told = run(&folder, "history mine.jsonl --html history.html --fail-on-slower --json");
    let found = told.json();
    assert_eq!(
        (told.code, found["runs"].as_u64(), found["faults_count"].as_u64()),
        (Some(2), Some(2), Some(1)),
        "{}",
        told.stderr
    );
    assert_eq!(found["series"][0]["is_judged"], false, "{found}");
    assert!(told.stderr.contains("mine.jsonl:3: is no record of a run"), "{}", told.stderr);
    assert!(fs::read_to_string(folder.join("history.html")).unwrap().contains("Scopes of"), "the page has charts");
}

fn first_file(folder: &Path) -> PathBuf {
    fs::read_dir(folder).unwrap().next().expect("a file").unwrap().path()
}
