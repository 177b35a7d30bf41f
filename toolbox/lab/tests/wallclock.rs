//! The promise: shares of wall time that the sampler gives are those that the sampled programs measured of themselves,
//! thread by thread and function by function, and no program was stopped for it.
//!
//! The programs in `wallclock/` measure themselves between the lines "begin" and "end"; the sampler runs in between.
//! Expected are their own figures of the very same seconds, not nominal ones, so a busy host changes both sides. Needs
//! `cc`, `python3`, `node` and `callgrind_annotate` (valgrind).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use throng_lab::wallclock::{
    self, FunctionReport, OnCore, ThreadReport, WallclockError, WallclockPlan, WallclockReport,
};
use throng_platform::signals::StopFlag;
use throng_platform::testing::not_permitted;

/// Points of a hundred between a program's own share and the sampled one.
const AGREE: f64 = 0.03;
/// A program under another one's runtime measures itself less sharply: a timer fires late, a garbage collection runs.
const AGREE_INTERPRETED: f64 = 0.04;
/// 800 random moments tell a share of a fifth to 1.4 points, and a dozen shares are compared: when they disagree, more
/// moments are added.
const ATTEMPTS: u32 = 5;

/// One sampled program at a time: several on a small host would mostly wait for each other.
static ALONE: Mutex<()> = Mutex::new(());

/// A program under test; killed when the test is over, however it ends.
struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _alone: MutexGuard<'static, ()>,
}

impl Program {
    /// Returns when the program says that it is ready.
    fn start(command: &mut Command) -> Program {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap_or_else(|error| {
            panic!("{command:?} does not start ({error}); it is installed by `cargo xtask setup`");
        });
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut program = Program { child, input, output, _alone: alone };
        assert_eq!(program.line(), "ready");
        program
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Samples it, and returns what was found with the program's own shares, by thread and part.
    fn sample(&mut self, seconds: u32) -> (wallclock::Profile, BTreeMap<(String, String), f64>) {
        self.input.write_all(b"begin\n").unwrap();
        let plan = WallclockPlan { pid: self.child.id(), hz: 100, seconds };
        let profile = wallclock::run(plan, &StopFlag::new().unwrap()).unwrap();
        self.input.write_all(b"end\n").unwrap();
        let mut own = BTreeMap::new();
        loop {
            let line = self.line();
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["done"] => return (profile, own),
                [thread, part, share] => _ = own.insert((thread.to_owned(), part.to_owned()), share.parse().unwrap()),
                _ => panic!("the program said {line:?}"),
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wallclock").join(name)
}

/// A folder of this test's own, below the build's.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wallclock").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn thread<'a>(report: &'a WallclockReport, name: &str) -> &'a ThreadReport {
    let names = || report.threads.iter().map(|thread| thread.name.as_str()).collect::<Vec<_>>();
    report.threads.iter().find(|thread| thread.name == name).unwrap_or_else(|| panic!("no {name} in {:?}", names()))
}

fn function<'a>(thread: &'a ThreadReport, name: &str) -> Option<&'a FunctionReport> {
    thread.functions.iter().find(|one| one.function == name)
}

/// Samples until everything agrees in the mean of all attempts, of which there are at most [`ATTEMPTS`]; prints what
/// was compared.
fn until_it_agrees(mut sample_and_compare: impl FnMut() -> Vec<Comparison>) {
    let mut by_part: BTreeMap<(String, String), Vec<Comparison>> = BTreeMap::new();
    for attempt in 1..=ATTEMPTS {
        for one in sample_and_compare() {
            println!("{one:?}");
            by_part.entry((one.thread.clone(), one.part.clone())).or_default().push(one);
        }
        let mean =
            |of: &[Comparison], share: fn(&Comparison) -> f64| of.iter().map(share).sum::<f64>() / of.len() as f64;
        let is_off =
            |of: &&Vec<Comparison>| (mean(of, |one| one.sampled) - mean(of, |one| one.own)).abs() > of[0].agree;
        let off: Vec<_> = by_part.values().filter(is_off).collect();
        if off.is_empty() {
            return;
        }
        println!("attempt {attempt}: {} of {} disagree", off.len(), by_part.len());
        assert!(attempt < ATTEMPTS, "{off:#?}");
    }
}

