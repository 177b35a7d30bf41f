//! The largest large allocation since somebody last asked, in a cell that no thread waits for.
//!
//! A writer or the reader claims the cell with one compare-and-swap; whoever finds it claimed goes away, and that
//! allocation is in the thread's records all the same.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::site::SiteId;
use crate::world_kind::KindNumber;

/// An allocation inside a world's tick that was larger than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LargeAllocation {
    pub bytes: u64,
    /// The innermost scope, if in one.
    pub site: Option<SiteId>,
    pub world: u32,
    pub kind: KindNumber,
    /// Index of the thread, as in [`crate::thread::all`].
    pub thread: u32,
}

const EMPTY: u8 = 0;
const CLAIMED: u8 = 1;
const FULL: u8 = 2;

pub(super) struct LargestAllocation {
    /// Acquire when claimed and release when left, so that the words belong together.
    state: AtomicU8,
    bytes: AtomicU64,
    /// Site in the lower half, 0 for none; world in the upper one.
    place: AtomicU64,
    /// Thread in the lower half, the world's kind in the upper one.
    thread: AtomicU64,
}

impl LargestAllocation {
    pub(super) const fn new() -> LargestAllocation {
        LargestAllocation {
            state: AtomicU8::new(EMPTY),
            bytes: AtomicU64::new(0),
            place: AtomicU64::new(0),
            thread: AtomicU64::new(0),
        }
    }

    /// Keeps it if it is the largest. Any thread.
    pub(super) fn offer(&self, allocation: LargeAllocation) {
        let state = self.state.load(Ordering::Relaxed);
        if state == CLAIMED || !self.claim(state) {
            return;
        }
        if state == EMPTY || allocation.bytes > self.bytes.load(Ordering::Relaxed) {
            let site = allocation.site.map_or(0, |site| site.0);
            self.bytes.store(allocation.bytes, Ordering::Relaxed);
            self.place.store(u64::from(allocation.world) << 32 | u64::from(site), Ordering::Relaxed);
            let kind = allocation.kind.row() as u64;
            self.thread.store(kind << 32 | u64::from(allocation.thread), Ordering::Relaxed);
        }
        self.state.store(FULL, Ordering::Release);
    }

    /// What was kept; after that the cell is empty.
    pub(super) fn take(&self) -> Option<LargeAllocation> {
        if self.state.load(Ordering::Relaxed) != FULL || !self.claim(FULL) {
            return None;
        }
        let place = self.place.load(Ordering::Relaxed);
        let thread = self.thread.load(Ordering::Relaxed);
        let taken = LargeAllocation {
            bytes: self.bytes.load(Ordering::Relaxed),
            site: Some(SiteId(place as u32)).filter(|site| site.0 != 0),
            world: (place >> 32) as u32,
            kind: KindNumber::of_row((thread >> 32) as usize),
            thread: thread as u32,
        };
        self.state.store(EMPTY, Ordering::Release);
        Some(taken)
    }

    fn claim(&self, state: u8) -> bool {
        self.state.compare_exchange(state, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: u64) -> LargeAllocation {
        let number = bytes as u32;
        let site = (number > 0).then_some(SiteId(number));
        LargeAllocation { bytes, site, world: number, kind: KindNumber::of_row(number as usize), thread: number }
    }

    #[test]
    fn the_largest_is_kept_until_it_is_taken() {
        let cell = LargestAllocation::new();
        assert_eq!(cell.take(), None);
        [3, 9, 5].into_iter().for_each(|bytes| cell.offer(of(bytes)));
        assert_eq!(cell.take(), Some(of(9)));
        assert_eq!(cell.take(), None);
        cell.offer(of(0));
        assert_eq!(cell.take(), Some(of(0)), "outside of every scope");
    }

    #[test]
    fn what_is_taken_is_whole() {
        let cell = LargestAllocation::new();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let cell = &cell;
                scope.spawn(move || (0..20_000).for_each(|round| cell.offer(of(1 + thread + 3 * round))));
            }
            let mut taken = 0;
            while taken < 100 {
                if let Some(allocation) = cell.take() {
                    assert_eq!(allocation, of(allocation.bytes));
                    taken += 1;
                }
                // The writers may be done before the reader has seen a hundred.
                cell.offer(of(1));
            }
        });
    }
}
