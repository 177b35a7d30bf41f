//! What one process measures with its allocator, printed as one line of JSON for the process that compares.

use std::any::Any;
use std::hint::black_box;
use std::time::{Duration, Instant};

use harness::quantile;
use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};
use throng_platform::{allocator, process};
use throng_profiler::scope;

use crate::switch::{self, Heap};
use crate::worlds::{self, Plan};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) operations_per_s: f64,
    pub(crate) frame_ms_p50: f64,
    pub(crate) frame_ms_p99: f64,
    pub(crate) frame_ms_max: f64,
    /// Minor page faults of the whole process in the measured frames.
    pub(crate) page_faults: i64,
    /// Time that the kernel worked for the process in the measured frames.
    pub(crate) system_ms: f64,
    pub(crate) rss_mb: f64,
    pub(crate) lock_wait_ms: f64,
    /// One block of 64 bytes taken and given back, again and again.
    pub(crate) pair_ns: f64,
    /// A thousand blocks of 16 B to 4 KiB taken, then given back in another order.
    pub(crate) batch_pair_ns: f64,
    /// Giving back 8 MiB that were written to, at once and in a short task that defers it.
    pub(crate) large_free_us_p50: f64,
    pub(crate) large_free_us_max: f64,
    pub(crate) deferred_free_us_p50: f64,
    pub(crate) deferred_free_us_max: f64,
    /// The same with 8 MiB that are aligned to 128 KiB.
    pub(crate) aligned_free_us_p50: f64,
    pub(crate) aligned_free_us_max: f64,
    pub(crate) aligned_deferred_free_us_p50: f64,
    pub(crate) aligned_deferred_free_us_max: f64,
    pub(crate) hash: u64,
}

/// How often the small measurements are repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repeats {
    pub(crate) batches: usize,
    pub(crate) large_frees: usize,
}

pub(crate) fn measure(heap: Heap, threads: usize, plan: Plan, repeats: Repeats) -> Figures {
    let before = std::sync::Mutex::new((0, 0.0, 0));
    let outcome = worlds::run(plan, threads, || {
        *before.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
            (faults(), system_ms(), switch::lock_wait_ns());
    });
    let (faults_before, system_ms_before, wait_ns_before) =
        before.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let page_faults = faults() - faults_before;
    let system_ms = system_ms() - system_ms_before;
    let rss_mb = process::rss_bytes() as f64 / 1e6;
    let busy: Duration = outcome.frames.iter().sum();
    let mut frames_ms: Vec<f64> = outcome.frames.iter().map(|frame| frame.as_secs_f64() * 1e3).collect();
    let (pair_ns, batch_pair_ns) = pairs(repeats.batches);
    let mut at_once = large_frees(repeats.large_frees, false, plain);
    let mut deferred = large_frees(repeats.large_frees, heap.is_ours(), plain);
    let mut aligned_at_once = large_frees(repeats.large_frees, false, aligned);
    let mut aligned_deferred = large_frees(repeats.large_frees, heap.is_ours(), aligned);
    Figures {
        operations_per_s: outcome.operations as f64 / busy.as_secs_f64(),
        frame_ms_p50: quantile(&mut frames_ms, 0.5),
        frame_ms_p99: quantile(&mut frames_ms, 0.99),
        frame_ms_max: quantile(&mut frames_ms, 1.0),
        page_faults,
        system_ms,
        rss_mb,
        lock_wait_ms: (switch::lock_wait_ns() - wait_ns_before) as f64 / 1e6,
        pair_ns,
        batch_pair_ns,
        large_free_us_p50: quantile(&mut at_once, 0.5),
        large_free_us_max: quantile(&mut at_once, 1.0),
        deferred_free_us_p50: quantile(&mut deferred, 0.5),
        deferred_free_us_max: quantile(&mut deferred, 1.0),
        aligned_free_us_p50: quantile(&mut aligned_at_once, 0.5),
        aligned_free_us_max: quantile(&mut aligned_at_once, 1.0),
        aligned_deferred_free_us_p50: quantile(&mut aligned_deferred, 0.5),
        aligned_deferred_free_us_max: quantile(&mut aligned_deferred, 1.0),
        hash: outcome.hash,
    }
}

/// Nanoseconds per block taken and given back: the same block, and mixed ones. The best tenth of the batches, as other
/// programs of the host only ever add.
fn pairs(batches: usize) -> (f64, f64) {
    scope!("bench.pairs");
    const SAME: usize = 10_000;
    const MIXED: usize = 1_000;
    let mut same = Vec::with_capacity(batches);
    let mut mixed = Vec::with_capacity(batches);
    let mut held: Vec<Vec<u8>> = Vec::with_capacity(MIXED);
    for _ in 0..batches {
        let begin = Instant::now();
        (0..SAME).for_each(|_| drop(black_box(Vec::<u8>::with_capacity(black_box(64)))));
        same.push(begin.elapsed().as_nanos() as f64 / SAME as f64);

        let begin = Instant::now();
        held.extend((0..MIXED).map(|number| Vec::with_capacity(black_box(16 + number * number % 4_080))));
        // Every 7th, then the ones in between: neighbours are given back far apart.
        for first in 0..7 {
            (first..MIXED).step_by(7).for_each(|at| held[at] = Vec::new());
        }
        mixed.push(begin.elapsed().as_nanos() as f64 / MIXED as f64);
        held.clear();
    }
    (quantile(&mut same, 0.1), quantile(&mut mixed, 0.1))
}

/// Microseconds of each free of 8 MiB: at once or in a short task that defers it.
fn large_frees(count: usize, is_deferred: bool, block: fn() -> Box<dyn Any>) -> Vec<f64> {
    if is_deferred {
        allocator::defer_large_frees(256 << 10);
        allocator::short_task(true);
    }
    let frees = (0..count).map(|_| {
        let block = black_box(block());
        let begin = Instant::now();
        drop(block);
        let length = begin.elapsed();
        // Afterwards, as another thread would.
        allocator::free_deferred();
        length.as_secs_f64() * 1e6
    });
    let frees = frees.collect();
    allocator::short_task(false);
    frees
}

fn plain() -> Box<dyn Any> {
    Box::new(vec![1_u8; 8 << 20])
}

/// Aligned to more than mimalloc's own memory is: such blocks come from the kernel and go back to it.
#[expect(dead_code, reason = "there for its size and alignment")]
#[repr(align(131_072))]
struct Aligned([u8; 131_072]);

fn aligned() -> Box<dyn Any> {
    let mut block = Vec::<Aligned>::with_capacity(64);
    for part in block.spare_capacity_mut() {
        part.write(Aligned([1; 131_072]));
    }
    Box::new(block)
}

fn faults() -> i64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| usage.minor_page_faults())
}

fn system_ms() -> f64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| {
        let time = usage.system_time();
        time.tv_sec() as f64 * 1e3 + time.tv_usec() as f64 / 1e3
    })
}