/// What a busy host adds: waiting for a core after a preemption is divided as the time on cores is, and who is preempted
/// where is the scheduler's choice. Beside compilers on two cores, a thread that waited 22 % of its time was told 6.5 points
/// off, time after time.
fn unsharp(thread: &ThreadReport) -> f64 {
    thread.waiting_share / 3.0
}

#[derive(Debug)]
#[allow(dead_code, reason = "shown when it fails")]
struct Comparison {
    thread: String,
    part: String,
    own: f64,
    sampled: f64,
    agree: f64,
}

/// A C program without frame pointers: disk, sleep, lock and computation in six threads, each function's share per
/// thread. A function is called through a frame of unknown size, whose caller is found only by its frame pointer.
#[test]
fn shares_by_thread_and_function_are_those_the_program_measured_of_itself() {
    let folder = folder("shares");
    let (program, data) = (folder.join("shares"), folder.join("data"));
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-g", "-pthread", "-o"]).arg(&program).arg(source("shares.c"));
    assert!(compile.status().unwrap().success(), "{compile:?}");
    let file = std::fs::File::create(&data).unwrap();
    (&file).write_all(&vec![7; 32 << 20]).unwrap();
    file.sync_all().unwrap();

    let mut program = Program::start(Command::new(&program).arg(&data));
    until_it_agrees(|| {
        let (profile, own) = program.sample(8);
        let out = folder.join("callgrind.out");
        let files = wallclock::write(&profile, &out).unwrap();
        let report = WallclockReport::of(&profile, Some(&files));
        println!("{report}");
        check_the_run_itself(&report);
        check_files(&report, &out);
        own.into_iter()
            .filter(|(_, own)| *own > 0.0)
            .map(|((name, part), own)| {
                let thread = thread(&report, &name);
                let sampled = function(thread, &part).map_or(0.0, |one| one.share);
                Comparison { part, own, sampled, agree: AGREE + unsharp(thread), thread: name }
            })
            .collect()
    });
    std::fs::remove_file(data).unwrap();
}

fn check_the_run_itself(report: &WallclockReport) {
    assert_eq!(report.threads.len(), 7, "six and the main thread");
    assert_eq!(report.stops.count, 0);
    for thread in &report.threads {
        let sum = thread.running_share + thread.waiting_share + thread.blocked_share;
        assert!((sum - 1.0).abs() < 1e-6, "{} adds up to {sum}", thread.name);
    }
    let main = thread(report, "shares");
    assert!(function(main, "[read]").is_some_and(|read| read.blocked_share > 0.95), "main waits for its input");
    assert!(function(main, "main").is_some_and(|main| main.share > 0.95));
    let sleeper = thread(report, "sleeper");
    assert!(function(sleeper, "[clock_nanosleep]").is_some_and(|sleep| sleep.blocked_share > 0.3));
    let counts = report.unwinding;
    assert!(counts.cut_off * 50 <= counts.complete, "more than 2 % of stacks are cut off: {counts:?}");
    assert!(counts.frame_pointers_recovered > 0, "do_sleep cannot be left without its frame pointer: {counts:?}");
    if report.source.on_core == OnCore::Nothing {
        not_permitted(
            report.source.advice.as_deref().unwrap_or("samples of a thread on its core, which take CAP_PERFMON"),
        );
    } else {
        let inlined = function(thread(report, "busy"), "inner_step").map_or(0.0, |one| one.share);
        assert!(inlined > 0.2, "inlined calls have names where debug information has them: {inlined}");
    }
}

/// Both files hold all the time, and the tool that KCachegrind's format belongs to reads it.
fn check_files(report: &WallclockReport, callgrind: &Path) {
    let annotated = Command::new("callgrind_annotate").arg("--threshold=100").arg(callgrind).output().unwrap();
    let text = String::from_utf8_lossy(&annotated.stdout);
    assert!(annotated.status.success(), "{}", String::from_utf8_lossy(&annotated.stderr));
    for part in ["Wall_ns", "Blocked_ns", "do_compute", "do_other", "PROGRAM TOTALS"] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    let wall_s: f64 = report.threads.iter().map(|thread| thread.seconds).sum();
    let folded = std::fs::read_to_string(report.folded.as_ref().unwrap()).unwrap();
    let folded_ns: u64 = folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert!((folded_ns as f64 / 1e9 - wall_s).abs() < 1e-6, "{folded_ns} ns in folded stacks of {wall_s} s");
    assert!(folded.lines().any(|line| line.contains("do_sleep;") && line.contains("[clock_nanosleep]")));
}

