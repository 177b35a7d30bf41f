//! Prefetch: asks for memory that is going to be read, while something else is still being done.
//!
//! A server's tick goes through its clients one after the other, each a few kilobytes in a dozen places, and with a
//! thousand of them nothing of the next one is in the nearest cache. Nothing has to wait for what has been asked for
//! early enough. A small world's tick goes through all of it once: what it reads whatever happens is noted now and then,
//! and asked for at once ([`Footprint`]). Only a hint: what is asked for in vain costs its line, never a fault. Does
//! nothing but on x86-64.

/// Asks for all of a value. Costs about 0.3 ns per 64 bytes.
#[inline]
#[cfg(target_arch = "x86_64")]
pub fn value<T: ?Sized>(value: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    let first = std::ptr::from_ref(value).cast::<u8>();
    let before = first.addr() % LINE_BYTES;
    for offset in (0..before + size_of_val(value)).step_by(LINE_BYTES) {
        // SAFETY: a hint, which reads nothing and never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(offset).wrapping_sub(before).cast()) };
    }
}

/// Asks for the line that a value begins in, for what is written in small pieces one after the other: a store waits for
/// its line like a read, behind some dozens of stores that the processor keeps back for it.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub fn line<T>(value: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint, which reads nothing and never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
}

/// Nothing, as [`value`].
#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
pub fn line<T>(_value: &T) {}

/// Nothing: other processors have no such hint in stable Rust.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub fn value<T: ?Sized>(_value: &T) {}

/// Calls `next` and `after_next` with what comes one and two places after `index`, where there is any: what the one
/// after next points to is asked for a turn later, when what it is itself has come. A turn is some microseconds, a
/// line's way from memory a tenth of one.
#[inline]
pub fn look_ahead<T>(items: &[T], index: usize, next: impl FnOnce(&T), after_next: impl FnOnce(&T)) {
    if let Some(item) = items.get(index + 1) {
        next(item);
    }
    if let Some(item) = items.get(index + 2) {
        after_next(item);
    }
}

const LINE_BYTES: usize = 64;

/// Lines of memory that are read together again and again, however far apart they lie. A processor fetches some dozen
/// lines at a time, so that all of them come in a tenth of the time that they take one after the other.
///
/// What has moved since it was noted is asked for in vain. Memory: 4 bytes a line.
#[derive(Debug, Default)]
pub struct Footprint {
    /// The number of the first line.
    first: usize,
    /// Where each lies behind it, rising; all of them are within 256 GiB.
    lines: Vec<u32>,
}

/// A footprint while it is made: lines may be in it twice.
#[derive(Debug, Default)]
pub struct FootprintDraft {
    lines: Vec<usize>,
    /// More was noted than is worth to be kept.
    is_over: bool,
}

impl FootprintDraft {
    /// Lines that a draft holds: one of more makes an empty footprint.
    const LINES_MAX: usize = 1 << 14;

    /// Notes all lines of a value, without what that points to.
    pub fn note<T: ?Sized>(&mut self, value: &T) {
        self.note_bytes(std::ptr::from_ref(value).cast(), size_of_val(value));
    }

    /// Notes all lines of so many bytes. The address is not read.
    pub fn note_bytes(&mut self, first: *const u8, count: usize) {
        if count > 0 {
            let (begin, end) = (first.addr(), first.addr() + count - 1);
            let lines = begin / LINE_BYTES..=end / LINE_BYTES;
            self.is_over |= self.lines.len() + lines.clone().count() > Self::LINES_MAX;
            if !self.is_over {
                self.lines.extend(lines);
            }
        }
    }

    /// Makes a footprint of what was noted, and forgets it; one of more than `lines_max` lines is empty. Allocates only
    /// where the footprint has a quarter more lines than when it did last.
    pub fn finish(&mut self, footprint: &mut Footprint, lines_max: usize) {
        self.lines.sort_unstable();
        self.lines.dedup();
        footprint.lines.clear();
        let is_over = std::mem::take(&mut self.is_over) || self.lines.len() > lines_max;
        if let Some(&first) = self.lines.first().filter(|_| !is_over) {
            footprint.first = first;
            if self.lines.len() > footprint.lines.capacity() {
                // A world is read along a little more or less of it each time.
                footprint.lines.reserve_exact(self.lines.len() + self.lines.len() / 4);
            }
            footprint.lines.extend(self.lines.iter().map_while(|line| u32::try_from(line - first).ok()));
        }
        self.lines.clear();
    }
}

impl Footprint {
    /// How many lines it has.
    pub fn lines_count(&self) -> usize {
        self.lines.len()
    }

    /// Asks for all of it, into the second cache. Costs about 4 ns a line that is not near yet. Does nothing but on
    /// x86-64.
    pub fn ask(&self) {
        #[cfg(target_arch = "x86_64")]
        for &line in &self.lines {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            let address = std::ptr::without_provenance::<i8>((self.first + line as usize) * LINE_BYTES);
            // SAFETY: a hint, which reads nothing and never faults, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(address) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(draft: &mut FootprintDraft, lines_max: usize) -> Vec<usize> {
        let mut footprint = Footprint::default();
        draft.finish(&mut footprint, lines_max);
        footprint.ask();
        footprint.lines.iter().map(|&line| footprint.first + line as usize).collect()
    }

    #[test]
    fn a_footprint_has_each_line_of_what_was_noted_once() {
        let mut draft = FootprintDraft::default();
        let at = |address| std::ptr::without_provenance(address);
        draft.note_bytes(at(6_400), 64);
        draft.note_bytes(at(1_000), 25);
        draft.note_bytes(at(6_463), 2);
        draft.note_bytes(at(700), 0);
        draft.note(&[(); 9]);
        assert_eq!(lines_of(&mut draft, 4), [15, 16, 100, 101]);
        assert!(lines_of(&mut draft, 4).is_empty(), "what was noted is forgotten");
    }

    #[test]
    fn one_that_is_too_large_and_one_that_nothing_was_noted_of_are_empty() {
        let mut draft = FootprintDraft::default();
        let value = Box::new([0_u64; 64]);
        draft.note(&*value);
        assert!(lines_of(&mut draft, 7).is_empty());
        draft.note(&*value);
        assert!([8, 9].contains(&lines_of(&mut draft, 9).len()));
        assert!(lines_of(&mut draft, 9).is_empty());
        draft.note(&*value);
        draft.note_bytes(std::ptr::without_provenance(64), 64 * FootprintDraft::LINES_MAX);
        assert!(lines_of(&mut draft, usize::MAX).is_empty());
        draft.note(&*value);
        assert!(!lines_of(&mut draft, 9).is_empty(), "the next one is made anew");
    }

    #[test]
    fn lines_that_are_too_far_away_are_left_out() {
        let mut draft = FootprintDraft::default();
        draft.note_bytes(std::ptr::without_provenance(640), 1);
        draft.note_bytes(std::ptr::without_provenance(1 << 45), 1);
        assert_eq!(lines_of(&mut draft, 9), [10]);
    }
}
