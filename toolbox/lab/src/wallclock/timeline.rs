//! The timeline of one thread: when it left its core and why, so that a look at it stands for a known stretch of time.
//!
//! ```text
//! on a core  ----      -------   ---      -----------
//! off              A           p      ?                 A: asleep, hit by a look; p: preempted; ?: asleep, not hit
//! looks           |        |         |        |
//! ```
//!
//! A thread that leaves its core to sleep does not move until it is back on one: sleeping, and waiting for a core after
//! waking, all belong to the stack it slept on. A look that finds it asleep tells the stack of the whole stretch. Long
//! stretches are always hit; of short ones, those that were hit stand for the others: with a chance of 1/10 to be hit,
//! one counts as ten of its length. (Horvitz and Thompson's estimate; its sum is then brought to what the kernel
//! counted.)
//!
//! Where the kernel also tells the instruction and the stack pointer with which the thread left its core, nothing of
//! that is needed for most stretches: those at one such [`Place`] have the stack that looks found there, whether they
//! were hit or not. Estimates then only divide the few places that are reached on several ways.
//!
//! A thread that is preempted could go on: the stretch belongs to what it was running.

use std::collections::HashMap;

use super::ledger::StackId;

/// Looks inside the stretch that is open, or in switches that are not read from the ring yet: a few.
const PENDING_MAX: usize = 64;

/// Places of one thread. Of those beyond, only the instruction is kept: a stack pointer that differs every time tells
/// nothing.
const PLACES_MAX: usize = 4_096;

/// Where a thread left its core: the registers of its program.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) instruction: u64,
    /// 0 stands for any.
    pub(super) stack: u64,
}

/// Stretches off the core, by stack.
#[derive(Default)]
pub(super) struct Timeline {
    /// The stretch that is open.
    off: Option<Off>,
    /// Looks of which it is not known yet to which stretch they belong, oldest first.
    pending: Vec<(u64, StackId)>,
    asleep: HashMap<StackId, Asleep>,
    places: HashMap<Place, AtPlace>,
    pub(super) preempted_ns: u64,
    /// Stretches that began with going to sleep.
    pub(super) sleeps: u64,
}

#[derive(Copy, Clone)]
struct Off {
    since_ns: u64,
    was_preempted: bool,
    place: Option<Place>,
}

/// What the stretches of one place amount to.
#[derive(Clone, Default)]
struct AtPlace {
    slept_ns: f64,
    count: f64,
    /// Estimated sleep by stack, from the stretches that were hit.
    stacks: HashMap<StackId, f64>,
}

/// What the stretches of one stack amount to.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(super) struct Asleep {
    /// Sleep in stretches that no looks could miss (ns).
    pub(super) exact_ns: f64,
    /// Sleep in the others, estimated (ns).
    pub(super) estimated_ns: f64,
    /// Number of all, estimated.
    pub(super) count: f64,
}

/// What is known, when a stretch ends, of looks and waits.
#[derive(Copy, Clone, Debug)]
pub(super) struct Means {
    /// Time between looks (ns, > 0).
    pub(super) look_period_ns: f64,
    /// Wait for a core after each sleep (ns).
    pub(super) wait_ns: f64,
}

impl Timeline {
    /// Begins at a look: a thread that sleeps has done so since then, as far as this timeline is concerned.
    pub(super) fn begin(&mut self, now_ns: u64, asleep: bool) {
        self.off = asleep.then_some(Off { since_ns: now_ns, was_preempted: false, place: None });
    }

    /// A look found it asleep.
    pub(super) fn look(&mut self, now_ns: u64, stack: StackId) {
        if self.pending.len() == PENDING_MAX {
            self.pending.remove(0);
        }
        self.pending.push((now_ns, stack));
    }

    pub(super) fn off_core(&mut self, at_ns: u64, was_preempted: bool, place: Option<Place>) {
        self.off = Some(Off { since_ns: at_ns, was_preempted, place });
    }

