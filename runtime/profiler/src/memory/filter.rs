//! The filter: says of most blocks that are freed, with one load, that nobody follows them.
//!
//! One count per KiB of addresses, wrapping after 1 GiB: how many followed blocks begin there. Neighbouring blocks look
//! at neighbouring counts (64 KiB of blocks share one cache line of the filter), so the load usually hits the cache,
//! which a filter by hash would not. With one sample per 64 KiB about one KiB in 64 has a count, and each further GiB
//! of live memory adds as much: a block in such a KiB is looked up in the table in vain.

use std::sync::atomic::{AtomicU8, Ordering};

const GRAIN_BITS: u32 = 10;
const COUNTS: usize = 1 << 20;
/// A count that has come this far stays: it would no longer know when it is zero.
const STUCK: u8 = u8::MAX;

pub(super) struct Filter {
    /// Written by all threads. Who frees a block got its address from whoever allocated it, and thereby sees its count:
    /// relaxed order is enough.
    counts: Box<[AtomicU8]>,
}

impl Filter {
    /// Touches all of its memory, so that no free has to wait for a page.
    pub(super) fn new() -> Filter {
        Filter { counts: (0..COUNTS).map(|_| AtomicU8::new(0)).collect() }
    }

    /// False: nobody follows this block. True: perhaps.
    #[inline(always)]
    pub(super) fn may_have(&self, address: usize) -> bool {
        self.count(address).load(Ordering::Relaxed) != 0
    }

    pub(super) fn add(&self, address: usize) {
        self.change(address, |count| count.saturating_add(1));
    }

    /// For an address that was added, once.
    pub(super) fn remove(&self, address: usize) {
        self.change(address, |count| if count == STUCK { STUCK } else { count.saturating_sub(1) });
    }

    fn change(&self, address: usize, change: impl Fn(u8) -> u8) {
        let _ = self.count(address).fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| Some(change(count)));
    }

    #[inline(always)]
    fn count(&self, address: usize) -> &AtomicU8 {
        &self.counts[(address >> GRAIN_BITS) & (COUNTS - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_what_was_added_until_it_is_removed() {
        let filter = Filter::new();
        assert!(!filter.may_have(0x7000_1234));
        filter.add(0x7000_1234);
        filter.add(0x7000_1238);
        assert!(filter.may_have(0x7000_1234));
        filter.remove(0x7000_1234);
        assert!(filter.may_have(0x7000_1238));
        filter.remove(0x7000_1238);
        assert!(!filter.may_have(0x7000_1238));
    }

    #[test]
    fn a_count_that_overflowed_never_says_no() {
        let filter = Filter::new();
        (0..300).for_each(|_| filter.add(8));
        (0..300).for_each(|_| filter.remove(8));
        assert!(filter.may_have(8));
    }
}
