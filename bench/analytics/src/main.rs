//! Bench: what an analytics event costs the tick that emits it, against writing the same bytes into a `Vec`.
//!
//! - `emit_ns`: an event of four fields, emitted in a tick of a hundred: begin and end of the tick included;
//! - `off_ns`: the same in a server that exports nothing;
//! - `floor_ns`: its record, put together beforehand, appended to a `Vec` that has room;
//! - `allocations`: of all that; there are none.
//!
//! The three take turns, round by round; a figure is the median of the rounds. The hash is of the bytes.

use std::hint::black_box;

use harness::{BenchArguments, quantile};
use throng_analytics::{Page, Text, analytics, tick::begin_tick};
use throng_platform::{
    allocator::{CountingAllocator, thread_counts},
    clock::{Clock, MonotonicClock},
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

analytics!(Downed = "bench.downed", 1 { player: Text<32>, by_npc: bool, weapon: &'static str, height_m: f32 });

/// Events of a tick.
const EVENTS: usize = 100;
/// Ticks of one turn.
const TICKS: usize = 1_000;

fn main() {
    let bench = BenchArguments::read();
    bench.print("analytics", figures(if bench.small { 3 } else { 200 }));
}

fn event(number: usize) -> Downed {
    let player = Text::new("Agent 123456789").expect("it is short enough");
    Downed { player, by_npc: number.is_multiple_of(2), weapon: "rifle", height_m: number as f32 }
}

fn ticks(page: &mut Option<Box<Page>>, events: &[Downed]) {
    for number in 0..TICKS {
        let tick = begin_tick(page, 7, number as u32, 1);
        for event in events {
            black_box(event).emit();
        }
        tick.end(page);
        if let Some(page) = page {
            page.clear();
        }
    }
}

/// As many bytes as an event takes in a page.
fn record(event: &Downed) -> Vec<u8> {
    let mut record = vec![0; 8];
    throng_analytics::AnalyticsEvent::write(event, &mut record);
    record
}

fn figures(rounds: usize) -> serde_json::Value {
    let clock = MonotonicClock::new();
    let events: Vec<Downed> = (0..EVENTS).map(event).collect();
    let records: Vec<Vec<u8>> = events.iter().map(record).collect();
    let mut page = Some(Box::<Page>::default());
    let mut floor = Vec::with_capacity(throng_analytics::PAGE_BYTES);
    ticks(&mut page, &events);
    let [mut emit, mut off, mut bare] = [(); 3].map(|_| Vec::with_capacity(rounds));
    let ns = |began, ended: throng_platform::time::Nanos| (ended - began).0 as f64 / (TICKS * EVENTS) as f64;
    let before = thread_counts().allocations;
    for _ in 0..rounds {
        let began = clock.now();
        ticks(&mut page, &events);
        let emitted = clock.now();
        ticks(&mut None, &events);
        let nothing = clock.now();
        for _ in 0..TICKS {
            floor.clear();
            records.iter().for_each(|record| floor.extend_from_slice(black_box(record)));
            black_box(&floor);
        }
        let written = clock.now();
        emit.push(ns(began, emitted));
        off.push(ns(emitted, nothing));
        bare.push(ns(nothing, written));
    }
    let allocations = thread_counts().allocations - before;
    let [emit_ns, off_ns, floor_ns] = [&mut emit, &mut off, &mut bare].map(|times| quantile(times, 0.5));
    serde_json::json!({
        "events": EVENTS * TICKS * rounds,
        "bytes_per_event": records[0].len(),
        "emit_ns": emit_ns,
        "off_ns": off_ns,
        "floor_ns": floor_ns,
        "emit_per_floor": emit_ns / floor_ns,
        "allocations": allocations,
        "hash": format!("{:016x}", floor.iter().fold(0, |hash, byte| harness::mix(hash, (*byte).into()))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_event_allocates() {
        let figures = figures(2);
        assert_eq!(figures["allocations"], 0, "{figures}");
    }
}
