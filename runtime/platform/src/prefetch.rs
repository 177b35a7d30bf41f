//! Prefetch: asks for memory that is going to be read, while something else is still being done.
//!
//! A server's tick goes through its clients one after the other, each a few kilobytes in a dozen places, and with a
//! thousand of them nothing of the next one is in the nearest cache. Nothing can wait for what has been asked for
//! early enough. Only a hint: what is asked for in vain costs its line, never a fault.

/// Bytes that come together.
const LINE_BYTES: usize = 64;

/// Asks for all of a value. Costs about 0.3 ns per 64 bytes.
#[inline]
pub fn value<T: ?Sized>(value: &T) {
    let begin = std::ptr::from_ref(value).cast::<u8>();
    for offset in (0..size_of_val(value)).step_by(LINE_BYTES) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a hint, which reads nothing; the address is within a live value.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(begin.add(offset).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = begin.wrapping_add(offset);
    }
}
