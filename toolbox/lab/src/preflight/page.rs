//! A preflight as one page, for a reader who knows nothing of it: what differs and by how much, how sure that is, what to look at next;
//! then every figure, with what each word means.

use maud::{Markup, html};

use super::report::PreflightReport;
use super::statistics::{
    FALSE_ALARMS_ONE_IN, Finding, SHARE_MIN, SHIFT_MIN, UNKNOWN_MIN, Verdict, WHOLE, cut_in_words,
};
use crate::document::{Heading, document};
use crate::page::{grouped, machine_rows, number};

pub(super) fn page(report: &PreflightReport) -> String {
    let title = title(report);
    let heading = Heading {
        tab: "Preflight",
        kind: "Throng preflight",
        title: &title,
        verdict: match report.verdict {
            Verdict::Unknown => "unknown",
            _ if report.passed => "passed",
            _ => "failed",
        },
        subtitle: html! {
            "Is the change slower than the base? Change " code { (report.change.commit) } ", base " code { (report.base.commit) }
            ", " (report.workload)
        },
    };
    let sections = html! {
        @if !report.did_the_same {
            section {
                h2 { "Not the same work" }
                p {
                    "The two " (report.other_by()) ": they play differently, and times are those of different games. "
                    "What is slower may simply have had more to do; see the counts below."
                }
            }
        }
        (what_differs(report))
        (how_sure(report))
        (what_next(report))
        section { h2 { "All subsystems" } (findings(&report.findings.subsystems)) (legend(report.per)) }
        section { h2 { "Categories" } p { "Sums of the subsystems under a heading." } (findings(&report.findings.categories)) }
        (counts(report))
        (surroundings(report))
    };
    document(heading, sections)
}

/// What was found, in a line: subsystems come before the headings and the whole, which they are in.
fn title(report: &PreflightReport) -> String {
    let named = |verdict: Verdict| {
        let of = |findings: &[Finding]| -> Vec<String> {
            let named = findings.iter().filter(|finding| finding.verdict == verdict && finding.name != WHOLE);
            named.map(|finding| finding.name.clone()).collect()
        };
        let (subsystems, categories) = (of(&report.findings.subsystems), of(&report.findings.categories));
        match (subsystems.is_empty(), categories.is_empty()) {
            (false, _) => subsystems.join(", "),
            (true, false) => format!("category {}", categories.join(", ")),
            (true, true) => format!("the whole {}", report.per),
        }
    };
    match report.verdict {
        Verdict::Slower => format!("Slower: {}", named(Verdict::Slower)),
        Verdict::New => format!("New, and more than what is gone: {}", named(Verdict::New)),
        Verdict::Faster => format!("Faster: {}", named(Verdict::Faster)),
        Verdict::Unknown => "Too little was measured to say anything".to_owned(),
        _ if report.counts_that_differ().next().is_some() => "No difference in time seen".to_owned(),
        _ => "No difference seen".to_owned(),
    }
}

fn what_differs(report: &PreflightReport) -> Markup {
    let (whole, subsystems): (Vec<_>, Vec<_>) =
        report.findings.subsystems.iter().partition(|finding| finding.name == WHOLE);
    let mut seen: Vec<&Finding> = subsystems.iter().copied().filter(|finding| finding.verdict.is_seen()).collect();
    seen.sort_by(|one, other| (other.change_us - other.base_us).total_cmp(&(one.change_us - one.base_us)));
    let names = |verdict: Verdict| -> Vec<&str> {
        subsystems.iter().filter(|finding| finding.verdict == verdict).map(|finding| finding.name.as_str()).collect()
    };
    let (wide, rare) = (names(Verdict::Unknown), names(Verdict::Rare));
    let uncut: Vec<String> =
        report.uncut_outside().map(|(finding, percent)| format!("{} {}", finding.name, signed(percent))).collect();
    html! {
        section {
            h2 { "What differs" }
            ul {
                @for finding in &seen { li { (sentence(finding, report.per)) } }
                @for finding in &whole { li { (sentence(finding, report.per)) } }
                @for count in report.counts_that_differ() {
                    li { (count.in_words(report.per)) ". Counts change neither the verdict nor the exit status." }
                }
                @if !wide.is_empty() {
                    li {
                        b { "Cannot be said" } " of " (wide.join(", ")) ": their intervals are wider than "
                        (number(100.0 * UNKNOWN_MIN)) " %. A longer run (" code { "--seconds" } ") or a quieter host says more."
                    }
                }
                @if !uncut.is_empty() {
                    li {
                        "Of all steps, outside of their intervals and so not judged: " (uncut.join(", "))
                        ". It is a rare stall, or what the host did to single steps; see below."
                    }
                }
                @if !rare.is_empty() {
                    li {
                        b { "Cannot be said" } " of " (rare.join(", ")) ": they work too seldom. A longer run (" code { "--seconds" }
                        ") or longer pairs (" code { "--pair-s" } ") say more."
                    }
                }
            }
        }
    }
}

