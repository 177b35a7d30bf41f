//! The statistics of a preflight: from pairs of steps to a verdict for each subsystem.
//!
//! A pair of processes is one observation of each subsystem: the sum of differences of its steps over the sum of the base's steps,
//! without the [`CUT_SHARE`] of steps with the largest and the smallest differences. The mean of many pairs has a Student interval at a
//! level that holds for all subsystems at once (Bonferroni): a run in which nothing differs raises something once in
//! [`FALSE_ALARMS_ONE_IN`] runs at most, if pairs are as good as normal. They nearly are, being sums over many steps; and that
//! a verdict needs the whole interval beyond [`SHIFT_MIN`] leaves room for what is not.
//!
//! With few pairs one subsystem in twenty looks quiet by chance. So the deviation of each is at least half of the middle
//! subsystem's.

use std::collections::BTreeMap;

use serde::Serialize;
use throng_history::student::student_two_sided;

use super::pair::{PairFigures, Step};

/// Of runs in which nothing differs.
pub const FALSE_ALARMS_ONE_IN: f64 = 10_000.0;
/// The interval must lie beyond this share of the time before.
pub const SHIFT_MIN: f64 = 0.003;
/// Of the steps of a pair, at each end.
pub const CUT_SHARE: f64 = 0.15;
/// Subsystems that take less of all are told and not judged: their time is the clock's.
pub const SHARE_MIN: f64 = 0.005;
/// A step counts as disturbed when its threads waited for a core by more than this share of it longer than is usual.
const WAITED_SHARE_MAX: f64 = 0.02;
/// With fewer undisturbed steps than this share, disturbed ones are taken as well.
const UNDISTURBED_SHARE_MIN: f64 = 0.34;

/// All of a frame.
pub const WHOLE: &str = "all";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Slower,
    Faster,
    /// Nothing was seen: a difference may be as large as the interval says.
    None,
    /// It takes too little to be judged.
    Small,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::None => "none",
            Self::Small => "small",
        }
    }
}

/// What is found of a subsystem, of a heading, or of everything.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    pub name: String,
    /// Empty of a heading.
    pub category: String,
    pub verdict: Verdict,
    /// Of all scopes' time, in the base.
    pub share: f64,
    /// Per frame (µs), mean of all steps that count.
    pub base_us: f64,
    pub change_us: f64,
    /// Of the base's time, with the interval: 2.0 is 2 % slower.
    pub shift_percent: f64,
    pub low_percent: f64,
    pub high_percent: f64,
}

/// What is found in so many pairs: everything first, then by time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    pub subsystems: Vec<Finding>,
    pub categories: Vec<Finding>,
    pub pairs: usize,
    /// Of all steps, those in which no thread waited for a core; and whether others had to be taken, too.
    pub undisturbed_share: f64,
    pub took_disturbed: bool,
}

/// Sums of a pair for one name.
#[derive(Debug, Clone, Copy, Default)]
struct Observed {
    base_ns: f64,
    change_ns: f64,
    /// Difference of logarithms.
    shift: f64,
}

pub(super) fn find(pairs: &[PairFigures], frames_per_step: u32) -> Findings {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for (base, change) in pairs.iter().flat_map(|pair| &pair.steps) {
        for (name, (category, _)) in base.times_ns.iter().chain(&change.times_ns) {
            names.entry(name).or_insert(category);
        }
    }
    let (mut undisturbed, mut steps, mut took_disturbed) = (0, 0, false);
    let kept: Vec<Vec<&(Step, Step)>> = pairs
        .iter()
        .map(|pair| {
            let usual_ns = usual_wait_ns(pair);
            let is_quiet = |step: &Step| is_quiet(step, usual_ns);
            let quiet: Vec<_> = pair.steps.iter().filter(|(base, change)| is_quiet(base) && is_quiet(change)).collect();
            undisturbed += quiet.len();
            steps += pair.steps.len();
            if (quiet.len() as f64) < UNDISTURBED_SHARE_MIN * pair.steps.len() as f64 {
                took_disturbed = true;
                return pair.steps.iter().collect();
            }
            quiet
        })
        .collect();
    let observe =
        |of: &dyn Fn(&Step) -> f64| -> Vec<Observed> { kept.iter().map(|steps| observed(steps, of)).collect() };
    let whole = observe(&Step::all_ns);
    let of_subsystems: Vec<(String, String, Vec<Observed>)> = names
        .iter()
        .map(|(name, category)| ((*name).to_owned(), (*category).to_owned(), observe(&|step: &Step| step.ns(name))))
        .collect();
    let mut headings: Vec<&str> = names.values().copied().collect();
    headings.sort_unstable();
    headings.dedup();
    let of_categories: Vec<(String, String, Vec<Observed>)> = headings
        .into_iter()
        .map(|heading| {
            let of = |step: &Step| -> f64 {
                step.times_ns.values().filter(|(of, _)| of == heading).map(|(_, ns)| *ns as f64).sum()
            };
            (heading.to_owned(), String::new(), observe(&of))
        })
        .collect();
    let frames: f64 = kept.iter().map(|steps| steps.len() as f64).sum::<f64>() * f64::from(frames_per_step);
    let whole_row = (WHOLE.to_owned(), String::new(), whole.clone());
    let mut subsystems = judge(std::iter::once(whole_row).chain(of_subsystems).collect(), &whole, frames);
    subsystems
        .sort_by(|one, other| (other.name == WHOLE).cmp(&(one.name == WHOLE)).then(other.share.total_cmp(&one.share)));
    let mut categories = judge(of_categories, &whole, frames);
    categories.sort_by(|one, other| other.share.total_cmp(&one.share));
    Findings {
        subsystems,
        categories,
        pairs: pairs.len(),
        undisturbed_share: f64::from(undisturbed as u32) / f64::from((steps as u32).max(1)),
        took_disturbed,
    }
}

