//! Promise: once the first frames have passed, counting and merging allocate nothing.

use throng_metrics::game::{GameSums, GameTotals, WorldGauges, begin_tick};
use throng_metrics::text_table::{Cell, Column, TextTable};
use throng_metrics::{Registry, count, gauge};
use throng_platform::allocator::{CountingAllocator, thread_counts};
use throng_platform::time::Nanos;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_steady_frame_allocates_nothing() {
    let mut registry = Registry::new();
    let packets = registry.register_counter("net.packets_in", "Packets received");
    let worlds = registry.register_gauge("server.worlds", "Worlds");
    let tick = registry.register_histogram("world.tick", "Time of one tick");
    let inbox = registry.register_window_max("net.inbox_bytes", "Fullest inbox", 60);
    let mut cells = registry.cells();
    let mut frame = |number: u64| {
        for us in 0..100 {
            cells.add(packets, 1);
            cells.record(tick, us * number);
            cells.max(inbox, us);
        }
        registry.set(worlds, number as f64);
        registry.merge(&mut cells, Nanos::from_millis(number * 50));
    };
    frame(0);
    let before = thread_counts();
    (1..2_000).for_each(&mut frame);
    assert_eq!(thread_counts().allocations - before.allocations, 0);
    assert_eq!(registry.counter(packets), 200_000);
}

/// A game's counter is registered by the frame that counts it first, while the admin port still holds what was
/// published last.
#[test]
fn a_late_metric_costs_no_copy_of_the_others() {
    let mut registry = Registry::new();
    for number in 0..500 {
        registry.register_counter(&format!("early.number_{number}"), "Registered at the start");
    }
    let published = registry.snapshot();
    let before = thread_counts();
    registry.register_counter("late", "Counted for the first time");
    let allocations = thread_counts().allocations - before.allocations;
    assert!(allocations <= 10, "{allocations} allocations");
    drop(published);
}

#[test]
fn a_steady_tick_of_a_game_allocates_nothing() {
    let (mut worlds, mut sums) = ([(); 10].map(|_| WorldGauges::default()), GameSums::default());
    let mut totals = GameTotals::default();
    let mut frame = |number: u64| {
        let mut spikes = 0;
        for (index, world) in worlds.iter_mut().enumerate() {
            let tick = begin_tick();
            for _ in 0..100 {
                count!("steady.casts");
            }
            count!("steady.bytes", number);
            gauge!("steady.level", number + index as u64);
            tick.end(world, &mut sums);
        }
        totals.take(&mut sums);
        totals.end_frame(|_, count| spikes += count);
        spikes
    };
    frame(0);
    let before = thread_counts();
    for number in 1..2_000 {
        assert_eq!(frame(number), 1_000 + 10 * number);
    }
    assert_eq!(thread_counts().allocations - before.allocations, 0);
    assert_eq!((totals.counter("steady.casts"), totals.gauge("steady.level")), (2_000_000, 10 * 1_999 + 45));
}

/// Goal: 300 rows without an allocation after the first table, hints or not.
#[test]
fn a_table_that_is_filled_again_allocates_nothing() {
    let columns = || [Column::text("player", "player"), Column::text("world", "world"), Column::float("x m", "x_m", 2)];
    for mut table in [TextTable::new(columns()), TextTable::new(columns()).with_hints(300, &[10, 9, 7])] {
        let names: Vec<String> = (0..300).map(|number| format!("player {number:03}")).collect();
        let mut show = || {
            table.clear();
            for (number, name) in names.iter().enumerate() {
                table.row(&[Cell::Text(name), Cell::Text("dark zone"), Cell::Float(number as f64 * 1.5)]);
            }
            (table.text().len(), table.json().len())
        };
        let first = show();
        let before = thread_counts();
        assert_eq!(show(), first);
        assert_eq!(thread_counts().allocations - before.allocations, 0);
    }
}
