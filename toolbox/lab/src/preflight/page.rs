//! A preflight as one page, for a reader who knows nothing of it: what differs and by how much, how sure that is, what to look at next;
//! then every figure, with what each word means.

mod interval;

use maud::{Markup, html};
use throng_capture::story::printable_date;

use super::counts::COUNT_DIFFERS_MIN;
use super::instructions::{CountedBy, FRAMES};
use super::plan::Per;
use super::report::{PreflightReport, ScopeChange};
use super::statistics::{
    FALSE_ALARMS_ONE_IN, Finding, Findings, SHARE_MIN, SHIFT_MIN, UNKNOWN_MIN, Verdict, WHOLE, trimming_in_words,
};
use crate::document::{Heading, document};
use crate::page::{grouped, machine_rows, number};

/// Scopes of a subsystem have a cause in common if there are so many of them, and the share that each takes more is at most so many
/// times as large as that of any other.
const COMMON_SCOPES_MIN: usize = 3;
const COMMON_RATIO_MAX: f64 = 2.0;

pub(super) fn page(report: &PreflightReport) -> String {
    let title = title(report);
    let heading = Heading {
        tab: "Preflight",
        kind: "Throng preflight",
        title: &title,
        verdict: match report.verdict {
            _ if !report.passed => "failed",
            _ if report.says_enough() => "passed",
            _ => "unknown",
        },
        subtitle: html! {
            "Is the change slower than the base? Change " code { (report.change.commit) } ", base " code { (report.base.commit) }
            ", " (report.workload)
        },
    };
    let sections = html! {
        (test_of_preflight(report))
        @if report.interrupted {
            section {
                h2 { "Not to its end" }
                p { "It was stopped after " (report.findings.pairs) " pairs of processes, before its time was over, so it sees less than it was to." }
            }
        }
        @if !report.did_the_same {
            section {
                h2 { "Not the same work" }
                p {
                    "The two " (report.other_by()) ": they play differently, and times are those of different games. "
                    "What is slower may simply have had more to do; see the counts below."
                }
            }
        }
        @if !report.recording_faults.is_empty() {
            section {
                h2 { "Not all of the recording" }
                p { "The recording is not whole, so this is of less than was recorded:" }
                ul { @for fault in &report.recording_faults { li { (fault) } } }
            }
        }
        @if !report.rules_missing.is_empty() {
            section {
                h2 { "Not the recorded rules" }
                p { "What triggers captures, and up to which budgets, is the default and not what the recorded server was told:" }
                ul { @for why in &report.rules_missing { li { (why) } } }
            }
        }
        (what_differs(report))
        (how_sure(report))
        (what_it_cannot_see(report))
        (what_next(report))
        section { h2 { "All subsystems" } (findings(&report.findings.subsystems, report.per)) (legend(report.per)) }
        (categories(report))
        (counts(report))
        (surroundings(report))
    };
    document(heading, sections)
}

/// Whoever reads of a slowdown is not to look for it in code that has none.
fn test_of_preflight(report: &PreflightReport) -> Markup {
    let PreflightReport { told_base, told_change, change, .. } = report;
    html! {
        @if !told_change.is_empty() {
            section {
                h2 { "A test of preflight itself" }
                p {
                    "The change was told " code { (told_change) } ", a test switch, and the base "
                    @if told_base.is_empty() { "was not" } @else { code { (told_base) } }
                    ". So what differs is not, or not only, by what was changed in the code"
                    @if report.is_one_program() { ": both are the same program (content hash " code { (change.content_hash) } ")" }
                    "."
                }
            }
        } @else if report.is_one_program() {
            section {
                h2 { "One program, twice" }
                p {
                    "Base and change are the same program (content hash " code { (change.content_hash) } "), so nothing can differ: what is named "
                    "below is a false alarm."
                }
            }
        }
    }
}

