//! Blocks: 16 KiB of records that one thread writes and anybody may read.
//!
//! ```text
//!  header   length (records written)   owner (thread)   pins (readers)   index (in the pool)
//!  records  1,022 x 16 bytes: two words each, drawn in `record.rs`
//! ```
//!
//! A block has one writer at a time. A record is published by the release store of the length after its two words; a
//! reader that has read the length sees every record below it, and nobody writes those again until the block is
//! recycled, which [`mod@crate::pool`] does not do while the block is pinned. So readers need no lock and stop no
//! writer. Model checkers run this code, and the pool's, in every order they can think of: `model_tests`.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use throng_platform::prefetch;

use crate::pool::Pool;
use crate::record::Record;
use crate::shim::{AtomicU32, AtomicU64};

#[cfg(all(test, any(feature = "loom", feature = "shuttle")))]
mod model_tests;

/// Records of one block: 16 KiB with the header.
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
pub(crate) const RECORDS: usize = 1022;
/// So few that a model can fill one.
#[cfg(any(feature = "loom", feature = "shuttle"))]
pub(crate) const RECORDS: usize = 2;

/// So many records before it is written a line is asked for. A history of 64 MiB has long left the cache when it is
/// written again, and a tick of 50 us fills five lines of it: two lines ahead are a third of a tick.
const ASKED_AHEAD: usize = 8;

/// A piece of a thread's recording.
#[repr(C, align(64))]
pub struct Block {
    /// Records that can be read. Written by the owner.
    length: AtomicU32,
    /// Index of the owning thread. Written by the owner before its first record, and published with it.
    owner: AtomicU32,
    /// Readers at work. Changed and looked at under the pool's lock.
    pins: AtomicU32,
    /// Place in the pool's list of all blocks.
    index: u32,
    /// When it was handed in (ticks), `u64::MAX` while it is written. Written by the owner.
    closed_at: AtomicU64,
    records: [[AtomicU64; 2]; RECORDS],
}

#[cfg(not(any(feature = "loom", feature = "shuttle")))]
const _: () = assert!(std::mem::size_of::<Block>() == 16 << 10);

impl Block {
    pub(crate) fn new(index: u32) -> Block {
        Block {
            length: AtomicU32::new(0),
            owner: AtomicU32::new(0),
            pins: AtomicU32::new(0),
            index,
            closed_at: AtomicU64::new(0),
            records: std::array::from_fn(|_| [AtomicU64::new(0), AtomicU64::new(0)]),
        }
    }

    /// Empties the block to be written again. Under the pool's lock, and before it can be taken: a reader that still
    /// finds it by the thread that had it, finds it empty, and not full of what is written anew under its eyes.
    pub(crate) fn recycle(&self) {
        self.length.store(0, Ordering::Relaxed);
    }

    /// Takes the block for a thread. Only by whoever has taken it from the pool.
    pub(crate) fn begin(&self, owner: u32) {
        // Published with the first record; nobody looks at them in an empty block.
        self.owner.store(owner, Ordering::Relaxed);
        self.closed_at.store(u64::MAX, Ordering::Relaxed);
    }

    /// Adds a record. Owner only. False if the block is full.
    #[inline(always)]
    pub(crate) fn push(&self, record: Record) -> bool {
        let length = self.length.load(Ordering::Relaxed) as usize;
        let Some([first, second]) = self.records.get(length) else { return false };
        first.store(record.words[0], Ordering::Relaxed);
        second.store(record.words[1], Ordering::Relaxed);
        // Pairs with the acquire in `records`: the words above are visible with the length.
        self.length.store(length as u32 + 1, Ordering::Release);
        if let Some(soon) = self.records.get(length + ASKED_AHEAD) {
            prefetch::line(soon);
        }
        true
    }

    /// Owner only, with the last record written.
    pub(crate) fn close(&self, at: u64) {
        self.closed_at.store(at, Ordering::Relaxed);
    }

    pub(crate) fn closed_at(&self) -> u64 {
        self.closed_at.load(Ordering::Relaxed)
    }

    /// Whether nothing has been recorded yet. If not, the owner is certain.
    pub(crate) fn is_empty(&self) -> bool {
        self.length.load(Ordering::Acquire) == 0
    }

    /// Who has recorded. For blocks that are not empty.
    pub(crate) fn owner(&self) -> u32 {
        self.owner.load(Ordering::Relaxed)
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// What has been recorded so far. For pinned blocks, and for the owner.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let length = self.length.load(Ordering::Acquire) as usize;
        let records = self.records[..length].iter();
        records.map(|[first, second]| Record { words: [first.load(Ordering::Relaxed), second.load(Ordering::Relaxed)] })
    }

    /// Keeps the block from being recycled. Under the pool's lock only, as is `is_pinned`; `unpin` may come at any
    /// time.
    pub(crate) fn pin(&self) {
        self.pins.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn unpin(&self) {
        // Release, with the acquire in `is_pinned`: what was read is read before the block is written again.
        self.pins.fetch_sub(1, Ordering::Release);
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.pins.load(Ordering::Acquire) > 0
    }
}

/// Which block a thread writes, for others to read: its index plus one, 0 for none.
pub(crate) struct CurrentBlock(AtomicU32);

impl CurrentBlock {
    pub(crate) fn new() -> CurrentBlock {
        CurrentBlock(AtomicU32::new(0))
    }

    /// Acquire, with the release where it is set: whoever reads it sees the block as it was taken.
    pub(crate) fn get(&self) -> Option<u32> {
        self.0.load(Ordering::Acquire).checked_sub(1)
    }

    fn set(&self, index: Option<u32>) {
        self.0.store(index.map_or(0, |index| index + 1), Ordering::Release);
    }
}

/// The writing end: the block that a thread has, if it has one. Stays in its thread.
pub(crate) struct Writer {
    block: Cell<Option<&'static Block>>,
}

impl Writer {
    pub(crate) const fn new() -> Writer {
        Writer { block: Cell::new(None) }
    }

    /// The block that is written. `None`, or a full one: [`Writer::take_block`].
    #[inline(always)]
    pub(crate) fn block(&self) -> Option<&'static Block> {
        self.block.get()
    }

    /// Hands the full block in and takes another one for `owner`. `None` if there is none at the moment.
    pub(crate) fn take_block(
        &self,
        pool: &Pool,
        current: &CurrentBlock,
        owner: u32,
        now: u64,
    ) -> Option<&'static Block> {
        self.give_back(pool, current, now);
        let block = pool.take(owner)?;
        current.set(Some(block.index()));
        self.block.set(Some(block));
        Some(block)
    }

    /// Hands the block in. In this order: until it is in the pool, others find it by the thread.
    pub(crate) fn give_back(&self, pool: &Pool, current: &CurrentBlock, now: u64) {
        if let Some(block) = self.block.take() {
            pool.hand_in(block, now);
            current.set(None);
        }
    }
}
