//! The pool: which block is whose, and which comes next.
//!
//! ```text
//!        take                     hand in                collect, once a frame
//!  free -------> a thread's own ----------> full queue ------------------------> history
//!   ^                                                                               |
//!   +------------------- recycle: the oldest that nobody reads ---------------------+
//! ```
//!
//! Recording threads only touch the two queues, which are lock-free; the history has a lock, which the frame's thread
//! and the recording threads only ever *try*, so that a reader that is preempted while it has the lock stops nobody. A
//! reader pins the blocks that it wants and reads them without the lock, for as long as it likes.
//!
//! Memory: up to [`PoolSettings::blocks_max`] blocks of 16 KiB, made when first needed and then kept. When every block
//! is in the history, the oldest is written again. When none can be had at that moment, records are lost and counted.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::block::Block;
use crate::record::Record;
use crate::shim::{ArrayQueue, AtomicU32, AtomicU64, Mutex, MutexGuard};

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// Blocks at most, 16 KiB each.
    pub blocks_max: usize,
    /// Blocks that are free after each recycling: what all threads together may fill between two frames.
    pub reserve: usize,
    /// Blocks that were handed in longer ago than this are written again before new ones are made. (ticks)
    pub history: u64,
}

/// Blocks and what becomes of them.
pub struct Pool {
    settings: PoolSettings,
    free: ArrayQueue<&'static Block>,
    full: ArrayQueue<&'static Block>,
    history: Mutex<History>,
    /// Blocks made so far. Written under the history's lock, read for figures.
    made: AtomicU32,
    lost: AtomicU64,
}

#[derive(Default)]
struct History {
    /// All blocks there are, by index.
    all: Vec<&'static Block>,
    /// Handed in and not recycled, oldest first.
    closed: VecDeque<&'static Block>,
}

/// Blocks that somebody reads. They are not written again until this is dropped.
pub struct Pinned {
    blocks: Vec<&'static Block>,
}

impl Pool {
    pub fn new(settings: PoolSettings) -> Pool {
        let settings = PoolSettings { blocks_max: settings.blocks_max.max(settings.reserve.max(1)), ..settings };
        let history = History {
            all: Vec::with_capacity(settings.blocks_max),
            closed: VecDeque::with_capacity(settings.blocks_max),
        };
        let pool = Pool {
            settings,
            free: ArrayQueue::new(settings.blocks_max),
            full: ArrayQueue::new(settings.blocks_max),
            history: Mutex::new(history),
            made: AtomicU32::new(0),
            lost: AtomicU64::new(0),
        };
        pool.recycle(0);
        pool
    }

