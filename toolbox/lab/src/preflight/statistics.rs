//! The statistics of a preflight: from pairs of steps to a verdict for each subsystem.
//!
//! A pair of processes is one observation of each subsystem: the ratio of its time in the change to that in the base, over the steps in
//! which it worked. The host hits steps at random, but work is the same in each pair: step 40 is step 40. So steps in which a thread
//! waited for its core are left out ([`WAITED_SHARE_MAX`]), and pairs are trimmed: the [`TRIMMED_SHARE`] of a pair's steps that are
//! farthest from what the same step is in other pairs are left out at each end. Work that comes in the same few steps of every pair, and
//! a slowdown that is in these alone, stay.
//!
//! A stall at another step each time, or one for which threads wait, looks like the host's and is left out with it. So the ratio of all
//! steps (untrimmed) is kept beside the one that is judged, and told where it lies outside of the interval. It has no verdict: the host's
//! disturbances are in it.
//!
//! The mean of many pairs has a Student interval at a level that holds for all subsystems at once (Bonferroni): a run in which nothing
//! differs raises something once in [`FALSE_ALARMS_ONE_IN`] runs at most, if pairs are as good as normal. They nearly are, being sums
//! over many steps; and that a verdict needs the whole interval beyond [`SHIFT_MIN`] leaves room for what is not.
//!
//! With few pairs one subsystem in twenty looks quiet by chance. So the deviation of each is at least half of the middle
//! subsystem's.
//!
//! Where too little is known to say that nothing differs, that is what is said: [`Verdict::Rare`], [`Verdict::Unknown`].

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use throng_history::student::student_two_sided;

use super::pair::PairFigures;
use super::step::Step;

/// Of runs in which nothing differs.
pub const FALSE_ALARMS_ONE_IN: f64 = 10_000.0;
/// The interval must lie beyond this share of the time before.
pub const SHIFT_MIN: f64 = 0.003;
/// Nothing is seen only where the interval ends before this share, both ways. One that reaches beyond it says nothing.
pub const UNKNOWN_MIN: f64 = 0.1;
/// Of the steps of a pair in which a subsystem works, at each end.
pub const TRIMMED_SHARE: f64 = 0.15;
/// Fewer pairs say nothing of each other.
pub(super) const PAIRS_MIN: usize = 3;
/// Subsystems that take less of all in both builds are told and not judged: their time is the clock's.
pub const SHARE_MIN: f64 = 0.005;
/// A step counts as disturbed when its threads waited for a core by more than this share of it longer than is usual.
const WAITED_SHARE_MAX: f64 = 0.02;
/// With fewer undisturbed steps than this share, disturbed ones are taken as well.
const UNDISTURBED_SHARE_MIN: f64 = 0.34;

/// All of a frame.
pub const WHOLE: &str = "all";

/// What is trimmed, for who reads a verdict.
pub fn trimming_in_words() -> String {
    format!(
        "{:.0} % of a pair's steps are trimmed at each end, those farthest from what is usual: what lies in few steps (a rare stall, a \
         lock) is largely trimmed, so it is told as less than it is",
        100.0 * TRIMMED_SHARE
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Slower,
    Faster,
    /// It is in the change alone: there is nothing to hold it against.
    New,
    /// It is in the base alone.
    Gone,
    /// Nothing was seen: a difference may be as large as the interval says.
    None,
    /// The interval reaches so far that it says nothing.
    Unknown,
    /// It works in too few pairs to have an interval.
    Rare,
    /// It takes too little to be judged.
    Small,
}

impl Verdict {
    /// For people. "None" alone would be read as no verdict.
    pub fn name(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::New => "new",
            Self::Gone => "gone",
            Self::None => "none seen",
            Self::Unknown => "cannot be said",
            Self::Rare => "rare, cannot be said",
            Self::Small => "small",
        }
    }

    /// Whether the two builds differ in it.
    pub fn is_seen(self) -> bool {
        matches!(self, Self::Slower | Self::Faster | Self::New | Self::Gone)
    }

    /// Whether nothing is known of it: neither that the two differ nor that they do not.
    pub fn is_unknown(self) -> bool {
        matches!(self, Self::Unknown | Self::Rare)
    }
}

