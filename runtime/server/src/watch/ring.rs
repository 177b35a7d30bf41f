//! Ring: the last rows of some words each, written by one thread and read by any, without a lock.
//!
//! ```text
//! slot    0     1     2    ...   kept           number of a row % slots = its slot
//!         | row | row | row      | row |        written: rows so far; the next one goes over the oldest
//! ```
//!
//! There is one slot more than rows kept: the one that may be being written. A reader loads `written` again after the
//! words, and drops rows that may have been overwritten meanwhile.
//!
//! Its fences are not model-checked: a test races it on real threads (docs/reliability.md, R25).

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The last rows of `WORDS` words. One writer, any number of readers, no lock. Only `new` and `read` allocate.
pub(super) struct Ring<const WORDS: usize> {
    slots: Box<[[AtomicU64; WORDS]]>,
    /// Rows written so far. Stored by the one writer after the row (release); readers load it before the words (acquire)
    /// and again behind a fence.
    written: AtomicU64,
}

impl<const WORDS: usize> Ring<WORDS> {
    /// Keeps the last so many rows.
    pub fn new(kept: usize) -> Self {
        let slot = || std::array::from_fn(|_| AtomicU64::new(0));
        Self { slots: (0..=kept).map(|_| slot()).collect(), written: AtomicU64::new(0) }
    }

    /// Rows written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Writes the next row, over the oldest if all slots are taken. From one thread alone.
    pub fn write(&self, row: [u64; WORDS]) {
        let number = self.written.load(Ordering::Relaxed);
        // Pairs with the acquire fence in `read`: a reader that sees a word of this row also sees `written` >= `number`,
        // and so drops the row that had this slot.
        fence(Ordering::Release);
        for (word_of_slot, word) in self.slot(number).iter().zip(row) {
            word_of_slot.store(word, Ordering::Relaxed);
        }
        self.written.store(number + 1, Ordering::Release);
    }

    /// The rows from the one of number `begin` on, the oldest first, and the number of the first that is still there.
    pub fn read(&self, begin: u64) -> (Vec<[u64; WORDS]>, u64) {
        let end = self.written();
        let first = begin.max(self.oldest(end)).min(end);
        let read = |number| std::array::from_fn(|word| self.slot(number)[word].load(Ordering::Relaxed));
        let mut rows: Vec<[u64; WORDS]> = (first..end).map(read).collect();
        // Words first, then `written`: a slot that was overwritten while we read is seen as lost below.
        fence(Ordering::Acquire);
        let kept_from = self.oldest(self.written.load(Ordering::Relaxed)).clamp(first, end);
        rows.drain(..(kept_from - first) as usize);
        (rows, kept_from)
    }

    /// The number of the oldest row that is not written over while `written` is so much.
    fn oldest(&self, written: u64) -> u64 {
        (written + 1).saturating_sub(self.slots.len() as u64)
    }

    fn slot(&self, number: u64) -> &[AtomicU64; WORDS] {
        &self.slots[(number % self.slots.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn the_last_rows_are_kept_the_oldest_first() {
        let ring = Ring::<2>::new(3);
        let check = |begin, rows: &[u64], first| {
            let rows: Vec<_> = rows.iter().map(|&row| [row, row * 10]).collect();
            assert_eq!(ring.read(begin), (rows, first), "from {begin}");
        };
        check(0, &[], 0);
        (1..=2).for_each(|row| ring.write([row, row * 10]));
        check(0, &[1, 2], 0);
        check(1, &[2], 1);
        check(2, &[], 2);
        (3..=9).for_each(|row| ring.write([row, row * 10]));
        check(0, &[7, 8, 9], 6);
        check(8, &[9], 8);
        check(9, &[], 9);
        assert_eq!(ring.written(), 9);
    }

    /// Promise: what is read is whole rows in their order, however fast they are written meanwhile.
    #[test]
    fn no_row_is_read_in_part() {
        const ROWS: u64 = 200_000;
        let ring = Ring::<8>::new(16);
        thread::scope(|scope| {
            scope.spawn(|| (0..ROWS).for_each(|row| ring.write([row; 8])));
            while ring.written() < ROWS {
                let (rows, first) = ring.read(0);
                for (row, number) in rows.into_iter().zip(first..) {
                    assert_eq!(row, [number; 8]);
                }
            }
        });
        assert_eq!(ring.read(0).0.len(), 16);
    }
}
