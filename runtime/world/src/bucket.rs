//! Bucket: a rate that may be used at once as far as it was not used before.
//!
//! It fills at its rate up to what it holds. What finds too little in it is refused, and who is refused for long is to
//! go: refusals are forgiven at a tenth of the rate, since a burst now and then is nobody's fault.
//!
//! No clock: the time that passed is an argument. A few additions.

use crate::allowance::Verdict;

/// Refusals that are not forgiven yet before a client is dismissed, in units of the rate: two seconds of twice the rate.
const REFUSED_RATES_MAX: f64 = 2.0;

#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    per_s: f64,
    most: f64,
    left: f64,
    refused: f64,
}

impl Bucket {
    /// Full; holds as much as comes in in `holds_s` seconds, above 0.
    pub fn new(per_s: u32, holds_s: f64) -> Self {
        let per_s = f64::from(per_s);
        Self { per_s, most: per_s * holds_s, left: per_s * holds_s, refused: 0.0 }
    }

    /// Has always enough. The rate is 0, because no time at all of an endless one is not a number.
    pub fn unlimited() -> Self {
        Self { per_s: 0.0, most: f64::INFINITY, left: f64::INFINITY, refused: 0.0 }
    }

    pub fn fill(&mut self, elapsed_s: f64) {
        self.left = (self.left + elapsed_s * self.per_s).min(self.most);
        self.refused = (self.refused - elapsed_s * self.per_s / 10.0).max(0.0);
    }

    pub fn has(&self, amount: f64) -> bool {
        self.left >= amount
    }

    /// Only what it [has](Self::has).
    pub fn take(&mut self, amount: f64) {
        self.left -= amount;
    }

    pub fn refuse(&mut self) -> Verdict {
        self.refused += 1.0;
        if self.refused > REFUSED_RATES_MAX * self.per_s { Verdict::Dismiss } else { Verdict::Drop }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_comes_in_in_its_time_and_no_more() {
        let mut bucket = Bucket::new(100, 0.5);
        assert!(bucket.has(50.0) && !bucket.has(50.5));
        bucket.take(50.0);
        bucket.fill(0.1);
        assert!(bucket.has(10.0) && !bucket.has(10.5));
        bucket.fill(60.0);
        assert!(bucket.has(50.0) && !bucket.has(50.5));
    }

    #[test]
    fn refusals_are_forgiven_at_a_tenth_of_the_rate() {
        let mut bucket = Bucket::new(100, 1.0);
        assert!((0..200).all(|_| bucket.refuse() == Verdict::Drop));
        assert_eq!(bucket.refuse(), Verdict::Dismiss);
        bucket.fill(1.0);
        assert!((0..9).all(|_| bucket.refuse() == Verdict::Drop));
        assert_eq!([bucket.refuse(), bucket.refuse()], [Verdict::Dismiss, Verdict::Dismiss]);
    }

    #[test]
    fn one_without_a_limit_has_always_enough() {
        let mut bucket = Bucket::unlimited();
        for elapsed_s in [0.0, 1e-9, 1e12] {
            bucket.take(1e18);
            bucket.fill(elapsed_s);
            assert!(bucket.has(1e18));
        }
    }
}
