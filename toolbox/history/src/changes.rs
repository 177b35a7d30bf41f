//! Changes: between which commits something began to take another time.
//!
//! The idea is that of change points by recursive splitting, as in E-divisive (Matteson and James 2014), which MongoDB (Daly et al.
//! 2020) and Hunter (Fleming et al. 2023) use on builds: find the place at which the runs before and after differ most, keep it if that is no
//! chance, go on with both sides. What is ours is the test, since load runs are few, noisy and many-headed:
//!
//! - **What all subsystems share is the host's.** A run on a slow day is slow in everything. With [`COMMON_OF`] subsystems or more
//!   that were there all along ([`ALL_ALONG_MIN`]) the median of their changes in a run is taken off each that has this run, and
//!   watched by itself, as [`EVERYTHING`]. So one that is new, small, renamed or removed is held against the same host as the others.
//!   A bench's times are of different things, and are no parts of one tick: of those nothing is common.
//! - **Outliers count little.** The shift is that of Hodges and Lehmann (the median of all differences between a run after and
//!   one before), the noise is that of residuals cut at 2.5 deviations, and of two runs, one before and one after, the later must be
//!   the slower one in [`ORDERED_SHARE_MIN`] of the cases.
//! - **Noise is not taken for less than is usual, unless it surely is less.** With few runs one subsystem in twenty looks quiet by
//!   chance, and its next run like a change. So each has the noise of the middle subsystem, or else what chance may hide of its own
//!   (with ten runs five times as much, with sixty half as much again), and never less than half of the middle one's: runs that
//!   tie look like none. Where the host's days were not taken off, and in what all share, it is all that chance may hide: days are no
//!   commits, and a few slow ones in a row are chance.
//! - **A host that changes does not slow all alike.** Whose memory became slower slows who waits for it. So the calibrations of the
//!   runs are watched like subsystems ([`host`]): where they change all lines are cut, and what changes there is held against no commit.
//!
//! A shift counts from [`DEVIATIONS_MIN`] deviations of its own error on, [`SHIFT_MIN`] of the time and [`RUNS_EACH_SIDE_MIN`] runs on
//! each side. Tried on made-up histories of 20 commits, 3 runs each, 20 subsystems, with noise of 1.5 % and tails of Student's t
//! with 3 degrees (`tests`): nothing in 300 innocent ones; 5 % in one subsystem found as docs/guide/history.md says. With one run a
//! commit a change is found later and less surely: three are worth their time.

mod host;

use std::collections::BTreeMap;
use std::ops::Range;

pub use host::HostChange;

use host::Host;

use crate::record::{Record, RunKind};
use crate::series::Series;

/// What stands for all subsystems together.
pub const EVERYTHING: &str = "everything";

/// So many have something in common.
pub const COMMON_OF: usize = 5;
/// Of a series' runs, that a subsystem must be in to tell of the host. Half would do where few come and go; but of two halves, old
/// names and new ones, none would know of both sides.
pub const ALL_ALONG_MIN: f64 = 0.75;
/// Of those that tell of the host, that a run must have, so that no single one moves the middle: else it is left out.
const TOLD_BY_MIN: usize = 3;
/// Rounds of median polish where some have not all runs, each of which brings those closer to the others. Where all have all runs it is
/// one: more would fit what is common to chance.
const POLISH_ROUNDS: usize = 4;
/// Deviations of its error that a shift must have.
pub const DEVIATIONS_MIN: f64 = 6.0;
/// A place is looked into from so many on.
const TENTATIVE_DEVIATIONS_MIN: f64 = 3.0;
/// As a share of the time before.
pub const SHIFT_MIN: f64 = 0.02;
pub const RUNS_EACH_SIDE_MIN: usize = 5;
/// On both sides of a border together.
pub const RUNS_MIN: usize = 2 * RUNS_EACH_SIDE_MIN;
/// Of all pairs of a run before and one after.
pub const ORDERED_SHARE_MIN: f64 = 0.9;
/// Below so many deviations of a normal distribution lies one in 10,000.
const QUIET_BY_CHANCE_DEVIATIONS: f64 = 3.719;
/// A subsystem of a load that usually takes less of all is not watched: its time is the clock's.
const SHARE_MIN: f64 = 0.002;
/// Another place for the change is as good as the best one where it is worse by no more than so many deviations in all.
const PLACE_DOUBT: f64 = 2.0;
/// What times that tie are taken to differ by (logarithm): some have two digits.
const NOISE_OF_TIES: f64 = 0.01;