/// What is found of a subsystem, of a category, or of everything.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    pub name: String,
    /// Of a subsystem; empty of a category, and of everything.
    pub category: String,
    pub verdict: Verdict,
    /// Of all scopes' time, in the build in which that is more.
    pub share: f64,
    /// Mean time per frame or tick in µs over the trimmed steps, those that `shift_percent` is of; over all steps if that is `None`.
    pub base_us: f64,
    pub change_us: f64,
    /// Of the base's time, with the interval: 2.0 is 2 % slower. None where there is nothing to hold it against, or too little.
    pub shift_percent: Option<f64>,
    pub low_percent: Option<f64>,
    pub high_percent: Option<f64>,
    /// The same over all steps, with nothing left out. Has no interval: what the host did to single steps is in it.
    pub untrimmed_base_us: f64,
    pub untrimmed_change_us: f64,
    pub untrimmed_percent: Option<f64>,
}

impl Finding {
    /// The untrimmed shift, where it lies outside of the interval.
    pub fn untrimmed_percent_outside(&self) -> Option<f64> {
        let (untrimmed, low, high) = (self.untrimmed_percent?, self.low_percent?, self.high_percent?);
        (!(low..=high).contains(&untrimmed)).then_some(untrimmed)
    }
}

/// What is found in so many pairs: everything first, then by time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    pub subsystems: Vec<Finding>,
    pub categories: Vec<Finding>,
    pub pairs: usize,
    /// Of all steps, those in which neither build waited for a core for longer than usual: than twice the pair's median and 2 % of the step.
    pub undisturbed_share: f64,
    /// Whether others had to be taken, too, since a pair had too few of these.
    pub took_disturbed: bool,
}

/// Sums of a pair for one name.
#[derive(Debug, Clone, Copy)]
struct Observed {
    /// Of the pair, all of them; and what they took.
    steps: usize,
    base_ns: f64,
    change_ns: f64,
    /// None if it works in one of the two alone, or in neither.
    compared: Option<Compared>,
}

/// What a pair says of a name that works in both.
#[derive(Debug, Clone, Copy)]
struct Compared {
    /// Steps that were kept; and what they took, as if those that are trimmed of them took what the others do.
    steps: usize,
    base_ns: f64,
    change_ns: f64,
    /// Differences of logarithms: of what trimming leaves, and of all steps.
    shift: f64,
    untrimmed_shift: f64,
}

/// A step that is kept, with its number in the pair: of the same number is the same work.
type KeptStep<'a> = (usize, &'a (Step, Step));

/// What one name took in one step of both, in which it worked.
#[derive(Debug, Clone, Copy)]
struct Times {
    step: usize,
    base_ns: f64,
    change_ns: f64,
}

impl Times {
    /// As a share of both: 0 where they are equal, -1 where the base alone works, 1 where the change does.
    fn difference(&self) -> f64 {
        (self.change_ns - self.base_ns) / (self.change_ns + self.base_ns)
    }
}

pub(super) fn find(pairs: &[PairFigures], units_per_step: u32) -> Findings {
    let kept = KeptSteps::of(pairs);
    let category_of = category_of_subsystems(pairs);
    let whole = kept.row(WHOLE, "", &Step::all_ns);
    let whole_ns = sums_ns(&whole.observed);
    let subsystems = category_of.iter().map(|(name, category)| kept.row(name, category, &|step: &Step| step.ns(name)));
    let subsystems = judge(std::iter::once(whole).chain(subsystems).collect(), whole_ns, units_per_step);
    let categories: BTreeSet<&str> = category_of.into_values().collect();
    let categories =
        categories.into_iter().map(|category| kept.row(category, "", &|step: &Step| step.category_ns(category)));
    let categories = judge(categories.collect(), whole_ns, units_per_step);
    let KeptSteps { share, took_disturbed, .. } = kept;
    Findings { subsystems, categories, pairs: pairs.len(), undisturbed_share: share, took_disturbed }
}