/// What is known of one, for who reads nothing else.
fn sentence(finding: &Finding, per: &str) -> Markup {
    let Finding { base_us, change_us, verdict, .. } = finding;
    let name = html! { @if finding.name == WHOLE { "The whole " (per) } @else { code { (finding.name) } } };
    let share =
        html! { @if finding.name != WHOLE { " It is " (percent(100.0 * finding.share)) " of a " (per) "'s time." } };
    let interval = html! { @if let (Some(low), Some(high)) = (finding.low_percent, finding.high_percent) {
    (signed(low)) " to " (signed(high)) } };
    let uncut = html! { @if let Some(uncut) = finding.uncut_percent_outside() {
    " Of all steps: " (signed(uncut)) ", outside of the interval." } };
    html! {
        (name)
        @match verdict {
            Verdict::Slower | Verdict::Faster => {
                " is " b { (verdict.name()) @if let Some(shift) = finding.shift_percent { " by " (percent(shift.abs())) } }
                ": " (number(*change_us)) " µs per " (per) " instead of " (number(*base_us)) ". Interval: " (interval) "." (uncut) (share)
            }
            Verdict::New => { " is " b { "new" } ": " (number(*change_us)) " µs per " (per) " that were not there." (share) }
            Verdict::Gone => { " is " b { "gone" } ": " (number(*base_us)) " µs per " (per) " less." (share) }
            Verdict::None if excludes_zero(finding) => {
                " differs (interval: " (interval) "), but perhaps by no more than " (number(100.0 * SHIFT_MIN)) " %, so it is not named." (uncut) (share)
            }
            Verdict::None => { ": no difference seen. Interval: " (interval) "." (uncut) (share) }
            Verdict::Unknown | Verdict::Rare => { ": it " b { "cannot be said" } " whether it differs." (uncut) (share) }
            Verdict::Small => { " takes too little to be judged." }
        }
    }
}

fn excludes_zero(finding: &Finding) -> bool {
    finding.low_percent.is_some_and(|low| low > 0.0) || finding.high_percent.is_some_and(|high| high < 0.0)
}

fn how_sure(report: &PreflightReport) -> Markup {
    let findings = &report.findings;
    let judged = findings.subsystems.iter().filter(|finding| finding.name != WHOLE && finding.verdict == Verdict::None);
    let widest = judged.clone().filter_map(|finding| Some((finding, finding.high_percent?)));
    let widest = widest.max_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut highs: Vec<f64> = judged.filter_map(|finding| finding.high_percent).collect();
    let middle = throng_history::changes::median(&mut highs);
    html! {
        section {
            h2 { "How sure" }
            p {
                (findings.pairs) " pairs of processes played the same " (report.per) "s in turns, one of each build. The intervals hold for all "
                "subsystems at once: of " (grouped(FALSE_ALARMS_ONE_IN)) " runs in which nothing differs, one names something. Something is "
                "named if its whole interval is beyond " (number(100.0 * SHIFT_MIN)) " % of its own time."
            }
            p {
                "An interval covers the shift of the steps that are compared, and says nothing of the others: " (cut_in_words())
                ". Where the shift of all steps lies outside of the interval, it stands beside it and has no verdict, since what the host did "
                "to single steps is in it, too."
            }
            @if let Some((widest, high)) = widest {
                p {
                    "A slowdown of most steps that was not seen is no larger than the upper end of its interval: +" (percent(middle))
                    " in the middle of those without a difference, and +" (percent(high)) " at most, in " code { (widest.name) } "."
                }
            }
            p {
                (number((100.0 * findings.undisturbed_share).round())) " % of steps had the core to themselves"
                @if findings.took_disturbed {
                    ", which is few: others were taken as well, and intervals are wide. A quieter host says more."
                } @else {
                    "; the others do not count."
                }
            }
        }
    }
}

