//! Our own scopes and locks, and the floor under them: two readings of the clock and one store of 16 bytes.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::Mutex;

use throng_platform::ticks;
use throng_profiler::pool::PoolSettings;
use throng_profiler::{Phases, log_category, log_debug, memory, scope, site, start_recording};

use crate::measure::{CALLS, Outcome, Plan, compare, each, nothing, work};

/// Records of the floor's ring: 64 KiB, which stays in the processor's cache.
const RING: usize = 4_096;

/// History that stays in the cache too.
const SMALL: PoolSettings = PoolSettings { blocks_max: 4, reserve: 2, history: 0 };

/// What a server keeps: 64 MiB, so that every block has left the cache when it is written again.
const LARGE: PoolSettings = PoolSettings { blocks_max: 4_096, reserve: 64, history: u64::MAX };

struct Ring {
    next: Cell<usize>,
    records: [Cell<[u64; 2]>; RING],
}

thread_local! {
    static FLOOR: Ring = const { Ring { next: Cell::new(0), records: [const { Cell::new([0; 2]) }; RING] } };
}

/// What no recorder of begin and end can do without.
pub(crate) fn floor<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    let with = each(|hash| {
        let begin = ticks::now();
        let hash = work::<ROUNDS>(hash);
        note(begin);
        hash
    });
    compare(plan, CALLS, with, nothing::<ROUNDS>(), || {})
}

#[inline(always)]
fn note(begin: u64) {
    let length = ticks::now() - begin;
    FLOOR.with(|ring| {
        let next = ring.next.get();
        ring.records[next % RING].set([begin, length | 7 << 32]);
        ring.next.set(next + 1);
    });
}

/// The same into as much memory as a server's history has.
pub(crate) fn floor_large<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    let mut records = vec![[1u64; 2]; LARGE.blocks_max << 10];
    let mask = records.len() - 1;
    let mut next = 0;
    let with = each(|hash| {
        let begin = ticks::now();
        let hash = work::<ROUNDS>(hash);
        let length = ticks::now() - begin;
        records[next & mask] = [begin, length | 7 << 32];
        next += 1;
        hash
    });
    compare(plan, CALLS, with, nothing::<ROUNDS>(), || {})
}

#[inline(always)]
fn one_scope<const ROUNDS: u32>() -> impl FnMut(u64) -> u64 {
    each(|hash| {
        scope!("bench.scope");
        work::<ROUNDS>(hash)
    })
}

/// One scope, with everything that comes with it.
pub(crate) fn scope<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    start_recording(SMALL);
    compare(plan, CALLS, one_scope::<ROUNDS>(), nothing::<ROUNDS>(), || {})
}

/// The same into a server's history.
pub(crate) fn scope_large<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    start_recording(LARGE);
    // Blocks are made when they are first needed, which is a cost of the server's first seconds alone.
    if !plan.is_small {
        let mut batch = one_scope::<0>();
        (0..LARGE.blocks_max + 100).for_each(|_| _ = black_box(batch(1)));
    }
    compare(plan, CALLS, one_scope::<ROUNDS>(), nothing::<ROUNDS>(), || {})
}

/// Recording is off.
pub(crate) fn scope_off<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    compare(plan, CALLS, one_scope::<ROUNDS>(), nothing::<ROUNDS>(), || {})
}

/// Sixteen functions with this in each, called in turns: what is left when the code of one scope is not all that the
/// processor has in mind.
macro_rules! places {
    ($hash:ident, $body:expr) => {{
        macro_rules! place {
            ($name:ident) => {{
                #[inline(never)]
                fn $name<const ROUNDS: u32>($hash: u64) -> u64 {
                    $body
                }
                $name::<ROUNDS> as fn(u64) -> u64
            }};
        }
        let places = [
            place!(a),
            place!(b),
            place!(c),
            place!(d),
            place!(e),
            place!(f),
            place!(g),
            place!(h),
            place!(i),
            place!(j),
            place!(k),
            place!(l),
            place!(m),
            place!(n),
            place!(o),
            place!(p),
        ];
        let mut next = 0;
        each(move |hash| {
            next += 1;
            places[next % places.len()](hash)
        })
    }};
}

/// Cost per scope, without the calls.
pub(crate) fn scope_places<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    start_recording(SMALL);
    let with = places!(hash, {
        scope!("bench.place");
        work::<ROUNDS>(hash)
    });
    compare(plan, CALLS, with, places!(hash, work::<ROUNDS>(hash)), || {})
}

/// The floor in as many places.
pub(crate) fn floor_places<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    let with = places!(hash, {
        let begin = ticks::now();
        let hash = work::<ROUNDS>(hash);
        note(begin);
        hash
    });
    compare(plan, CALLS, with, places!(hash, work::<ROUNDS>(hash)), || {})
}

/// A scope in a scope of another subsystem: cost per scope.
pub(crate) fn scope_nested<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    start_recording(SMALL);
    let with = each(|hash| {
        scope!("outer.scope", budget_us = 100_000);
        {
            scope!("bench.inner", budget_us = 100_000);
            work::<ROUNDS>(hash)
        }
    });
    compare(plan, 2 * CALLS, with, nothing::<ROUNDS>(), || {})
}

/// Eight scopes in a row that share their readings: cost per scope. The work is in the last one.
pub(crate) fn phases<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    start_recording(SMALL);
    let with = each(|hash| {
        let mut phases = Phases::begin(site!("bench.phase_1"));
        phases.next(site!("bench.phase_2"));
        phases.next(site!("bench.phase_3"));
        phases.next(site!("bench.phase_4"));
        phases.next(site!("other.phase_5"));
        phases.next(site!("other.phase_6"));
        phases.next(site!("other.phase_7"));
        phases.next(site!("other.phase_8"));
        work::<ROUNDS>(hash)
    });
    compare(plan, 8 * CALLS, with, nothing::<ROUNDS>(), || {})
}

/// A scope that allocates and frees 64 bytes, against the same allocation alone, counted by the same allocator.
pub(crate) fn scope_with_allocation<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    start_recording(SMALL);
    memory::install().expect("nobody else watches the allocator");
    let with = each(|hash| {
        scope!("bench.allocating");
        work::<ROUNDS>(allocate(hash))
    });
    compare(plan, CALLS, with, each(|hash| work::<ROUNDS>(allocate(hash))), || {})
}

#[inline(always)]
fn allocate(hash: u64) -> u64 {
    black_box(Box::new([hash; 8]))[0]
}

/// Taking and leaving a free lock, recording.
pub(crate) fn mutex<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    start_recording(SMALL);
    mutex_off::<ROUNDS>(plan)
}

pub(crate) fn mutex_off<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    let lock = throng_profiler::sync::Mutex::new("bench.lock", 0);
    let with = each(|hash| {
        *lock.lock() = hash;
        work::<ROUNDS>(hash)
    });
    compare(plan, CALLS, with, nothing::<ROUNDS>(), || {})
}

/// The same with the standard library's lock, poison handled the same way.
pub(crate) fn mutex_std<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    let lock = Mutex::new(0);
    let with = each(|hash| {
        *lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = hash;
        work::<ROUNDS>(hash)
    });
    compare(plan, CALLS, with, nothing::<ROUNDS>(), || {})
}

/// A line with two fields, of a category that is off.
pub(crate) fn log_off<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    log_category!(BENCH = "bench.log");
    let with = each(|hash| {
        log_debug!(BENCH, hash, rounds = ROUNDS, "a call");
        work::<ROUNDS>(hash)
    });
    compare(plan, CALLS, with, nothing::<ROUNDS>(), || {})
}
