//! The flight recorder of a live server: its rules change while it plays, captures are saved by hand, what the host
//! forbids is told, and nothing secret is kept.

mod stalls;

use std::{
    collections::HashSet,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use nix::{sys::signal::kill, unistd::Pid};
use throng_capture::{
    format,
    model::{Capture, SwitchSource},
};
use throng_net::protocol::ConnectToken;

use crate::{
    address::{KEY, token},
    child::{
        Finished, Server, Signal, Started, captures_in, executable, finish, folder, may_be_real_time, throng,
        wait_until,
    },
    crowd::Crowd,
    player::Player,
};

/// Until what a rule says has happened: rules come into force 1 to 2 s after they were saved, and the machine may be
/// busy.
const WITHIN: Duration = Duration::from_secs(30);

const SMALL: [&str; 5] = ["--players", "4", "--npcs", "40", "--all-awake"];

/// Triggers that fire by themselves.
const KINDS: [&str; 11] = [
    "frame",
    "tick",
    "workers-busy",
    "stuck-tick",
    "subsystem",
    "scope",
    "lock-wait",
    "run-queue",
    "memory-rate",
    "large-allocation",
    "leak",
];

/// Nothing is saved but by hand.
pub fn quiet() -> String {
    KINDS.map(|kind| format!("[triggers.{kind}]\non = false\n")).concat()
}

/// The same but for ticks of worlds, each of which takes too long and has no cooldown.
fn scopes_fire(disk_budget_mb: u32) -> String {
    let rule =
        format!("on = true\ncooldown_s = 0\npre_roll_s = 0.2\npost_roll_s = 0\ndisk_budget_mb = {disk_budget_mb}\n");
    let rules = quiet().replace("[triggers.scope]\non = false\n", &format!("[triggers.scope]\n{rule}"));
    rules + "[budgets.scopes_us]\n\"world.tick\" = 1\n"
}

/// The files of one server.
struct Place {
    folder: PathBuf,
    key: &'static str,
    size: &'static [&'static str],
    log_level: &'static str,
}

impl Place {
    /// A folder of its own with settings, `recorder` among them, and rules.
    fn new(name: &str, recorder: &str, rules: &str) -> Place {
        let place = Place { folder: folder(&format!("recorder-{name}")), key: KEY, size: &SMALL, log_level: "trace" };
        fs::create_dir(place.captures()).expect("a folder of ours");
        place.set_rules(rules);
        let rules = place.rules();
        fs::write(place.folder.join("throng.toml"), format!("[recorder]\nrules = {rules:?}\n{recorder}\n"))
            .expect("a folder of ours");
        place
    }

    fn captures(&self) -> PathBuf {
        self.folder.join("captures")
    }

    fn rules(&self) -> PathBuf {
        self.folder.join("rules.toml")
    }

    fn set_rules(&self, rules: &str) {
        fs::write(self.rules(), rules).expect("a folder of ours");
    }

    /// What the server has said so far.
    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn wait_for_log(&self, words: &str) {
        let said = wait_until(WITHIN, || self.log().contains(words).then_some(()));
        assert!(said.is_some(), "{words:?} is not in\n{}", self.log());
    }

    /// A server that saves captures here; its log is a file, so that it can be read while the server runs.
    fn start(&self) -> Server {
        self.start_through("exec \"$@\" 2>\"$LOG\"")
    }

    /// The same, started by a line of shell that has the command as its arguments and `LOG` and `CAPTURES`.
    fn start_through(&self, line: &str) -> Server {
        let mut command = Command::new("sh");
        command.args(["-c", line, "sh"]);
        self.start_as(command)
    }

    /// The same by any command that runs its arguments.
    fn start_as(&self, mut command: Command) -> Server {
        let (settings, captures) = (self.folder.join("throng.toml"), self.captures());
        command.arg(executable()).arg("serve").args(self.size);
        command.args(["--address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0", "--config"]).arg(settings);
        command.arg("--captures").arg(&captures).env("CAPTURES", captures).env("LOG", self.folder.join("log"));
        command.env("THRONG_PRIVATE_KEY", self.key).env("THRONG_LOG", self.log_level);
        Server::start_command(command)
    }
}

fn wait_for_capture(folder: &Path) -> PathBuf {
    let found = wait_until(WITHIN, || captures_in(folder).pop());
    found.unwrap_or_else(|| panic!("no capture comes into {}", folder.display()))
}

