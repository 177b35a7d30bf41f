//! Starvation level: how many workers give their cores to long tasks.
//!
//! Long tasks run on threads of low priority, on what worlds leave over. Where that is less than what comes in, they pile
//! up, and what waits to be freed with them, until memory is gone. So once a frame the estimated cost of all that waits is
//! held against two marks: above the high one the level rises by one, below the low one it falls by one, and between them
//! it stays, so that it does not swing with every task.
//!
//! The level is how many workers are to be left out of use ([`crate::ShortTaskPool::use_workers`]). One always works, and no
//! more are left out than there are threads for long tasks: a core that none of them can take would be lost. Reads no clock
//! and knows no thread: the same costs give the same levels.

use throng_platform::time::Nanos;

/// Between which costs of waiting work the level stays as it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StarvationMarks {
    /// Above it the level rises. Too low: worlds lose a core for work that would have been done anyway; too high: more
    /// waits, in memory, before anything is done about it.
    pub high: Nanos,
    /// Below it the level falls (at most `high`). Near `high`: the level swings; near 0: worlds get their cores back late.
    pub low: Nanos,
}

/// The level of one pool.
#[derive(Clone, Debug)]
pub struct StarvationLevel {
    marks: StarvationMarks,
    workers: usize,
    level: usize,
    level_max: usize,
}

impl StarvationLevel {
    /// Zero, for a pool of so many workers [>= 1] beside so many threads for long tasks.
    ///
    /// # Panics
    /// Without a worker, or when the low mark is above the high one.
    pub fn new(marks: StarvationMarks, workers: usize, long_threads: usize) -> StarvationLevel {
        assert!(workers >= 1);
        assert!(marks.low <= marks.high);
        StarvationLevel { marks, workers, level: 0, level_max: long_threads.min(workers - 1) }
    }

    /// Once a frame: `waiting` is the estimated cost of all long tasks that are not done. Returns the level.
    pub fn step(&mut self, waiting: Nanos) -> usize {
        if waiting > self.marks.high {
            self.level = (self.level + 1).min(self.level_max);
        } else if waiting < self.marks.low {
            self.level = self.level.saturating_sub(1);
        }
        self.level
    }

    /// 0 to the threads for long tasks, and to workers - 1.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Workers for short tasks: 1 at least.
    pub fn workers_used(&self) -> usize {
        self.workers - self.level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: StarvationMarks = StarvationMarks { high: Nanos::from_millis(100), low: Nanos::from_millis(20) };

    /// Levels after each frame's waiting cost.
    fn check(workers: usize, long_threads: usize, waiting_ms: &[u64], expect: &[usize]) {
        let mut starvation = StarvationLevel::new(MARKS, workers, long_threads);
        let levels: Vec<_> = waiting_ms.iter().map(|&ms| starvation.step(Nanos::from_millis(ms))).collect();
        assert_eq!(levels, expect, "{waiting_ms:?}");
        assert_eq!(starvation.workers_used() + starvation.level(), workers);
    }

    #[test]
    fn above_the_high_mark_it_rises_by_one_a_frame_and_below_the_low_one_it_falls() {
        check(8, 8, &[101, 500, 100, 20, 19, 0, 0], &[1, 2, 2, 2, 1, 0, 0]);
    }

    #[test]
    fn one_worker_is_always_left_and_no_core_is_given_that_nobody_can_take() {
        check(3, 9, &[900; 5], &[1, 2, 2, 2, 2]);
        check(1, 9, &[900; 3], &[0, 0, 0]);
        check(40, 2, &[900; 4], &[1, 2, 2, 2]);
    }

    /// What each frame brings, and how long the frame's worlds are at it.
    struct Load {
        cores: u64,
        frame: Nanos,
        /// Processor time of all worlds, which are cut evenly.
        worlds: Nanos,
        /// Processor time of the long tasks that come with a frame.
        long: Nanos,
    }

    /// A model of a host whose cores are all workers' and that has one thread for long tasks, which gets a core when there
    /// is one that no worker is at work on. Returns what waited at most, what waits in the end, and late frames.
    fn run(load: &Load, is_controlled: bool, frames: u32) -> (Nanos, Nanos, u32) {
        let mut starvation = StarvationLevel::new(MARKS, load.cores as usize, 1);
        let (mut waiting, mut most, mut late) = (Nanos::ZERO, Nanos::ZERO, 0);
        for _ in 0..frames {
            let used = starvation.workers_used() as u64;
            let busy = Nanos(load.worlds.0 / used);
            late += u32::from(busy > load.frame);
            let left = if used < load.cores { load.frame } else { load.frame.saturating_sub(busy) };
            waiting = (waiting + load.long).saturating_sub(left);
            most = most.max(waiting);
            if is_controlled {
                starvation.step(waiting);
            }
        }
        (most, waiting, late)
    }

    /// Promise: where long tasks get less than they need, they pile up for ever without the level; with it what waits is
    /// bounded, and no frame is late.
    #[test]
    fn a_pile_up_grows_without_the_level_and_is_bounded_with_it() {
        let ms = Nanos::from_millis;
        for (cores, worlds) in [(2, ms(14)), (40, ms(600))] {
            let load = Load { cores, frame: ms(16), worlds, long: ms(12) };
            let (_, after_1000, _) = run(&load, false, 1_000);
            let (_, after_2000, _) = run(&load, false, 2_000);
            assert!(after_1000 > ms(500) && after_2000 > ms(1_000), "{cores} cores: {after_1000:?} {after_2000:?}");
            let (most, _, late) = run(&load, true, 100_000);
            assert!(most <= MARKS.high + load.long, "{cores} cores: {most:?}");
            assert_eq!(late, 0, "{cores} cores");
        }
    }
}
