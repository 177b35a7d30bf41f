//! Counts of both builds: what is counted and not timed, such as allocations, packets and instructions.
//!
//! The host hardly disturbs them. So a count differs where it does so by more than [`COUNT_DIFFERS_MIN`], the same way in all pairs, and
//! there is no interval. Counts change no verdict of the run: more allocations alone make nothing slower.

use serde::Serialize;

use super::instructions::{self, COUNTS};
use super::pair::PairFigures;
use super::plan::{Per, PreflightPlan, Side};
use super::step::Step;
use crate::page::number;

/// As a share.
pub(super) const COUNT_DIFFERS_MIN: f64 = 0.005;

/// What is counted and not timed, per frame or tick.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Count {
    pub name: &'static str,
    pub base: f64,
    pub change: f64,
    pub verdict: CountVerdict,
}

/// Whether a count differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountVerdict {
    /// By more than [`COUNT_DIFFERS_MIN`], the same way in all pairs.
    More,
    Fewer,
    None,
    /// Counts of one build are farther apart.
    Unknown,
}

impl CountVerdict {
    /// Of one count of each build.
    fn of(base: f64, change: f64) -> Self {
        let least = COUNT_DIFFERS_MIN * base.max(change);
        if change - base > least {
            Self::More
        } else if base - change > least {
            Self::Fewer
        } else {
            Self::None
        }
    }

    /// Of counts of both in each pair: it differs only where it does so in all, the same way.
    fn of_pairs(counts: &[(f64, f64)]) -> Self {
        let mut verdicts = counts.iter().map(|(base, change)| Self::of(*base, *change));
        let first = verdicts.next().unwrap_or(Self::None);
        if verdicts.all(|verdict| verdict == first) { first } else { Self::None }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::More => "more",
            Self::Fewer => "fewer",
            Self::None => "none seen",
            Self::Unknown => "cannot be said",
        }
    }
}

impl Count {
    pub fn differs(&self) -> bool {
        matches!(self.verdict, CountVerdict::More | CountVerdict::Fewer)
    }

    /// What is known of one that differs.
    pub fn in_words(&self, per: Per) -> String {
        let Self { name, base, change, verdict } = self;
        let more = if *base > 0.0 { format!(" ({:+.1} %)", 100.0 * (change / base - 1.0)) } else { String::new() };
        let (verdict, change, base) = (verdict.name(), number(*change), number(*base));
        format!("{name}: {verdict}, {change} per {per} instead of {base}{more}")
    }
}

