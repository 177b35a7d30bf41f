//! Records: what a thread notes down, 16 bytes each.
//!
//! ```text
//!  kind              first word            second word: bits 0..32     32..56    56..64
//!  scope             begin (ticks)         length (ticks)              site      1
//!  long scope        begin (ticks)         length (1,024 ticks)        site      2
//!  world             when (ticks)          tick                        world     3        world 0xff_ffff: none
//!  allocations       bytes                 count, frees (16 + 16)      -         4        of the scope just before
//!  lock wait         begin (ticks)         length (1,024 ticks)        lock      5
//!  lock holder       site (0: none)        thread                      world     6        of the wait just before
//!  large allocation  when (ticks)          size (bytes, up to 4 GiB)   -         7
//!  count             when (ticks)          value (f32)                 counter   8
//! ```
//!
//! Times are of [`throng_platform::ticks`]. A length of 2^32 ticks is 1.75 s at 2.4 GHz: longer scopes have a kind of
//! their own.

/// World numbers are 24 bits here; the last one means none.
pub(crate) const NO_WORLD: u32 = 0xff_ffff;

/// A world's number as records and captures have it: its lower 24 bits. A server's worlds have their place in the lower
/// 20, so those that live at the same time are told apart.
pub(crate) fn recorded_world(number: u32) -> u32 {
    (number & NO_WORLD).min(NO_WORLD - 1)
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub words: [u64; 2],
}

/// A record, read.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Read {
    Scope {
        site: u32,
        begin: u64,
        length: u64,
    },
    World {
        at: u64,
        world: Option<u32>,
        tick: u32,
    },
    Allocations {
        count: u32,
        frees: u32,
        bytes: u64,
    },
    LockWait {
        lock: u32,
        begin: u64,
        length: u64,
    },
    LockHolder {
        thread: u32,
        site: Option<u32>,
        world: Option<u32>,
    },
    LargeAllocation {
        at: u64,
        bytes: u64,
    },
    Count {
        at: u64,
        counter: u32,
        value: f32,
    },
    /// No kind that is known; never written.
    Unknown,
}

const SCOPE: u64 = 1;
const LONG_SCOPE: u64 = 2;
const WORLD: u64 = 3;
const ALLOCATIONS: u64 = 4;
const LOCK_WAIT: u64 = 5;
const LOCK_HOLDER: u64 = 6;
const LARGE_ALLOCATION: u64 = 7;
const COUNT: u64 = 8;

/// Long lengths are in units of 2^10 ticks.
const LONG_SHIFT: u32 = 10;

/// The longest scope of the short kind.
pub(crate) const SHORT_TICKS_MAX: u64 = u32::MAX as u64;

const _: () = assert!(crate::site::SITES_MAX < 1 << 24, "a record has 24 bits for the number of a site");

impl Record {
    /// A scope of at most `SHORT_TICKS_MAX`. Both it and a site's number are in their bounds already.
    #[inline(always)]
    pub fn short_scope(site: u32, begin: u64, length: u64) -> Record {
        Record { words: [begin, length | u64::from(site) << 32 | SCOPE << 56] }
    }

    pub fn scope(site: u32, begin: u64, length: u64) -> Record {
        if length <= SHORT_TICKS_MAX {
            Record::short_scope(site, begin, length)
        } else {
            Record::of(begin, long(length), site, LONG_SCOPE)
        }
    }

    pub fn world(at: u64, world: Option<u32>, tick: u32) -> Record {
        Record::of(at, tick, world.map_or(NO_WORLD, recorded_world), WORLD)
    }

    pub fn allocations(count: u32, frees: u32, bytes: u64) -> Record {
        let halves = count.min(0xffff) | frees.min(0xffff) << 16;
        Record::of(bytes, halves, 0, ALLOCATIONS)
    }

    pub fn lock_wait(lock: u32, begin: u64, length: u64) -> Record {
        Record::of(begin, long(length), lock, LOCK_WAIT)
    }

