//! Sampling: which blocks are followed, and how many bytes each stands for.
//!
//! Every byte allocated has the same small chance of making its block a sample: a thread draws how many bytes to let
//! pass, with an exponential distribution of mean 64 KiB, and the block in which the last of them falls is taken. A
//! block of b bytes is thus taken with probability 1 - exp(-b / 64 KiB), and stands for b divided by that, so that sums
//! of weights are right on average whatever the mix of sizes. Drawing at random keeps a program that allocates in a
//! fixed rhythm from hiding. Blocks of 64 KiB and more are always taken, and stand for themselves.
//!
//! Per thread, without shared state. A block that is not taken costs two comparisons and a subtraction.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Mean distance between samples; blocks of this size and above are all taken. Smaller: more exact and more costly.
/// With 64 KiB, 1 GB/s of allocations makes 16,000 samples/s of about 0.2 µs each.
pub(super) const INTERVAL_BYTES: usize = 64 << 10;

/// One thread's countdown. Numbers with a constant start and no destructor, as the allocator may ask at any time of a
/// thread's life.
pub(super) struct Sampler {
    /// Bytes to let pass; 0 before the first draw.
    left_bytes: Cell<usize>,
    random: Cell<u64>,
}

impl Sampler {
    pub(super) const fn new() -> Sampler {
        Sampler { left_bytes: Cell::new(0), random: Cell::new(0) }
    }

    /// What a block of this size stands for if it is to be followed.
    #[inline(always)]
    pub(super) fn weight_of(&self, bytes: usize) -> Option<u64> {
        let left_bytes = self.left_bytes.get();
        if bytes < left_bytes && bytes < INTERVAL_BYTES {
            self.left_bytes.set(left_bytes - bytes);
            return None;
        }
        self.weight_of_taken(bytes)
    }

    #[cold]
    fn weight_of_taken(&self, bytes: usize) -> Option<u64> {
        if bytes >= INTERVAL_BYTES {
            return Some(bytes as u64);
        }
        if self.random.get() == 0 {
            self.random.set(seed());
            self.left_bytes.set(self.draw());
            return self.weight_of(bytes);
        }
        self.left_bytes.set(self.draw());
        let share = bytes as f64 / INTERVAL_BYTES as f64;
        // 1 - exp(-x), without the loss of digits when x is small.
        Some((bytes as f64 / -(-share).exp_m1()).round() as u64)
    }

    /// Bytes until the next sample, at least 1.
    fn draw(&self) -> usize {
        // The upper 53 bits as a number in (0, 1], whose logarithm is finite.
        let uniform = ((self.next_random() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        (-uniform.ln() * INTERVAL_BYTES as f64) as usize + 1
    }

    /// xorshift64*: one word of state, never 0 once seeded.
    fn next_random(&self) -> u64 {
        let mut state = self.random.get();
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.random.set(state);
        state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

/// Another number for every thread, never 0. The world does not depend on it: it decides which blocks are looked at.
fn seed() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(1);
    THREADS.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sum of weights over the bytes that were allocated, and samples taken.
    fn estimate(sizes: impl Iterator<Item = usize>) -> (f64, u64) {
        let sampler = Sampler::new();
        let (mut bytes, mut weight, mut samples) = (0_u64, 0_u64, 0);
        for size in sizes {
            bytes += size as u64;
            if let Some(weight_bytes) = sampler.weight_of(size) {
                weight += weight_bytes;
                samples += 1;
            }
        }
        (weight as f64 / bytes as f64, samples)
    }

    #[test]
    fn weights_add_up_to_what_was_allocated_for_any_mix_of_sizes() {
        for sizes in [&[16][..], &[1_000], &[40_000], &[16, 16, 16, 16, 60_000], &[24, 3_000, 500_000]] {
            let blocks = 300_000_000 / sizes.iter().sum::<usize>() * sizes.len();
            let (ratio, samples) = estimate(sizes.iter().copied().cycle().take(blocks));
            // 1/sqrt(n) is 1.5 % for the 4,600 samples of 300 MB in small blocks; five times that is out of reach of
            // chance.
            assert!((ratio - 1.0).abs() < 0.08, "{sizes:?}: {ratio} with {samples} samples");
            assert!(samples > 500, "{sizes:?}: {samples} samples");
        }
    }

    #[test]
    fn large_blocks_are_all_taken_and_stand_for_themselves() {
        let sampler = Sampler::new();
        for bytes in [INTERVAL_BYTES, INTERVAL_BYTES + 1, 100 << 20] {
            assert_eq!(sampler.weight_of(bytes), Some(bytes as u64));
        }
    }

    #[test]
    fn small_blocks_between_large_ones_are_taken_too() {
        let (_, samples) = estimate([48, 70_000].into_iter().cycle().take(200_000));
        assert!(samples > 100_000 + 30, "{samples}: about 73 small ones beside 100,000 large ones");
    }

    #[test]
    fn threads_draw_differently() {
        let draws = [Sampler::new(), Sampler::new()]
            .map(|sampler| (0..20_000).filter(|_| sampler.weight_of(100).is_some()).collect::<Vec<_>>());
        assert_ne!(draws[0], draws[1]);
    }
}