/// A subsystem takes another time since some commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Or [`EVERYTHING`].
    pub subsystem: String,
    /// The last commit that surely takes the time before: place in the series.
    pub good: usize,
    /// The first that surely takes the time after. The change came in with one of those behind `good`, up to this.
    pub bad: usize,
    /// Where most speaks for it.
    pub likely: usize,
    /// Medians (µs), both as on the host of the runs after: what all share is taken off the first. None for [`EVERYTHING`], of which a
    /// share is known and no time.
    pub before_us: Option<f64>,
    pub after_us: Option<f64>,
    /// Of the time before, what the host's days share taken off: 0.05 is 5 % slower.
    pub shift: f64,
    /// So many times its own error.
    pub deviations: f64,
}

impl Change {
    pub fn is_slower(&self) -> bool {
        self.shift > 0.0
    }
}

/// One subsystem's time in a run.
#[derive(Debug, Clone, Copy)]
struct RunTime {
    /// Of the run, in its series.
    number: usize,
    /// Of its commit.
    place: usize,
    /// The logarithm of the time, which what is common is taken off.
    log: f64,
    /// None of what all share.
    us: Option<f64>,
}

/// One subsystem's times, in the order of runs.
struct SubsystemTimes {
    name: String,
    runs: Vec<RunTime>,
}

/// What a series tells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judged {
    /// By commit, and there what became slower most first.
    pub changes: Vec<Change>,
    /// By commit.
    pub host_changes: Vec<HostChange>,
    /// Runs that count of those on the two sides of the best border between commits, on one host; nothing can be found before there are
    /// [`RUNS_MIN`].
    pub runs_at_border: usize,
}

impl Judged {
    /// Whether anything could have been found.
    pub fn tells(&self) -> bool {
        self.runs_at_border >= RUNS_MIN
    }
}

/// All changes of a series. `times` says which figures are looked at.
pub fn find(series: &Series<'_>, times: impl Fn(&Record) -> &BTreeMap<String, f64>) -> Vec<Change> {
    judge(series, times).changes
}

/// The same with where its host changed.
pub fn judge(series: &Series<'_>, times: impl Fn(&Record) -> &BTreeMap<String, f64>) -> Judged {
    let host = Host::of(series);
    let runs_at_border = runs_at_border(series, &times, &host);
    let mut subsystems = subsystems(series, &times);
    let common = if series.kind == RunKind::Load { take_common(series, &mut subsystems) } else { None };
    let floor = if common.is_some() { Floor::Usual(usual_noise(&subsystems, &host)) } else { Floor::Hidden };
    let mut judged = Judged { changes: Vec::new(), host_changes: host.changes.clone(), runs_at_border };
    for subsystem in &subsystems {
        changes_of(subsystem, floor, &host, &mut judged);
    }
    if let Some(subsystem) = common {
        changes_of(&subsystem, Floor::Hidden, &host, &mut judged);
    }
    judged.changes.sort_by(|one, other| one.likely.cmp(&other.likely).then(other.shift.total_cmp(&one.shift)));
    judged.host_changes.sort_by_key(|change| change.likely);
    judged
}

fn runs_at_border(series: &Series<'_>, times: &impl Fn(&Record) -> &BTreeMap<String, f64>, host: &Host) -> usize {
    let numbered = placed_runs(series).enumerate().filter(|(_, (_, run))| !times(run).is_empty());
    let runs: Vec<RunTime> =
        numbered.map(|(number, (place, _))| RunTime { number, place, log: 0.0, us: None }).collect();
    let counting = |part: Range<usize>| {
        let is_border = |at: &usize| part.start == *at || runs[at - 1].place != runs[*at].place;
        let at_border = |at: usize| (at - part.start).min(RUNS_EACH_SIDE_MIN) + (part.end - at).min(RUNS_EACH_SIDE_MIN);
        part.clone().filter(is_border).map(at_border).max().unwrap_or_default()
    };
    parts(runs.len(), &host.borders(&runs)).map(counting).max().unwrap_or_default()
}

