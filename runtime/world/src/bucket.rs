//! Bucket: a rate that may be used at once as far as it was not used before.
//!
//! It fills at its rate up to what it holds. What finds too little in it is refused, and who is refused for long is to
//! go: refusals are forgiven at a tenth of the rate, since a burst now and then is nobody's fault. What was not used before
//! is set off against them: a line that stood still hands over at once what was said meanwhile.
//!
//! No clock: the time that passed is an argument. A few additions.

use crate::allowance::Verdict;

/// What was refused and is not forgiven yet before a client is dismissed, in units of the rate: two seconds of twice the
/// rate.
const REFUSED_RATES_MAX: f64 = 2.0;

/// What was not used and is set off against what is refused, in units of the rate. A client that sends 128 inputs a second
/// and is not heard for the 15 s of its timeout has said 1,920: of 300 packets a second that is 6.4 rates, of which the
/// bucket holds one and two are forgiven to anybody.
const UNUSED_RATES_MAX: f64 = 4.0;

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
    /// Below zero, as far as it was taken ahead of time.
    left: f64,
    /// What came in while it was full.
    unused: f64,
    refused: f64,
}

impl Bucket {
    /// Full; holds as much as comes in in `holds_s` seconds, above 0.
    pub fn new(per_s: u32, holds_s: f64) -> Self {
        let per_s = f64::from(per_s);
        Self::Limited(Limit { per_s, most: per_s * holds_s, left: per_s * holds_s, unused: 0.0, refused: 0.0 })
    }

    pub fn fill(&mut self, elapsed_s: f64) {
        let Self::Limited(Limit { per_s, most, left, unused, refused }) = self else { return };
        let filled = *left + elapsed_s * *per_s;
        *left = filled.min(*most);
        *unused = (*unused + (filled - *left)).min(UNUSED_RATES_MAX * *per_s);
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
        let set_off = amount.min(limit.unused);
        limit.unused -= set_off;
        limit.refused += amount - set_off;
        if limit.refused > REFUSED_RATES_MAX * limit.per_s { Verdict::Dismiss } else { Verdict::Drop }
    }

    /// Takes as much, or refuses it. Who asks for more than it ever holds gets all of it, else that would never pass.
    pub fn spend(&mut self, amount: f64) -> Verdict {
        self.spend_down_to(amount, 0.0)
    }

    /// The same for what is not to be refused lightly: as much as it holds may be taken ahead of time, and comes in first.
    pub fn spend_ahead(&mut self, amount: f64) -> Verdict {
        self.spend_down_to(amount, -1.0)
    }

    /// `least` is what is to be left, in units of what it holds.
    fn spend_down_to(&mut self, amount: f64, least: f64) -> Verdict {
        let Self::Limited(limit) = self else { return Verdict::Pass };
        let amount = amount.min(limit.most);
        if limit.left - amount < least * limit.most {
            return self.refuse(amount);
        }
        limit.left -= amount;
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
        bucket.take(100.0);
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
    fn who_was_silent_is_refused_more_before_it_has_to_go() {
        let refused = |silent_s: f64| {
            let mut bucket = Bucket::new(100, 1.0);
            bucket.fill(silent_s);
            (0..10_000).take_while(|_| bucket.refuse(1.0) == Verdict::Drop).count()
        };
        assert_eq!([0.0, 1.0, 3.5].map(refused), [200, 300, 550]);
        assert_eq!([4.0, 1e9].map(refused), [600, 600], "four seconds of it count");
        let mut busy = Bucket::new(100, 1.0);
        for _ in 0..1_000 {
            busy.take(100.0);
            busy.fill(1.0);
        }
        assert_eq!((0..10_000).take_while(|_| busy.refuse(1.0) == Verdict::Drop).count(), 200, "it used all it had");
    }

    #[test]
    fn what_is_taken_ahead_of_time_comes_in_first() {
        let mut bucket = Bucket::new(100, 1.0);
        let verdicts = [1e9, 60.0, 40.0, 1.0].map(|amount| bucket.spend_ahead(amount));
        assert_eq!(verdicts, [Verdict::Pass, Verdict::Pass, Verdict::Pass, Verdict::Drop]);
        bucket.fill(0.9);
        assert_eq!([bucket.spend(1.0), bucket.spend_ahead(1.0)], [Verdict::Drop, Verdict::Pass]);
        bucket.fill(0.2);
        assert_eq!([bucket.spend(8.0), bucket.spend(2.0)], [Verdict::Pass, Verdict::Drop]);
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
