//! A preflight as one page: what is slower first, then every subsystem with its interval.

use maud::{Markup, html};

use super::report::PreflightReport;
use super::statistics::{Finding, Verdict};
use crate::document::{Heading, document};
use crate::page::{machine_rows, number};

pub(super) fn page(report: &PreflightReport) -> String {
    let slower: Vec<&str> = report
        .seen()
        .filter(|finding| finding.verdict == Verdict::Slower)
        .map(|finding| finding.name.as_str())
        .collect();
    let title = match (slower.is_empty(), report.verdict) {
        (false, _) => format!("slower: {}", slower.join(", ")),
        (true, Verdict::Faster) => "faster".to_owned(),
        (true, _) => "no difference seen".to_owned(),
    };
    let heading = Heading {
        tab: "Preflight",
        kind: "Throng preflight",
        title: &title,
        verdict: if report.passed { "passed" } else { "failed" },
        subtitle: html! {
            code { (report.base.commit) } " against " code { (report.change.commit) } " · " (report.findings.pairs) " pairs of "
            (report.steps_per_pair) " steps of " (report.frames_per_step) " frames"
        },
    };
    let sections = html! {
        @if !report.did_the_same {
            section { h2 { "Not the same work" } p { "The two sent other packets in the same steps: they play differently, and times are those of different games." } }
        }
        section { h2 { "Subsystems" } (findings(&report.findings.subsystems)) }
        section { h2 { "Categories" } (findings(&report.findings.categories)) }
        section {
            h2 { "Counts, per frame" }
            table {
                tr { th { "What" } th.n { "Base" } th.n { "Change" } th { "Verdict" } }
                @for count in &report.counts {
                    tr { td { code { (count.name) } } td.n { (number(count.base)) } td.n { (number(count.change)) } td { (count.verdict) } }
                }
            }
        }
        section {
            h2 { "Surroundings" }
            table {
                tr { th { "Command" } td { code { (report.command) } } }
                tr { th { "Base" } td { code { (report.base.path) } " " (report.base.commit) } }
                tr { th { "Change" } td { code { (report.change.path) } " " (report.change.commit) } }
                tr { th { "Played" } td { (report.played.to_string()) } }
                tr { th { "Undisturbed" } td { (number(100.0 * report.findings.undisturbed_share)) " % of steps" } }
                tr { th { "Instructions" } td { "not counted: " (report.instructions_missing) } }
                (machine_rows(&report.machine))
            }
        }
    };
    document(heading, sections)
}

fn findings(findings: &[Finding]) -> Markup {
    html! {
        table {
            tr {
                th { "Name" } th.n { "Share" } th.n { "Base, µs" } th.n { "Change, µs" } th.n { "Shift" } th.n { "Interval" } th { "Verdict" }
            }
            @for finding in findings {
                tr.(if finding.verdict == Verdict::Slower { "failed" } else { "passed" }) {
                    td { code { (finding.name) } }
                    td.n { (format!("{:.1} %", 100.0 * finding.share)) }
                    td.n { (number(finding.base_us)) }
                    td.n { (number(finding.change_us)) }
                    td.n { (format!("{:+.2} %", finding.shift_percent)) }
                    td.n { (format!("{:+.2} to {:+.2} %", finding.low_percent, finding.high_percent)) }
                    td { (finding.verdict.name()) }
                }
            }
        }
    }
}
