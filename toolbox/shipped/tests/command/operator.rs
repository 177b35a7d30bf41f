//! An operator's mistakes: each ends the command with status 2 and a line that says what to change, before anything
//! starts.

use std::{
    fs::File,
    net::{TcpListener, UdpSocket},
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use nix::{sys::signal::kill, unistd::Pid};

use crate::{
    address::KEY,
    child::{Server, Signal, finish, settings_file, throng, unprivileged, wait_until},
};

/// The command must refuse, and its last words must hold all of `parts`.
#[track_caller]
fn check(command: Command, parts: &[&str]) {
    finish(command, Duration::from_secs(60)).check_refused(parts);
}

#[track_caller]
fn check_settings(name: &str, text: &str, parts: &[&str]) {
    let path = settings_file(name, text);
    let path = path.to_str().expect("a plain path");
    check(throng(&["serve", "--config", path]), &[&[path], parts].concat());
}

#[test]
fn a_misspelt_key_is_told_with_its_line_and_the_right_word() {
    check_settings(
        "misspelt-key",
        "# ours\n[server]\nwrokers = 2\n",
        &["throng.toml:3: [server] wrokers: unknown key", "did you mean `workers`?"],
    );
}

#[test]
fn a_value_of_the_wrong_type_is_told_with_its_line_and_what_to_write() {
    check_settings(
        "wrong-type",
        "[server]\nclients_max = \"many\"\n",
        &["throng.toml:2: [server] clients_max: ", "\"many\""],
    );
    check_settings(
        "wrong-address",
        "[server]\naddress = \"everywhere\"\n",
        &["throng.toml:2: [server] address: ", "IP:PORT"],
    );
    check_settings(
        "wrong-workers",
        "[server]\nworkers = \"all\"\n",
        &["throng.toml:2: [server] workers: ", "\"auto\" or a whole number"],
    );
}

#[test]
fn an_impossible_value_is_told_with_its_range() {
    check_settings("out-of-range", "[server]\n\ntimeout_s = 0\n", &["throng.toml:3: [server] timeout_s: ", "1 to 600"]);
    check_settings(
        "contradiction",
        "[replication]\nenter_radius_m = 80.0\nleave_radius_m = 60.0\n",
        &["throng.toml:3: [replication] leave_radius_m: ", "make leave_radius_m at least enter_radius_m"],
    );
}

#[test]
fn more_memory_than_the_host_has_is_told_before_anybody_is_let_in() {
    let text = "[server]\naddress = \"127.0.0.1:0\"\nadmin_address = \"off\"\ncommit_memory_mb = 1_048_576\n";
    let path = settings_file("commit", text);
    let path = path.to_str().expect("a plain path");
    let server = throng(&["serve", "--players", "1", "--npcs", "0", "--config", path]);
    check(server, &["commit_memory_mb = 1048576", "MiB free", "write less"]);
}

#[test]
fn all_mistakes_of_a_file_are_told_at_once() {
    check_settings(
        "several",
        "[server]\nsockets = 0\nwrokers = 2\n[replicaton]\ncell_m = 4.0\n",
        &["throng.toml:2: [server] sockets", "throng.toml:3: [server] wrokers", "throng.toml:4: [replicaton]"],
    );
}

#[test]
fn a_file_that_is_no_toml_or_not_there_is_named() {
    check_settings("no-toml", "[server\n", &["throng.toml:1: "]);
    check(
        throng(&["serve", "--config", "/nowhere/throng.toml"]),
        &["/nowhere/throng.toml: no such file", "--config PATH"],
    );
}

#[test]
fn a_used_port_is_named_with_the_way_out() {
    let used = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = used.local_addr().expect("it is bound").to_string();
    let port = address.rsplit(':').next().expect("a port").to_owned();
    let small = ["serve", "--players", "1", "--npcs", "0"];
    check(
        throng(&[&small[..], &["--address", &address, "--admin-address", "127.0.0.1:0"]].concat()),
        &[
            &format!("UDP port {port} of 127.0.0.1 is already in use"),
            "choose another port",
            &format!("sport = :{port}"),
        ],
    );

    let used = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = used.local_addr().expect("it is bound").to_string();
    let port = address.rsplit(':').next().expect("a port").to_owned();
    check(
        throng(&[&small[..], &["--address", "127.0.0.1:0", "--admin-address", &address]].concat()),
        &[&format!("admin address {address} is in use"), "admin_address", &format!("sport = :{port}")],
    );
}

#[test]
fn an_address_that_is_none_is_told_with_the_form_of_one() {
    let mut command = throng(&["bots", "--connect", "nonsense"]);
    command.env("THRONG_PRIVATE_KEY", KEY);
    check(command, &["--connect", "nonsense", "HOST:PORT", "127.0.0.1:40000"]);
    check(throng(&["serve", "--address", "localhost"]), &["--address", "localhost"]);
}

#[test]
fn a_command_that_needs_the_key_says_where_it_belongs() {
    check(throng(&["bots", "--connect", "127.0.0.1:9"]), &["no private key", "THRONG_PRIVATE_KEY", "--config"]);
    let token = ["token", "--client-id", "1", "--server", "127.0.0.1:9"];
    check(throng(&token), &["no private key", "THRONG_PRIVATE_KEY", "--config"]);

    let half_a_key = &KEY[..32];
    let mut command = throng(&token);
    command.env("THRONG_PRIVATE_KEY", half_a_key);
    check(command, &["THRONG_PRIVATE_KEY", "has 32 digits", "openssl rand -hex 32"]);
    let mut command = throng(&token);
    command.env("THRONG_PRIVATE_KEY", half_a_key);
    let said = finish(command, Duration::from_secs(60)).stderr;
    assert!(!said.contains(half_a_key), "a key is never printed: {said}");
}

#[test]
fn a_fault_that_is_unknown_is_told_with_those_that_are_known() {
    for command in ["serve", "load", "demo"] {
        check(throng(&[command, "--inject", "gremlins"]), &["gremlins", "dear-hideout", "hung-world", "slow-world"]);
    }
}

#[test]
fn a_size_out_of_range_is_told_with_its_range() {
    check(throng(&["serve", "--players", "0"]), &["--players", "1..=4096"]);
    check(throng(&["load", "--seconds", "0"]), &["--seconds", "1..=86400"]);
}

#[test]
fn a_server_that_does_not_answer_is_named_with_what_to_look_at() {
    // Bound and silent: nobody else can listen on it meanwhile.
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("it is bound").to_string();
    let mut command = throng(&["bots", "--connect", &address, "--players", "2", "--seconds", "1"]);
    command.env("THRONG_PRIVATE_KEY", KEY);
    // What was to be found out, and no mistake in how it was asked.
    let finished = finish(command, Duration::from_secs(60));
    assert_eq!((finished.status.code(), finished.stdout.as_str()), (Some(1), ""), "{}", finished.stderr);
    for part in ["FAIL none of 2 bots got into a world", &address, "firewall", "private key"] {
        assert!(finished.stderr.contains(part), "{part:?} is not in {}", finished.stderr);
    }
}

#[test]
fn bots_of_another_game_are_told_so_and_could_not_play() {
    let server = Server::start(&["--game", "frontier", "--players", "4", "--npcs", "0"]);
    let address = server.address.to_string();
    let mut command = throng(&["bots", "--connect", &address, "--players", "2", "--seconds", "1"]);
    command.env("THRONG_PRIVATE_KEY", KEY);
    let finished = finish(command, Duration::from_secs(60));
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    for part in ["none of 2 bots got into a world", "different versions of the game"] {
        assert!(finished.stderr.contains(part), "{part:?} is not in {}", finished.stderr);
    }
    let ended = server.stop();
    // The swarm ends when it knows enough, so the last of them may have had no time to say why it went.
    let told = ended.report["counters"]["net.schema_mismatches"].as_u64();
    assert!(told.is_some_and(|clients| (1..=2).contains(&clients)), "{}", ended.report);
}

#[test]
fn a_folder_that_takes_no_captures_is_told_before_anything_starts() {
    // Nobody makes files there, whatever the rights.
    let arguments = ["serve", "--address", "127.0.0.1:0", "--admin-address", "off", "--captures", "/proc"];
    check(throng(&arguments), &["captures cannot go to /proc", "--captures"]);
}

#[test]
fn public_addresses_of_the_other_family_are_a_warning() {
    let text = "[server]\naddress = \"127.0.0.1:0\"\npublic_addresses = [\"[2001:db8::7]:40000\"]\n";
    let path = settings_file("other-family", text);
    let path = path.to_str().expect("a plain path");
    let arguments = ["serve", "--config", path, "--players", "1", "--npcs", "0", "--admin-address", "127.0.0.1:0"];
    let ended = Server::start_command(throng(&arguments)).stop();
    assert!(ended.status.success(), "it serves all the same: {}", ended.stderr);
    let is_told = ended.stderr.contains("WARN") && ended.stderr.contains("[2001:db8::7]:40000");
    assert!(is_told && ended.stderr.contains("IPv4 or IPv6"), "{}", ended.stderr);
}

#[test]
fn too_few_descriptors_are_told_with_the_command_that_raises_them() {
    let arguments = ["bots", "--connect", "127.0.0.1:9", "--players", "3000", "--threads", "2"];
    let Some(mut command) = unprivileged("ulimit -n 200", &arguments) else { return };
    command.env("THRONG_PRIVATE_KEY", KEY);
    check(command, &["each of 3000 bots needs a socket", "may open 200 files", "ulimit -n 3066", "LimitNOFILE=3066"]);

    let Some(command) = unprivileged("ulimit -n 64", &["serve", "--address", "127.0.0.1:0"]) else { return };
    check(command, &["may open 64 files", "ulimit -n 256"]);
}

#[test]
fn a_socket_buffer_that_is_not_granted_is_a_warning_with_the_sysctl_that_grants_it() {
    const WANTED_BYTES: usize = 268_435_456;
    let granted = std::fs::read_to_string("/proc/sys/net/core/rmem_max").ok().and_then(|text| text.trim().parse().ok());
    if granted.is_none_or(|bytes: usize| bytes >= WANTED_BYTES) {
        eprintln!("skipped: net.core.rmem_max is {granted:?}, so every buffer that may be asked for is granted");
        return;
    }
    // It may not write this folder.
    let text = format!("[server]\nreceive_buffer_bytes = {WANTED_BYTES}\n[saves]\nstore = \"none\"\n");
    let path = settings_file("small-buffer", &text);
    let path = path.to_str().expect("a plain path");
    let arguments = [
        "serve",
        "--config",
        path,
        "--players",
        "1",
        "--npcs",
        "0",
        "--address",
        "127.0.0.1:0",
        "--admin-address",
        "127.0.0.1:0",
    ];
    let Some(command) = unprivileged("true", &arguments) else { return };
    let ended = Server::start_command(command).stop();
    assert!(ended.status.success(), "it serves all the same: {}", ended.stderr);
    let fix = format!("run `sysctl -w net.core.rmem_max={WANTED_BYTES}`");
    assert!(ended.stderr.contains("WARN") && ended.stderr.contains(&fix), "{}", ended.stderr);
}

/// A disk that is full, or a pipe that nobody reads any more.
fn full() -> File {
    File::options().write(true).open("/dev/full").expect("Linux has it")
}

#[test]
fn a_result_that_cannot_be_written_is_an_error_and_no_panic() {
    let mut command = throng(&["token", "--client-id", "1", "--server", "127.0.0.1:40000", "--json"]);
    let output = command.env("THRONG_PRIVATE_KEY", KEY).stdout(full()).output().expect("it starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("standard output: No space left"), "{stderr}");
}

#[test]
fn a_server_whose_words_cannot_be_written_serves_on() {
    for (is_stdout_full, status) in [(false, 0), (true, 2)] {
        let arguments = ["serve", "--address", "127.0.0.1:0", "--admin-address", "off", "--npcs", "4", "--json"];
        let mut command = throng(&arguments);
        command.stdout(if is_stdout_full { Stdio::from(full()) } else { Stdio::piped() }).stderr(full());
        let child = command.spawn().expect("it starts");
        let threads = PathBuf::from(format!("/proc/{}/task", child.id()));
        let names = || std::fs::read_dir(&threads).expect("it runs").map(|thread| thread.expect("listed").path());
        let is_worker =
            |thread: PathBuf| std::fs::read_to_string(thread.join("comm")).is_ok_and(|name| name == "status\n");
        // The last thread that is started before the first frame.
        wait_until(Duration::from_secs(60), || names().any(is_worker).then_some(())).expect("it serves");
        std::thread::sleep(Duration::from_secs(1));
        kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).expect("it runs on");
        let output = child.wait_with_output().expect("a child of ours");
        assert_eq!(output.status.code(), Some(status), "its stdout was full: {is_stdout_full}");
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(is_stdout_full || stdout.contains("\"ticks\":"), "{stdout}");
    }
}

#[test]
fn the_admin_port_can_be_switched_off_on_the_command_line() {
    let arguments = ["serve", "--address", "127.0.0.1:0", "--admin-address", "off", "--npcs", "4", "--status-json"];
    let mut command = throng(&arguments);
    // Its parent's end, which is an order to stop.
    command.stdin(Stdio::null());
    let finished = finish(command, Duration::from_secs(60));
    assert!(finished.stdout.contains("\"admin_address\":null"), "{}", finished.stdout);
    check(throng(&["serve", "--admin-address", "of"]), &["--admin-address", "\"of\" has no port; write IP:PORT"]);
}
