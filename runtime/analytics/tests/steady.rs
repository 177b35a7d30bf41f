//! Promise: once the first frames have passed, emitting an event and handing it over allocate nothing, whatever becomes
//! of it; and a session's numbers have gaps exactly where something was dropped.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use throng_analytics::{
    Exporter, FrameEvents, Identity, PAGE_BYTES, Page, Sinks, Text, analytics, file_sink::FileSettings, read, start,
    tick::begin_tick,
};
use throng_platform::allocator::{CountingAllocator, thread_counts};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

analytics!(Hit = "steady.hit", 1 { player: u64, damage: f32, weapon: &'static str, name: Text<16> });

fn emit(player: u64) {
    Hit { player, damage: 12.5, weapon: "rifle", name: Text::new("Zoë").unwrap() }.emit();
}

/// The process's list of kinds allocates with the first event.
fn emit_once() {
    let mut page = Some(Box::<Page>::default());
    let tick = begin_tick(&mut page, 0, 0, 0);
    emit(0);
    tick.end(&mut page);
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("throng-steady-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn started(folder: &Path, pages: usize) -> (FrameEvents, Exporter) {
    let file = FileSettings {
        folder: folder.to_owned(),
        file_bytes_max: 1 << 30,
        file_age_max: Duration::from_secs(3_600),
        total_bytes_max: 1 << 31,
    };
    let identity = Identity { server: "test \"one\"".into(), session: "cafe".into() };
    start(&identity, pages * PAGE_BYTES, Sinks { file: Some(file), post: None }).unwrap()
}

/// A frame of two ticks.
fn frame(number: u64, events: u64, frame_events: &mut FrameEvents, page: &mut Option<Box<Page>>) {
    for world in 0..2 {
        let tick = begin_tick(page, world | 3 << 32, number as u32, number * 50_000_000);
        (0..events).for_each(emit);
        tick.end(page);
    }
    frame_events.hand_over(page, 1_000_000_000_000);
}

#[test]
fn a_steady_frame_allocates_nothing_and_every_event_is_in_a_file() {
    let folder = folder("file");
    // Half of them for well-filled pages: all events find room, however late the exporter comes.
    let (mut events, exporter) = started(&folder, 64);
    let mut page = Some(Box::<Page>::default());
    frame(0, 10, &mut events, &mut page);
    let before = thread_counts();
    for number in 1..500 {
        frame(number, 10, &mut events, &mut page);
    }
    assert_eq!(thread_counts().allocations - before.allocations, 0);
    while !page.as_ref().unwrap().is_empty() {
        events.hand_over(&mut page, 1_000_000_000_000);
    }
    assert!(exporter.finish(Duration::from_secs(20)));
    let mut last = serde_json::Value::Null;
    let found = read::folder(&folder, |event| last = event.clone()).unwrap();
    let sums = events.counts().sums();
    assert_eq!((sums.emitted, sums.file_events), (10_000, 10_000));
    assert_eq!((found.events, found.sessions["cafe"].missing, found.torn + found.malformed), (10_000, 0, 0));
    let expect = serde_json::json!({
        "event": "steady.hit", "version": 1, "at_ms": 1_000_000_024_950_u64, "tick": 499, "world": "1.3",
        "server": "test \"one\"", "session": "cafe", "sequence": 9_999,
        "fields": {"player": 9, "damage": 12.5, "weapon": "rifle", "name": "Zoë"},
    });
    assert_eq!(last, expect);
    std::fs::remove_dir_all(folder).unwrap();
}

/// The exporter sleeps for 100 ms, and has room for five pages: this emits more at once.
#[test]
fn what_finds_no_room_is_dropped_without_an_allocation_and_the_numbers_have_that_gap() {
    let folder = folder("flood");
    let (mut events, exporter) = started(&folder, 4);
    let mut page = Some(Box::<Page>::default());
    emit_once();
    let before = thread_counts();
    (0..40).for_each(|number| frame(number, 1_000, &mut events, &mut page));
    assert_eq!(thread_counts().allocations - before.allocations, 0);
    // The last event is one that is kept, so that each gap has an end.
    let mut number = 40;
    while !page.as_ref().unwrap().is_empty() {
        events.hand_over(&mut page, 0);
    }
    frame(number, 1, &mut events, &mut page);
    number += 1;
    while !page.as_ref().unwrap().is_empty() {
        events.hand_over(&mut page, 0);
    }
    assert!(exporter.finish(Duration::from_secs(20)));
    let found = read::folder(&folder, |_| {}).unwrap();
    let sums = events.counts().sums();
    assert_eq!(sums.emitted, 2 * (1_000 * (number - 1) + 1));
    assert!(sums.dropped_page > 10_000, "{sums:?}");
    assert_eq!(found.sessions["cafe"].missing, sums.dropped_page);
    assert_eq!((found.events, sums.file_events), (sums.emitted - sums.dropped_page, found.events));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn without_a_page_an_event_costs_nothing_and_goes_nowhere() {
    let before = thread_counts();
    let mut page = None;
    let tick = begin_tick(&mut page, 1, 1, 0);
    emit(1);
    tick.end(&mut page);
    assert!(page.is_none());
    assert_eq!(thread_counts().allocations - before.allocations, 0);
}