/// What was found, in a line: subsystems come before the categories and the whole, which they are in.
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
        Verdict::Unknown if report.seen().next().is_some() => {
            "Too little was measured to say whether anything is slower".to_owned()
        }
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
    let untrimmed: Vec<String> =
        report.untrimmed_outside().map(|(finding, percent)| format!("{} {}", finding.name, signed(percent))).collect();
    html! {
        section {
            h2 { "What differs" }
            @if !report.passed {
                p {
                    @match report.verdict {
                        Verdict::New => { "Failed (exit status 1), since new subsystems take more than those that are gone, by over " (number(100.0 * SHARE_MIN)) " % of a " (report.per) "." }
                        _ => { "Failed (exit status 1), since something is slower by more than " (number(100.0 * SHIFT_MIN)) " % of its own time." }
                    }
                }
            }
            ul {
                @for finding in &seen { li { (sentence(finding, report.per)) } }
                @for finding in &whole { li { (sentence(finding, report.per)) } }
                @for count in report.counts_that_differ() {
                    li { (count.in_words(report.per)) ". Counts change neither the verdict nor the exit status." }
                }
                @if !wide.is_empty() {
                    li {
                        b { "Cannot be said" } " of " (wide.join(", ")) ": their intervals reach beyond "
                        (number(100.0 * UNKNOWN_MIN)) " %. A longer run (" code { "--seconds" } ") or a quieter host says more."
                    }
                }
                @if !untrimmed.is_empty() {
                    li {
                        "Untrimmed, outside of their intervals and so not judged: " (untrimmed.join(", "))
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
fn sentence(finding: &Finding, per: Per) -> Markup {
    let Finding { base_us, change_us, verdict, .. } = finding;
    let name = html! { @if finding.name == WHOLE { "The whole " (per) } @else { code { (finding.name) } } };
    let share =
        html! { @if finding.name != WHOLE { " It is " (percent(100.0 * finding.share)) " of a " (per) "'s time." } };
    let interval = html! { @if let (Some(low), Some(high)) = (finding.low_percent, finding.high_percent) {
    (signed(low)) " to " (signed(high)) } };
    let untrimmed = html! { @if let Some(untrimmed) = finding.untrimmed_percent_outside() {
    " Untrimmed: " (signed(untrimmed)) ", outside of the interval." } };
    html! {
        (name)
        @match verdict {
            Verdict::Slower | Verdict::Faster => {
                " is " b { (verdict.name()) @if let Some(shift) = finding.shift_percent { " by " (precise(shift.abs())) } }
                ": " (number(*change_us)) " µs per " (per) " instead of " (number(*base_us)) ". Interval: " (interval) "." (untrimmed) (share)
            }
            Verdict::New => { " is " b { "new" } ": " (number(*change_us)) " µs per " (per) " that were not there." (share) }
            Verdict::Gone => { " is " b { "gone" } ": " (number(*base_us)) " µs per " (per) " less." (share) }
            Verdict::None if excludes_zero(finding) => {
                " differs (interval: " (interval) "), but perhaps by no more than " (number(100.0 * SHIFT_MIN)) " %, so it is not named." (untrimmed) (share)
            }
            Verdict::None => { ": no difference seen. Interval: " (interval) "." (untrimmed) (share) }
            Verdict::Unknown | Verdict::Rare => { ": it " b { "cannot be said" } " whether it differs." (untrimmed) (share) }
            Verdict::Small => { " takes too little to be judged." }
        }
    }
}

fn excludes_zero(finding: &Finding) -> bool {
    finding.low_percent.is_some_and(|low| low > 0.0) || finding.high_percent.is_some_and(|high| high < 0.0)
}

fn how_sure(report: &PreflightReport) -> Markup {
    let findings = &report.findings;
    html! {
        section {
            h2 { "How sure" }
            p {
                "Something is named if its whole interval is beyond " (number(100.0 * SHIFT_MIN)) " % of its own time. By how much the "
                "steps differ that are left after trimming, the interval says. In one run of " (grouped(FALSE_ALARMS_ONE_IN)) " at most, if the pairs "
                "are nearly normal, their difference lies outside of one of the intervals, and something may be named that does not differ. "
                "A stall or a wait that comes in few steps is trimmed with them: it may be any number of times as large as the interval says, "
                "and is looked for in the column " i { "untrimmed" } "."
            }
            p {
                (findings.pairs) " pairs of processes, one of each build, played the same " (report.per) "s in turns, a step of "
                (report.units_per_step) " " (report.per) "s at a time. "
                (number((100.0 * findings.undisturbed_share).round())) " % of steps had the core to themselves"
                @if findings.took_disturbed {
                    ", which is few: others were taken as well, and intervals are wide. A quieter host says more."
                } @else {
                    "; the others do not count."
                }
                " That is the kernel's word, which does not know what a hypervisor takes."
            }
        }
    }
}

fn what_it_cannot_see(report: &PreflightReport) -> Markup {
    let subsystems = &report.findings.subsystems;
    let judged = subsystems.iter().filter(|finding| finding.name != WHOLE && finding.verdict == Verdict::None);
    let widest = judged.clone().filter_map(|finding| Some((finding, finding.high_percent?)));
    let widest = widest.max_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut highs: Vec<f64> = judged.filter_map(|finding| finding.high_percent).collect();
    let middle = throng_history::changes::median(&mut highs);
    let small = subsystems.iter().filter(|finding| finding.verdict == Verdict::Small);
    let small: Vec<&str> = small.map(|finding| finding.name.as_str()).collect();
    html! {
        section {
            h2 { "What this cannot see" }
            ul {
                li {
                    (trimming_in_words()) "."
                    @if subsystems.iter().any(|finding| finding.untrimmed_percent_outside().is_some()) {
                        " Where the untrimmed shift lies outside of the interval, it is shown beside it, without a verdict: what the host did to "
                        "single steps is in it, too."
                    }
                }
                @if let Some((widest, high)) = widest {
                    li {
                        "A slowdown of most steps that fits into its interval: of up to " (signed(middle))
                        " in the median of the subsystems without a difference, and of " (signed(high)) " at most, in " code { (widest.name) } "."
                    }
                }
                @if !small.is_empty() {
                    li { "Subsystems of less than " (number(100.0 * SHARE_MIN)) " % of all: " (small.join(", ")) "." }
                }
                li {
                    "What no scope has: the kernel's part of packets, and the threads that write recordings and captures. Nothing is saved in these runs."
                }
                li { "Another load, game or machine than those at the end of this page." }
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
                        "its time is without scopes inside. More calls that take as long each: there is more to do. As many calls that take "
                        "longer: what they do has become slower."
                    }
                    @for line in common_causes(report) { p { (line) } }
                    table {
                        tr {
                            th { "Scope" } th { "Of" } th.n { "More" } th.n { "More, µs" } th.n { "Base, µs" } th.n { "Change, µs" }
                            th.n { "Base, calls" } th.n { "Change, calls" }
                        }
                        @for scope in &report.scopes {
                            tr {
                                td { code { (scope.name) } }
                                td { code { (scope.subsystem) } }
                                td.n { (more_told(scope)) }
                                td.n { (format!("{:+.2}", scope.change_us - scope.base_us)) }
                                td.n { (number(scope.base_us)) }
                                td.n { (number(scope.change_us)) }
                                td.n { (number(scope.base_count)) }
                                td.n { (number(scope.change_count)) }
                            }
                        }
                    }
                    p { "Times and calls are per " (report.per) "." }
                }
                p {
                    @match report.per {
                        Per::Tick => { "A capture of the change's replay shows them within its ticks. Saved at the end of the recording, and opened as a page:" }
                        Per::Frame => { "A capture of the change shows them within its frames. Under the same load, saved once its bots are in, and opened as a page:" }
                    }
                    @if !report.told_change.is_empty() { " (The test switch is not in it.)" }
                }
                pre { @for line in &report.look { (line) "\n" } }
            }
        }
    }
}

fn more_percent(scope: &ScopeChange) -> Option<f64> {
    (scope.base_us > 0.0).then(|| 100.0 * (scope.change_us / scope.base_us - 1.0))
}

fn more_told(scope: &ScopeChange) -> String {
    match more_percent(scope) {
        Some(more) => signed(more),
        None if scope.change_us > 0.0 => "new".to_owned(),
        // In most pairs it worked in neither.
        None => "–".to_owned(),
    }
}

/// Of subsystems whose scopes all take about the same share more: there is no use in looking at one of them.
fn common_causes(report: &PreflightReport) -> Vec<String> {
    let of_subsystem = |finding: &Finding| {
        let scopes = report.scopes.iter().filter(|scope| scope.subsystem == finding.name);
        let is_called_as_often =
            |scope: &ScopeChange| (scope.change_count - scope.base_count).abs() <= 0.01 * scope.base_count;
        let more: Vec<Option<f64>> =
            scopes.map(|scope| more_percent(scope).filter(|_| is_called_as_often(scope))).collect();
        let more: Vec<f64> = more.iter().copied().collect::<Option<_>>()?;
        let (least, most) =
            more.iter().fold((f64::MAX, f64::MIN), |(least, most), one| (one.min(least), one.max(most)));
        let is_common = more.len() >= COMMON_SCOPES_MIN && least > 0.0 && most <= COMMON_RATIO_MAX * least;
        is_common.then(|| {
            format!(
                "The scopes of {} below are called as often as before, and all of them take {} to {} more: rather look for what they \
                 have in common than for one of them.",
                finding.name,
                percent(least),
                percent(most)
            )
        })
    };
    let seen = report.findings.subsystems.iter().filter(|finding| finding.verdict == Verdict::Slower);
    seen.filter_map(of_subsystem).collect()
}

fn findings(findings: &[Finding], per: Per) -> Markup {
    let class = |verdict| match verdict {
        Verdict::Slower | Verdict::New => "failed",
        Verdict::Faster | Verdict::Gone => "passed",
        _ => "",
    };
    let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), signed);
    let is_untrimmed_shown = findings.iter().any(|finding| finding.untrimmed_percent_outside().is_some());
    let drawn = findings.iter().filter(|finding| finding.verdict != Verdict::Small);
    let ends = drawn.flat_map(|finding| [finding.low_percent, finding.high_percent]).flatten();
    let reach = interval::reach(ends, SHIFT_MIN * 100.0);
    html! {
        table {
            tr {
                th { "Name" } th { "Verdict" } th.n { "Shift" } th { "Interval" } th.n { "Low" } th.n { "High" }
                @if is_untrimmed_shown { th.n { "Untrimmed" } }
                th.n { "Share" } th.n { "Base, µs" } th.n { "Change, µs" }
            }
            @for finding in findings {
                tr.(class(finding.verdict)) {
                    td { @if finding.name == WHOLE { "the whole " (per) } @else { code { (finding.name) } } }
                    td.verdict-word { (finding.verdict.name()) }
                    td.n { (shown(finding.shift_percent)) }
                    td { (interval_drawn(finding, reach)) }
                    td.n { (shown(finding.low_percent)) }
                    td.n { (shown(finding.high_percent)) }
                    @if is_untrimmed_shown { td.n { @if let Some(untrimmed) = finding.untrimmed_percent_outside() { (signed(untrimmed)) } } }
                    td.n { (percent(100.0 * finding.share)) }
                    td.n { (number(finding.base_us)) }
                    td.n { (number(finding.change_us)) }
                }
            }
        }
    }
}

/// Of what is not judged there is none.
fn interval_drawn(finding: &Finding, reach: f64) -> Markup {
    html! {
        @if let (Some(low), Some(high)) = (finding.low_percent, finding.high_percent) && finding.verdict != Verdict::Small {
            (interval::drawn(low, high, reach, &format!("{} to {}", signed(low), signed(high))))
        }
    }
}

fn categories(report: &PreflightReport) -> Markup {
    let Findings { subsystems, categories, .. } = &report.findings;
    let members = |category: &Finding| -> Vec<&str> {
        subsystems.iter().filter(|one| one.category == category.name).map(|one| one.name.as_str()).collect()
    };
    html! {
        section {
            h2 { "Categories" }
            p { "A category has the time of its subsystems together. It is trimmed by itself, so it is not exactly their sum." }
            (findings(categories, report.per))
            dl.legend-of-words {
                @for category in categories { dt { (category.name) } dd { (members(category).join(", ")) } }
            }
        }
    }
}

fn legend(per: Per) -> Markup {
    let whole = format!("the whole {per}");
    let words = [
        ("shift", "how much more of its own time the change takes, by the steps that trimming leaves".to_owned()),
        (
            "interval, low, high",
            format!(
                "of that shift; all that are judged hold at once, but in one run of {}; not of what was trimmed. In the picture the line is 0, and \
                 to the right is slower",
                grouped(FALSE_ALARMS_ONE_IN)
            ),
        ),
        (
            "untrimmed",
            "the shift with nothing left out, where it lies outside of the interval; it is not judged".to_owned(),
        ),
        ("share", "of the time of all scopes, in the build in which it is more".to_owned()),
        (
            "base, change",
            format!(
                "time per {per} in each build, without that of other subsystems inside, by the steps that the shift is of"
            ),
        ),
        ("slower, faster", format!("the whole interval is beyond {} %", number(100.0 * SHIFT_MIN))),
        ("new, gone", "it is in the change alone, or in the base alone".to_owned()),
        (
            "none seen",
            "no difference was seen; there may be one within the interval, or in what was trimmed".to_owned(),
        ),
        (
            "cannot be said",
            format!("the interval reaches beyond {} %, or it works too seldom", number(100.0 * UNKNOWN_MIN)),
        ),
        (
            "small",
            format!("less than {} % of all: not judged, however wide its interval is", number(100.0 * SHARE_MIN)),
        ),
        (whole.as_str(), format!("all scopes of a {per} together")),
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
                tr { th { "What" } th { "Verdict" } th.n { "Base" } th.n { "Change" } }
                @for count in &report.counts {
                    tr {
                        td { code { (count.name) } }
                        td { (count.verdict.name()) }
                        td.n { (number(count.base)) }
                        td.n { (number(count.change)) }
                    }
                }
            }
            p {
                "More or fewer: it differs by more than " (number(100.0 * COUNT_DIFFERS_MIN)) " %, the same way in all pairs. "
                @match (report.instructions.by, &report.instructions.missing) {
                    (CountedBy::None, missing) => { "Instructions were not counted: " (missing.as_deref().unwrap_or("nobody asked")) "." }
                    (CountedBy::Valgrind, missing) => {
                        "Instructions are valgrind's, of " (FRAMES) @if report.per == Per::Tick { " ticks of each world that ticks at one time" } @else { " frames" }
                        ", with all that the process does in them, mean of two counts of each build; the processor's counters were not there ("
                        (missing.as_deref().unwrap_or("unknown")) ")."
                        @if let Some(unclear) = &report.instructions.unclear { " Of instructions " (unclear) "." }
                    }
                    (CountedBy::PerfEvent, _) => { "Instructions are of the server's " (report.per) "s, by " (CountedBy::PerfEvent.name()) "." }
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
                tr { th { "Ended" } td { (printable_date(report.written_unix_s)) } }
                tr { th { "Command" } td { code { (report.command) } } }
                @for (which, build) in [("Base", &report.base), ("Change", &report.change)] {
                    tr { th { (which) } td { code { (build.path) } ", commit " code { (build.commit) } ", content hash " code { (build.content_hash) } } }
                }
                tr { th { "Played" } td { (report.workload) } }
                tr {
                    th { "Measured" }
                    td { (report.findings.pairs) " pairs of " (report.steps_per_pair) " steps of " (report.units_per_step) " " (report.per) "s" }
                }
                (machine_rows(&report.machine))
            }
        }
    }
}

// A number is not parted from its unit where a line ends.

fn percent(value: f64) -> String {
    format!("{value:.1}\u{a0}%")
}

fn precise(value: f64) -> String {
    format!("{value:.2}\u{a0}%")
}

fn signed(percent: f64) -> String {
    format!("{percent:+.2}\u{a0}%")
}

#[cfg(test)]
mod tests;
