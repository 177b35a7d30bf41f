//! Memory: who allocates, drops, and leaks.

use super::*;

#[test]
fn a_thread_that_allocates_too_fast_is_named_with_its_dearest_scope() {
    let events = vec![
        scope(CACHE, at(1.0), at(2.0)),
        Event::Allocations { count: 10, frees: 10, bytes: 10_000 },
        scope(CHAT, at(2.0), at(9.0)),
        Event::Allocations { count: 2_500, frees: 2_500, bytes: 2_550_000 },
    ];
    let capture = faulty(TriggerKind::MemoryRate, "chatter", 10_200_000, 1_000_000, vec![(CHATTER, events)]);
    check(
        &capture,
        "thread chatter allocates 10.2 MB/s, most in scope net.chatter; allowed 1.0 MB/s",
        &["chatter 2.6 MB at 10.2 MB/s, most in net.chatter", "net.chatter 2.5 MB in 2500 allocations, 2500 frees"],
    );
}

/// A value of many blocks that a tick drops by itself is named; lists that a tick fills and empties are not.
#[test]
fn a_large_drop_that_was_not_handed_over_is_named_with_its_scope() {
    let events = |frees| {
        vec![
            scope(CACHE, at(1.0), at(4.0)),
            Event::Allocations { count: 3, frees, bytes: 96 },
            scope(CHAT, at(4.0), at(9.0)),
            Event::Allocations { count: 2_500, frees: 2_500, bytes: 2_550_000 },
        ]
    };
    let story = |frees| {
        let capture = faulty(TriggerKind::MemoryRate, "chatter", 10_200_000, 1_000_000, vec![(CHATTER, events(frees))]);
        story_of(&capture)
    };
    let dropped = story(40_000);
    assert!(dropped.contains("large drops in the frame that were not handed over, by scope"), "{dropped}");
    assert!(dropped.contains("40000 frees, 3 allocations"), "{dropped}");
    assert_eq!(dropped.matches("frees, ").count(), 1, "only that one: {dropped}");
    assert!(!story(1_900).contains("large drops"), "what a system gives back each tick");
}

#[test]
fn a_large_allocation_is_named_with_its_world_and_scope() {
    let events = vec![
        world(at(0.0), Some(3), 812),
        Event::LargeAllocation { at_ns: at(2.0), bytes: 300 << 10 },
        scope(INVENTORY, at(1.0), at(3.0)),
        Event::Allocations { count: 1, frees: 1, bytes: 300 << 10 },
        scope(TICK, at(0.0), at(4.0)),
        world(at(4.0), None, 0),
    ];
    let mut capture =
        faulty(TriggerKind::LargeAllocation, "game.inventory", 300 << 10, 256 << 10, vec![(WORKER_0, events)]);
    capture.about.trigger.world = Some(3);
    check(
        &capture,
        "a 300 KiB allocation in a tick of world 3 (hub) in scope game.inventory",
        &["300 KiB in game.inventory of world 3 (hub) on worker-0"],
    );
}

#[test]
fn a_leak_is_named_with_its_growth() {
    let mut capture = faulty(TriggerKind::Leak, "game.cache", 415_000, 100_000, vec![]);
    capture.memory = Memory {
        at_ns: (0..21).map(|second| second * 1_000 * MS).collect(),
        by_site: vec![
            LiveBytes { site: Some(AI), bytes: vec![5_000_000; 21] },
            LiveBytes { site: Some(CACHE), bytes: (0..21).map(|second| 1_000_000 + second * 415_000).collect() },
        ],
    };
    check(
        &capture,
        "scope game.cache leaks: live bytes grew from 1.0 MB to 9.3 MB in 20 s (0.41 MB/s)",
        &["game.cache 1.0 MB to 9.3 MB in 20 s, 0.41 MB/s, rising 100 % of the time"],
    );
}
