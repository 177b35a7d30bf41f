//! Bench: what "who is near me?" costs with neighbour lists, upkeep included, against a tight scan over everybody.
//!
//! A zone of 1,000 and one of 10,000 entities, equally dense, idle for the most part ([`zone`]), in which everything is
//! asked that such zones ask ([`questions`]). Both ways answer every question of the same ticks, in turns, and the
//! answers are compared ([`measure`]). The scan reads packed columns (x, z, groups) in blocks that the compiler turns
//! into vector instructions.
//!
//! - `ratio`: CPU time of the scan's questions over that of the lists' questions and all of their upkeep.
//! - `per_question`: each question alone, without upkeep.
//! - `scans_per_s`, `pairs_per_s`: what upkeep did. `bytes`: memory of lists, grid and columns.
//!
//! Prints a hash of all answers: faster but different is not faster.

mod measure;
mod questions;
mod zone;

use clap::Parser;
use harness::BenchArguments;
use throng_platform::allocator::CountingAllocator;
use throng_query::neighbour_lists::NeighbourSettings;

use self::measure::{Outcome, Size};
use self::questions::QUESTIONS;
use self::zone::TICKS_PER_S;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    bench: BenchArguments,
    /// Range of the lists (m).
    #[arg(long, default_value_t = 100.0)]
    range_m: f32,
    /// Skin of the lists (m).
    #[arg(long, default_value_t = 16.0)]
    skin_m: f32,
}

fn main() {
    let arguments = Arguments::parse();
    let (sizes, ticks, repetitions) =
        if arguments.bench.small { ([200, 400], 40, 1) } else { ([1_000, 10_000], 400, 5) };
    let settings =
        NeighbourSettings { range_m: arguments.range_m, skin_m: arguments.skin_m, ..NeighbourSettings::default() };
    let rows = sizes.map(|entities| {
        let size = Size { entities, warm_ticks: ticks / 2, ticks, repetitions };
        row(&size, &settings, &measure::run(&size, settings))
    });
    arguments.bench.print_rows("neighbour_lists", rows);
}

fn row(size: &Size, settings: &NeighbourSettings, outcome: &Outcome) -> serde_json::Value {
    let seconds = f64::from(size.ticks) / f64::from(TICKS_PER_S);
    let questions = outcome.total.questions as f64;
    let per_question = QUESTIONS.iter().zip(&outcome.each).map(|(question, cost)| {
        let ns = |ns: u64| (ns as f64 / cost.questions.max(1) as f64 * 10.0).round() / 10.0;
        let figures = serde_json::json!({
            "radius_m": question.radius_m,
            "asked": cost.questions,
            "lists_ns": ns(cost.lists_ns),
            "scan_ns": ns(cost.scan_ns),
            "ratio": (cost.ratio() * 10.0).round() / 10.0,
        });
        (question.name.to_owned(), figures)
    });
    serde_json::json!({
        "entities": size.entities,
        "range_m": settings.range_m,
        "skin_m": settings.skin_m,
        "ratio": outcome.total.ratio(),
        "lists_us_per_s": outcome.total.lists_ns as f64 / 1e3 / seconds,
        "of_that_upkeep_us_per_s": outcome.upkeep_ns as f64 / 1e3 / seconds,
        "scan_us_per_s": outcome.total.scan_ns as f64 / 1e3 / seconds,
        "lists_ns_per_question": outcome.total.lists_ns as f64 / questions,
        "scan_ns_per_question": outcome.total.scan_ns as f64 / questions,
        "questions_per_s": questions / seconds,
        "answer_len_mean": outcome.answer_len_mean,
        "list_len_mean": outcome.list_len_mean,
        "scans_per_s": outcome.counts.scans as f64 / seconds,
        "pairs_per_s": (outcome.counts.pairs_entered + outcome.counts.pairs_left) as f64 / seconds,
        "fallbacks_per_s": outcome.counts.fallbacks as f64 / seconds,
        "lists_dropped": outcome.counts.lists_dropped,
        "bytes": outcome.bytes,
        "allocations": outcome.allocations,
        "per_question": per_question.collect::<serde_json::Map<_, _>>(),
        "hash": format!("{:016x}", outcome.hash),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_size_gives_the_same_answers_whatever_the_lists() {
        let size = Size { entities: 300, warm_ticks: 10, ticks: 30, repetitions: 1 };
        let outcomes = [(200.0, 30.0, 128), (60.0, 10.0, 128), (200.0, 30.0, 16)].map(|(range_m, skin_m, list_max)| {
            measure::run(&size, NeighbourSettings { range_m, skin_m, list_max, ..NeighbourSettings::default() })
        });
        assert!(outcomes.iter().all(|outcome| outcome.hash == outcomes[0].hash && outcome.allocations == 0));
        assert_eq!(outcomes[0].counts.fallbacks, 0);
        assert!(outcomes[1].counts.fallbacks > 0, "questions beyond 60 m go to the grid");
        assert!(outcomes[2].counts.lists_dropped > 0, "camps are longer than 16");
    }
}
