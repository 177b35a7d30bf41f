//! The writer: nothing waits, everything is bounded, what was acknowledged is there.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_persistence::{
    Ack, Commit, Done, Embedded, Key, Outcome, Reads, Refusal, Store, StoreError, Ticket, Writer, WriterSettings,
    commit::Order, refused_keys::RefusedKeys, writer::Full,
};
use throng_platform::{
    clock::{Clock, ManualClock},
    time::Nanos,
};

use crate::{accounts::Accounts, folder::Folder};

fn of(bytes: usize) -> Commit {
    let mut commit = Commit::new();
    commit.put_bytes(Key::player(1), vec![7; bytes]);
    commit
}

fn acks(writer: &mut Writer) -> Vec<Ack> {
    std::iter::from_fn(|| writer.take_ack()).collect()
}

#[test]
fn what_was_acknowledged_is_there_when_the_store_is_opened_again() {
    let folder = Folder::new("again");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let (mut accounts, first) = Accounts::found(10);
    let store = Embedded::open(&folder.store()).unwrap();
    let mut writer = Writer::start(Box::new(store), WriterSettings::default()).unwrap();
    let mut tickets = vec![writer.submit(first).unwrap()];
    for number in 1..=300 {
        tickets.push(writer.submit(accounts.pay(number, &mut rng)).unwrap());
    }
    let mut acks = acks(&mut writer);
    acks.extend(writer.finish());
    let expected = tickets.into_iter().map(|ticket| Ack { ticket, outcome: Ok(Done::Committed) });
    assert_eq!(acks, expected.collect::<Vec<_>>(), "each once, in order");

    let store = Embedded::open(&folder.store()).unwrap();
    let (read, count) = Accounts::read(&*store.reader()).unwrap();
    assert_eq!(read, accounts);
    assert!(count.holds() && count.records == 10, "{count:?}");
}

#[test]
fn commits_that_wait_share_a_transaction() {
    let folder = Folder::new("share");
    let store = Embedded::open(&folder.store()).unwrap();
    let mut writer = Writer::inline(Box::new(store), WriterSettings::default(), Arc::new(ManualClock::new()));
    for _ in 0..100 {
        writer.submit(of(10)).unwrap();
    }
    assert_eq!(acks(&mut writer).len(), 100);
    let counters = writer.counters();
    assert_eq!((counters.commits, counters.batches, counters.queued_bytes), (100, 1, 0));
}

