//! Where a connection keeps bytes: blocks of 128 B in slabs of 2 KiB, chained.
//!
//! Messages wait to be sent, fragments wait for the gap before them, and both come in all sizes. Blocks
//! from one pool hold them without an allocation per message: after the first few the pool lives from
//! its own free list. The rounding is bounded (one byte costs one block), and slabs are never moved, so
//! what the budget booked is what the allocator gave.
//!
//! ```text
//! block (128 B):  | next u16 | 126 bytes |      chain: head -> next -> next -> NONE
//! ```
//!
//! Cost: one copy in, one copy out. A connection at rest has no slab at all ([`BlockPool::release`]).

use super::budget::{HeapBudget, OverBudget};

/// Bytes of a message that one block holds.
pub const BLOCK_BYTES: usize = 126;
const BLOCKS_PER_SLAB: usize = 16;
const SLAB_BYTES: usize = size_of::<Slab>();
const NONE: u16 = u16::MAX;

const _: () = assert!(size_of::<Block>() == 128);

struct Block {
    next: u16,
    bytes: [u8; BLOCK_BYTES],
}

type Slab = [Block; BLOCKS_PER_SLAB];

/// Stored bytes: the first block and the length. Must go back to the pool that made it, exactly once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain {
    head: u16,
    len: u16,
}

impl Chain {
    /// No bytes, no block.
    pub const EMPTY: Chain = Chain { head: NONE, len: 0 };

    pub fn len(self) -> usize {
        self.len as usize
    }

    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// How many blocks it occupies.
    pub fn blocks(self) -> usize {
        blocks_for(self.len as usize)
    }
}

impl Default for Chain {
    fn default() -> Self {
        Chain::EMPTY
    }
}

/// How many blocks `bytes` bytes need.
pub const fn blocks_for(bytes: usize) -> usize {
    bytes.div_ceil(BLOCK_BYTES)
}

/// The heap that `blocks` blocks may need at most, with the slab that is only partly used (bytes).
pub const fn pool_bytes_max(blocks: usize) -> usize {
    let slabs = blocks.div_ceil(BLOCKS_PER_SLAB);
    // The list of slabs doubles: at the worst moment the old and the new list exist side by side.
    slabs * SLAB_BYTES + (2 * slabs + slabs) * size_of::<Box<Slab>>()
}

/// The pool of one connection.
pub struct BlockPool {
    #[expect(clippy::vec_box, reason = "a list of slabs by value would copy all of them each time it grows")]
    slabs: Vec<Box<Slab>>,
    /// Head of the free list.
    free: u16,
    blocks_used: usize,
    /// Something was stored since [`BlockPool::is_idle`] was last asked.
    touched: bool,
}

impl Default for BlockPool {
    fn default() -> Self {
        BlockPool { slabs: Vec::new(), free: NONE, blocks_used: 0, touched: false }
    }
}

impl BlockPool {
    /// Keeps a copy of `bytes` (at most 65,535). Allocates a slab when no block is free.
    pub fn store(&mut self, bytes: &[u8], budget: &mut HeapBudget) -> Result<Chain, OverBudget> {
        let Ok(len) = u16::try_from(bytes.len()) else {
            return Err(OverBudget);
        };
        self.touched = true;
        let mut chain = Chain { head: NONE, len };
        let mut last = NONE;
        for part in bytes.chunks(BLOCK_BYTES) {
            let index = match self.take_free(budget) {
                Ok(index) => index,
                Err(over) => {
                    self.free_from(chain.head);
                    return Err(over);
                }
            };
            let block = self.block_mut(index);
            block.bytes[..part.len()].copy_from_slice(part);
            match last {
                NONE => chain.head = index,
                last => self.block_mut(last).next = index,
            }
            last = index;
        }
        Ok(chain)
    }

