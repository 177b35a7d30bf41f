//! Bench: what a table of 300 players costs: world, place and speed of each, filled and shown as a console command does.
//!
//! - `hints_us`, `no_hints_us`, `json_us`: the median of many tables, each filled again and shown.
//! - `first`: the same of the first table, which has its memory to get: time and allocations.
//! - `allocations`: of all tables after the first; there are none.
//! - `hash`: of the text, which is the same with hints and without.

use harness::BenchArguments;
use throng_metrics::text_table::{Cell, Column, TextTable};
use throng_platform::allocator::{CountingAllocator, thread_counts};
use throng_platform::clock::{Clock, MonotonicClock};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const PLAYERS: usize = 300;
/// Right for these players; see the test.
const WIDTHS: [usize; 6] = [10, 12, 8, 4, 8, 9];

fn main() {
    let bench = BenchArguments::read();
    let tables = if bench.small { 100 } else { 20_000 };
    bench.print("tables", figures(tables));
}

struct Player {
    name: String,
    world: String,
    place_m: [f64; 3],
}

fn players() -> Vec<Player> {
    let player = |number: usize| Player {
        name: format!("player {number:03}"),
        world: format!("dark zone {:02}", number % 7),
        place_m: [number as f64 * 7.31 - 1_100.0, 0.25 * (number % 9) as f64, 2_000.0 - number as f64 * 11.7],
    };
    (0..PLAYERS).map(player).collect()
}

fn table() -> TextTable {
    TextTable::new([
        Column::text("player", "player"),
        Column::text("world", "world"),
        Column::float("x m", "x_m", 2),
        Column::float("y m", "y_m", 2),
        Column::float("z m", "z_m", 2),
        Column::float("speed m/s", "speed_m_per_s", 1),
    ])
}

fn fill(table: &mut TextTable, players: &[Player]) {
    table.clear();
    for Player { name, world, place_m: [x, y, z] } in players {
        let speed = Cell::Float(x.abs() % 7.0);
        let [x, y, z] = [x, y, z].map(|metres| Cell::Float(*metres));
        table.row(&[Cell::Text(name), Cell::Text(world), x, y, z, speed]);
    }
}

struct Run {
    first_us: f64,
    first_allocations: u64,
    median_us: f64,
    allocations: u64,
    hash: u64,
}

fn run(mut table: TextTable, tables: usize, show: impl Fn(&mut TextTable) -> &str) -> Run {
    let (players, clock) = (players(), MonotonicClock::new());
    let mut times_us = Vec::with_capacity(tables);
    let mut hash = 0;
    let mut one = || {
        let (before, begin) = (thread_counts().allocations, clock.now());
        fill(&mut table, &players);
        let shown = show(&mut table);
        let us = (clock.now() - begin).0 as f64 / 1e3;
        hash = shown.bytes().fold(0, |hash, byte| harness::mix(hash, byte.into()));
        (us, thread_counts().allocations - before)
    };
    let (first_us, first_allocations) = one();
    let mut allocations = 0;
    for _ in 0..tables {
        let (us, allocated) = one();
        times_us.push(us);
        allocations += allocated;
    }
    Run { first_us, first_allocations, median_us: harness::quantile(&mut times_us, 0.5), allocations, hash }
}

fn figures(tables: usize) -> serde_json::Value {
    let hints = run(table().with_hints(PLAYERS, &WIDTHS), tables, TextTable::text);
    let no_hints = run(table(), tables, TextTable::text);
    let json = run(table(), tables, TextTable::json);
    assert_eq!(hints.hash, no_hints.hash, "hints change nothing");
    let first = |run: &Run| serde_json::json!({ "us": run.first_us, "allocations": run.first_allocations });
    serde_json::json!({
        "rows": PLAYERS,
        "tables": tables,
        "hints_us": hints.median_us,
        "no_hints_us": no_hints.median_us,
        "json_us": json.median_us,
        "first": { "hints": first(&hints), "no_hints": first(&no_hints), "json": first(&json) },
        "allocations": hints.allocations + no_hints.allocations + json.allocations,
        "hash": format!("{:016x}", hints.hash),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_table_after_the_first_allocates() {
        let figures = figures(20);
        assert_eq!(figures["allocations"], 0, "{figures}");
    }

    #[test]
    fn the_hints_are_right() {
        let mut table = table();
        fill(&mut table, &players());
        let width = table.text().lines().next().unwrap().len();
        assert_eq!(width, WIDTHS.iter().sum::<usize>() + 2 * (WIDTHS.len() - 1));
    }
}
