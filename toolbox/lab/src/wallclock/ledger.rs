//! The ledger of one thread: every nanosecond of its life under our eyes, by what it did and on which stack.
//!
//! How long it ran, waited for a core and was blocked is counted by the kernel, so these totals are exact. What is
//! sampled is only how each total divides over stacks. Running time is divided over the samples taken on a core. The
//! rest is divided by the thread's [`Timeline`]: a wait after a preemption goes with what was running, a wait after
//! waking up with what it slept on.
//!
//! Where the kernel gives no timeline, only looks are left:
//!
//! ```text
//! looks          A     A     A         B     -         (the letter is the stack it slept on, - is running)
//! put on a core   ------------^--^--^----^-----^--
//! between        |exact|exact|  mixed  | mixed |
//! ```
//!
//! Between two looks at which it was never put on a core it slept on that one stack the whole time: exact, and known
//! without reading anything else. The blocked time of all other gaps is divided over the stacks at both their ends,
//! each with half the gap's length. That is free of bias: for looks at random moments, the chance that a gap with a
//! switch in it ends on a stack equals the share of that stack in such gaps, for short sleeps and for long ones. All
//! waiting goes with what was running then, which on a busy host is too much.

use std::collections::HashMap;

use super::process::SchedStat;
use super::timeline::{Means, Place, Timeline};

/// Names a stack among those seen in the run.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct StackId(pub(super) u32);

/// The ledger of one thread.
pub(super) struct Ledger {
    begun_ns: u64,
    last_ns: u64,
    first: SchedStat,
    last: SchedStat,
    /// Where the thread slept at the last look; nothing while it ran.
    asleep: Option<StackId>,
    exact: HashMap<StackId, u64>,
    mixed: HashMap<StackId, f64>,
    running: HashMap<StackId, u64>,
    /// Where the kernel tells of every switch.
    pub(super) timeline: Option<Timeline>,
    pub(super) looks: u64,
    /// Looks at which it slept and had not slept through: what the division of `mixed` rests on.
    looks_mixed: u64,
    /// Looks at which it slept, by stack: what a reader calls samples, beside those on a core.
    looks_asleep: HashMap<StackId, u64>,
}

/// Time of one stack or of one thread (ns).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    pub running_ns: u64,
    pub waiting_ns: u64,
    pub blocked_ns: u64,
    /// Looks and samples on which the division rests; a stretch slept through is one per look.
    pub samples: u64,
}

impl Times {
    pub fn wall_ns(&self) -> u64 {
        self.running_ns + self.waiting_ns + self.blocked_ns
    }

    pub fn add(&mut self, other: &Times) {
        self.running_ns += other.running_ns;
        self.waiting_ns += other.waiting_ns;
        self.blocked_ns += other.blocked_ns;
        self.samples += other.samples;
    }
}

impl Ledger {
    /// Opened at the first look.
    pub(super) fn open(now_ns: u64, stat: SchedStat, asleep: Option<StackId>, has_timeline: bool) -> Ledger {
        let mut ledger = Ledger {
            begun_ns: now_ns,
            last_ns: now_ns,
            first: stat,
            last: stat,
            asleep: None,
            exact: HashMap::new(),
            mixed: HashMap::new(),
            running: HashMap::new(),
            timeline: has_timeline.then(Timeline::default),
            looks: 0,
            looks_mixed: 0,
            looks_asleep: HashMap::new(),
        };
        if let Some(timeline) = &mut ledger.timeline {
            timeline.begin(now_ns, asleep.is_some());
            asleep.into_iter().for_each(|stack| timeline.look(now_ns, stack));
        }
        ledger.note_look(asleep);
        ledger
    }

    /// The stack on which it has slept through since the last look, if `stat` says that it has.
    pub(super) fn slept_through(&self, stat: SchedStat) -> Option<StackId> {
        self.asleep.filter(|_| stat.switches == self.last.switches && stat.running_ns == self.last.running_ns)
    }

    /// One look: what the kernel has counted by `now_ns`, and the stack if it sleeps.
    pub(super) fn look(&mut self, now_ns: u64, stat: SchedStat, asleep: Option<StackId>) {
        let gap_ns = now_ns.saturating_sub(self.last_ns);
        match self.slept_through(stat) {
            Some(stack) if asleep == Some(stack) => *self.exact.entry(stack).or_default() += gap_ns,
            _ => {
                if let (Some(timeline), Some(stack)) = (&mut self.timeline, asleep) {
                    timeline.look(now_ns, stack);
                }
                self.take_back_waiting(gap_ns, stat);
                self.looks_mixed += u64::from(asleep.is_some());
                for end in [self.asleep, asleep].into_iter().flatten() {
                    *self.mixed.entry(end).or_default() += gap_ns as f64 / 2.0;
                }
            }
        }
        self.last_ns = self.last_ns.max(now_ns);
        self.last = stat;
        self.note_look(asleep);
    }

