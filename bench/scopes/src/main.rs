//! Bench: what a scope costs, against the two clock readings that it cannot do without and against other profilers.
//!
//! Every variant runs in a process of its own, because recorders, subscribers and Tracy's threads are global, and all
//! of them take turns, round by round, because the host is not the same from one minute to the next. A figure is the
//! median over the rounds of medians over batches; the empty loop is subtracted. Two columns: scopes in a tight loop
//! (`hot`), and with about 50 ns of work inside that leaves the processor free to do both at once (`work`), which hides
//! most of what a scope costs. Only the first is compared with the floor: in the second, the floor itself is next to
//! nothing.
//!
//! Prints a hash of the work done: faster but different is not faster.

mod measure;
#[cfg_attr(not(feature = "record"), allow(dead_code))]
mod ours;
mod rivals;
mod tracy_drain;

use std::process::{Command, ExitCode};

use clap::Parser;
use harness::{BenchArguments, quantile};
use serde_json::{Value, json};
use throng_platform::allocator::CountingAllocator;

use measure::{LONG_WORK, Outcome, Plan};

// The server's own, since the profiler counts what it gives.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    bench: BenchArguments,
    /// How often every variant has its turn.
    #[arg(long)]
    rounds: Option<usize>,
    /// Only variants whose name contains this, and the floor.
    #[arg(long)]
    only: Option<String>,
    /// Measure this variant in this process, for the process that compares them.
    #[arg(long, hide = true)]
    variant: Option<String>,
}

/// Something to measure.
struct Variant {
    name: &'static str,
    what: &'static str,
    hot: fn(&Plan) -> Outcome,
    work: fn(&Plan) -> Outcome,
}

