//! Models of the lock-free parts: writers, the frame's thread and a reader in every order that a checker can think of.
//!
//! What runs here is what ships, [`Writer`] and [`Pool`] on the checker's atomics (`shim`), with blocks of two records
//! so that they are full soon. Loom tries all orders with up to three preemptions, and all values that the memory order
//! allows a load to have; shuttle tries random orders (`SHUTTLE_SCHEDULES`), all sequentially consistent, and many more
//! of them.
//!
//! ```text
//! cargo test -p throng-profiler --features loom --lib model_tests
//! SHUTTLE_SCHEDULES=100000 cargo test -p throng-profiler --features shuttle --lib model_tests
//! ```

use std::sync::atomic::Ordering;

#[cfg(not(feature = "shuttle"))]
use loom::thread;
#[cfg(feature = "shuttle")]
use shuttle::thread;

use super::{CurrentBlock, Writer};
use crate::pool::{Pool, PoolSettings};
use crate::record::{Read, Record};
use crate::shim::AtomicU32;

/// Preemptions that loom tries in one run.
#[cfg(not(feature = "shuttle"))]
const PREEMPTIONS: usize = 3;

/// Random orders of each model, unless `SHUTTLE_SCHEDULES` says another number.
#[cfg(feature = "shuttle")]
const SCHEDULES: usize = 2_000;

#[cfg(not(feature = "shuttle"))]
fn check(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(model);
}

#[cfg(feature = "shuttle")]
fn check(model: fn()) {
    let said = std::env::var("SHUTTLE_SCHEDULES").ok().and_then(|number| number.parse().ok());
    shuttle::check_random(model, said.unwrap_or(SCHEDULES));
}

/// All want the same block, and it is recycled as soon as it can be.
const ONE_BLOCK: PoolSettings = PoolSettings { blocks_max: 1, reserve: 1, history: 0 };

/// More than is written, and ready to be taken.
const PLENTY: PoolSettings = PoolSettings { blocks_max: 4, reserve: 2, history: u64::MAX };

/// What the threads of a model share. Leaked, since threads want it to be static; a model is small.
struct Stage {
    pool: Pool,
    current: [CurrentBlock; 2],
    /// Threads that have the block, by its index.
    owners: [AtomicU32; 4],
    /// Records that writer 0 has published.
    published: AtomicU32,
}

impl Stage {
    fn new(settings: PoolSettings) -> &'static Stage {
        Box::leak(Box::new(Stage {
            pool: Pool::new(settings),
            current: [CurrentBlock::new(), CurrentBlock::new()],
            owners: std::array::from_fn(|_| AtomicU32::new(0)),
            published: AtomicU32::new(0),
        }))
    }

    /// Pins and reads everything: records by the thread that wrote them, in the order of each block. What is read must
    /// be whole, in order, and its owner's.
    fn read(&self) -> Vec<(u32, Vec<u64>)> {
        let pinned = self.pool.pin(0, self.current.iter().filter_map(CurrentBlock::get));
        let blocks = pinned.blocks().map(|(owner, records)| {
            let numbers = records.map(|record| match record.read() {
                Read::Scope { site, begin, length } if site == owner + 1 && begin == length => begin,
                other => panic!("torn or foreign in a block of thread {owner}: {other:?}"),
            });
            let numbers: Vec<u64> = numbers.collect();
            assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "in order: {numbers:?}");
            (owner, numbers)
        });
        blocks.collect()
    }
}

/// A recording thread, as `thread` does it.
struct Recording {
    stage: &'static Stage,
    writer: Writer,
    number: u32,
}

impl Recording {
    fn new(stage: &'static Stage, number: u32) -> Recording {
        Recording { stage, writer: Writer::new(), number }
    }

    /// False if it was lost.
    fn write(&self, number: u64) -> bool {
        let record = Record::scope(self.number + 1, number, number);
        if self.writer.block().is_some_and(|block| block.push(record)) {
            return true;
        }
        self.leave();
        let Stage { pool, current, owners, .. } = self.stage;
        let taken = self.writer.take_block(pool, &current[self.number as usize], self.number, number);
        let Some(block) = taken else {
            pool.count_lost();
            return false;
        };
        assert_eq!(owners[block.index() as usize].fetch_add(1, Ordering::Relaxed), 0, "a block has one owner");
        block.push(record)
    }

    fn leave(&self) {
        if let Some(block) = self.writer.block() {
            self.stage.owners[block.index() as usize].fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn end(self) {
        self.leave();
        self.writer.give_back(&self.stage.pool, &self.stage.current[self.number as usize], 0);
    }
}

/// One block, so that it goes from thread to thread while it is read.
#[test]
fn r25_a_pinned_block_holds_no_torn_or_foreign_record() {
    check(|| {
        let stage = Stage::new(ONE_BLOCK);
        let first = thread::spawn(move || {
            let thread = Recording::new(stage, 0);
            thread.write(7);
            thread.write(8);
            thread.end();
        });
        let second = thread::spawn(move || {
            stage.pool.recycle(10);
            let thread = Recording::new(stage, 1);
            thread.write(3);
            thread.write(4);
            thread.end();
        });
        stage.read();
        stage.pool.recycle(10);
        stage.read();
        first.join().unwrap();
        second.join().unwrap();
    });
}

/// Nothing is recycled: what was published before the reader came is there, once.
#[test]
fn r25_what_was_published_is_read_exactly_once() {
    check(|| {
        let stage = Stage::new(PLENTY);
        let writer = thread::spawn(move || {
            let thread = Recording::new(stage, 0);
            for number in 0..3 {
                assert!(thread.write(number), "there are blocks enough");
                stage.published.store(number as u32 + 1, Ordering::Release);
            }
            thread.end();
        });
        let frame = thread::spawn(move || stage.pool.recycle(0));
        let published = stage.published.load(Ordering::Acquire);
        let mut numbers: Vec<u64> = stage.read().into_iter().flat_map(|(_, numbers)| numbers).collect();
        numbers.sort_unstable();
        let expect: Vec<u64> = (0..numbers.len() as u64).collect();
        assert_eq!(numbers, expect, "each once, and none left out");
        assert!(numbers.len() >= published as usize, "{published} published, {numbers:?} read");
        writer.join().unwrap();
        frame.join().unwrap();
    });
}

/// Two threads that want a block, the frame's thread and one block: whoever gets none counts what it loses.
#[test]
fn r25_what_finds_no_block_is_counted() {
    check(|| {
        let stage = Stage::new(ONE_BLOCK);
        let write = |thread: u32| {
            move || {
                let thread = Recording::new(stage, thread);
                let lost = (0..2).filter(|&number| !thread.write(number)).count();
                thread.end();
                lost
            }
        };
        let (first, second) = (thread::spawn(write(0)), thread::spawn(write(1)));
        stage.pool.recycle(10);
        let lost = first.join().unwrap() + second.join().unwrap();
        assert_eq!(stage.pool.lost(), lost as u64);
        stage.read();
    });
}
