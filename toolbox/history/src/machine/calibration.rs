//! Calibration: how fast a machine is, by two loops that are the same everywhere.
//!
//! A chain of integer steps, each of which needs the one before, tells the clock rate that a core really has. A walk
//! through 64 MiB, each step of which is read where the one before led, tells what a wait for memory costs, misses of
//! the address table included: most of the time of small worlds. Of some windows the fastest counts, since whatever made
//! another slower was somebody else's.

use std::hint::black_box;
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// What one step takes (ns); 0 where it was not measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Calibration {
    /// Of a chain of a multiplication, a shift and an addition.
    pub integer_ns: f64,
    /// Of a walk through memory that no cache holds.
    pub memory_ns: f64,
}

/// Fastest of so many.
const WINDOWS: usize = 7;
/// Some 0.3 ms.
const INTEGER_STEPS: u32 = 200_000;
/// Some 1.5 ms.
const MEMORY_STEPS: u32 = 10_000;
/// Lines of 64 bytes: 64 MiB, more than a core's part of any last level.
const LINES: usize = 1 << 20;
const LINE_WORDS: usize = 8;

impl Calibration {
    /// Measures it here, on the calling thread: some 40 ms, 64 MiB for a moment.
    pub fn measure() -> Self {
        let mut at = 0x9E37_79B9_u64;
        let integer_ns = fastest(INTEGER_STEPS, || {
            for _ in 0..INTEGER_STEPS {
                at = at.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1) ^ (at >> 17);
            }
            at = black_box(at);
        });
        let memory = way_through_memory();
        let mut line = 0_u64;
        let memory_ns = fastest(MEMORY_STEPS, || {
            for _ in 0..MEMORY_STEPS {
                line = memory[line as usize * LINE_WORDS];
            }
            line = black_box(line);
        });
        Self { integer_ns, memory_ns }
    }
}

/// Each line holds the number of the next: a full cycle through all of them in an order that no prefetcher guesses, by a
/// generator of full period (Hull and Dobell: odd increment, multiplier 1 modulo 4).
fn way_through_memory() -> Vec<u64> {
    let mut memory = vec![0; LINES * LINE_WORDS];
    for line in 0..LINES as u64 {
        let next = line.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) % LINES as u64;
        memory[line as usize * LINE_WORDS] = next;
    }
    memory
}

fn fastest(steps: u32, mut window: impl FnMut()) -> f64 {
    let timed = (0..WINDOWS).map(|_| {
        let begin = Instant::now();
        window();
        begin.elapsed().as_nanos() as f64 / f64::from(steps)
    });
    timed.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_through_memory_comes_by_every_line() {
        let memory = way_through_memory();
        let mut line = 0;
        let steps = (1..).find(|_| {
            line = memory[line as usize * LINE_WORDS];
            line == 0
        });
        assert_eq!(steps, Some(LINES));
    }
}