fn what_next(report: &PreflightReport) -> Markup {
    let seen: Vec<&Finding> = report.findings.subsystems.iter().filter(|finding| finding.verdict.is_seen()).collect();
    html! {
        @if !seen.is_empty() {
            section {
                h2 { "What to look at next" }
                @if report.scopes.is_empty() {
                    p { "Nothing is known of single scopes: one of the builds is from before they were told." }
                } @else {
                    p {
                        "The scopes in which these subsystems changed most, in the last steps of each pair. A scope is a named place in the code; "
                        "its time is without scopes inside. More of the same time each is more work; as many that take longer are slower."
                    }
                    table {
                        tr {
                            th { "Scope" } th { "Of" } th.n { "Base, µs" } th.n { "Change, µs" } th.n { "More, µs" }
                            th.n { "Base, per " (report.per) } th.n { "Change, per " (report.per) }
                        }
                        @for scope in &report.scopes {
                            tr {
                                td { code { (scope.name) } }
                                td { code { (scope.subsystem) } }
                                td.n { (number(scope.base_us)) }
                                td.n { (number(scope.change_us)) }
                                td.n { (format!("{:+.2}", scope.change_us - scope.base_us)) }
                                td.n { (number(scope.base_count)) }
                                td.n { (number(scope.change_count)) }
                            }
                        }
                    }
                }
                p {
                    @match report.per {
                        "tick" => { "A capture of the change's replay shows them within its ticks. Saved at the end of the recording, and opened as a page:" }
                        _ => { "A capture of the change shows them within its frames. Under the same load, saved once its bots are in, and opened as a page:" }
                    }
                }
                pre { @for line in &report.look { (line) "\n" } }
            }
        }
    }
}

fn findings(findings: &[Finding]) -> Markup {
    let class = |verdict| match verdict {
        Verdict::Slower | Verdict::New => "failed",
        Verdict::Unknown | Verdict::Rare | Verdict::Small => "",
        _ => "passed",
    };
    let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), signed);
    html! {
        table {
            tr {
                th { "Name" } th.n { "Share" } th.n { "Base, µs" } th.n { "Change, µs" } th.n { "Shift" } th.n { "Low" } th.n { "High" }
                th.n { "Of all steps" } th { "Verdict" }
            }
            @for finding in findings {
                tr.(class(finding.verdict)) {
                    td { code { (finding.name) } }
                    td.n { (percent(100.0 * finding.share)) }
                    td.n { (number(finding.base_us)) }
                    td.n { (number(finding.change_us)) }
                    td.n { (shown(finding.shift_percent)) }
                    td.n { (shown(finding.low_percent)) }
                    td.n { (shown(finding.high_percent)) }
                    td.n { @if let Some(uncut) = finding.uncut_percent_outside() { (signed(uncut)) } }
                    td { (finding.verdict.name()) }
                }
            }
        }
    }
}

fn legend(per: &str) -> Markup {
    let words = [
        ("share", "of the time of all scopes, in the build in which it is more".to_owned()),
        (
            "base, change",
            format!(
                "time per {per} in each build, without that of other subsystems inside, by the steps that the shift is of"
            ),
        ),
        (
            "shift",
            "how much more of its own time the change takes, by the steps that are left after the cut".to_owned(),
        ),
        (
            "low, high",
            format!(
                "the interval of that shift, which holds for all subsystems at once but in one run of {}; not of what was cut off",
                grouped(FALSE_ALARMS_ONE_IN)
            ),
        ),
        (
            "of all steps",
            "the shift with nothing cut off, where it lies outside of the interval; it is not judged".to_owned(),
        ),
        ("slower, faster", format!("the whole interval is beyond {} %", number(100.0 * SHIFT_MIN))),
        ("new, gone", "it is in the change alone, or in the base alone".to_owned()),
        ("none", "no difference was seen; there may be one within the interval, or in what was cut off".to_owned()),
        (
            "cannot be said",
            format!("the interval is wider than {} %, or it works too seldom", number(100.0 * UNKNOWN_MIN)),
        ),
        ("small", format!("less than {} % of all: not judged", number(100.0 * SHARE_MIN))),
        (WHOLE, format!("all scopes of a {per} together")),
    ];
    html! {
        dl.legend-of-words {
            @for (word, meaning) in &words { dt { (word) } dd { (meaning) } }
        }
    }
}

fn counts(report: &PreflightReport) -> Markup {
    html! {
        section {
            h2 { "Counts, per " (report.per) }
            table {
                tr { th { "What" } th.n { "Base" } th.n { "Change" } th { "Verdict" } }
                @for count in &report.counts {
                    tr { td { code { (count.name) } } td.n { (number(count.base)) } td.n { (number(count.change)) } td { (count.verdict) } }
                }
            }
            p {
                @match (report.instructions.by, &report.instructions.missing) {
                    ("none", missing) => { "Instructions were not counted: " (missing.as_deref().unwrap_or("nobody asked")) }
                    ("valgrind", missing) => {
                        "Instructions are valgrind's, of some " (report.per) "s, with all that the process does in them; the processor's counters were not there ("
                        (missing.as_deref().unwrap_or("unknown")) ")."
                    }
                    (by, _) => { "Instructions are of the server's " (report.per) "s, by " (by) "." }
                }
            }
        }
    }
}

