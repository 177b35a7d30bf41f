//! Behind: the last episode in which a world did not keep up: from when to when. A tick does not keep up when it was
//! missed, or when the world is on a step of the overload ladder.
//!
//! Noted when such a tick comes home, on the frame's thread. A tick that is on time costs a comparison.

use throng_platform::time::Nanos;

use crate::overload::ladder::RELAPSE;

/// A world that has kept up for so long has recovered; what comes then is another episode. Longer than a relapse on the
/// overload ladder, which belongs to the same one, and short enough that a hitch of last week is not the beginning of
/// today's trouble.
const RECOVERED_AFTER: Nanos = Nanos::from_secs(60);
const _: () = assert!(RECOVERED_AFTER.0 > RELAPSE.0);

/// The last time that a world was behind, by the server's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behind {
    /// When the first of its ticks was due that did not keep up.
    pub since: Nanos,
    /// When the last of them ended.
    pub until: Nanos,
}

impl Behind {
    /// The episode after a tick that was due at `due`, did not keep up, and ended at `end`.
    pub(crate) fn extended(before: Option<Self>, due: Nanos, end: Nanos) -> Self {
        match before {
            Some(Self { since, until }) if due.saturating_sub(until) < RECOVERED_AFTER => Self { since, until: end },
            _ => Self { since: due, until: end },
        }
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
            behind = Some(Behind::extended(behind, s(due), s(end)));
            assert_eq!(behind, Some(Behind { since: s(since), until: s(end) }), "due at {due} s");
        };
        check(100, 101, 100);
        check(102, 110, 100);
        check(169, 170, 100);
        check(230, 231, 230);
    }
}
