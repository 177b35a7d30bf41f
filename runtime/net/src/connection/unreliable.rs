//! Unreliable messages that wait for the next packet.
//!
//! They wait for a tick at most. If they do not fit, the oldest is dropped and counted, because of two
//! unreliable messages the newer one says more.
//!
//! Bytes lie in the connection's block pool; the queue itself is 4 B per message.

use super::blocks::{BlockPool, Chain, blocks_for};
use super::budget::{HeapBudget, OverBudget};
use super::ring::Ring;

/// Messages that wait at most.
pub const QUEUED_MAX: usize = 64;
/// Blocks they occupy at most: 8 KiB, almost seven packets.
pub const QUEUED_BLOCKS_MAX: usize = 64;

#[derive(Debug, Default)]
pub struct UnreliableQueue {
    messages: Ring<Chain, QUEUED_MAX>,
    blocks: usize,
    dropped: u64,
}

impl UnreliableQueue {
    /// The heap it may take beside the pool's blocks (bytes).
    pub const HEAP_BYTES_MAX: usize = Ring::<Chain, QUEUED_MAX>::BYTES_MAX;

    /// Queues `message`, whose length the caller has checked. Drops the oldest while there is no room.
    pub fn push(&mut self, message: &[u8], pool: &mut BlockPool, budget: &mut HeapBudget) -> Result<(), OverBudget> {
        let blocks = blocks_for(message.len());
        debug_assert!(blocks <= QUEUED_BLOCKS_MAX);
        while self.messages.len() == QUEUED_MAX || self.blocks + blocks > QUEUED_BLOCKS_MAX {
            self.pop(pool);
            self.dropped += 1;
        }
        let chain = pool.store(message, budget)?;
        if let Err(over) = self.messages.push_back(chain, budget) {
            pool.free(chain);
            return Err(over);
        }
        self.blocks += blocks;
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The message that is next in line.
    pub fn front(&self) -> Option<Chain> {
        self.messages.get(0).copied()
    }

    /// The lengths of the waiting messages, oldest first (bytes).
    pub fn lengths(&self) -> impl Iterator<Item = usize> {
        self.messages.iter().map(|chain| chain.len())
    }

    /// Takes the front away and frees its bytes.
    pub fn pop(&mut self, pool: &mut BlockPool) {
        if let Some(chain) = self.messages.pop_front() {
            self.blocks -= chain.blocks();
            pool.free(chain);
        }
    }

    /// Blocks of the pool that are in use here.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// How many messages were dropped for want of room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    pub fn release(&mut self, budget: &mut HeapBudget) {
        self.messages.release(budget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes messages of these lengths; how many wait, and how many were dropped?
    fn check(lengths: &[usize], expect: (usize, u64)) {
        let (mut pool, mut budget) = (BlockPool::default(), HeapBudget::default());
        let mut queue = UnreliableQueue::default();
        for &len in lengths {
            queue.push(&vec![1; len], &mut pool, &mut budget).unwrap();
        }
        assert_eq!((queue.lengths().count(), queue.dropped()), expect);
        assert_eq!(queue.lengths().last(), lengths.last().copied(), "the newest is never dropped");
    }

    #[test]
    fn the_oldest_makes_room() {
        check(&[10; QUEUED_MAX], (QUEUED_MAX, 0));
        check(&[10; QUEUED_MAX + 5], (QUEUED_MAX, 5));
        check(&[700; 10], (10, 0));
        check(&[700; 11], (10, 1));
    }
}
