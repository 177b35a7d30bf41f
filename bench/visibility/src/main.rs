//! Bench: what a fog of war costs per client and tick, asked in batches with all that is known, against a filter that casts
//! for each client and entity.
//!
//! A match of 10 and a crowd of 100, in rooms with doors, at 128 Hz, each of whom looks at all others ([`measure`]). The
//! batched filter tells 150 ms ahead as well, which the naive one does not.
//!
//! - `naive_us`, `batched_us`: CPU time of one client's answers in one tick. `ratio`: the one over the other.
//! - `bake_ms`, `cells`, `cells_bytes`, `cells_visible_share`: what the level's matrix takes, and leaves open.
//! - `told_share`, `seen_share`: of all pairs. `known`, `by_cells`, `by_wall`: how those that were asked about were
//!   answered without a cast; `casts_per_pair`.
//!
//! Prints a hash of all answers: faster but different is not faster. Fails if somebody is seen and not told of.

mod measure;

use harness::BenchArguments;
use throng_platform::allocator::CountingAllocator;

use self::measure::{Outcome, Size};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() {
    let arguments = BenchArguments::read();
    let (ticks, repetitions) = if arguments.small { (100, 1) } else { (2_000, 3) };
    let rows = [(10, 5), (100, 10)].map(|(clients, rooms)| {
        let size = Size { clients, rooms, warm_ticks: ticks / 2, ticks, repetitions };
        row(&size, &measure::run(&size))
    });
    arguments.print_rows("visibility", rows);
}

fn row(size: &Size, outcome: &Outcome) -> serde_json::Value {
    let client_ticks = f64::from(size.clients) * f64::from(size.ticks);
    let us = |ns: u64| ns as f64 / 1e3 / client_ticks;
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let counts = &outcome.counts;
    serde_json::json!({
        "clients": size.clients,
        "rooms": size.rooms * size.rooms,
        "naive_us": us(outcome.naive_ns),
        "batched_us": us(outcome.batched_ns),
        "ratio": share(outcome.naive_ns, outcome.batched_ns),
        "told_share": share(outcome.told, outcome.pairs),
        "seen_share": share(outcome.seen, outcome.pairs),
        "known": share(counts.known, counts.asked),
        "by_cells": share(counts.hidden_by_cells, counts.asked),
        "by_wall": share(counts.hidden_by_wall, counts.asked),
        "casts_per_pair": share(counts.casts, counts.asked),
        "bake_ms": outcome.bake_ns as f64 / 1e6,
        "cells": outcome.cells,
        "cells_bytes": outcome.cells_bytes,
        "cells_visible_share": outcome.cells_visible_share,
        "allocations": outcome.allocations,
        "hash": format!("{:016x}", outcome.hash),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_size_tells_of_all_who_are_seen_and_hides_most() {
        let size = Size { clients: 10, rooms: 4, warm_ticks: 20, ticks: 60, repetitions: 2 };
        let outcome = measure::run(&size);
        assert!(outcome.seen <= outcome.told && outcome.told < outcome.pairs, "{} of {}", outcome.told, outcome.pairs);
        assert_eq!(outcome.allocations, 0);
        assert!(outcome.cells_visible_share < 1.0 && outcome.counts.hidden_by_cells > 0);
    }
}
