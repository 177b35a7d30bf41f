//! Bench: what the heap costs worlds that allocate all the time, on 1, 2 and 4 threads.
//!
//! - `throng`: mimalloc as the server runs it, counted, memory kept;
//! - `throng-tracked`: the same with the profiler recording, charging scopes and following sampled blocks;
//! - `throng-committed`: the first with 768 MB committed before the first frame;
//! - `mimalloc-defaults`: mimalloc as it comes, which hands memory back to the kernel after a second;
//! - `system`: the system's allocator;
//! - `system-one-lock`: the system's with one lock around blocks above 256 KiB, the heap that stalled a game's servers
//!   on hosts with many cores.
//!
//! Each in a process of its own, all of them in turns, round by round, beginning with another one each round.
//! Throughput and the cost of a single allocation are compared within a round, and the median of those ratios is the
//! figure; the worst frame is the worst of all rounds. The hash says that all did the same work.
//!
//! What this cannot show on few cores: how a lock hurts when 40 threads want it. With two, at most one waits, and only
//! when it wants a large block in the very moments that the other one has the lock. The seconds of lock wait are the
//! thing to look at here, not the throughput.

mod child;
mod switch;
mod worlds;

use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;
use harness::{BenchArguments, quantile};
use serde_json::{Value, json};

use child::{Figures, Repeats};
use switch::{Heap, Switch};
use worlds::Plan;

#[global_allocator]
static ALLOCATOR: Switch = Switch;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    bench: BenchArguments,
    /// How often every allocator has its turn.
    #[arg(long)]
    rounds: Option<usize>,
    /// Measure with this many threads in this process, for the process that compares.
    #[arg(long, hide = true)]
    child_threads: Option<usize>,
}

const THREADS: [usize; 3] = [1, 2, 4];

