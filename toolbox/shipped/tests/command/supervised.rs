//! A supervised server: whatever it dies of there is another one soon, but not for ever; and what ends the one ends both.

use std::{
    fs,
    time::{Duration, Instant},
};

use nix::{sys::signal::kill, unistd::Pid};

use crate::{
    child::{Finished, Server, Signal, Started, finish, folder, throng, wait_until},
    idle::sleeps_by_thread,
    lifecycle::get,
};

const SMALL: [&str; 5] = ["--supervised", "--players", "1", "--npcs", "0"];
/// On any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The processes that this one has started and that have not been waited for.
fn children_of(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// The server that this supervisor has now, other than `before`.
fn server_of(supervisor: u32, before: Option<u32>) -> Option<u32> {
    wait_until(PATIENCE, || children_of(supervisor).into_iter().find(|&child| Some(child) != before))
}

fn kill_hard(pid: u32) {
    kill(Pid::from_raw(pid as i32), Signal::SIGKILL).expect("it is still there");
}

/// Whether a process still runs: one that ended is nobody's to wait for where nothing clears away orphans.
fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Promise: a server that is killed is back and answers, and an order to end reaches the one that runs then.
#[test]
fn a_killed_server_is_back_and_ends_with_its_supervisor() {
    let crashes = folder("supervised-crashes");
    let mut server = Server::start(&[&SMALL[..], &["--crashes", crashes.to_str().expect("plain")]].concat());
    let first = server_of(server.pid(), None).expect("it has started one");
    // By then it has heard that the first tick has run.
    server.wait_for_status("second", |second| second >= 1.0);
    let (slept, second_at) = (sleeps_by_thread(server.pid()), Instant::now() + Duration::from_secs(1));
    std::thread::sleep(second_at.saturating_duration_since(Instant::now()));
    assert_eq!(sleeps_by_thread(server.pid()), slept, "a supervisor does not wake while its server plays");

    kill_hard(first);
    server.wait_until_ready_again();
    let second = server_of(server.pid(), None).expect("another one");
    assert_ne!(second, first);
    let (head, body) = get(server.admin_address, "/health");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}\n{body}");
    let is_told = wait_until(PATIENCE, || server.said().contains("the report is in").then_some(()));
    assert!(is_told.is_some(), "the dead one's monitor says where its report is:\n{}", server.said());
    assert!(server.said().contains("SIGKILL"), "{}", server.said());

    server.signal_to_end();
    let ended = server.wait();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(!runs(second));
    assert!(ended.report["frames"].as_u64().is_some(), "it ended in order, with its report: {}", ended.report);
}

/// Promise: a server that dies again and again is given up, and whoever started it can tell by the status.
#[test]
fn a_server_that_dies_again_and_again_is_given_up() {
    let supervisor = Started::new(throng(
        &[
            &["serve", "--address", "127.0.0.1:0", "--admin-address", "off", "--crashes", "off"],
            &SMALL[..],
            &["--restarts-max", "2"],
        ]
        .concat(),
    ));
    let mut dead = None;
    for _ in 0..3 {
        let server = server_of(supervisor.pid(), dead).expect("it is started again");
        kill_hard(server);
        dead = Some(server);
    }
    let Finished { status, stderr, .. } = supervisor.finish(PATIENCE);
    assert_eq!(status.code(), Some(3), "{stderr}");
    for part in ["died once more (signal: 9 (SIGKILL)", "restarted 2 times within 900 s", "--restarts-max"] {
        assert!(stderr.contains(part), "{part:?} is not in {stderr}");
    }
}

/// Promise: no server is left behind, however its supervisor dies.
#[test]
fn a_server_ends_when_its_supervisor_is_killed() {
    let server = Server::start(&SMALL);
    let child = server_of(server.pid(), None).expect("it has started one");
    assert!(runs(child));
    kill_hard(server.pid());
    let is_gone = wait_until(PATIENCE, || (!runs(child)).then_some(()));
    assert!(is_gone.is_some(), "it ends by itself");
}

/// Promise: what a restart cannot mend is told at once, as without a supervisor.
#[test]
fn a_mistake_is_told_once_and_by_the_status_for_it() {
    let missing = folder("supervised-mistake").join("missing.toml");
    let command = throng(&["serve", "--supervised", "--config", missing.to_str().expect("a plain path")]);
    let refused = finish(command, PATIENCE);
    refused.check_refused(&["missing.toml"]);
    assert_eq!(refused.stderr.matches("missing.toml").count(), 1, "{}", refused.stderr);
}
