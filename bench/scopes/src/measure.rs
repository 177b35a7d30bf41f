//! Measuring something that takes a few nanoseconds: many calls in a row, in turns with the same calls without it.
//!
//! A call with the thing and a call without it do the same work, so that the difference is the thing's own cost; both
//! hashes must agree. The median of many short batches leaves out those during which the thread was interrupted.

use std::hint::black_box;

use harness::quantile;
use throng_platform::sched::{pin_this_thread, pinnable_cores};
use throng_platform::ticks::{self, Calibration};

/// Calls in a row between two readings of the clock: 0.01 ns of the clock's own cost per call, and short enough (some
/// 30 µs) that most batches are not interrupted.
pub(crate) const CALLS: usize = 1_000;

/// Rounds of [`work`] that take about 50 ns, one waiting for the other.
pub(crate) const LONG_WORK: u32 = 36;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub batches: usize,
    /// Just to see that it works.
    pub is_small: bool,
}

/// What a variant costs, and what its work came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub ns: f64,
    pub hash: u64,
}

/// What is done inside of every scope: `1 + ROUNDS` steps, each of which waits for the last.
#[inline(always)]
pub(crate) fn work<const ROUNDS: u32>(mut hash: u64) -> u64 {
    for _ in 0..=ROUNDS {
        hash = (hash ^ 0x2545_F491_4F6C_DD1D).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
    }
    hash
}

/// A batch of calls that pass a hash from one to the next.
#[inline(always)]
pub(crate) fn each(mut call: impl FnMut(u64) -> u64) -> impl FnMut(u64) -> u64 {
    move |mut hash| {
        for _ in 0..CALLS {
            hash = call(hash);
        }
        hash
    }
}

/// The work alone.
#[inline(always)]
pub(crate) fn nothing<const ROUNDS: u32>() -> impl FnMut(u64) -> u64 {
    each(work::<ROUNDS>)
}

/// Cost per scope of `with`, whose batches have `scopes` of them, against `without`. `between` follows every batch,
/// untimed.
pub(crate) fn compare(
    plan: &Plan,
    scopes: usize,
    mut with: impl FnMut(u64) -> u64,
    mut without: impl FnMut(u64) -> u64,
    mut between: impl FnMut(),
) -> Outcome {
    stay_on_one_core();
    let (mut hash_with, mut hash_without) = (1, 1);
    let (mut ticks_with, mut ticks_without) = (Vec::with_capacity(plan.batches), Vec::with_capacity(plan.batches));
    // The first batches find cold caches and sites that are not registered.
    for batch in 0..plan.batches + 3 {
        let length_with = timed(&mut with, &mut hash_with);
        between();
        let length_without = timed(&mut without, &mut hash_without);
        if batch >= 3 {
            ticks_with.push(length_with);
            ticks_without.push(length_without);
        }
    }
    assert_eq!(hash_with, hash_without, "both did the same work");
    let difference = quantile(&mut ticks_with, 0.5) - quantile(&mut ticks_without, 0.5);
    let ns = difference * Calibration::get().ns(1 << 30) as f64 / (1u64 << 30) as f64 / scopes as f64;
    Outcome { ns, hash: hash_with }
}

/// Keeps the calling thread on the last core that it may use; what the variant has started before may use the others.
fn stay_on_one_core() {
    // Where it is refused, the figures are less even and no less true.
    if let Some(&last) = pinnable_cores().last() {
        let _ = pin_this_thread(last);
    }
}

#[inline(never)]
fn timed(batch: &mut impl FnMut(u64) -> u64, hash: &mut u64) -> f64 {
    let begin = ticks::now();
    *hash = black_box(batch(black_box(*hash)));
    (ticks::now() - begin) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan = Plan { batches: 10, is_small: true };

    #[test]
    fn the_hash_says_what_work_was_done() {
        let outcome = compare(&PLAN, CALLS, nothing::<LONG_WORK>(), nothing::<LONG_WORK>(), || {});
        let again = compare(&PLAN, CALLS, nothing::<LONG_WORK>(), nothing::<LONG_WORK>(), || {});
        let less = compare(&PLAN, CALLS, nothing::<0>(), nothing::<0>(), || {});
        assert_eq!(outcome.hash, again.hash);
        assert_ne!(outcome.hash, less.hash);
    }

    #[test]
    #[should_panic(expected = "both did the same work")]
    fn faster_but_different_is_refused() {
        compare(&PLAN, CALLS, nothing::<0>(), nothing::<LONG_WORK>(), || {});
    }
}
