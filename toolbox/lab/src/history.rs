//! History: load runs are kept, and runs of many commits are asked which of them made something slower.
//!
//! The store and the test are `throng-history`'s; here a load run becomes a record, and a store becomes findings, which a
//! command prints and a page shows.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use throng_history::changes::{self, Change, Judged};
use throng_history::record::{FORMAT, KeptBar, RunKind};
use throng_history::series::{self, Series};
use throng_history::store::{self, StoreError};
use throng_history::{Machine, Record};

use crate::charts::ChartError;
use crate::earlier_runs::{RunFigures, unix_s};
use crate::load::LoadRun;
use crate::load_report::{LoadReport, condition};
use crate::{history_page, report};

pub use throng_history::commit_order::CommitOrder;
pub use throng_history::store::{Contents, read};

/// A run that was kept, and the file that it is in.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    pub path: PathBuf,
    pub record: Record,
}

/// Keeps a run in a history. None is kept of a run that was not whole, whose server ran without its flight recorder, or that had faults
/// injected: it says nothing of what a tick takes.
pub fn keep(run: &LoadRun, folder: &Path) -> Result<Option<Kept>, StoreError> {
    // As the report has it, if one was written: a second calibration would say something else on a busy host.
    let told = run.report.more.get("machine").map(|told| serde_json::from_value(told.clone())).transpose()?;
    let machine = told.unwrap_or_else(Machine::here);
    let record = record(&run.report, machine, unix_s(std::time::SystemTime::now()))?;
    record.map(|record| Ok(Kept { path: store::append(folder, &record)?, record })).transpose()
}

fn record(report: &LoadReport, machine: Machine, written_unix_s: u64) -> Result<Option<Record>, serde_json::Error> {
    let mut run = RunFigures::of(report, &machine)?;
    if !run.tells() || !run.is_whole() || run.conditions.contains_key(condition::FAULTS) {
        return Ok(None);
    }
    let mut conditions = std::mem::take(&mut run.conditions);
    // Reports of earlier builds say how many there were.
    let players = conditions.remove(condition::PLAYERS).unwrap_or_else(|| report.players_connected.to_string());
    let npcs = conditions.remove(condition::NPCS).unwrap_or_else(|| report.npcs.to_string());
    let bars = report.bars.iter().map(|bar| KeptBar {
        key: bar.key.clone(),
        measured: bar.measured,
        limit: bar.limit,
        passed: bar.passed,
    });
    let figures = [
        ("frame_ms.p99", report.frame_ms.p99),
        ("tick_lateness_ms.max", report.tick_lateness_ms.max),
        ("ticks_missed", report.ticks_missed as f64),
        ("server_cpu_cores", report.server_cpu_cores),
        ("server_rss_mb", report.server_rss_mb),
        ("bytes_out_per_player_per_s", report.bytes_out_per_player_per_s),
        ("allocations_per_frame", report.allocations_per_frame),
    ];
    Ok(Some(Record {
        format: FORMAT,
        written_unix_s,
        kind: RunKind::Load,
        name: report.game.clone(),
        scenario: format!("{}, {players} players, {npcs} NPCs", report.scenario),
        conditions,
        commit: report.commit.clone(),
        command: String::new(),
        machine,
        seconds: report.seconds,
        tick_budget_us: run.tick_budget_us(),
        budgets_us: run.budgets_us_per_tick,
        times_us: run.scopes_us_per_tick,
        categories_us: run.categories_us_per_tick,
        passed: Some(report.passed),
        bars: bars.collect(),
        figures: figures.map(|(key, value)| (key.to_owned(), value)).into(),
    }))
}

/// A run beside those like it that were kept before.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct OwnHistory {
    /// Runs like this one on machines like this, itself among them, and their commits.
    pub runs: usize,
    pub commits: usize,
    /// What all of a tick took in this run, and in the runs before it, their median (µs); none before the second.
    pub tick_us: f64,
    pub usual_us: Option<f64>,
    /// Of the usual: 5 is 5 % more. One run against others says nothing of noise; `changes` does.
    pub change_percent: Option<f64>,
    /// Where its series changes, at whichever commits.
    pub changes: Vec<ToldChange>,
    /// Of these what became slower, is so still, and is not usual yet: no more than [`USUAL_RUNS`] runs are of its first bad commit
    /// and those after it.
    pub slowdowns: Vec<ToldChange>,
}

