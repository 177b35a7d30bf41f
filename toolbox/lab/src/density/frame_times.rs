//! Frame times of a window: how many, their sum, and how they spread.
//!
//! Exact in count and mean; percentiles are as fine as the buckets. Times that are read one by one are put into buckets
//! of 2 %; a server's own histogram keeps its own.

use std::collections::BTreeMap;

/// Bounds of the buckets for times that are read one by one: each is this much above the one before.
const GROWTH: f64 = 1.02;
/// Shorter times than this are as good as nothing (ms).
const LOWEST_MS: f64 = 0.001;

/// Times of any number of frames, in ms.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FrameTimes {
    /// Some exporters count in floats.
    pub count: f64,
    pub sum_ms: f64,
    /// By the bits of the upper bound, which for numbers that are not negative sort as the numbers do.
    buckets: BTreeMap<u64, Bucket>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Bucket {
    lower_ms: f64,
    count: f64,
}

impl FrameTimes {
    /// As an exporter counts them; its buckets are added.
    pub fn counted(count: f64, sum_ms: f64) -> Self {
        Self { count, sum_ms, buckets: BTreeMap::new() }
    }

    /// Adds one frame. What is no time is left out.
    pub fn record(&mut self, ms: f64) {
        if !ms.is_finite() || ms < 0.0 {
            return;
        }
        let step = (ms.max(LOWEST_MS) / LOWEST_MS).log(GROWTH).ceil() as i32;
        let bound_ms = |step: i32| LOWEST_MS * GROWTH.powi(step);
        self.add(bound_ms(step - 1), bound_ms(step), 1.0);
        self.count += 1.0;
        self.sum_ms += ms;
    }

    /// Adds a bucket with `count` frames above `lower_ms` and up to `upper_ms`, which may be infinite. Neither count nor
    /// sum follow: an exporter tells them itself.
    pub fn add(&mut self, lower_ms: f64, upper_ms: f64, count: f64) {
        if count > 0.0 && upper_ms >= 0.0 {
            let bucket = self.buckets.entry(upper_ms.to_bits()).or_insert(Bucket { lower_ms, count: 0.0 });
            bucket.count += count;
        }
    }

    pub fn merge(&mut self, other: &FrameTimes) {
        self.count += other.count;
        self.sum_ms += other.sum_ms;
        for (&upper, bucket) in &other.buckets {
            self.add(bucket.lower_ms, f64::from_bits(upper), bucket.count);
        }
    }

    /// `None` without frames.
    pub fn mean_ms(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum_ms / self.count)
    }

    /// The time that a share of the frames stay within. Between a bucket's bounds it is a straight line; above the last
    /// finite bound there is nothing but that bound. `None` where only count and sum are known.
    pub fn quantile_ms(&self, share: f64) -> Option<f64> {
        let all: f64 = self.buckets.values().map(|bucket| bucket.count).sum();
        let wanted = share * all;
        let mut below = 0.0;
        for (&upper, bucket) in &self.buckets {
            let upper_ms = f64::from_bits(upper);
            if below + bucket.count >= wanted {
                let part = (wanted - below) / bucket.count;
                let lower_ms = bucket.lower_ms;
                return Some(if upper_ms.is_finite() { lower_ms + (upper_ms - lower_ms) * part } else { lower_ms });
            }
            below += bucket.count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, expect: f64) {
        let found = found.expect("there are frames");
        assert!((found / expect - 1.0).abs() < 0.03, "{found} and not {expect}");
    }

    #[test]
    fn times_that_are_read_one_by_one_keep_their_mean_and_their_percentiles() {
        let mut times = FrameTimes::default();
        assert_eq!((times.mean_ms(), times.quantile_ms(0.5)), (None, None));
        (1..=1_000).for_each(|n| times.record(f64::from(n) / 100.0));
        [f64::NAN, f64::INFINITY, -1.0].into_iter().for_each(|none| times.record(none));
        assert_eq!(times.count, 1_000.0);
        near(times.mean_ms(), 5.005);
        near(times.quantile_ms(0.5), 5.0);
        near(times.quantile_ms(0.99), 9.9);

        let mut one = FrameTimes::default();
        one.record(5.0);
        near(one.quantile_ms(0.5), 5.0);
        one.record(0.0);
        assert_eq!(one.mean_ms(), Some(2.5));
    }

    #[test]
    fn buckets_of_several_servers_are_put_together() {
        let mut one = FrameTimes { count: 10.0, sum_ms: 10.0, ..FrameTimes::default() };
        one.add(0.0, 1.0, 6.0);
        one.add(1.0, 2.0, 4.0);
        let mut both = one.clone();
        both.merge(&one);
        assert_eq!((both.count, both.mean_ms()), (20.0, Some(1.0)));
        assert_eq!((both.quantile_ms(0.3), both.quantile_ms(0.8)), (Some(0.5), Some(1.5)));
    }

    #[test]
    fn above_the_last_bound_nothing_is_made_up() {
        let mut times = FrameTimes::default();
        times.add(0.0, 1.0, 1.0);
        times.add(1.0, f64::INFINITY, 9.0);
        assert_eq!(times.quantile_ms(0.99), Some(1.0));
    }
}
