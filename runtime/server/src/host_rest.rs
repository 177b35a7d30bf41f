//! Host rest: a server that sleeps does not look at its host.
//!
//! What tells of the host costs up to 1 % of a core where it is permitted: a heartbeat wakes each core 250 times a second,
//! and the recorder reads 50 times a second who had the cores. That is worth it while ticks may be late. With every world
//! dormant and nobody connected or about to come in, nothing can be late, so both rest (`Heartbeat::rest`,
//! `Recorder::rest`), once it has been so for [`AWAKE_FOR`]. They go on in the frame in
//! which a world is due again, before it ticks. What they would have noted meanwhile is missing and is told as missing: no
//! stall is counted, captures have nobody on the cores, and `host.heartbeats` is 0.
//!
//! Owned by the frame thread, which knows all this anyway. Cost: two comparisons a frame. To go on takes a system call for
//! each core and one for the recorder's reader, once after each sleep.

use throng_platform::time::Nanos;

/// So long after the last world fell asleep they still look. Too low → worlds that are woken now and then, to be saved or by
/// messages, have them begin and end all the time; too high → an empty server takes what it need not.
const AWAKE_FOR: Nanos = Nanos::from_secs(1);

/// When those who look at the host are to rest, and when to go on.
#[derive(Debug, Default)]
pub(crate) struct HostRest {
    /// Since when nothing can be late; `None` while something can.
    asleep_since: Option<Nanos>,
    rests: bool,
}

impl HostRest {
    /// Nothing can be late at this moment. True if the rest begins with it.
    pub fn begins(&mut self, now: Nanos) -> bool {
        let since = *self.asleep_since.get_or_insert(now);
        !self.rests && {
            self.rests = now >= since + AWAKE_FOR;
            self.rests
        }
    }

    /// Something is due, or may be soon. True if the rest ends with it.
    pub fn ends(&mut self) -> bool {
        self.asleep_since = None;
        std::mem::take(&mut self.rests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_begins_when_nothing_could_be_late_for_a_second_and_ends_at_once() {
        let mut rest = HostRest::default();
        let at = |ms| Nanos::from_millis(ms);
        assert_eq!([0, 500, 999].map(|ms| rest.begins(at(ms))), [false; 3]);
        assert!(!rest.ends(), "it has not begun");
        assert_eq!([1_200, 2_100, 2_200, 3_200].map(|ms| rest.begins(at(ms))), [false, false, true, false]);
        assert!(rest.ends());
        assert!(!rest.ends());
        assert!(!rest.begins(at(3_300)));
    }
}