    /// The stored bytes, part by part.
    pub fn parts(&self, chain: Chain) -> impl Iterator<Item = &[u8]> {
        let mut index = chain.head;
        let mut left = chain.len as usize;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let block = self.block(index);
            let taken = left.min(BLOCK_BYTES);
            index = block.next;
            left -= taken;
            Some(&block.bytes[..taken])
        })
    }

    /// Copies the stored bytes to the front of `out`, which must be long enough.
    pub fn read(&self, chain: Chain, out: &mut [u8]) {
        let mut at = 0;
        for part in self.parts(chain) {
            out[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
    }

    /// Takes the blocks of `chain` back.
    pub fn free(&mut self, chain: Chain) {
        self.free_from(chain.head);
    }

    /// Whether nothing is stored, nor was since this was last asked.
    pub fn is_idle(&mut self) -> bool {
        !std::mem::take(&mut self.touched) && self.blocks_used == 0
    }

    pub fn blocks_used(&self) -> usize {
        self.blocks_used
    }

    /// Frees every slab, if nothing is stored.
    pub fn release(&mut self, budget: &mut HeapBudget) {
        if self.blocks_used > 0 {
            return;
        }
        budget.give(self.slabs.len() * SLAB_BYTES + list_bytes(self.slabs.capacity()));
        self.slabs = Vec::new();
        self.free = NONE;
    }

    /// Asserts what must hold between calls: every block is either free or used.
    pub fn check(&self) {
        let mut free = 0;
        let mut index = self.free;
        while index != NONE {
            free += 1;
            assert!(free <= self.slabs.len() * BLOCKS_PER_SLAB, "the free list has a loop");
            index = self.block(index).next;
        }
        assert_eq!(free + self.blocks_used, self.slabs.len() * BLOCKS_PER_SLAB, "a block leaked");
    }

    fn take_free(&mut self, budget: &mut HeapBudget) -> Result<u16, OverBudget> {
        if self.free == NONE {
            self.add_slab(budget)?;
        }
        let index = self.free;
        let block = self.block_mut(index);
        let next = std::mem::replace(&mut block.next, NONE);
        self.free = next;
        self.blocks_used += 1;
        Ok(index)
    }

    fn free_from(&mut self, head: u16) {
        let mut index = head;
        while index != NONE {
            let free = self.free;
            let block = self.block_mut(index);
            let next = std::mem::replace(&mut block.next, free);
            self.free = index;
            self.blocks_used -= 1;
            index = next;
        }
    }

    fn add_slab(&mut self, budget: &mut HeapBudget) -> Result<(), OverBudget> {
        let first = self.slabs.len() * BLOCKS_PER_SLAB;
        if first + BLOCKS_PER_SLAB > NONE as usize {
            return Err(OverBudget);
        }
        if self.slabs.len() == self.slabs.capacity() {
            self.grow_list(budget)?;
        }
        budget.take(SLAB_BYTES)?;
        let slab = std::array::from_fn(|offset| Block {
            next: if offset + 1 < BLOCKS_PER_SLAB { (first + offset + 1) as u16 } else { NONE },
            bytes: [0; BLOCK_BYTES],
        });
        self.slabs.push(Box::new(slab));
        self.free = first as u16;
        Ok(())
    }

    fn grow_list(&mut self, budget: &mut HeapBudget) -> Result<(), OverBudget> {
        let old = self.slabs.capacity();
        let new = (old * 2).max(4);
        budget.take(list_bytes(new))?;
        self.slabs.reserve_exact(new - old);
        budget.give(list_bytes(old));
        Ok(())
    }

    fn block(&self, index: u16) -> &Block {
        &self.slabs[index as usize / BLOCKS_PER_SLAB][index as usize % BLOCKS_PER_SLAB]
    }

    fn block_mut(&mut self, index: u16) -> &mut Block {
        &mut self.slabs[index as usize / BLOCKS_PER_SLAB][index as usize % BLOCKS_PER_SLAB]
    }
}

const fn list_bytes(slabs: usize) -> usize {
    slabs * size_of::<Box<Slab>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::budget::HEAP_BYTES_MAX;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn what_was_stored_comes_back_and_nothing_leaks() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let (mut pool, mut budget) = (BlockPool::default(), HeapBudget::default());
        let mut held: Vec<(Chain, Vec<u8>)> = Vec::new();
        for _ in 0..5_000 {
            if rng.random_bool(0.5) {
                let bytes: Vec<u8> = (0..rng.random_range(0..1_000)).map(|_| rng.random()).collect();
                if let Ok(chain) = pool.store(&bytes, &mut budget) {
                    held.push((chain, bytes));
                }
            } else if !held.is_empty() {
                let (chain, bytes) = held.swap_remove(rng.random_range(0..held.len()));
                let mut out = vec![0; bytes.len()];
                pool.read(chain, &mut out);
                assert_eq!(out, bytes);
                pool.free(chain);
            }
            pool.check();
        }
        held.drain(..).for_each(|(chain, _)| pool.free(chain));
        pool.release(&mut budget);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn a_pool_over_budget_refuses_and_keeps_what_it_had() {
        let (mut pool, mut budget) = (BlockPool::default(), HeapBudget::default());
        let mut stored = Vec::new();
        while let Ok(chain) = pool.store(&[7; 1_000], &mut budget) {
            stored.push(chain);
            assert!(budget.held_bytes() <= HEAP_BYTES_MAX);
        }
        pool.check();
        assert!(stored.len() > 200);
        assert!(pool.parts(stored[0]).flatten().all(|&byte| byte == 7));
    }
}
