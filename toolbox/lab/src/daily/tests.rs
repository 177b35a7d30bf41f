//! Promise: a day leads from each run to what explains it, and days that cannot be read hide none that can.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use throng_crash::CrashReport;

use super::*;
use crate::bars::{Bar, Requirement};
use crate::history::{ChangeVerdict, OwnHistory, ToldChange};
use crate::load::LoadRun;
use crate::load_report::{EndedEarly, LoadReport};
use crate::seconds::Second;

/// The last second of 2026-11-26.
const NOW: u64 = 1_795_737_599;

/// A folder of days, which goes with the value.
struct Root(PathBuf);

impl Root {
    fn new(test: &str) -> Self {
        let root = std::env::temp_dir().join(format!("throng-daily-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        Self(root)
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn bar(key: &str, passed: bool) -> Bar {
    Bar { key: key.to_owned(), measured: 3.0, requirement: Requirement::Exactly, limit: 0.0, passed }
}

fn run_of(report: LoadReport) -> LoadRun {
    let second = |second, frame_ms_max| Second { second, frame_ms_max, frame_budget_ms: 16.7, ..Second::default() };
    let seconds = vec![second(1, 90.0), second(2, 12.0), second(3, 40.0), second(4, 8.0)];
    LoadRun { report, command: "throng load --daily".to_owned(), seconds, window: 1..4 }
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_day_leads_from_each_run_to_what_explains_it() {
    let root = Root::new("day");
    let day = DayFolder::make(&root.0, NOW).unwrap();
    let to_come = ["usual", "dark-zone", "log-in-at-once"].map(|scenario| DayRun::to_come("precinct", scenario));
    let mut report = DayReport::begin(&day, NOW, "1.2.3", "abc", to_come.to_vec());

    let good = LoadReport { game: "precinct".into(), scenario: "usual".into(), passed: true, ..LoadReport::default() };
    let history = OwnHistory { runs: 3, usual_us: Some(100.0), change_percent: Some(2.5), ..OwnHistory::default() };
    report.put(DayRun::of(&run_of(good.clone()), &day, Some(history), "throng"), NOW + 60);
    assert!(!report.passed, "two runs are missing");

    let place = "2026-11-26/precinct-dark-zone";
    let crash = root.write(&format!("{place}/crashes/crash-17-4711/report.txt"), "SIGSEGV: a rare one");
    root.write(&format!("{place}/crashes/crash-17-4711/last.capture"), "");
    root.write(&format!("{place}/recordings/recording-000000000001-000001.throngrec"), "");
    let ended = EndedEarly {
        process: "serve".into(),
        during: "measuring".into(),
        crash_report: Some(crash.display().to_string()),
        crash_words: Some("SIGSEGV: a rare <one>".into()),
        ..EndedEarly::default()
    };
    let dead = LoadReport {
        scenario: "dark-zone".into(),
        passed: false,
        bars: vec![bar("ticks_missed_ours", false), bar("disconnects", true)],
        ended_early: Some(ended),
        report: Some(day.path().join("precinct-dark-zone/report.html").display().to_string()),
        ..good
    };
    report.put(DayRun::of(&run_of(dead), &day, None, "throng"), NOW + 120);
    report.interrupt(NOW + 130);
    report.write(&day).unwrap();

    let written = read(&day.path().join("report.json"));
    assert_eq!(
        (&written["passed"], &written["interrupted"], &written["day"]),
        (&false.into(), &true.into(), &"2026-11-26".into())
    );
    let verdicts: Vec<&Value> = written["runs"].as_array().unwrap().iter().map(|run| &run["verdict"]).collect();
    assert_eq!(verdicts, ["passed", "died", "not_run"]);
    let (usual, died) = (&written["runs"][0], &written["runs"][1]);
    assert_eq!(
        (&usual["worst_frame"]["ms"], &usual["worst_frame"]["second"]),
        (&40.0.into(), &3.into()),
        "of the window"
    );
    assert_eq!(usual["history"]["change_percent"], 2.5);
    assert_eq!(died["page"], "precinct-dark-zone/report.html");
    let death = &died["death"];
    assert_eq!(death["crash_report"], "precinct-dark-zone/crashes/crash-17-4711/report.txt");
    assert_eq!(death["capture"], "precinct-dark-zone/crashes/crash-17-4711/last.capture");
    assert_eq!(death["recording"], "precinct-dark-zone/recordings");
    let replay = "throng replay precinct-dark-zone/recordings --crashes precinct-dark-zone/replayed";
    assert_eq!(death["replay"], replay, "wherever the day is moved");

    let page = std::fs::read_to_string(day.path().join("report.html")).unwrap();
    for part in [
        "1 of 3 passed, 1 died, 1 not run",
        "ticks_missed_ours",
        "+2.5 % of the usual 100 µs",
        "href=\"precinct-dark-zone/crashes/crash-17-4711/report.txt\"",
        "href=\"precinct-dark-zone/recordings\"",
        "SIGSEGV: a rare &lt;one&gt;",
        "href=\"../index.html\"",
        &format!("<code>{replay}</code>, run in the folder of this page"),
    ] {
        assert!(page.contains(part), "{part:?} is not in the page");
    }
    assert!(!page.contains("disconnects"), "what held needs no words");
}

#[test]
fn a_day_has_passed_when_all_its_runs_have() {
    let root = Root::new("passed");
    let day = DayFolder::make(&root.0, NOW).unwrap();
    let to_come = ["usual", "no-buy"].map(|scenario| DayRun::to_come("duel", scenario));
    let mut report = DayReport::begin(&day, NOW, "1.2.3", "abc", to_come.to_vec());
    let passed = |scenario| DayRun { verdict: DayVerdict::Passed, ..DayRun::to_come("duel", scenario) };
    report.put(passed("usual"), NOW);
    let why = "the server did not start".to_owned();
    report.put(DayRun::without_report("duel", "no-buy", why, &day, "throng"), NOW);
    assert!(!report.passed);
    assert_eq!((report.runs[1].verdict, &report.runs[1].death), (DayVerdict::Failed, &None));
    report.put(passed("no-buy"), NOW);
    assert!(report.passed && report.runs.len() == 2);
    report.interrupt(NOW);
    assert!(!report.passed);
}

/// Promise: a run whose history finds something slower has not passed, whatever its bars say, and neither has the day.
#[test]
fn a_slowdown_in_its_own_history_is_part_of_the_verdict() {
    let root = Root::new("slower");
    let day = DayFolder::make(&root.0, NOW).unwrap();
    let good = LoadReport { game: "duel".into(), scenario: "usual".into(), passed: true, ..LoadReport::default() };
    let slower = ToldChange {
        series: "load duel, usual".to_owned(),
        subsystem: "shots".to_owned(),
        verdict: ChangeVerdict::Slower,
        change_percent: 20.0,
        before_us: Some(10.0),
        after_us: Some(12.0),
        good_commit: "commit4".to_owned(),
        bad_commit: "commit5".to_owned(),
        likely_commit: "commit5".to_owned(),
        suspects_count: 1,
        deviations: 9.0,
        budget_us: None,
        is_above_budget: false,
    };
    let day_of = |changes: &[ToldChange], slowdowns: &[ToldChange]| {
        let (changes, slowdowns) = (changes.to_vec(), slowdowns.to_vec());
        let history = OwnHistory { runs: 30, changes, slowdowns, ..OwnHistory::default() };
        let mut report = DayReport::begin(&day, NOW, "1.2.3", "abc", vec![DayRun::to_come("duel", "usual")]);
        report.put(DayRun::of(&run_of(good.clone()), &day, Some(history), "throng"), NOW + 60);
        report.write(&day).unwrap();
        report
    };
    let usual_by_now = day_of(std::slice::from_ref(&slower), &[]);
    assert!(usual_by_now.passed, "{usual_by_now:?}");
    let new = day_of(std::slice::from_ref(&slower), std::slice::from_ref(&slower));
    assert_eq!((new.passed, new.runs[0].verdict), (false, DayVerdict::Failed));
    let page = std::fs::read_to_string(day.path().join("report.html")).unwrap();
    let words =
        "shots is slower by 20.0 % (10.00 µs before, 12.00 after), likeliest since commit5 (1 suspect after commit4)";
    assert!(page.contains(words), "{page}");
}

/// Promise: a server that dies before it is ready, of which a run says nothing, leads to its report all the same.
#[test]
fn a_death_that_no_run_tells_of_is_linked() {
    let root = Root::new("untold");
    let day = DayFolder::make(&root.0, NOW).unwrap();
    let place = "2026-11-26/duel-usual";
    let told = "SIGSEGV: on its way up";
    let death = CrashReport { signature: "SIGSEGV in load_level".to_owned(), ..CrashReport::default() };
    let json = serde_json::to_string(&death).unwrap();
    root.write(&format!("{place}/crashes/crash-17-4711/report.json"), &json);
    root.write(&format!("{place}/crashes/crash-17-4711/report.txt"), &format!("{told}\nand more"));
    root.write(&format!("{place}/recordings/recording-000000000001-000001.throngrec"), "");
    let run = DayRun::without_report("duel", "usual", "`serve` ended early".to_owned(), &day, "my game");
    assert_eq!((run.verdict, run.why.as_deref()), (DayVerdict::Died, Some("`serve` ended early")));
    let death = run.death.expect("its report is there");
    assert_eq!((death.words.as_str(), death.signature.as_deref()), (told, Some("SIGSEGV in load_level")));
    assert_eq!(death.crash_report.as_deref(), Some("duel-usual/crashes/crash-17-4711/report.txt"));
    assert_eq!(death.recording.as_deref(), Some("duel-usual/recordings"));
    let replay = "'my game' replay duel-usual/recordings --crashes duel-usual/replayed";
    assert_eq!(death.replay.as_deref(), Some(replay));
}

#[test]
fn the_index_shows_all_days_and_names_what_is_none() {
    let root = Root::new("index");
    let day = |commit: &str, passed: bool, scenario: &str, verdict: &str, page: &str| {
        let run = json!({"game": "duel", "scenario": scenario, "verdict": verdict, "page": page, "later": [1]});
        json!({"daily_format": FORMAT, "commit": commit, "passed": passed, "runs": [run]}).to_string()
    };
    root.write("2026-11-26/report.json", &day("first", true, "usual", "passed", "duel-usual/report.html"));
    root.write("2026-11-26-10/report.json", &day("third", false, "usual", "died", "../../etc/passwd"));
    root.write("2026-11-26-2/report.json", &day("second", true, "no-buy", "not_run", "javascript:alert(1)"));
    root.write("2026-11-25/report.json", "{\"daily_format\": 1, \"runs\": ");
    root.write("2026-11-24/report.json", "{\"ticks\": 7}");
    root.write("2026-11-23/report.json", "{\"daily_format\": 9}");
    root.write("2026-11-22/notes.txt", "no report");
    root.write("load/report.json", &day("other", true, "usual", "passed", ""));
    root.write("notes.txt", "a file is no folder");

    let (path, skipped) = write_index(&root.0).unwrap();
    let named: Vec<(&str, &str)> = skipped.iter().map(|(name, why)| (name.as_str(), why.as_str())).collect();
    let expect = [
        ("2026-11-25", "damaged"),
        ("2026-11-24", "of no day"),
        ("2026-11-23", "format 9"),
        ("2026-11-22", "cannot be read"),
        ("load", "no day"),
    ];
    assert_eq!(named.len(), expect.len(), "{named:?}");
    for ((name, why), (expected, part)) in named.iter().zip(expect) {
        assert!(*name == expected && why.contains(part), "{name}: {why}");
    }
    let page = std::fs::read_to_string(path).unwrap();
    let at = |commit: &str| page.find(&format!("<code>{commit}</code>")).unwrap_or_else(|| panic!("{commit}"));
    assert!(at("third") < at("second") && at("second") < at("first"), "the newest first, by number");
    for part in ["3 days", "href=\"2026-11-26/duel-usual/report.html\"", "duel, no-buy", "5 folders are no days"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("passwd") && !page.contains("javascript"), "links stay in the day's folder");
    assert!(!page.contains("more</th>"), "all runs have a column");
    // Written again it is the same, and no day of its own.
    assert_eq!(write_index(&root.0).unwrap().1.len(), 5);
    assert!(write_index(&root.0.join("nowhere")).is_err());
}

#[test]
fn runs_for_which_the_index_has_no_column_are_counted() {
    let root = Root::new("columns");
    let run = |number: usize| json!({"game": "duel", "scenario": format!("worst-{number}"), "verdict": "passed"});
    let day = |runs: std::ops::Range<usize>| {
        json!({"daily_format": FORMAT, "passed": true, "runs": runs.map(run).collect::<Vec<_>>()}).to_string()
    };
    // Both days have some of the same.
    root.write("2026-11-26/report.json", &day(0..90));
    root.write("2026-11-25/report.json", &day(80..107));
    let page = std::fs::read_to_string(write_index(&root.0).unwrap().0).unwrap();
    assert!(page.contains("worst-99<") && !page.contains("worst-100<"), "{page}");
    assert!(page.contains("<th>and 7 more</th>"), "{page}");
}