    pub(super) fn on_core(&mut self, at_ns: u64, means: Means) {
        if let Some(off) = self.off.take() {
            self.close(off, at_ns, means);
        }
    }

    /// The end of the run closes the stretch that is open.
    pub(super) fn end(&mut self, now_ns: u64, means: Means) {
        self.on_core(now_ns + 1, means);
    }

    fn close(&mut self, off: Off, at_ns: u64, means: Means) {
        let Off { since_ns, was_preempted, place } = off;
        let length_ns = at_ns.saturating_sub(since_ns);
        let hit = self.pending.iter().rev().find(|(look_ns, _)| (since_ns..at_ns).contains(look_ns)).map(|hit| hit.1);
        self.pending.retain(|(look_ns, _)| *look_ns >= at_ns);
        if was_preempted {
            self.preempted_ns += length_ns;
            return;
        }
        self.sleeps += 1;
        // While it waits for a core no look finds it asleep.
        let slept_ns = (length_ns as f64 - means.wait_ns).max(1.0);
        let chance = chance_of_a_look(slept_ns / means.look_period_ns);
        if let Some(place) = place {
            let is_known = self.places.contains_key(&place) || self.places.len() < PLACES_MAX;
            let at = self.places.entry(if is_known { place } else { Place { stack: 0, ..place } }).or_default();
            at.slept_ns += slept_ns;
            at.count += 1.0;
            if let Some(stack) = hit {
                *at.stacks.entry(stack).or_default() += slept_ns / chance;
            }
        } else if let Some(stack) = hit {
            let sum = self.asleep.entry(stack).or_default();
            match chance {
                1.0 => sum.exact_ns += slept_ns,
                _ => sum.estimated_ns += slept_ns / chance,
            }
            sum.count += 1.0 / chance;
        }
    }

    /// Every stack it was found sleeping on.
    pub(super) fn asleep(&self) -> HashMap<StackId, Asleep> {
        let mut asleep = self.asleep.clone();
        // Places at which no look hit take the stacks of other places with the same instruction: where a frame's size
        // varies, so does the stack pointer.
        let mut by_instruction: HashMap<u64, HashMap<StackId, f64>> = HashMap::new();
        for (place, at) in &self.places {
            let sums = by_instruction.entry(place.instruction).or_default();
            at.stacks.iter().for_each(|(stack, ns)| *sums.entry(*stack).or_default() += ns);
        }
        for (place, at) in &self.places {
            let stacks = if at.stacks.is_empty() { &by_instruction[&place.instruction] } else { &at.stacks };
            let sum: f64 = stacks.values().sum();
            for (stack, ns) in stacks {
                let into = asleep.entry(*stack).or_default();
                into.exact_ns += at.slept_ns * ns / sum;
                into.count += at.count * ns / sum;
            }
        }
        asleep
    }
}

