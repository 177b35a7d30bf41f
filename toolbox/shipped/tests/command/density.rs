//! How many instances of a command a host holds: with our own server, and with a command that is nobody's.

use std::time::Duration;

use crate::child::{Finished, Signal, Started, alone, executable, finish, folder, throng, wait_until};

const WITHIN: Duration = Duration::from_secs(180);

/// What `throng density OPTIONS -- COMMAND` says.
fn density(options: &[&str], command: &[&str]) -> Finished {
    finish(throng(&[&["density", "--json"], options, &["--"], command].concat()), WITHIN)
}

/// Processes that have these words in their command line.
fn running(words: &str) -> Vec<String> {
    let commands = std::fs::read_dir("/proc").expect("this is Linux").flatten().filter_map(|entry| {
        let command = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&command).replace('\0', " "))
    });
    commands.filter(|command| command.contains(words)).collect()
}

/// Promise: our own servers need no word about where their frame times are, and their ports are their own.
#[test]
fn instances_of_our_server_are_measured_by_its_own_metrics() {
    let _alone = alone();
    let place = folder("density-serve");
    let place = place.to_str().expect("a plain path");
    let options = ["--max", "2", "--seconds", "2", "--settle-s", "1", "--budget-ms", "10000", "--hz", "1"];
    let serve = ["serve", "--players", "2", "--npcs", "20", "--all-awake", "--no-recorder", "--crashes", "off"];
    let addresses = ["--address", "127.0.0.1:{port}", "--admin-address", "127.0.0.1:{metrics_port}"];
    let executable = executable();
    let command = [&[executable.to_str().expect("a plain path")], &serve[..], &addresses].concat();
    let finished = density(&[&options[..], &["--report", place]].concat(), &command);
    let report = finished.json();
    assert_eq!((finished.status.code(), &report["passed"]), (Some(0), &true.into()), "{}", finished.stderr);
    let curve = &report["curves"][0];
    assert_eq!((&curve["form"], &curve["instances_held"]), (&"processes".into(), &2.into()), "{report}");
    let points = curve["points"].as_array().expect("a list");
    assert_eq!(points.iter().filter_map(|point| point["instances"].as_u64()).collect::<Vec<_>>(), [1, 2]);
    for point in points {
        for key in ["frame_ms", "frame_ms_p99", "frames_per_s", "cores_busy", "rss_mb"] {
            assert!(point[key].as_f64() > Some(0.0), "{key}: {point}");
        }
    }
    for file in ["report.json", "report.html"] {
        assert!(std::path::Path::new(place).join(file).exists(), "{file}");
    }
    assert!(finished.stderr.contains("2 instances held"), "{}", finished.stderr);
}

/// Promise: exit status 1 if fewer hold than are wanted.
#[test]
fn fewer_than_wanted_fail() {
    let place = folder("density-fewer").display().to_string();
    let options = ["--max", "2", "--seconds", "1", "--settle-s", "0", "--budget-ms", "4", "--hz", "0.001"];
    let log = ["--log", "frame {ms} ms", "--report", &place];
    let line = "while :; do echo frame 5 ms; sleep 0.02; done";
    let finished = density(&[&options[..], &log].concat(), &["sh", "-c", line]);
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("FAIL instances: 0 (at least 1)"), "{}", finished.stderr);
    assert_eq!(finished.json()["curves"][0]["instances_failed"], 1);
}

#[test]
fn mistakes_are_told_with_what_to_do() {
    let place = folder("density-mistakes").display().to_string();
    let refused = |options: &[&str], command: &[&str], parts: &[&str]| {
        density(&[options, &["--max", "2", "--report", &place]].concat(), command).check_refused(parts);
    };
    let quick = ["--ready-within-s", "1", "--budget-ms", "4", "--log", "frame {ms} ms"];
    refused(&quick, &["/no/such/program"], &["/no/such/program", "is the path right"]);
    refused(&quick, &["sh", "-c", "echo no room; exit 7"], &["exit status: 7", "no room", "by hand"]);
    refused(&quick, &["sh", "-c", "exec sleep 600"], &["no frame time within 1 s", "--log"]);
    refused(&["--log", "frame took ms"], &["true"], &["{ms}"]);
    refused(&["--log", "frame {ms} ms", "--hz", "1"], &["true"], &["--budget-ms"]);
    refused(&["--log", "{ms}", "--metric", "x_ms"], &["true"], &["--log", "--metric"]);
    refused(&["--metric", "frame_time"], &["true", "{metrics_port}"], &["--unit"]);
    refused(&[], &["true"], &["{metrics_port}", "the command has not"]);
    refused(&["--metrics", "http://127.0.0.1:9/metrics"], &["true"], &["every instance", "{metrics_port}"]);
    refused(&["--metrics", "https://127.0.0.1:{port}/"], &["true", "{port}"], &["http://HOST:PORT/PATH"]);
    refused(&["--worlds"], &["true", "{metrics_port}"], &["{worlds}"]);
    refused(&["--budget-ms", "0"], &["true"], &["--budget-ms", "above 0"]);
    refused(&["--statistic", "p999"], &["true"], &["p99"]);
    finish(throng(&["density", "--max", "2"]), WITHIN).check_refused(&["COMMAND"]);
    finish(throng(&["density", "--max", "0", "--", "true"]), WITHIN).check_refused(&["--max"]);
}

/// Promise: a run that is killed, so that it cannot end anything itself, leaves no instance behind.
#[test]
fn a_run_that_is_killed_leaves_nothing_running() {
    let place = folder("density-killed").display().to_string();
    let report = format!("{place}-report");
    let line = format!("cd '{place}' && while :; do echo frame 1 ms; sleep 0.02; done");
    let options =
        ["--max", "1", "--seconds", "3600", "--budget-ms", "4", "--log", "frame {ms} ms", "--report", &report];
    // A shell around a shell, as launchers are.
    let command = ["sh", "-c", &format!("sh -c \"{line}\" & wait")];
    let run = Started::new(throng(&[&["density"], &options[..], &["--"], &command].concat()));
    run.wait_for_words("1 instance: 1 of 3600 s");
    let instances = || running(&place).into_iter().filter(|command| !command.contains("density --max")).count();
    assert!(instances() >= 2, "{:?}", running(&place));
    run.signal(Signal::SIGKILL);
    assert_eq!(run.finish(WITHIN).status.code(), None);
    let gone = wait_until(Duration::from_secs(30), || (instances() == 0).then_some(()));
    assert!(gone.is_some(), "{:?}", running(&place));
}