#[test]
fn who_hurries_does_not_wait_for_others_to_join() {
    let folder = Folder::new("hurry");
    let store = Embedded::open(&folder.store()).unwrap();
    let settings = WriterSettings { gather: Nanos::from_secs(3_600), ..WriterSettings::default() };
    let mut writer = Writer::start(Box::new(store), settings).unwrap();
    for _ in 0..3 {
        writer.hurry();
        writer.submit(of(10)).unwrap();
        let began = Instant::now();
        while writer.take_ack().is_none() {
            assert!(began.elapsed() < Duration::from_secs(60), "it waits for others");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A store that does each batch when it is told to, and as it is told.
struct Told {
    begun: Sender<usize>,
    tell: Receiver<Result<(), StoreError>>,
    settles: Arc<Mutex<Vec<Result<(), StoreError>>>>,
    reads: Arc<dyn Reads>,
}

impl Store for Told {
    fn apply(&mut self, orders: &[Order], _: &mut RefusedKeys) -> Result<Vec<Outcome>, StoreError> {
        _ = self.begun.send(orders.len());
        self.tell.recv().unwrap()?;
        Ok(vec![Ok(Done::Committed); orders.len()])
    }

    fn settle(&mut self) -> Result<Option<Vec<Outcome>>, StoreError> {
        self.settles.lock().unwrap().pop().unwrap_or(Ok(())).map(|()| None)
    }

    fn reader(&self) -> Arc<dyn Reads> {
        Arc::clone(&self.reads)
    }
}

#[test]
fn a_disk_that_does_not_come_back_makes_nobody_wait_and_fills_a_queue_with_an_end() {
    let folder = Folder::new("slow");
    let reads = Embedded::open(&folder.store()).unwrap().reader();
    let ((begun, begins), (teller, tell)) = (channel(), channel());
    let store = Told { begun, tell, settles: Arc::default(), reads };
    let settings = WriterSettings { queue_bytes_max: 100_000, orders_max: 60, ..WriterSettings::default() };
    let mut writer = Writer::start(Box::new(store), settings).unwrap();
    writer.submit(of(1_000)).unwrap();
    assert_eq!(begins.recv(), Ok(1), "the thread is inside the store now and stays there");
    let mut taken = 1;
    let full = loop {
        match writer.submit(of(3_000)) {
            Ok(_) => taken += 1,
            Err(full) => break full,
        }
    };
    assert!(matches!(full, Full::Bytes { waiting, max: 100_000 } if waiting <= 100_000), "{full:?}");
    assert_eq!(taken, 1 + (100_000 - 1_064) / 3_064);
    let full = loop {
        if let Err(full) = writer.submit(Commit::new()) {
            break full;
        }
    };
    assert_eq!(full, Full::Orders(60));
    assert_eq!(writer.counters().full, 2);
    assert!(writer.take_ack().is_none(), "nothing is on disk");

    for _ in 0..2 {
        teller.send(Ok(())).unwrap();
    }
    let acks = writer.finish();
    assert_eq!(acks.iter().map(|ack| ack.ticket.0).collect::<Vec<_>>(), (1..=60).collect::<Vec<_>>());
    assert!(acks.iter().all(|ack| ack.outcome == Ok(Done::Committed)));
}

#[test]
fn who_ends_does_not_wait_for_a_disk_that_does_not_come_back() {
    let folder = Folder::new("stuck");
    let reads = Embedded::open(&folder.store()).unwrap().reader();
    let ((begun, begins), (teller, tell)) = (channel(), channel());
    let store = Told { begun, tell, settles: Arc::default(), reads };
    let mut writer = Writer::start(Box::new(store), WriterSettings::default()).unwrap();
    for _ in 0..2 {
        writer.submit(of(10)).unwrap();
        teller.send(Ok(())).unwrap();
        assert_eq!(begins.recv(), Ok(1));
    }
    writer.submit(of(10)).unwrap();
    assert_eq!(begins.recv(), Ok(1), "the thread is inside the store now and stays there");
    let left = writer.finish_within(Nanos::from_millis(50));
    let acks: Vec<_> = left.acks.into_iter().map(|ack| (ack.ticket.0, ack.outcome)).collect();
    assert_eq!((acks, left.is_over), (vec![(1, Ok(Done::Committed)), (2, Ok(Done::Committed))], false));
    drop(teller);
}

#[test]
fn a_store_that_failed_is_opened_anew_with_growing_pauses_and_answers_only_then() {
    let folder = Folder::new("back-off");
    let reads = Embedded::open(&folder.store()).unwrap().reader();
    let ((begun, _begins), (teller, tell)) = (channel(), channel());
    let settles = Arc::new(Mutex::new(vec![Err(StoreError::DiskFull); 3]));
    let store = Told { begun, tell, settles: Arc::clone(&settles), reads };
    let clock = ManualClock::new();
    let mut writer = Writer::inline(Box::new(store), WriterSettings::default(), Arc::new(clock.clone()));
    teller.send(Err(StoreError::DiskFull)).unwrap();
    writer.submit(of(10)).unwrap();
    assert!(writer.take_ack().is_none() && writer.is_down());
    assert_eq!(settles.lock().unwrap().len(), 2, "one try at once");
    assert_eq!(writer.submit(of(10)), Err(Full::Down));
    let mut tries = Vec::new();
    for ms in 0..2_000 {
        let before = settles.lock().unwrap().len();
        clock.set(Nanos::from_millis(ms));
        let ack = writer.take_ack();
        if settles.lock().unwrap().len() < before {
            tries.push(ms);
        }
        if let Some(ack) = ack {
            assert_eq!(ack, Ack { ticket: Ticket(1), outcome: Err(Refusal::Store(StoreError::DiskFull)) });
            tries.push(ms);
            break;
        }
    }
    assert_eq!(tries, [100, 300, 700]);
    assert!(!writer.is_down());
    let counters = writer.counters();
    assert_eq!((counters.errors, counters.reopened, counters.refused), (4, 1, 1));
}

/// A full disk: the store can be opened, and the next batch fails again.
#[test]
fn a_store_that_is_opened_and_takes_nothing_is_tried_with_growing_pauses() {
    let folder = Folder::new("unproven");
    let reads = Embedded::open(&folder.store()).unwrap().reader();
    let ((begun, begins), (teller, tell)) = (channel(), channel());
    let store = Told { begun, tell, settles: Arc::default(), reads };
    let clock = ManualClock::new();
    let mut writer = Writer::inline(Box::new(store), WriterSettings::default(), Arc::new(clock.clone()));
    let mut tries = Vec::new();
    let mut play = |until_ms: u64, fails: bool| {
        tries.clear();
        for ms in clock.now().as_micros() / 1_000..until_ms {
            clock.set(Nanos::from_millis(ms));
            // Whoever plays on has something to save in each frame.
            if writer.submit(of(10)).is_ok() {
                teller.send(if fails { Err(StoreError::DiskFull) } else { Ok(()) }).unwrap();
            }
            while writer.take_ack().is_some() {}
            if begins.try_iter().count() > 0 {
                tries.push(ms);
            }
        }
        tries.clone()
    };
    assert_eq!(play(2_000, true), [0, 1, 102, 303, 704, 1_505]);
    let worked = play(4_000, false);
    assert_eq!(worked[0], 3_106, "the pause that was begun");
    assert_eq!(worked.len(), 4_000 - 3_106, "and no other");
    assert_eq!(play(4_300, true), [3_999, 4_000, 4_101], "from the shortest pause again");
}

/// A full disk between two trades of the same sword must not double it.
#[test]
fn what_was_built_on_a_refused_commit_is_refused_until_its_giver_knows() {
    let folder = Folder::new("built-on");
    let clock = Arc::new(ManualClock::new());
    let store = FailsOnce { store: Embedded::open(&folder.store()).unwrap(), fails: true };
    let settings = WriterSettings { batch_bytes_max: 1, ..WriterSettings::default() };
    let mut writer = Writer::inline(Box::new(store), settings, clock);
    let trade = |keys: &[u64]| {
        let mut commit = Commit::new();
        for key in keys {
            commit.put_bytes(Key::player(*key), vec![1]);
        }
        commit
    };
    for keys in [&[1, 2][..], &[2, 3], &[3, 4], &[5]] {
        writer.submit(trade(keys)).unwrap();
    }
    let mut outcomes = Vec::new();
    for _ in 0..4 {
        outcomes.push(writer.take_ack().unwrap().outcome);
    }
    let after = |key| Err(Refusal::AfterRefused { key: Key::player(key) });
    let failed = Err(Refusal::Store(StoreError::DiskFull));
    assert_eq!(outcomes, [failed, after(2), after(3), Ok(Done::Committed)]);
    // Now it knows, and hands everything in again.
    writer.submit(trade(&[1, 2, 3, 4])).unwrap();
    assert_eq!(writer.take_ack().unwrap().outcome, Ok(Done::Committed));
}

/// The first batch fails, and nothing of it is there.
struct FailsOnce {
    store: Embedded,
    fails: bool,
}

impl Store for FailsOnce {
    fn apply(&mut self, orders: &[Order], refused: &mut RefusedKeys) -> Result<Vec<Outcome>, StoreError> {
        if std::mem::take(&mut self.fails) {
            return Err(StoreError::DiskFull);
        }
        self.store.apply(orders, refused)
    }

    fn settle(&mut self) -> Result<Option<Vec<Outcome>>, StoreError> {
        self.store.settle()
    }

    fn reader(&self) -> Arc<dyn Reads> {
        self.store.reader()
    }
}

#[test]
fn a_writer_that_is_dropped_still_writes_what_it_took() {
    let folder = Folder::new("dropped");
    let store = Embedded::open(&folder.store()).unwrap();
    let (started, ended) = channel();
    let clock = Arc::new(ManualClock::new());
    let mut writer = Writer::start_on(Box::new(store), WriterSettings::default(), clock, |work| {
        Ok(thread::spawn(move || {
            work();
            started.send(()).unwrap();
        }))
    })
    .unwrap();
    let reads = writer.reads();
    writer.submit(of(10)).unwrap();
    drop(writer);
    ended.recv().unwrap();
    assert_eq!(reads.get(Key::player(1)).unwrap().unwrap().value, vec![7; 10], "a reader keeps the file open");
    assert_eq!(Embedded::open(&folder.store()).err(), Some(StoreError::InUse));
    drop(reads);
    let store = Embedded::open(&folder.store()).unwrap();
    assert_eq!(store.reader().get(Key::player(1)).unwrap().unwrap().value, vec![7; 10]);
}
