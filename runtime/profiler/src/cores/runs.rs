//! Runs: who had one core, from when to when.
//!
//! Memory: 16 bytes per switch, up to 1 MiB; the oldest make room.

use std::collections::VecDeque;

/// Switches kept per core: 3 s of one that switches 20,000 times a second, a minute of one that does 1,000 times.
pub(super) const RUNS_MAX: usize = 65_536;

/// In place of a thread's number: records are missing.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// From here on this thread has the core, up to the next run.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// (ns, monotonic clock)
    pub at_ns: u64,
    pub tid: u32,
}

/// The last runs of one core, in the order of time.
#[derive(Default)]
pub(super) struct Runs {
    runs: VecDeque<Run>,
}

impl Runs {
    /// The thread has the core from then on. Told twice, by whoever left and by whoever came, it counts once.
    pub fn push(&mut self, at_ns: u64, tid: u32) {
        let last = self.runs.back();
        if last.is_some_and(|last| last.tid == tid) {
            return;
        }
        let at_ns = last.map_or(at_ns, |last| last.at_ns.max(at_ns));
        if self.runs.len() == RUNS_MAX {
            self.runs.pop_front();
        }
        self.runs.push_back(Run { at_ns, tid });
    }

    /// Records up to here were lost, all of them after the last one that came.
    pub fn lose(&mut self, at_ns: u64) {
        if self.runs.is_empty() {
            self.push(at_ns, UNKNOWN);
        }
        self.lose_present();
    }

    /// How long the last run went on is not known.
    pub fn lose_present(&mut self) {
        if let Some(last) = self.runs.back_mut() {
            last.tid = UNKNOWN;
        }
    }

    /// The runs within a time, the first as if it had begun then. Allocates.
    pub fn between(&self, begin_ns: u64, end_ns: u64) -> Vec<Run> {
        let first = self.runs.partition_point(|run| run.at_ns <= begin_ns);
        let before = first.checked_sub(1).and_then(|place| self.runs.get(place));
        let before = before.map(|run| Run { at_ns: begin_ns, ..*run });
        let within = self.runs.range(first..).take_while(|run| run.at_ns <= end_ns);
        before.into_iter().chain(within.copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(runs: &Runs, window: (u64, u64), expect: &[(u64, u32)]) {
        let seen: Vec<(u64, u32)> = runs.between(window.0, window.1).iter().map(|run| (run.at_ns, run.tid)).collect();
        assert_eq!(seen, expect);
    }

    #[test]
    fn a_window_begins_with_who_has_the_core_then() {
        let mut runs = Runs::default();
        check(&runs, (0, 100), &[]);
        [(10, 7), (11, 7), (20, 0), (30, 8)].into_iter().for_each(|(at_ns, tid)| runs.push(at_ns, tid));
        check(&runs, (0, 100), &[(10, 7), (20, 0), (30, 8)]);
        check(&runs, (15, 29), &[(15, 7), (20, 0)]);
        check(&runs, (20, 30), &[(20, 0), (30, 8)]);
        check(&runs, (0, 5), &[]);
    }

    #[test]
    fn what_was_lost_is_nobody_s() {
        let mut runs = Runs::default();
        [(10, 7), (20, 8)].into_iter().for_each(|(at_ns, tid)| runs.push(at_ns, tid));
        runs.lose(50);
        runs.push(50, 8);
        check(&runs, (0, 100), &[(10, 7), (20, UNKNOWN), (50, 8)]);
        let mut runs = Runs::default();
        runs.lose(50);
        runs.push(60, 8);
        check(&runs, (0, 100), &[(50, UNKNOWN), (60, 8)]);
    }

    #[test]
    fn the_oldest_make_room() {
        let mut runs = Runs::default();
        (0..RUNS_MAX as u64 + 10).for_each(|n| runs.push(n * 10, n as u32 % 2));
        let seen = runs.between(0, u64::MAX);
        assert_eq!((seen.len(), seen[0].at_ns), (RUNS_MAX, 100));
    }
}