    /// A block for a recording thread; `None` if there is none at the moment. Lock-free, but for the case that the
    /// frame's thread has not recycled for long: then it tries the lock once.
    pub fn take(&self, owner: u32) -> Option<&'static Block> {
        let block = self.free.pop().or_else(|| {
            let mut history = self.try_history()?;
            self.collect(&mut history);
            let block = self.next_block(&mut history)?;
            block.recycle();
            Some(block)
        })?;
        block.begin(owner);
        Some(block)
    }

    /// Gives a block back for the history. Owner only; lock-free.
    pub fn hand_in(&self, block: &'static Block, now: u64) {
        block.close(now);
        let pushed = self.full.push(block);
        debug_assert!(pushed.is_ok(), "the queue has room for every block there is");
    }

    /// Moves what was handed in to the history and sees that enough blocks are free. Once a frame; never waits.
    pub fn recycle(&self, now: u64) {
        let Some(mut history) = self.try_history() else { return };
        self.collect(&mut history);
        while self.free.len() < self.settings.reserve {
            let oldest = history.closed.front().filter(|block| !block.is_pinned());
            let is_old = oldest.is_some_and(|block| now.saturating_sub(block.closed_at()) > self.settings.history);
            let block = if is_old { history.closed.pop_front() } else { self.next_block(&mut history) };
            let Some(block) = block else { return };
            block.recycle();
            let _ = self.free.push(block);
        }
    }

    /// Pins the blocks that have records from `since` (ticks) on: `current` gives the indices of blocks that threads
    /// are writing now, as their threads say, and is asked under the lock; the others come from the history. A block
    /// that is handed in meanwhile is in one of the two.
    pub fn pin(&self, since: u64, current: impl Iterator<Item = u32>) -> Pinned {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        // With the lock, nothing is recycled: what a thread is writing now cannot get to another one before it is
        // pinned.
        let mut blocks: Vec<&'static Block> =
            current.filter_map(|index| history.all.get(index as usize).copied()).collect();
        self.collect(&mut history);
        blocks.extend(history.closed.iter().filter(|block| block.closed_at() >= since));
        blocks.sort_unstable_by_key(|block| block.index());
        blocks.dedup_by_key(|block| block.index());
        // What is empty has been recycled, or is just being begun: a thread may still be named as its owner that is not
        // any more.
        blocks.retain(|block| !block.is_empty());
        blocks.iter().for_each(|block| block.pin());
        // With keys that stay, while their owners close blocks.
        blocks.sort_by_cached_key(|block| (block.owner(), block.closed_at()));
        Pinned { blocks }
    }

    /// Counts a record that found no room.
    #[cold]
    pub fn count_lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that were lost since the start.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Memory that it holds now. (bytes)
    pub fn size_bytes(&self) -> usize {
        self.made.load(Ordering::Relaxed) as usize * size_of::<Block>()
    }

    fn collect(&self, history: &mut History) {
        while let Some(block) = self.full.pop() {
            history.closed.push_back(block);
        }
    }

    /// A new block, or else the oldest that nobody reads.
    fn next_block(&self, history: &mut History) -> Option<&'static Block> {
        if history.all.len() < self.settings.blocks_max {
            let block: &'static Block = Box::leak(Box::new(Block::new(history.all.len() as u32)));
            history.all.push(block);
            self.made.store(history.all.len() as u32, Ordering::Relaxed);
            return Some(block);
        }
        let place = history.closed.iter().position(|block| !block.is_pinned())?;
        history.closed.remove(place)
    }

    fn try_history(&self) -> Option<MutexGuard<'_, History>> {
        match self.history.try_lock() {
            Ok(history) => Some(history),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

impl Pinned {
    /// Owner and records of every block; those of one owner in the order in which it wrote them.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (u32, impl Iterator<Item = Record> + '_)> {
        self.blocks.iter().map(|block| (block.owner(), block.records()))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.blocks.iter().for_each(|block| block.unpin());
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;
    use crate::block::RECORDS;

    const SETTINGS: PoolSettings = PoolSettings { blocks_max: 4, reserve: 2, history: 100 };

    fn record(number: u64) -> Record {
        Record::scope(1, number, 1)
    }

    /// Fills a block from the pool and hands it in.
    fn fill(pool: &Pool, now: u64) {
        let block = pool.take(1).expect("a block");
        (0..RECORDS as u64).for_each(|number| assert!(block.push(record(number))));
        assert!(!block.push(record(0)), "it is full");
        pool.hand_in(block, now);
    }

    fn indices(pinned: &Pinned) -> Vec<u32> {
        pinned.blocks.iter().map(|block| block.index()).collect()
    }

    #[test]
    fn blocks_are_made_when_needed_and_not_beyond_the_maximum() {
        let pool = Pool::new(SETTINGS);
        assert_eq!(pool.size_bytes(), 2 * size_of::<Block>());
        for now in 0..40 {
            fill(&pool, now);
            pool.recycle(now);
        }
        assert_eq!(pool.size_bytes(), 4 * size_of::<Block>());
        assert_eq!(pool.lost(), 0);
    }

    #[test]
    fn old_blocks_are_written_again_before_new_ones_are_made() {
        let pool = Pool::new(SETTINGS);
        for now in [0, 1_000, 2_000, 3_000] {
            fill(&pool, now);
            pool.recycle(now + 500);
        }
        assert_eq!(pool.size_bytes(), 2 * size_of::<Block>());
    }

    #[test]
    fn what_is_pinned_is_not_written_again() {
        let pool = Pool::new(SETTINGS);
        fill(&pool, 0);
        fill(&pool, 1);
        let pinned = pool.pin(0, std::iter::empty());
        assert_eq!(indices(&pinned), [0, 1]);
        (2..20).for_each(|now| fill(&pool, now));
        assert_eq!(pinned.blocks().map(|(_, records)| records.count()).sum::<usize>(), 2 * RECORDS);
        drop(pinned);
        assert_eq!(indices(&pool.pin(0, std::iter::empty())).len(), 4, "and afterwards it is");
    }

    #[test]
    fn a_block_in_work_can_be_read_up_to_its_last_record() {
        let pool = Pool::new(SETTINGS);
        let block = pool.take(7).unwrap();
        block.push(record(5));
        let pinned = pool.pin(0, [block.index()].into_iter());
        let (owner, records) = pinned.blocks().next().unwrap();
        assert_eq!((owner, records.collect::<Vec<_>>()), (7, vec![record(5)]));
    }

    #[test]
    fn without_a_free_block_there_is_none() {
        let pool = Pool::new(SETTINGS);
        let taken: Vec<_> = (0..4).map(|owner| pool.take(owner).unwrap()).collect();
        assert!(pool.take(5).is_none());
        pool.hand_in(taken[0], 0);
        assert!(pool.take(5).is_some(), "the frame's thread need not come by");
    }
}