/// The chance that a stretch is hit if one random moment of every period is looked at; `length` in periods.
///
/// A stretch that is shorter than a period lies in one period or in parts of two, one that is longer than two covers a
/// whole one: averaged over where it begins.
fn chance_of_a_look(length: f64) -> f64 {
    match length {
        _ if length <= 1.0 => length - length.powi(3) / 6.0,
        _ if length < 2.0 => 1.0 - (2.0 - length).powi(3) / 6.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    const A: StackId = StackId(0);
    const B: StackId = StackId(1);
    const C: StackId = StackId(2);
    const MEANS: Means = Means { look_period_ns: 1_000.0, wait_ns: 0.0 };

    fn of(timeline: &Timeline, stack: StackId) -> Asleep {
        timeline.asleep().get(&stack).copied().unwrap_or_default()
    }

    #[test]
    fn a_look_tells_the_stack_of_the_whole_stretch_even_when_the_switch_is_read_later() {
        let mut timeline = Timeline::default();
        timeline.begin(0, true);
        timeline.look(0, A);
        timeline.on_core(3_000, MEANS);
        timeline.look(5_000, B);
        timeline.off_core(4_000, false, None);
        timeline.on_core(9_000, Means { wait_ns: 500.0, ..MEANS });
        timeline.off_core(10_000, true, None);
        timeline.on_core(10_700, MEANS);
        assert_eq!(of(&timeline, A), Asleep { exact_ns: 3_000.0, estimated_ns: 0.0, count: 1.0 });
        assert_eq!(of(&timeline, B).exact_ns, 4_500.0);
        assert_eq!((timeline.preempted_ns, timeline.sleeps), (700, 2));
    }

    #[test]
    fn a_short_sleep_that_was_hit_stands_for_those_that_were_not() {
        let mut timeline = Timeline::default();
        timeline.off_core(60_000, false, None);
        timeline.look(60_050, B);
        timeline.on_core(60_100, MEANS);
        timeline.off_core(70_000, false, None);
        timeline.on_core(70_100, MEANS);
        let found = of(&timeline, B);
        assert!((found.count - 10.0).abs() < 0.1 && (found.estimated_ns - 1_000.0).abs() < 10.0, "{found:?}");
        assert_eq!(timeline.sleeps, 2);
    }

    #[test]
    fn places_tell_the_stack_of_stretches_that_no_look_hit() {
        let at = |instruction, stack| Some(Place { instruction, stack });
        let mut timeline = Timeline::default();
        let mut sleep = |begin_ns, place, look: Option<StackId>| {
            timeline.off_core(begin_ns, false, place);
            look.into_iter().for_each(|stack| timeline.look(begin_ns + 10, stack));
            timeline.on_core(begin_ns + 100, MEANS);
        };
        sleep(1_000, at(7, 50), Some(A));
        sleep(2_000, at(7, 60), Some(B));
        sleep(3_000, at(7, 60), None);
        sleep(4_000, at(7, 70), None);
        sleep(5_000, at(8, 50), None);
        let (a, b) = (of(&timeline, A), of(&timeline, B));
        assert_eq!((a.exact_ns, b.exact_ns), (150.0, 250.0), "half of the third place each; the last is not known");
        assert_eq!((a.count, b.count, timeline.sleeps), (1.5, 2.5, 5));
    }

    #[test]
    fn the_end_closes_what_is_open_and_lost_switches_do_no_harm() {
        let mut timeline = Timeline::default();
        timeline.on_core(10, MEANS);
        timeline.off_core(100, false, None);
        timeline.off_core(2_000, false, None);
        timeline.look(2_500, A);
        timeline.end(4_000, MEANS);
        assert_eq!(of(&timeline, A).exact_ns, 2_001.0);
        assert!(Timeline::default().asleep().is_empty());
    }

    /// Sleeps of 2 to 5 periods on A, of 0.02 to 0.3 on B, of 0.5 to 1.5 on C: all get what they took.
    #[test]
    fn long_and_short_sleeps_get_their_time() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut timeline = Timeline::default();
        let (mut now, mut look_at, mut truth) = (0_u64, 300_u64, [0_u64; 3]);
        for round in 0..60_000_u64 {
            let (stack, length) = match round % 12 {
                0 => (A, rng.random_range(2_000..5_000)),
                1..3 => (C, rng.random_range(500..1_500)),
                _ => (B, rng.random_range(20..300)),
            };
            timeline.off_core(now, false, None);
            let end = now + length;
            while look_at < end + 100 {
                if (now..end).contains(&look_at) {
                    timeline.look(look_at, stack);
                }
                look_at = (look_at / 1_000 + 1) * 1_000 + rng.random_range(0..1_000);
            }
            timeline.on_core(end, MEANS);
            truth[stack.0 as usize] += length;
            now = end + 100;
        }
        for (stack, truth) in [A, B, C].map(|stack| (stack, truth[stack.0 as usize] as f64)) {
            let found = of(&timeline, stack);
            let ns = found.exact_ns + found.estimated_ns;
            assert!((ns / truth - 1.0).abs() < 0.03, "{stack:?}: {ns} of {truth}");
        }
    }
}