macro_rules! variants {
    ($($(#[$condition:meta])* $name:literal $module:ident::$function:ident, $what:literal;)*) => {
        &[$($(#[$condition])* Variant { name: $name, what: $what, hot: $module::$function::<0>, work: $module::$function::<LONG_WORK> },)*]
    };
}

/// The first is what all are compared with.
const VARIANTS: &[Variant] = variants! {
    "floor" ours::floor, "two clock readings, one store of 16 bytes";
    #[cfg(feature = "record")]
    "scope" ours::scope, "scope!, recording";
    #[cfg(feature = "record")]
    "nested" ours::scope_nested, "scope! in scope!, budgets, per scope";
    #[cfg(feature = "record")]
    "phases" ours::phases, "Phases, per phase";
    #[cfg(feature = "record")]
    "allocating" ours::scope_with_allocation, "scope! with an allocation inside, less the allocation";
    #[cfg(feature = "record")]
    "off" ours::scope_off, "scope!, recording off";
    #[cfg(not(feature = "record"))]
    "compiled_out" ours::scope_off, "scope! without the feature `record`";
    "floor_large" ours::floor_large, "the floor into 64 MiB";
    #[cfg(feature = "record")]
    "scope_large" ours::scope_large, "scope! into 64 MiB";
    "floor_places" ours::floor_places, "the floor in 16 functions in turns";
    #[cfg(feature = "record")]
    "scope_places" ours::scope_places, "scope! in 16 functions in turns";
    "mutex_std" ours::mutex_std, "std::sync::Mutex, free";
    "mutex_off" ours::mutex_off, "our Mutex, free, recording off";
    #[cfg(feature = "record")]
    "mutex" ours::mutex, "our Mutex, free, recording";
    "log_off" ours::log_off, "a log line of a category that is off";
    "tracing_log_off" rivals::tracing_log_off, "tracing's event that the subscriber does not want";
    "tracy_idle" rivals::tracy_idle, "tracy-client 0.19, on demand, nobody connected";
    "tracy" rivals::tracy_connected, "tracy-client 0.19, connected";
    "puffin_off" rivals::puffin_off, "puffin 0.20, off";
    "puffin" rivals::puffin, "puffin 0.20, on, in a frame's scope";
    "fastrace_off" rivals::fastrace_off, "fastrace 0.7, no parent";
    "fastrace" rivals::fastrace, "fastrace 0.7, reported to nowhere";
    "tracing_off" rivals::tracing_off, "tracing 0.1, no subscriber";
    "tracing" rivals::tracing_registry, "tracing 0.1, registry (keeps no times)";
};

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
enum BenchError {
    #[error("there is no variant \"{0}\"")]
    NoVariant(String),
    #[error("variant {0} could not be started: {1}")]
    Start(&'static str, std::io::Error),
    #[error("variant {0} failed: {1}")]
    Failed(&'static str, String),
    #[error("variant {0} did other work than the floor")]
    OtherWork(&'static str),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.variant {
        Some(name) => measure_one(name, arguments.bench.small),
        None => compare_all(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench scopes: {error}");
            ExitCode::FAILURE
        }
    }
}

/// In a process of its own: one variant, printed as `hot ns, work ns, hash`.
fn measure_one(name: &str, is_small: bool) -> Result<(), BenchError> {
    let variant = VARIANTS.iter().find(|variant| variant.name == name);
    let variant = variant.ok_or_else(|| BenchError::NoVariant(name.to_owned()))?;
    let plan = Plan { batches: if is_small { 5 } else { 300 }, is_small };
    let (hot, work) = ((variant.hot)(&plan), (variant.work)(&plan));
    println!("{}", json!([hot.ns, work.ns, format!("{:016x}", hot.hash ^ work.hash.rotate_left(1))]));
    // Tracy's and fastrace's threads do not end by themselves.
    std::process::exit(0);
}

/// The figures of one variant, round by round.
struct Row {
    variant: &'static Variant,
    hot: Vec<f64>,
    work: Vec<f64>,
    hash: String,
}

fn compare_all(arguments: &Arguments) -> Result<(), BenchError> {
    let is_chosen = |variant: &Variant| arguments.only.as_ref().is_none_or(|part| variant.name.contains(part.as_str()));
    let chosen = VARIANTS.iter().enumerate().filter(|(place, variant)| *place == 0 || is_chosen(variant));
    let mut rows: Vec<Row> =
        chosen.map(|(_, variant)| Row { variant, hot: Vec::new(), work: Vec::new(), hash: String::new() }).collect();
    for _ in 0..arguments.rounds.unwrap_or(if arguments.bench.small { 1 } else { 15 }) {
        for row in &mut rows {
            take_turn(row, arguments.bench.small)?;
        }
    }
    let expect = rows[0].hash.clone();
    if let Some(row) = rows.iter().find(|row| row.hash != expect) {
        return Err(BenchError::OtherWork(row.variant.name));
    }
    let figures: Vec<(&Variant, f64, f64)> =
        rows.iter_mut().map(|row| (row.variant, quantile(&mut row.hot, 0.5), quantile(&mut row.work, 0.5))).collect();
    if arguments.bench.json {
        arguments.bench.print("scopes", as_json(&figures, &expect));
    } else {
        print_table(&figures, &expect);
    }
    Ok(())
}

/// Runs a variant once, in a process of its own.
fn take_turn(row: &mut Row, is_small: bool) -> Result<(), BenchError> {
    let name = row.variant.name;
    let start = |cause| BenchError::Start(name, cause);
    let mut command = Command::new(std::env::current_exe().map_err(start)?);
    command.args(["--variant", name]).args(is_small.then_some("--small"));
    command.env(tracy_drain::PORT_VARIABLE, tracy_drain::free_port().map_err(start)?.to_string());
    let output = command.output().map_err(start)?;
    let failed = || BenchError::Failed(name, String::from_utf8_lossy(&output.stderr).trim().to_owned());
    let (hot, work, hash): (f64, f64, String) = serde_json::from_slice(&output.stdout).map_err(|_| failed())?;
    row.hot.push(hot);
    row.work.push(work);
    row.hash = hash;
    Ok(())
}

fn as_json(figures: &[(&Variant, f64, f64)], hash: &str) -> Value {
    let (_, floor_hot, _) = figures[0];
    let hot_of = |name: &str| figures.iter().find(|(variant, ..)| variant.name == name).map(|&(_, hot, _)| hot);
    let rows = figures.iter().map(|&(variant, hot, work)| {
        json!({
            "name": variant.name,
            "what": variant.what,
            "hot_ns": hot,
            "hot_over_floor": hot / floor_hot,
            "work_ns": work,
        })
    });
    let mut all = json!({
        "rows": rows.collect::<Vec<_>>(),
        "floor_ns": floor_hot,
        "off_ns": hot_of("off").or(hot_of("compiled_out")),
        "hash": hash,
    });
    over_floor(figures).for_each(|(key, over)| all[key] = over.into());
    all
}

/// What is compared with the floor by a goal or in the documents: key in the JSON, and variant.
const OVER_FLOOR: [(&str, &str); 3] =
    [("scope_over_floor", "scope"), ("nested_scope_over_floor", "nested"), ("phase_over_floor", "phases")];

/// The cost of each of those as a multiple of the floor's. Of those that were not measured there is none.
fn over_floor(figures: &[(&Variant, f64, f64)]) -> impl Iterator<Item = (&'static str, Option<f64>)> {
    let (_, floor_hot, _) = figures[0];
    OVER_FLOOR.into_iter().map(move |(key, name)| {
        let row = figures.iter().find(|(variant, ..)| variant.name == name);
        (key, row.map(|(_, hot, _)| hot / floor_hot))
    })
}

fn print_table(figures: &[(&Variant, f64, f64)], hash: &str) {
    let (_, floor_hot, _) = figures[0];
    println!("{:<15} {:>9} {:>8} {:>9}", "variant", "hot", "x floor", "work");
    for (variant, hot, work) in figures {
        let over = hot / floor_hot;
        println!("{:<15} {hot:>6.2} ns {over:>8.2} {work:>6.2} ns  {}", variant.name, variant.what);
    }
    for (key, over) in over_floor(figures).filter_map(|(key, over)| Some((key, over?))) {
        println!("{key}: {over:.2}");
    }
    println!("hash of the work: {hash}");
}
