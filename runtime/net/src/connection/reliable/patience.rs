//! How long something has stood still, counted only while somebody was watching.
//!
//! A world that hung for 20 s has not seen its clients stall for 20 s: the acks are in the socket. So each
//! look counts for [`LOOK_MAX`] at most.

use throng_platform::time::Nanos;

/// What one look may add; frames of a live server are shorter.
const LOOK_MAX: Nanos = Nanos::from_millis(250);

#[derive(Debug, Default)]
pub struct Patience {
    waited: Nanos,
    looked_at: Option<Nanos>,
}

impl Patience {
    /// Something moved.
    pub fn renew(&mut self) {
        self.waited = Nanos::ZERO;
    }

    /// Call now and then while `waiting`; returns for how long nothing has moved.
    pub fn look(&mut self, now: Nanos, waiting: bool) -> Nanos {
        let since_last = self.looked_at.map_or(Nanos::ZERO, |at| now.saturating_sub(at));
        self.looked_at = Some(now);
        if waiting {
            self.waited += since_last.min(LOOK_MAX);
        } else {
            self.waited = Nanos::ZERO;
        }
        self.waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_of_the_watcher_counts_little() {
        let mut patience = Patience::default();
        assert_eq!(patience.look(Nanos::from_secs(5), true), Nanos::ZERO);
        assert_eq!(patience.look(Nanos::from_millis(5_100), true), Nanos::from_millis(100));
        assert_eq!(patience.look(Nanos::from_secs(100), true), Nanos::from_millis(350));
        patience.renew();
        assert_eq!(patience.look(Nanos::from_millis(100_050), true), Nanos::from_millis(50));
        assert_eq!(patience.look(Nanos::from_millis(100_100), false), Nanos::ZERO);
    }
}
