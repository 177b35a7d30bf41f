//! A world that ends its whole server, in each of the ways in which that can happen: the supervisor starts another, which
//! knows of which world the one before died and parks it, so that the others play on.

use std::{fs, path::Path, time::Duration};

use serde_json::Value;
use throng_client::ClientState;
use throng_crash::CrashReport;

use crate::{
    address::{KEY, token},
    child::{Server, alone, finish, folder, throng, wait_until},
    little_memory::LittleMemory,
    player::Player,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// A hideout with a fault ends its server 3 s after it was made.
const BEFORE_DEATH: Duration = Duration::from_secs(3);

/// The fault of one hideout, and how the server dies of it.
const DEATHS: [(&str, &str); 5] = [
    ("dies-of-stack-overflow", "stack overflow"),
    ("dies-of-double-panic", "double panic"),
    ("dies-of-out-of-memory", "out of memory"),
    ("dies-of-segv", "memory that is not there"),
    ("dies-of-bus", "a mapped file beyond its end"),
];

/// More than a small server needs, and less than the hungry world takes.
const GROUP_BYTES: u64 = 600 << 20;

/// A small supervised server whose first hideout has a fault, in a control group if there is one.
fn start(fault: &str, crashes: &Path, group: Option<&LittleMemory>) -> Server {
    let mut command = throng(&[]);
    command.args(["serve", "--address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0", "--supervised"]);
    command.args(["--players", "4", "--npcs", "40", "--workers", "2", "--inject", fault]);
    command.arg("--crashes").arg(crashes).env("THRONG_PRIVATE_KEY", KEY);
    if let Some(group) = group {
        command = group.enter(&command);
    }
    Server::start_command(command)
}

fn ask(server: &Server, words: &[&str]) -> Value {
    let connect = server.admin_address.to_string();
    let finished = finish(throng(&[&["console", &connect, "--json"], words].concat()), PATIENCE);
    assert!(finished.status.success(), "{words:?}: {}\n{}", finished.stderr, server.said());
    finished.json()
}

/// The one report in `crashes`.
fn report_in(crashes: &Path, server: &Server) -> CrashReport {
    let deaths: Vec<_> = fs::read_dir(crashes).expect("it was made").flatten().collect();
    let [death] = deaths.as_slice() else { panic!("one death and not {deaths:?}:\n{}", server.said()) };
    let report = fs::read(death.path().join("report.json")).expect("the next server has waited for it");
    serde_json::from_slice(&report).expect("a report")
}

/// Promise: a world may end its server once. There is another one, where that world is not, and all others are.
fn dies_and_is_back_without_its_culprit(fault: &str, cause: &str, group: Option<&LittleMemory>) {
    let _alone = alone();
    let crashes = folder(&format!("deaths-{fault}"));
    let mut server = start(fault, &crashes, group);
    let owner = Player::enter(token(server.address, 1));
    // On a busy host the server may be dead before this one is in.
    let mut neighbour = Player::new(token(server.address, 2));
    neighbour.play_until(BEFORE_DEATH, |player| player.client.world().is_some());
    server.wait_until_ready_again();
    drop((owner, neighbour));

    let report = report_in(&crashes, &server);
    assert!(report.meaning.contains(cause), "{fault}: {}", report.text());
    let culprits = report.culprits();
    let [culprit] = culprits.as_slice() else { panic!("{fault}: one culprit and not {culprits:?}: {}", report.text()) };
    assert_eq!(culprit.kind.as_deref(), Some("hideout"), "{fault}");
    // The first frame publishes it, which may come after the line that says ready.
    let parked = wait_until(PATIENCE, || {
        Some(ask(&server, &["world.parked"])).filter(|told| told["parked"].as_array().is_some_and(|it| !it.is_empty()))
    });
    let parked = parked.unwrap_or_else(|| panic!("nothing is parked:\n{}", server.said()));
    let plan = &parked["parked"][0];
    assert_eq!(
        (&plan["kind"], &plan["why"], &plan["times"]),
        (&"hideout".into(), &"death".into(), &1.into()),
        "{parked}"
    );
    assert_eq!(plan["seed"].as_u64(), culprit.seed, "{parked}");
    assert!(server.said().contains("this world ended the server that was here before"), "{}", server.said());

    let mut owner = Player::new(token(server.address, 1));
    let is_refused =
        |player: &mut Player| matches!(player.client.state(), ClientState::Resting | ClientState::Disconnected(_));
    assert!(owner.play_until(PATIENCE, is_refused), "its hideout is parked: {:?}", owner.client.state());
    Player::enter(token(server.address, 2)).leave();
    assert_eq!(ask(&server, &["world.unpark", "hideout"])["unparked"], 1);
    assert!(ask(&server, &["world.parked"])["parked"].as_array().is_some_and(Vec::is_empty));

    server.signal_to_end();
    let ended = server.wait();
    assert_eq!(ended.status.code(), Some(0), "{fault}: {}", ended.stderr);
}

#[test]
fn a_world_that_ends_its_server_is_parked_in_the_next() {
    for (fault, cause) in DEATHS {
        dies_and_is_back_without_its_culprit(fault, cause, None);
    }
}

#[test]
fn a_world_that_takes_all_memory_is_parked_in_the_next_server() {
    let Some(group) = LittleMemory::new(GROUP_BYTES) else { return };
    dies_and_is_back_without_its_culprit("hungry-world", "its control group ran out of memory", Some(&group));
}

#[test]
#[ignore = "full form: takes an hour"]
fn r21_three_hundred_deaths() {
    let group = LittleMemory::new(GROUP_BYTES);
    for round in 0..50 {
        for (fault, cause) in DEATHS {
            dies_and_is_back_without_its_culprit(fault, cause, None);
        }
        if group.is_some() {
            dies_and_is_back_without_its_culprit("hungry-world", "its control group ran out of memory", group.as_ref());
        }
        eprintln!("R21: round {round} of 50");
    }
}

/// Promise: a server that hangs before its first tick is ended where it hangs, and another one is tried, but not for ever.
#[test]
fn a_server_that_hangs_in_its_start_is_ended_with_a_report() {
    let crashes = folder("deaths-hung-start");
    let mut command = throng(&["serve", "--address", "127.0.0.1:0", "--admin-address", "off", "--supervised"]);
    command.args([
        "--players",
        "1",
        "--npcs",
        "0",
        "--inject",
        "hung-start",
        "--start-within-s",
        "2",
        "--restarts-max",
        "1",
    ]);
    command.arg("--crashes").arg(&crashes);
    let ended = finish(command, PATIENCE);
    assert_eq!(ended.status.code(), Some(3), "{}", ended.stderr);
    assert_eq!(ended.stderr.matches("has run no tick 2 s after its start").count(), 2, "{}", ended.stderr);
    let reports = fs::read_dir(&crashes).expect("it was made").flatten();
    let reports: Vec<_> =
        reports.filter_map(|death| fs::read_to_string(death.path().join("report.txt")).ok()).collect();
    assert!(
        !reports.is_empty() && reports.iter().all(|page| page.contains("HangStart") || page.contains("start_threads")),
        "{reports:?}"
    );
}
