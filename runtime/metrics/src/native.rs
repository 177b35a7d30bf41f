//! Native histograms: a histogram's counts in the buckets that Prometheus keeps them in.
//!
//! Buckets are powers of 2^(1/16), so each is 4.4 % wide: two long frames that differ by more than that are told apart,
//! and a dashboard's percentile is as good, without a bound chosen beforehand. What was recorded is known to 1 %, and
//! each step of that goes to one bucket, always to the same, so that a bucket's count only grows.
//!
//! ```text
//! bucket 0 ends at 1 s, bucket -16 at 0.5 s, bucket 16 at 2 s; only filled ones are told, as runs (spans)
//! ```
//!
//! Runs on the thread of whoever asked. Cost: one pass over the counts, 3 us; at most 415 buckets, from 1 us to 60 s.

use crate::histogram::Histogram;

/// Steps of a doubling are 2^this.
pub(crate) const SCHEMA: i32 = 4;

/// What is no longer than this is in the bucket of zero (s).
pub(crate) const ZERO_THRESHOLD_S: f64 = 0.5e-6;

/// Counts by bucket, as the protobuf format has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NativeBuckets {
    pub zero_count: u64,
    /// Runs of filled buckets: the gap to the end of the run before, or the first bucket's number; and how many there are.
    pub spans: Vec<(i32, u32)>,
    /// How much more is in each bucket than in the one before it.
    pub deltas: Vec<i64>,
}

impl NativeBuckets {
    pub fn of(histogram: &Histogram) -> NativeBuckets {
        let mut buckets = NativeBuckets::default();
        let (mut next, mut before) = (0, 0);
        let mut filled = histogram.filled().filter(|&(_, count)| count > 0).peekable();
        while let Some((us, mut count)) = filled.next() {
            if us == 0 {
                buckets.zero_count += count;
                continue;
            }
            let bucket = bucket_of(us);
            while let Some((_, more)) = filled.next_if(|&(us, _)| bucket_of(us) == bucket) {
                count += more;
            }
            match buckets.spans.last_mut() {
                Some((_, length)) if bucket == next => *length += 1,
                _ => buckets.spans.push((bucket - next, 1)),
            }
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            buckets.deltas.push(count - before);
            (next, before) = (bucket + 1, count);
        }
        buckets
    }
}

/// The bucket that holds so many microseconds [>= 1].
fn bucket_of(us: u64) -> i32 {
    ((us as f64 / 1e6).log2() * f64::from(1 << SCHEMA)).ceil() as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(samples_us: &[u64]) -> NativeBuckets {
        let mut histogram = Histogram::new();
        samples_us.iter().for_each(|&us| histogram.record(us));
        NativeBuckets::of(&histogram)
    }

    /// As a reader takes it apart: each bucket's upper bound (s) and its count.
    fn told(buckets: &NativeBuckets) -> Vec<(f64, u64)> {
        let (mut told, mut number, mut count) = (Vec::new(), 0, 0);
        let mut deltas = buckets.deltas.iter();
        for &(gap, length) in &buckets.spans {
            number += gap;
            for _ in 0..length {
                count += deltas.next().expect("a delta for each bucket");
                told.push((f64::from(number) / f64::from(1 << SCHEMA), count as u64));
                number += 1;
            }
        }
        assert_eq!(deltas.next(), None);
        told.into_iter().map(|(log2, count)| (log2.exp2(), count)).collect()
    }

    #[test]
    fn a_histogram_without_samples_has_no_buckets() {
        assert_eq!(of(&[]), NativeBuckets::default());
    }

    #[test]
    fn neighbours_are_one_run_and_a_gap_begins_another() {
        // 1 s is bucket 0's bound, but is known to 1 % only: it is told in bucket 1.
        let buckets = of(&[0, 0, 960_000, 960_000, 1_000_000, 2_000_000]);
        assert_eq!(buckets.zero_count, 2);
        assert_eq!(buckets.spans, [(0, 2), (15, 1)]);
        assert_eq!(buckets.deltas, [2, -1, 0]);
    }

    /// Promise: a hundred spikes of rising height are a hundred buckets, if each is a twentieth higher.
    #[test]
    fn heights_that_differ_by_a_twentieth_are_told_apart() {
        let spikes: Vec<u64> = (0..100).map(|n| (20_000.0 * 1.06_f64.powi(n)) as u64).collect();
        assert_eq!(told(&of(&spikes)).len(), 100);
    }

    proptest! {
        #[test]
        fn every_sample_is_in_one_bucket_that_holds_it(samples in prop::collection::vec(0_u64..60_000_000, 0..300)) {
            let buckets = of(&samples);
            let told = told(&buckets);
            prop_assert_eq!(told.iter().map(|(_, count)| count).sum::<u64>() + buckets.zero_count, samples.len() as u64);
            for &us in samples.iter().filter(|&&us| us > 0) {
                let seconds = us as f64 / 1e6;
                // Up to 1 % higher than it was, in a bucket of 4.4 %.
                prop_assert!(told.iter().any(|(bound, _)| seconds <= bound * 1.000_001 && *bound <= seconds * 1.06 + 2e-6));
            }
        }
    }
}
