//! The page of a day: one table with a row for each run, then what deaths and hosts need more room for.
//!
//! Every text is escaped where it enters the page. Links are relative, to files in the day's folder.

use maud::{Markup, html};
use throng_capture::story::printable_date;

use super::day::DayReport;
use super::folder::INDEX;
use super::row::{DayDeath, DayRun, DayVerdict, WorstFrame};
use crate::document::{Heading, document};
use crate::history::OwnHistory;
use crate::page::{machine_rows, number};

pub(super) fn page(report: &DayReport) -> String {
    let heading = Heading {
        tab: "Day of load runs",
        kind: "Throng day of load runs",
        title: &title(report),
        verdict: if report.passed { "passed" } else { "failed" },
        subtitle: html! {
            "from " (printable_date(report.began_unix_s)) " to " (printable_date(report.ended_unix_s)) " · version "
            (report.version) ", commit " (report.commit) " · "
            a href={ "../" (INDEX) } { "all days" }
            @if report.interrupted { " · stopped before its last run was over" }
        },
    };
    let sections = html! {
        section { h2 { "Runs" } (runs(&report.runs)) }
        @for run in &report.runs { (details(run)) }
        section {
            h2 { "Surroundings" }
            table {
                tr { th { "Command" } td { code { (report.command) } } }
                (machine_rows(&report.machine))
            }
        }
    };
    document(heading, sections)
}

/// `2026-11-26: 9 of 11 passed, 1 died`.
fn title(report: &DayReport) -> String {
    let counted = [DayVerdict::Failed, DayVerdict::Died, DayVerdict::NotRun]
        .map(|verdict| (report.count(verdict), verdict))
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, verdict)| format!(", {count} {}", verdict.name()));
    let passed = report.count(DayVerdict::Passed);
    format!("{}: {passed} of {} passed{}", report.day, report.runs.len(), counted.collect::<String>())
}

/// The style of a row: what is not asked for has none.
pub(super) fn style(verdict: DayVerdict) -> &'static str {
    match verdict {
        DayVerdict::Passed => "passed",
        DayVerdict::Failed | DayVerdict::Died => "failed",
        DayVerdict::NotRun => "not-run",
    }
}

fn runs(runs: &[DayRun]) -> Markup {
    html! {
        table.runs {
            tr {
                th { "Run" } th.n { "Players" } th { "Bars broken" } th.n { "Tick, µs" } th { "Against its own history" }
                th { "Worst frame" } th { "Death" } th { "Host" } th { "Verdict" }
            }
            @for run in runs {
                tr.(style(run.verdict)) {
                    td { (name(run)) }
                    td.n { (number(run.players as f64)) }
                    td {
                        @for bar in run.bars_broken() { div { code { (bar.key) } " " (number(bar.measured)) } }
                    }
                    td.n { @if let Some(history) = &run.history { (number(history.tick_us)) } }
                    td { @if let Some(history) = &run.history { (against_history(history)) } }
                    td { @if let Some(worst) = &run.worst_frame { (worst_frame(worst)) } }
                    td { @if let Some(death) = &run.death { (death_links(death)) } }
                    td.host {
                        @for finding in &run.host {
                            div {
                                @match &finding.capture {
                                    Some(capture) => a href=(capture) { (finding.cause) },
                                    None => (finding.what),
                                }
                            }
                        }
                    }
                    td { (run.verdict.name()) }
                }
            }
        }
    }
}

fn name(run: &DayRun) -> Markup {
    html! {
        @match &run.page {
            Some(page) => a href=(page) { (run.game) ", " (run.scenario) },
            None => { (run.game) ", " (run.scenario) },
        }
    }
}

fn against_history(history: &OwnHistory) -> Markup {
    html! {
        @if let (Some(usual_us), Some(percent)) = (history.usual_us, history.change_percent) {
            div { (format!("{percent:+.1} %")) " of the usual " (number(usual_us)) " µs" }
        }
        div { (numbered(history.runs, "run")) " of " (numbered(history.commits, "commit")) }
        @for change in &history.changes { div { (change.in_words()) } }
    }
}

/// `1 run`, `2 runs`.
fn numbered(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

fn worst_frame(worst: &WorstFrame) -> Markup {
    html! {
        div { (number(worst.ms)) " ms of " (number(worst.budget_ms)) ", second " (worst.second) }
        @match &worst.capture {
            Some(capture) => {
                div { a href=(capture.file) { @if capture.is_it { "its capture" } @else { "the worst that was captured" } } }
            },
            None => div { "no capture" },
        }
    }
}

fn death_links(death: &DayDeath) -> Markup {
    let links = [("crash report", &death.crash_report), ("capture", &death.capture), ("recording", &death.recording)];
    html! {
        div { (death.words) }
        @for (what, link) in links {
            div { @match link { Some(link) => a href=(link) { (what) }, None => { "no " (what) } } }
        }
    }
}

/// What has no room in the table; nothing of a run that is as it should be.
fn details(run: &DayRun) -> Markup {
    let capture = run.worst_frame.as_ref().and_then(|worst| worst.capture.as_ref());
    let is_told = run.why.is_some() || run.death.is_some() || !run.host.is_empty();
    let has_some = is_told || run.bars_broken().next().is_some() || !run.slowdowns().is_empty();
    html! {
        @if has_some {
            section {
                h2 { (name(run)) ": " (run.verdict.name()) }
                @if let Some(why) = &run.why { p { (why) } }
                @for bar in run.bars_broken() { p { code { (bar.to_string()) } } }
                @for slowdown in run.slowdowns() { p { (slowdown.in_words()) } }
                @if let Some(death) = &run.death {
                    table {
                        tr { th { "Died of" } td { (death.words) } }
                        @if let Some(signature) = &death.signature { tr { th { "Signature" } td { code { (signature) } } } }
                        tr { th { "During" } td { (death.during) } }
                        @if let Some(replay) = &death.replay {
                            tr { th { "Comes again with" } td { code { (replay) } ", run in the folder of this page" } }
                        }
                    }
                }
                @if let Some(capture) = capture {
                    p { "Worst frame, in " a href=(capture.file) { (capture.file) } ": " (capture.verdict) }
                }
                @if !run.host.is_empty() {
                    table {
                        tr { th { "What the host did" } th { "Cause" } }
                        @for finding in &run.host {
                            tr {
                                td { (finding.what) }
                                td { @match &finding.capture { Some(capture) => a href=(capture) { (finding.cause) }, None => (finding.cause) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
