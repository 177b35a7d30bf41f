//! The promise: instances of any program are counted out, their frame times are those that the program tells, and when the
//! run is over, however it ends, none of them is left.
//!
//! The programs are shell lines that say how long their frames took, so that the answer is known whatever the machine is
//! doing; and a server of a kind, [`fake_server`], that works a given number of instructions for each frame and serves
//! what it took as a histogram.

use std::collections::BTreeSet;
use std::fs;
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use throng_lab::density::{
    self, DensityError, DensityPlan, DensityReport, Form, FrameMetric, FrameSource, Progress, Statistic,
};
use throng_platform::signals::StopFlag;

/// An empty folder for a test. Its name is in the command of all that the test starts.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("density").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// Processes that have the folder's name in their command line.
fn left(folder: &Path) -> Vec<String> {
    let name = folder.to_str().unwrap();
    let commands = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let command = fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&command).replace('\0', " "))
    });
    commands.filter(|command| command.contains(name)).collect()
}

/// The kernel takes its time to let a killed process go.
#[track_caller]
fn none_left(folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !left(folder).is_empty() {
        assert!(Instant::now() < deadline, "{:?}", left(folder));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A shell line that runs after `cd` into the folder.
fn shell(folder: &Path, line: &str) -> Vec<String> {
    ["sh", "-c", &format!("cd '{}' && {line}", folder.display())].map(str::to_owned).to_vec()
}

/// A plan of short windows. How many frames a shell says in a second is nothing to hold it to.
fn plan(command: Vec<String>, instances_max: u32) -> DensityPlan {
    DensityPlan {
        command,
        instances_max,
        source: FrameSource::Log("frame {ms} ms".parse().unwrap()),
        statistic: Statistic::Mean,
        budget_ms: Some(2.5),
        hz: Some(0.001),
        seconds: 1,
        settle_s: 0,
        ready_within_s: 60,
        points: 16,
        load_share_max: None,
        worlds: false,
        spread_over_nodes: true,
        first_port: DensityPlan::FIRST_PORT,
        at_least: 1,
        command_line: "throng density".to_owned(),
    }
}

fn run(plan: &DensityPlan) -> Result<DensityReport, DensityError> {
    density::run(plan, &StopFlag::new().unwrap(), &mut |_| {})
}

fn counts(report: &DensityReport, curve: usize) -> Vec<u32> {
    report.curves[curve].points.iter().map(|point| point.instances).collect()
}

#[test]
fn as_many_hold_as_the_program_says() {
    let folder = folder("as-many-hold");
    // Each says that a frame takes as many ms as there are instances.
    let command = shell(&folder, "touch {index} && while :; do echo frame $(ls | wc -l) ms; sleep 0.02; done");
    let report = run(&DensityPlan { at_least: 2, ..plan(command, 9) }).unwrap();
    none_left(&folder);
    let curve = &report.curves[0];
    assert_eq!(counts(&report, 0), [1, 2, 3, 4], "two that fail are enough");
    assert_eq!((curve.instances_held, curve.instances_failed, report.passed), (2, Some(3), true), "{curve:?}");
    for point in &curve.points {
        let off = (point.frame_ms / f64::from(point.instances) - 1.0).abs();
        assert!(off < 0.1, "{point:?}");
        assert!(point.cores_busy > 0.0 && point.rss_mb > 0.0 && point.frames_per_s > Some(0.0), "{point:?}");
    }
    let names: BTreeSet<String> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names, ["1", "2", "3", "4"].map(str::to_owned).into());
}

#[test]
fn fewer_than_wanted_is_no_pass() {
    let folder = folder("fewer");
    let command = shell(&folder, "while :; do echo frame 5 ms; sleep 0.02; done");
    let report = run(&plan(command, 3)).unwrap();
    assert_eq!((report.curves[0].instances_held, report.passed), (0, false), "{report:?}");
    assert_eq!(counts(&report, 0), [1, 2]);
    none_left(&folder);
}

#[test]
fn one_noisy_window_is_no_failure() {
    let folder = folder("noisy");
    let say = |ms: &str| fs::write(folder.join("ms"), ms).unwrap();
    say("5");
    let command = shell(&folder, "while :; do echo frame $(cat ms) ms; sleep 0.02; done");
    let mut windows = 0;
    let report = density::run(&plan(command, 1), &StopFlag::new().unwrap(), &mut |progress| {
        if matches!(progress, Progress::Measuring { .. }) {
            windows += 1;
            // From now on frames are short.
            say("1");
        }
    });
    none_left(&folder);
    let report = report.unwrap();
    assert_eq!((windows, report.curves[0].instances_held, counts(&report, 0)), (2, 1, vec![1]), "{report:?}");
}

#[test]
fn worlds_in_one_process_are_held_against_processes() {
    let folder = folder("worlds");
    let command = shell(&folder, "while :; do echo frame {worlds} ms; sleep 0.02; done");
    let report = run(&DensityPlan { worlds: true, ..plan(command, 4) }).unwrap();
    none_left(&folder);
    let [processes, worlds] = &report.curves[..] else { panic!("{report:?}") };
    assert_eq!((processes.form, worlds.form), (Form::Processes, Form::Worlds));
    assert_eq!((processes.instances_held, processes.instances_failed), (4, None), "{processes:?}");
    assert_eq!((worlds.instances_held, worlds.instances_failed), (2, Some(3)), "{worlds:?}");
    assert!(report.passed, "the processes are judged");
}

#[test]
fn a_stop_leaves_what_was_measured_and_no_process() {
    let folder = folder("stop");
    let plan = plan(shell(&folder, "while :; do echo frame 1 ms; sleep 0.02; done"), 8);
    let stop = StopFlag::new().unwrap();
    let mut measured = 0;
    let report = density::run(&plan, &stop, &mut |progress| {
        measured += u32::from(matches!(progress, Progress::Measured { .. }));
        if measured == 2 {
            stop.request();
        }
    });
    none_left(&folder);
    let report = report.unwrap();
    assert_eq!((counts(&report, 0), report.interrupted, report.passed), (vec![1, 2], true, false));

    assert!(matches!(density::run(&plan, &stop, &mut |_| {}), Err(DensityError::Interrupted)), "before anything");
    none_left(&folder);
}

#[test]
fn an_instance_that_dies_ends_the_run_with_what_there_is() {
    let folder = folder("dies");
    let line =
        "if [ {index} = 3 ]; then echo no more room >&2; exit 3; fi; while :; do echo frame 1 ms; sleep 0.02; done";
    let report = run(&plan(shell(&folder, line), 8)).unwrap();
    none_left(&folder);
    assert_eq!((counts(&report, 0), report.passed), (vec![1, 2], false));
    let why = report.ended_early.expect("it says so");
    for part in ["instance 3", "exit status: 3", "no more room"] {
        assert!(why.contains(part), "{part:?} is not in {why}");
    }
}

#[test]
fn what_never_began_is_an_error_that_says_what_to_do() {
    let folder = folder("never");
    let refused = |plan: &DensityPlan, parts: &[&str]| {
        let error = run(plan).unwrap_err().to_string();
        parts.iter().for_each(|part| assert!(error.contains(part), "{part:?} is not in {error}"));
        none_left(&folder);
    };
    refused(&plan(vec!["no-such-program".to_owned()], 2), &["no-such-program", "sh -c"]);
    refused(&plan(shell(&folder, "echo bad flag; exit 2"), 2), &["ended by itself", "exit status: 2", "bad flag"]);
    let quiet = plan(shell(&folder, "while :; do echo nothing; sleep 0.02; done"), 2);
    refused(&DensityPlan { ready_within_s: 1, ..quiet }, &["no frame time within 1 s", "--log", "nothing"]);
    let uncounted = plan(shell(&folder, "while :; do echo frame 1 ms; sleep 0.02; done"), 2);
    let once = plan(shell(&folder, "echo frame 1 ms; exec sleep 600"), 2);
    // The frame that made it ready is before the window.
    refused(&DensityPlan { settle_s: 1, ..once }, &["--seconds"]);
    refused(&DensityPlan { worlds: true, ..uncounted }, &["{worlds}"]);
}

/// A fake server with its metrics, as this very program.
fn fake(folder: &Path, metric: &str, worked: &str) -> DensityPlan {
    let program = std::env::current_exe().unwrap();
    let mut command = ["env", "FAKE_PORT={metrics_port}"].map(str::to_owned).to_vec();
    command.extend([format!("FAKE_WORK={worked}"), program.to_str().unwrap().to_owned()]);
    command.extend(["--ignored", "--exact", "--nocapture", "fake_server"].map(str::to_owned));
    // No test is called so, but the folder's name is in the command line.
    command.push(folder.to_str().unwrap().to_owned());
    let url = "http://127.0.0.1:{metrics_port}/metrics".to_owned();
    DensityPlan {
        source: FrameSource::Metrics { url, metric: FrameMetric::new(metric, None).unwrap() },
        ..plan(command, 2)
    }
}

#[test]
fn a_servers_own_histogram_is_read_at_every_number_of_instances() {
    let folder = folder("histogram");
    let wanted = fake(&folder, "fake_frame_seconds", "200000");
    let report = run(&DensityPlan { budget_ms: Some(1e6), first_port: 21_000, ..wanted }).unwrap();
    none_left(&folder);
    assert_eq!((counts(&report, 0), report.passed), (vec![1, 2], true), "{report:?}");
    for point in &report.curves[0].points {
        assert!(point.frame_ms > 0.0 && point.frame_ms_p99 >= point.frame_ms_p50, "{point:?}");
        assert!(point.frames_per_s > Some(1.0) && point.cores_busy > 0.0, "{point:?}");
        // Where the host counts, a frame is at least the work that was asked for.
        assert!(point.instructions_per_frame.is_none_or(|count| count >= 200_000.0), "{point:?}");
        let is_refused = report.hardware_counts_missing.is_some();
        assert!(!is_refused || point.instructions_per_cycle.is_none(), "{report:?}");
    }
}

#[test]
fn a_gauge_is_read_every_second_and_asks_for_a_budget() {
    let folder = folder("gauge");
    let wanted =
        DensityPlan { first_port: 22_000, hz: None, seconds: 2, ..fake(&folder, "fake_last_frame_ms", "20000") };
    let report = run(&DensityPlan { budget_ms: Some(1e6), ..wanted.clone() }).unwrap();
    assert!(report.curves[0].points.iter().all(|point| point.frames_per_s.is_none() && point.frame_ms > 0.0));
    assert_eq!((counts(&report, 0), report.passed), (vec![1, 2], true), "{report:?}");
    let error = run(&DensityPlan { budget_ms: None, first_port: 22_100, ..wanted }).unwrap_err();
    assert!(matches!(error, DensityError::NoBudget), "{error}");
    none_left(&folder);
}

#[test]
fn a_misspelt_metric_is_told_with_those_that_there_are() {
    let folder = folder("misspelt");
    let error = run(&DensityPlan { first_port: 23_000, ..fake(&folder, "fake_frames_seconds", "20000") }).unwrap_err();
    let DensityError::NoMetric { near, .. } = &error else { panic!("{error}") };
    assert_eq!(near[0], "fake_frame_seconds");
    assert!(error.to_string().contains("--metric"), "{error}");
    none_left(&folder);
}

#[test]
fn a_server_that_dies_while_it_settles_is_told_with_its_last_words() {
    let folder = folder("dies-settling");
    let wanted = fake(&folder, "fake_frame_seconds", "20000");
    // The folder's name and the words of the fake server follow as the shell's own.
    let mut command = shell(&folder, "timeout --foreground -s KILL 2 \"$@\"; echo out of memory >&2; exit 9");
    command.push("sh".to_owned());
    command.extend(wanted.command.iter().cloned());
    let error = run(&DensityPlan { command, settle_s: 4, first_port: 24_000, ..wanted }).unwrap_err().to_string();
    none_left(&folder);
    for part in ["ended by itself", "exit status: 9", "out of memory"] {
        assert!(error.contains(part), "{part:?} is not in {error}");
    }
}

/// A hundred frames a second, each of so many turns of a loop, told as a histogram and as a gauge.
#[test]
#[ignore = "a server for the tests above, which start it"]
fn fake_server() {
    let (Ok(port), Ok(work)) = (std::env::var("FAKE_PORT"), std::env::var("FAKE_WORK")) else { return };
    const PERIOD: Duration = Duration::from_millis(10);
    const BOUNDS_S: [f64; 4] = [0.0001, 0.001, 0.01, 0.1];
    let work: u64 = work.parse().unwrap();
    let frames_s = Arc::new(Mutex::new(Vec::<f64>::new()));
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    let told = frames_s.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1_024]);
            let frames_s = told.lock().unwrap().clone();
            let up_to = |bound: f64| frames_s.iter().filter(|took| **took <= bound).count();
            let mut page = String::from("# TYPE fake_frame_seconds histogram\n");
            for bound in BOUNDS_S {
                page += &format!("fake_frame_seconds_bucket{{le=\"{bound}\"}} {}\n", up_to(bound));
            }
            let (count, sum) = (frames_s.len(), frames_s.iter().sum::<f64>());
            page += &format!("fake_frame_seconds_bucket{{le=\"+Inf\"}} {count}\n");
            page += &format!("fake_frame_seconds_sum {sum}\nfake_frame_seconds_count {count}\n");
            page += &format!("fake_last_frame_ms {}\nfake_players 3\n", frames_s.last().unwrap_or(&0.0) * 1e3);
            let _ = write!(stream, "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n{page}");
        }
    });
    let begun = Instant::now();
    for frame in 1.. {
        let at = Instant::now();
        (0..work).for_each(|turn| {
            black_box(turn);
        });
        frames_s.lock().unwrap().push(at.elapsed().as_secs_f64());
        std::thread::sleep((begun + PERIOD * frame).saturating_duration_since(Instant::now()));
    }
}
