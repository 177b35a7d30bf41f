//! Series: runs that may be held against each other, in the order of commits.
//!
//! Runs belong together where kind, name, scenario and conditions are the same and the machines are alike ([`Machine::is_like`]). A commit's
//! runs stand together, whenever they were made. Commits stand as a repository has them ([`CommitOrder`]); if it does not know all of
//! a series, they stand where the first run of each was.

use std::collections::BTreeMap;

use crate::commit_order::CommitOrder;
use crate::machine::Machine;
use crate::record::{Record, RunKind};

/// Runs of a series that are looked at, the latest: what was slow a year ago is nobody's question.
pub const RUNS_MAX: usize = 300;

/// Runs like each other.
#[derive(Debug)]
pub struct Series<'a> {
    pub kind: RunKind,
    pub name: &'a str,
    pub scenario: &'a str,
    pub conditions: &'a BTreeMap<String, String>,
    /// Of the first run; the others are on machines like it.
    pub machine: &'a Machine,
    /// At least one, the earliest first.
    pub commits: Vec<Commit<'a>>,
    /// Why commits stand as they were first measured; `None`: they stand as the repository has them.
    pub not_by_git: Option<String>,
}

/// A commit and its runs.
#[derive(Debug)]
pub struct Commit<'a> {
    pub commit: &'a str,
    pub runs: Vec<&'a Record>,
}

impl<'a> Series<'a> {
    /// All runs, by commit.
    pub fn runs(&self) -> impl Iterator<Item = &'a Record> + '_ {
        self.commits.iter().flat_map(|commit| commit.runs.iter().copied())
    }

    /// What runs of each commit took of something, their median (µs); none of a commit that does not say.
    pub fn by_commit(&self, figure: impl Fn(&Record) -> Option<f64>) -> Vec<Option<f64>> {
        let of = |commit: &Commit<'_>| {
            let mut values: Vec<f64> = commit.runs.iter().filter_map(|run| figure(run)).collect();
            (!values.is_empty()).then(|| crate::changes::median(&mut values))
        };
        self.commits.iter().map(of).collect()
    }

    /// In words: `load precinct, usual, 1000 players, workers 2`. Those of unlike series on one machine are unlike.
    pub fn title(&self) -> String {
        let scenario = if self.scenario.is_empty() { String::new() } else { format!(", {}", self.scenario) };
        let conditions = self.conditions.iter().map(|(name, value)| format!(", {name} {value}"));
        format!("{} {}{scenario}{}", self.kind.name(), self.name, conditions.collect::<String>())
    }
}

/// Sorts records, which come by time, into series, of which commits stand as they were first measured.
pub fn group(records: &[Record]) -> Vec<Series<'_>> {
    group_in(records, &CommitOrder::unknown("nobody asked a repository"))
}

/// The same with commits in their own order.
pub fn group_in<'a>(records: &'a [Record], order: &CommitOrder) -> Vec<Series<'a>> {
    let mut by_load: BTreeMap<_, Vec<Vec<&Record>>> = BTreeMap::new();
    for record in records {
        let machines = by_load.entry(record.load()).or_default();
        match machines.iter_mut().find(|runs| runs[0].machine.is_like(&record.machine)) {
            Some(runs) => runs.push(record),
            None => machines.push(vec![record]),
        }
    }
    let series = by_load.into_iter().flat_map(|((kind, name, scenario, conditions), machines)| {
        machines.into_iter().map(move |runs| {
            let latest = &runs[runs.len().saturating_sub(RUNS_MAX)..];
            let (commits, not_by_git) = in_order(commits(latest), order);
            Series { kind, name, scenario, conditions, machine: &runs[0].machine, commits, not_by_git }
        })
    });
    series.collect()
}

fn in_order<'a>(commits: Vec<Commit<'a>>, order: &CommitOrder) -> (Vec<Commit<'a>>, Option<String>) {
    match order.places_of(commits.iter().map(|one| one.commit)) {
        Ok(places) => {
            let mut placed: Vec<(usize, Commit<'a>)> = places.into_iter().zip(commits).collect();
            placed.sort_by_key(|(place, _)| *place);
            (placed.into_iter().map(|(_, commit)| commit).collect(), None)
        }
        Err(why) => (commits, Some(why)),
    }
}

fn commits<'a>(runs: &[&'a Record]) -> Vec<Commit<'a>> {
    let mut commits: Vec<Commit<'a>> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for run in runs {
        let place = *places.entry(&run.commit).or_insert(commits.len());
        if place == commits.len() {
            commits.push(Commit { commit: &run.commit, runs: Vec::new() });
        }
        commits[place].runs.push(run);
    }
    commits
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(name: &str, cores: usize, commit: &str, at: u64) -> Record {
        let machine = Machine { cpu: "EPYC".into(), cores, ..Machine::default() };
        Record::of_bench(name, &json!({"shot_us": at}), commit, machine, at)
    }

    /// Promise: what shaped the load otherwise is another series, and so is what does not say.
    #[test]
    fn runs_of_other_conditions_do_not_stand_together() {
        let with = |conditions: &[(&str, &str)], at| {
            let conditions = conditions.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let record = Record { conditions: conditions.collect(), ..run("precinct", 2, "a", at) };
            Record { kind: RunKind::Load, scenario: "usual, 10 players".to_owned(), ..record }
        };
        let records = [
            with(&[("workers", "2")], 1),
            with(&[], 2),
            with(&[("saves", "none"), ("workers", "2")], 3),
            with(&[("workers", "2")], 4),
        ];
        let series = group(&records);
        let told: Vec<_> = series.iter().map(|series| (series.title(), series.runs().count())).collect();
        let told: Vec<_> = told.iter().map(|(title, runs)| (title.as_str(), *runs)).collect();
        assert_eq!(
            told,
            [
                ("load precinct, usual, 10 players", 1),
                ("load precinct, usual, 10 players, saves none, workers 2", 1),
                ("load precinct, usual, 10 players, workers 2", 2),
            ]
        );
    }

    #[test]
    fn only_like_runs_on_like_machines_stand_together() {
        let records = [
            run("rewind", 2, "a", 1),
            run("heap", 2, "a", 2),
            run("rewind", 2, "b", 3),
            run("rewind", 4, "b", 4),
            run("rewind", 2, "a", 9),
        ];
        let series = group(&records);
        let told: Vec<_> = series
            .iter()
            .map(|series| {
                (
                    series.name,
                    series.machine.cores,
                    series.commits.iter().map(|one| (one.commit, one.runs.len())).collect::<Vec<_>>(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [("heap", 2, vec![("a", 1)]), ("rewind", 2, vec![("a", 2), ("b", 1)]), ("rewind", 4, vec![("b", 1)])]
        );
        let medians = series[1].by_commit(|run| run.times_us.get("shot_us").copied());
        assert_eq!(medians, [Some(5.0), Some(3.0)]);
    }
}