    pub fn lock_holder(thread: u32, site: Option<u32>, world: Option<u32>) -> Record {
        Record::of(u64::from(site.unwrap_or(0)), thread, world.map_or(NO_WORLD, recorded_world), LOCK_HOLDER)
    }

    pub fn large_allocation(at: u64, bytes: u64) -> Record {
        Record::of(at, bytes.min(u64::from(u32::MAX)) as u32, 0, LARGE_ALLOCATION)
    }

    pub fn count(at: u64, counter: u32, value: f32) -> Record {
        Record::of(at, value.to_bits(), counter, COUNT)
    }

    #[inline(always)]
    fn of(first: u64, low: u32, middle: u32, kind: u64) -> Record {
        Record { words: [first, u64::from(low) | (u64::from(middle) & 0xff_ffff) << 32 | kind << 56] }
    }

    pub fn read(self) -> Read {
        let [first, second] = self.words;
        let (low, middle, kind) = (second as u32, (second >> 32) as u32 & 0xff_ffff, second >> 56);
        let world = (middle != NO_WORLD).then_some(middle);
        match kind {
            SCOPE => Read::Scope { site: middle, begin: first, length: low.into() },
            LONG_SCOPE => Read::Scope { site: middle, begin: first, length: u64::from(low) << LONG_SHIFT },
            WORLD => Read::World { at: first, world, tick: low },
            ALLOCATIONS => Read::Allocations { count: low & 0xffff, frees: low >> 16, bytes: first },
            LOCK_WAIT => Read::LockWait { lock: middle, begin: first, length: u64::from(low) << LONG_SHIFT },
            LOCK_HOLDER => {
                let site = (first != 0).then_some(first as u32);
                Read::LockHolder { thread: low, site, world }
            }
            LARGE_ALLOCATION => Read::LargeAllocation { at: first, bytes: low.into() },
            COUNT => Read::Count { at: first, counter: middle, value: f32::from_bits(low) },
            _ => Read::Unknown,
        }
    }
}

/// A length of up to an hour and a half, a little rounded down.
fn long(length: u64) -> u32 {
    (length >> LONG_SHIFT).min(u64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(record: Record, expect: Read) {
        assert_eq!(record.read(), expect);
    }

    #[test]
    fn records_are_read_as_they_were_made() {
        check(Record::scope(7, 1 << 60, 500), Read::Scope { site: 7, begin: 1 << 60, length: 500 });
        check(Record::scope(7, 5, 1 << 32), Read::Scope { site: 7, begin: 5, length: 1 << 32 });
        check(Record::world(9, Some(2_001), 77), Read::World { at: 9, world: Some(2_001), tick: 77 });
        check(Record::world(9, Some(u32::MAX), 0), Read::World { at: 9, world: Some(NO_WORLD - 1), tick: 0 });
        check(Record::world(9, None, 0), Read::World { at: 9, world: None, tick: 0 });
        check(Record::allocations(3, 2, 300), Read::Allocations { count: 3, frees: 2, bytes: 300 });
        check(Record::lock_wait(4, 9, 2_048), Read::LockWait { lock: 4, begin: 9, length: 2_048 });
        check(Record::lock_holder(2, Some(5), None), Read::LockHolder { thread: 2, site: Some(5), world: None });
        check(Record::large_allocation(1, 300 << 10), Read::LargeAllocation { at: 1, bytes: 300 << 10 });
        check(Record::count(1, 2, 0.5), Read::Count { at: 1, counter: 2, value: 0.5 });
        check(Record { words: [0, 0] }, Read::Unknown);
    }

    #[test]
    fn more_than_fits_is_the_most_that_fits() {
        check(Record::allocations(70_000, 1, 1), Read::Allocations { count: 0xffff, frees: 1, bytes: 1 });
        check(Record::large_allocation(1, 1 << 40), Read::LargeAllocation { at: 1, bytes: u64::from(u32::MAX) });
        let longest = Read::Scope { site: 1, begin: 0, length: u64::from(u32::MAX) << 10 };
        check(Record::scope(1, 0, u64::MAX), longest);
    }
}
