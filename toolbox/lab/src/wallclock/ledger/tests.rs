//! The ledger against what made-up threads really did: totals exact, sleeps matched to their stacks.

use super::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const A: StackId = StackId(1);
const B: StackId = StackId(2);
const UNSEEN: Unseen = Unseen { running: StackId(90), in_kernel: StackId(91), blocked: StackId(92) };

fn stat(running_ns: u64, waiting_ns: u64, switches: u64) -> SchedStat {
    SchedStat { running_ns, waiting_ns, switches }
}

#[track_caller]
fn check(ledger: &Ledger, kernel_ns: u64, expect: &[(StackId, u64, u64, u64)]) {
    let found: Vec<_> = ledger
        .by_stack(&UNSEEN, kernel_ns)
        .into_iter()
        .map(|(stack, times)| (stack, times.running_ns, times.waiting_ns, times.blocked_ns))
        .collect();
    assert_eq!(found, expect);
}

#[test]
fn a_thread_that_slept_through_is_booked_without_an_estimate() {
    let mut ledger = Ledger::open(1_000, stat(5, 5, 5), Some(A), false);
    assert_eq!(ledger.slept_through(stat(5, 5, 5)), Some(A));
    ledger.look(4_000, stat(5, 5, 5), Some(A));
    check(&ledger, 0, &[(A, 0, 0, 3_000)]);
}

#[test]
fn running_and_waiting_go_to_the_samples_on_a_core() {
    let mut ledger = Ledger::open(0, stat(0, 0, 0), None, false);
    ledger.ran(A);
    ledger.ran(A);
    ledger.ran(B);
    ledger.look(1_000, stat(600, 300, 4), Some(B));
    check(&ledger, 0, &[(A, 400, 200, 0), (B, 200, 100, 100)]);
    // Half of the running time was inside a kernel that may not be sampled.
    check(&ledger, 300, &[(A, 200, 100, 0), (B, 100, 50, 100), (UNSEEN.in_kernel, 300, 150, 0)]);
}

#[test]
fn time_without_any_stack_is_shown_as_such() {
    let mut ledger = Ledger::open(0, stat(0, 0, 0), None, false);
    ledger.look(1_000, stat(600, 0, 4), None);
    check(&ledger, 0, &[(UNSEEN.running, 600, 0, 0), (UNSEEN.blocked, 0, 0, 400)]);
}

#[test]
fn a_wait_that_began_before_the_last_look_is_no_sleep() {
    let mut ledger = Ledger::open(0, stat(0, 0, 0), Some(A), false);
    ledger.look(1_000, stat(0, 0, 0), Some(A));
    // Woken at 700, on a core at 1,200: only now is the wait counted.
    ledger.look(1_300, stat(100, 500, 1), None);
    check(&ledger, 0, &[(A, 0, 0, 700), (UNSEEN.running, 100, 500, 0)]);
}

#[test]
fn with_a_timeline_a_wait_after_a_sleep_belongs_to_the_sleep() {
    let mut ledger = Ledger::open(0, stat(0, 0, 0), Some(A), true);
    // Slept to 600, got a core at 700, ran to 800, was preempted to 900, and runs.
    ledger.got_core(700);
    ledger.left_core(800, true, None);
    ledger.got_core(900);
    ledger.ran(B);
    ledger.look(1_000, stat(200, 200, 2), None);
    ledger.close();
    check(&ledger, 0, &[(A, 0, 100, 600), (B, 200, 100, 0)]);
}

/// The promise of the module: totals are the kernel's, to the nanosecond, whatever was seen.
#[test]
fn whatever_was_seen_the_parts_add_up_to_the_totals() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    for _ in 0..200 {
        let mut ledger = Ledger::open(0, stat(0, 0, 0), Some(A), rng.random_bool(0.5));
        let (mut now, mut seen) = (0, stat(0, 0, 0));
        for _ in 0..rng.random_range(1..40) {
            now += rng.random_range(0..1_000_u64);
            if rng.random_bool(0.6) {
                seen.running_ns += rng.random_range(0..700_u64);
                seen.waiting_ns += rng.random_range(0..700_u64);
                seen.switches += 1;
            }
            match rng.random_range(0..4) {
                0 => ledger.got_core(now),
                1 => {
                    let place = Place { instruction: rng.random_range(0..3), stack: 1 };
                    ledger.left_core(now, rng.random_bool(0.3), rng.random_bool(0.5).then_some(place));
                }
                _ => {}
            }
            if rng.random_bool(0.3) {
                ledger.ran(StackId(rng.random_range(3..6)));
            }
            let asleep = rng.random_bool(0.5).then(|| StackId(rng.random_range(0..3)));
            let asleep = ledger.slept_through(seen).or(asleep);
            ledger.look(now, seen, asleep);
        }
        let mut sum = Times::default();
        for (_, times) in ledger.by_stack(&UNSEEN, rng.random_range(0..500)) {
            sum.add(&times);
        }
        assert_eq!(sum, ledger.totals());
        assert_eq!(sum.wall_ns(), now);
    }
}

