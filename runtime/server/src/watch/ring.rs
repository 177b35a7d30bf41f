//! Ring: the last rows of some words each, written by one thread and read by any, without a lock.
//!
//! ```text
//! place   0     1     2    ...   kept           count of a row % places = its place
//!         | row | row | row      | row |        written: rows so far; the next one goes over the oldest
//! ```
//!
//! There is a place more than rows that are kept: the one that may be being written. Whoever reads looks at `written`
//! again afterwards, and leaves out what may have been written over meanwhile.

use std::sync::atomic::{AtomicU64, Ordering, fence};

pub(super) struct Ring<const WORDS: usize> {
    places: Box<[[AtomicU64; WORDS]]>,
    /// Written after a row (release) and read before it (acquire).
    written: AtomicU64,
}

impl<const WORDS: usize> Ring<WORDS> {
    /// Keeps the last so many rows.
    pub fn new(kept: usize) -> Self {
        let place = || std::array::from_fn(|_| AtomicU64::new(0));
        Self { places: (0..=kept).map(|_| place()).collect(), written: AtomicU64::new(0) }
    }

    /// Rows written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// On one thread alone.
    pub fn write(&self, row: [u64; WORDS]) {
        let count = self.written.load(Ordering::Relaxed);
        // Whoever reads a word of this row sees that the one before is written, and so that its place was given away.
        fence(Ordering::Release);
        for (place, word) in self.place(count).iter().zip(row) {
            place.store(word, Ordering::Relaxed);
        }
        self.written.store(count + 1, Ordering::Release);
    }

    /// The rows from the one of number `begin` on, the oldest first, and the number of the first that is still there.
    /// Allocates.
    pub fn read(&self, begin: u64) -> (Vec<[u64; WORDS]>, u64) {
        let end = self.written();
        let first = begin.max(self.oldest(end)).min(end);
        let read = |count| std::array::from_fn(|word| self.place(count)[word].load(Ordering::Relaxed));
        let mut rows: Vec<[u64; WORDS]> = (first..end).map(read).collect();
        fence(Ordering::Acquire);
        let kept_from = self.oldest(self.written.load(Ordering::Relaxed)).clamp(first, end);
        rows.drain(..(kept_from - first) as usize);
        (rows, kept_from)
    }

    /// The oldest row that is not written over while `written` is so much.
    fn oldest(&self, written: u64) -> u64 {
        (written + 1).saturating_sub(self.places.len() as u64)
    }

    fn place(&self, count: u64) -> &[AtomicU64; WORDS] {
        &self.places[(count % self.places.len() as u64) as usize]
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
                for (row, count) in rows.into_iter().zip(first..) {
                    assert_eq!(row, [count; 8]);
                }
            }
        });
        assert_eq!(ring.read(0).0.len(), 16);
    }
}
