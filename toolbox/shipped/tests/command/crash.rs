//! A server's death: it leaves a report that says what happened, soon, and nothing in it is secret.

use std::{
    fs,
    io::Write,
    os::unix::{fs::FileExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant, UNIX_EPOCH},
};

use minidump::{
    Minidump, MinidumpException, MinidumpMemoryList, MinidumpModuleList, MinidumpThreadList, MinidumpThreadNames,
    Module,
};
use nix::{sys::signal::kill, unistd::Pid};
use throng_crash::CrashReport;

use crate::child::{Finished, Signal, Started, alone, finish, folder, this_build, throng, wait_until};

/// What must not be found: a private key, a token that was handed to a player, and the address of one.
const KEY: &str = "9c41e7b05d2a8f6613cc70b4e9d1582fa36b0e94c87d5f2103b8e64adf7192c5";
const TOKEN: &str = "TkVUQ09ERSAxLjAyAK3fQ9sLx0vYt7uRzE2mWqJ1cPpXh5oB8gNd4iVaKyS6wUeTf";
const ADDRESS: &str = "203.0.113.77:40123";

/// A report is there in this time, on a machine that has nothing else to do (reliability R40).
const REPORT_WITHIN: Duration = Duration::from_secs(3);
/// The same on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Each way to die, the signal that it ends in, and words that say so in the report.
const DEATHS: [(&str, Signal, &str); 7] = [
    ("stack-overflow", Signal::SIGSEGV, "stack overflow"),
    ("abort", Signal::SIGABRT, "the program ended itself"),
    ("segv", Signal::SIGSEGV, "memory that is not there (address 0x10a010)"),
    ("bus", Signal::SIGBUS, "a mapped file beyond its end"),
    ("out-of-memory", Signal::SIGABRT, "out of memory"),
    ("memory-limit", Signal::SIGABRT, "out of memory"),
    ("double-panic", Signal::SIGABRT, "double panic"),
];

/// A server that is about to die, with secrets in the memory of all its threads.
fn drill(death: &str, crashes: &Path, more: &[&str]) -> Started {
    let mut command = throng(&["crash-drill", death, "--crashes", crashes.to_str().expect("a plain path")]);
    command.args(more).env("THRONG_PRIVATE_KEY", KEY);
    // A file rather than a pipe: nobody has to write while the child runs.
    let secrets = crashes.with_extension("secrets");
    let mut file = fs::File::create(&secrets).expect("the target folder can be written");
    file.write_all(format!("{TOKEN}\n{ADDRESS}\n").as_bytes()).expect("there is room");
    command.stdin(Stdio::from(fs::File::open(&secrets).expect("just written")));
    Started::new(command)
}

fn deaths_in(crashes: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(crashes).expect("it is there");
    let mut deaths: Vec<_> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    deaths.sort();
    deaths
}

/// The one report in `crashes`.
fn report_in(crashes: &Path) -> (PathBuf, CrashReport) {
    let deaths = deaths_in(crashes);
    let [death] = deaths.as_slice() else { panic!("one death and not {deaths:?}") };
    let json = fs::read(death.join("report.json")).expect("it is there");
    (death.clone(), serde_json::from_slice(&json).expect("it is a report"))
}

