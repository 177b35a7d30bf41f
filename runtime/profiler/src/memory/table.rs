//! The table of followed blocks: address to scope and weight.
//!
//! An address has two buckets of eight places each, and may stand in any of the sixteen. Nothing is ever moved, so
//! putting in is a compare-and-swap on an empty place, and taking out is a store. That is enough because an address is
//! one thread's business at a time: it is put in before its block is handed out, and taken out before the block can be
//! handed out again.
//!
//! ```text
//!  place:  key (u64)    0 empty, 1 being filled, else the address
//!          value (u64)  weight (bytes) << 13 | site
//! ```
//!
//! Of fixed size, 65,536 places in 1 MiB: 4 GB in small blocks, more where blocks are large. When both buckets are full
//! the block is not followed, and the caller counts it. Lock-free; about 0.1 µs when its two lines are not in the
//! cache.

use std::sync::atomic::Ordering;

use crate::shim::AtomicU64;
use crate::site::SITES_MAX;

const BUCKET_PLACES: usize = 8;
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
const BUCKETS: usize = 8_192;
/// Model checkers explore every access, so their table is small and full soon.
#[cfg(any(feature = "loom", feature = "shuttle"))]
const BUCKETS: usize = 1;

const EMPTY: u64 = 0;
const BEING_FILLED: u64 = 1;

const SITE_BITS: u32 = 13;
const _: () = assert!(SITES_MAX < 1 << SITE_BITS, "a site and 0 for none fit");

/// What is known of a followed block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// Its scope's number, 0 outside of every scope.
    pub(super) site: u32,
    /// The live bytes that it stands for [below 2 PiB].
    pub(super) weight_bytes: u64,
}

pub(super) struct Table {
    /// Release when an address appears, so that whoever finds it finds its value; release when it goes, and acquire by
    /// the next that takes the place, so that its value is read before another is written over it.
    keys: Box<[AtomicU64]>,
    values: Box<[AtomicU64]>,
}

impl Table {
    /// Touches all of its memory, so that no allocation has to wait for a page.
    pub(super) fn new() -> Table {
        let column = || (0..BUCKETS * BUCKET_PLACES).map(|_| AtomicU64::new(EMPTY)).collect();
        Table { keys: column(), values: column() }
    }

    /// False when there is no place for it. The address must not be in the table.
    pub(super) fn insert(&self, address: usize, sample: Sample) -> bool {
        let value = sample.weight_bytes << SITE_BITS | u64::from(sample.site);
        for place in places(address) {
            let key = &self.keys[place];
            if key.load(Ordering::Relaxed) == EMPTY
                && key.compare_exchange(EMPTY, BEING_FILLED, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                self.values[place].store(value, Ordering::Relaxed);
                key.store(address as u64, Ordering::Release);
                return true;
            }
        }
        false
    }

    /// Takes an address out, if it is in.
    pub(super) fn remove(&self, address: usize) -> Option<Sample> {
        let place = places(address).find(|&place| self.keys[place].load(Ordering::Acquire) == address as u64)?;
        let value = self.values[place].load(Ordering::Relaxed);
        self.keys[place].store(EMPTY, Ordering::Release);
        Some(Sample { site: value as u32 & ((1 << SITE_BITS) - 1), weight_bytes: value >> SITE_BITS })
    }
}

/// The places where an address may stand.
fn places(address: usize) -> impl Iterator<Item = usize> {
    // Fibonacci hashing; the low bits of addresses are all alike, the high bits of the product are not.
    let hash = (address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let buckets = [(hash >> 32) as usize % BUCKETS, (hash >> 48) as usize % BUCKETS];
    buckets.into_iter().flat_map(|bucket| bucket * BUCKET_PLACES..(bucket + 1) * BUCKET_PLACES)
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn sample(site: u32, weight_bytes: u64) -> Sample {
        Sample { site, weight_bytes }
    }

    proptest! {
        /// Addresses from a small range, so that they come back; a table is compared with what a map would say.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((1_usize..200, any::<bool>(), 0..=SITES_MAX as u32, 0_u64..1 << 50), 1..400)) {
            let (table, mut map) = (Table::new(), HashMap::new());
            for (number, is_insert, site, weight_bytes) in steps {
                let address = 0x7F00_0000_0000 + number * 16;
                if is_insert && !map.contains_key(&address) {
                    prop_assert!(table.insert(address, sample(site, weight_bytes)), "there is a place");
                    map.insert(address, sample(site, weight_bytes));
                } else {
                    prop_assert_eq!(table.remove(address), map.remove(&address));
                }
            }
            for (address, sample) in map {
                prop_assert_eq!(table.remove(address), Some(sample));
            }
            prop_assert!(table.keys.iter().all(|key| key.load(Ordering::Relaxed) == EMPTY));
        }
    }

    #[test]
    fn it_takes_most_of_its_places_and_then_refuses() {
        let table = Table::new();
        let places = BUCKETS * BUCKET_PLACES;
        // Addresses as an allocator hands them out.
        let taken: Vec<usize> = (1..=places)
            .map(|number| 0x5500_0000_0000 + number * 4_112)
            .filter(|&at| table.insert(at, sample(1, 2)))
            .collect();
        assert!(taken.len() * 10 > places * 8, "{} of {places}", taken.len());
        assert!(taken.len() < places);
        assert!(taken.iter().all(|&at| table.remove(at) == Some(sample(1, 2))));
    }

    /// Each thread's blocks are its own, as in an allocator; the places are everybody's.
    #[test]
    fn threads_find_what_they_put_in() {
        let table = Table::new();
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                let table = &table;
                scope.spawn(move || {
                    for round in 0..50 {
                        let of = |number: usize| sample(thread as u32, (round * 1_000 + number) as u64);
                        let at = |number: usize| (thread + 1) << 40 | number << 4;
                        (1..1_000).for_each(|number| assert!(table.insert(at(number), of(number))));
                        (1..1_000).for_each(|number| assert_eq!(table.remove(at(number)), Some(of(number))));
                    }
                });
            }
        });
    }
}

#[cfg(all(test, feature = "loom", not(feature = "shuttle")))]
mod model {
    use super::*;
    use loom::{sync::Arc, thread};

    /// Fills all places but one, so that two threads want the same one in turns.
    #[test]
    fn two_threads_share_the_last_place() {
        loom::model(|| {
            let table = Arc::new(Table::new());
            let places = BUCKETS * BUCKET_PLACES;
            (0..places - 1).for_each(|number| assert!(table.insert(16 + number, Sample { site: 1, weight_bytes: 1 })));
            let other = {
                let table = table.clone();
                thread::spawn(move || use_last_place(&table, 0x2000))
            };
            let taken = use_last_place(&table, 0x1000);
            assert!(other.join().unwrap() || taken, "at least one found the place");
        });
    }

    fn use_last_place(table: &Table, address: usize) -> bool {
        let mine = Sample { site: 2, weight_bytes: address as u64 };
        let taken = table.insert(address, mine);
        assert_eq!(table.remove(address), taken.then_some(mine));
        taken
    }
}
