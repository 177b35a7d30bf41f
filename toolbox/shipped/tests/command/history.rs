//! What `throng history` ends with where somebody else decides by it: a slowdown, none, or nothing that could be judged.

use std::{fs, path::Path, time::Duration};

use serde_json::json;
use throng_history::{Machine, Record, machine::Calibration, store};

use crate::child::{Finished, finish, folder, throng};

/// Runs of a bench whose commits are three each, of these times (µs) and waits for memory (ns).
fn keep(folder: &Path, runs: impl IntoIterator<Item = (f64, f64)>) {
    for (number, (us, memory_ns)) in runs.into_iter().enumerate() {
        let machine = Machine { calibration: Calibration { integer_ns: 1.35, memory_ns }, ..Machine::default() };
        let us = us + 0.01 * (number % 4) as f64;
        let commit = format!("commit{}", number / 3);
        let record = Record::of_bench("woods", &json!({"tick_us": us}), &commit, machine, 1_000 + number as u64);
        store::append(folder, &record).expect("a folder of ours");
    }
}

fn history(folder: &Path, flags: &[&str]) -> Finished {
    let folder = folder.to_str().expect("a plain path");
    finish(throng(&[&["history", folder], flags].concat()), Duration::from_secs(60))
}

/// Promise: the status is asked for. Then 1 is a slowdown, and nothing is said by 0 of what could not be judged.
#[test]
fn a_history_fails_by_a_slowdown_and_says_when_it_can_say_nothing() {
    let check = |name: &str, runs: &[(usize, f64, f64)], status: i32, words: &[&str]| {
        let folder = folder(name);
        keep(&folder, runs.iter().flat_map(|(count, us, memory_ns)| std::iter::repeat_n((*us, *memory_ns), *count)));
        let told = history(&folder, &["--fail-on-slower"]);
        assert_eq!(told.status.code(), Some(status), "{name}: {}{}", told.stdout, told.stderr);
        words.iter().for_each(|words| assert!(told.stdout.contains(words), "{name}: {words} in {}", told.stdout));
        assert_eq!(history(&folder, &[]).status.code(), Some(0), "{name}: nobody asked");
    };
    check("history-slower", &[(12, 10.0, 124.0), (9, 12.0, 124.0)], 1, &["tick_us", "slower", "commit3", "yes"]);
    check("history-faster", &[(12, 12.0, 124.0), (9, 10.0, 124.0)], 0, &["tick_us", "faster"]);
    check("history-same", &[(21, 10.0, 124.0)], 0, &["nothing became slower or faster\n", "yes"]);
    check("history-few", &[(3, 10.0, 124.0), (3, 20.0, 124.0)], 2, &["6 of 10 runs", "nothing can be said yet"]);
    check("history-none", &[], 2, &["nothing can be said yet"]);
    check(
        "history-host",
        &[(12, 10.0, 124.0), (12, 12.0, 290.0)],
        0,
        &[
            "no commit made anything slower or faster; of 1 that changed",
            "the host changed, likeliest with commit4, after commit3",
            "124 ns, then 290",
        ],
    );
}

/// Promise: a file of which no line is a record passes nothing, however many lines there are.
#[test]
fn a_history_that_cannot_be_read_is_no_history_in_which_nothing_is_slower() {
    let folder = folder("history-refused");
    let path = folder.join("2026-11.jsonl");
    fs::write(&path, "no record\n".repeat(14)).expect("a folder of ours");
    let told = history(&path, &["--fail-on-slower", "--json"]);
    assert_eq!((told.status.code(), &told.json()["faults_count"]), (Some(2), &json!(14)), "{}", told.stderr);
}