#[test]
fn a_python_program_is_seen_sleeping_as_long_as_it_sleeps() {
    check_interpreted(Command::new("python3").arg(source("rounds.py")), "rounds", &["_PyEval_EvalFrameDefault"]);
}

#[test]
fn a_node_program_is_seen_waiting_as_long_as_it_waits() {
    check_interpreted(
        Command::new("node").arg("--perf-basic-prof").arg(source("rounds.js")),
        "node",
        &["uv__io_poll", "uv_run"],
    );
}

/// The thread that takes turns is the one that runs most; on any of `functions` it must be seen asleep.
fn check_interpreted(command: &mut Command, kind: &str, functions: &[&str]) {
    let folder = folder(kind);
    let mut program = Program::start(command.current_dir(&folder));
    until_it_agrees(|| {
        let (profile, own) = program.sample(5);
        let report = WallclockReport::of(&profile, None);
        println!("{report}");
        let most = report.threads.iter().max_by(|a, b| a.running_share.total_cmp(&b.running_share)).unwrap();
        let found = functions.iter().filter_map(|name| most.functions.iter().find(|one| one.function.contains(name)));
        assert!(
            found.clone().any(|one| one.blocked_share > 0.3),
            "asleep on none of {functions:?}: {:#?}",
            most.functions
        );
        let own = own[&("rounds".to_owned(), "sleep".to_owned())];
        let compared = Comparison {
            thread: most.name.clone(),
            part: "sleep".into(),
            own,
            sampled: most.blocked_share,
            agree: AGREE_INTERPRETED + unsharp(most),
        };
        vec![compared]
    });
}

#[test]
fn threads_that_start_and_end_meanwhile_and_the_end_of_the_process_are_no_trouble() {
    let script = "import threading, time, sys\nprint('ready', flush=True)\nend = time.time() + 2\n\
                  while time.time() < end:\n    t = threading.Thread(target=time.sleep, args=(0.05,)); t.start(); t.join()\n";
    let program = Program::start(Command::new("python3").args(["-c", script]));
    let plan = WallclockPlan { pid: program.child.id(), hz: 200, seconds: 30 };
    let profile = wallclock::run(plan, &StopFlag::new().unwrap()).unwrap();
    assert!(profile.has_ended && profile.seconds < 29.0, "{} s", profile.seconds);
    assert!(profile.threads.len() > 10, "{} threads were met", profile.threads.len());
    assert!(profile.threads.iter().skip(1).any(|thread| thread.times.blocked_ns > 20_000_000));
}

#[test]
fn what_cannot_be_sampled_is_an_error_that_says_why() {
    let run = |pid| wallclock::run(WallclockPlan { pid, hz: 100, seconds: 1 }, &StopFlag::new().unwrap()).map(|_| ());
    assert!(matches!(run((1 << 22) - 1), Err(WallclockError::NoProcess { .. })));
    let mut ended = Command::new("true").spawn().unwrap();
    let pid = ended.id();
    // Not waited for yet, so that its number stays taken: it is there, and has ended.
    while !std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z") {
        std::thread::yield_now();
    }
    assert!(matches!(run(pid), Err(WallclockError::Ended { .. })));
    ended.wait().unwrap();
}

#[test]
fn a_requested_stop_ends_the_run_with_what_there_is() {
    let program = Program::start(Command::new("python3").arg(source("rounds.py")));
    let stop = StopFlag::new().unwrap();
    stop.request();
    let plan = WallclockPlan { pid: program.child.id(), hz: 100, seconds: 3_600 };
    match wallclock::run(plan, &stop) {
        Ok(profile) => assert!(profile.seconds < 60.0),
        Err(error) => assert!(matches!(error, WallclockError::Ended { .. }), "{error}"),
    }
}
