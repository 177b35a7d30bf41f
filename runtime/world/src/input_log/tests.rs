//! Promise: a log is read as it was written, up to where it was written whole, and never as anything else.

use throng_net::protocol::ClientId;
use throng_pack::Fault;
use throng_platform::time::Nanos;
use throng_replication::{PackedId, TimeFactor};
use throng_scheduler::Hertz;

use super::*;
use crate::{
    ids::WorldId,
    inbox::MessageKind,
    saving::{SaveAnswer, SaveRequest, SaveStore},
    seen_moment::SeenMoment,
    tick_resources::{RefusedTravel, TravelRefusal},
    transfer::{TRANSFER_BYTES_MAX, Transfer},
};

const SPEC: &str = include_str!("../../../../docs/spec/input-log.md");
const START: LogStart = LogStart { rate: Hertz(20), tick: 7, seed: 1, schema: 0x1122_3344_5566_7788 };

fn request(bytes: &[u8]) -> InboxMessage<'_> {
    InboxMessage {
        client: ClientKey(9),
        kind: MessageKind::Request { kind: PackedId(2) },
        is_late: false,
        seen: None,
        bytes,
    }
}

fn input(bytes: &[u8]) -> InboxMessage<'_> {
    let round_trip = Nanos(40_000_000);
    let seen = SeenMoment { tick: 5, part: 128, newest_tick: 6, acked_tick: 4, round_trip };
    let kind = MessageKind::Input { number: 65_535, kind: PackedId(1) };
    InboxMessage { client: ClientKey(u32::MAX), kind, is_late: true, seen: Some(seen), bytes }
}

fn traveller() -> Arrival {
    Arrival {
        client: ClientKey(9),
        client_id: ClientId(77),
        user_data: Box::new([3; 256]),
        from: Some(WorldId::new(4, 2)),
        transfer: Some(Transfer::from_bytes(vec![1, 2, 3])),
        refused: Some(RefusedTravel { to: WorldId::new(5, 0), reason: TravelRefusal::TransferUnreadable }),
    }
}

fn written(log: &mut InputLog) -> Vec<u8> {
    let mut bytes = Vec::new();
    log.take(&mut bytes);
    bytes
}

/// A log of four ticks with every kind of entry, the second without any.
fn example() -> Vec<u8> {
    let mut log = InputLog::new(START);
    log.arrival(&traveller());
    log.message(&request(b"open"));
    log.end_tick();
    log.end_tick();
    log.message(&input(b""));
    log.rules(b"near");
    log.time_factor(TimeFactor::from_percent(40));
    log.end_tick();
    log.arrival(&Arrival { from: None, transfer: None, refused: None, ..traveller() });
    log.world_message(&WorldMessage::of(WorldId::new(1, 1), &WorldId::new(6, 7)).unwrap());
    log.departure(ClientKey(9));
    log.end_tick();
    written(&mut log)
}

/// Each tick with its entries, as text; and the fault at the end, if there is one.
fn read(bytes: &[u8]) -> (Vec<String>, Option<LogFault>) {
    let mut ticks = Vec::new();
    let mut reader = match InputLogReader::new(bytes) {
        Ok(reader) => reader,
        Err(fault) => return (ticks, Some(fault)),
    };
    for tick in reader.by_ref() {
        let read = tick.and_then(|tick| Ok((tick.tick, tick.entries().collect::<Result<Vec<_>, _>>()?)));
        match read {
            Ok((tick, entries)) => ticks.push(format!("{tick} {entries:?}")),
            Err(fault) => return (ticks, Some(fault)),
        }
    }
    assert_eq!(reader.good_bytes(), bytes.len(), "a log without a fault is read to its end");
    (ticks, None)
}

#[test]
fn what_entered_is_read_in_its_tick_and_order() {
    let bytes = example();
    let reader = InputLogReader::new(&bytes).unwrap();
    assert_eq!(reader.start(), START);
    let ticks: Vec<LoggedTick<'_>> = reader.map(Result::unwrap).collect();
    assert_eq!(ticks.iter().map(|tick| tick.tick).collect::<Vec<_>>(), [8, 9, 10, 11]);
    let entries = |index: usize| ticks[index].entries().map(Result::unwrap).collect::<Vec<_>>();
    let [Entry::Arrival(came), Entry::Message(said)] = entries(0)[..] else { panic!("{:?}", entries(0)) };
    let expected = traveller();
    assert_eq!((came.client, came.client_id, came.user_data), (ClientKey(9), ClientId(77), &[3; 256]));
    assert_eq!((came.from, came.transfer, came.refused), (expected.from, Some(&[1, 2, 3][..]), expected.refused));
    assert_eq!(format!("{said:?}"), format!("{:?}", request(b"open")));
    assert!(entries(1).is_empty());
    let [Entry::Message(said), Entry::Rules(b"near"), Entry::TimeFactor(factor)] = entries(2)[..] else {
        panic!("{:?}", entries(2))
    };
    assert_eq!(factor.percent(), 40);
    assert_eq!(format!("{said:?}"), format!("{:?}", input(b"")));
    let [Entry::Arrival(new), Entry::WorldMessage { from, bytes }, Entry::Departure(ClientKey(9))] = entries(3)[..]
    else {
        panic!("{:?}", entries(3))
    };
    assert_eq!((new.from, new.transfer, new.refused), (None, None, None));
    assert_eq!(from, WorldId::new(1, 1));
    assert_eq!(throng_pack::envelope::read(bytes), Ok(WorldId::new(6, 7)));
}

