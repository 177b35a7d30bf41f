//! Pages of made-up pairs, by the words that are on them.

use super::*;
use crate::preflight::counts::CountVerdict;
use crate::preflight::pair::PairFigures;
use crate::preflight::plan::PreflightPlan;
use crate::preflight::step::{Played, Ready, Step};

/// Twelve pairs, in which the change takes so much of `ai` and of `net` (ns); 0 leaves it out.
fn report_of(ai: f64, net: f64, pairs: usize) -> PreflightReport {
    let step = |seed: usize, ai: f64, net: f64| {
        let noise = |at: usize| 1.0 + ((seed * 7 + at * 13) % 11) as f64 / 5_000.0;
        let times = [("ai.plan", ai), ("net.send", net), ("world.tick", 4e5)].into_iter().enumerate();
        let times = times
            .filter(|(_, (_, ns))| *ns > 0.0)
            .map(|(at, (name, ns))| (name.to_owned(), ("gameplay".to_owned(), (ns * noise(at)) as u64)));
        Step { times_ns: times.collect(), ..Step::default() }
    };
    let ready = |commit: &str, instructions_missing: Option<&str>| Ready {
        commit: commit.to_owned(),
        played: Played { game: "meadow".to_owned(), players: Some(40), npcs: Some(800), ..Played::default() },
        instructions_missing: instructions_missing.map(str::to_owned),
        ..Ready::default()
    };
    let pair = |pair: usize| PairFigures {
        steps: (0..20).map(|at| (step(pair + at, 2e5, 1e5), step(pair + 3 * at + 1, ai, net))).collect(),
        ready: [ready("aaaa", Some("no counters")), ready("bbbb", None)],
        scopes: [2e5, ai].map(|ns| [("ai.plan.search".to_owned(), ("ai.plan".to_owned(), 40, ns as u64))].into()),
        scopes_steps: 20,
        units_per_step: 1,
    };
    let plan = PreflightPlan {
        arguments: ["--game", "meadow"].map(str::to_owned).to_vec(),
        frames_per_step: 1,
        ..PreflightPlan::example()
    };
    PreflightReport::new(&plan, &(0..pairs).map(pair).collect::<Vec<_>>())
}

/// The words of a page, without its marks.
fn words(report: &PreflightReport) -> String {
    let (mut words, mut is_in_mark) = (String::new(), false);
    for letter in page(report).chars() {
        match letter {
            '<' => is_in_mark = true,
            '>' => is_in_mark = false,
            _ if !is_in_mark => words.push(if letter == '\u{a0}' { ' ' } else { letter }),
            _ => {}
        }
    }
    words
}

#[track_caller]
fn check(report: &PreflightReport, parts: &[&str]) {
    let words = words(report);
    parts.iter().for_each(|part| assert!(words.contains(part), "{part:?} is not in {words}"));
}

/// Promise: who has the page alone knows what is slower, by how much, how sure that is, and what to do next.
#[test]
fn a_page_says_what_is_slower_how_sure_that_is_and_what_to_look_at() {
    let report = report_of(2.2e5, 1e5, 12);
    check(
        &report,
        &[
            "Slower: ai.plan",
            "failed",
            "Failed (exit status 1), since something is slower by more than 0.300 % of its own time.",
            "ai.plan is slower by 10.",
            "220 µs per frame instead of 200",
            "Interval: +9.",
            "15 % of a pair's steps are trimmed at each end",
            "told as less than it is",
            "12 pairs of processes",
            "In one run of 10,000 at most",
            "What to look at next",
            "ai.plan.search",
            "new/throng load --game meadow",
            "new/throng capture save",
            "meadow with 40 players and 800 NPCs",
            "Instructions were not counted: base: no counters",
            "no difference was seen; there may be one within the interval, or in what was trimmed",
        ],
    );
    assert!(!words(&report).contains("Slower: all"), "the whole is no subsystem");
}

#[test]
fn a_page_of_equal_builds_says_how_large_a_difference_could_be() {
    let report = report_of(2e5, 1e5, 12);
    check(
        &report,
        &[
            "No difference seen",
            "passed",
            "A slowdown of most steps that fits into its interval",
            "no difference seen. Interval: ",
        ],
    );
    assert!(!words(&report).contains("What to look at next"));
}

/// Promise: nobody looks in code for what a test switch added, or for a difference of a program from itself.
#[test]
fn a_page_says_when_it_is_a_test_of_preflight() {
    let mut report = report_of(2.2e5, 1e5, 12);
    (report.base.content_hash, report.change.content_hash) = ("1234".to_owned(), "5678".to_owned());
    let is_told = |report: &PreflightReport, words_of: &str| words(report).contains(words_of);
    assert!(!is_told(&report, "A test of preflight itself") && !is_told(&report, "One program, twice"));
    report.change.content_hash = "1234".to_owned();
    check(&report, &["One program, twice", "are the same program (content hash 1234), so nothing can differ"]);
    report.told_change = "--slow ai:work:8".to_owned();
    check(
        &report,
        &[
            "A test of preflight itself",
            "The change was told --slow ai:work:8, a test switch, and the base was not.",
            "by what was changed in the code: both are the same program (content hash 1234).",
            "(The test switch is not in it.)",
        ],
    );
    assert!(!is_told(&report, "One program, twice"));
    (report.told_change, report.told_base) = ("--slow ai:misses:2".to_owned(), "--slow ai:hits:2".to_owned());
    check(&report, &["told --slow ai:misses:2, a test switch, and the base --slow ai:hits:2. So"]);
    report.told_change = String::new();
    (report.base.content_hash, report.change.content_hash) = (String::new(), String::new());
    assert!(!is_told(&report, "One program, twice"), "neither could be read");
}