/// Of the middle subsystem, on one host.
fn usual_noise(subsystems: &[SubsystemTimes], host: &Host) -> f64 {
    let noises = subsystems.iter().filter_map(|subsystem| {
        let mut runs = subsystem.runs.clone();
        for part in parts(runs.len(), &host.borders(&subsystem.runs)) {
            let level = middle(&runs[part.clone()]);
            runs[part].iter_mut().for_each(|run| run.log -= level);
        }
        best(&runs, Floor::None).map(|split| split.noise)
    });
    median(&mut noises.collect::<Vec<_>>())
}

/// What lies between these borders of so many.
fn parts(count: usize, borders: &[usize]) -> impl Iterator<Item = Range<usize>> + '_ {
    let begins = std::iter::once(0).chain(borders.iter().copied());
    begins.zip(borders.iter().copied().chain([count])).map(|(begin, end)| begin..end)
}

/// Who is watched is decided once for all runs: a subsystem that is near the share would else be there in one and not in the next.
fn subsystems(series: &Series<'_>, times: &impl Fn(&Record) -> &BTreeMap<String, f64>) -> Vec<SubsystemTimes> {
    let mut found: BTreeMap<&str, (Vec<RunTime>, Vec<f64>)> = BTreeMap::new();
    for (number, (place, run)) in placed_runs(series).enumerate() {
        let times = times(run);
        let all: f64 = times.values().sum();
        for (name, &us) in times.iter().filter(|(_, us)| us.is_finite() && **us > 0.0) {
            let (runs, shares) = found.entry(name).or_default();
            runs.push(RunTime { number, place, log: us.ln(), us: Some(us) });
            shares.push(us / all);
        }
    }
    let watched = found.into_iter().filter_map(|(name, (runs, mut shares))| {
        let is_large = series.kind == RunKind::Bench || median(&mut shares) >= SHARE_MIN;
        (is_large && runs.len() >= RUNS_MIN).then(|| SubsystemTimes { name: name.to_owned(), runs })
    });
    watched.collect()
}

/// All runs in their order, with the places of their commits.
fn placed_runs<'s, 'a>(series: &'s Series<'a>) -> impl Iterator<Item = (usize, &'a Record)> + use<'s, 'a> {
    let commits = series.commits.iter().enumerate();
    commits.flat_map(|(place, commit)| commit.runs.iter().map(move |run| (place, *run)))
}

/// Takes what the host did to all subsystems in a run off each that has this run, and returns it as a subsystem of its own; none
/// where too few were there all along. By median polish (Tukey 1977): a subsystem's middle and a run's common part are found in
/// turns, since the middle of one that begins behind a slow time of the host is another than that of one which has all of it.
fn take_common(series: &Series<'_>, subsystems: &mut [SubsystemTimes]) -> Option<SubsystemTimes> {
    let places: Vec<usize> = placed_runs(series).map(|(place, _)| place).collect();
    let all_along = |subsystem: &&SubsystemTimes| subsystem.runs.len() as f64 >= ALL_ALONG_MIN * places.len() as f64;
    let tell: Vec<&SubsystemTimes> = subsystems.iter().filter(all_along).collect();
    if tell.len() < COMMON_OF {
        return None;
    }
    let have_all_runs = tell.iter().all(|subsystem| subsystem.runs.len() == places.len());
    let rounds = if have_all_runs { 1 } else { POLISH_ROUNDS };
    let mut moved: Vec<Option<f64>> = vec![Some(0.0); places.len()];
    for _ in 0..rounds {
        let mut of_runs = vec![Vec::new(); places.len()];
        for subsystem in &tell {
            let unmoved = subsystem.runs.iter().filter_map(|run| Some(run.log - moved[run.number]?));
            let middle = median(&mut unmoved.collect::<Vec<_>>());
            subsystem.runs.iter().for_each(|run| of_runs[run.number].push(run.log - middle));
        }
        moved = of_runs.iter_mut().map(|of_run| (of_run.len() >= TOLD_BY_MIN).then(|| median(of_run))).collect();
    }
    for subsystem in subsystems {
        subsystem.runs.retain_mut(|run| {
            run.log -= moved[run.number].unwrap_or_default();
            moved[run.number].is_some()
        });
    }
    let runs = places
        .into_iter()
        .zip(moved)
        .enumerate()
        .filter_map(|(number, (place, moved))| moved.map(|moved| RunTime { number, place, log: moved, us: None }));
    Some(SubsystemTimes { name: EVERYTHING.to_owned(), runs: runs.collect() })
}

fn middle(runs: &[RunTime]) -> f64 {
    median(&mut runs.iter().map(|run| run.log).collect::<Vec<_>>())
}