/// A thread that sleeps on A for 30 ms, on B for 0.4 ms ten times, and runs 0.1 ms after each, looked at 100 times a
/// second at random moments: the estimate must converge to the truth for the long sleep and for the short ones.
#[test]
fn long_and_short_sleeps_get_their_shares() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
    let round: Vec<(Option<StackId>, u64)> = std::iter::once([(Some(A), 30_000), (None, 100)])
        .chain(std::iter::repeat_n([(Some(B), 400), (None, 100)], 10))
        .flatten()
        .collect();
    let mut ledger = Ledger::open(0, stat(0, 0, 0), None, false);
    let (mut now, mut seen, mut truth_a, mut truth_b) = (0_u64, stat(0, 0, 0), 0_u64, 0_u64);
    let mut look_at = 5_000_u64;
    for (asleep, us) in round.iter().cycle().take(100_000) {
        let end = now + us;
        match asleep {
            None => seen.switches += 1,
            Some(stack) if *stack == A => truth_a += us,
            Some(_) => truth_b += us,
        }
        let running_before = seen.running_ns;
        while look_at < end {
            if asleep.is_none() {
                seen.running_ns = running_before + (look_at - now);
            }
            ledger.look(look_at, seen, *asleep);
            look_at = (look_at / 10_000 + 1) * 10_000 + rng.random_range(0..10_000);
        }
        if asleep.is_none() {
            seen.running_ns = running_before + us;
        }
        now = end;
    }
    let shares = ledger.by_stack(&UNSEEN, 0);
    let blocked = |stack| shares.iter().find(|(id, _)| *id == stack).map_or(0, |(_, times)| times.blocked_ns) as f64;
    let (of_a, truth) = (blocked(A) / (blocked(A) + blocked(B)), truth_a as f64 / (truth_a + truth_b) as f64);
    assert!((of_a - truth).abs() < 0.01, "{of_a:.4} of the blocked time on A, in truth {truth:.4}");
}

/// What the ledger says about its own error holds: in 200 runs of 500 looks each at a thread of short sleeps of two
/// kinds, the share is farther off in fewer than one of ten, and the bound is not much more than what the runs show.
#[test]
fn without_a_timeline_the_ledger_knows_how_far_off_it_may_be() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let (mut beyond, mut square_sum, mut bounds) = (0, 0.0, 0.0);
    for _ in 0..200 {
        let mut ledger = Ledger::open(0, stat(0, 0, 0), None, false);
        for look in 1..=500_u64 {
            // Per ms: 0.3 running, 0.5 asleep on A, 0.2 on B; always switched since.
            let asleep = match rng.random_range(0..10) {
                0..3 => None,
                3..8 => Some(A),
                _ => Some(B),
            };
            ledger.look(look * 20_000_000, stat(look * 6_000_000, 0, look * 100), asleep);
        }
        let of_a = ledger.by_stack(&UNSEEN, 0).iter().find(|(stack, _)| *stack == A).map_or(0, |it| it.1.blocked_ns);
        let (error, bound) = ((of_a as f64 / 1e10 - 0.5).abs(), ledger.share_error_max());
        beyond += u32::from(error > bound);
        square_sum += error * error;
        bounds += bound / 200.0;
    }
    let spread = (square_sum / 200.0_f64).sqrt();
    assert!(beyond < 20, "{beyond} of 200 runs are beyond what they say");
    assert!((spread..6.0 * spread).contains(&bounds), "{bounds:.4} is said, {spread:.4} is the standard deviation");
    let noted = Ledger::open(0, stat(0, 0, 0), Some(A), true);
    assert_eq!(noted.share_error_max(), 0.0);
    let mut waiting = Ledger::open(0, stat(0, 0, 0), Some(A), false);
    waiting.look(1_000, stat(300, 100, 9), Some(A));
    assert_eq!(waiting.share_error_max(), 0.7, "one look tells nothing: all that was blocked, and the wait");
}
