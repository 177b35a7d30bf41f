//! The load test in small. What a run finds out about the machine it is on is no failure here; what it finds out
//! about the server is.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};
use throng_lab::load_report::PROMISED_KEYS;

use crate::child::{Finished, Signal, Started, alone, finish, folder, this_build, throng};

const WITHIN: Duration = Duration::from_secs(120);

/// In short runs the window opens when everybody is in.
fn load(arguments: &[&str]) -> Finished {
    finish(throng(&[&["load", "--json"], arguments].concat()), WITHIN)
}

fn find<'a>(report: &'a Value, key: &str) -> Option<&'a Value> {
    key.split('.').try_fold(report, |object, key| object.get(key))
}

fn figure(report: &Value, key: &str) -> f64 {
    find(report, key).and_then(Value::as_f64).unwrap_or_else(|| panic!("`{key}` is no number in {report}"))
}

/// What holds on any machine: everybody plays, nobody sees a wrong value, and the exit status is the verdict.
fn check(finished: &Finished, players: u32) -> Value {
    let report = finished.json();
    for key in PROMISED_KEYS.into_iter().chain(["world_hangs"]) {
        assert!(find(&report, key).is_some(), "`{key}` is missing in {report}");
    }
    assert_eq!(figure(&report, "players_connected"), f64::from(players), "{report}");
    let [version, commit] = ["version", "commit"].map(|key| report[key].as_str().expect("the server said so"));
    let build = format!("throng {version} ({commit})");
    assert_eq!(build, this_build(), "the server's own word, in whatever folder it was started");
    let zeros = ["state_errors", "disconnects", "bots.protocol_errors", "bots.connect_failures", "worlds_parked"];
    for key in zeros.into_iter().chain(["bots.counters.violations"]) {
        assert_eq!(figure(&report, key), 0.0, "{key}: {report}");
    }
    assert!(figure(&report, "bots.state_checks") > 0.0, "no errors among no checks prove nothing: {report}");
    for key in ["ticks", "packets_in_per_s", "packets_out_per_s", "entity_updates_per_s", "server_rss_mb"] {
        assert!(figure(&report, key) > 0.0, "{key}: {report}");
    }
    let passed = find(&report, "passed").and_then(Value::as_bool).expect("a verdict");
    assert_eq!(finished.status.code(), Some(if passed { 0 } else { 1 }), "{}", finished.stderr);
    // A machine that others use too may be late; nothing else may have failed.
    let failed = report["bars"].as_array().expect("a list of bars").iter().filter(|bar| bar["passed"] == false);
    for bar in failed {
        let late = ["ticks_missed_ours", "ticks_slowed", "tick_lateness_ms.max", "bots.thinks_skipped_share"];
        assert!(late.iter().any(|late| bar["key"] == *late), "{bar}");
    }
    report
}

fn check_ticks_missed(report: &Value, share_max: f64) {
    let (missed, ticks) = (figure(report, "ticks_missed"), figure(report, "ticks"));
    assert!(missed <= share_max * ticks, "{missed} of {ticks} ticks were missed: {report}");
}