/// A count by its name.
type Counted = (&'static str, fn(&Step) -> u64);

/// Of all steps of these pairs.
pub(super) fn of_pairs(plan: &PreflightPlan, pairs: &[PairFigures], units_per_step: u32) -> Vec<Count> {
    let mut counted: Vec<Counted> = vec![("allocations", |step| step.allocations)];
    // Nobody is there whom a replay could send anything.
    if plan.recording.is_none() {
        counted
            .extend::<[Counted; 2]>([("packets_out", |step| step.packets_out), ("bytes_out", |step| step.bytes_out)]);
    }
    if instructions::are_counted(pairs) {
        counted.push(("instructions", |step| step.instructions.unwrap_or(0)));
    }
    let of = |(name, of): Counted| {
        let sums = pairs.iter().map(|pair| {
            pair.steps
                .iter()
                .fold((0.0, 0.0), |sums, (base, change)| (sums.0 + of(base) as f64, sums.1 + of(change) as f64))
        });
        let sums: Vec<(f64, f64)> = sums.collect();
        let units = pairs.iter().map(|pair| pair.steps.len() as f64).sum::<f64>() * f64::from(units_per_step);
        let per_unit = |all: f64| all / units.max(1.0);
        let (base, change) = sums.iter().fold((0.0, 0.0), |all, sums| (all.0 + sums.0, all.1 + sums.1));
        Count { name, base: per_unit(base), change: per_unit(change), verdict: CountVerdict::of_pairs(&sums) }
    };
    counted.into_iter().map(of).collect()
}

/// Of so many instructions as valgrind counted of each build, and why there is no verdict, if there is none.
pub(super) fn of_valgrind(counted: &[[f64; COUNTS]; 2]) -> (Count, Option<String>) {
    let [base, change] = counted.map(|counts| counts.iter().sum::<f64>() / COUNTS as f64);
    let unclear = Side::BOTH.iter().zip(counted).find_map(|(side, counts)| {
        let apart = apart(counts);
        (apart > COUNT_DIFFERS_MIN).then(|| {
            format!(
                "two counts of {side} are {:.1} % apart, so nothing is said of a difference of the builds",
                100.0 * apart
            )
        })
    });
    let verdict = if unclear.is_some() { CountVerdict::Unknown } else { CountVerdict::of(base, change) };
    (Count { name: "instructions", base, change, verdict }, unclear)
}

/// By what share the largest is more than the least, of itself.
fn apart(counts: &[f64]) -> f64 {
    let least = counts.iter().copied().fold(f64::INFINITY, f64::min);
    let most = counts.iter().copied().fold(0.0, f64::max);
    if most > 0.0 { (most - least) / most } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(recording: Option<&str>) -> PreflightPlan {
        PreflightPlan { recording: recording.map(Into::into), ..PreflightPlan::example() }
    }

    #[test]
    fn counts_differ_where_they_do_in_all_pairs() {
        let pair = |allocations: u64, bytes: u64| {
            let step = |allocations, bytes_out| Step { allocations, bytes_out, packets_out: 5, ..Step::default() };
            PairFigures { steps: vec![(step(100, 1_000), step(allocations, bytes)); 4], ..PairFigures::default() }
        };
        let found = of_pairs(&plan(None), &[pair(110, 1_000), pair(120, 900)], 10);
        let told: Vec<_> = found.iter().map(|count| (count.name, count.verdict)).collect();
        let [more, none] = [CountVerdict::More, CountVerdict::None];
        assert_eq!(told, [("allocations", more), ("packets_out", none), ("bytes_out", none)]);
        assert_eq!((found[0].base, found[0].change), (10.0, 11.5));
        assert_eq!(found[0].in_words(Per::Frame), "allocations: more, 11.5 per frame instead of 10 (+15.0 %)");
        let fewer = Count { name: "bytes_out", base: 0.5, change: 0.0, verdict: CountVerdict::Fewer };
        assert_eq!(serde_json::to_value(&fewer).unwrap()["verdict"], "fewer");
        assert_eq!(fewer.in_words(Per::Tick), "bytes_out: fewer, 0 per tick instead of 0.500 (-100.0 %)");
    }

    #[test]
    fn instructions_are_among_the_counts_where_both_are_counted() {
        let pair = |change: Option<u64>| {
            let step = |instructions| Step { instructions, ..Step::default() };
            PairFigures { steps: vec![(step(Some(1_000)), step(change)); 4], ..PairFigures::default() }
        };
        let found = of_pairs(&plan(None), &[pair(Some(1_010)), pair(Some(1_020))], 10);
        let last = found.last().map(|count| (count.name, count.base, count.change, count.verdict));
        assert_eq!(last, Some(("instructions", 100.0, 101.5, CountVerdict::More)));
        assert_eq!(of_pairs(&plan(None), &[pair(Some(1_010)), pair(None)], 10).len(), 3);
        let of_recording = of_pairs(&plan(Some("r")), &[pair(Some(1_010)), pair(Some(1_020))], 10);
        let told: Vec<_> = of_recording.iter().map(|count| count.name).collect();
        assert_eq!(told, ["allocations", "instructions"], "a replay sends nothing");
    }

    /// Promise: a difference that counts of one build have among themselves is none of the builds.
    #[test]
    fn valgrind_gives_no_verdict_where_it_does_not_agree_with_itself() {
        let (count, unclear) = of_valgrind(&[[1_000.0, 1_002.0], [1_010.0, 1_012.0]]);
        let told = (count.name, count.base, count.change, count.verdict, unclear);
        assert_eq!(told, ("instructions", 1_001.0, 1_011.0, CountVerdict::More, None));
        let verdict = |counted: [[f64; 2]; 2]| of_valgrind(&counted).0.verdict;
        assert_eq!(verdict([[1_010.0; 2], [1_000.0; 2]]), CountVerdict::Fewer);
        assert_eq!(verdict([[1_000.0; 2], [1_004.0; 2]]), CountVerdict::None);
        let (count, unclear) = of_valgrind(&[[1_000.0; 2], [1_000.0, 1_030.0]]);
        assert_eq!((count.verdict, count.verdict.name()), (CountVerdict::Unknown, "cannot be said"));
        let unclear = unclear.unwrap();
        assert!(unclear.starts_with("two counts of change are 2.9 % apart"), "{unclear}");
    }
}
