//! The report of a host: each load beside each account, as a table for people and as JSON, and in words what is to be
//! thought of it.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use throng_history::Machine;
use throng_metrics::text_table::{Cell, Column, TextTable};
use throng_platform::accounts::{FIGURES, Rates};
use throng_platform::time::Nanos;

use super::loads::Loop;

/// What `throng host measure --json` prints.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HostReport {
    pub seconds_per_load: u32,
    /// That this process may run on.
    pub cores_allowed: usize,
    pub machine: Machine,
    pub loads: Vec<LoadFigures>,
    /// Accounts that this host does not show, and what that leaves unknown.
    pub missing: Vec<&'static str>,
    /// Where the accounts disagree, and what came between the loads and their cores.
    pub findings: Vec<String>,
}

/// One load by its own word, and by every account.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LoadFigures {
    pub load: &'static str,
    pub threads: u32,
    pub seconds: f64,
    /// By the clocks of its threads.
    pub loop_cpu_cores: f64,
    /// What it did.
    pub work: BTreeMap<&'static str, f64>,
    /// What of its process is known from inside, and what of everybody from outside: the names are those of metrics.
    pub accounts: BTreeMap<&'static str, f64>,
}

impl LoadFigures {
    pub(super) fn new(kind: Loop, threads: u32, rates: &Rates, cpu: Nanos, work: BTreeMap<&'static str, f64>) -> Self {
        let accounts: BTreeMap<_, _> =
            rates.figures().filter_map(|(figure, value)| Some((figure.name, value?))).collect();
        let seconds = rates.get("outside.seconds").unwrap_or_default();
        Self {
            load: kind.name(),
            threads,
            seconds,
            loop_cpu_cores: cpu.as_secs_f64() / seconds.max(1e-9),
            work,
            accounts,
        }
    }

    fn account(&self, name: &str) -> Option<f64> {
        self.accounts.get(name).copied()
    }

    /// `busy: 1.00 cores inside, 1.02 by the control group, 1.05 by the host`.
    pub fn sentence(&self) -> String {
        let by = |name, who| self.account(name).map_or(String::new(), |cores| format!(", {cores:.2} by the {who}"));
        format!(
            "{}: {:.2} cores inside{}{}",
            self.load,
            self.account("inside.cpu_cores").unwrap_or_default(),
            by("outside.group_cpu_cores", "control group"),
            by("outside.host_busy_cores", "host")
        )
    }
}

/// Cores by which two accounts may differ with nothing amiss: they count in steps, and others always do a little.
const DIFFERENCE_CORES: f64 = 0.1;

/// The share of what was wanted that a load must get with nothing amiss.
const SHARE_WANTED: f64 = 0.9;

pub(super) fn findings(loads: &[LoadFigures]) -> Vec<String> {
    let mut findings = Vec::new();
    let idle = loads.iter().find(|figures| figures.load == Loop::Idle.name());
    let of_others = |name| idle.and_then(|idle| idle.account(name)).unwrap_or_default();
    for figures in loads.iter().filter(|figures| figures.load != Loop::Idle.name()) {
        let (load, account) = (figures.load, |name| figures.account(name));
        let inside = account("inside.cpu_cores").unwrap_or_default();
        if let (Some(share), Some(quota)) =
            (account("outside.group_throttled_share"), account("outside.group_quota_cores"))
            && share > 0.0
        {
            findings.push(format!(
                "{load}: the control group's limit of {quota:.2} cores made it stand still in {:.0} % of periods; a server is \
                 held up in the same way, and sees late ticks and idle cores",
                share * 100.0
            ));
        }
        for (name, who) in [("outside.group_cpu_cores", "control group"), ("outside.host_busy_cores", "host")] {
            let Some(outside) = account(name) else { continue };
            // Of what others used before, as much again is theirs now.
            let more = outside - of_others(name) - inside;
            if more > DIFFERENCE_CORES {
                findings.push(format!(
                    "{load}: {inside:.2} cores inside and {outside:.2} by the {who}, of which others had {:.2} before: \
                     {more:.2} cores are counted outside that the process does not see",
                    of_others(name)
                ));
            } else if more < -DIFFERENCE_CORES {
                findings.push(format!(
                    "{load}: {inside:.2} cores inside and {outside:.2} by the {who}: its account is of samples, and misses \
                     short work, or of others who gave way"
                ));
            }
        }
        let wanted = f64::from(figures.threads);
        if load == Loop::Busy.name() && inside < SHARE_WANTED * wanted {
            findings.push(format!(
                "{load}: {wanted:.0} threads that never rest had {inside:.2} cores; they waited for one for {:.2} s each second, \
                 and the hypervisor took {:.2} cores",
                account("inside.run_queue_wait_cores").unwrap_or_default(),
                account("outside.host_steal_cores").unwrap_or_default()
            ));
        }
    }
    findings
}

