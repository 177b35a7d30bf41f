//! `throng history`: which commits made something slower. The work is the lab's.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use throng::text_table::{Cell, Column, TextTable};
use throng_history::changes::{Judged, RUNS_EACH_SIDE_MIN, RUNS_MIN};
use throng_lab::history::{self, ChangeVerdict, CommitOrder, Contents, Findings};

use crate::{
    outcome::{CommandResult, NOTHING_SAID, Verdict},
    output::{remark, say},
};

/// Where runs are kept, unless somebody says otherwise.
pub const FOLDER: &str = "reports/history";

#[derive(Args)]
pub struct HistoryArguments {
    /// The folder, or one file of it; load runs and benches append to it.
    #[arg(value_name = "FOLDER", default_value = FOLDER)]
    folder: PathBuf,
    /// Write a page with a chart for each subsystem, by commit.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// End with status 1 if something became slower, and with 2 if there are too few runs to say so of anything.
    #[arg(long)]
    fail_on_slower: bool,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: HistoryArguments) -> CommandResult {
    let HistoryArguments { folder, html, fail_on_slower, json } = arguments;
    let contents = history::read(&folder)?;
    tell_faults(&contents);
    let findings = Findings::in_order(&contents.records, &CommitOrder::around(&folder, &contents.records));
    for why in findings.not_by_git() {
        remark(format_args!("note commits stand in the order in which they were first measured: {why}"));
    }
    let (told, above) = (findings.told(), findings.above_budget());
    if let Some(path) = &html {
        history::write_page(path, &findings.page(&contents, &folder)?)?;
        remark(format_args!("page: {}", path.display()));
    }
    let slower = told.iter().filter(|change| change.verdict == ChangeVerdict::Slower).count();
    if json {
        let series: Vec<_> = findings
            .series
            .iter()
            .map(|one| {
                json!({
                    "series": one.series.title(), "machine": one.series.machine, "runs": one.series.runs().count(),
                    "is_judged": one.judged.tells(), "not_by_git": one.series.not_by_git,
                    "commits": one.series.commits.iter().map(|commit| commit.commit).collect::<Vec<_>>(),
                })
            })
            .collect();
        let faults: Vec<String> = contents.faults.iter().map(ToString::to_string).collect();
        say(json!({
            "runs": contents.records.len(), "series": series, "changes": told, "slower_count": slower,
            "host_changes": host_changes(&findings),
            "above_budget": above, "faults": faults, "faults_count": contents.faults_count,
        }))?;
    } else {
        say(series_table(&findings).text().trim_end())?;
        if told.is_empty() {
            say(format_args!("\n{}", nothing_found(&findings)))?;
        } else {
            say(format_args!("\n{}", changes_table(&told).text().trim_end()))?;
        }
        for one in &findings.series {
            for change in &one.judged.host_changes {
                say(format_args!("\n{}: {}", one.series.title(), change.in_words(&one.series)))?;
            }
        }
        if !above.is_empty() {
            say(format_args!("\n{}", above_table(&above).text().trim_end()))?;
        }
    }
    Ok(match slower {
        _ if !fail_on_slower => Verdict::Fine,
        0 if !findings.series.iter().any(|one| one.judged.tells()) => Verdict::Status(NOTHING_SAID),
        0 => Verdict::Fine,
        _ => Verdict::Failed,
    })
}

fn nothing_found(findings: &Findings<'_>) -> String {
    let (all, unjudged) = (findings.series.len(), findings.unjudged_count());
    let told = findings.series.iter().filter(|one| one.judged.tells()).count();
    let needs = format_args!("{RUNS_EACH_SIDE_MIN} runs of earlier commits and {RUNS_EACH_SIDE_MIN} of later ones");
    match told {
        0 => format!("nothing can be said yet: that needs {needs}"),
        _ if unjudged > 0 => {
            format!(
                "no commit made anything slower or faster; of {unjudged} that changed with the host nothing is said"
            )
        }
        _ if told == all => "nothing became slower or faster".to_owned(),
        _ => format!("nothing became slower or faster where there is something to be judged; that needs {needs}"),
    }
}