fn category_of_subsystems(pairs: &[PairFigures]) -> BTreeMap<&str, &str> {
    let mut category_of: BTreeMap<&str, &str> = BTreeMap::new();
    for (base, change) in pairs.iter().flat_map(|pair| &pair.steps) {
        for (name, (category, _)) in base.times_ns.iter().chain(&change.times_ns) {
            category_of.entry(name).or_insert(category);
        }
    }
    category_of
}

/// Pairs, and the steps of each that are kept.
struct KeptSteps<'a> {
    pairs: &'a [PairFigures],
    /// Of each pair.
    kept: Vec<Vec<KeptStep<'a>>>,
    /// Of all steps, the undisturbed ones.
    share: f64,
    /// Of some pair all are kept, since it has too few of these.
    took_disturbed: bool,
}

impl<'a> KeptSteps<'a> {
    fn of(pairs: &'a [PairFigures]) -> Self {
        let (mut kept, mut undisturbed_count, mut steps_count, mut took_disturbed) = (Vec::new(), 0, 0, false);
        for pair in pairs {
            let undisturbed = undisturbed_steps(pair);
            let is_enough = undisturbed.len() as f64 >= UNDISTURBED_SHARE_MIN * pair.steps.len() as f64;
            undisturbed_count += undisturbed.len();
            steps_count += pair.steps.len();
            took_disturbed |= !is_enough;
            kept.push(if is_enough { undisturbed } else { pair.steps.iter().enumerate().collect() });
        }
        Self { pairs, kept, share: undisturbed_count as f64 / steps_count.max(1) as f64, took_disturbed }
    }

    fn row(&self, name: &str, category: &str, ns_of: &dyn Fn(&Step) -> f64) -> Row {
        Row { name: name.to_owned(), category: category.to_owned(), observed: observe(self.pairs, &self.kept, ns_of) }
    }
}

fn undisturbed_steps(pair: &PairFigures) -> Vec<KeptStep<'_>> {
    let usual_ns = usual_wait_ns(pair);
    let is_undisturbed =
        |(_, (base, change)): &KeptStep<'_>| is_undisturbed(base, usual_ns) && is_undisturbed(change, usual_ns);
    pair.steps.iter().enumerate().filter(is_undisturbed).collect()
}

/// Whether a step waited for its core no longer than is usual in its pair: two threads on one core always wait a little for
/// each other.
fn is_undisturbed(step: &Step, usual_ns: f64) -> bool {
    step.waited_ns as f64 <= 2.0 * usual_ns + WAITED_SHARE_MAX * step.all_ns()
}

fn usual_wait_ns(pair: &PairFigures) -> f64 {
    let waits = pair.steps.iter().flat_map(|(base, change)| [base.waited_ns as f64, change.waited_ns as f64]);
    throng_history::changes::median(&mut waits.collect::<Vec<_>>())
}

/// What each pair says of one name. `kept`: steps of each.
fn observe(pairs: &[PairFigures], kept: &[Vec<KeptStep<'_>>], of: &dyn Fn(&Step) -> f64) -> Vec<Observed> {
    let of_pair = |steps: &Vec<KeptStep<'_>>| -> Vec<Times> {
        let times =
            steps.iter().map(|(step, (base, change))| Times { step: *step, base_ns: of(base), change_ns: of(change) });
        times.filter(|times| times.base_ns + times.change_ns > 0.0).collect()
    };
    let times: Vec<Vec<Times>> = kept.iter().map(of_pair).collect();
    let usual = usual_differences(&times);
    let of_each = pairs.iter().zip(kept).zip(times);
    let observed = of_each.map(|((pair, kept), times)| {
        let (base_ns, change_ns) = sums(pair.steps.iter().map(|(base, change)| (of(base), of(change))));
        let (kept_base_ns, kept_change_ns) = trimmed_sums(times, &usual);
        let is_compared = kept_base_ns > 0.0 && kept_change_ns > 0.0;
        let compared = is_compared.then(|| Compared {
            steps: kept.len(),
            base_ns: kept_base_ns,
            change_ns: kept_change_ns,
            shift: (kept_change_ns / kept_base_ns).ln(),
            untrimmed_shift: (change_ns / base_ns).ln(),
        });
        Observed { steps: pair.steps.len(), base_ns, change_ns, compared }
    });
    observed.collect()
}