#[test]
fn the_bytes_are_those_of_the_drawing() {
    let (_, block) = SPEC.split_once("```hex log\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let golden: Vec<u8> = block.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let mut log = InputLog::new(START);
    log.message(&request(&[0xAC, 0x02]));
    log.departure(ClientKey(9));
    log.end_tick();
    log.end_tick();
    assert_eq!(written(&mut log), golden);
    assert_eq!(read(&golden).0.len(), 2);
    assert_eq!(read(&golden).1, None);
}

/// Whichever bit is wrong, it is found, and the ticks before it are as they were.
#[test]
fn damage_at_each_bit_is_found() {
    let good = example();
    let whole = read(&good).0;
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let (ticks, fault) = read(&bytes);
        let expected = if bit / 8 < 8 { LogFault::NoLog } else { LogFault::HeadingDamaged };
        match fault {
            Some(LogFault::Damaged { at }) => assert!(at >= START_BYTES && at <= bit / 8, "bit {bit}"),
            fault => assert!(bit / 8 < START_BYTES && fault == Some(expected), "bit {bit}: {fault:?}"),
        }
        assert!(ticks.len() < whole.len() && whole.starts_with(&ticks), "bit {bit}");
    }
}

/// A log that is cut off anywhere gives the ticks that were whole, with and without the zeros of a file that had grown.
#[test]
fn a_torn_tail_is_read_up_to_its_last_whole_tick() {
    let good = example();
    let whole = read(&good).0;
    let ends: Vec<usize> = {
        let mut reader = InputLogReader::new(&good).unwrap();
        std::iter::from_fn(|| reader.next().map(|_| reader.good_bytes())).collect()
    };
    for length in START_BYTES..good.len() {
        let count = ends.iter().filter(|end| **end <= length).count();
        let at = ends[..count].last().copied().unwrap_or(START_BYTES);
        let (ticks, fault) = read(&good[..length]);
        assert_eq!(ticks, whole[..count], "cut at {length}");
        assert_eq!(fault, (length > at).then_some(LogFault::Torn { at }), "cut at {length}");
    }
    let mut grown = good[..ends[1]].to_vec();
    grown.resize(ends[1] + 4096, 0);
    assert_eq!(read(&grown), (whole[..2].to_vec(), Some(LogFault::Torn { at: ends[1] })));
    assert!((0..START_BYTES).all(|length| read(&good[..length]).1 == Some(LogFault::NoLog)));
}

#[test]
fn a_tick_that_is_doubled_is_found_and_one_that_was_left_out_has_its_number() {
    let good = example();
    let mut reader = InputLogReader::new(&good).unwrap();
    reader.next();
    let first = START_BYTES..reader.good_bytes();
    let missing = [&good[..START_BYTES], &good[first.end..]].concat();
    let mut left_out = InputLogReader::new(&missing).unwrap();
    assert_eq!(left_out.next().unwrap().map(|tick| tick.tick), Ok(9), "whether it may be left out the world knows");
    let doubled = [&good[..first.end], &good[first]].concat();
    assert_eq!(read(&doubled).1, Some(LogFault::TickOutOfOrder { got: 8, expected: 9 }));
}

/// Checksums hold for whatever somebody has written: entries are believed no more for it.
#[test]
fn entries_that_are_none_are_refused() {
    let check = |entries: &[u8], expected: LogFault| {
        let mut log = InputLog::new(START);
        log.bytes.extend_from_slice(entries);
        log.end_tick();
        assert_eq!(read(&written(&mut log)), (vec![], Some(expected)), "{entries:?}");
    };
    check(&[11], LogFault::UnknownEntry { got: 11 });
    check(&[9, 4, 0, 0, 0, 1, 0, 0, 0], Fault::OutOfRange.into());
    check(&[9, 5, 0, 0, 0, 1, 0, 0, 0, 2], Fault::OutOfRange.into());
    check(&[7, 9], Fault::OutOfRange.into());
    check(&[2, 9, 0], Fault::Truncated.into());
    check(&[6, 0xFF, 0xFF, 0xFF, 0xFF, 1], Fault::Truncated.into());
    check(&[4, 2, 9, 0, 0, 0, 2, 0, 0, 0, 0, 0], Fault::NoFlag.into());
    let mut long = vec![5, 0, 0, 0, 0, 0, 0, 0, 0];
    long.extend_from_slice(&(TRANSFER_BYTES_MAX as u32 + 1).to_le_bytes());
    long.resize(long.len() + TRANSFER_BYTES_MAX + 1, 0);
    check(&long, Fault::OutOfRange.into());
}

