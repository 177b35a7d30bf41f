//! The store in a PostgreSQL server, a real one, which the test starts for itself: a cluster in a temporary folder, on a
//! socket in it.
//!
//! Needs Debian's package `postgresql`, or `initdb` and `postgres` of another origin in the path.

#[path = "../saves/accounts.rs"]
mod accounts;
#[path = "../saves/answers.rs"]
mod answers;
mod cluster;
#[path = "../saves/folder.rs"]
#[allow(dead_code, reason = "the tests of the embedded store need more of it")]
mod folder;

use std::{
    io::ErrorKind,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_persistence::{
    Commit, Done, Key, Lease, LeaseRequest, Outcome, Refusal, Saved, Store, StoreError, Ticket, Writer, WriterSettings,
    commit::{Order, Request},
    postgres::Postgres,
    refused_keys::RefusedKeys,
};
use throng_platform::time::Nanos;

use self::{accounts::Accounts, answers::await_ack, cluster::Cluster};

const NORTH: u64 = 10;
const SOUTH: u64 = u64::MAX;

/// One order by itself.
fn ask(store: &mut Postgres, request: Request) -> Outcome {
    let order = Order { ticket: Ticket(1), seen: Ticket(0), request };
    store.apply(&[order], &mut RefusedKeys::default()).unwrap().remove(0)
}

fn write(store: &mut Postgres, key: Key, value: &[u8], lease: Option<&Lease>) -> Outcome {
    let mut commit = Commit::new();
    commit.put_bytes(key, value.to_vec());
    if let Some(lease) = lease {
        commit.under(lease);
    }
    ask(store, Request::Commit(commit))
}

#[test]
fn records_come_and_go_and_two_processes_keep_each_others_leases() {
    let Some(cluster) = Cluster::start("pg-records") else { return };
    let mut north = Postgres::connect(&cluster.parameters(), NORTH).unwrap();
    let mut south = Postgres::connect(&cluster.parameters(), SOUTH).unwrap();
    assert_eq!(Postgres::connect(&cluster.parameters(), SOUTH).err(), Some(StoreError::InUse), "one of each number");

    let (ada, bob) = (Key::player(1), Key::player(2));
    // Their clocks are years apart: the server's counts.
    let take = |owner, for_ms| {
        let now_ms = if owner == NORTH { 0 } else { u64::MAX / 4 };
        Request::Lease(LeaseRequest::Take { key: ada, owner, now_ms, for_ms })
    };
    let Ok(Done::Leased(first)) = ask(&mut north, take(NORTH, 1_000_000)) else { panic!("it was free") };
    assert_eq!(write(&mut north, ada, b"one", Some(&first)), Ok(Done::Committed));
    let held = Err(Refusal::Held { key: ada, owner: NORTH, until_ms: first.until_ms });
    assert_eq!(ask(&mut south, take(SOUTH, 1)), held);
    let shorter = Request::Lease(LeaseRequest::Prolong { lease: first, now_ms: 0, for_ms: 0 });
    assert!(matches!(ask(&mut north, shorter), Ok(Done::Leased(_))));
    let Ok(Done::Leased(second)) = ask(&mut south, take(SOUTH, 1_000_000)) else { panic!("its time is over") };
    assert_eq!((second.owner, second.fence), (SOUTH, 2));
    let stale = Err(Refusal::Stale { key: ada, ours: 1, newest: 2 });
    assert_eq!(write(&mut north, ada, b"two", Some(&first)), stale);
    assert_eq!(write(&mut north, ada, b"two", None), Err(Refusal::Unleased { key: ada }));
    assert_eq!(write(&mut south, ada, b"three", Some(&second)), Ok(Done::Committed));
    assert_eq!(write(&mut north, bob, b"bob", None), Ok(Done::Committed));

    let lease_of_hub = LeaseRequest::Take { key: Key::world(1), owner: SOUTH, now_ms: 0, for_ms: 1_000_000 };
    assert!(matches!(ask(&mut south, Request::Lease(lease_of_hub)), Ok(Done::Leased(_))));
    let cell = Key::cell(1, 5);
    assert_eq!(
        write(&mut north, cell, b"a hole", None),
        Err(Refusal::Unleased { key: cell }),
        "it goes with its world"
    );

    let reads = north.reader();
    let fine = |value: &[u8]| Ok(Some(Saved { value: value.to_vec(), is_previous: false }));
    assert_eq!(reads.get(ada), fine(b"three"));
    cluster.run("UPDATE throng_records SET record = set_byte(record, 5, 0) WHERE record LIKE '%three'::bytea");
    assert_eq!(reads.get(ada), Ok(Some(Saved { value: b"one".to_vec(), is_previous: true })), "the one before");
    assert_eq!((reads.get(bob), reads.damaged()), (fine(b"bob"), 1));
    let mut found = Vec::new();
    reads.range(bob..=Key::player(9), &mut |key, saved| found.push((key, saved.unwrap().value))).unwrap();
    assert_eq!(found, [(bob, b"bob".to_vec())], "between the ends of a range");
    let mut delete = Commit::new();
    delete.delete(bob).items_created(7, 3);
    assert_eq!(ask(&mut north, Request::Commit(delete)), Ok(Done::Committed));
    assert_eq!(reads.get(bob), Ok(None));
    let balances = reads.visit(&mut |key, _| assert_eq!(key, ada)).unwrap();
    assert_eq!(balances.into_iter().collect::<Vec<_>>(), [(7, 3)]);

    cluster.run("UPDATE throng_meta SET number = 2");
    drop(south);
    let newer = StoreError::Newer { found: 2, known: 1 };
    assert_eq!(Postgres::connect(&cluster.parameters(), SOUTH).err(), Some(newer));
}

#[test]
fn a_reader_whose_connection_died_reads_over_a_new_one() {
    let Some(mut cluster) = Cluster::start("pg-reader") else { return };
    let ada = Key::player(1);
    let mut store = Postgres::connect(&cluster.parameters(), NORTH).unwrap();
    assert_eq!(write(&mut store, ada, b"ada", None), Ok(Done::Committed));
    let reads = store.reader();
    let check = || {
        let found = reads.get(ada);
        assert_eq!(found, Ok(Some(Saved { value: b"ada".to_vec(), is_previous: false })));
        let mut seen = 0;
        reads.visit(&mut |_, _| seen += 1).unwrap();
        assert_eq!(seen, 1);
    };
    check();
    cluster.kill_and_start();
    check();
    cluster.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'");
    let mut seen = 0;
    reads.visit(&mut |_, _| seen += 1).unwrap();
    assert_eq!(seen, 1, "each once");
    check();
}

#[test]
fn a_server_that_stands_still_is_not_waited_for_without_end() {
    let Some(cluster) = Cluster::start("pg-still") else { return };
    let stopped = cluster.stop();
    let parameters = cluster.parameters().replace("connect_timeout=5", "connect_timeout=1");
    let failed = Postgres::connect(&parameters, NORTH).err();
    assert!(matches!(failed, Some(StoreError::Io { kind: ErrorKind::TimedOut, .. })), "{failed:?}");
    drop(stopped);
    Postgres::connect(&cluster.parameters(), NORTH).unwrap();
}

/// The server is killed again and again while a game saves, and started again.
fn check(test: &str, kills: u32) {
    let Some(cluster) = Cluster::start(test) else { return };
    let settings = WriterSettings { gather: Nanos::ZERO, retry_first: Nanos::from_millis(10), ..Default::default() };
    let store = Postgres::connect(&cluster.parameters(), NORTH).unwrap();
    let mut writer = Writer::start(Box::new(store), settings).unwrap();
    let (mut present, first) = Accounts::found(12);
    writer.submit(first).unwrap();
    await_ack(&mut writer).outcome.unwrap();
    let (cluster, is_over) = (Mutex::new(cluster), AtomicBool::new(false));
    let (mut saves, mut refused) = (0_u64, 0_u64);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(u64::from(kills));
            for _ in 0..kills {
                thread::sleep(Duration::from_millis(rng.random_range(20..200)));
                cluster.lock().unwrap().kill_and_start();
            }
            is_over.store(true, Ordering::Release);
        });
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        // After a refusal everything is handed in again.
        let mut is_behind = false;
        while is_behind || !is_over.load(Ordering::Acquire) {
            let commit = if is_behind { present.whole() } else { present.pay(saves, &mut rng) };
            if writer.submit(commit).is_err() {
                is_behind = true;
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            is_behind = await_ack(&mut writer).outcome.is_err();
            *(if is_behind { &mut refused } else { &mut saves }) += 1;
        }
    });
    let reads = writer.reads();
    let counters = writer.counters();
    writer.finish();
    let read = Accounts::read(&*reads);
    let (read, count) = read.unwrap_or_else(|error| panic!("{error}"));
    eprintln!("{kills} kills of the server, {saves} saves, {refused} refused, opened anew {} times", counters.reopened);
    assert!(read == present, "what was acknowledged is not what is there");
    assert!(count.holds(), "{count:?}");
    assert!(counters.reopened > 0 && saves > u64::from(kills));
}

#[test]
fn r30_a_killed_server_loses_nothing_that_was_acknowledged() {
    check("pg-kills", 5);
}

#[test]
#[ignore = "full form: minutes"]
fn r30_a_killed_server_loses_nothing_that_was_acknowledged_full() {
    check("pg-kills-full", 100);
}
