//! Fastest ticks: a run is repeated, and of each tick the fastest repetition counts, part by part.
//!
//! The work is the same to the last bit, as its hash says, so whatever took longer was somebody else's. What is read is the
//! CPU time of the calling thread, and what reading it costs is taken off.

use throng_platform::{process::thread_cpu_time, time::Nanos};

/// Times of a run's ticks, each of which is timed in `PARTS` parts.
pub struct FastestTicks<const PARTS: usize> {
    /// With what reading the clock cost. (ns)
    ticks: Vec<[u64; PARTS]>,
    /// What one reading costs. (ns)
    clock_ns: u64,
}

impl<const PARTS: usize> FastestTicks<PARTS> {
    /// Runs `once` so many times [>= 1], and returns what the last of them did. It is given its number, and a list with
    /// room for so many ticks, to which it adds the times of each.
    ///
    /// # Panics
    /// If two repetitions differ in their `hash`: they did not do the same work. If there is none.
    pub fn measure<T>(
        repetitions: u32,
        ticks_count: u32,
        hash: impl Fn(&T) -> u64,
        mut once: impl FnMut(u32, &mut Vec<[u64; PARTS]>) -> T,
    ) -> (Self, T) {
        let clock_ns = (0..1_000).map(|_| cpu_ns_since(thread_cpu_time())).min().unwrap_or(0);
        let mut ticks: Vec<[u64; PARTS]> = Vec::new();
        let mut last: Option<T> = None;
        for repetition in 0..repetitions {
            // With room for all: what is timed may be watched for allocations.
            let mut times = Vec::with_capacity(ticks_count as usize);
            let ran = once(repetition, &mut times);
            if let Some(before) = &last {
                assert_eq!(hash(before), hash(&ran), "every repetition does the same work");
            }
            last = Some(ran);
            keep_fastest(&mut ticks, times);
        }
        (Self { ticks, clock_ns }, last.expect("at least one repetition"))
    }

    /// The times of each tick, less so many readings of the clock as were made within each part. (ns)
    pub fn less_readings(&self, readings: [u64; PARTS]) -> impl Iterator<Item = [u64; PARTS]> {
        let less = move |times: &[u64; PARTS]| -> [u64; PARTS] {
            std::array::from_fn(|part| times[part].saturating_sub(readings[part] * self.clock_ns))
        };
        self.ticks.iter().map(less)
    }

    /// The sum of each part over all ticks, where the clock is read once for each. (ns)
    pub fn sums_ns(&self) -> [u64; PARTS] {
        let add = |sums: [u64; PARTS], times: [u64; PARTS]| std::array::from_fn(|part| sums[part] + times[part]);
        self.less_readings([1; PARTS]).fold([0; PARTS], add)
    }
}

fn keep_fastest<const PARTS: usize>(ticks: &mut Vec<[u64; PARTS]>, times: Vec<[u64; PARTS]>) {
    if ticks.is_empty() {
        *ticks = times;
        return;
    }
    for (fastest, times) in ticks.iter_mut().zip(times) {
        fastest.iter_mut().zip(times).for_each(|(fastest, time)| *fastest = time.min(*fastest));
    }
}

/// CPU time that the calling thread took since then. (ns)
pub fn cpu_ns_since(begin: Nanos) -> u64 {
    thread_cpu_time().saturating_sub(begin).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_tick_and_part_the_fastest_repetition_counts() {
        let runs = [[[50, 900], [70, 100]], [[60, 300], [20, 200]]];
        let (fastest, last) = FastestTicks::measure(
            2,
            2,
            |_| 7,
            |repetition, times: &mut Vec<[u64; 2]>| {
                assert!(times.capacity() >= 2);
                times.extend(runs[repetition as usize]);
                repetition
            },
        );
        assert_eq!(last, 1);
        assert_eq!(fastest.less_readings([0, 0]).collect::<Vec<_>>(), [[50, 300], [20, 100]]);
        let fastest = FastestTicks { clock_ns: 30, ..fastest };
        assert_eq!(fastest.less_readings([1, 3]).collect::<Vec<_>>(), [[20, 210], [0, 10]]);
        assert_eq!(fastest.sums_ns(), [20, 340]);
    }

    #[test]
    #[should_panic(expected = "every repetition does the same work")]
    fn faster_but_different_is_refused() {
        FastestTicks::<1>::measure(2, 1, |hash: &u64| *hash, |repetition, _| u64::from(repetition));
    }
}