/// Runs that are usual: the latest before a run.
pub const USUAL_RUNS: usize = 20;

/// What the history in `folder` says of a run that was kept there. None if it is not there any more.
pub fn of_kept(record: &Record, folder: &Path) -> Result<Option<OwnHistory>, StoreError> {
    let records = read(folder)?.records;
    Ok(own_history(record, &records, &CommitOrder::around(folder, &records)))
}

fn own_history(kept: &Record, records: &[Record], order: &CommitOrder) -> Option<OwnHistory> {
    let is_like = |other: &&Record| other.load() == kept.load() && other.machine.is_like(&kept.machine);
    let mut like: Vec<Record> = records.iter().filter(is_like).cloned().collect();
    // Not by its figures: a number that has been text may be another in its last digit.
    let is_kept = |other: &Record| (other.written_unix_s, &other.commit) == (kept.written_unix_s, &kept.commit);
    // Another host may have kept more in the meantime.
    like.truncate(like.iter().rposition(is_kept)? + 1);
    let findings = Findings::in_order(&like, order);
    let all_us = |run: &Record| run.times_us.values().sum::<f64>();
    let (itself, before) = like.split_last()?;
    let mut usual: Vec<f64> = before.iter().rev().take(USUAL_RUNS).map(all_us).collect();
    let usual_us = (!usual.is_empty()).then(|| changes::median(&mut usual));
    let tick_us = all_us(itself);
    Some(OwnHistory {
        runs: like.len(),
        commits: findings.series.iter().map(|one| one.series.commits.len()).sum(),
        tick_us,
        usual_us,
        change_percent: usual_us.filter(|usual| *usual > 0.0).map(|usual| 100.0 * (tick_us / usual - 1.0)),
        changes: findings.told(),
        slowdowns: findings.series.iter().flat_map(SeriesFindings::new_slowdowns).collect(),
    })
}

/// What a store tells.
pub struct Findings<'a> {
    pub series: Vec<SeriesFindings<'a>>,
}

/// A series, and where it changes.
pub struct SeriesFindings<'a> {
    pub series: Series<'a>,
    pub judged: Judged,
}

/// Which way a time went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeVerdict {
    Slower,
    Faster,
}

impl ChangeVerdict {
    fn of(change: &Change) -> Self {
        if change.is_slower() { Self::Slower } else { Self::Faster }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
        }
    }
}

/// A change in words and commits, as JSON holds it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToldChange {
    /// Which runs: kind, name, scenario.
    pub series: String,
    /// `everything` is all of them alike.
    pub subsystem: String,
    pub verdict: ChangeVerdict,
    /// Of the time before, in percent.
    pub change_percent: f64,
    /// None of `everything`, of which a share is known and no time.
    pub before_us: Option<f64>,
    pub after_us: Option<f64>,
    /// The last commit that surely was as before, the first that surely is as after, and the likeliest one.
    pub good_commit: String,
    pub bad_commit: String,
    pub likely_commit: String,
    /// Commits that it may have come in with.
    pub suspects_count: usize,
    pub deviations: f64,
    /// What the rules let it take at the first bad commit (µs), and whether it took more after the change. None where nothing is said.
    pub budget_us: Option<f64>,
    pub is_above_budget: bool,
}

impl ToldChange {
    /// For a person: `shots is slower by 20.0 % (10.00 µs before, 12.00 after), likeliest since commit5 (1 suspect after commit4)`.
    pub fn in_words(&self) -> String {
        let Self { subsystem, verdict, suspects_count, good_commit, likely_commit, .. } = self;
        let us = match (self.before_us, self.after_us) {
            (Some(before), Some(after)) => format!(" ({before:.2} µs before, {after:.2} after)"),
            _ => String::new(),
        };
        let suspects = if *suspects_count == 1 { "suspect" } else { "suspects" };
        format!(
            "{subsystem} is {} by {:.1} %{us}, likeliest since {likely_commit} ({suspects_count} {suspects} after {good_commit})",
            verdict.name(),
            self.change_percent.abs()
        )
    }
}