/// All changes of a subsystem: places are found by splitting on and on, with a loose measure, since what became slower and fast again
/// differs little from end to end. Then each is held against its neighbours alone, by the strict one, and the weakest
/// goes until all are strong. Where the host changed there is always one.
fn changes_of(subsystem: &SubsystemTimes, floor: Floor, host: &Host, judged: &mut Judged) {
    let runs = &subsystem.runs;
    let of_host = host.borders(runs);
    let mut places = of_host.clone();
    for part in parts(runs.len(), &of_host) {
        split(&runs[part.clone()], part.start, floor, &mut places);
    }
    places.sort_unstable();
    let between = |places: &[usize], place: usize| {
        let begin = if place == 0 { 0 } else { places[place - 1] };
        begin..places.get(place + 1).copied().unwrap_or(runs.len())
    };
    let found: Vec<Split> = loop {
        let splits = (0..places.len()).map(|place| {
            let around = between(&places, place);
            let values: Vec<f64> = runs[around.clone()].iter().map(|run| run.log).collect();
            measure(&values, places[place] - around.start, floor)
        });
        let splits: Vec<Split> = splits.collect();
        let weak =
            splits.iter().enumerate().filter(|(place, split)| !split.counts() && !of_host.contains(&places[*place]));
        match weak.min_by(|(_, one), (_, other)| one.deviations.total_cmp(&other.deviations)) {
            Some((weakest, _)) => places.remove(weakest),
            None => break splits,
        };
    };
    for (place, found) in found.iter().enumerate().filter(|(_, found)| found.counts()) {
        let runs = &runs[between(&places, place)];
        let (before, after) = runs.split_at(found.at);
        // A line that came or went beside a change of the host.
        if before.len().min(after.len()) < RUNS_EACH_SIDE_MIN {
            continue;
        }
        let (first, last) = doubtful_places(runs, found);
        let (before_us, after_us) = levels_us(before, after).unzip();
        let change = Change {
            subsystem: subsystem.name.clone(),
            good: runs[first - 1].place,
            bad: runs[last].place,
            likely: after[0].place,
            before_us,
            after_us,
            shift: found.shift_log.exp() - 1.0,
            deviations: found.deviations,
        };
        if host.explains(before, after, found.shift_log, matches!(floor, Floor::Usual(_))) {
            host.take(change, before, after, &mut judged.host_changes);
        } else {
            judged.changes.push(change);
        }
    }
}

/// Medians (µs) of what runs before and after took, on the host of those after; none of what is no time.
fn levels_us(before: &[RunTime], after: &[RunTime]) -> Option<(f64, f64)> {
    let common: Option<Vec<f64>> = after.iter().map(|run| Some(run.us?.ln() - run.log)).collect();
    let common = median(&mut common?);
    Some(((middle(before) + common).exp(), (middle(after) + common).exp()))
}

/// Places at which runs differ, the first of which has this number.
fn split(runs: &[RunTime], first: usize, floor: Floor, places: &mut Vec<usize>) {
    let Some(found) = best(runs, floor).filter(|found| found.deviations >= TENTATIVE_DEVIATIONS_MIN) else { return };
    places.push(first + found.at);
    let (before, after) = runs.split_at(found.at);
    split(before, first, floor, places);
    split(after, first + found.at, floor, places);
}

/// What noise is taken for at least.
#[derive(Debug, Clone, Copy)]
enum Floor {
    /// What it looks like.
    None,
    /// That of the middle subsystem, unless it surely is less.
    Usual(f64),
    /// As much as chance may hide of it.
    Hidden,
}

/// Runs in two.
#[derive(Debug, Clone, Copy)]
struct Split {
    /// The first run after it.
    at: usize,
    /// A difference of logarithms.
    shift_log: f64,
    noise: f64,
    deviations: f64,
    ordered_share: f64,
}

impl Split {
    fn counts(&self) -> bool {
        self.deviations >= DEVIATIONS_MIN
            && self.shift_log.abs() >= SHIFT_MIN.ln_1p()
            && self.ordered_share >= ORDERED_SHARE_MIN
    }
}

/// Between which commits runs can be split, with enough of them on both sides.
fn borders(runs: &[RunTime]) -> impl Iterator<Item = usize> + '_ {
    let last = runs.len().saturating_sub(RUNS_EACH_SIDE_MIN);
    (RUNS_EACH_SIDE_MIN..=last).filter(|&at| at < runs.len() && runs[at - 1].place != runs[at].place)
}

