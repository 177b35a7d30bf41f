//! The profile: the time of every thread by stack, with names, ready to be reported and written.

use std::collections::HashMap;

use super::ledger::{Times, Unseen as UnseenStacks};
use super::names::{NamedFrame, Names};
use super::sampler::Sampled;
use super::source::{OnCore, Source};
use super::unwind::{Unseen, UnwindCounts};

/// Where the wall time of a process went, while it was sampled.
pub struct Profile {
    pub pid: u32,
    pub name: String,
    pub seconds: f64,
    pub hz: u32,
    /// In the order in which they were first seen.
    pub threads: Vec<ThreadProfile>,
    /// Distinct frames, into which stacks index.
    pub frames: Vec<NamedFrame>,
    pub source: Source,
    pub unwinding: UnwindCounts,
    /// Times that every thread was looked at, and stretches in which that came too late.
    pub looks: u64,
    pub looks_missed: u64,
    /// Samples of running threads for which their ring had no room.
    pub samples_lost: u64,
    /// Stacks that kept changing while they were read, and were taken as they were.
    pub stacks_torn: u64,
    /// Threads that could not be looked at.
    pub threads_unseen: u64,
    /// The process ended before the time was over.
    pub has_ended: bool,
    /// Processor time of the sampling, as a share of one core, and of giving names afterwards (s).
    pub own_cpu_share: f64,
    pub naming_cpu_s: f64,
}

/// One thread's part.
pub struct ThreadProfile {
    pub tid: u32,
    pub name: String,
    pub times: Times,
    /// How often it was put on a core.
    pub switches_per_s: f64,
    /// By how much a function's share of the wall time may be off, because the thread's switches were not noted
    /// (right in 19 cases of 20); 0 where they were.
    pub share_error_max: f64,
    /// Callers first; indices into [`Profile::frames`]. Their times add up to `times`.
    pub stacks: Vec<(Vec<u32>, Times)>,
}

/// A function's part of a thread, with everything it called.
#[derive(Clone, Debug)]
pub struct FunctionTimes {
    pub function: String,
    pub object: String,
    pub inclusive: Times,
    pub own: Times,
}

impl ThreadProfile {
    /// Every function of the thread, the largest inclusive wall time first.
    pub fn functions(&self, frames: &[NamedFrame]) -> Vec<FunctionTimes> {
        let mut by_function: HashMap<(&str, &str), (Times, Times)> = HashMap::new();
        for (stack, times) in &self.stacks {
            let mut seen: Vec<(&str, &str)> = stack
                .iter()
                .filter_map(|frame| frames.get(*frame as usize))
                .map(|frame| (frame.function.as_str(), frame.object.as_str()))
                .collect();
            if let Some(innermost) = seen.last() {
                by_function.entry(*innermost).or_default().1.add(times);
            }
            // A function that calls itself counts once.
            seen.sort_unstable();
            seen.dedup();
            for function in seen {
                by_function.entry(function).or_default().0.add(times);
            }
        }
        let mut functions: Vec<FunctionTimes> = by_function
            .into_iter()
            .map(|((function, object), (inclusive, own))| FunctionTimes {
                function: function.to_owned(),
                object: object.to_owned(),
                inclusive,
                own,
            })
            .collect();
        functions.sort_by(|a, b| {
            b.inclusive.wall_ns().cmp(&a.inclusive.wall_ns()).then_with(|| a.function.cmp(&b.function))
        });
        functions
    }
}

