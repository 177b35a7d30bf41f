//! A server's life: its token lets somebody in, its figures can be read while it plays, it sleeps when nobody is there,
//! and it ends when it is told to.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use throng_client::{ClientState, DisconnectReason};
use throng_net::protocol::{ConnectToken, TOKEN_BYTES};
use throng_platform::process::cpu_time_of;

use crate::{
    address::{KEY, token},
    child::{PATIENCE, Server, Started, alone, finish, folder, settings_file, this_build, throng, wait_until},
    crowd::Crowd,
    player::Player,
};

const SMALL: [&str; 4] = ["--players", "24", "--npcs", "48"];

/// Promise: told to end, a server tells its players, reports, and is gone in five seconds.
fn end_under_load() {
    let mut server = Server::start(&SMALL);
    let crowd = Crowd::start(server.address, 20);
    let mut player = Player::enter(token(server.address, 1));

    server.signal_to_end();
    let is_told = player.play_until(Duration::from_secs(5), |player| !player.is_connected());
    let ended = server.wait();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(ended.after <= Duration::from_secs(5), "it took {:?}", ended.after);
    assert!(is_told, "a player is told, and does not find out by silence");
    assert_eq!(player.client.state(), ClientState::Disconnected(DisconnectReason::ClosedByServer));
    // Well before the silence of 10 s that a connection bears.
    let saw = crowd.wait_until_all_are_out(Duration::from_secs(3));
    assert_eq!((saw.disconnects, saw.connect_failures), (20, 0));
    assert_eq!((saw.state_errors, saw.protocol_errors), (0, 0), "{saw:?}");

    assert_eq!(ended.report["players"], 21, "as they were when the order came: {}", ended.report);
    assert!(ended.report["ticks"].as_u64() > Some(0), "{}", ended.report);
}

#[test]
fn a_server_that_is_told_to_end_tells_its_players_and_reports() {
    let _alone = alone();
    end_under_load();
}

#[test]
#[ignore = "full form: takes 3 min"]
fn r36_two_hundred_orders_to_end_under_load() {
    let _alone = alone();
    (0..200).for_each(|_| end_under_load());
}

#[test]
fn a_second_order_to_end_cuts_nothing_short() {
    let _alone = alone();
    let mut server = Server::start(&SMALL);
    let crowd = Crowd::start(server.address, 4);
    server.signal_to_end();
    server.signal_to_end();
    std::thread::sleep(Duration::from_millis(20));
    server.signal_to_end();
    let ended = server.wait();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(ended.after <= Duration::from_secs(5), "it took {:?}", ended.after);
    assert_eq!(ended.report["players"], 4);
    assert_eq!(crowd.wait_until_all_are_out(Duration::from_secs(3)).disconnects, 4);
}

#[test]
fn a_server_with_nobody_ends_as_well() {
    let mut server = Server::start(&["--players", "3", "--npcs", "0"]);
    server.signal_to_end();
    let ended = server.wait();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(ended.after <= Duration::from_secs(5), "nobody has to be told, and it took {:?}", ended.after);
    assert_eq!(ended.report["worlds"], 2, "hideouts come with their owners");
}

/// Promise: whoever starts a server reads how many workers it has. Of all cores reserved, one has a worker still.
#[test]
fn a_server_says_how_many_workers_it_has() {
    let settings = folder("workers").join("throng.toml");
    std::fs::write(&settings, "[server]\nreserved_cores = 255\n").expect("a folder of ours");
    let settings = settings.to_str().expect("a plain path");
    let small =
        ["serve", "--players", "1", "--npcs", "0", "--address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0"];
    Started::new(throng(&[&small[..], &["--config", settings]].concat())).wait_for_words(", 1 workers,");
    Started::new(throng(&[&small[..], &["--config", settings, "--workers", "3"]].concat()))
        .wait_for_words(", 3 workers,");
}

