//! `throng console` at a live server: what it carries out, what it refuses, and what it prints of a stranger's answer.

use std::{
    io::Write,
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    child::{Finished, Server, finish, folder, throng, wait_until},
    crowd::Crowd,
};

const WITHIN: Duration = Duration::from_secs(60);
const SMALL: [&str; 4] = ["--players", "8", "--npcs", "16"];

fn console(server: &Server, command: &[&str]) -> Finished {
    let address = server.admin_address.to_string();
    finish(throng(&[&["console", &address], command].concat()), WITHIN)
}

#[test]
fn the_server_is_named_as_everywhere_or_before_the_command() {
    let server = Server::start(&[&SMALL[..], &["--workers", "1"]].concat());
    let address = server.admin_address.to_string();
    let said = |arguments: &[&str]| {
        let finished = finish(throng(&[&["console"], arguments].concat()), WITHIN);
        assert!(finished.status.success(), "{arguments:?}: {}", finished.stderr);
        finished.stdout
    };
    for words in [&["help"][..], &["help", "--json"]] {
        let found = said(&[&["--connect", &address], words].concat());
        assert!(found.contains("rules.reload"), "{found}");
        assert_eq!(found, said(&[&[&*address], words].concat()));
    }
    let refused = finish(throng(&["console", "--connect", &address, "packets", "--sideways"]), WITHIN);
    refused.check_refused(&["it takes no `--sideways`"]);
    finish(throng(&["console"]), WITHIN).check_refused(&["--connect HOST:PORT"]);
}

#[track_caller]
fn run_well(server: &Server, command: &[&str]) -> String {
    let finished = console(server, command);
    assert_eq!(finished.status.code(), Some(0), "{command:?}: {}", finished.stderr);
    finished.stdout
}

#[test]
fn commands_are_carried_out_and_mistakes_are_told() {
    let server = Server::start(&SMALL);
    let help = run_well(&server, &["help"]);
    for name in ["packets [--by-world]", "counters [BEGINNING]", "clients [--by-work|", "rules.reload", "help"] {
        assert!(help.contains(name), "{name} is not in {help}");
    }
    let help: Value = serde_json::from_str(&run_well(&server, &["help", "--json"])).expect("one JSON object");
    let listed = help["commands"].as_array().expect("a list");
    let is_listed = |name: &str| listed.iter().any(|command| command["name"] == name);
    assert!(
        ["packets", "rules.reload", "world.list", "player.list", "tune.set"].iter().all(|name| is_listed(name)),
        "{help}"
    );

    // Published once a second.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    let told: Value = serde_json::from_str(&run_well(&server, &["counters", "--json"])).expect("one JSON object");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md")).expect("a page");
    let rows = told["counters"].as_array().expect("a list");
    let names = || rows.iter().map(|row| row["name"].as_str().expect("a name"));
    let listed = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    for name in listed.filter(|name| name.contains('.') && !name.contains(' ') && !name.contains("game_")) {
        assert!(names().any(|told| told == name), "`{name}` is on the page, and the console does not tell it");
    }
    assert!(names().any(|name| name == "game.npcs"), "{told}");

    assert!(run_well(&server, &["clients"]).starts_with("nobody is here"), "and nobody took anything");
    console(&server, &["players"]).check_refused(&[
        "no command is called `players`",
        "rules.reload, rules.set, world.list, world.show, player.list",
    ]);
    console(&server, &["packets", "--all"]).check_refused(&["packets: it takes no `--all`", "--by-world"]);
    for command in [&["rules.list"][..], &["rules.reload"], &["rules.set", "captures.disk_budget_mb", "5"]] {
        console(&server, command).check_refused(&["no rules file", "[recorder] rules"]);
    }
    // The port of players does not answer, and a closed one is told as such.
    let closed =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    finish(throng(&["console", &closed.to_string(), "help"]), WITHIN).check_refused(&["admin_address"]);
    assert!(server.stop().status.success());
}

#[test]
fn packets_are_told_by_kind_while_somebody_plays() {
    let server = Server::start(&SMALL);
    let crowd = Crowd::start(server.address, 4);
    // The report is of the last second; on a full machine the first of play comes late.
    let told = || Some(run_well(&server, &["packets"])).filter(|table| table.lines().count() > 1);
    let table = wait_until(WITHIN, told).expect("packets are told of");
    let mut lines = table.lines();
    let title: Vec<&str> = lines.next().expect("a title").split_whitespace().collect();
    assert_eq!(title, ["kind", "cause", "worlds", "packets/s", "updates/s", "bytes/s", "share", "%"], "{table}");
    assert!(lines.count() > 0, "{table}");
    let object: Value = serde_json::from_str(&run_well(&server, &["packets", "--json"])).expect("one JSON object");
    let rows = object["packets"].as_array().expect("a list of rows");
    let bytes_per_s: f64 = rows.iter().filter_map(|row| row["bytes_per_s"].as_f64()).sum();
    assert!(bytes_per_s > 0.0, "{object}");
    assert!(rows.iter().all(|row| row["kind"].is_string() && row["world"].is_string()), "{object}");
    assert_eq!(crowd.finish().disconnects, 0);
    assert!(server.stop().status.success());
}

