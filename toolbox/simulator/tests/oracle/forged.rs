//! Forged messages: what a broken server could say, said to the judge alone. Each must be found out, and nothing else.

use throng_net::control::{AUDIT_SAMPLE, EVENT, SNAPSHOT};
use throng_replication::{Replicate, Writer};

use crate::judge::{Judge, Way};
use crate::wood::{Chronicle, Page, Trace, Wanderer, Watcher};

/// The client's own is wanderer 0. 1 dies in tick 3, 2 is far away, 3 is a stalker and 4 becomes one in tick 2; 5 and 6
/// are gone from tick 4 on.
fn trace(number: u16, tick: u32) -> Option<Trace> {
    let (x, is_stalker) = match number {
        0 => (0.0, false),
        1 if tick >= 3 => return None,
        2 => (100.0, false),
        3 => (10.0, true),
        4 => (10.0, tick >= 2),
        5 | 6 if tick >= 4 => (100.0, false),
        _ => (10.0, false),
    };
    Some(Trace { at: [x, 0.0], pack: number, is_stalker })
}

fn message(kind: u8, tick: u32, body: &[u8]) -> Vec<u8> {
    [&[kind, 0][..], &tick.to_le_bytes(), body].concat()
}

fn encoded(number: u16, tick: u32) -> Vec<u8> {
    let (mut bytes, at) = ([0; 16], trace(number, tick).map_or([10.0, 0.0], |trace| trace.at));
    let mut out = Writer::new(&mut bytes);
    Wanderer { at, number }.encode(&mut out);
    let len = out.len();
    bytes[..len].to_vec()
}

/// One record, of a slot below 16; wanderers have the slots of their numbers, and generation 1.
fn record(tick: u32, head: &[u8], encoded: &[u8]) -> Vec<u8> {
    message(SNAPSHOT, tick, &[&[0, 0], head, encoded].concat())
}

fn spawn(tick: u32, number: u16) -> Vec<u8> {
    record(tick, &[(number as u8) << 3 | 0b011, 1, 1], &encoded(number, tick))
}

fn update(tick: u32, number: u16) -> Vec<u8> {
    record(tick, &[(number as u8) << 1], &encoded(number, tick))
}

fn despawn(tick: u32, slot: u8) -> Vec<u8> {
    record(tick, &[slot << 3 | 0b111], &[])
}

fn absence(tick: u32, slot: u8) -> Vec<u8> {
    message(AUDIT_SAMPLE, tick, &[0, slot, 1, 0])
}

/// Kind 0 is a cry, 1 a call.
fn event(kind: u8, tick: u32, number: u16) -> Vec<u8> {
    [&[EVENT, 0, kind][..], &number.to_le_bytes(), &(tick as u16).to_le_bytes()].concat()
}

#[test]
fn r16_what_is_forged_is_found_out() {
    let script = [
        (0, spawn(0, 0), None),
        (0, spawn(0, 1), None),
        (0, spawn(0, 2), Some(Way::Spawn)),
        (0, spawn(0, 3), Some(Way::Spawn)),
        (0, update(0, 4), Some(Way::Update)),
        (0, despawn(0, 9), Some(Way::Despawn)),
        (0, absence(0, 9), Some(Way::Absence)),
        (0, event(0, 0, 1), None),
        (0, event(0, 0, 3), Some(Way::Cry)),
        (0, event(1, 0, 1), Some(Way::Call)),
        (1, spawn(1, 4), None),
        (1, update(1, 1), None),
        // The id of somebody else.
        (1, record(1, &[4 << 3 | 0b011, 1, 1], &encoded(5, 1)), Some(Way::Spawn)),
        // Hidden as of now: an end may be told, once, and nothing else.
        (2, update(2, 4), Some(Way::Update)),
        (2, absence(2, 4), Some(Way::Absence)),
        (2, despawn(2, 4), None),
        (2, update(2, 4), Some(Way::Update)),
        (2, despawn(2, 4), Some(Way::Despawn)),
        // Dead as of now.
        (3, update(3, 1), Some(Way::Update)),
        (3, spawn(3, 1), Some(Way::Spawn)),
        (3, event(0, 3, 1), Some(Way::Cry)),
        (3, despawn(3, 1), None),
        (3, absence(3, 1), None),
        (3, spawn(3, 5), None),
        (3, spawn(3, 6), None),
        // Out of reach: for as long as a set may hold.
        (10, update(10, 5), None),
        (11, update(11, 5), Some(Way::Update)),
        (11, despawn(11, 5), None),
        (12, despawn(12, 6), Some(Way::Despawn)),
        (75, absence(75, 5), None),
        (76, absence(76, 5), Some(Way::Absence)),
    ];
    let chronicle = Chronicle::default();
    let mut judge = Judge::new(chronicle.clone(), 1, false);
    for (index, (tick, message, expect)) in script.into_iter().enumerate() {
        let first = chronicle.pages().last_tick().map_or(0, |last| last + 1);
        for tick in first..=tick {
            let traces = (0..7).map(|number| trace(number, tick)).collect();
            let watchers = vec![Watcher { own: Some(0), pack: 0 }];
            chronicle.pages().write(Page { tick, traces, watchers });
        }
        let before = judge.findings.clone();
        judge.hear_message(0, &message);
        let leaks = judge.findings.leaks_in_all() - before.leaks_in_all();
        let expected = expect.map_or(0, |way| judge.findings.leaks(way) - before.leaks(way));
        assert_eq!((leaks, expected), (expect.is_some().into(), leaks), "message {index}: {:?}", judge.findings);
    }
}
