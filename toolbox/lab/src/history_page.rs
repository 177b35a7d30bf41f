//! A history as one page: what became slower first, then what is above its budget, then a chart for each subsystem, by commit, with
//! its budget.

use std::collections::BTreeMap;
use std::path::Path;

use maud::{Markup, html};
use throng_history::changes::{Change, RUNS_MIN};
use throng_history::store::Contents;
use throng_history::{Machine, Record};

use crate::charts::{Chart, ChartError, Line, LineChart, ORANGE, RED, Stroke, TEAL, short, top_above};
use crate::document::{Heading, document};
use crate::history::{AboveBudget, ChangeVerdict, Findings, SeriesFindings, ToldChange};
use crate::page::{chart, grouped, machine_rows, number};

/// Of each series: those that changed or are above their budget, and those that take most.
const SUBSYSTEMS_MAX: usize = 12;
const CATEGORIES_MAX: usize = 10;
const SIZE: (u32, u32) = (548, 230);
const COMMIT_LETTERS: usize = 7;
/// A budget that is farther above all that was measured is told and not drawn: beside its line everything else would lie on the
/// axis, and no change would be seen.
const BUDGET_DRAWN_UP_TO: f64 = 4.0;

pub(crate) fn page(findings: &Findings<'_>, contents: &Contents, folder: &Path) -> Result<String, ChartError> {
    let (told, above) = (findings.told(), findings.above_budget());
    let slower = told.iter().filter(|change| change.verdict == ChangeVerdict::Slower).count();
    let is_unknown = slower == 0 && !findings.series.iter().any(|one| one.judged.tells());
    let unjudged = findings.unjudged_count();
    let title = match slower {
        0 if is_unknown => "Too few runs to say anything".to_owned(),
        0 if unjudged > 0 => format!("No commit made anything slower; what changed with the host: {unjudged}"),
        0 => "Nothing became slower".to_owned(),
        1 => "One subsystem became slower".to_owned(),
        count => format!("{count} times something became slower"),
    };
    let mut sections = Vec::new();
    for one in &findings.series {
        sections.push(series(one)?);
    }
    let heading = Heading {
        tab: "History",
        kind: "Throng history",
        title: &title,
        verdict: match slower {
            0 if is_unknown || unjudged > 0 => "unknown",
            0 => "passed",
            _ => "failed",
        },
        subtitle: html! { (grouped(contents.records.len() as f64)) " runs in " code { (folder.display().to_string()) } },
    };
    let sections = html! {
        @if !told.is_empty() { section { h2 { "Changes" } (changes_table(&told)) } }
        @if !above.is_empty() { section { h2 { "Above their budget" } (above_budget(&above)) } }
        @for why in findings.not_by_git() {
            p { "Commits of some runs stand in the order in which they were first measured: " (why) "." }
        }
        @for section in &sections { (section) }
        @if contents.faults_count > 0 {
            section {
                h2 { "Not read" }
                p { (contents.faults_count) " lines are no records:" }
                ul { @for fault in &contents.faults { li { (fault.to_string()) } } }
            }
        }
    };
    Ok(document(heading, sections))
}

fn changes_table(told: &[ToldChange]) -> Markup {
    let us = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), number);
    html! {
        p { "Both times as on the host afterwards: what all subsystems share is taken off the one before." }
        table {
            tr {
                th { "Runs" } th { "Subsystem" } th { "Verdict" } th.n { "Change" } th.n { "Before, µs" } th.n { "After, µs" }
                th.n { "Budget, µs" }
                th { "Last good" } th { "First bad" } th { "Likeliest" } th.n { "Suspects" }
            }
            @for change in told {
                tr.(if change.verdict == ChangeVerdict::Slower { "failed" } else { "passed" }) {
                    td { (change.series) }
                    td { code { (change.subsystem) } }
                    td { (change.verdict.name()) }
                    td.n { (format!("{:+.1} %", change.change_percent)) }
                    td.n { (us(change.before_us)) }
                    td.n { (us(change.after_us)) }
                    td.n {
                        @match change.budget_us {
                            Some(budget_us) => { (number(budget_us)) @if change.is_above_budget { ", above" } }
                            None => { "-" }
                        }
                    }
                    td { code { (change.good_commit) } }
                    td { code { (change.bad_commit) } }
                    td { code { (change.likely_commit) } }
                    td.n { (change.suspects_count) }
                }
            }
        }
    }
}

/// At the latest commit of each series.
fn above_budget(above: &[AboveBudget]) -> Markup {
    html! {
        p { "On average of a run, at the latest commit; what a subsystem may take in a frame is spread over the frame's ticks." }
        table {
            tr {
                th { "Runs" } th { "Subsystem" } th.n { "Took, µs" } th.n { "Budget, µs" } th.n { "Times" } th { "Commit" }
                th { "Above since" }
            }
            @for one in above {
                tr.failed {
                    td { (one.series) }
                    td { code { (one.subsystem) } }
                    td.n { (number(one.took_us)) }
                    td.n { (number(one.budget_us)) }
                    td.n { (format!("{:.2}", one.took_us / one.budget_us)) }
                    td { code { (one.commit) } }
                    td { code { (one.since_commit) } }
                }
            }
        }
    }
}

