//! Behind: since when a world has not kept up, and when it last did not: a tick of it was missed, or it was overloaded.
//!
//! Noted when such a tick comes home, on the frame's thread. A tick that is on time costs a comparison.

use throng_platform::time::Nanos;

/// Who has kept up for so long has recovered, and what comes then begins anew. Longer than a world waits on a step of the
/// overload ladder to see whether it can do without.
const RECOVERED_AFTER: Nanos = Nanos::from_secs(60);

/// The last time that a world was behind, by the server's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behind {
    /// When the first of its ticks was due that did not keep up.
    pub since: Nanos,
    /// When the last of them ended.
    pub last: Nanos,
}

impl Behind {
    /// A tick that was due at `due` did not keep up, and ended at `end`.
    pub(crate) fn note(before: Option<Self>, due: Nanos, end: Nanos) -> Self {
        let goes_on = |before: &Self| due.saturating_sub(before.last) < RECOVERED_AFTER;
        Self { since: before.filter(goes_on).map_or(due, |before| before.since), last: end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_with_the_first_and_anew_after_a_minute() {
        let s = Nanos::from_secs;
        let mut behind = None;
        let mut check = |due, end, since| {
            behind = Some(Behind::note(behind, s(due), s(end)));
            assert_eq!(behind, Some(Behind { since: s(since), last: s(end) }), "due at {due} s");
        };
        check(100, 101, 100);
        check(102, 110, 100);
        check(169, 170, 100);
        check(230, 231, 230);
    }
}