/// A subsystem that took more than the rules let it, at the latest commit of its series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AboveBudget {
    /// Which runs: kind, name, scenario.
    pub series: String,
    pub subsystem: String,
    /// The median of the commit's runs, and of what they were let take (µs per tick).
    pub took_us: f64,
    pub budget_us: f64,
    pub commit: String,
    /// The first of the commits without a break up to this one at which it was above.
    pub since_commit: String,
}

/// The budget is as wide as the arithmetic by which it became one of a tick.
const ROUNDING: f64 = 1e-6;

fn is_above(took_us: Option<f64>, budget_us: Option<f64>) -> bool {
    took_us.zip(budget_us).is_some_and(|(took_us, budget_us)| took_us > budget_us * (1.0 + ROUNDING))
}

impl<'a> Findings<'a> {
    /// Looks at all series of these records, which come by time, with commits as they were first measured. Some ms for each series
    /// of a hundred runs.
    pub fn of(records: &'a [Record]) -> Self {
        Self::in_order(records, &CommitOrder::unknown("no repository was asked"))
    }

    /// The same with commits in this order.
    pub fn in_order(records: &'a [Record], order: &CommitOrder) -> Self {
        let series = series::group_in(records, order).into_iter().map(|series| {
            let judged = changes::judge(&series, |record| &record.times_us);
            SeriesFindings { series, judged }
        });
        Self { series: series.collect() }
    }

    /// Subsystems that changed with a host, of which nobody can say by whom.
    pub fn unjudged_count(&self) -> usize {
        let host_changes = self.series.iter().flat_map(|one| &one.judged.host_changes);
        host_changes.map(|change| change.unjudged.len()).sum()
    }

    /// Why commits of some series stand as they were first measured, once for each reason.
    pub fn not_by_git(&self) -> BTreeSet<&str> {
        self.series.iter().filter_map(|one| one.series.not_by_git.as_deref()).collect()
    }

    /// All changes, in the order of series and commits.
    pub fn told(&self) -> Vec<ToldChange> {
        self.series.iter().flat_map(SeriesFindings::told).collect()
    }

    /// All that are above their budget, in the order of series, those that are farthest above first.
    pub fn above_budget(&self) -> Vec<AboveBudget> {
        self.series.iter().flat_map(SeriesFindings::above_budget).collect()
    }

    /// One page, with what could not be read in `contents`.
    pub fn page(&self, contents: &Contents, folder: &Path) -> Result<String, ChartError> {
        history_page::page(self, contents, folder)
    }
}