    /// The wait for a core is counted when it ends. If it is longer than this gap, the thread had been woken before
    /// the last look, and part of what was booked as slept through was waiting.
    fn take_back_waiting(&mut self, gap_ns: u64, stat: SchedStat) {
        let waited_ns = stat.waiting_ns.saturating_sub(self.last.waiting_ns);
        if let Some(exact_ns) = self.asleep.and_then(|stack| self.exact.get_mut(&stack)) {
            *exact_ns = exact_ns.saturating_sub(waited_ns.saturating_sub(gap_ns));
        }
    }

    /// It got a core.
    pub(super) fn got_core(&mut self, at_ns: u64) {
        let means = self.means();
        if let Some(timeline) = &mut self.timeline {
            timeline.on_core(at_ns, means);
        }
    }

    /// It left its core, preempted or to sleep.
    pub(super) fn left_core(&mut self, at_ns: u64, was_preempted: bool, place: Option<Place>) {
        if let Some(timeline) = &mut self.timeline {
            timeline.off_core(at_ns, was_preempted, place);
        }
    }

    /// No more looks follow.
    pub(super) fn close(&mut self) {
        let means = self.means();
        if let Some(timeline) = &mut self.timeline {
            timeline.end(self.last_ns, means);
        }
    }

    fn means(&self) -> Means {
        let waited_ns = self.last.waiting_ns.saturating_sub(self.first.waiting_ns);
        let (preempted_ns, sleeps) =
            self.timeline.as_ref().map_or((0, 0), |timeline| (timeline.preempted_ns, timeline.sleeps));
        let gaps = self.looks.saturating_sub(1).max(1) as f64;
        Means {
            look_period_ns: ((self.last_ns - self.begun_ns) as f64 / gaps).max(1.0),
            wait_ns: waited_ns.saturating_sub(preempted_ns) as f64 / sleeps.max(1) as f64,
        }
    }

    /// By how much the share that a stack has of the wall time may be off, because its switches were not noted: 0 where
    /// they were.
    ///
    /// A share of a sum that rests on `n` looks at random moments is off by two standard deviations in one case of
    /// twenty: `1 / sqrt(n)` where it is a half, and less elsewhere. Waits are all booked on what was running, and may
    /// belong to a sleep.
    pub(super) fn share_error_max(&self) -> f64 {
        if self.timeline.is_some() {
            return 0.0;
        }
        let totals = self.totals();
        let exact_ns = self.exact.values().sum::<u64>().min(totals.blocked_ns);
        let estimated_ns = (totals.blocked_ns - exact_ns) as f64 / (self.looks_mixed.max(1) as f64).sqrt();
        (estimated_ns + totals.waiting_ns as f64) / totals.wall_ns().max(1) as f64
    }

    pub(super) fn switches_per_s(&self) -> f64 {
        let switches = self.last.switches.saturating_sub(self.first.switches);
        // Over less than a tenth of a second a rate says nothing.
        switches as f64 * 1e9 / (self.last_ns - self.begun_ns).max(100_000_000) as f64
    }

    fn note_look(&mut self, asleep: Option<StackId>) {
        self.asleep = asleep;
        self.looks += 1;
        if let Some(stack) = asleep {
            *self.looks_asleep.entry(stack).or_default() += 1;
        }
    }

    /// One sample taken while it had a core.
    pub(super) fn ran(&mut self, stack: StackId) {
        *self.running.entry(stack).or_default() += 1;
    }

    pub(super) fn samples_on_core(&self) -> u64 {
        self.running.values().sum()
    }

    /// Totals since the first look, as the kernel counted them.
    pub(super) fn totals(&self) -> Times {
        let wall_ns = self.last_ns - self.begun_ns;
        // The kernel counts a running thread at its own ticks, so a run of a few ms may seem longer than it was.
        let running_ns = self.last.running_ns.saturating_sub(self.first.running_ns).min(wall_ns);
        let waiting_ns = self.last.waiting_ns.saturating_sub(self.first.waiting_ns).min(wall_ns - running_ns);
        let samples = self.samples_on_core() + self.looks_asleep.values().sum::<u64>();
        Times { running_ns, waiting_ns, blocked_ns: wall_ns - running_ns - waiting_ns, samples }
    }