#[derive(Debug, thiserror::Error)]
enum BenchError {
    #[error("the allocator could not be set up: {0}")]
    SetUp(#[from] throng_platform::allocator::ObserverAlreadySet),
    #[error("a measuring process could not be started or read: {0}")]
    Child(#[from] std::io::Error),
    #[error("the process that measured {heap} on {threads} threads ended with {status}; its words are above")]
    ChildFailed { heap: &'static str, threads: usize, status: std::process::ExitStatus },
    #[error("the process that measured {heap} printed something else than figures: {source}")]
    Figures { heap: &'static str, source: serde_json::Error },
    #[error("{heap} on {threads} threads computed {hash:016x} where others computed {expected:016x}")]
    OtherHash { heap: &'static str, threads: usize, hash: u64, expected: u64 },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.child_threads {
        Some(threads) => be_child(threads, arguments.bench.small),
        None => compare(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn plan(is_small: bool) -> (Plan, Repeats) {
    if is_small {
        let frame_period = Duration::ZERO;
        let plan = Plan { worlds: 4, entities: 20, frames: 30, warm_up: 5, frame_period };
        return (plan, Repeats { batches: 5, large_frees: 5 });
    }
    // 600 frames of 5 ms: each world begins two or three matches, and memory rests for longer than mimalloc's second.
    let plan = Plan { worlds: 32, entities: 40, frames: 600, warm_up: 60, frame_period: Duration::from_millis(5) };
    (plan, Repeats { batches: 200, large_frees: 100 })
}

fn be_child(threads: usize, is_small: bool) -> Result<(), BenchError> {
    let heap = Heap::current();
    // The large blocks of 32 worlds and what a beginning match leaves between them, with a reserve.
    heap.set_up(if is_small { 64 << 20 } else { 768 << 20 })?;
    let (plan, repeats) = plan(is_small);
    let figures = child::measure(heap, threads, plan, repeats);
    println!("{}", json!(figures));
    Ok(())
}

fn run_child(heap: Heap, threads: usize, is_small: bool) -> Result<Figures, BenchError> {
    let mut command = Command::new(std::env::current_exe()?);
    let (name, value) = heap.environment();
    command.env(name, value).args(["--child-threads", &threads.to_string()]).args(is_small.then_some("--small"));
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(BenchError::ChildFailed { heap: heap.name(), threads, status: output.status });
    }
    serde_json::from_slice(&output.stdout).map_err(|source| BenchError::Figures { heap: heap.name(), source })
}

fn compare(arguments: &Arguments) -> Result<(), BenchError> {
    let rounds = arguments.rounds.unwrap_or(if arguments.bench.small { 1 } else { 5 }).max(1);
    // By threads, round and allocator.
    let mut measured: Vec<Vec<Vec<Figures>>> = vec![Vec::new(); THREADS.len()];
    for round in 0..rounds {
        for (place, &threads) in THREADS.iter().enumerate() {
            let mut of_round: Vec<Option<Figures>> = vec![None; Heap::ALL.len()];
            for turn in 0..Heap::ALL.len() {
                let which = (turn + round) % Heap::ALL.len();
                of_round[which] = Some(run_child(Heap::ALL[which], threads, arguments.bench.small)?);
            }
            measured[place].push(of_round.into_iter().flatten().collect());
        }
        if !arguments.bench.json {
            eprintln!("round {} of {rounds} is done", round + 1);
        }
    }
    let expected = measured[0][0][0].hash;
    let mut rows = Vec::new();
    for (&threads, of_threads) in THREADS.iter().zip(&measured) {
        for (which, &heap) in Heap::ALL.iter().enumerate() {
            let figures: Vec<&Figures> = of_threads.iter().map(|round| &round[which]).collect();
            if let Some(other) = figures.iter().find(|figures| figures.hash != expected) {
                return Err(BenchError::OtherHash { heap: heap.name(), threads, hash: other.hash, expected });
            }
            rows.push(row(heap, threads, which, of_threads));
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let figures = json!({
        "is_release": !cfg!(debug_assertions),
        "rounds": rounds,
        "cores": cores,
        "cannot_show": cannot_show(cores),
        "hash": format!("{expected:016x}"),
        "rows": rows,
    });
    if arguments.bench.json {
        arguments.bench.print("heap", figures);
    } else {
        print_table(&figures);
    }
    Ok(())
}

/// Medians over the rounds, ratios within a round, and the worst of all.
fn row(heap: Heap, threads: usize, which: usize, rounds: &[Vec<Figures>]) -> Value {
    let median =
        |of: fn(&Figures) -> f64| quantile(&mut rounds.iter().map(|round| of(&round[which])).collect::<Vec<_>>(), 0.5);
    let worst =
        |of: fn(&Figures) -> f64| quantile(&mut rounds.iter().map(|round| of(&round[which])).collect::<Vec<_>>(), 1.0);
    // Over the first of all, `throng`.
    let ratio = |of: fn(&Figures) -> f64| {
        let ratios = rounds.iter().map(|round| of(&round[which]) / of(&round[0]));
        quantile(&mut ratios.collect::<Vec<_>>(), 0.5)
    };
    json!({
        "heap": heap.name(),
        "threads": threads,
        "operations_per_s": median(|figures| figures.operations_per_s),
        "operations_over_throng": ratio(|figures| figures.operations_per_s),
        "frame_ms_p50": median(|figures| figures.frame_ms_p50),
        "frame_ms_p99": median(|figures| figures.frame_ms_p99),
        "frame_ms_max": worst(|figures| figures.frame_ms_max),
        "page_faults": median(|figures| figures.page_faults as f64),
        "system_ms": median(|figures| figures.system_ms),
        "rss_mb": median(|figures| figures.rss_mb),
        "lock_wait_ms": median(|figures| figures.lock_wait_ms),
        "pair_ns": median(|figures| figures.pair_ns),
        "pair_over_throng": ratio(|figures| figures.pair_ns),
        "batch_pair_ns": median(|figures| figures.batch_pair_ns),
        "batch_pair_over_throng": ratio(|figures| figures.batch_pair_ns),
        "large_free_us_p50": median(|figures| figures.large_free_us_p50),
        "large_free_us_max": worst(|figures| figures.large_free_us_max),
        "deferred_free_us_p50": median(|figures| figures.deferred_free_us_p50),
        "deferred_free_us_max": worst(|figures| figures.deferred_free_us_max),
        "aligned_free_us_p50": median(|figures| figures.aligned_free_us_p50),
        "aligned_free_us_max": worst(|figures| figures.aligned_free_us_max),
        "aligned_deferred_free_us_p50": median(|figures| figures.aligned_deferred_free_us_p50),
        "aligned_deferred_free_us_max": worst(|figures| figures.aligned_deferred_free_us_max),
    })
}

fn cannot_show(cores: usize) -> String {
    format!(
        "{cores} cores: at most {} threads wait for a lock at a time. A heap with one lock stalled servers on 40 cores and looked well on \
         12, so equal throughput here says nothing about that; lock_wait_ms and page_faults do.",
        cores.saturating_sub(1)
    )
}

fn print_table(figures: &Value) {
    const COLUMNS: [(&str, &str, usize); 15] = [
        ("operations_over_throng", "ops/throng", 3),
        ("frame_ms_p50", "p50 ms", 2),
        ("frame_ms_p99", "p99 ms", 2),
        ("frame_ms_max", "worst ms", 2),
        ("page_faults", "faults", 0),
        ("system_ms", "kernel ms", 0),
        ("rss_mb", "RSS MB", 0),
        ("lock_wait_ms", "lock ms", 2),
        ("pair_ns", "pair ns", 1),
        ("batch_pair_ns", "mixed ns", 1),
        ("batch_pair_over_throng", "/throng", 3),
        ("large_free_us_p50", "8MiB free us", 1),
        ("deferred_free_us_p50", "deferred us", 2),
        ("aligned_free_us_p50", "aligned us", 1),
        ("aligned_deferred_free_us_p50", "deferred us", 2),
    ];
    print!("{:18} {:>7}", "heap", "threads");
    COLUMNS.iter().for_each(|(_, title, _)| print!(" {title:>12}"));
    println!();
    for row in figures["rows"].as_array().into_iter().flatten() {
        print!("{:18} {:>7}", row["heap"].as_str().unwrap_or_default(), row["threads"]);
        for (key, _, digits) in COLUMNS {
            print!(" {:>12.digits$}", row[key].as_f64().unwrap_or_default());
        }
        println!();
    }
    println!("hash {} from every process", figures["hash"].as_str().unwrap_or_default());
    println!("{}", figures["cannot_show"].as_str().unwrap_or_default());
    if figures["is_release"] == false {
        println!("Not a release build: memory is stamped, and the figures say little.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worlds_compute_the_same_on_any_number_of_threads() {
        let (plan, _) = plan(true);
        let outcomes = THREADS.map(|threads| worlds::run(plan, threads, || {}));
        assert!(outcomes.iter().all(|outcome| outcome.hash == outcomes[0].hash));
        assert!(outcomes.iter().all(|outcome| outcome.operations == outcomes[0].operations));
        assert_eq!(outcomes[0].frames.len(), plan.frames);
    }
}
