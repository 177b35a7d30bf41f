//! How long something has stood still, counted only while somebody was watching and the other side was heard.
//!
//! A world that hung for 20 s has not seen its clients stall for 20 s: the acks are in the socket. So each
//! look counts for [`LOOK_MAX`] at most. Nor has a client of a server that hung: who says nothing at all is let go by the
//! connection's timeout, and not sooner for what happens to be on its way.

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

    /// Call now and then while `waiting`; returns for how long nothing has moved while the other side was heard.
    pub fn look(&mut self, now: Nanos, waiting: bool, is_heard: bool) -> Nanos {
        let since_last = self.looked_at.map_or(Nanos::ZERO, |at| now.saturating_sub(at));
        self.looked_at = Some(now);
        match (waiting, is_heard) {
            (true, true) => self.waited += since_last.min(LOOK_MAX),
            (true, false) => {}
            (false, _) => self.waited = Nanos::ZERO,
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
        assert_eq!(patience.look(Nanos::from_secs(5), true, true), Nanos::ZERO);
        assert_eq!(patience.look(Nanos::from_millis(5_100), true, true), Nanos::from_millis(100));
        assert_eq!(patience.look(Nanos::from_secs(100), true, true), Nanos::from_millis(350));
        patience.renew();
        assert_eq!(patience.look(Nanos::from_millis(100_050), true, true), Nanos::from_millis(50));
        assert_eq!(patience.look(Nanos::from_millis(100_100), false, true), Nanos::ZERO);
    }

    #[test]
    fn a_silence_of_the_other_side_neither_counts_nor_is_an_answer() {
        let mut patience = Patience::default();
        let mut look = |tenth: u64, is_heard| patience.look(Nanos::from_millis(100 * tenth), true, is_heard);
        assert_eq!((0..=10).map(|tenth| look(tenth, true)).max(), Some(Nanos::from_secs(1)));
        assert_eq!((11..=300).map(|tenth| look(tenth, false)).max(), Some(Nanos::from_secs(1)));
        assert_eq!((301..=310).map(|tenth| look(tenth, true)).max(), Some(Nanos::from_secs(2)));
    }
}