/// Names what was sampled, and divides each thread's time over its stacks.
pub(super) fn name(mut sampled: Sampled, hz: u32) -> Profile {
    let unseen = UnseenStacks {
        running: sampled.stacks.unseen(Unseen::Running),
        in_kernel: sampled.stacks.unseen(Unseen::InKernel),
        blocked: sampled.stacks.unseen(Unseen::Blocked),
    };
    let mut names = Names::new(&sampled.process, &sampled.space.images);
    let mut frames = FrameTable::default();
    let threads = sampled.threads.iter().map(|thread| {
        let times = thread.ledger.totals();
        let kernel_ns = match sampled.source.on_core {
            OnCore::ProgramOnly if thread.has_sampler => {
                times.running_ns.saturating_sub(thread.ledger.samples_on_core() * sampled.cpu_period_ns)
            }
            _ => 0,
        };
        let by_stack = thread.ledger.by_stack(&unseen, kernel_ns);
        let stacks = by_stack
            .into_iter()
            .map(|(stack, times)| {
                let callers_first = sampled.stacks.frames(stack).iter().rev();
                let named = callers_first.flat_map(|frame| frames.indices_of(names.of(*frame))).collect();
                (named, times)
            })
            .collect();
        ThreadProfile {
            tid: thread.id,
            name: thread.name.clone(),
            times,
            switches_per_s: thread.ledger.switches_per_s(),
            share_error_max: thread.ledger.share_error_max(),
            stacks,
        }
    });
    let threads = threads.collect();
    Profile {
        pid: sampled.process.id,
        name: sampled.process.name.clone(),
        seconds: sampled.wall.as_secs_f64(),
        hz,
        threads,
        frames: frames.frames,
        source: sampled.source.clone(),
        unwinding: sampled.space.counts,
        looks: sampled.looks,
        looks_missed: sampled.looks_missed,
        samples_lost: sampled.samples_lost,
        stacks_torn: sampled.stacks_torn,
        threads_unseen: sampled.threads_unseen,
        has_ended: sampled.has_ended,
        own_cpu_share: 0.0,
        naming_cpu_s: 0.0,
    }
}

/// Distinct functions by number.
#[derive(Default)]
struct FrameTable {
    frames: Vec<NamedFrame>,
    /// By function, object and source file.
    numbers: HashMap<(String, String, Option<String>), u32>,
}

impl FrameTable {
    /// Frames at several lines of one function are one; its line is the lowest of them.
    fn indices_of(&mut self, named: &[NamedFrame]) -> Vec<u32> {
        let number = |frame: &NamedFrame| {
            let key = (frame.function.clone(), frame.object.clone(), frame.file.clone());
            let number = *self.numbers.entry(key).or_insert_with(|| {
                self.frames.push(frame.clone());
                self.frames.len() as u32 - 1
            });
            let known = &mut self.frames[number as usize];
            if frame.line != 0 && (known.line == 0 || frame.line < known.line) {
                known.line = frame.line;
            }
            number
        };
        named.iter().map(number).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn times(running_ns: u64, blocked_ns: u64) -> Times {
        Times { running_ns, waiting_ns: 0, blocked_ns, samples: 1 }
    }

    /// `main` runs 1 ms itself, 2 ms in `work` through `work`, and sleeps 7 ms in `rest`.
    pub(in super::super) fn example() -> Profile {
        let frame = |function: &str, line| NamedFrame {
            function: function.to_owned(),
            object: "example".to_owned(),
            file: Some("example.c".to_owned()),
            line,
        };
        let stacks = vec![
            (vec![0], times(1_000_000, 0)),
            (vec![0, 1, 1], times(2_000_000, 0)),
            (vec![0, 2], times(0, 7_000_000)),
        ];
        let mut all = Times::default();
        stacks.iter().for_each(|(_, times)| all.add(times));
        Profile {
            pid: 42,
            name: "example".to_owned(),
            seconds: 0.01,
            hz: 100,
            threads: vec![ThreadProfile {
                tid: 42,
                name: "example".to_owned(),
                times: all,
                switches_per_s: 300.0,
                share_error_max: 0.0,
                stacks,
            }],
            frames: vec![frame("main", 3), frame("work", 9), frame("rest; deep", 20)],
            source: Source::default(),
            unwinding: UnwindCounts::default(),
            looks: 3,
            looks_missed: 0,
            samples_lost: 0,
            stacks_torn: 0,
            threads_unseen: 0,
            has_ended: false,
            own_cpu_share: 0.01,
            naming_cpu_s: 0.1,
        }
    }

    #[test]
    fn functions_count_once_per_stack_with_all_they_call() {
        let profile = example();
        let found: Vec<_> = profile.threads[0]
            .functions(&profile.frames)
            .into_iter()
            .map(|one| (one.function, one.inclusive.wall_ns() / 1_000_000, one.own.wall_ns() / 1_000_000))
            .collect();
        assert_eq!(found, [("main".into(), 10, 1), ("rest; deep".into(), 7, 7), ("work".into(), 2, 2)]);
    }
}