fn surroundings(report: &PreflightReport) -> Markup {
    html! {
        section {
            h2 { "Surroundings" }
            table {
                tr { th { "Command" } td { code { (report.command) } } }
                @for (which, build) in [("Base", &report.base), ("Change", &report.change)] {
                    tr { th { (which) } td { code { (build.path) } ", commit " code { (build.commit) } ", content " code { (build.content) } } }
                }
                tr { th { "Played" } td { (report.workload) } }
                tr {
                    th { "Measured" }
                    td { (report.findings.pairs) " pairs of " (report.steps_per_pair) " steps of " (report.per_step) " " (report.per) "s" }
                }
                (machine_rows(&report.machine))
            }
        }
    }
}

fn percent(value: f64) -> String {
    format!("{value:.1} %")
}

fn signed(percent: f64) -> String {
    format!("{percent:+.2} %")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::pair::{PairFigures, Step};
    use crate::preflight::plan::PreflightPlan;

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
        let pair = |pair: usize| PairFigures {
            steps: (0..20).map(|at| (step(pair + at, 2e5, 1e5), step(pair + 3 * at + 1, ai, net))).collect(),
            commits: ["aaaa".to_owned(), "bbbb".to_owned()],
            played: serde_json::json!({"game": "meadow", "players": 40, "npcs": 800}),
            scopes: [2e5, ai].map(|ns| [("ai.plan.search".to_owned(), ("ai.plan".to_owned(), 40, ns as u64))].into()),
            scopes_steps: 20,
            per_step: 1,
            instructions_missing: [Some("no counters".to_owned()), None],
        };
        let plan = PreflightPlan {
            base: "old/throng".into(),
            change: "new/throng".into(),
            recording: None,
            words: ["--game", "meadow"].map(str::to_owned).to_vec(),
            base_words: Vec::new(),
            change_words: Vec::new(),
            seconds: 30,
            pair_s: 1.0,
            frames_per_step: 1,
            valgrind: false,
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
                _ if !is_in_mark => words.push(letter),
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
                "ai.plan is slower by 10.",
                "220 µs per frame instead of 200",
                "Interval: +9.",
                "15 % of a pair's steps are cut off at each end",
                "told as less than it is",
                "12 pairs of processes",
                "of 10,000 runs in which nothing differs, one names something",
                "What to look at next",
                "ai.plan.search",
                "new/throng load --game meadow",
                "new/throng capture save",
                "meadow with 40 players and 800 NPCs",
                "Instructions were not counted: base: no counters",
                "no difference was seen; there may be one within the interval, or in what was cut off",
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
                "A slowdown of most steps that was not seen is no larger",
                "no difference seen. Interval: ",
            ],
        );
        assert!(!words(&report).contains("What to look at next"));
    }

    /// Promise: a count that differs is among what differs, and nobody takes it for a slowdown.
    #[test]
    fn a_page_names_counts_that_differ() {
        let mut report = report_of(2e5, 1e5, 12);
        assert!(!words(&report).contains("neither the verdict"), "no count differs");
        let count = report.counts.iter_mut().find(|count| count.name == "allocations").unwrap();
        (count.base, count.change, count.verdict) = (40.0, 80.0, "more");
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
        check(
            &report,
            &["The whole frame differs (interval: +0.17 % to +1.27 %), but perhaps by no more than 0.300 %"],
        );
    }

    #[test]
    fn a_page_tells_what_all_steps_say_where_that_is_outside_of_the_interval() {
        let of = |uncut: fn(&Finding) -> Option<f64>| {
            let mut report = report_of(2.2e5, 1e5, 12);
            report.findings.subsystems.iter_mut().for_each(|finding| finding.uncut_percent = uncut(finding));
            report
        };
        assert!(!words(&of(|finding| finding.shift_percent)).contains("outside of the interval."));
        let uncut = |finding: &Finding| match finding.name.as_str() {
            "ai.plan" => Some(30.14),
            "net.send" => Some(10.1),
            _ => finding.shift_percent,
        };
        check(
            &of(uncut),
            &[
                "Of all steps: +30.14 %, outside of the interval.",
                "Of all steps, outside of their intervals and so not judged: net.send +10.10 %.",
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
}