fn series(one: &SeriesFindings<'_>) -> Result<Markup, ChartError> {
    let series = &one.series;
    let runs = series.runs().count();
    let machine: &Machine = series.machine;
    let charts = draw(one)?;
    Ok(html! {
        section {
            h2 { (series.title()) }
            p { (runs) " runs of " (series.commits.len()) " commits; each point is the median of its commit's runs. Where a change may have come in is shaded." }
            @if !one.judged.tells() {
                p { "Too few to be judged: " (one.judged.runs_at_border) " of the " (RUNS_MIN) " that it takes on both sides of a commit, on one host." }
            }
            @for change in &one.judged.host_changes { p { "Here " (change.in_words(series)) "." } }
            div.charts { @for one in &charts { (chart(one)) } }
            table {
                (machine_rows(machine))
                @if let Some(run) = series.runs().last().filter(|run| !run.command.is_empty()) {
                    tr { th { "Latest command" } td { code { (run.command) } } }
                }
            }
        }
    })
}

fn draw(one: &SeriesFindings<'_>) -> Result<Vec<Chart>, ChartError> {
    let series = &one.series;
    let whole = series.by_commit(|run| Some(run.times_us.values().sum()));
    let budget = series.by_commit(|run| run.tick_budget_us);
    let mut charts = Vec::new();
    // A bench's times are of different things, and have no sum.
    if series.kind == throng_history::record::RunKind::Load {
        charts.push(draw_one(one, "All of a tick", &whole, &budget, None)?);
        for name in costliest(series.runs(), |run| &run.categories_us).into_iter().take(CATEGORIES_MAX) {
            let points = series.by_commit(|run| run.categories_us.get(&name).copied());
            charts.push(draw_one(one, &name, &points, &[], None)?);
        }
    }
    let mut names: Vec<String> = costliest(series.runs(), |run| &run.times_us);
    let above = one.above_budget();
    let is_told = |name: &str| {
        let has_changed = one.judged.changes.iter().any(|change| change.subsystem == name);
        has_changed || above.iter().any(|above| above.subsystem == name)
    };
    names.sort_by_key(|name| !is_told(name));
    for name in names.into_iter().take(SUBSYSTEMS_MAX) {
        let points = series.by_commit(|run| run.times_us.get(&name).copied());
        let change = one.judged.changes.iter().rfind(|change| change.subsystem == name);
        charts.push(draw_one(one, &format!("Scopes of {name}"), &points, &one.budgets(&name), change)?);
    }
    Ok(charts)
}

/// Names by the most that they took in any run.
fn costliest<'a>(
    runs: impl Iterator<Item = &'a Record>,
    times: impl Fn(&Record) -> &BTreeMap<String, f64>,
) -> Vec<String> {
    let mut most: BTreeMap<String, f64> = BTreeMap::new();
    for run in runs {
        for (name, us) in times(run) {
            let known = most.entry(name.clone()).or_default();
            *known = us.max(*known);
        }
    }
    let mut names: Vec<(String, f64)> = most.into_iter().collect();
    names.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    names.into_iter().map(|(name, _)| name).collect()
}

fn draw_one(
    one: &SeriesFindings<'_>,
    title: &str,
    figures: &[Option<f64>],
    budget: &[Option<f64>],
    change: Option<&Change>,
) -> Result<Chart, ChartError> {
    let commits = &one.series.commits;
    let points = |figures: &[Option<f64>]| -> Vec<(f64, f64)> {
        (0_u32..).zip(figures).filter_map(|(place, us)| Some((f64::from(place), (*us)?))).collect()
    };
    let (points, mut budget) = (points(figures), points(budget));
    let highest = |points: &[(f64, f64)]| points.iter().map(|(_, us)| *us).fold(0.0, f64::max);
    let mut note = "µs, by commit".to_owned();
    if highest(&budget) > BUDGET_DRAWN_UP_TO * highest(&points) {
        let (_, latest_us) = budget[budget.len() - 1];
        note += &format!("; the budget, {} µs, is above the chart", short(&latest_us));
        budget.clear();
    }
    let top = top_above(points.iter().chain(&budget).map(|(_, us)| *us));
    let x_label = |place: &f64| {
        let is_commit = (place - place.round()).abs() < 1e-6 && *place >= 0.0;
        let commit = commits.get(place.round() as usize).filter(|_| is_commit);
        commit.map_or_else(String::new, |commit| commit.commit.chars().take(COMMIT_LETTERS).collect())
    };
    let chart = LineChart {
        title,
        note: &note,
        size: SIZE,
        x: 0.0..commits.len().saturating_sub(1).max(1) as f64,
        x_label: &x_label,
        top,
        shade: change.map(|change| (change.good as f64, change.bad as f64)),
    };
    let mut lines = vec![Line {
        name: "time".to_owned(),
        colour: if change.is_some_and(Change::is_slower) { ORANGE } else { TEAL },
        stroke: Stroke::Dotted,
        points,
    }];
    if !budget.is_empty() {
        lines.push(Line { name: "budget".to_owned(), colour: RED, stroke: Stroke::Dashed, points: budget });
    }
    chart.draw(&lines)
}