#[test]
fn a_token_from_the_command_line_lets_its_client_in_once() {
    let server = Server::start(&SMALL);
    let address = server.address.to_string();
    let make = |more: &[&str]| {
        let mut command = throng(&[&["token", "--client-id", "7", "--server", &address], more].concat());
        command.env("THRONG_PRIVATE_KEY", KEY);
        let made = finish(command, Duration::from_secs(60));
        assert!(made.status.success(), "{}", made.stderr);
        made
    };
    let read = |base64: &str| {
        let bytes: [u8; TOKEN_BYTES] = BASE64.decode(base64).expect("base64").try_into().expect("2,048 bytes");
        ConnectToken::from_bytes(&bytes).expect("a token")
    };

    let made = make(&[]);
    Player::enter(read(made.stdout.trim_end())).leave();
    let mut again = Player::new(read(made.stdout.trim_end()));
    let is_in = again.play_until(Duration::from_secs(1), |player| player.is_connected());
    assert!(!is_in, "one token is one connection");

    let made = make(&["--json", "--user-data", "blue team"]).json();
    assert_eq!(made["client_id"], 7);
    Player::enter(read(made["token_base64"].as_str().expect("base64"))).leave();

    let file = folder("token").join("client.token");
    make(&["--out", file.to_str().expect("a plain path")]);
    let bytes = std::fs::read(file).expect("it was written").try_into().expect("2,048 bytes");
    Player::enter(ConnectToken::from_bytes(&bytes).expect("a token")).leave();
    assert!(server.stop().status.success());
}

/// What `GET path` on the admin port answers, head and body.
pub fn get(admin: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(admin).expect("the admin port listens");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket of ours");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {admin}\r\n\r\n").expect("a request fits");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer that ends");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {answer:?}"));
    (head.to_owned(), body.to_owned())
}

/// The value of a metric without labels.
pub fn metric(text: &str, name: &str) -> f64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no `{name}` in\n{text}"))
}

#[test]
fn figures_and_health_can_be_read_while_it_plays() {
    let _alone = alone();
    let server = Server::start(&SMALL);
    let crowd = Crowd::start(server.address, 20);
    server.wait_for_status("players", |players| players == 20.0);
    std::thread::sleep(Duration::from_millis(1_200));

    let (head, text) = get(server.admin_address, "/metrics");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("openmetrics-text"), "{head}");
    assert_eq!((metric(&text, "throng_server_players"), metric(&text, "throng_server_worlds")), (20.0, 22.0));
    for name in [
        "throng_server_frames_total",
        "throng_server_ticks_total",
        "throng_server_joined_total",
        "throng_server_worlds_awake",
        "throng_net_packets_in_total",
        "throng_net_packets_out_total",
        "throng_net_bytes_in_total",
        "throng_net_bytes_out_total",
        "throng_replication_entity_updates_total",
        "throng_server_frame_us_window_max",
        "throng_server_frame_seconds_count",
        "throng_process_rss_bytes",
    ] {
        assert!(metric(&text, name) > 0.0, "{name} in\n{text}");
    }
    for name in [
        "throng_server_frames_over_budget_total",
        "throng_server_ticks_missed_total",
        "throng_server_tick_lateness_us_window_max",
    ] {
        assert!(metric(&text, name) >= 0.0, "{name}");
    }
    let frames_before = metric(&text, "throng_server_frames_total");
    std::thread::sleep(Duration::from_millis(1_500));
    let (_, text) = get(server.admin_address, "/metrics");
    assert!(metric(&text, "throng_server_frames_total") > frames_before, "figures move");

    let (head, body) = get(server.admin_address, "/health");
    assert!(head.starts_with("HTTP/1.1 200 ") && body.contains("\"state\":\"running\""), "{head}\n{body}");
    let (head, body) = get(server.admin_address, "/kill");
    assert!(head.starts_with("HTTP/1.1 404 ") && body.contains("/metrics"), "{head}\n{body}");

    let saw = crowd.finish();
    assert_eq!((saw.players_connected, saw.disconnects, saw.state_errors), (20, 0, 0), "{saw:?}");
    assert!(server.stop().status.success());
}