/// Whether a step waited for its core no longer than is usual in its pair: two threads on one core always wait a little for
/// each other.
fn is_quiet(step: &Step, usual_ns: f64) -> bool {
    step.waited_ns as f64 <= 2.0 * usual_ns + WAITED_SHARE_MAX * step.all_ns()
}

fn usual_wait_ns(pair: &PairFigures) -> f64 {
    let waits = pair.steps.iter().flat_map(|(base, change)| [base.waited_ns as f64, change.waited_ns as f64]);
    throng_history::changes::median(&mut waits.collect::<Vec<_>>())
}

/// One pair's word on one name.
fn observed(steps: &[&(Step, Step)], of: &dyn Fn(&Step) -> f64) -> Observed {
    let mut both: Vec<(f64, f64)> = steps.iter().map(|(base, change)| (of(base), of(change))).collect();
    both.sort_by(|one, other| (one.1 - one.0).total_cmp(&(other.1 - other.0)));
    let cut = (both.len() as f64 * CUT_SHARE) as usize;
    let middle = &both[cut..both.len() - cut];
    let (base, change) = middle.iter().fold((0.0, 0.0), |sums, times| (sums.0 + times.0, sums.1 + times.1));
    let all: (f64, f64) = both.iter().fold((0.0, 0.0), |sums, times| (sums.0 + times.0, sums.1 + times.1));
    // What is in one of the two alone, or in neither of the steps that count, has no ratio.
    let shift = if base > 0.0 && change > 0.0 { (change / base).ln() } else { 0.0 };
    Observed { base_ns: all.0, change_ns: all.1, shift }
}

fn judge(rows: Vec<(String, String, Vec<Observed>)>, whole: &[Observed], frames: f64) -> Vec<Finding> {
    let whole_ns: f64 = whole.iter().map(|observed| observed.base_ns + observed.change_ns).sum();
    let share = |observed: &[Observed]| {
        let ns: f64 = observed.iter().map(|observed| observed.base_ns + observed.change_ns).sum();
        if whole_ns > 0.0 { ns / whole_ns } else { 0.0 }
    };
    let judged = rows.iter().filter(|(.., observed)| share(observed) >= SHARE_MIN).count().max(1);
    let mut deviations: Vec<f64> = rows
        .iter()
        .filter(|(.., observed)| share(observed) >= SHARE_MIN)
        .map(|(.., observed)| mean_and_deviation(observed).1)
        .collect();
    let usual = throng_history::changes::median(&mut deviations);
    rows.into_iter()
        .map(|(name, category, observed)| {
            let (mean, deviation) = mean_and_deviation(&observed);
            let (share, count) = (share(&observed), observed.len() as f64);
            // Half for subsystems, half for headings.
            let level = 0.5 / FALSE_ALARMS_ONE_IN / judged as f64;
            let half = student_two_sided(level, observed.len().saturating_sub(1) as u32) * deviation.max(usual / 2.0)
                / count.sqrt();
            let (low, high) = (mean - half, mean + half);
            let verdict = if share < SHARE_MIN {
                Verdict::Small
            } else if low > SHIFT_MIN.ln_1p() {
                Verdict::Slower
            } else if high < (-SHIFT_MIN).ln_1p() {
                Verdict::Faster
            } else {
                Verdict::None
            };
            let per_frame_us = |ns: fn(&Observed) -> f64| observed.iter().map(ns).sum::<f64>() / frames.max(1.0) / 1e3;
            let percent = |shift: f64| 100.0 * shift.exp_m1();
            Finding {
                name,
                category,
                verdict,
                share,
                base_us: per_frame_us(|observed| observed.base_ns),
                change_us: per_frame_us(|observed| observed.change_ns),
                shift_percent: percent(mean),
                low_percent: percent(low),
                high_percent: percent(high),
            }
        })
        .collect()
}

fn mean_and_deviation(observed: &[Observed]) -> (f64, f64) {
    let count = observed.len().max(1) as f64;
    let mean = observed.iter().map(|one| one.shift).sum::<f64>() / count;
    let squares: f64 = observed.iter().map(|one| (one.shift - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}

#[cfg(test)]
mod tests;
