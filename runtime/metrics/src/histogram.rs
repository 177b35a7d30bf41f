//! A distribution of times, kept as counts: percentiles to 1 %, the maximum, the sum and the count exactly.
//!
//! 1 us to 60 s at two significant digits; longer times count as 60 s, though the maximum stays true.
//! Finer than 1 % would cost ten times the memory and answer no question that a frame time asks.
//!
//! Cost: 20 KiB each, about 10 ns to record, never allocates after creation.

use throng_platform::time::Nanos;

/// Times in microseconds.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
    /// Exact counts for exposition, by the bounds of [`BOUNDS_US`]; the last one is everything above.
    buckets: [u64; BOUNDS_US.len() + 1],
    sum_us: u64,
    max_us: u64,
}

/// Upper bounds of the exposed buckets, dense where frames are: 128, 60, 30 and 20 Hz have their period
/// as a bound, so that "over budget" can be read off exactly.
pub(crate) const BOUNDS_US: [u64; 18] = [
    100, 250, 500, 1_000, 2_000, 4_000, 7_813, 12_000, 16_667, 25_000, 33_334, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 10_000_000,
];

const HIGHEST_US: u64 = 60_000_000;
const SIGNIFICANT_DIGITS: u8 = 2;

/// What a report says about a distribution, in milliseconds.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Percentiles {
    pub count: u64,
    /// 0 without samples.
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
}