impl fmt::Display for HostReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        let loads = self.loads.iter().map(|figures| Column::float(figures.load, figures.load, 2));
        let mut table =
            TextTable::new([Column::text("account", "account")].into_iter().chain(loads).collect::<Vec<_>>());
        let mut row = |name: &str, value: &dyn Fn(&LoadFigures) -> Option<f64>| {
            let values = self.loads.iter().map(|figures| Cell::Float(value(figures).unwrap_or(f64::NAN)));
            table.row(&[Cell::Text(name)].into_iter().chain(values).collect::<Vec<_>>());
        };
        row("loop_cpu_cores", &|figures| Some(figures.loop_cpu_cores));
        for figure in &FIGURES {
            row(figure.name, &|figures| figures.account(figure.name));
        }
        let works: std::collections::BTreeSet<_> = self.loads.iter().flat_map(|figures| figures.work.keys()).collect();
        for name in works {
            row(name, &|figures| figures.work.get(name).copied());
        }
        f.write_str(table.text())?;
        for missing in &self.missing {
            writeln!(f, "not known: {missing}")?;
        }
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(name: &'static str, threads: u32, accounts: &[(&'static str, f64)]) -> LoadFigures {
        LoadFigures { load: name, threads, accounts: accounts.iter().copied().collect(), ..LoadFigures::default() }
    }

    /// Findings about a busy loop, beside what was used while nothing ran.
    #[track_caller]
    fn check(idle: &[(&'static str, f64)], busy: &[(&'static str, f64)], expect: &[&str]) {
        let found = findings(&[load("idle", 1, idle), load("busy", 1, busy)]);
        assert_eq!(found.len(), expect.len(), "{found:#?}");
        for (found, expect) in found.iter().zip(expect) {
            assert!(found.contains(expect), "{expect:?} is not in {found}");
        }
    }

    #[test]
    fn accounts_that_agree_are_no_finding() {
        let busy = [("inside.cpu_cores", 0.98), ("outside.group_cpu_cores", 1.0), ("outside.host_busy_cores", 1.5)];
        check(&[("outside.host_busy_cores", 0.45)], &busy, &[]);
        check(&[], &[("inside.cpu_cores", 1.0)], &[]);
    }

    #[test]
    fn sixty_percent_inside_and_more_than_hundred_outside_is_one() {
        let busy = [
            ("inside.cpu_cores", 0.6),
            ("outside.host_busy_cores", 1.05),
            ("inside.run_queue_wait_cores", 0.3),
            ("outside.host_steal_cores", 0.1),
        ];
        check(
            &[],
            &busy,
            &["0.60 cores inside and 1.05 by the host", "had 0.60 cores; they waited for one for 0.30 s"],
        );
    }

    #[test]
    fn a_limit_that_holds_it_up_is_one() {
        let busy =
            [("inside.cpu_cores", 0.5), ("outside.group_quota_cores", 0.5), ("outside.group_throttled_share", 0.98)];
        check(&[], &busy, &["limit of 0.50 cores made it stand still in 98 % of periods", "had 0.50 cores"]);
    }

    #[test]
    fn an_account_that_misses_work_is_one() {
        check(&[], &[("inside.cpu_cores", 1.0), ("outside.host_busy_cores", 0.2)], &["its account is of samples"]);
    }

    #[test]
    fn the_table_has_each_load_and_says_what_is_missing() {
        let report = HostReport {
            loads: vec![load("idle", 1, &[]), load("busy", 2, &[("inside.cpu_cores", 1.25)])],
            missing: vec!["nobody tells"],
            ..HostReport::default()
        };
        let text = report.to_string();
        let row = text.lines().find(|line| line.starts_with("inside.cpu_cores")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["inside.cpu_cores", "-", "1.25"]);
        assert!(text.contains("not known: nobody tells"), "{text}");
    }
}