fn host_changes(findings: &Findings<'_>) -> Vec<serde_json::Value> {
    let of_series = findings.series.iter().flat_map(|one| {
        let commit = |place: usize| one.series.commits[place].commit;
        one.judged.host_changes.iter().map(move |change| {
            json!({
                "series": one.series.title(), "good_commit": commit(change.good), "bad_commit": commit(change.bad),
                "likely_commit": commit(change.likely), "before": change.before, "after": change.after,
                "unjudged": change.unjudged,
            })
        })
    });
    of_series.collect()
}

fn tell_faults(contents: &Contents) {
    contents.faults.iter().for_each(remark);
    let untold = contents.faults_count - contents.faults.len();
    if untold > 0 {
        remark(format_args!("and {untold} more lines that are no records"));
    }
}

fn series_table(findings: &Findings<'_>) -> TextTable {
    let mut table = TextTable::new([
        Column::text("runs of", "series"),
        Column::integer("runs", "runs"),
        Column::integer("commits", "commits"),
        Column::text("judged", "judged"),
        Column::text("machine", "machine"),
    ]);
    for one in &findings.series {
        let series = &one.series;
        table.row(&[
            Cell::Text(&series.title()),
            Cell::Integer(series.runs().count() as i64),
            Cell::Integer(series.commits.len() as i64),
            Cell::Text(&is_judged(&one.judged)),
            Cell::Text(&series.machine.to_string()),
        ]);
    }
    table
}

/// `yes`, or how many runs there are of those that it needs.
fn is_judged(judged: &Judged) -> String {
    if judged.tells() { "yes".to_owned() } else { format!("{} of {RUNS_MIN} runs", judged.runs_at_border) }
}

fn changes_table(told: &[history::ToldChange]) -> TextTable {
    let mut table = TextTable::new([
        Column::text("runs of", "series"),
        Column::text("subsystem", "subsystem"),
        Column::text("verdict", "verdict"),
        Column::float("change %", "change_percent", 1),
        Column::float("before µs", "before_us", 2),
        Column::float("after µs", "after_us", 2),
        Column::float("budget µs", "budget_us", 2),
        Column::text("above budget", "is_above_budget"),
        Column::text("last good", "good_commit"),
        Column::text("first bad", "bad_commit"),
        Column::text("likeliest", "likely_commit"),
        Column::integer("suspects", "suspects_count"),
    ]);
    // Shown as `-` where there is none.
    let float = |value: Option<f64>| Cell::Float(value.unwrap_or(f64::NAN));
    for change in told {
        table.row(&[
            Cell::Text(&change.series),
            Cell::Text(&change.subsystem),
            Cell::Text(change.verdict.name()),
            Cell::Float(change.change_percent),
            float(change.before_us),
            float(change.after_us),
            float(change.budget_us),
            Cell::Text(if change.is_above_budget { "yes" } else { "" }),
            Cell::Text(&change.good_commit),
            Cell::Text(&change.bad_commit),
            Cell::Text(&change.likely_commit),
            Cell::Integer(change.suspects_count as i64),
        ]);
    }
    table
}

/// What took more than it may, at the latest commit of its series.
fn above_table(above: &[history::AboveBudget]) -> TextTable {
    let mut table = TextTable::new([
        Column::text("above its budget", "series"),
        Column::text("subsystem", "subsystem"),
        Column::float("took µs", "took_us", 2),
        Column::float("budget µs", "budget_us", 2),
        Column::text("commit", "commit"),
        Column::text("since", "since_commit"),
    ]);
    for one in above {
        table.row(&[
            Cell::Text(&one.series),
            Cell::Text(&one.subsystem),
            Cell::Float(one.took_us),
            Cell::Float(one.budget_us),
            Cell::Text(&one.commit),
            Cell::Text(&one.since_commit),
        ]);
    }
    table
}