impl Histogram {
    #[allow(clippy::new_without_default, reason = "20 KiB should not appear by default")]
    pub fn new() -> Histogram {
        let counts = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_US, SIGNIFICANT_DIGITS);
        Histogram {
            counts: counts.expect("the bounds are constants that hdrhistogram accepts"),
            buckets: [0; BOUNDS_US.len() + 1],
            sum_us: 0,
            max_us: 0,
        }
    }

    /// Adds one sample, in microseconds.
    pub fn record(&mut self, us: u64) {
        self.counts.saturating_record(us);
        self.buckets[BOUNDS_US.partition_point(|bound| *bound < us)] += 1;
        self.sum_us = self.sum_us.saturating_add(us);
        self.max_us = self.max_us.max(us);
    }

    /// Adds one sample, rounded down to microseconds.
    pub fn record_time(&mut self, time: Nanos) {
        self.record(time.as_micros());
    }

    /// Adds all of `other`'s samples.
    pub fn merge(&mut self, other: &Histogram) {
        self.counts.add(&other.counts).expect("all histograms have the same bounds");
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets) {
            *mine += theirs;
        }
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        self.max_us = self.max_us.max(other.max_us);
    }

    /// The samples that came after `earlier` was copied from this histogram, e.g. without the warm-up.
    ///
    /// Its maximum is exact when it is the largest of all samples, otherwise true to 1 %.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let mut counts = self.counts.clone();
        counts.subtract(&earlier.counts).expect("an earlier copy of the same histogram");
        let mut buckets = self.buckets;
        for (mine, theirs) in buckets.iter_mut().zip(earlier.buckets) {
            *mine -= theirs;
        }
        let max_us = if self.max_us > earlier.max_us { self.max_us } else { counts.max().min(self.max_us) };
        Histogram { counts, buckets, sum_us: self.sum_us - earlier.sum_us, max_us }
    }

    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    pub fn sum_us(&self) -> u64 {
        self.sum_us
    }

    pub fn max_us(&self) -> u64 {
        self.max_us
    }

    /// The value that a share `quantile` [0..=1] of the samples does not exceed, to 1 %; 0 without samples.
    pub fn quantile_us(&self, quantile: f64) -> u64 {
        self.counts.value_at_quantile(quantile).min(self.max_us)
    }

    pub fn percentiles(&self) -> Percentiles {
        let at_ms = |quantile| self.quantile_us(quantile) as f64 / 1e3;
        Percentiles {
            count: self.count(),
            mean_ms: self.sum_us() as f64 / 1e3 / self.count().max(1) as f64,
            p50_ms: at_ms(0.5),
            p99_ms: at_ms(0.99),
            p999_ms: at_ms(0.999),
            max_ms: self.max_us as f64 / 1e3,
        }
    }

    /// Pairs of upper bound in milliseconds and number of samples up to it and above the one before, in `count` equal
    /// steps from 0 to the maximum, to 1 %; none without samples. For drawing. Allocates.
    pub fn steps_ms(&self, count: usize) -> Vec<(f64, u64)> {
        if self.count() == 0 || count == 0 {
            return Vec::new();
        }
        let step_ms = self.max_us.max(1) as f64 / 1e3 / count as f64;
        let mut steps: Vec<(f64, u64)> = (1..=count).map(|step| (step_ms * step as f64, 0)).collect();
        for recorded in self.counts.iter_recorded() {
            let ms = recorded.value_iterated_to() as f64 / 1e3;
            steps[((ms / step_ms).ceil() as usize).clamp(1, count) - 1].1 += recorded.count_at_value();
        }
        steps
    }

    /// What was recorded, by rising length: the longest of each step (us), to 1 %, and how many there are.
    pub(crate) fn filled(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// Pairs of upper bound in seconds and number of samples up to it and above the one before.
    pub(crate) fn buckets_s(&self) -> [(f64, u64); BOUNDS_US.len() + 1] {
        std::array::from_fn(|index| {
            let bound_s = BOUNDS_US.get(index).map_or(f64::INFINITY, |us| *us as f64 / 1e6);
            (bound_s, self.buckets[index])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram_of(samples_us: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for us in samples_us {
            histogram.record(*us);
        }
        histogram
    }

    #[test]
    fn without_samples_all_is_zero() {
        assert_eq!(Histogram::new().percentiles(), Percentiles::default());
    }

    #[test]
    fn one_bad_frame_shows_in_the_maximum_and_not_in_the_median() {
        let mut samples = vec![16_000; 9_999];
        samples.push(900_000);
        let seen = histogram_of(&samples).percentiles();
        assert_eq!((seen.count, seen.max_ms), (10_000, 900.0));
        assert!((seen.p50_ms - 16.0).abs() <= 0.16, "{seen:?}");
        assert!((seen.p999_ms - 16.0).abs() <= 0.16, "{seen:?}");
    }

    #[test]
    fn a_time_beyond_the_range_keeps_its_maximum() {
        let histogram = histogram_of(&[0, 3_600_000_000]);
        assert_eq!((histogram.count(), histogram.max_us()), (2, 3_600_000_000));
        assert_eq!(histogram.sum_us(), 3_600_000_000);
    }

    #[test]
    fn a_sample_on_a_bound_belongs_below_it() {
        let buckets = histogram_of(&[50_000, 50_001, 0]).buckets_s();
        let filled: Vec<_> = buckets.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(0.0001, 1), (0.05, 1), (0.1, 1)]);
    }

    #[test]
    fn steps_hold_every_sample_up_to_the_worst() {
        let steps = histogram_of(&[1_000, 1_000, 2_500, 10_000]).steps_ms(5);
        assert_eq!(steps, [(2.0, 2), (4.0, 1), (6.0, 0), (8.0, 0), (10.0, 1)]);
        assert_eq!((histogram_of(&[0]).steps_ms(2)[0].1, Histogram::new().steps_ms(5)), (1, Vec::new()));
    }

    #[test]
    fn the_warm_up_can_be_left_out() {
        let mut histogram = histogram_of(&[800_000; 10]);
        let warm = histogram.clone();
        for _ in 0..1_000 {
            histogram.record(10_000);
        }
        let seen = histogram.since(&warm).percentiles();
        assert_eq!(seen.count, 1_000);
        assert!((seen.max_ms - 10.0).abs() <= 0.1, "{seen:?}");

        histogram.record(900_000);
        assert_eq!(histogram.since(&warm).percentiles().max_ms, 900.0);
    }

    proptest! {
        #[test]
        fn percentiles_agree_with_sorting_to_one_percent(
            mut samples in prop::collection::vec(0_u64..20_000_000, 1..400),
            split in 0_usize..400,
        ) {
            let (left, right) = samples.split_at(split.min(samples.len()));
            let mut histogram = histogram_of(left);
            histogram.merge(&histogram_of(right));
            samples.sort_unstable();
            prop_assert_eq!(histogram.count(), samples.len() as u64);
            prop_assert_eq!(histogram.sum_us(), samples.iter().sum::<u64>());
            prop_assert_eq!(histogram.max_us(), *samples.last().unwrap());
            prop_assert_eq!(histogram.buckets_s().iter().map(|(_, count)| count).sum::<u64>(), histogram.count());
            for quantile in [0.5, 0.99, 0.999] {
                let rank = (quantile * samples.len() as f64).ceil().max(1.0) as usize;
                let exact = samples[rank - 1] as f64;
                let seen = histogram.quantile_us(quantile) as f64;
                prop_assert!((seen - exact).abs() <= exact * 0.01 + 1.0, "{quantile}: {seen} against {exact}");
            }
        }
    }
}
