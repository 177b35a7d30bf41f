//! The host of a series: where its calibrations change, what goes by that is held against no commit.
//!
//! One name may be a host whose neighbours moved in meanwhile, or another one of the same model: its memory may become twice as
//! slow, which is a subsystem's time or nothing to it, by what that waits for. So no single number can be taken off all. Instead:
//!
//! - **Where a calibration surely changes all lines are cut.** It is found by the same test as a subsystem's change. On either side runs
//!   are judged as before.
//! - **A change with which a calibration moved is the host's**, at such a cut and anywhere else: calibrations take some ms of a run's
//!   minute, so a step of the host may be plain in the subsystems and not in them. Whether one moved is asked of the very runs before
//!   and after, by ranks (Mann and Whitney 1947), and easily: [`MOVED_DEVIATIONS`] are chance in one of 80. It has moved
//!   far enough if it did so by half as much as the subsystem ([`FOLLOWS_TIMES`]): more, no host does to it.
//!
//! What remains beside a changed host is to run the commits on both sides of it again, on one host, into a store of their own.

use std::ops::Range;

use super::{Change, Floor, Judged, RUNS_EACH_SIDE_MIN, RunTime, SubsystemTimes, changes_of, median, placed_runs};
use crate::machine::Calibration;
use crate::series::Series;

/// Of a rank sum from that of chance, so that a calibration has moved. All of five runs below all of five others are 2.6.
const MOVED_DEVIATIONS: f64 = 2.5;
/// A subsystem that does nothing but wait for memory moves as the calibration does. That is of the fastest of some windows, and
/// neighbours come and go in a minute: on average they may take twice as much.
const FOLLOWS_TIMES: f64 = 2.0;

/// The host of the runs takes another time since some commit.
#[derive(Debug, Clone, PartialEq)]
pub struct HostChange {
    /// The last commit that surely was run on the host as before, the first that surely was not, and the likeliest one: places in
    /// the series.
    pub good: usize,
    pub bad: usize,
    pub likely: usize,
    /// Medians of the runs.
    pub before: Calibration,
    pub after: Calibration,
    /// Subsystems that changed there, of which nobody can say by whom.
    pub unjudged: Vec<String>,
}

impl HostChange {
    /// For a person: `the host changed, likeliest with c10, after c09 (a wait for memory took 124 ns, then 290), and with it what no commit is
    /// blamed for: ai, net`.
    pub fn in_words(&self, series: &Series<'_>) -> String {
        let commit = |place: usize| series.commits[place].commit;
        let mut moved = Vec::new();
        let mut tell = |what: &str, before: f64, after: f64, digits: usize| {
            let (before, after) = (format!("{before:.digits$}"), format!("{after:.digits$}"));
            if before != after {
                moved.push(format!("{what} took {before} ns, then {after}"));
            }
        };
        tell("a step of integers", self.before.integer_ns, self.after.integer_ns, 2);
        tell("a wait for memory", self.before.memory_ns, self.after.memory_ns, 0);
        let unjudged = match &self.unjudged[..] {
            [] => String::new(),
            names => format!(", and with it what no commit is blamed for: {}", names.join(", ")),
        };
        let (likely, good) = (commit(self.likely), commit(self.good));
        format!("the host changed, likeliest with {likely}, after {good} ({}){unjudged}", moved.join("; "))
    }
}

/// What is known of the host that a series' runs were on.
#[derive(Default)]
pub(super) struct Host {
    /// Integers and memory: logarithms of what each run says, in the order of runs.
    calibrations: [Vec<Option<f64>>; 2],
    /// Places of the commits of the runs.
    places: Vec<usize>,
    /// Where a calibration surely changes, by commit.
    pub changes: Vec<HostChange>,
}

impl Host {
    pub fn of(series: &Series<'_>) -> Self {
        let mut host = Self::default();
        for (place, run) in placed_runs(series) {
            let Calibration { integer_ns, memory_ns } = run.machine.calibration;
            host.places.push(place);
            for (of_runs, ns) in host.calibrations.iter_mut().zip([integer_ns, memory_ns]) {
                of_runs.push((ns.is_finite() && ns > 0.0).then(|| ns.ln()));
            }
        }
        let mut found = Judged::default();
        for of_runs in &host.calibrations {
            let told = of_runs.iter().zip(&host.places).enumerate();
            let runs = told
                .filter_map(|(number, (log, place))| Some(RunTime { number, place: *place, log: (*log)?, us: None }));
            let calibration = SubsystemTimes { name: String::new(), runs: runs.collect() };
            changes_of(&calibration, Floor::Hidden, &Self::default(), &mut found);
        }
        found.changes.sort_by_key(|change| change.likely);
        found.changes.dedup_by(|next, kept| host.is_one_change(kept, next));
        let likely: Vec<usize> = found.changes.iter().map(|change| change.likely).collect();
        for (number, Change { good, bad, likely: at, .. }) in found.changes.into_iter().enumerate() {
            let begin = if number == 0 { 0 } else { likely[number - 1] };
            let end = likely.get(number + 1).copied().unwrap_or(series.commits.len());
            host.changes.push(host.change((good, bad, at), begin..end));
        }
        host
    }