#[test]
fn steady_ticks_write_into_the_memory_that_is_there() {
    let mut log = InputLog::new(START);
    let mut handed_over = Vec::with_capacity(4096);
    let mut tick = |log: &mut InputLog| {
        (0..10).for_each(|_| log.message(&input(b"forward")));
        log.end_tick();
        handed_over.clear();
        log.take(&mut handed_over);
    };
    (0..3).for_each(|_| tick(&mut log));
    let (memory, capacity) = (log.bytes.as_ptr(), log.bytes.capacity());
    (0..100).for_each(|_| tick(&mut log));
    assert_eq!((log.bytes.as_ptr(), log.bytes.capacity()), (memory, capacity));
    assert_eq!(handed_over.capacity(), 4096);
}

#[test]
fn answers_to_requests_to_be_saved_are_read_as_they_were_written() {
    let answers = [(7, true), (u32::MAX, false)]
        .map(|(request, is_on_disk)| SaveAnswer { request: SaveRequest(request), is_on_disk });
    let mut log = InputLog::new(START);
    log.save_answers(&answers);
    log.end_tick();
    let bytes = written(&mut log);
    let entries: Vec<_> = InputLogReader::new(&bytes).unwrap().next().unwrap().unwrap().entries().collect();
    let [Ok(Entry::SaveAnswers(read))] = entries[..] else { panic!("{entries:?}") };
    assert_eq!(read.iter().collect::<Vec<_>>(), answers);
}

#[test]
fn the_store_of_the_saves_is_read_as_it_was_written() {
    let stores =
        [(true, true), (true, false), (false, true)].map(|(is_away, has_turned)| SaveStore { is_away, has_turned });
    let mut log = InputLog::new(START);
    stores.iter().for_each(|store| log.save_store(*store));
    log.end_tick();
    let bytes = written(&mut log);
    let entries = InputLogReader::new(&bytes).unwrap().next().unwrap().unwrap().entries();
    let read: Vec<_> =
        entries.map(|entry| matches!(entry, Ok(Entry::SaveStore(store)) if stores.contains(&store))).collect();
    assert_eq!(read, [true; 3]);
}

#[test]
fn tunables_are_read_as_they_were_written() {
    let values = [Some(6.5), None, Some(-0.0)];
    let mut log = InputLog::new(START);
    log.tunables(&TunedValues::from_values(values.into_iter()));
    let check = |mut entries: Entries<'_>, when| {
        let entry = entries.next().unwrap();
        let Ok(Entry::Tunables(read)) = entry else { panic!("{when}: {entry:?}") };
        assert_eq!(read.iter().collect::<Vec<_>>(), values, "{when}");
        assert!(entries.next().is_none(), "{when}");
    };
    check(log.unfinished_tick(), "before the tick is over");
    log.end_tick();
    let bytes = written(&mut log);
    check(InputLogReader::new(&bytes).unwrap().next().unwrap().unwrap().entries(), "after it");
}

#[test]
fn a_log_that_begins_anew_forgets_and_keeps_its_memory() {
    let mut log = InputLog::new(START);
    for _ in 0..100 {
        log.message(&request(b"open"));
        log.end_tick();
    }
    let (long, memory) = (log.whole_ticks().len(), log.bytes.capacity());
    log.restart(LogStart { tick: 107, ..START });
    assert!(log.whole_ticks().len() < 100 && long > 1_000 && log.bytes.capacity() == memory);
    log.end_tick();
    let bytes = written(&mut log);
    let ticks: Vec<_> = InputLogReader::new(&bytes).unwrap().map(|tick| tick.unwrap().tick).collect();
    assert_eq!(ticks, [108]);
}

/// Promise: what enters a tick can be read before its systems run, as it will stand in the log.
#[test]
fn a_tick_under_way_is_read_as_it_will_stand_in_the_log() {
    let mut log = InputLog::new(START);
    log.message(&request(b"open"));
    assert_eq!(log.tick_under_way(), None, "not all has entered yet");
    log.all_has_entered();
    let shown = log.tick_under_way().unwrap().to_vec();
    log.forget();
    log.end_tick();
    assert_eq!((&written(&mut log), log.tick_under_way()), (&shown, None));
    // What comes after it is of the same tick, and was not there when its systems began.
    log.message(&input(b"go"));
    log.all_has_entered();
    let shown = log.tick_under_way().unwrap().to_vec();
    log.save_store(SaveStore::default());
    assert_eq!(log.tick_under_way(), Some(&shown[..]));
    log.end_tick();
    let bytes = written(&mut log);
    assert!(bytes.len() > shown.len());
    assert_eq!(InputLogReader::of_ticks(&bytes, LogStart { tick: START.tick + 1, ..START }).count(), 1);
}