/// Where they differ most.
fn best(runs: &[RunTime], floor: Floor) -> Option<Split> {
    let values: Vec<f64> = runs.iter().map(|run| run.log).collect();
    let splits = borders(runs).map(|at| measure(&values, at, floor));
    splits.max_by(|one, other| one.deviations.total_cmp(&other.deviations))
}

fn measure(values: &[f64], at: usize, floor: Floor) -> Split {
    let (before, after) = values.split_at(at);
    let mut differences: Vec<f64> =
        before.iter().flat_map(|before| after.iter().map(move |after| after - before)).collect();
    let above = differences.iter().filter(|difference| **difference > 0.0).count() as f64 / differences.len() as f64;
    let shift_log = median(&mut differences);
    let own = noise(before, after);
    let may_be = own * hidden_by_chance(degrees_of_freedom(values.len()));
    let noise = match floor {
        Floor::None => own,
        Floor::Usual(usual) => own.max(may_be.clamp(usual / 2.0, usual)),
        // Times that tie are printed with too few digits for their noise.
        Floor::Hidden if may_be == 0.0 => NOISE_OF_TIES,
        Floor::Hidden => may_be,
    };
    let noise = noise.max(f64::MIN_POSITIVE);
    let error = noise * (1.0 / before.len() as f64 + 1.0 / after.len() as f64).sqrt();
    Split { at, shift_log, noise, deviations: shift_log.abs() / error, ordered_share: above.max(1.0 - above) }
}

/// Deviation of runs from the median of their side, those beyond 2.5 of it cut there.
fn noise(before: &[f64], after: &[f64]) -> f64 {
    let residuals = [before, after].map(|side| {
        let middle = median(&mut side.to_vec());
        side.iter().map(move |value| value - middle)
    });
    let residuals: Vec<f64> = residuals.into_iter().flatten().collect();
    let free = degrees_of_freedom(residuals.len());
    let absolute = median(&mut residuals.iter().map(|value| value.abs()).collect::<Vec<_>>());
    let rough = 1.4826 * absolute * residuals.len() as f64 / free;
    let squares: f64 = residuals.iter().map(|value| value.clamp(-2.5 * rough, 2.5 * rough).powi(2)).sum();
    (squares / free).sqrt().max(0.8 * rough)
}

/// Of the residuals of so many runs: two medians were taken off.
fn degrees_of_freedom(runs: usize) -> f64 {
    (runs as f64 - 2.0).max(1.0)
}

/// A deviation of so many degrees of freedom may be so many times what it looks like: by the lower end of chi-square (Wilson and
/// Hilferty 1931).
fn hidden_by_chance(degrees: f64) -> f64 {
    let part = 2.0 / (9.0 * degrees);
    let lower = 1.0 - part - QUIET_BY_CHANCE_DEVIATIONS * part.sqrt();
    if lower > 0.0 { lower.powi(3).sqrt().recip() } else { f64::INFINITY }
}

/// The first and the last border at which the change may be.
fn doubtful_places(runs: &[RunTime], found: &Split) -> (usize, usize) {
    let cost = |at: usize| -> f64 {
        let sides = [&runs[..at], &runs[at..]];
        let of_side = |side: &[RunTime]| {
            let middle = middle(side);
            side.iter().map(|run| (run.log - middle).abs()).sum::<f64>()
        };
        sides.into_iter().map(of_side).sum::<f64>() / found.noise
    };
    let costs: Vec<(usize, f64)> = borders(runs).map(|at| (at, cost(at))).collect();
    let least = costs.iter().map(|(_, cost)| *cost).fold(f64::INFINITY, f64::min);
    let doubtful = || costs.iter().filter(|(_, cost)| *cost <= least + PLACE_DOUBT).map(|(at, _)| *at);
    let first = doubtful().min().unwrap_or(found.at).min(found.at);
    let last = doubtful().max().unwrap_or(found.at).max(found.at);
    (first, last)
}

/// Leaves them in another order. 0 of none.
pub fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let place = values.len() / 2;
    let is_even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(place, f64::total_cmp);
    let upper = *upper;
    if !is_even {
        return upper;
    }
    (below.iter().copied().fold(f64::NEG_INFINITY, f64::max) + upper) / 2.0
}

#[cfg(test)]
mod tests;