#[test]
fn a_small_load_run_prints_every_figure_and_writes_its_report() {
    let _alone = alone();
    let folder = folder("load-report");
    let folder_name = folder.to_str().expect("a plain path");
    let finished = load(&["--players", "8", "--npcs", "160", "--seconds", "3", "--report", folder_name]);
    let report = check(&finished, 8);
    check_ticks_missed(&report, 0.05);
    assert_eq!((figure(&report, "worlds"), figure(&report, "npcs")), (10.0, 160.0), "8 hideouts, hub, dark zone");
    assert!((2.5..=6.0).contains(&figure(&report, "seconds")), "{report}");
    let condition = |key: &str| report["conditions"][key].as_str();
    assert_eq!([condition("players"), condition("npcs"), condition("saves")], [Some("8"), Some("160"), Some("report")]);
    assert_eq!((condition("settling"), condition("faults")), (Some("none"), None), "{report}");
    assert!(condition("workers").is_some() && condition("options").is_some(), "{report}");
    let parts = ["game", "engine", "kernel"].map(|part| figure(&report, &format!("tick_time_us.{part}")));
    let cpu_us = figure(&report, "server_cpu_cores") * figure(&report, "seconds") * 1e6;
    let told_us = parts.iter().sum::<f64>() * figure(&report, "ticks");
    // The kernel's part is told by samples, of which three seconds have few.
    assert!(parts[0] > 0.0 && parts.iter().all(|&part| part >= 0.0), "{report}");
    assert!((told_us / cpu_us - 1.0).abs() < 1e-6, "the parts are all of {cpu_us} us: {report}");
    assert!(figure(&report, "scopes_us_per_tick.ai") > 0.0, "{report}");
    // The budget of the frame's own parts is 10 ms of a frame, and a frame has some ticks. The recorder may miss the window's first frame.
    let frame_us = figure(&report, "budgets_us_per_tick.frame") * figure(&report, "ticks") / figure(&report, "frames");
    assert!((9_000.0..11_000.0).contains(&frame_us), "{frame_us}: {report}");
    assert!(find(&report, "budgets_us_per_tick.world").is_none(), "nothing is said of it: {report}");
    for category in ["gameplay", "movement", "network", "replication"] {
        assert!(figure(&report, &format!("categories_us_per_tick.{category}")) > 0.0, "{category}: {report}");
    }
    let sum_of =
        |key: &str| report[key].as_object().into_iter().flatten().filter_map(|(_, us)| us.as_f64()).sum::<f64>();
    let (by_category, by_subsystem) = (sum_of("categories_us_per_tick"), sum_of("scopes_us_per_tick"));
    assert!((by_category / by_subsystem - 1.0).abs() < 1e-6, "each subsystem is under one heading: {report}");
    let [mean_ms, max_ms] = ["frame_ms.mean", "frame_ms.max"].map(|key| figure(&report, key));
    assert!(0.0 < mean_ms && mean_ms <= max_ms, "{report}");
    assert!(figure(&report, "tick_ms_mean_by_kind.hideout") > 0.0, "{report}");

    let html = std::fs::read_to_string(folder.join("report.html")).expect("a page was written");
    assert!(html.contains("<svg") && html.trim_end().ends_with("</html>"), "the page is whole and has charts");
    assert_eq!(find(&report, "report").and_then(Value::as_str), folder.join("report.html").to_str());
    let json = std::fs::read_to_string(folder.join("report.json")).expect("the figures were written");
    let written: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(figure(&written, "ticks"), figure(&report, "ticks"), "the file says what the terminal says");
    assert_eq!(
        (&report["scenario"], &report["settling"], &report["ended_early"]),
        (&"usual".into(), &Value::Null, &Value::Null)
    );
    let second = written["by_second"].as_array().and_then(|seconds| seconds.last()).expect("seconds were told");
    let by_kind = ["hideout", "hub", "dark_zone"].map(|kind| figure(second, &format!("players_by_kind.{kind}")));
    assert_eq!(by_kind.iter().sum::<f64>(), figure(second, "players"), "everybody is somewhere: {second}");
    assert!(html.contains("Players by kind of world"));
}

#[test]
fn a_run_without_npcs_and_a_run_of_one_player_are_runs_too() {
    let _alone = alone();
    for (players, npcs) in [("4", "0"), ("1", "20")] {
        let finished = load(&["--players", players, "--npcs", npcs, "--seconds", "2"]);
        let report = check(&finished, players.parse().expect("a number"));
        check_ticks_missed(&report, 0.05);
        assert_eq!(figure(&report, "npcs"), npcs.parse::<f64>().expect("a number"));
        assert_eq!(report["report"], "reports/load/report.html", "nobody named another place");
    }
}