fn find(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// Pieces of the secrets, small enough that no part of one gets out unnoticed and large enough to mean something.
fn pieces_of_secrets() -> Vec<Vec<u8>> {
    let key: Vec<u8> =
        (0..KEY.len()).step_by(2).map(|at| u8::from_str_radix(&KEY[at..at + 2], 16).expect("hex")).collect();
    let mut pieces: Vec<Vec<u8>> = key.chunks_exact(8).map(<[u8]>::to_vec).collect();
    for text in [KEY, &KEY.to_uppercase(), TOKEN] {
        pieces.extend(text.as_bytes().chunks_exact(8).map(<[u8]>::to_vec));
    }
    pieces.push(b"203.0.113.77".to_vec());
    pieces.push([&[203, 0, 113, 77][..], &40_123_u16.to_be_bytes()].concat());
    pieces
}

fn check_nothing_is_secret(death: &Path) {
    let pieces = pieces_of_secrets();
    for entry in fs::read_dir(death).expect("it is there") {
        let path = entry.expect("it can be read").path();
        let contents = fs::read(&path).expect("it can be read");
        for piece in &pieces {
            assert!(!find(&contents, piece), "{} has {:?}", path.display(), String::from_utf8_lossy(piece));
        }
    }
}

fn check_dump(death: &Path, report: &CrashReport, signal: Signal) {
    let dump = Minidump::read_path(death.join("crash.dmp")).expect("it is a minidump");
    let exception = dump.get_stream::<MinidumpException>().expect("it says what happened");
    let culprit = report.culprit().expect("somebody died");
    assert_eq!(exception.get_crashing_thread_id(), culprit.tid);
    assert_eq!(exception.raw.exception_record.exception_code, signal as u32);
    let names = dump.get_stream::<MinidumpThreadNames>().expect("threads have names");
    assert_eq!(names.get_name(culprit.tid).as_deref(), Some("worker-1"));
    let memory = dump.get_memory().unwrap_or_else(|| panic!("no memory in {}", death.display()));
    let threads = dump.get_stream::<MinidumpThreadList>().expect("threads");
    assert!(
        threads.threads.len() >= 6,
        "main, state writer, recorder, culprit and bystanders: {}",
        threads.threads.len()
    );
    for thread in &threads.threads {
        assert!(thread.stack_memory(&memory).is_some_and(|stack| stack.bytes().len() > 100), "{thread:?}");
    }
    assert!(dump.get_stream::<MinidumpMemoryList>().is_ok());
    let modules = dump.get_stream::<MinidumpModuleList>().expect("modules");
    assert!(modules.main_module().expect("the executable").code_file().contains("throng"));
    // Environment and command line, by their numbers.
    assert!(dump.get_raw_stream(0x4767_0007).is_err() && dump.get_raw_stream(0x4767_0006).is_err());
}

/// Promise: whatever a server dies of, its report names signal, cause, thread, world, seed and build, and has every
/// stack. Returns how long after the death it was whole.
fn die(crashes: &Path, kind: &str, signal: Signal, cause: &str) -> Duration {
    let Finished { status, stderr, .. } = {
        let _alone = alone();
        let drill = drill(kind, crashes, &[]);
        // The report is written while and after the process ends; its monitor is gone when stderr is closed.
        drill.finish(PATIENCE)
    };
    assert_eq!(status.signal(), Some(signal as i32), "{kind}: it dies by its signal: {status}\n{stderr}");
    let (death, report) = report_in(crashes);
    let page = fs::read_to_string(death.join("report.txt")).expect("it is there");

    assert_eq!(report.signal.as_ref().map(|signal| signal.number), Some(signal as i32), "{kind}\n{page}");
    assert!(report.meaning.contains(cause), "{kind}: {}\n{page}", report.meaning);
    assert_eq!(report.incomplete, Vec::<String>::new(), "{kind}\n{page}");
    assert_eq!((report.seed, report.game.as_str()), (Some(42), "drill"));
    assert_eq!(report.build, this_build());

    let culprit = report.culprit().expect("somebody died");
    assert_eq!(culprit.name, "worker-1", "{kind}\n{page}");
    assert_eq!(culprit.open_scopes, ["world.tick", "drill.last_words"], "{kind}\n{page}");
    let world = culprit.world.as_ref().expect("it was in a world");
    assert_eq!((world.id, world.tick, world.seed), (12, Some(5_012), Some(777)));
    let has_function =
        |name: &str| culprit.stack.iter().any(|frame| frame.function.as_ref().is_some_and(|it| it.contains(name)));
    assert!(has_function("with_secrets_on_the_stack"), "{kind}: the stack goes down to where the thread began\n{page}");
    if kind == "stack-overflow" {
        assert!(has_function("Node"), "{page}");
        assert!(culprit.frames_left_out > 1_000, "{page}");
    }
    let bystander = report.threads.iter().find(|thread| thread.name == "worker-2").expect("all threads are in it");
    assert_eq!(bystander.open_scopes, ["drill.wait"], "{page}");
    assert!(page.starts_with(&report.headline()) && page.contains("<address>") && page.contains("<key>"), "{page}");

    check_dump(&death, &report, signal);
    check_nothing_is_secret(&death);
    assert!(!pieces_of_secrets().iter().any(|piece| find(stderr.as_bytes(), piece)), "{stderr}");
    let capture = fs::read(death.join("last.capture")).expect("the last frames are beside it");
    let capture = throng_capture::format::read(&capture).expect("it is a capture");
    assert!(capture.threads.iter().any(|thread| thread.name == "worker-1"));
    // By the clock of the files. The death is known to the second, so this is up to a second too much.
    let written = fs::metadata(death.join("report.txt")).and_then(|data| data.modified()).expect("a clock");
    written.duration_since(UNIX_EPOCH + Duration::from_secs(report.died_at_unix_s)).unwrap_or_default()
}

#[test]
fn every_kind_of_death_leaves_a_report_without_secrets() {
    for (kind, signal, cause) in DEATHS {
        for round in 0..2 {
            die(&folder(&format!("crash-{kind}-{round}")), kind, signal, cause);
        }
    }
}

/// Promise: a panic on the thread that runs the frames, which takes the whole server along, is reported as any death.
#[test]
fn a_panic_that_nobody_catches_leaves_a_report() {
    let crashes = folder("crash-panic");
    let Finished { status, stderr, .. } = {
        let _alone = alone();
        drill("panic", &crashes, &[]).finish(PATIENCE)
    };
    assert_eq!(status.signal(), Some(Signal::SIGABRT as i32), "{status}\n{stderr}");
    assert!(stderr.contains("a panic that nobody catches"), "{stderr}");
    let (death, report) = report_in(&crashes);
    let page = fs::read_to_string(death.join("report.txt")).expect("it is there");
    let culprit = report.culprit().expect("somebody died");
    let functions = culprit.stack.iter().filter_map(|frame| frame.function.as_deref());
    assert!(functions.clone().any(|name| name.contains("drill")), "{page}");
    let panic = report.panic.as_ref().expect("it says what the panic said");
    assert!(panic.place.starts_with("toolbox/cli/src/crash_monitor.rs:"), "{panic:?}");
    assert_eq!(panic.text, "a panic that nobody catches, on purpose, about <key> and <address> and <key>");
    assert_eq!(report.meaning, "a panic that nobody caught", "{page}");
    assert!(page.contains(&panic.text) && page.contains(&report.signature), "{page}");
    check_nothing_is_secret(&death);
}

/// Promise: an operator reads how often which death was, and in which build, without opening a report.
#[test]
fn equal_deaths_are_one_row_of_a_list() {
    let crashes = folder("crash-list");
    for death in ["abort", "segv", "abort"] {
        drill(death, &crashes, &[]).finish(PATIENCE);
    }
    let list = |more: &[&str]| {
        let folder = crashes.to_str().expect("a plain path");
        finish(throng(&[&["crash", "list", folder], more].concat()), PATIENCE)
    };
    let found = list(&["--json"]).json();
    let groups = found["groups"].as_array().expect("a list");
    let rows: Vec<_> = groups.iter().map(|group| (group["count"].as_u64(), group["signature"].as_str())).collect();
    let [(Some(2), Some(abort)), (Some(1), Some(segv))] = rows.as_slice() else { panic!("{found}") };
    assert!(abort.starts_with("SIGABRT the program ended itself") && abort.contains("die"), "{abort}");
    assert!(segv.starts_with("SIGSEGV use of memory that is not there: ") && !segv.contains("0x"), "{segv}");
    assert_eq!(groups[0]["builds"][0], this_build(), "{found}");
    let table = list(&[]).stdout;
    assert!(table.contains(abort) && table.contains(&this_build()), "{table}");

    finish(throng(&["crash", "list", "no such folder"]), PATIENCE).check_refused(&["no such folder: "]);
}

#[test]
#[ignore = "full form: takes 3 min"]
fn r40_three_hundred_deaths() {
    let kinds = DEATHS.iter().cycle().take(300).enumerate();
    let took = kinds
        .map(|(round, &(kind, signal, cause))| die(&folder(&format!("crash-r40-{}", round % 10)), kind, signal, cause));
    let (soon, late): (Vec<_>, Vec<_>) = took.partition(|&took| took <= REPORT_WITHIN);
    println!(
        "{} reports within {REPORT_WITHIN:?}, the slowest in {:?}; later: {late:?}",
        soon.len(),
        soon.iter().max()
    );
    assert!(soon.len() >= 297, "{late:?}");
}

/// Promise: the searches above would find the secrets, if a stack were kept as it is.
#[test]
fn the_secrets_lie_on_the_stacks_of_the_drill() {
    let crashes = folder("crash-planted");
    let drill = drill("wait", &crashes, &[]);
    drill.wait_for_words("ready");
    let maps = fs::read_to_string(format!("/proc/{}/maps", drill.pid())).expect("it runs");
    let memory = fs::File::open(format!("/proc/{}/mem", drill.pid())).expect("a child of ours");
    let mut found = vec![0; pieces_of_secrets().len()];
    // Stacks of threads are 2 MiB of memory without a file, with a little more where others touch them.
    for line in maps.lines().filter(|line| line.contains(" rw-p ") && line.contains(" 00:00 0")) {
        let (begin, end) = line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
        let [begin, end] = [begin, end].map(|text| u64::from_str_radix(text, 16).expect("an address"));
        if !(1 << 20..16 << 20).contains(&(end - begin)) {
            continue;
        }
        let mut contents = vec![0; (end - begin) as usize];
        memory.read_exact_at(&mut contents, begin).expect("it can be read");
        for (found, piece) in found.iter_mut().zip(pieces_of_secrets()) {
            *found += usize::from(find(&contents, &piece));
        }
    }
    drill.signal(Signal::SIGTERM);
    assert!(drill.finish(PATIENCE).status.success());
    // Three threads; the key in capitals was never there.
    assert!(found.iter().filter(|&&found| found >= 3).count() >= 20, "{found:?}");
}

#[test]
fn a_server_that_is_killed_leaves_a_report_of_its_last_state() {
    let crashes = folder("crash-killed");
    let drill = drill("wait", &crashes, &[]);
    drill.wait_for_words("ready");
    // It tells what it does 4 times a second.
    std::thread::sleep(Duration::from_secs(1));
    drill.signal(Signal::SIGKILL);
    let killed = drill.finish(PATIENCE);
    assert_eq!(killed.status.signal(), Some(Signal::SIGKILL as i32));

    let (death, report) = report_in(&crashes);
    assert!(report.meaning.contains("killed") || report.meaning.contains("SIGKILL"), "{}", report.meaning);
    let bystander = report.threads.iter().find(|thread| thread.name == "worker-2").expect("it told of its threads");
    assert_eq!(bystander.open_scopes, ["drill.wait"]);
    assert_eq!((report.culprit(), report.seed), (None, Some(42)));
    check_nothing_is_secret(&death);
}

/// A server in `place` that nobody told anything about crash reports but `more`.
fn server_in(place: &Path, more: &[&str]) -> Started {
    let small =
        ["serve", "--players", "1", "--npcs", "0", "--address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0"];
    let mut command = throng(&[&small[..], more].concat());
    command.current_dir(place);
    Started::new(command)
}

/// Promise: a server leaves a report of its death without being asked to, unless it is told not to.
#[test]
fn a_server_reports_its_death_unless_told_not_to() {
    for (more, deaths) in [(&[][..], 1), (&["--crashes", "off"][..], 0)] {
        let place = folder("crash-unasked");
        let server = server_in(&place, more);
        server.wait_for_words(" workers");
        server.signal(Signal::SIGABRT);
        let Finished { status, stderr, .. } = server.finish(PATIENCE);
        assert_eq!(status.signal(), Some(Signal::SIGABRT as i32), "{stderr}");
        let crashes = place.join("crashes");
        let found = if crashes.exists() { deaths_in(&crashes).len() } else { 0 };
        assert_eq!(found, deaths, "{more:?}\n{stderr}");
        if deaths > 0 {
            let (_, report) = report_in(&crashes);
            assert_eq!((report.game.as_str(), report.build), ("precinct", this_build()));
        }
    }
}

/// Promise: nobody is kept from playing by a folder that nobody asked for; one that somebody named is a mistake.
#[test]
fn a_server_without_a_place_for_reports_says_so_and_serves() {
    let nowhere = Path::new("/proc");
    let server = server_in(nowhere, &[]);
    server.wait_for_words(" workers");
    server.wait_for_words("a death of this server will not be reported");
    server.signal(Signal::SIGTERM);
    assert!(server.finish(PATIENCE).status.success());
    server_in(nowhere, &["--crashes", "here"]).finish(PATIENCE).check_refused(&["crash reports cannot go to here"]);
}

#[test]
fn a_server_that_ends_in_good_order_leaves_nothing() {
    let crashes = folder("crash-none");
    let drill = drill("wait", &crashes, &[]);
    drill.wait_for_words("ready");
    drill.signal(Signal::SIGTERM);
    assert!(drill.finish(PATIENCE).status.success());
    assert_eq!(deaths_in(&crashes), Vec::<PathBuf>::new());
}

#[test]
fn without_its_monitor_a_server_reports_what_it_can() {
    let crashes = folder("crash-alone");
    let drill = drill("wait", &crashes, &[]);
    drill.wait_for_words("ready");
    let monitor = only_child_of(drill.pid());
    kill(monitor, Signal::SIGKILL).expect("it is there");
    let parent = format!("/proc/{monitor}/stat");
    let is_dead =
        wait_until(PATIENCE, || fs::read_to_string(&parent).map_or(true, |stat| stat.contains(") Z ")).then_some(()));
    assert!(is_dead.is_some());
    drill.signal(Signal::SIGSEGV);
    assert_eq!(drill.finish(PATIENCE).status.signal(), Some(Signal::SIGSEGV as i32));

    let (death, report) = report_in(&crashes);
    assert_eq!(report.signal.as_ref().map(|signal| signal.number), Some(Signal::SIGSEGV as i32));
    assert!(report.incomplete[0].contains("monitor"), "{:?}", report.incomplete);
    assert!(report.threads.iter().any(|thread| thread.open_scopes == ["drill.wait"]));
    check_nothing_is_secret(&death);
}

fn only_child_of(pid: u32) -> Pid {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("the kernel tells");
    Pid::from_raw(children.trim().parse().unwrap_or_else(|_| panic!("one child and not {children:?}")))
}

#[test]
fn only_the_newest_deaths_are_kept() {
    let crashes = folder("crash-kept");
    for _ in 0..3 {
        let begun = Instant::now();
        drill("abort", &crashes, &["--kept", "2"]).finish(PATIENCE);
        // Folders of the same second are told apart by process, which says nothing about their order.
        std::thread::sleep(Duration::from_secs(1).saturating_sub(begun.elapsed()));
    }
    assert_eq!(deaths_in(&crashes).len(), 2);
}