fn read(path: &Path) -> Capture {
    let bytes = fs::read(path).expect("it was there a moment ago");
    format::read(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Has a live server save; the note says why.
fn save(server: &Server, note: &str) -> Finished {
    let address = server.admin_address.to_string();
    finish(throng(&["capture", "save", "--connect", &address, "--note", note, "--json"]), Duration::from_secs(60))
}

fn save_well(server: &Server, note: &str) -> PathBuf {
    let finished = save(server, note);
    assert!(finished.status.success(), "{}", finished.stderr);
    PathBuf::from(finished.json()["path"].as_str().expect("a path"))
}

#[test]
fn rules_change_while_the_server_plays_and_wrong_ones_change_nothing() {
    let place = Place::new("rules", "", &quiet());
    let server = place.start();
    let scopes = place.captures().join("scope");
    let leave = |client_id| Player::enter(token(server.address, client_id)).leave();
    leave(1);
    assert!(captures_in(&scopes).is_empty(), "nobody asked for any");

    place.set_rules(&scopes_fire(4));
    place.wait_for_log("new rules are in force");
    assert_eq!(read(&wait_for_capture(&scopes)).about.trigger.name, "world.tick");

    place.set_rules("[triggers.scope]\ncooldown_s = -1\n[budgets.scopes_us]\n\"world.tick\" = \"much\"\n");
    place.wait_for_log("the rules file is wrong; the rules before it stay in force");
    // The server may write into it meanwhile.
    assert!(wait_until(WITHIN, || fs::remove_dir_all(&scopes).ok()).is_some());
    wait_for_capture(&scopes);
    // It is looked at every second, and told once.
    std::thread::sleep(Duration::from_secs(3));
    for mistake in ["rules.toml:2: [triggers.scope] cooldown_s: ", "rules.toml:4: [budgets.scopes_us] world.tick: "] {
        assert_eq!(place.log().matches(mistake).count(), 1, "{mistake:?} in\n{}", place.log());
    }

    let lines = |words: &str| place.log().matches(words).count();
    place.set_rules(&format!("{}[log]\n\"server.clients\" = \"info\"\n", quiet()));
    assert!(wait_until(WITHIN, || (lines("new rules are in force") == 2).then_some(())).is_some(), "{}", place.log());
    let left = lines("client left");
    assert!(left >= 1, "THRONG_LOG=trace holds where the rules are silent: {}", place.log());
    leave(2);
    place.set_rules(&format!("{}[log]\n\"server.clients\" = \"debug\"\n", quiet()));
    assert!(wait_until(WITHIN, || (lines("new rules are in force") == 3).then_some(())).is_some(), "{}", place.log());
    leave(3);
    assert!(wait_until(WITHIN, || (lines("client left") > left).then_some(())).is_some(), "{}", place.log());
    let ended = server.stop();
    assert!(ended.status.success());
    assert_eq!(lines("client left"), left + 1, "the one of the second player was off: {}", place.log());
}

#[test]
fn a_rule_is_changed_from_the_console_until_the_file_is_read_again() {
    let place = Place::new(
        "said",
        "",
        &scopes_fire(4).replace(
            "[triggers.scope]
on = true",
            "[triggers.scope]
on = false",
        ),
    );
    let server = place.start();
    let (address, scopes) = (server.admin_address.to_string(), place.captures().join("scope"));
    let console = |words: &[&str]| finish(throng(&[&["console", "--connect", &address], words].concat()), WITHIN);
    console(&["rules.set", "triggers.scope.cooldown_s", "-1"])
        .check_refused(&["triggers.scope.cooldown_s: -1 is too low"]);
    assert!(captures_in(&scopes).is_empty(), "it is off");
    let set = console(&["rules.set", "triggers.scope.on", "true"]);
    assert!(set.status.success() && set.stdout.contains("triggers.scope.on"), "{}{}", set.stdout, set.stderr);
    assert_eq!(read(&wait_for_capture(&scopes)).about.trigger.name, "world.tick");
    let changed = console(&["changes"]);
    assert!(changed.stdout.contains("rules.set triggers.scope.on true"), "{}", changed.stdout);
    assert!(server.stop().status.success());
}

#[test]
fn a_capture_by_hand_is_where_the_server_says_with_its_note() {
    let place = Place::new("by-hand", "", &quiet());
    let server = place.start();
    let path = save_well(&server, "rubber-banding in the hub");
    assert!(path.starts_with(place.captures().join("manual")), "{}", path.display());
    let shown = finish(throng(&["capture", "show", &path.display().to_string()]), WITHIN);
    assert!(shown.status.success(), "{}", shown.stderr);
    assert!(shown.stdout.contains("rubber-banding in the hub"), "{}", shown.stdout);
    let address = server.admin_address.to_string();
    let ended = server.stop();
    assert_eq!((&ended.report["captures"], &ended.report["captures_lost"]), (&1.into(), &0.into()), "{}", ended.report);

    // The address is nobody's now.
    let finished = finish(throng(&["capture", "save", "--connect", &address, "--note", "x"]), WITHIN);
    finished.check_refused(&[&format!("--connect {address}"), "refused"]);
}

#[test]
fn a_server_that_has_no_place_for_captures_says_which_setting_is_missing() {
    let server = Server::start(&SMALL);
    save(&server, "").check_refused(&[
        "did not save",
        "no folder for captures",
        "[recorder] captures",
        "--captures DIR",
    ]);
    assert!(server.stop().status.success());
    let server = Server::start(&[&SMALL[..], &["--no-recorder"]].concat());
    save(&server, "").check_refused(&["did not save", "recorder"]);
    // The port of players is no admin port, and does not answer.
    let nobody = format!("{}", server.address);
    let finished = finish(throng(&["capture", "save", "--connect", &nobody, "--note", "x"]), WITHIN);
    finished.check_refused(&[&format!("--connect {nobody}")]);
    assert!(server.stop().status.success());
}

/// Forbids `perf_event_open` as a container's filter does, and runs its arguments.
const WITHOUT_PERF: &str = r#"
import ctypes, os, struct, sys
number = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
EPERM, NO_NEW_PRIVS, SECCOMP, FILTER = 1, 38, 22, 2
code = b"".join(struct.pack("HBBI", *line) for line in [
    (0x20, 0, 0, 0),                     # the call's number
    (0x15, 0, 1, number),                # perf_event_open: the next line, others: the one after
    (0x06, 0, 0, 0x00050000 | EPERM),
    (0x06, 0, 0, 0x7fff0000),
])
buffer = ctypes.create_string_buffer(code)
program = struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and libc.prctl(SECCOMP, FILTER, program, 0, 0) == 0, ctypes.get_errno()
os.dup2(os.open(os.environ["LOG"], os.O_WRONLY | os.O_CREAT, 0o644), 2)
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn without_perf_event_a_server_says_what_is_lost_and_how_to_allow_it() {
    let python = Command::new("python3").arg("--version").output();
    let has_python = python.is_ok_and(|output| output.status.success());
    assert!(has_python, "python3 puts the filter in force; it is installed by `cargo xtask setup`");
    let place = Place::new("no-perf", "", &quiet());
    let mut command = Command::new("python3");
    command.args(["-c", WITHOUT_PERF]);
    let server = place.start_as(command);
    std::thread::sleep(Duration::from_secs(1));
    let capture = read(&save_well(&server, ""));
    assert!(server.stop().status.success());
    assert_eq!(capture.about.switches, SwitchSource::Schedstat);
    let is_split = |frame: &throng_capture::model::Frame| frame.threads.iter().any(|thread| thread.running_ns > 0);
    assert!(capture.frames.iter().any(is_split), "sums of each frame are there all the same");
    let log = place.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("context switches are not recorded")).collect();
    let [line] = lines.as_slice() else { panic!("told once, and not {} times:\n{log}", lines.len()) };
    for words in [
        "page faults stay unknown",
        "perf_event_open is forbidden",
        "--cap-add PERFMON",
        "Sums per frame are used instead",
    ] {
        assert!(line.contains(words), "{words:?} is not in {line}");
    }
}

#[test]
fn a_server_that_is_to_leave_context_switches_alone_does_so_without_a_word() {
    let place = Place::new("no-switches", "context_switches = false", &quiet());
    let server = place.start();
    let capture = read(&save_well(&server, ""));
    assert!(server.stop().status.success());
    assert_eq!(capture.about.switches, SwitchSource::None);
    assert!(!place.log().contains("context switches"), "{}", place.log());
}

/// A key whose bytes are in no other order by chance.
const SECRET_KEY: &str = "9c41e7b05d2a8f6613cc70b4e9d1582fa36b0e94c87d5f2103b8e64adf7192c5";

/// A token for the server that has [`SECRET_KEY`].
fn secret_token(server: SocketAddr) -> Vec<u8> {
    let mut command = throng(&["token", "--client-id", "7", "--server", &server.to_string()]);
    command.env("THRONG_PRIVATE_KEY", SECRET_KEY);
    let made = finish(command, WITHIN);
    BASE64.decode(made.stdout.trim_end()).expect("base64")
}

/// What must not be found: pieces of key and token, and addresses of the server and of players, who are all on
/// loopback.
fn secrets(server: SocketAddr, token: &[u8]) -> Vec<Vec<u8>> {
    let hex = |at: usize| u8::from_str_radix(&SECRET_KEY[at..at + 2], 16).expect("hex");
    let key: Vec<u8> = (0..SECRET_KEY.len()).step_by(2).map(hex).collect();
    let texts = [SECRET_KEY.to_owned(), SECRET_KEY.to_uppercase(), BASE64.encode(token)];
    let pieces = [&key[..], token].into_iter().flat_map(|bytes| bytes.chunks_exact(8));
    let pieces = pieces.chain(texts.iter().flat_map(|text| text.as_bytes().chunks_exact(16)));
    // A token has long runs of zeros.
    let means_something = |piece: &&[u8]| piece.iter().collect::<HashSet<_>>().len() >= 6;
    let mut secrets: Vec<Vec<u8>> = pieces.filter(means_something).map(<[u8]>::to_vec).collect();
    let port = server.port();
    secrets.extend([b"127.0.0.1".to_vec(), format!(":{port}").into_bytes()]);
    secrets.extend([port.to_be_bytes(), port.to_le_bytes()].map(|port| [&[127, 0, 0, 1], &port[..]].concat()));
    secrets
}

fn found_in(bytes: &[u8], secrets: &[Vec<u8>]) -> Vec<String> {
    let is_in = |secret: &&Vec<u8>| bytes.windows(secret.len()).any(|window| window == secret.as_slice());
    secrets.iter().filter(is_in).map(|secret| String::from_utf8_lossy(secret).into_owned()).collect()
}

/// Promise: a capture can be handed to a stranger.
#[test]
fn captures_of_a_live_server_have_no_address_token_or_key() {
    for (name, recorder) in [("open", "free_text = true"), ("closed", "")] {
        let place = Place { key: SECRET_KEY, ..Place::new(name, recorder, &scopes_fire(16)) };
        let server = place.start();
        let address = server.address.to_string();
        let mut bots = throng(&["bots", "--connect", &address, "--players", "3", "--seconds", "4"]);
        bots.env("THRONG_PRIVATE_KEY", SECRET_KEY);
        let bots = Started::new(bots);
        let token = secret_token(server.address);
        let secrets = secrets(server.address, &token);
        let token = ConnectToken::from_bytes(&token.try_into().expect("2,048 bytes")).expect("a token");
        Player::enter(token).leave();
        place.wait_for_log("client left");
        let note = format!("asked by {address} with {SECRET_KEY}");
        let by_hand = fs::read(save_well(&server, &note)).expect("just written");
        wait_for_capture(&place.captures().join("scope"));
        let played = bots.finish(WITHIN);
        assert!(played.status.success(), "{}", played.stderr);
        assert!(server.stop().status.success());

        let logs = format::read(&by_hand).expect("a capture").logs;
        assert!(logs.iter().any(|line| line.text.contains("client left")), "lines of every level are in it: {logs:?}");
        let found = found_in(&by_hand, &secrets);
        if name == "open" {
            // Address, port and four pieces of the key: the search finds what was left in.
            assert!(found.len() >= 6, "{found:?}");
            continue;
        }
        assert_eq!(found, Vec::<String>::new(), "by hand");
        let by_itself = captures_in(&place.captures().join("scope"));
        assert!(!by_itself.is_empty());
        for path in by_itself {
            let bytes = fs::read(&path).expect("the server has ended");
            assert_eq!(found_in(&bytes, &secrets), Vec::<String>::new(), "{}", path.display());
        }
    }
}

/// Promise: what an AI that is over budget all the time saves evicts its own captures, and none of another cause, nor
/// of the same subsystem in another kind of world.
#[test]
fn a_subsystem_that_is_over_budget_all_the_time_leaves_the_captures_of_others_alone() {
    let captures = folder("recorder-over-budget");
    let rules = captures.with_extension("rules.toml");
    // Every bad frame is saved, and few fit.
    let loud = "on = true\ncooldown_s = 0\npre_roll_s = 0.5\npost_roll_s = 0\ndisk_budget_mb = 1\n";
    let rest = quiet().replace("[triggers.subsystem]\non = false\n", &format!("[triggers.subsystem]\n{loud}"));
    fs::write(&rules, rest).expect("a folder of ours");
    let settings = captures.with_extension("throng.toml");
    fs::write(&settings, format!("[recorder]\nrules = {rules:?}\n")).expect("a folder of ours");
    let others =
        ["subsystem/combat/1-1-1.capture", "subsystem/faults.ballast@dark-zone/1-1-1.capture", "scope/1-1-1.capture"];
    for other in others.map(|other| captures.join(other)) {
        fs::create_dir_all(other.parent().expect("it is in a folder")).expect("a folder of ours");
        fs::write(other, vec![0; 2 << 20]).expect("a folder of ours");
    }
    let place = [captures.display().to_string(), settings.display().to_string()];
    let server = Server::start(
        &[&SMALL[..], &["--inject", "over-budget", "--captures", &place[0], "--config", &place[1]]].concat(),
    );
    // The fault is in a hideout, which is there while its owner is.
    let crowd = Crowd::start(server.address, 4);
    let flooded = captures.join("subsystem/faults.ballast");
    let mut seen = HashSet::new();
    let turned_over = wait_until(Duration::from_secs(60), || {
        let now = captures_in(&flooded);
        seen.extend(now.iter().cloned());
        (seen.len() > 2 * now.len() + 4).then_some(())
    });
    assert!(turned_over.is_some(), "{seen:?}");
    crowd.finish();
    assert!(server.stop().status.success());
    for other in others {
        assert!(captures.join(other).is_file(), "{other} is gone");
    }
    let listed = |only: &str| {
        let listed = finish(throng(&["capture", "list", &place[0], "--folder", only, "--json"]), WITHIN).json();
        let all = listed["captures"].as_array().expect("a list").clone();
        all.into_iter().map(|it| it["folder"].as_str().expect("a folder").to_owned()).collect::<HashSet<_>>()
    };
    assert_eq!(listed("subsystem/faults.ballast"), HashSet::from(["subsystem/faults.ballast".to_owned()]));
    assert_eq!(listed("scope"), HashSet::from(["scope".to_owned()]));
}

/// Promise: a host that takes all cores away for a moment leaves a capture that tells of the ticks that were late for it,
/// in a folder of its own.
#[test]
fn late_ticks_are_captured_in_a_folder_of_their_own() {
    let captures = folder("recorder-late-ticks");
    let server = Server::start(&[&SMALL[..], &["--captures", &captures.display().to_string()]].concat());
    server.wait_for_status("ticks", |ticks| ticks > 0.0);
    let signal = |signal| kill(Pid::from_raw(server.pid() as i32), signal).expect("it runs");
    signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(300));
    signal(Signal::SIGCONT);
    let saved = wait_until(WITHIN, || captures_in(&captures.join("tick")).pop());
    let saved = saved.expect("it is saved").display().to_string();
    let told = finish(throng(&["capture", "show", "--json", &saved]), WITHIN).json();
    let verdict = told["verdict"].as_str().expect("a story has one");
    let cause = if may_be_real_time() { ": core " } else { ": it began late" };
    assert!(
        verdict.starts_with("a tick of world ") && verdict.contains(&format!(" after its period{cause}")),
        "{verdict}"
    );
    if may_be_real_time() {
        // Of the 300 ms, all but one beat of 4 ms is noted.
        let stalled_ms = told["host_stalls"][0]["stalled_ms"].as_f64().expect("a stall");
        assert!(verdict.contains(" stood still for ") && stalled_ms >= 250.0, "{verdict}: {stalled_ms} ms");
    }
    assert!(server.stop().status.success());
}