#[test]
fn what_took_the_time_is_told_of_a_server_that_records() {
    let place = folder("console-perf");
    let settings = place.join("throng.toml");
    let captures = place.join("captures");
    std::fs::write(&settings, format!("[recorder]\ncaptures = \"{}\"\n", captures.display()))
        .expect("a folder of ours");
    let server = Server::start(&[&SMALL[..], &["--config", settings.to_str().expect("a plain path")]].concat());
    let crowd = Crowd::start(server.address, 4);
    let rows = |command: &[&str]| {
        let told: Value =
            serde_json::from_str(&run_well(&server, &[command, &["--json"]].concat())).expect("one JSON object");
        told["rows"].as_array().expect("a list of rows").clone()
    };
    // The kind of a world that ticks, and one of its worlds.
    let awake = || rows(&["perf.worlds"]).into_iter().find(|row| row["last_tick_ns"].as_u64() > Some(0));
    let world = wait_until(WITHIN, awake).expect("a world ticks");
    let [id, kind] = ["world", "kind"].map(|key| world[key].as_str().expect("a name"));
    let subsystems = rows(&["perf.subsystems"]);
    assert!(subsystems.iter().any(|row| row["frame_ns_mean"].as_u64() > Some(0)), "{subsystems:?}");
    let of_kind = rows(&["perf.subsystems", kind]);
    assert!(of_kind.iter().any(|row| row["tick_ns_mean"].as_u64() > Some(0)), "{of_kind:?}");
    let systems = wait_until(WITHIN, || Some(rows(&["perf.systems", id])).filter(|rows| !rows.is_empty()));
    let systems = systems.expect("it ticks");
    assert!(systems.iter().all(|row| row["scope"].is_string() && row["own_ns"].is_u64()), "{systems:?}");
    let saved = rows(&["perf.capture", "slow", "since", "noon"]);
    let path = saved[0]["path"].as_str().expect("a path");
    assert!(path.starts_with(captures.to_str().expect("a plain path")), "{path}");
    let size_bytes = std::fs::metadata(path).expect("it is there").len();
    assert_eq!(saved[0]["bytes"], size_bytes);
    assert_eq!(crowd.finish().disconnects, 0);
    assert!(server.stop().status.success());
}

#[test]
fn players_are_listed_with_their_worlds_and_where_they_stand() {
    let server = Server::start(&SMALL);
    let crowd = Crowd::start(server.address, 4);
    let rows = |command: &str| {
        let told: Value = serde_json::from_str(&run_well(&server, &[command, "--json"])).expect("one JSON object");
        told["rows"].as_array().expect("a list of rows").clone()
    };
    let deadline = Instant::now() + WITHIN;
    // One that travels is in no world for a tick.
    while rows("player.pos").iter().filter(|row| row["x_m"].is_f64() && row["z_m"].is_f64()).count() != 4 {
        assert!(Instant::now() < deadline, "four play and have places: {:?}", rows("player.pos"));
        std::thread::sleep(Duration::from_millis(100));
    }
    let worlds = rows("world.list");
    let known = |world: &Value| worlds.iter().any(|row| row["world"] == *world && row["rate_hz"].is_u64());
    assert!(rows("player.list").iter().all(|row| known(&row["world"])), "{worlds:?}");
    let text = run_well(&server, &["player.pos"]);
    assert!(text.starts_with("player"), "{text}");
    console(&server, &["player.pos", "1"]).check_refused(&["player.pos: player: nobody is called 1 here"]);
    assert_eq!(crowd.finish().disconnects, 0);
    assert!(server.stop().status.success());
}

