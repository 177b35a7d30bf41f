//! `throng capture` on made-up captures, and against a server that is made up too.

use std::{
    io::{Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    time::Duration,
};

use throng_capture::{
    format,
    model::{
        About, Capture, Event, Frame, LogLine, Site, Switch, SwitchSource, Thread, ThreadClass, Trigger, TriggerKind,
        World,
    },
};

use crate::child::{Finished, finish, folder, throng};

const MS: u64 = 1_000_000;

fn run(arguments: &[&str]) -> Finished {
    finish(throng(&[&["capture"], arguments].concat()), Duration::from_secs(60))
}

#[track_caller]
fn run_well(arguments: &[&str]) -> Finished {
    let finished = run(arguments);
    assert!(finished.status.success(), "{}", finished.stderr);
    finished
}

/// World 17 takes 41.3 ms in game.inflict in the second of two frames.
fn slow_world(saved_unix_s: u64) -> Capture {
    let site = |name: &str| Site {
        name: name.into(),
        subsystem: "game".into(),
        category: "gameplay".into(),
        ..Site::default()
    };
    let events = vec![
        Event::Switch { at_ns: 50 * MS, change: Switch::Running { core: 0 } },
        Event::World { at_ns: 50 * MS, world: Some(17), tick: 9 },
        Event::Scope { site: 0, begin_ns: 51 * MS, end_ns: 92_300_000 },
        Event::World { at_ns: 93 * MS, world: None, tick: 0 },
        Event::Switch { at_ns: 93 * MS, change: Switch::Blocked },
    ];
    let frame = |number, begin_ms| Frame {
        number,
        begin_ns: begin_ms * MS,
        end_ns: (begin_ms + 50) * MS,
        budget_ns: 50 * MS,
        threads: vec![],
    };
    Capture {
        about: About {
            build: "throng 0.1.0".into(),
            game: "precinct".into(),
            cores: 2,
            saved_unix_s,
            trigger: Trigger {
                kind: TriggerKind::Scope,
                name: "game.inflict".into(),
                measured: 41_300_000,
                allowed: 10 * MS,
                world: Some(17),
                at_ns: 92_300_000,
                note: String::new(),
            },
            end_ns: 100 * MS,
            frame: 812,
            switches: SwitchSource::PerfEvent,
            has_free_text: true,
            ..About::default()
        },
        sites: vec![site("game.inflict")],
        threads: vec![Thread { name: "worker-0".into(), tid: 5, class: ThreadClass::ShortTask, events }],
        worlds: vec![World { id: 17, name: "hideout".into(), tick_hz: 20 }],
        frames: vec![frame(811, 0), frame(812, 50)],
        logs: vec![LogLine {
            at_ns: 60 * MS,
            thread: 0,
            level: "info".into(),
            target: "server".into(),
            text: "hello from 192.0.2.7:4000".into(),
        }],
        ..Capture::default()
    }
}

fn write(path: &Path, capture: &Capture) {
    std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder of ours");
    let mut bytes = Vec::new();
    format::write(capture, &mut bytes).expect("a capture that fits");
    std::fs::write(path, bytes).expect("a folder of ours");
}

fn one_capture(test: &str) -> PathBuf {
    let path = folder(test).join("scope").join("1-812-1.capture");
    write(&path, &slow_world(1_795_238_782));
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

#[test]
fn show_begins_with_the_cause() {
    let path = one_capture("capture-show");
    let shown = run_well(&["show", text(&path)]);
    let first = shown.stdout.lines().next().unwrap_or_default();
    assert!(first.starts_with("world 17 (hideout) took 41.3 ms in game.inflict, budget 10 ms"), "{first}");
    assert!(!shown.stdout.contains('\u{1b}'), "no colours in a pipe");
    let json = run_well(&["show", text(&path), "--json"]).json();
    // A long sentence goes on in the next line.
    assert!(json["verdict"].as_str().is_some_and(|verdict| verdict.starts_with(first)), "{json}");
    assert_eq!(json["frame"]["number"], 812);

    let other = run_well(&["show", text(&path), "--frame", "811"]);
    assert!(other.stdout.starts_with("frame 811 took 50 ms, budget 50 ms"), "{}", other.stdout);
    run(&["show", text(&path), "--frame", "9"]).check_refused(&[text(&path), "no frame 9", "811 to 812"]);
}

/// What browsers make of it is tested in web/.
#[test]
fn show_makes_a_page_with_the_capture_and_its_story_inside() {
    let path = one_capture("capture-html");
    let page = path.with_extension("html");
    let made = run_well(&["show", text(&path), "--html"]);
    assert!(made.stdout.starts_with(text(&page)), "{}", made.stdout);
    let read = |path: &Path| std::fs::read_to_string(path).expect("it was written");
    let clean = read(&page);
    assert!(clean.contains("\"verdict\":\"world 17 (hideout) took 41.3 ms in game.inflict"), "the story is inside");
    assert!(clean.contains("id=\"capture\">H4sI"), "so is the capture");
    assert!(!clean.contains("192.0.2.7"), "it may be mailed");
    let stdout = run_well(&["show", text(&path), "--html", "-", "--with-free-text"]).stdout;
    assert!(stdout.starts_with("<!doctype html>") && stdout.contains("192.0.2.7"));
    run(&["show", text(&path), "--html", text(&path)]).check_refused(&[text(&path), "is the capture itself"]);
    run(&["show", text(&path), "--html", "--frame", "9"]).check_refused(&["no frame 9"]);

    let empty = page.with_file_name("viewer.html");
    run_well(&["viewer", "--out", text(&empty)]);
    assert!(read(&empty).contains("<!--capture-->"));
}

#[test]
fn a_damaged_capture_is_told_with_file_and_place() {
    let path = one_capture("capture-damaged");
    let bytes = std::fs::read(&path).expect("it was written");
    std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("a folder of ours");
    run(&["show", text(&path)]).check_refused(&[text(&path), "at byte "]);
    run(&["convert", text(&path), "--to", "chrome"]).check_refused(&[text(&path), "at byte "]);
    run(&["show", "/nowhere/x.capture"]).check_refused(&["/nowhere/x.capture", "No such file"]);
    run(&["list", "/nowhere"]).check_refused(&["/nowhere", "No such file"]);
    run(&["convert", text(&path), "--to", "html"]).check_refused(&["html", "fxt", "speedscope"]);
}

#[test]
fn a_file_larger_than_the_memory_it_may_take_is_refused_by_its_size() {
    let path = folder("capture-large").join("large.capture");
    let file = std::fs::File::create(&path).expect("a folder of ours");
    // Sparse: it takes no room on the disk.
    file.set_len((2 << 30) + 1).expect("a sparse file");
    drop(file);
    run(&["show", text(&path)]).check_refused(&[text(&path), "2048 MiB", "--memory-mb"]);
    std::fs::remove_file(&path).expect("a folder of ours");
}

/// 60,000 events of 2 bytes each want 2.9 MB.
#[test]
fn a_small_file_that_takes_much_memory_is_opened_when_that_is_asked_for() {
    let path = folder("capture-memory").join("1.capture");
    let mut capture = slow_world(1_000);
    capture.threads[0].events.extend(std::iter::repeat_n(Event::PageFault { at_ns: 93 * MS }, 60_000));
    write(&path, &capture);
    for command in [&["show", text(&path)][..], &["convert", text(&path), "--to", "folded", "--out", "-"]] {
        let little = [command, &["--memory-mb", "2"]].concat();
        run(&little).check_refused(&[text(&path), "at byte ", "more than 2 MiB of memory", "--memory-mb"]);
        run_well(&[command, &["--memory-mb", "3"]].concat());
    }
}

/// Events that no reader would take: the list does not look at them.
#[test]
fn list_reads_the_beginnings_of_captures() {
    let folder = folder("capture-list-beginnings");
    let path = folder.join("scope/1-812-1.capture");
    write(&path, &slow_world(1_000));
    let mut bytes = std::fs::read(&path).expect("it was written");
    // Behind the header of the section of events, which is the first of its kind: 8.
    let mut at = 16;
    while bytes[at] != 8 {
        let length = u32::from_le_bytes(bytes[at + 1..at + 5].try_into().expect("four bytes"));
        at += 9 + length as usize;
    }
    bytes[at + 9] ^= 0xff;
    std::fs::write(&path, &bytes).expect("a folder of ours");
    run(&["show", text(&path)]).check_refused(&[text(&path), "damaged"]);
    let listed = run_well(&["list", text(&folder)]).stdout;
    assert!(listed.contains("game.inflict") && listed.contains("17 (hideout)"), "{listed}");
    std::fs::write(&path, &bytes[..bytes.len() - 1]).expect("a folder of ours");
    let listed = run_well(&["list", text(&folder)]).stdout;
    assert!(listed.contains("cannot be read") && listed.contains("cut short"), "{listed}");
}

#[test]
fn list_walks_the_triggers_and_tells_broken_files_without_failing() {
    let folder = folder("capture-list");
    write(&folder.join("scope/game.inflict@hideout/1-812-1.capture"), &slow_world(2_000));
    let mut by_hand = slow_world(1_000);
    by_hand.about.trigger = Trigger { note: "slow".into(), ..Trigger::default() };
    write(&folder.join("manual/0-700-1.capture"), &by_hand);
    std::fs::write(folder.join("scope/2-900-1.capture"), b"not one").expect("a folder of ours");
    std::fs::write(folder.join("scope/readme.txt"), b"no capture").expect("a folder of ours");

    let table = run_well(&["list", text(&folder)]).stdout;
    let rows: Vec<&str> = table.lines().skip(1).collect();
    assert_eq!(rows.len(), 3, "{table}");
    assert!(rows[0].starts_with("1970-01-01 00:16:40 UTC  manual "), "{table}");
    for part in ["scope/game.inflict@hideout", " game.inflict ", "17 (hideout)", "812", "1-812-1.capture"] {
        assert!(rows[1].contains(part), "{part} is not in {}", rows[1]);
    }
    assert!(rows[2].contains("cannot be read") && rows[2].contains("2-900-1.capture"), "the newest is last: {table}");

    let json = run_well(&["list", text(&folder), "--json"]).json();
    assert_eq!(json["captures"][1]["world"], 17);
    assert_eq!(json["captures"][1]["trigger"], "scope");
    assert!(json["captures"][2]["error"].as_str().is_some_and(|error| error.contains("not a capture")), "{json}");
    let nothing = run_well(&["list", text(&folder.join("manual")), "--json"]).json();
    assert_eq!(nothing["captures"].as_array().map(Vec::len), Some(1), "one trigger's folder will do");

    let in_folder = |only: &str| {
        let listed = run_well(&["list", text(&folder), "--folder", only, "--json"]).json();
        let all = listed["captures"].as_array().expect("a list").clone();
        all.iter().map(|it| it["folder"].as_str().expect("a folder").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(in_folder("scope/game.inflict@hideout"), ["scope/game.inflict@hideout"]);
    assert_eq!(
        in_folder("scope"),
        ["scope/game.inflict@hideout", "scope"],
        "earlier servers had no folder for a cause"
    );
    assert_eq!(in_folder("scop"), [""; 0]);
}

#[test]
fn convert_writes_beside_the_capture_and_takes_addresses_out() {
    let path = one_capture("capture-convert");
    for (to, ending) in [
        ("fxt", "fxt"),
        ("chrome", "chrome.json"),
        ("speedscope", "speedscope.json"),
        ("callgrind", "callgrind.out"),
        ("folded", "folded.txt"),
    ] {
        let out = path.with_extension(ending);
        let json = run_well(&["convert", text(&path), "--to", to, "--json"]).json();
        assert_eq!(json["file"].as_str(), out.to_str());
        let bytes = std::fs::read(&out).expect("it says that it has written it");
        assert_eq!(json["bytes"].as_u64(), Some(bytes.len() as u64));
        let has = |words: &[u8]| bytes.windows(words.len()).any(|it| it == words);
        assert!(has(b"game.inflict"), "{to} knows the scope");
        assert!(!has(b"192.0.2.7"), "{to} has an address");
    }
    let open = run_well(&["convert", text(&path), "--to", "chrome", "--with-free-text", "--out", "-"]).stdout;
    assert!(open.contains("192.0.2.7:4000"), "as it was: {open}");
    assert!(serde_json::from_str::<serde_json::Value>(&open).is_ok(), "nothing but the converted capture is on stdout");
    run(&["convert", text(&path), "--to", "fxt", "--out", text(&path)]).check_refused(&[text(&path), "--out"]);
}

/// A server that gives one answer; returns its address and, in the end, what it was asked.
fn answering(answer: &'static str) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the command connects");
        let mut asked = Vec::new();
        let mut piece = [0; 1_024];
        while !asked.ends_with(b"it lags") {
            match stream.read(&mut piece).expect("the command sends") {
                0 => break,
                bytes => asked.extend_from_slice(&piece[..bytes]),
            }
        }
        stream.write_all(answer.as_bytes()).expect("the command reads");
        String::from_utf8(asked).expect("text")
    });
    (address, asked)
}

#[test]
fn save_asks_the_admin_port_and_says_where_the_capture_is() {
    let (server, asked) =
        answering("HTTP/1.1 200 OK\r\ncontent-length: 46\r\n\r\n{\"path\":\"captures/manual/1.capture\",\"bytes\":77}");
    let said = run_well(&["save", "--connect", &server, "--note", "it lags", "--json"]).json();
    assert_eq!((said["path"].as_str(), said["bytes"].as_u64()), (Some("captures/manual/1.capture"), Some(77)));
    let asked = asked.join().expect("the server answered");
    assert!(asked.starts_with("POST /capture HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("\r\nx-throng: capture\r\n") && asked.ends_with("\r\n\r\nit lags"), "{asked}");
}

#[test]
fn a_server_that_does_not_save_is_told_with_its_reason() {
    let (server, asked) =
        answering("HTTP/1.1 503 Service Unavailable\r\n\r\n{\"error\":\"the recorder is off\\u001b[2J\"}");
    run(&["save", "--connect", &server, "--note", "it lags"])
        .check_refused(&[&server, "did not save: the recorder is off\\u{1b}[2J"]);
    asked.join().expect("the server answered");
    let (server, asked) = answering("HTTP/1.1 404 Not Found\r\n\r\nwhat?");
    run(&["save", "--connect", &server, "--note", "it lags"]).check_refused(&[&server, "404", "admin port"]);
    asked.join().expect("the server answered");
    let (server, asked) = answering("SSH-2.0-x\r\n");
    run(&["save", "--connect", &server, "--note", "it lags"]).check_refused(&[&server, "not HTTP"]);
    asked.join().expect("the server answered");
    run(&["save", "--connect", "nonsense"]).check_refused(&["--connect nonsense", "HOST:PORT"]);
}

#[test]
fn a_pipe_that_is_named_as_a_capture_is_not_waited_for() {
    let folder = folder("capture-pipe");
    let mode = nix::sys::stat::Mode::S_IRWXU;
    nix::unistd::mkfifo(&folder.join("x.capture"), mode).expect("a folder of ours");
    let finished = run_well(&["list", text(&folder)]);
    assert!(finished.stdout.starts_with("no captures in "), "{}", finished.stdout);
}