/// Promise: a figure names the build that it is of, wherever it is told, by the executable's own word. Crash reports have
/// a test of their own (`crash`), reports of load runs another one (`load`).
#[test]
fn a_server_says_everywhere_which_build_it_is() {
    let build = this_build();
    let parts = build.strip_prefix("throng ").and_then(|rest| rest.strip_suffix(')')?.split_once(" ("));
    let (version, commit) = parts.unwrap_or_else(|| panic!("version and commit: {build}"));
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    let of_source = std::process::Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .ok()
        .filter(|output| output.status.success());
    // Without a clone it is what whoever built it said.
    if let Some(output) = of_source {
        let head = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert_eq!(commit.trim_end_matches("-modified"), head);
    }

    let captures = folder("build-captures");
    let server = Server::start(&["--players", "1", "--npcs", "0", "--captures", captures.to_str().expect("plain")]);
    server.wait_for_status("second", |second| second >= 1.0);
    let (_, text) = get(server.admin_address, "/metrics");
    let info = format!("throng_build_info{{version=\"{version}\",commit=\"{commit}\"}} 1.0");
    assert!(text.lines().any(|line| line == info), "{info} in\n{text}");
    let address = server.admin_address.to_string();
    let saved = finish(throng(&["capture", "save", "--connect", &address, "--json"]), Duration::from_secs(60)).json();
    let path = saved["path"].as_str().unwrap_or_else(|| panic!("a path in {saved}")).to_owned();
    let capture = throng_capture::format::read(&std::fs::read(path).expect("it was saved")).expect("a capture");
    assert_eq!(capture.about.build, build);
    let report = server.stop().report;
    assert_eq!((&report["version"], &report["commit"]), (&version.into(), &commit.into()), "{report}");
}

/// Promise: an operator has the memory of the evening there before the first player comes.
#[test]
fn memory_that_is_wanted_from_the_start_is_there_with_the_first_second() {
    let settings = settings_file("commit-memory", "[server]\ncommit_memory_mb = 500\n");
    let settings = settings.to_str().expect("a plain path");
    let server = Server::start(&["--players", "1", "--npcs", "0", "--config", settings]);
    // A figure of a second's status is in units of 1,000,000 bytes; a server of this size takes a fifth of it.
    let rss_mb = server.wait_for_status("rss_mb", |mb| mb > 0.0);
    assert!(rss_mb > 500.0, "{rss_mb}");
    assert!(server.stop().status.success());
}

/// Promise: what worlds give up is freed by a thread of low priority, recorded or not.
#[test]
fn without_a_recorder_large_blocks_are_freed_beside_the_ticks_all_the_same() {
    for (more, name) in [(&[][..], "recorder"), (&["--no-recorder"][..], "large-frees")] {
        let server = Server::start(&[&SMALL[..], more].concat());
        let names = || -> Vec<String> {
            let threads = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("it runs");
            let names = threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
            names.map(|name| name.trim_end().to_owned()).collect()
        };
        // A thread names itself when it first runs, and one of low priority may wait for that.
        let is_there = wait_until(PATIENCE, || names().iter().any(|known| known == name).then_some(()));
        assert!(is_there.is_some(), "{name} is not among {:?}", names());
        assert!(server.stop().status.success());
    }
}

/// Promise: what nobody plays costs nothing.
#[test]
fn a_server_of_dormant_worlds_leaves_the_processor_alone_and_wakes_for_who_comes() {
    let _alone = alone();
    let server = Server::start(&["--players", "1000", "--npcs", "20000"]);
    server.wait_for_status("worlds_awake", |awake| awake == 0.0);
    let (head, body) = get(server.admin_address, "/health");
    assert!(head.starts_with("HTTP/1.1 200 ") && body.contains("\"state\":\"sleeping\""), "{head}\n{body}");

    let cpu = || cpu_time_of(server.pid()).expect("it runs").as_secs_f64();
    let before = cpu();
    std::thread::sleep(Duration::from_secs(3));
    let cores = (cpu() - before) / 3.0;
    assert!(cores <= 0.03, "it uses {cores:.3} of a core while nobody is there");

    // And it wakes for the first who comes.
    Player::enter(token(server.address, 1)).leave();
    assert!(server.stop().status.success());
}