impl SeriesFindings<'_> {
    /// What the rules let a subsystem take, by commit (µs).
    pub(crate) fn budgets(&self, subsystem: &str) -> Vec<Option<f64>> {
        self.series.by_commit(|run| run.budgets_us.get(subsystem).copied())
    }

    pub fn above_budget(&self) -> Vec<AboveBudget> {
        let Some(last) = self.series.commits.len().checked_sub(1) else { return Vec::new() };
        let names: BTreeSet<&str> =
            self.series.commits[last].runs.iter().flat_map(|run| run.budgets_us.keys()).map(String::as_str).collect();
        let of = |subsystem: &str| {
            let took = self.series.by_commit(|run| run.times_us.get(subsystem).copied());
            let budgets = self.budgets(subsystem);
            let above = took.iter().zip(&budgets).map(|(took_us, budget_us)| is_above(*took_us, *budget_us));
            let commits_above = above.rev().take_while(|is_above| *is_above).count();
            let (took_us, budget_us) = took[last].zip(budgets[last]).filter(|_| commits_above > 0)?;
            let commit = |place: usize| self.series.commits[place].commit.to_owned();
            Some(AboveBudget {
                series: self.series.title(),
                subsystem: subsystem.to_owned(),
                took_us,
                budget_us,
                commit: commit(last),
                since_commit: commit(last + 1 - commits_above),
            })
        };
        let mut above: Vec<AboveBudget> = names.into_iter().filter_map(of).collect();
        let times = |one: &AboveBudget| one.took_us / one.budget_us;
        above.sort_by(|one, other| times(other).total_cmp(&times(one)));
        above
    }

    /// What became slower, not faster since, and so late that it is not usual yet.
    fn new_slowdowns(&self) -> Vec<ToldChange> {
        let is_latest = |change: &Change| {
            let of_it = self.judged.changes.iter().filter(|other| other.subsystem == change.subsystem);
            of_it.map(|other| other.likely).max() == Some(change.likely)
        };
        let runs_since =
            |change: &Change| self.series.commits[change.bad..].iter().map(|commit| commit.runs.len()).sum::<usize>();
        let is_new = |change: &Change| change.is_slower() && is_latest(change) && runs_since(change) <= USUAL_RUNS;
        self.judged.changes.iter().zip(self.told()).filter(|(change, _)| is_new(change)).map(|(_, told)| told).collect()
    }

    pub fn told(&self) -> Vec<ToldChange> {
        let commit = |place: usize| self.series.commits[place].commit.to_owned();
        let told = |change: &Change| {
            let budget_us = self.budgets(&change.subsystem)[change.bad];
            ToldChange {
                series: self.series.title(),
                subsystem: change.subsystem.clone(),
                verdict: ChangeVerdict::of(change),
                change_percent: 100.0 * change.shift,
                before_us: change.before_us,
                after_us: change.after_us,
                good_commit: commit(change.good),
                bad_commit: commit(change.bad),
                likely_commit: commit(change.likely),
                suspects_count: change.bad - change.good,
                deviations: change.deviations,
                budget_us,
                is_above_budget: is_above(change.after_us, budget_us),
            }
        };
        self.judged.changes.iter().map(told).collect()
    }
}