#[test]
fn rules_are_read_again_when_somebody_asks() {
    let place = folder("console-rules");
    let (rules, settings) = (place.join("rules.toml"), place.join("throng.toml"));
    std::fs::write(&rules, "[triggers.frame]\nover_ms = 70\n").expect("a folder of ours");
    let text = format!("[recorder]\nrules = \"{}\"\n", rules.display());
    std::fs::write(&settings, text).expect("a folder of ours");
    let server = Server::start(&[&SMALL[..], &["--config", settings.to_str().expect("a plain path")]].concat());

    let said = run_well(&server, &["rules.reload"]);
    assert!(said.contains("rules.toml is in force"), "{said}");
    std::fs::write(&rules, "[triggers.frame]\nover_ms = 0\n").expect("a folder of ours");
    let wrong = console(&server, &["rules.reload"]);
    wrong.check_refused(&["rules.toml:2: [triggers.frame] over_ms", "0.001 to 60000"]);
    std::fs::write(&rules, "[triggers.frame]\nover_ms = 80\n").expect("a folder of ours");
    let said: Value = serde_json::from_str(&run_well(&server, &["--json", "rules.reload"])).expect("one JSON object");
    assert!(said["rules"].as_str().is_some_and(|path| path.ends_with("rules.toml")), "{said}");
    assert!(server.stop().status.success());
}

#[test]
fn all_rules_are_told_with_where_they_are_from() {
    let place = folder("console-rules-list");
    let (rules, settings) = (place.join("rules.toml"), place.join("throng.toml"));
    let of_file = "[budgets.subsystems_us]\nreplication = 900\nworld = 800\n[triggers.frame]\ncooldown_s = 12\n";
    std::fs::write(&rules, of_file).expect("a folder of ours");
    std::fs::write(&settings, format!("[recorder]\nrules = \"{}\"\n", rules.display())).expect("a folder of ours");
    let server = Server::start(&[&SMALL[..], &["--config", settings.to_str().expect("a plain path")]].concat());
    let listed = |key: &str| {
        let told = run_well(&server, &["rules.list", "--json"]);
        let told: Value = serde_json::from_str(&told).expect("one JSON object");
        let row = told["rows"].as_array().expect("a list").iter().find(|row| row["key"] == key).cloned();
        row.map(|row| ["value", "from", "changed_by"].map(|column| row[column].as_str().unwrap_or("-").to_owned()))
    };
    let row = |cells: [&str; 3]| Some(cells.map(str::to_owned));
    assert_eq!(listed("triggers.frame.cooldown_s"), row(["12", "file", "rules.set"]));
    assert_eq!(listed("triggers.tick.cooldown_s"), row(["30", "default", "rules.set"]));
    assert_eq!(listed("replication.enter_radius_m"), row(["-", "default", "file"]));
    assert_eq!(listed("log.server.clients"), None);
    for (key, value) in [("triggers.tick.cooldown_s", "5"), ("log.server.clients", "debug")] {
        run_well(&server, &["rules.set", key, value]);
        assert_eq!(listed(key), row([value, "console", "rules.set"]));
    }
    run_well(&server, &["trigger.set", "tick", "off"]);
    assert_eq!(listed("triggers.tick.on"), row(["false", "console", "rules.set"]));
    run_well(&server, &["budget.clear", "subsystem", "replication"]);
    let of_budgets = ["replication", "world"].map(|name| listed(&format!("budgets.subsystems_us.{name}")));
    assert_eq!(of_budgets, [row(["-", "console", "budget.set"]), row(["800", "file", "budget.set"])]);
    let text = run_well(&server, &["rules.list"]);
    assert!(text.starts_with("key ") && text.contains("triggers.frame.cooldown_s"), "{text}");
    run_well(&server, &["rules.reload"]);
    assert_eq!(listed("triggers.tick.cooldown_s"), row(["30", "default", "rules.set"]));
    assert_eq!(listed("log.server.clients"), None);
    assert_eq!(listed("budgets.subsystems_us.replication"), row(["900", "file", "budget.set"]));
    assert!(server.stop().status.success());
}

#[test]
fn lines_from_a_pipe_are_carried_out_one_by_one() {
    let server = Server::start(&SMALL);
    let talk = |lines: &str| {
        let mut command = throng(&["console", &server.admin_address.to_string()]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        child.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("it reads");
        let done = child.wait_with_output().expect("it ends with its input");
        (
            done.status.code(),
            String::from_utf8_lossy(&done.stdout).into_owned(),
            String::from_utf8_lossy(&done.stderr).into_owned(),
        )
    };
    let (code, said, _) = talk("help\n\n  help --json\n");
    assert_eq!(code, Some(0));
    assert!(said.contains("this list") && said.ends_with("}\n"), "{said}");
    let (code, said, told) = talk("quit\nhelp\n");
    assert_eq!(code, Some(2), "a script that had a wrong line failed");
    assert!(said.contains("this list") && told.contains("no command is called `quit`"), "{said}{told}");
    assert!(server.stop().status.success());
}
