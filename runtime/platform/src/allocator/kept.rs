//! Memory that is got from the kernel once, and kept.
//!
//! A server's memory is at its peak again a moment later, and each page handed back costs a fault to get again, in the
//! middle of a frame. Rounds of taking 64 MiB in 1 MiB blocks, writing to all of it and giving it back, 1.5 s apart:
//! 1,568 faults a round with mimalloc's defaults, 0 with [`keep_memory`]; the same holds for blocks up to 2 GiB and
//! across threads that come and go. A first touch is costlier still: on a fresh virtual machine the first fault of a 2
//! MiB page took 5 ms here, because the host has to find it too. [`commit_memory`] moves those to the start.
//!
//! [`hand_memory_back`] is for work that knows better: a capture of a busy server takes 40 MB and more while it is
//! written, and the next may be hours away.
//!
//! Two kinds of blocks go back to the kernel all the same, as mimalloc takes them from it directly: those above 2 GiB,
//! and those aligned to more than 64 KiB.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_long;
use std::sync::{Mutex, PoisonError};

use mimalloc::MiMalloc;

/// Keeps freed memory for the next use instead of handing it back to the kernel. Call first thing in `main`.
///
/// The price: memory use shown by the host stays at its peak.
pub fn keep_memory() {
    // SAFETY: sets one number inside mimalloc; -1 is its documented "never purge".
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) };
}

/// Has the kernel give this process memory in pages of 4 KiB only from now on, and not in the 2 MiB ones that mimalloc
/// asks for. Returns whether the kernel does. Call early: what is there stays as it is.
///
/// A huge page is there as a whole from the first byte that is touched, and what has been allocated has holes; but each
/// look at memory that was last used a thousand worlds ago finds its page sooner. 1,000 worlds with 20 NPCs and a player
/// each took 244 MB with huge pages and 195 MB without, 40 s after the last was in, and some 6 % more processor time
/// without.
pub fn take_small_pages() -> bool {
    nix::sys::prctl::set_thp_disable(true).is_ok()
}

/// Does work that takes far more memory than is needed again soon, and hands back to the kernel what is freed
/// meanwhile, also after [`keep_memory`]. What other threads free in these moments goes back with it, but none of them
/// does the handing back. Best on a thread of low priority, since it takes system calls; and whoever needs memory next
/// pays with page faults.
pub fn hand_memory_back<T>(work: impl FnOnce() -> T) -> T {
    let _handing_back = HandingBack::begin();
    work()
}

/// While one of these lives, the allocator notes what is freed.
struct HandingBack;

/// How many live, and what they have changed.
static HANDING_BACK: Mutex<(u32, c_long)> = Mutex::new((0, 0));

impl HandingBack {
    fn begin() -> HandingBack {
        let mut handing_back = HANDING_BACK.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, usual_delay_ms) = &mut *handing_back;
        *count += 1;
        if *count == 1 {
            // SAFETY: reads one number inside mimalloc.
            *usual_delay_ms = unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
            // SAFETY: sets it. With 0 each thread would purge for itself, in the middle of a tick.
            unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, LONG_DELAY_MS) };
        }
        HandingBack
    }
}

impl Drop for HandingBack {
    fn drop(&mut self) {
        let mut handing_back = HANDING_BACK.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, usual_delay_ms) = &mut *handing_back;
        // SAFETY: may be called at any time, by any thread; does not wait for the delay.
        unsafe { libmimalloc_sys::mi_collect(true) };
        *count -= 1;
        if *count == 0 {
            // SAFETY: sets one number inside mimalloc.
            unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, *usual_delay_ms) };
        }
    }
}

/// Longer than any work whose memory is handed back. (ms)
const LONG_DELAY_MS: c_long = 3_600_000;

/// `mi_option_purge_delay` of mimalloc.h (v3), which the bindings do not name.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Gets memory from the kernel, touches every page of it and leaves it to the allocator: what is allocated later finds
/// it there. Returns the bytes that were got, which are fewer where the host refuses.
///
/// For a program's start, after [`keep_memory`], without which it goes back after a second. Takes about 0.1 s per GiB,
/// and ten times that on a virtual machine whose host has yet to provide it. Too much: other servers of the host lack
/// it. Too little: the first frames that need more wait for it.
pub fn commit_memory(bytes: u64) -> u64 {
    let mut pieces = Vec::new();
    let mut left_bytes = bytes;
    while left_bytes > 0 {
        let Ok(layout) = Layout::from_size_align(left_bytes.min(PIECE_BYTES) as usize, PAGE_BYTES) else {
            break;
        };
        // SAFETY: the size is not zero.
        let piece = unsafe { MiMalloc.alloc(layout) };
        if piece.is_null() {
            break;
        }
        for at in (0..layout.size()).step_by(PAGE_BYTES) {
            // SAFETY: within the piece. Volatile, because nobody reads it and it must happen.
            unsafe { piece.add(at).write_volatile(0) };
        }
        left_bytes -= layout.size() as u64;
        pieces.push((piece, layout));
    }
    for (piece, layout) in pieces {
        // SAFETY: allocated above with this layout.
        unsafe { MiMalloc.dealloc(piece, layout) };
    }
    bytes - left_bytes
}

/// Below what mimalloc takes from its own arenas (2 GiB), and small against what a host has.
const PIECE_BYTES: u64 = 256 << 20;
const PAGE_BYTES: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::resource::{UsageWho, getrusage};

    fn faults_during(work: impl FnOnce()) -> i64 {
        let faults = || getrusage(UsageWho::RUSAGE_THREAD).unwrap().minor_page_faults();
        let before = faults();
        work();
        faults() - before
    }

    fn touch(bytes: usize) {
        let mut block = Vec::<u8>::with_capacity(bytes);
        for page in block.spare_capacity_mut().chunks_mut(PAGE_BYTES) {
            page[0].write(1);
        }
        std::hint::black_box(&mut block);
    }

    #[test]
    fn memory_can_be_kept() {
        keep_memory();
        // SAFETY: reads one number inside mimalloc.
        assert_eq!(unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) }, -1);
    }

    /// Tests beside this one take from the same memory, hence a few faults and not none.
    #[test]
    fn memory_that_was_taken_once_is_there_the_next_time() {
        keep_memory();
        for bytes in [300 << 10, 1 << 20, 9 << 20, 40 << 20] {
            touch(bytes);
            let again = faults_during(|| (0..4).for_each(|_| touch(bytes)));
            assert!(again < 100, "{again} faults for four rounds of {bytes} bytes");
        }
    }

    #[test]
    fn memory_can_be_had_before_it_is_needed() {
        keep_memory();
        assert_eq!(commit_memory(128 << 20), 128 << 20);
        let faults = faults_during(|| touch(40 << 20));
        assert!(faults < 30, "{faults} faults for 40 MiB that were committed before");
        assert_eq!(commit_memory(0), 0);
    }
}