#[test]
fn everybody_in_one_world_is_a_run_too() {
    let _alone = alone();
    let frontier = ["--game", "frontier", "--players", "10", "--npcs", "200", "--seconds", "5"];
    for flags in [&[][..], &["--scan-everything", "--no-throttles", "--bots-threads", "3"]] {
        let finished = load(&[&frontier, flags].concat());
        let report = check(&finished, 10);
        check_ticks_missed(&report, 0.05);
        assert_eq!((&report["game"], figure(&report, "worlds")), (&Value::from("frontier"), 1.0), "{report}");
        assert_eq!(figure(&report, "npcs"), 200.0, "{report}");
        let rows = report["packet_report"].as_array().expect("a list of rows");
        let pose = rows.iter().find(|row| row["kind"] == "pose").unwrap_or_else(|| panic!("no pose in {report}"));
        for key in ["packets_per_s", "bytes_per_s", "updates_per_s"] {
            assert!(pose[key].as_f64() > Some(0.0), "{key}: {pose}");
        }
    }
}

/// Words for a run that is held against one of so many players without NPCs, whose report is put into this folder.
fn against(folder: &Path, players: u32) -> [String; 3] {
    let report = json!({
        "game": "precinct", "scenario": "usual", "players_connected": players, "npcs": 0, "ticks": 7,
        "categories_us_per_tick": {"ai": 9.0}, "scopes_us_per_tick": {"ai": 9.0},
    });
    let earlier = folder.join("earlier.json");
    std::fs::write(&earlier, report.to_string()).expect("a folder of ours");
    // It names no machine.
    ["--against".to_owned(), earlier.display().to_string(), "--across-machines".to_owned()]
}

/// Promise: whoever asks for another load than that of the earlier report hears of it before hours of a run, and with what to say.
#[test]
fn a_run_that_could_not_be_held_against_the_other_is_refused_before_it_begins() {
    let words = against(&folder("load-against"), 5);
    let words = words.each_ref().map(String::as_str);
    let finished = load(&[&["--players", "500", "--npcs", "0", "--seconds", "86400"], &words[..]].concat());
    finished.check_refused(&["by 5 players", "by 500 players", "say --scenario usual --players 5"]);
}

/// Promise: a run that cannot be filled ends by itself, fails, and says who is missing and why. No earlier run that it was to be like takes
/// that away.
#[test]
fn a_run_that_cannot_be_filled_reports_all_the_same() {
    let folder = folder("load-unfilled");
    let config = folder.join("small.toml");
    std::fs::write(&config, "[server]\nclients_max = 3\n").expect("a folder of ours");
    let paths = [&config, &folder].map(|path| path.to_str().expect("a plain path"));
    let against = against(&folder, 5);
    let size = ["--players", "5", "--npcs", "0", "--seconds", "2", "--config", paths[0], "--report", paths[1]];
    let finished = load(&[&size[..], &against.each_ref().map(String::as_str)].concat());
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    for part in ["only 3 of 5 bots were playing", "this run did not come to its end"] {
        assert!(finished.stderr.contains(part), "{part:?} is not in {}", finished.stderr);
    }
    let report = finished.json();
    assert_eq!(report["passed"], false);
    assert_eq!((figure(&report, "not_filled.players_in"), figure(&report, "not_filled.players_wanted")), (3.0, 5.0));
    assert!(figure(&report, "not_filled.refusals.server_full") >= 2.0, "{report}");
    assert!(figure(&report, "not_filled.retries") >= 2.0, "they tried again: {report}");
    assert!(figure(&report, "ticks") > 0.0, "the server's figures are there: {report}");
    assert!(folder.join("report.html").exists() && folder.join("report.json").exists());
}

