//! Chance enters the program once: a seed from the kernel, from which everything else is seeded.
//!
//! Nothing below `server` calls this; a world gets a seed and gives the same results for it. Blocks only
//! if the kernel's pool is not ready yet, early in boot. Cost: one system call.

/// 32 unpredictable bytes.
///
/// # Panics
/// If the kernel has no source of randomness: a server without one could not keep a single key secret.
pub fn seed() -> [u8; 32] {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).expect("the kernel has no source of randomness (getrandom failed)");
    seed
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_seeds_differ() {
        assert_ne!(super::seed(), super::seed());
    }
}