fn sums(times: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    times.fold((0.0, 0.0), |sums, times| (sums.0 + times.0, sums.1 + times.1))
}

/// By the step's number: how the two differ in it, as pairs have it in the middle. None where too few pairs have the step.
fn usual_differences(pairs: &[Vec<Times>]) -> Vec<Option<f64>> {
    let steps = pairs.iter().flatten().map(|times| times.step + 1).max().unwrap_or(0);
    let mut by_step = vec![Vec::new(); steps];
    pairs.iter().flatten().for_each(|times| by_step[times.step].push(times.difference()));
    let usual = |differences: &mut Vec<f64>| {
        (differences.len() >= PAIRS_MIN).then(|| throng_history::changes::median(differences))
    };
    by_step.iter_mut().map(usual).collect()
}

/// What one pair's steps took in base and change, as if those that are trimmed took what the others do. As many are trimmed at each
/// end: those that are farthest from what is usual for their step.
fn trimmed_sums(mut times: Vec<Times>, usual: &[Option<f64>]) -> (f64, f64) {
    let of_pair = throng_history::changes::median(&mut times.iter().map(Times::difference).collect::<Vec<_>>());
    let off = |times: &Times| times.difference() - usual[times.step].unwrap_or(of_pair);
    times.sort_by(|one, other| off(one).total_cmp(&off(other)));
    let trimmed_count = (times.len() as f64 * TRIMMED_SHARE) as usize;
    let left = &times[trimmed_count..times.len() - trimmed_count];
    let (base_ns, change_ns) = sums(left.iter().map(|times| (times.base_ns, times.change_ns)));
    let in_all = |ns: f64| ns * times.len() as f64 / left.len().max(1) as f64;
    (in_all(base_ns), in_all(change_ns))
}

/// The verdicts of these names, which hold all at once: everything first, then by time.
fn judge(rows: Vec<Row>, whole_ns: [f64; 2], units_per_step: u32) -> Vec<Finding> {
    let mut deviations: Vec<f64> = rows
        .iter()
        .filter(|row| share(sums_ns(&row.observed), whole_ns) >= SHARE_MIN)
        .map(|row| shifts(&row.observed, |compared| compared.shift))
        .filter(|shifts| shifts.len() >= PAIRS_MIN)
        .map(|shifts| mean_and_deviation(&shifts).1)
        .collect();
    // Half of the alarms for subsystems, half for categories.
    let level = 0.5 / FALSE_ALARMS_ONE_IN / deviations.len().max(1) as f64;
    let deviation_min = throng_history::changes::median(&mut deviations) / 2.0;
    let finding = |row: Row| {
        let interval = interval(&shifts(&row.observed, |compared| compared.shift), level, deviation_min);
        row.finding(whole_ns, interval, units_per_step)
    };
    let mut findings: Vec<Finding> = rows.into_iter().map(finding).collect();
    findings
        .sort_by(|one, other| (other.name == WHOLE).cmp(&(one.name == WHOLE)).then(other.share.total_cmp(&one.share)));
    findings
}

/// One name, and what each pair says of it.
struct Row {
    name: String,
    /// Of a subsystem; empty of a category, and of everything.
    category: String,
    observed: Vec<Observed>,
}

