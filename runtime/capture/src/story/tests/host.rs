//! What the host did beside us: who had the core that a thread of ours waited for, and cores that stood still.

use super::*;

/// Threads of [`taken`].
const WORKER: u32 = 0;
const RUSTC: u32 = 1;
const CODEGEN: u32 = 2;
const KWORKER: u32 = 3;
const RECORDER: u32 = 4;
const IDLE: u32 = 5;

/// Worker 1 loses core 1 for 10.5 ms, 2 ms after the begin of the bad frame, and these have it: moments in ms from
/// then.
fn taken(runs: &[(f64, Option<u32>)]) -> Capture {
    let thread = |owner, pid, tid, name: &str, process: &str| HostThread {
        pid,
        tid,
        owner,
        name: name.into(),
        process: process.into(),
    };
    let mut capture = without_a_core("worker-1", 10.5, vec![]);
    capture.about.switches = SwitchSource::CpuWide;
    capture.host_threads = vec![
        thread(Owner::Own, 100, 102, "worker-1", "throng"),
        thread(Owner::Foreign, 123, 123, "rustc", "rustc"),
        thread(Owner::Foreign, 123, 124, "opt cgu.0", "rustc"),
        thread(Owner::Foreign, 17, 17, "kworker/1:1", "kworker/1:1"),
        thread(Owner::Own, 100, 105, "recorder-cores", "throng"),
        thread(Owner::Idle, 0, 0, "idle", "idle"),
    ];
    let run = |at_ns, thread| CoreRun { at_ns, thread };
    let mut runs_of_1 = vec![run(at(0.0), Some(WORKER))];
    runs_of_1.extend(runs.iter().map(|&(begin_ms, thread)| run(at(2.0 + begin_ms), thread)));
    runs_of_1.push(run(at(12.5), Some(WORKER)));
    // The other core is somebody else's all the time, which nobody waits for.
    capture.cores = vec![Core { number: 0, runs: vec![run(0, Some(KWORKER))] }, Core { number: 1, runs: runs_of_1 }];
    capture
}

#[test]
fn who_had_the_core_is_told_by_process_and_to_the_switch() {
    let runs = [(0.0, Some(RUSTC)), (4.0, Some(CODEGEN)), (9.8, Some(KWORKER)), (10.4, Some(IDLE))];
    check(
        &taken(&runs),
        "the cores were taken by other processes: worker-1 waited 10.5 ms for core 1; rustc (pid 123) ran 9.80 ms of \
         these, kworker/1:1 (pid 17) 0.60 ms, idle 0.10 ms",
        &[
            "context switches: all of our threads, and who else had our cores (cpu-wide)",
            "10.50 ms: worker-1 for core 1, 2.00 ms into the frame; the core had rustc (pid 123) 9.80 ms, kworker/1:1",
            "(pid 17) 0.60 ms, idle 0.10 ms",
        ],
    );
    let story = tell(&taken(&runs), &Options::default()).expect("a story");
    let had: Vec<(&str, u32, f64)> =
        story.core_waits[0].had_core.iter().map(|had| (&*had.name, had.pid, had.ran_ms)).collect();
    assert_eq!(had, [("rustc", 123, 9.8), ("kworker/1:1", 17, 0.6), ("idle", 0, 0.1)]);
}

#[test]
fn processes_of_one_name_are_told_together() {
    let mut capture = taken(&[(0.0, Some(RUSTC)), (6.0, Some(CODEGEN)), (10.0, Some(KWORKER))]);
    capture.host_threads[CODEGEN as usize].pid = 124;
    check(
        &capture,
        "the cores were taken by other processes: worker-1 waited 10.5 ms for core 1; 2 x rustc (pid 123, ...) ran 10 ms \
         of these, kworker/1:1 (pid 17) 0.50 ms",
        &[],
    );
}

/// Shares of the cores around the capture (sh, 0.98 of a core) say nothing once it is known who had this one.
#[test]
fn what_is_known_is_not_guessed_at() {
    check(
        &taken(&[(0.0, Some(RECORDER)), (1.0, Some(IDLE)), (10.4, Some(RUSTC))]),
        "worker-1 waited 10.5 ms for core 1; idle 9.40 ms of these, our own recorder-cores 1.00 ms, rustc (pid 123) 0.10 ms",
        &[],
    );
}

#[test]
fn what_is_not_known_is_no_process_s() {
    check(
        &taken(&[(0.0, None), (9.0, Some(RUSTC))]),
        "the cores were taken by other processes: worker-1 was ready and had no core for 10.5 ms; busiest: sh (pid 312) \
         0.98 cores",
        &["10.50 ms: worker-1 for core 1, 2.00 ms into the frame; the core had rustc (pid 123) 1.50 ms"],
    );
}

#[test]
fn a_source_that_is_not_the_best_says_what_would_give_it() {
    let mut capture = without_a_core("worker-1", 10.5, vec![]);
    capture.about.switches_why_not = "kernel.perf_event_paranoid is 2".into();
    let line = "context switches: all of our threads (perf_event); kernel.perf_event_paranoid is 2";
    assert!(story_of(&capture).contains(line), "{}", story_of(&capture));
}

#[test]
fn a_core_that_stood_still_explains_what_was_late() {
    let mut capture = slow_world();
    capture.about.trigger.kind = TriggerKind::Frame;
    capture.about.trigger.measured = 58 * MS;
    capture.about.trigger.allowed = 50 * MS;
    let stall = |core, begin_ms, end_ms| HostStall { core, begin_ns: at(begin_ms), end_ns: at(end_ms) };
    capture.host_stalls = vec![stall(0, 0.0, 2.0), stall(1, 2.0, 12.0), stall(1, 20.0, 40.0), stall(1, 90.0, 99.0)];
    // One that was over before the frame is no cause of it, and told all the same.
    capture.host_stalls.push(HostStall { core: 0, begin_ns: at(0.0) - 50 * MS, end_ns: at(0.0) - 42 * MS });
    check(
        &capture,
        "frame 812 took 58 ms, budget 50 ms: core 1 stood still for 30 ms: the host had it, or this process was stopped",
        &["20.00 ms: core 1, 20.00 ms into the frame", "8.00 ms: core 0, 50.00 ms before the frame"],
    );
}

#[test]
fn both_sides_of_what_the_server_used_are_told() {
    let mut capture = slow_world();
    let counter = |name: &str| Counter { name: name.into() };
    capture.counters.extend(["outside.group_cpu_cores", "server.players_then", "inside.cpu_cores"].map(counter));
    let first = capture.counters.len() as u32 - 3;
    let count = |at_ms, counter, value| Event::Count { at_ns: at(at_ms), counter: first + counter, value };
    let values = [count(1.0, 0, 1.75), count(1.0, 1, 40.0), count(1.0, 2, 0.9), count(30.0, 2, 0.6)];
    capture.threads[0].events.extend(values);
    capture.threads[0].events.push(count(31.0, 2, f32::NAN));
    let story = story_of(&capture);
    let row = |name: &str, last: &str, most: &str| format!("{name:<46} {last:>14} last {most:>14} at most");
    let (inside, outside) = (row("inside.cpu_cores", "0.60", "0.90"), row("outside.group_cpu_cores", "1.75", "1.75"));
    let place = |row: &str| story.find(row).unwrap_or_else(|| panic!("{row} is not in\n{story}"));
    assert!(place(&inside) < place(&outside));
    assert!(!story.contains("players_then"), "{story}");
}
