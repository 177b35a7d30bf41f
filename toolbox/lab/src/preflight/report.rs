//! The report of a preflight: what `throng preflight --json` prints and `report.json` holds.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use throng_history::Machine;

use super::page;
use super::pair::{PairFigures, Step};
use super::plan::PreflightPlan;
use super::statistics::{self, Finding, Findings, Verdict};
use crate::report::{ReportError, ReportFiles};

/// Two builds, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PreflightReport {
    /// No subsystem, heading or the whole is slower.
    pub passed: bool,
    /// `slower` if anything is, otherwise `faster` if anything is, otherwise `none`.
    pub verdict: Verdict,
    pub base: Build,
    pub change: Build,
    /// What was played: game, players, NPCs.
    pub played: Value,
    pub findings: Findings,
    pub counts: Vec<Count>,
    /// Whether both sent as many packets and bytes in each step: if not, they play differently, and times are those of
    /// different games.
    pub did_the_same: bool,
    /// Why instructions were not counted.
    pub instructions_missing: String,
    pub seconds_per_pair: f64,
    pub steps_per_pair: usize,
    pub frames_per_step: u32,
    pub machine: Machine,
    pub command: String,
    /// Where the page is, once it is written.
    pub report: Option<String>,
}

/// One of the two.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Build {
    pub path: String,
    /// By its own word.
    pub commit: String,
}

/// What is counted and not timed, per frame.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Count {
    pub name: &'static str,
    pub base: f64,
    pub change: f64,
    /// `more`, `fewer` or `none`: it differs by more than a two hundredth, the same way in all pairs.
    pub verdict: &'static str,
}

/// As a share.
const COUNT_DIFFERS_MIN: f64 = 0.005;

impl PreflightReport {
    pub(super) fn new(plan: &PreflightPlan, pairs: &[PairFigures]) -> Self {
        let findings = statistics::find(pairs, plan.frames_per_step);
        let verdict = worst(findings.subsystems.iter().chain(&findings.categories));
        let commits = pairs.first().map(|pair| pair.commits.clone()).unwrap_or_default();
        let build = |path: &Path, commit: &String| Build { path: path.display().to_string(), commit: commit.clone() };
        let steps_per_pair = pairs.first().map_or(0, |pair| pair.steps.len());
        let step_s =
            pairs.iter().flat_map(|pair| &pair.steps).map(|(base, change)| (base.all_ns() + change.all_ns()) / 1e9);
        Self {
            passed: verdict != Verdict::Slower,
            verdict,
            base: build(&plan.base, &commits[0]),
            change: build(&plan.change, &commits[1]),
            played: pairs.first().map(|pair| pair.played.clone()).unwrap_or_default(),
            findings,
            counts: counts(pairs, plan.frames_per_step),
            did_the_same: pairs
                .iter()
                .flat_map(|pair| &pair.steps)
                .all(|(base, change)| (base.packets_out, base.bytes_out) == (change.packets_out, change.bytes_out)),
            instructions_missing: "processes are compared by time, allocations and bytes alone".to_owned(),
            seconds_per_pair: step_s.sum::<f64>() / pairs.len().max(1) as f64,
            steps_per_pair,
            frames_per_step: plan.frames_per_step,
            machine: Machine::here(),
            command: std::env::args().collect::<Vec<_>>().join(" "),
            report: None,
        }
    }

    /// Subsystems and headings of which something was seen.
    pub fn seen(&self) -> impl Iterator<Item = &Finding> {
        let all = self.findings.subsystems.iter().chain(&self.findings.categories);
        all.filter(|finding| matches!(finding.verdict, Verdict::Slower | Verdict::Faster))
    }

    /// Writes `report.json` and `report.html` into `folder`, which is made if it is missing.
    pub fn write(&mut self, folder: &Path) -> Result<(), ReportError> {
        let files = ReportFiles::within(folder);
        self.report = Some(files.html.display().to_string());
        files.write(folder, &serde_json::to_value(&*self)?, &page::page(self))
    }
}

fn worst<'a>(findings: impl Iterator<Item = &'a Finding>) -> Verdict {
    let mut verdict = Verdict::None;
    for finding in findings {
        match finding.verdict {
            Verdict::Slower => return Verdict::Slower,
            Verdict::Faster => verdict = Verdict::Faster,
            Verdict::None | Verdict::Small => {}
        }
    }
    verdict
}

/// A count by its name.
type Counted = (&'static str, fn(&Step) -> u64);

fn counts(pairs: &[PairFigures], frames_per_step: u32) -> Vec<Count> {
    let counted: [Counted; 3] = [
        ("allocations", |step| step.allocations),
        ("packets_out", |step| step.packets_out),
        ("bytes_out", |step| step.bytes_out),
    ];
    let of = |(name, of): Counted| {
        let sums = pairs.iter().map(|pair| {
            pair.steps
                .iter()
                .fold((0.0, 0.0), |sums, (base, change)| (sums.0 + of(base) as f64, sums.1 + of(change) as f64))
        });
        let sums: Vec<(f64, f64)> = sums.collect();
        let differs = |more: bool| {
            let beyond = |(base, change): &(f64, f64)| {
                let by = if more { change - base } else { base - change };
                by > COUNT_DIFFERS_MIN * base.max(*change).max(1.0)
            };
            !sums.is_empty() && sums.iter().all(beyond)
        };
        let verdict = if differs(true) {
            "more"
        } else if differs(false) {
            "fewer"
        } else {
            "none"
        };
        let frames = pairs.iter().map(|pair| pair.steps.len() as f64).sum::<f64>() * f64::from(frames_per_step);
        let per_frame = |all: f64| all / frames.max(1.0);
        let (base, change) = sums.iter().fold((0.0, 0.0), |all, sums| (all.0 + sums.0, all.1 + sums.1));
        Count { name, base: per_frame(base), change: per_frame(change), verdict }
    };
    counted.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_differ_where_they_do_in_all_pairs() {
        let pair = |allocations: u64, bytes: u64| {
            let step = |allocations, bytes_out| Step { allocations, bytes_out, packets_out: 5, ..Step::default() };
            PairFigures { steps: vec![(step(100, 1_000), step(allocations, bytes)); 4], ..PairFigures::default() }
        };
        let found = counts(&[pair(110, 1_000), pair(120, 900)], 10);
        let told: Vec<_> = found.iter().map(|count| (count.name, count.verdict)).collect();
        assert_eq!(told, [("allocations", "more"), ("packets_out", "none"), ("bytes_out", "none")]);
        assert_eq!((found[0].base, found[0].change), (10.0, 11.5));
    }
}