impl Row {
    fn finding(self, whole_ns: [f64; 2], interval: Option<Interval>, units_per_step: u32) -> Finding {
        let Self { name, category, observed } = self;
        let sums_ns = sums_ns(&observed);
        let share = share(sums_ns, whole_ns);
        let steps = observed.iter().map(|one| one.steps).sum();
        let untrimmed_us = sums_ns.map(|ns| per_unit_us(ns, steps, units_per_step));
        let [base_us, change_us] = if interval.is_some() { left_us(&observed, units_per_step) } else { untrimmed_us };
        let untrimmed_shift =
            interval.map(|_| mean_and_deviation(&shifts(&observed, |compared| compared.untrimmed_shift)).0);
        let percent_of = |shift: f64| 100.0 * shift.exp_m1();
        Finding {
            name,
            category,
            verdict: verdict(interval, share, sums_ns),
            share,
            base_us,
            change_us,
            shift_percent: interval.map(|interval| percent_of(interval.mean)),
            low_percent: interval.map(|interval| percent_of(interval.low)),
            high_percent: interval.map(|interval| percent_of(interval.high)),
            untrimmed_base_us: untrimmed_us[0],
            untrimmed_change_us: untrimmed_us[1],
            untrimmed_percent: untrimmed_shift.map(percent_of),
        }
    }
}

/// Of base and change.
fn sums_ns(observed: &[Observed]) -> [f64; 2] {
    sums(observed.iter().map(|one| (one.base_ns, one.change_ns))).into()
}

/// Of the whole, in the build in which it is more.
fn share(sums_ns: [f64; 2], whole_ns: [f64; 2]) -> f64 {
    let of = |ns: f64, whole: f64| if whole > 0.0 { ns / whole } else { 0.0 };
    of(sums_ns[0], whole_ns[0]).max(of(sums_ns[1], whole_ns[1]))
}

/// Where the shift lies, in logarithms.
#[derive(Debug, Clone, Copy)]
struct Interval {
    mean: f64,
    low: f64,
    high: f64,
}

/// Student's, of the mean of these shifts. None of too few.
fn interval(shifts: &[f64], level: f64, deviation_min: f64) -> Option<Interval> {
    if shifts.len() < PAIRS_MIN {
        return None;
    }
    let (mean, deviation) = mean_and_deviation(shifts);
    let half =
        student_two_sided(level, shifts.len() as u32 - 1) * deviation.max(deviation_min) / (shifts.len() as f64).sqrt();
    Some(Interval { mean, low: mean - half, high: mean + half })
}

fn verdict(interval: Option<Interval>, share: f64, [base_ns, change_ns]: [f64; 2]) -> Verdict {
    match interval {
        _ if share < SHARE_MIN => Verdict::Small,
        _ if base_ns == 0.0 => Verdict::New,
        _ if change_ns == 0.0 => Verdict::Gone,
        None => Verdict::Rare,
        Some(Interval { low, .. }) if low > SHIFT_MIN.ln_1p() => Verdict::Slower,
        Some(Interval { high, .. }) if high < (-SHIFT_MIN).ln_1p() => Verdict::Faster,
        Some(Interval { low, high, .. }) if low < (-UNKNOWN_MIN).ln_1p() || high > UNKNOWN_MIN.ln_1p() => {
            Verdict::Unknown
        }
        Some(_) => Verdict::None,
    }
}

fn per_unit_us(ns: f64, steps: usize, units_per_step: u32) -> f64 {
    ns / (steps as f64 * f64::from(units_per_step)).max(1.0) / 1e3
}

/// Per frame or tick of both, trimmed, of the pairs that compare them.
fn left_us(observed: &[Observed], units_per_step: u32) -> [f64; 2] {
    let compared = || observed.iter().filter_map(|one| one.compared);
    let steps = compared().map(|one| one.steps).sum();
    let (base_ns, change_ns) = sums(compared().map(|one| (one.base_ns, one.change_ns)));
    [base_ns, change_ns].map(|ns| per_unit_us(ns, steps, units_per_step))
}

fn shifts(observed: &[Observed], of: fn(Compared) -> f64) -> Vec<f64> {
    observed.iter().filter_map(|one| one.compared.map(of)).collect()
}

fn mean_and_deviation(shifts: &[f64]) -> (f64, f64) {
    let count = shifts.len().max(1) as f64;
    let mean = shifts.iter().sum::<f64>() / count;
    let squares: f64 = shifts.iter().map(|shift| (shift - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}

#[cfg(test)]
mod tests;