    /// Whether both calibrations tell of one change: by chance one is put some runs after the other. Then it is kept where most speaks for it.
    fn is_one_change(&self, kept: &mut Change, next: &Change) -> bool {
        let runs_until = |place: usize| self.places.partition_point(|of_run| *of_run < place);
        let is_one = next.good < kept.bad || runs_until(next.likely) - runs_until(kept.likely) < RUNS_EACH_SIDE_MIN;
        if is_one {
            (kept.good, kept.bad) = (kept.good.min(next.good), kept.bad.max(next.bad));
            if next.deviations > kept.deviations {
                (kept.likely, kept.deviations) = (next.likely, next.deviations);
            }
        }
        is_one
    }

    /// Which of these runs are the first on a changed host.
    pub fn borders(&self, runs: &[RunTime]) -> Vec<usize> {
        let borders = self.changes.iter().map(|change| runs.partition_point(|run| run.place < change.likely));
        let mut borders: Vec<usize> = borders.filter(|at| (1..runs.len()).contains(at)).collect();
        borders.dedup();
        borders
    }

    /// One at this place, the last and the first surely on either side of it being `good` and `bad`; between these commits there is no other.
    fn change(&self, (good, bad, likely): (usize, usize, usize), commits: Range<usize>) -> HostChange {
        let (before, after) = (self.usual(commits.start..likely), self.usual(likely..commits.end));
        HostChange { good, bad, likely, before, after, unjudged: Vec::new() }
    }

    /// Medians of the runs of these commits.
    fn usual(&self, commits: Range<usize>) -> Calibration {
        let [integer_ns, memory_ns] = self.calibrations.each_ref().map(|of_runs| {
            let told = of_runs.iter().zip(&self.places).filter(|(_, place)| commits.contains(place));
            let mut logs: Vec<f64> = told.filter_map(|(log, _)| *log).collect();
            if logs.is_empty() { 0.0 } else { median(&mut logs).exp() }
        });
        Calibration { integer_ns, memory_ns }
    }

    /// Whether calibrations moved with a shift between these runs, so far that it may be their host's. Nothing becomes slower with a host
    /// that becomes faster; unless what is common was taken off (`is_relative`), and others became faster still.
    pub fn explains(&self, before: &[RunTime], after: &[RunTime], shift_log: f64, is_relative: bool) -> bool {
        let moved = self.calibrations.iter().filter_map(|of_runs| moved(of_runs, before, after));
        let moved: f64 = if is_relative { moved.map(f64::abs).sum() } else { moved.sum::<f64>() * shift_log.signum() };
        FOLLOWS_TIMES * moved >= shift_log.abs()
    }

    /// Keeps a change that the host explains, with the host's own if that is known.
    pub fn take(&self, change: Change, before: &[RunTime], after: &[RunTime], host_changes: &mut Vec<HostChange>) {
        let Change { good, bad, likely, subsystem, .. } = change;
        let place = host_changes.iter().position(|known| known.good < bad && good < known.bad);
        let place = place.unwrap_or_else(|| {
            let commits = before[0].place..after[after.len() - 1].place + 1;
            host_changes.push(self.change((good, bad, likely), commits));
            host_changes.len() - 1
        });
        host_changes[place].unjudged.push(subsystem);
    }
}

/// By how much a calibration is another one after than before (logarithm); none if that may be chance.
fn moved(of_runs: &[Option<f64>], before: &[RunTime], after: &[RunTime]) -> Option<f64> {
    let told = |runs: &[RunTime]| runs.iter().filter_map(|run| *of_runs.get(run.number)?).collect::<Vec<_>>();
    let (before, after) = (told(before), told(after));
    let mut differences: Vec<f64> =
        before.iter().flat_map(|before| after.iter().map(move |after| after - before)).collect();
    if differences.is_empty() {
        return None;
    }
    let rank = |difference: &f64| if *difference == 0.0 { 0.0 } else { difference.signum() / 2.0 };
    let from_chance = differences.iter().map(rank).sum::<f64>() / differences.len() as f64;
    let runs = (before.len() + after.len()) as f64;
    let deviation = ((runs + 1.0) / (12.0 * differences.len() as f64)).sqrt();
    (from_chance.abs() >= MOVED_DEVIATIONS * deviation).then(|| median(&mut differences))
}