#[test]
fn a_report_under_a_name_of_its_own_leaves_the_other() {
    let folder = std::env::temp_dir().join(format!("throng-preflight-page-{}", std::process::id()));
    report_of(2.2e5, 1e5, 12).write_named(&folder, "run-7").unwrap();
    report_of(2e5, 1e5, 12).write(&folder).unwrap();
    let [kept, last] = ["run-7.html", "report.html"].map(|name| std::fs::read_to_string(folder.join(name)).unwrap());
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("run-7.json")).unwrap()).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(kept.contains("Slower: ai.plan") && !last.contains("Slower: ai.plan"));
    assert!(json["report"].as_str().is_some_and(|page| page.ends_with("run-7.html")), "{json}");
}

/// Promise: where all scopes of a subsystem take the same share more, nobody is sent to one of them.
#[test]
fn a_page_tells_a_cause_that_scopes_have_in_common() {
    let mut report = report_of(2.2e5, 1e5, 12);
    let common = "they have in common than for one of them";
    assert!(!words(&report).contains(common), "one scope has nothing in common with others");
    let scope = |name: &str, base_us: f64, change_us: f64, change_count: f64| ScopeChange {
        name: name.to_owned(),
        subsystem: "ai.plan".to_owned(),
        base_us,
        change_us,
        base_count: 40.0,
        change_count,
    };
    report.scopes = vec![scope("a", 100.0, 110.0, 40.0), scope("b", 50.0, 56.0, 40.0), scope("c", 30.0, 32.7, 40.0)];
    check(
        &report,
        &["The scopes of ai.plan below are called as often", "all of them take 9.0 % to 12.0 % more", common],
    );
    report.scopes[1] = scope("b", 50.0, 56.0, 45.0);
    assert!(!words(&report).contains(common), "one is called more often");
    report.scopes[1] = scope("b", 50.0, 80.0, 40.0);
    assert!(!words(&report).contains(common), "one takes far more");
}

#[test]
fn a_page_says_what_is_missing_of_the_recording() {
    let mut report = report_of(2e5, 1e5, 12);
    assert!(!words(&report).contains("Not all of the recording"));
    report.recording_faults = vec!["evening/6: the recording is damaged at byte 700".to_owned()];
    check(&report, &["Not all of the recording", "evening/6: the recording is damaged at byte 700"]);
}

#[test]
fn a_page_says_who_does_not_know_the_recorded_rules() {
    let mut report = report_of(2e5, 1e5, 12);
    assert!(!words(&report).contains("Not the recorded rules"));
    report.rules_missing = vec!["change: no trigger `sideways`".to_owned()];
    check(&report, &["Not the recorded rules", "change: no trigger `sideways`"]);
}

/// Promise: a count that differs is among what differs, and nobody takes it for a slowdown.
#[test]
fn a_page_names_counts_that_differ() {
    let mut report = report_of(2e5, 1e5, 12);
    assert!(!words(&report).contains("neither the verdict"), "no count differs");
    let count = report.counts.iter_mut().find(|count| count.name == "allocations").unwrap();
    (count.base, count.change, count.verdict) = (40.0, 80.0, CountVerdict::More);
    check(
        &report,
        &[
            "No difference in time seen",
            "passed",
            "allocations: more, 80 per frame instead of 40 (+100.0 %). Counts change neither the verdict nor the exit status.",
        ],
    );
}

#[test]
fn a_page_tells_a_difference_that_is_too_small_to_be_named() {
    let mut report = report_of(2e5, 1e5, 12);
    let whole = report.findings.subsystems.iter_mut().find(|finding| finding.name == WHOLE).unwrap();
    (whole.low_percent, whole.high_percent) = (Some(0.17), Some(1.27));
    check(&report, &["The whole frame differs (interval: +0.17 % to +1.27 %), but perhaps by no more than 0.300 %"]);
}

#[test]
fn a_page_tells_what_all_steps_say_where_that_is_outside_of_the_interval() {
    let of = |untrimmed: fn(&Finding) -> Option<f64>| {
        let mut report = report_of(2.2e5, 1e5, 12);
        report.findings.subsystems.iter_mut().for_each(|finding| finding.untrimmed_percent = untrimmed(finding));
        report
    };
    assert!(!words(&of(|finding| finding.shift_percent)).contains("outside of the interval."));
    let untrimmed = |finding: &Finding| match finding.name.as_str() {
        "ai.plan" => Some(30.14),
        "net.send" => Some(10.1),
        _ => finding.shift_percent,
    };
    check(
        &of(untrimmed),
        &[
            "Untrimmed: +30.14 %, outside of the interval.",
            "Untrimmed, outside of their intervals and so not judged: net.send +10.10 %.",
        ],
    );
}

#[test]
fn a_page_never_takes_what_is_not_known_for_no_difference() {
    check(&report_of(2e5, 0.0, 12), &["net.send is gone: 100"]);
    let mut few = report_of(2e5, 1e5, 4);
    few.verdict = Verdict::Unknown;
    few.findings.subsystems.iter_mut().for_each(|finding| finding.verdict = Verdict::Unknown);
    check(&few, &["Too little was measured to say anything", "unknown", "it cannot be said whether it differs"]);
}