/// Writes a page to where it was wanted.
pub fn write_page(path: &Path, page: &str) -> Result<(), report::ReportError> {
    std::fs::write(path, page).map_err(|cause| report::ReportError::Write { path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn report(commit: &str, shots_us: f64) -> LoadReport {
        serde_json::from_value(json!({
            "passed": true, "commit": commit, "game": "duel", "scenario": "usual", "players_connected": 10, "ticks": 100, "seconds": 10.0,
            "workers": 2, "categories_us_per_tick": {"gameplay": shots_us}, "scopes_us_per_tick": {"shots": shots_us, "net": 5.0},
            "budgets_us_per_tick": {"shots": 11.0, "net": 5.0},
            "bars": [{"key": "ticks", "measured": 100.0, "requirement": "at_least", "limit": 1.0, "passed": true}],
        }))
        .unwrap()
    }

    fn records() -> Vec<Record> {
        let run = |number: u64| {
            let (commit, slower) = (number / 3, number >= 15);
            let us = if slower { 12.0 } else { 10.0 } + 0.01 * (number % 4) as f64;
            record(&report(&format!("commit{commit}"), us), Machine::default(), 1_000 + number).unwrap().unwrap()
        };
        (0..30).map(run).collect()
    }

    #[test]
    fn a_run_is_kept_with_what_it_took_and_a_part_of_one_is_not() {
        let kept = &records()[0];
        assert_eq!((kept.scenario.as_str(), kept.tick_budget_us), ("usual, 10 players, 0 NPCs", Some(200_000.0)));
        assert_eq!((kept.times_us["shots"], kept.bars[0].key.as_str(), kept.passed), (10.0, "ticks", Some(true)));
        assert_eq!(kept.budgets_us, [("net".to_owned(), 5.0), ("shots".to_owned(), 11.0)].into());
        let interrupted = LoadReport { interrupted: true, ..report("abc", 10.0) };
        assert_eq!(record(&interrupted, Machine::default(), 7).unwrap(), None);
        let with_faults = LoadReport { conditions: conditions(&[("faults", "slow-world")]), ..report("abc", 10.0) };
        assert_eq!(record(&with_faults, Machine::default(), 7).unwrap(), None);
    }

    fn conditions(of: &[(&str, &str)]) -> BTreeMap<String, String> {
        of.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    /// Promise: two commits of which each was played otherwise accuse nobody.
    #[test]
    fn runs_under_other_conditions_are_another_series() {
        let run = |number: u64| {
            let is_late = number >= 15;
            let options: &[(&str, &str)] = if is_late { &[("options", "--scan-everything")] } else { &[] };
            let all = [&[("players", "10"), ("npcs", "4"), ("workers", "2")], options].concat();
            let report =
                LoadReport { conditions: conditions(&all), ..report(if is_late { "new" } else { "old" }, 10.0) };
            let mut record = record(&report, Machine::default(), 1_000 + number).unwrap().unwrap();
            record.times_us.values_mut().for_each(|us| *us *= if is_late { 2.0 } else { 1.0 });
            record
        };
        let records: Vec<Record> = (0..30).map(run).collect();
        let findings = Findings::of(&records);
        assert!(findings.told().is_empty());
        let titles: Vec<String> = findings.series.iter().map(|one| one.series.title()).collect();
        let usual = "load duel, usual, 10 players, 4 NPCs";
        assert_eq!(titles, [format!("{usual}, options --scan-everything, workers 2"), format!("{usual}, workers 2")]);
        let own = own_history(&records[29], &records, &CommitOrder::unknown("a test's")).unwrap();
        assert_eq!((own.runs, own.commits), (15, 1));
    }

    #[test]
    fn a_run_is_held_against_those_like_it_that_were_before() {
        let mut records = records();
        let kept = records[29].clone();
        let order = CommitOrder::unknown("a test's");
        let own = own_history(&kept, &records, &order).unwrap();
        assert_eq!((own.runs, own.commits, own.changes.len()), (30, 10, 1), "{own:?}");
        assert_eq!(own.changes[0].subsystem, "shots");
        assert_eq!(own.slowdowns, own.changes, "of fifteen runs since");
        let usual_us = own.usual_us.expect("there are runs before");
        assert!((16.9..17.1).contains(&usual_us) && own.change_percent.is_some_and(|percent| percent.abs() < 1.0));
        // Others are not asked.
        records.iter_mut().for_each(|record| record.scenario = "no-buy, 10 players, 0 NPCs".to_owned());
        records.push(kept.clone());
        let own = own_history(&kept, &records, &order).unwrap();
        assert_eq!((own.runs, own.usual_us, own.changes.len()), (1, None, 0), "{own:?}");
    }

    /// Promise: what other hosts keep in the same folder at the same time changes nothing that is said of a run.
    #[test]
    fn a_run_is_itself_whatever_is_kept_after_it() {
        let mut records = records();
        records.iter_mut().for_each(|record| record.machine.cpu = "EPYC".to_owned());
        let (kept, order) = (records[29].clone(), CommitOrder::unknown("a test's"));
        let own = own_history(&kept, &records, &order).unwrap();
        let mut later = Record { written_unix_s: kept.written_unix_s + 1, ..kept.clone() };
        later.times_us.values_mut().for_each(|us| *us *= 2.0);
        let elsewhere = Machine { cpu: "Xeon".to_owned(), ..kept.machine.clone() };
        records.extend([Record { machine: elsewhere, ..later.clone() }, later]);
        assert_eq!(own_history(&kept, &records, &order), Some(own));
        assert_eq!(
            own_history(&Record { commit: "none".to_owned(), ..kept }, &records, &order),
            None,
            "it is not there"
        );
    }

    /// Promise: a slowdown counts until it is usual, or until the subsystem becomes faster.
    #[test]
    fn a_slowdown_counts_while_it_is_new() {
        // So many runs of 10 µs, and then of these.
        let slowdowns = |before: u64, after: &[(u64, f64)]| {
            let levels = [&[(before, 10.0)], after].concat();
            let us = levels.iter().flat_map(|(runs, us)| std::iter::repeat_n(*us, *runs as usize));
            let run = |(number, us): (usize, f64)| {
                let us = us + 0.01 * (number % 4) as f64;
                let commit = format!("commit{}", number / 3);
                record(&report(&commit, us), Machine::default(), 1_000 + number as u64).unwrap().unwrap()
            };
            let records: Vec<Record> = us.enumerate().map(run).collect();
            let own = own_history(records.last().unwrap(), &records, &CommitOrder::unknown("a test's")).unwrap();
            own.slowdowns.len()
        };
        assert_eq!(slowdowns(15, &[(9, 12.0)]), 1);
        assert_eq!(slowdowns(15, &[(18, 12.0)]), 1);
        assert_eq!(slowdowns(15, &[(21, 12.0)]), 0, "that is what it takes by now");
        assert_eq!(slowdowns(15, &[(9, 8.0)]), 0, "faster");
        assert_eq!(slowdowns(15, &[(15, 12.0), (15, 10.0)]), 0, "it was mended");
    }

    #[test]
    fn a_slower_subsystem_is_named_with_its_commits_in_words_and_on_the_page() {
        let records = records();
        let findings = Findings::of(&records);
        let told = findings.told();
        let [change] = &told[..] else { panic!("{told:?}") };
        assert_eq!(
            (change.subsystem.as_str(), change.verdict, change.suspects_count),
            ("shots", ChangeVerdict::Slower, 1)
        );
        assert_eq!(serde_json::to_value(change).unwrap()["verdict"], "slower");
        assert!(change.in_words().starts_with("shots is slower by ") && change.in_words().contains(" µs before, "));
        let of_all = ToldChange { before_us: None, after_us: None, ..change.clone() };
        assert!(!of_all.in_words().contains("µs") && serde_json::to_value(&of_all).unwrap()["before_us"].is_null());
        assert_eq!((change.good_commit.as_str(), change.bad_commit.as_str()), ("commit4", "commit5"));
        assert!((change.change_percent - 20.0).abs() < 1.0, "{change:?}");
        assert_eq!((change.budget_us, change.is_above_budget), (Some(11.0), true));
        let contents = Contents::default();
        let page = findings.page(&contents, Path::new("reports/history")).unwrap();
        for part in ["shots", "slower", "commit4", "commit5", "<svg", "budget", "Above their budget", "11, above"] {
            assert!(page.contains(part), "{part}");
        }
        // Of both subsystems; that of a whole tick is 200 ms, and 17 µs were taken.
        assert_eq!(page.matches("</i>budget</span>").count(), 2);
        assert!(page.contains("; the budget, 200k µs, is above the chart"));
    }

    #[test]
    fn what_is_above_its_budget_is_told_with_the_commit_since_which_it_is() {
        let mut records = records();
        // A commit that was above and is not any more, and one whose build knew of no budgets.
        records[3..6].iter_mut().for_each(|run| _ = run.times_us.insert("shots".to_owned(), 19.0));
        records[0..3].iter_mut().for_each(|run| run.budgets_us.clear());
        let above = Findings::of(&records).above_budget();
        let [shots] = &above[..] else { panic!("what is on its budget is not above it: {above:?}") };
        assert_eq!((shots.subsystem.as_str(), shots.budget_us, shots.commit.as_str()), ("shots", 11.0, "commit9"));
        assert_eq!(shots.since_commit, "commit5");
        assert!((12.0..12.1).contains(&shots.took_us), "{shots:?}");
        // It may take more by now.
        records[27..].iter_mut().for_each(|run| _ = run.budgets_us.insert("shots".to_owned(), 13.0));
        assert!(Findings::of(&records).above_budget().is_empty());
    }

    /// Promise: a bench is shown by its own name and size, with how it was called.
    #[test]
    fn a_bench_is_shown_with_its_command() {
        let bench = |number| Record {
            scenario: "W1, 200 clients".to_owned(),
            command: format!("cargo xtask bench peers -- --rounds {number}"),
            ..Record::of_bench("peers", &json!({"floor": {"cpu_ms": 0.5}}), "abc", Machine::default(), number)
        };
        let records = [bench(1), bench(2)];
        let page = Findings::of(&records).page(&Contents::default(), Path::new("reports/history")).unwrap();
        for part in ["bench peers, W1, 200 clients", "Scopes of floor.cpu_ms", "cargo xtask bench peers -- --rounds 2"]
        {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("--rounds 1"), "the latest");
    }
}
