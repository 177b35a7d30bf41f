//! Stamps: in debug builds fresh memory reads `0xA5A5…` and freed memory `0xDDDD…`, so that using either shows.
//!
//! Code that reads what it never wrote often works on a fresh process, whose memory is all zeros, and fails after an
//! hour. Of a large block only the first and the last 4 KiB are stamped: that is where headers, counts and ends are,
//! and tests stay quick. A block from `alloc_zeroed` is left alone. mimalloc writes its own list into the first bytes
//! of a freed block. Release builds do none of this.

const FRESH: u8 = 0xA5;
const FREED: u8 = 0xDD;
/// What is stamped at either end of a large block. (bytes)
const END_BYTES: usize = 4_096;

/// Stamps bytes `from..to` of a block that was just handed out; with a null block, nothing.
///
/// # Safety
/// The block is null or of at least `to` bytes, and nobody else uses the bytes from `from` on.
#[inline]
pub(super) unsafe fn fresh(block: *mut u8, from: usize, to: usize) {
    if cfg!(debug_assertions) && !block.is_null() && from < to {
        // SAFETY: as promised to this function.
        unsafe { stamp(block.add(from), to - from, FRESH) };
    }
}

/// Stamps a block that is about to be given back.
///
/// # Safety
/// The block is of `size_bytes`, and nobody uses it any more.
#[inline]
pub(super) unsafe fn freed(block: *mut u8, size_bytes: usize) {
    if cfg!(debug_assertions) {
        // SAFETY: as promised to this function.
        unsafe { stamp(block, size_bytes, FREED) };
    }
}

/// # Safety
/// `size_bytes` from `begin` on may be written.
unsafe fn stamp(begin: *mut u8, size_bytes: usize, with: u8) {
    if size_bytes <= 2 * END_BYTES {
        // SAFETY: exactly the bytes that may be written.
        unsafe { begin.write_bytes(with, size_bytes) };
    } else {
        // SAFETY: both ends lie within the bytes that may be written.
        unsafe {
            begin.write_bytes(with, END_BYTES);
            begin.add(size_bytes - END_BYTES).write_bytes(with, END_BYTES);
        }
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use crate::allocator::CountingAllocator;
    use std::alloc::{GlobalAlloc, Layout};

    /// A block through the allocator itself, whose stamped bytes may be read.
    fn with_block(size_bytes: usize, check: impl FnOnce(*mut u8, Layout)) {
        let layout = Layout::from_size_align(size_bytes, 8).unwrap();
        // SAFETY: the size is not zero.
        let block = unsafe { CountingAllocator.alloc(layout) };
        check(block, layout);
        // SAFETY: allocated above with this layout.
        unsafe { CountingAllocator.dealloc(block, layout) };
    }

    fn bytes_are(block: *const u8, range: std::ops::Range<usize>, value: u8) {
        for at in range {
            // SAFETY: the callers name stamped bytes of a live block.
            assert_eq!(unsafe { block.add(at).read() }, value, "at {at}");
        }
    }

    #[test]
    fn fresh_memory_is_stamped_whole_when_small_and_at_its_ends_when_large() {
        with_block(100, |block, _| bytes_are(block, 0..100, FRESH));
        with_block(1_000_000, |block, _| {
            bytes_are(block, 0..END_BYTES, FRESH);
            bytes_are(block, 1_000_000 - END_BYTES..1_000_000, FRESH);
        });
    }

    #[test]
    fn what_a_block_grows_by_is_stamped_and_what_it_held_is_not() {
        let layout = Layout::from_size_align(10, 1).unwrap();
        // SAFETY: allocated, written, resized and freed once each, with the layouts that belong to them.
        unsafe {
            let block = CountingAllocator.alloc(layout);
            block.write_bytes(7, 10);
            let grown = CountingAllocator.realloc(block, layout, 3_000);
            bytes_are(grown, 0..10, 7);
            bytes_are(grown, 10..3_000, FRESH);
            let shrunk = CountingAllocator.realloc(grown, Layout::from_size_align_unchecked(3_000, 1), 5);
            bytes_are(shrunk, 0..5, 7);
            CountingAllocator.dealloc(shrunk, Layout::from_size_align_unchecked(5, 1));
        }
    }

    #[test]
    fn zeroed_memory_stays_zero() {
        for size_bytes in [24, 100_000] {
            assert!(vec![0_u8; size_bytes].iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn freed_memory_is_stamped() {
        let mut block = [1_u8; 3 * END_BYTES];
        // SAFETY: an array of our own, all of which may be written.
        unsafe { freed(block.as_mut_ptr(), block.len()) };
        assert!(block[..END_BYTES].iter().all(|&byte| byte == FREED));
        assert!(block[END_BYTES..2 * END_BYTES].iter().all(|&byte| byte == 1));
        assert!(block[2 * END_BYTES..].iter().all(|&byte| byte == FREED));
    }
}