/// Promise: a run whose server dies reports all the same, with how far it came, what it died of, and the report of that.
#[test]
fn a_run_whose_server_dies_reports_all_the_same() {
    let folder = folder("load-server-dies");
    let place = folder.to_str().expect("a plain path");
    let size = ["--players", "4", "--npcs", "40", "--seconds", "3600", "--settle-s-max", "0"];
    let load = Started::new(throng(&[&["load", "--json", "--report", place], &size[..]].concat()));
    load.wait_for_words("   2 of 3600 s");
    let servers = children_of(load.pid(), "serve");
    let [server] = servers.as_slice() else { panic!("one server and not {servers:?}") };
    kill_with(*server, Signal::SIGSEGV);
    let finished = load.finish(WITHIN);
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("`serve` ended early (signal: 11 (SIGSEGV)"), "{}", finished.stderr);
    let report = finished.json();
    let ended = &report["ended_early"];
    assert_eq!(
        (&ended["process"], &ended["during"], &report["passed"]),
        (&"serve".into(), &"measuring".into(), &false.into())
    );
    assert!(ended["crash_words"].as_str().is_some_and(|words| words.starts_with("SIGSEGV")), "{ended}");
    let path = ended["crash_report"].as_str().expect("it left a report");
    assert!(path.starts_with(place) && std::fs::metadata(path).is_ok(), "{path}");
    let deaths = report["deaths"].as_array().expect("a list");
    let [death] = deaths.as_slice() else { panic!("one group and not {deaths:?}") };
    assert_eq!((&death["count"], &death["builds"][0]), (&1.into(), &this_build().into()), "{death}");
    assert!(death["signature"].as_str().is_some_and(|it| it.starts_with("SIGSEGV")), "{death}");
    assert!(figure(&report, "ticks") > 0.0 && figure(&report, "players_connected") == 4.0, "{report}");
    assert!(folder.join("report.html").exists() && folder.join("report.json").exists());
    assert_eq!(servers_left(&servers), 0);
}

/// Promise: the window opens when the run has settled, and the report says when that was.
#[test]
fn the_window_opens_when_the_run_has_settled_and_the_report_says_when() {
    let folder = folder("load-settled");
    let place = folder.to_str().expect("a plain path");
    let arguments = ["--players", "12", "--npcs", "60", "--seconds", "2", "--settle-s-max", "40", "--report", place];
    let finished = load(&arguments);
    let report = check(&finished, 12);
    let after_s = figure(&report, "settling.after_s");
    assert!((29.0..42.0).contains(&after_s), "half a minute of stillness: {report}");
    let settled = report["settling"]["is_settled"].as_bool().expect("a verdict");
    assert!(settled || after_s >= 39.0, "{report}");
    let moved = report["settling"]["moved_share"].as_object().expect("what moved");
    for key in ["packets_in", "packets_out", "rss_mb", "players_by_kind.hub"] {
        assert!(moved.contains_key(key), "{key}: {moved:?}");
    }
    let html = std::fs::read_to_string(folder.join("report.html")).expect("a page was written");
    assert!(html.contains("after the last bot was in"));
}

/// Promise: every worst case of every game can be run by its name.
#[test]
fn every_scenario_of_every_game_is_a_run() {
    let _alone = alone();
    let run_with = |players: u32, game: &str, scenario: &str, seconds: &str| {
        let count = players.to_string();
        let place = folder(&format!("load-{game}-{scenario}")).display().to_string();
        let size = ["--players", &count, "--npcs", "60", "--seconds", seconds, "--report", &place];
        let finished = load(&[&["--game", game, "--scenario", scenario], &size[..]].concat());
        let report = check(&finished, players);
        assert_eq!((&report["game"], &report["scenario"]), (&game.into(), &scenario.into()), "{report}");
        report
    };
    let run = |game, scenario, seconds| run_with(6, game, scenario, seconds);
    // Both wait for the game's own times, and neither is judged by how quick it was: they run beside each other.
    let (report, at_once) = std::thread::scope(|scope| {
        let at_once = scope.spawn(|| run_with(16, "precinct", "travel-at-once", "30"));
        (run("precinct", "dark-zone", "25"), at_once.join())
    });
    // With the walks there in it; a walk may lead through the wrong portal.
    let in_dark_zone = figure(&report, "players_by_kind.dark_zone");
    assert!(in_dark_zone > 2.0 && in_dark_zone > 2.0 * figure(&report, "players_by_kind.hub"), "{report}");
    // Their thoughts are spread over three frames: of more than three who go through at once two are in the same one.
    let report = at_once.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    assert!(figure(&report, "bots.counters.travels") >= 6.0, "{report}");
    assert!(figure(&report, "game_frame_max.travels") >= 2.0, "at once: {report}");
    for game in ["precinct", "frontier"] {
        let report = run(game, "log-in-at-once", "2");
        assert!(figure(&report, "joined_per_s") > 0.0, "the log-ins are in the window: {report}");
    }
    run("frontier", "one-place", "3");
}

