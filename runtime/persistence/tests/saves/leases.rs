//! Leases: one owner at a time, and a stale one writes nothing.

use std::sync::Arc;

use throng_persistence::{Commit, Done, Embedded, Key, Lease, LeaseRequest, Outcome, Refusal, Writer, WriterSettings};
use throng_platform::clock::ManualClock;

use crate::folder::Folder;

const ADA: Key = Key::player(1);
const BOB: Key = Key::player(2);
/// Two processes.
const NORTH: u64 = 10;
const SOUTH: u64 = 20;

/// A store that two owners ask in turns.
struct Shared {
    writer: Writer,
    _folder: Folder,
}

impl Shared {
    fn new(test: &str) -> Shared {
        let folder = Folder::new(test);
        let store = Box::new(Embedded::open(&folder.store()).unwrap());
        let writer = Writer::inline(store, WriterSettings::default(), Arc::new(ManualClock::new()));
        Shared { writer, _folder: folder }
    }

    fn ask(&mut self, request: LeaseRequest) -> Outcome {
        self.writer.lease(request).unwrap();
        self.writer.take_ack().unwrap().outcome
    }

    fn take(&mut self, owner: u64, now_ms: u64) -> Outcome {
        self.ask(LeaseRequest::Take { key: ADA, owner, now_ms, for_ms: 1_000 })
    }

    fn write(&mut self, key: Key, value: u8, lease: Option<&Lease>) -> Outcome {
        let mut commit = Commit::new();
        commit.put_bytes(key, vec![value]);
        if let Some(lease) = lease {
            commit.under(lease);
        }
        self.writer.submit(commit).unwrap();
        self.writer.take_ack().unwrap().outcome
    }

    fn value(&self, key: Key) -> Option<u8> {
        self.writer.reads().get(key).unwrap().map(|saved| saved.value[0])
    }
}

fn lease(outcome: Outcome) -> Lease {
    match outcome {
        Ok(Done::Leased(lease)) => lease,
        other => panic!("no lease but {other:?}"),
    }
}

#[test]
fn a_player_has_one_owner_and_the_next_comes_when_the_time_is_over_or_the_lease_is_given_up() {
    let mut shared = Shared::new("one-owner");
    let first = lease(shared.take(NORTH, 5_000));
    assert_eq!(first, Lease { key: ADA, owner: NORTH, fence: 1, until_ms: 6_000 });
    assert_eq!(shared.take(SOUTH, 5_999), Err(Refusal::Held { key: ADA, owner: NORTH, until_ms: 6_000 }));
    let longer = lease(shared.ask(LeaseRequest::Prolong { lease: first, now_ms: 5_900, for_ms: 1_000 }));
    assert_eq!((longer.fence, longer.until_ms), (1, 6_900));
    assert!(shared.take(SOUTH, 6_899).is_err(), "it was prolonged");
    let second = lease(shared.take(SOUTH, 6_900));
    assert_eq!((second.owner, second.fence), (SOUTH, 2));
    let stale = Err(Refusal::Stale { key: ADA, ours: 1, newest: 2 });
    assert_eq!(shared.ask(LeaseRequest::Prolong { lease: longer, now_ms: 6_901, for_ms: 1_000 }), stale);
    assert_eq!(shared.ask(LeaseRequest::Release { lease: longer }), stale, "what another has it cannot give up");
    assert_eq!(shared.ask(LeaseRequest::Release { lease: second }), Ok(Done::Released));
    assert_eq!(lease(shared.take(NORTH, 6_902)).fence, 3, "at once, and numbers only rise");
}

#[test]
fn whoever_lost_a_lease_writes_nothing_whatever_its_clock_says() {
    let mut shared = Shared::new("stale");
    let first = lease(shared.take(NORTH, 0));
    assert_eq!(shared.write(ADA, 1, Some(&first)), Ok(Done::Committed));
    let second = lease(shared.take(SOUTH, 1_000));
    let stale = Err(Refusal::Stale { key: ADA, ours: 1, newest: 2 });
    assert_eq!(shared.write(ADA, 2, Some(&first)), stale);
    assert_eq!(shared.write(ADA, 3, None), Err(Refusal::Unleased { key: ADA }), "nor without one");
    assert_eq!(shared.value(ADA), Some(1));
    assert_eq!(shared.write(ADA, 4, Some(&second)), Ok(Done::Committed));
    assert_eq!(shared.ask(LeaseRequest::Release { lease: second }), Ok(Done::Released));
    assert!(shared.write(ADA, 5, Some(&second)).is_err(), "nor after giving it up");
    assert_eq!(shared.value(ADA), Some(4));
}

#[test]
fn a_stale_side_refuses_the_whole_trade() {
    let mut shared = Shared::new("trade");
    let first = lease(shared.take(NORTH, 0));
    lease(shared.take(SOUTH, 1_000));
    let mut trade = Commit::new();
    trade.put_bytes(ADA, vec![1]).put_bytes(BOB, vec![1]).under(&first).items_created(7, 1);
    shared.writer.submit(trade).unwrap();
    assert!(matches!(shared.writer.take_ack().unwrap().outcome, Err(Refusal::Stale { .. })));
    assert_eq!((shared.value(ADA), shared.value(BOB)), (None, None));
    let balances = shared.writer.reads().visit(&mut |key, _| panic!("{key:?} was written")).unwrap();
    assert!(balances.is_empty());
}

/// Lease and commits wait in one batch: the order in it decides, not the state before it.
#[test]
fn a_lease_taken_in_the_same_batch_counts_from_its_place() {
    let mut shared = Shared::new("same-batch");
    let first = lease(shared.take(NORTH, 0));
    let commit = |key, value, lease: Option<&Lease>| {
        let mut commit = Commit::new();
        commit.put_bytes(key, vec![value]);
        lease.map(|lease| commit.under(lease));
        commit
    };
    shared.writer.submit(commit(ADA, 1, Some(&first))).unwrap();
    shared.writer.lease(LeaseRequest::Take { key: ADA, owner: SOUTH, now_ms: 1_000, for_ms: 1 }).unwrap();
    shared.writer.submit(commit(ADA, 2, Some(&first))).unwrap();
    shared.writer.submit(commit(BOB, 3, None)).unwrap();
    let outcomes: Vec<bool> = std::iter::from_fn(|| shared.writer.take_ack()).map(|ack| ack.outcome.is_ok()).collect();
    assert_eq!(outcomes, [true, true, false, true]);
    assert_eq!(shared.writer.counters().batches, 2);
    assert_eq!((shared.value(ADA), shared.value(BOB)), (Some(1), Some(3)));
}
