//! Bucket: a rate that may be used at once as far as it was not used before.
//!
//! It fills at its rate up to what it holds. What finds too little in it is refused, and who is refused for long is to
//! go: refusals are forgiven at a tenth of the rate, since a burst now and then is nobody's fault.
//!
//! No clock: the time that passed is an argument. A few additions.

use crate::allowance::Verdict;

/// What was refused and is not forgiven yet before a client is dismissed, in units of the rate: two seconds of twice the
/// rate.
const REFUSED_RATES_MAX: f64 = 2.0;

#[derive(Debug, Clone)]
pub(crate) enum Bucket {
    /// Has always enough.
    Unlimited,
    Limited(Limit),
}

#[derive(Debug, Clone)]
pub(crate) struct Limit {
    per_s: f64,
    most: f64,
    left: f64,
    refused: f64,
}

impl Bucket {
    /// Full; holds as much as comes in in `holds_s` seconds, above 0.
    pub fn new(per_s: u32, holds_s: f64) -> Self {
        let per_s = f64::from(per_s);
        Self::Limited(Limit { per_s, most: per_s * holds_s, left: per_s * holds_s, refused: 0.0 })
    }

    pub fn fill(&mut self, elapsed_s: f64) {
        let Self::Limited(Limit { per_s, most, left, refused }) = self else { return };
        *left = (*left + elapsed_s * *per_s).min(*most);
        *refused = (*refused - elapsed_s * *per_s / 10.0).max(0.0);
    }

    pub fn has(&self, amount: f64) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Limited(limit) => limit.left >= amount,
        }
    }

    /// Only what it [has](Self::has).
    pub fn take(&mut self, amount: f64) {
        if let Self::Limited(limit) = self {
            limit.left -= amount;
        }
    }

    /// Refuses as much.
    pub fn refuse(&mut self, amount: f64) -> Verdict {
        let Self::Limited(limit) = self else { return Verdict::Drop };
        limit.refused += amount;
        if limit.refused > REFUSED_RATES_MAX * limit.per_s { Verdict::Dismiss } else { Verdict::Drop }
    }

    /// Takes as much, or refuses it. Who asks for more than it ever holds gets all of it, else that would never pass.
    pub fn spend(&mut self, amount: f64) -> Verdict {
        let amount = match self {
            Self::Unlimited => return Verdict::Pass,
            Self::Limited(limit) => amount.min(limit.most),
        };
        if !self.has(amount) {
            return self.refuse(amount);
        }
        self.take(amount);
        Verdict::Pass
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
        assert!((0..200).all(|_| bucket.refuse(1.0) == Verdict::Drop));
        assert_eq!(bucket.refuse(1.0), Verdict::Dismiss);
        bucket.fill(1.0);
        assert!((0..9).all(|_| bucket.refuse(1.0) == Verdict::Drop));
        assert_eq!([bucket.refuse(1.0), bucket.refuse(1.0)], [Verdict::Dismiss, Verdict::Dismiss]);
    }

    #[test]
    fn what_is_refused_counts_by_its_size() {
        let mut bucket = Bucket::new(100, 1.0);
        assert_eq!(bucket.spend(80.0), Verdict::Pass);
        let verdicts = [80.0, 80.0, 80.0].map(|amount| bucket.spend(amount));
        assert_eq!(verdicts, [Verdict::Drop, Verdict::Drop, Verdict::Dismiss]);
        assert_eq!(bucket.spend(20.0), Verdict::Pass, "what is left may be had");
    }

    #[test]
    fn more_than_it_holds_passes_when_it_is_full() {
        let mut bucket = Bucket::new(100, 1.0);
        assert_eq!([bucket.spend(1e9), bucket.spend(1.0)], [Verdict::Pass, Verdict::Drop]);
        bucket.fill(0.9);
        assert_eq!(bucket.spend(1e9), Verdict::Drop);
        bucket.fill(0.2);
        assert_eq!(bucket.spend(1e9), Verdict::Pass);
    }

    #[test]
    fn one_without_a_limit_has_always_enough() {
        let mut bucket = Bucket::Unlimited;
        for elapsed_s in [0.0, 1e-9, 1e12] {
            bucket.take(1e18);
            bucket.fill(elapsed_s);
            assert!(bucket.has(1e18));
            assert_eq!(bucket.spend(1e18), Verdict::Pass);
        }
    }
}