    /// The totals divided over stacks; adds up to [`Ledger::totals`] to the nanosecond.
    ///
    /// `kernel_ns` of the running time was inside the kernel where samples do not reach, and is booked on
    /// `unseen.in_kernel`.
    pub(super) fn by_stack(&self, unseen: &Unseen, kernel_ns: u64) -> Vec<(StackId, Times)> {
        let totals = self.totals();
        let mut by_stack: HashMap<StackId, Times> = HashMap::new();

        let kernel_ns = kernel_ns.min(totals.running_ns);
        let mut on_core: Vec<(StackId, f64)> = self.running.iter().map(|(&stack, &n)| (stack, n as f64)).collect();
        let seen: f64 = on_core.iter().map(|(_, weight)| weight).sum();
        let (sampled_ns, in_kernel) = ((totals.running_ns - kernel_ns) as f64, kernel_ns as f64);
        if seen == 0.0 && sampled_ns > 0.0 {
            on_core.push((unseen.running, sampled_ns));
        } else if seen > 0.0 {
            on_core.iter_mut().for_each(|(_, weight)| *weight *= sampled_ns / seen);
        }
        if kernel_ns > 0 {
            on_core.push((unseen.in_kernel, in_kernel));
        }
        if on_core.is_empty() {
            on_core.push((unseen.running, 1.0));
        }
        divide(totals.running_ns, &mut on_core, |stack, ns| by_stack.entry(stack).or_default().running_ns += ns);
        let mut off_core = self.off_core(&totals, unseen);
        let preempted_ns = off_core.preempted_ns;
        let mut waiting = |stack, ns| by_stack.entry(stack).or_default().waiting_ns += ns;
        divide(preempted_ns, &mut on_core, &mut waiting);
        divide(totals.waiting_ns - preempted_ns, &mut off_core.woken, &mut waiting);
        let exact_ns = off_core.exact_ns;
        let mut blocked = |stack, ns| by_stack.entry(stack).or_default().blocked_ns += ns;
        divide(exact_ns, &mut off_core.exact, &mut blocked);
        divide(totals.blocked_ns - exact_ns, &mut off_core.estimated, &mut blocked);

        for (stack, &looks) in &self.looks_asleep {
            by_stack.entry(*stack).or_default().samples += looks;
        }
        for (stack, &samples) in &self.running {
            by_stack.entry(*stack).or_default().samples += samples;
        }
        let mut by_stack: Vec<_> =
            by_stack.into_iter().filter(|(_, times)| times.wall_ns() > 0 || times.samples > 0).collect();
        by_stack.sort_unstable_by_key(|(stack, _)| *stack);
        by_stack
    }
}

/// How the time off the core divides: three sums over stacks, with their weights.
struct OffCore {
    /// Of the waiting time, what followed a preemption; the rest followed a sleep on the stacks of `woken`.
    preempted_ns: u64,
    woken: Vec<(StackId, f64)>,
    /// Of the blocked time, what needs no estimate.
    exact_ns: u64,
    exact: Vec<(StackId, f64)>,
    estimated: Vec<(StackId, f64)>,
}

impl Ledger {
    fn off_core(&self, totals: &Times, unseen: &Unseen) -> OffCore {
        let asleep = self.timeline.as_ref().map(Timeline::asleep).unwrap_or_default();
        let mut parts = match &self.timeline {
            Some(timeline) if !asleep.is_empty() => OffCore {
                preempted_ns: timeline.preempted_ns.min(totals.waiting_ns),
                woken: asleep.iter().map(|(&stack, asleep)| (stack, asleep.count)).collect(),
                exact_ns: asleep.values().map(|asleep| asleep.exact_ns).sum::<f64>() as u64,
                exact: asleep.iter().map(|(&stack, asleep)| (stack, asleep.exact_ns)).collect(),
                estimated: asleep.iter().map(|(&stack, asleep)| (stack, asleep.estimated_ns)).collect(),
            },
            _ => OffCore {
                preempted_ns: totals.waiting_ns,
                woken: Vec::new(),
                exact_ns: self.exact.values().sum::<u64>(),
                exact: self.exact.iter().map(|(&stack, &ns)| (stack, ns as f64)).collect(),
                estimated: self.mixed.iter().map(|(&stack, &weight)| (stack, weight)).collect(),
            },
        };
        parts.exact_ns = parts.exact_ns.min(totals.blocked_ns);
        if parts.estimated.iter().all(|(_, weight)| *weight <= 0.0) {
            parts.estimated = match parts.exact_ns {
                0 => vec![(unseen.blocked, 1.0)],
                _ => parts.exact.clone(),
            };
        }
        parts
    }
}

/// Stacks that stand for time of which no stack was seen.
pub(super) struct Unseen {
    /// It ran, too shortly to be sampled, or where the host forbids samples.
    pub(super) running: StackId,
    /// It ran inside the kernel, and samples of the kernel are forbidden.
    pub(super) in_kernel: StackId,
    /// It slept, never long enough to be looked at.
    pub(super) blocked: StackId,
}

/// Divides `total_ns` in proportion to the weights, to the nanosecond: each gets the difference of two rounded sums.
fn divide(total_ns: u64, weights: &mut [(StackId, f64)], mut give: impl FnMut(StackId, u64)) {
    // In one order, whatever the map's was, so that one run is always written the same way.
    weights.sort_unstable_by_key(|(stack, _)| *stack);
    let all: f64 = weights.iter().map(|(_, weight)| weight).sum();
    if all <= 0.0 {
        return;
    }
    let (mut sum, mut given) = (0.0, 0);
    let count = weights.len();
    for (index, (stack, weight)) in weights.iter().enumerate() {
        sum += weight;
        let upto = if index + 1 == count { total_ns } else { ((sum / all) * total_ns as f64) as u64 };
        let upto = upto.clamp(given, total_ns);
        if upto > given {
            give(*stack, upto - given);
        }
        given = upto;
    }
}

#[cfg(test)]
mod tests;