#[test]
fn an_unknown_scenario_is_told_with_those_that_there_are() {
    for (game, known) in [("precinct", "travel-at-once"), ("frontier", "one-place")] {
        for command in [&["load"][..], &["demo"], &["serve"], &["bots", "--connect", "127.0.0.1:9"]] {
            let finished = finish(throng(&[command, &["--game", game, "--scenario", "rush"]].concat()), WITHIN);
            finished.check_refused(&["rush", "usual", "log-in-at-once", known]);
        }
    }
}

/// Processes that `parent` started as `throng NAME`.
fn children_of(parent: u32, name: &str) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").expect("this is Linux").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |pid: &u32| {
        let read = |file| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        read("status").lines().any(|line| line.split_whitespace().eq(["PPid:", &parent.to_string()]))
            && read("cmdline").split('\0').nth(1) == Some(name)
    };
    pids.filter(is_child).collect()
}

fn kill_with(pid: u32, signal: Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), signal).expect("it is there");
}

fn servers_left(pids: &[u32]) -> usize {
    pids.iter().filter(|pid| std::path::Path::new("/proc").join(pid.to_string()).exists()).count()
}

#[test]
fn what_a_game_does_not_understand_is_refused_before_anything_starts() {
    for command in ["serve", "load", "demo"] {
        let refused = |arguments: &[&str], parts: &[&str]| {
            finish(throng(&[&[command], arguments].concat()), WITHIN).check_refused(parts);
        };
        refused(&["--game", "frontier", "--inject", "dear-hideout"], &["dear-hideout", "frontier", "hung-world"]);
        refused(&["--scan-everything"], &["--scan-everything", "precinct", "--game frontier"]);
        refused(&["--game", "chess"], &["chess", "precinct", "frontier", "duel"]);
    }
}

/// Promise: a world that hangs keeps one worker and nothing else.
#[test]
fn the_other_worlds_go_on_while_one_hangs() {
    let _alone = alone();
    // The world hangs for 2 s in its tick 200, about 10 s after the start and so 7 s into the window.
    let finished =
        load(&["--players", "4", "--npcs", "40", "--seconds", "12", "--workers", "2", "--inject", "hung-world"]);
    let report = check(&finished, 4);
    assert!(figure(&report, "world_hangs") >= 1.0, "the fault was found: {report}");
    // One of six worlds misses 40 ticks of its 240, which is 3 %; a server that waited would miss them six times.
    assert!(figure(&report, "ticks_missed") >= 20.0, "{report}");
    check_ticks_missed(&report, 0.08);
    assert_eq!(finished.status.code(), Some(1), "a hang is no pass: {}", finished.stderr);
}

#[test]
fn a_demo_that_is_interrupted_ends_with_a_verdict_and_a_report() {
    let _alone = alone();
    let folder = folder("demo-report");
    let folder_name = folder.to_str().expect("a plain path");
    let demo = Started::new(throng(&["demo", "--players", "4", "--npcs", "40", "--json", "--report", folder_name]));
    demo.wait_for_words("Ctrl-C ends it");
    demo.wait_for_words("   3 of 86400 s");
    demo.signal(Signal::SIGINT);
    let finished = demo.finish(WITHIN);
    let report = check(&finished, 4);
    check_ticks_missed(&report, 0.05);
    assert!(finished.stderr.contains("state_errors: 0 (exactly 0) held"), "{}", finished.stderr);
    assert!(folder.join("report.html").exists() && folder.join("report.json").exists());
}

#[test]
fn a_run_whose_report_has_no_place_says_so_before_it_begins() {
    let file = folder("no-folder").join("report");
    std::fs::write(&file, "a file where a folder should be").expect("a folder of ours");
    let path = file.to_str().expect("a plain path");
    for command in ["load", "demo"] {
        let finished = finish(throng(&[command, "--players", "1", "--seconds", "86400", "--report", path]), WITHIN);
        finished.check_refused(&[path, "cannot be written", "--report"]);
    }
}
