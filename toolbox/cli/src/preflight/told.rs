//! What a comparison found, in the terminal's words and tables.

use std::error::Error;

use throng::text_table::{Cell, Column, TextTable};
use throng_lab::preflight::{
    Per, PreflightReport,
    instructions::CountedBy,
    statistics::{Finding, Verdict, WHOLE, trimming_in_words},
};

use crate::output::{remark, say};

/// As text on stdout and notes on stderr; of a report that is printed as JSON the notes alone.
pub fn tell_report(report: &PreflightReport, json: bool) -> Result<(), Box<dyn Error>> {
    tell_notes(report);
    if json {
        return Ok(());
    }
    say(format_args!("{}; times are per {}", report.workload, report.per))?;
    say(table(&report.findings.subsystems).text())?;
    say(table(&report.findings.categories).text())?;
    say(counts_table(report).text())?;
    say(trimming_in_words())?;
    tell_beside_the_verdict(report)?;
    tell_verdict(report)?;
    if let Some(page) = &report.report {
        remark(format_args!("report: {page}"));
    }
    Ok(())
}

/// What must be known to read the figures.
fn tell_notes(report: &PreflightReport) {
    if report.interrupted {
        remark(format_args!(
            "note stopped after {} pairs of processes, before its time was over",
            report.findings.pairs
        ));
    }
    if !report.did_the_same {
        remark(format_args!(
            "note the two {}: they play differently, and times are those of different games",
            report.other_by()
        ));
    }
    for fault in &report.recording_faults {
        remark(format_args!("note the recording is not whole: {fault}"));
    }
    for why in &report.rules_missing {
        remark(format_args!("note the recorded rules are not that build's, and the default ones are in force: {why}"));
    }
    if report.findings.took_disturbed {
        remark(format_args!(
            "note only {:.0} % of steps had the core to themselves, and others were taken, too: the host is busy, and intervals are wide",
            100.0 * report.findings.undisturbed_share
        ));
    }
    if let Some(missing) = &report.instructions.missing {
        let by = match report.instructions.by {
            CountedBy::None => "not counted".to_owned(),
            by => format!("by {}", by.name()),
        };
        remark(format_args!("note instructions: {by}; {missing}"));
    }
    if let Some(unclear) = &report.instructions.unclear {
        remark(format_args!("note instructions: {unclear}"));
    }
}

fn counts_table(report: &PreflightReport) -> TextTable {
    let mut counts = TextTable::new([
        Column::text(
            match report.per {
                Per::Tick => "per tick",
                Per::Frame => "per frame",
            },
            "name",
        ),
        Column::float("base", "base", 2),
        Column::float("change", "change", 2),
        Column::text("verdict", "verdict"),
    ]);
    for count in &report.counts {
        counts.row(&[
            Cell::Text(count.name),
            Cell::Float(count.base),
            Cell::Float(count.change),
            Cell::Text(count.verdict.name()),
        ]);
    }
    counts
}

/// What is outside of intervals, and counts: neither changes the verdict.
fn tell_beside_the_verdict(report: &PreflightReport) -> Result<(), Box<dyn Error>> {
    let untrimmed: Vec<String> =
        report.untrimmed_outside().map(|(finding, percent)| format!("{} {percent:+.1} %", finding.name)).collect();
    if !untrimmed.is_empty() {
        say(format_args!("untrimmed, outside of the interval and not judged: {}", untrimmed.join(", ")))?;
    }
    for count in report.counts_that_differ() {
        say(format_args!("{}; it changes no exit status", count.in_words(report.per)))?;
    }
    Ok(())
}

fn tell_verdict(report: &PreflightReport) -> Result<(), Box<dyn Error>> {
    let pairs = format!("{} pairs of processes: {}", report.findings.pairs, report.workload);
    let seen: Vec<String> = report.seen().map(|finding| told(finding, report.per)).collect();
    let unknown: Vec<String> = report.unknown().map(name).collect();
    if !unknown.is_empty() {
        say(format_args!("cannot be said: {}; a longer run or a quieter host says more", unknown.join(", ")))?;
    }
    match report.verdict {
        Verdict::Unknown if seen.is_empty() => {
            say(format_args!("too little was measured to say anything, in {pairs}"))?
        }
        Verdict::Unknown => {
            say(format_args!(
                "{}\ntoo little was measured to say whether anything is slower, in {pairs}",
                seen.join("\n")
            ))?;
        }
        _ if seen.is_empty() && unknown.is_empty() => {
            say(format_args!("{} in {pairs}", report.nothing_seen()))?;
        }
        _ if seen.is_empty() => say(format_args!("{} of the others, in {pairs}", report.nothing_seen()))?,
        _ => say(format_args!("{}\nin {pairs}", seen.join("\n")))?,
    }
    Ok(())
}

fn name(one: &Finding) -> String {
    let of = if one.category.is_empty() && one.name != WHOLE { "category " } else { "" };
    format!("{of}{}", one.name)
}

/// What is known of one that differs.
fn told(one: &Finding, per: Per) -> String {
    let (name, verdict) = (name(one), one.verdict.name());
    match (one.verdict, one.shift_percent, one.low_percent, one.high_percent) {
        (Verdict::New, ..) => format!("{name} is new: {:.1} µs per {per}", one.change_us),
        (Verdict::Gone, ..) => format!("{name} is gone: {:.1} µs per {per}", one.base_us),
        (_, Some(shift), Some(low), Some(high)) => {
            format!("{name} is {verdict} by {shift:+.1} % ({low:+.1} to {high:+.1})")
        }
        _ => format!("{name} is {verdict}"),
    }
}

fn table(findings: &[Finding]) -> TextTable {
    let mut table = TextTable::new([
        Column::text("subsystem", "name"),
        Column::float("share %", "share_percent", 1),
        Column::float("base µs", "base_us", 2),
        Column::float("change µs", "change_us", 2),
        Column::float("shift %", "shift_percent", 2),
        Column::float("low %", "low_percent", 2),
        Column::float("high %", "high_percent", 2),
        Column::float("untrimmed %", "untrimmed_percent", 2),
        Column::text("verdict", "verdict"),
    ]);
    let percent = |percent: Option<f64>| percent.map_or(Cell::Empty, Cell::Float);
    for finding in findings.iter().filter(|finding| finding.verdict != Verdict::Small) {
        table.row(&[
            Cell::Text(&finding.name),
            Cell::Float(100.0 * finding.share),
            Cell::Float(finding.base_us),
            Cell::Float(finding.change_us),
            percent(finding.shift_percent),
            percent(finding.low_percent),
            percent(finding.high_percent),
            percent(finding.untrimmed_percent_outside()),
            Cell::Text(finding.verdict.name()),
        ]);
    }
    table
}
