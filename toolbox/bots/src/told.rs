//! What the threads of a swarm tell at each status, put together: one status for the whole swarm.
//!
//! All threads tell at the same moments, each as soon as it comes to it. A status is complete when the last of them has
//! told, which is milliseconds later, or as late as the thread is that keeps up worst. Runs on the thread that waits for
//! the swarm, so that bots do not wait for it. Cost: per thread and status, a pass over a histogram of 140 KB.

use throng_platform::time::Nanos;

use crate::report::{LatencyHistogram, SwarmReport, SwarmStatus};
use crate::tally::Tally;

/// What one thread tells.
pub(crate) struct Told {
    pub thread: usize,
    /// The next time that it tells: every status that is due before is told with this. [`Nanos::MAX`]: it is done.
    pub next: Nanos,
    /// Sums over its bots.
    pub tally: Tally,
    /// Samples of its bots since it told the last time.
    pub latency: LatencyHistogram,
}

/// What all threads have told.
pub(crate) struct Statuses {
    /// By thread: the last tally, and when it tells the next one.
    threads: Vec<(Tally, Nanos)>,
    /// The status that is waited for is the one that was due before this.
    next: Nanos,
    /// Samples that are in no status yet.
    latency: LatencyHistogram,
    since: Tally,
}

impl Statuses {
    pub fn new(threads: usize) -> Self {
        Self {
            threads: vec![Default::default(); threads],
            next: Nanos::ZERO,
            latency: LatencyHistogram::new(),
            since: Tally::default(),
        }
    }

    /// Takes in what a thread tells. Returns a status where it is the last one that was missing, unless all are done:
    /// then there is a report instead.
    pub fn note(&mut self, told: Told) -> Option<SwarmStatus> {
        self.threads[told.thread] = (told.tally, told.next);
        self.latency.add(&told.latency);
        let next = self.threads.iter().map(|(_, next)| *next).min()?;
        if next == self.next || next == Nanos::MAX {
            return None;
        }
        self.next = next;
        Some(self.status())
    }

    /// How things stand by what was told last; rates and latencies since the status before.
    pub fn status(&mut self) -> SwarmStatus {
        let tally = Tally::sum(self.threads.iter().map(|(tally, _)| tally));
        let status = SwarmStatus {
            elapsed_s: tally.at.as_secs_f64(),
            players_joining: tally.joining,
            figures: SwarmReport::between(&self.since, &tally, self.latency.percentiles()),
        };
        self.latency = LatencyHistogram::new();
        self.since = tally;
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread at second `at_s`, whose bots have got `packets_in`, the last of them with so many ms of latency.
    fn told(thread: usize, at_s: u64, next: Nanos, packets_in: u64, latency_ms: u64) -> Told {
        let mut tally = Tally { at: Nanos::from_secs(at_s), playing: 5, joining: 1, ..Tally::default() };
        tally.traffic.packets_in = packets_in;
        let mut latency = LatencyHistogram::new();
        latency.record(Nanos::from_millis(latency_ms));
        Told { thread, next, tally, latency }
    }

    #[test]
    fn a_status_waits_for_the_last_thread_and_tells_of_all() {
        let mut statuses = Statuses::new(2);
        let s = Nanos::from_secs;
        assert_eq!(statuses.note(told(1, 1, s(2), 10, 20)), None);
        let first = statuses.note(told(0, 1, s(2), 30, 10)).expect("both have told");
        assert_eq!((first.elapsed_s, first.players_joining, first.figures.players_connected), (1.0, 2, 10));
        assert_eq!((first.figures.packets_in_per_s, first.figures.input_to_update_ms.samples), (40.0, 2));

        // One thread is two statuses ahead of the other, which then leaves one out: that is one status.
        assert_eq!(statuses.note(told(0, 2, s(3), 40, 10)), None);
        assert_eq!(statuses.note(told(0, 3, s(4), 50, 10)), None);
        let second = statuses.note(told(1, 3, s(4), 60, 90)).expect("both have told");
        assert_eq!((second.figures.seconds, second.figures.packets_in_per_s), (2.0, 35.0));
        let latency = second.figures.input_to_update_ms;
        assert!(latency.samples == 3 && latency.p50 < 11.0 && latency.max > 89.0, "of this interval: {latency:?}");
    }

    #[test]
    fn a_thread_that_is_done_is_not_waited_for_and_the_end_is_no_status() {
        let mut statuses = Statuses::new(2);
        assert_eq!(statuses.note(told(0, 1, Nanos::MAX, 10, 10)), None);
        assert!(statuses.note(told(1, 1, Nanos::from_secs(2), 10, 10)).is_some());
        assert_eq!(statuses.note(told(1, 2, Nanos::MAX, 20, 10)), None);
        assert_eq!(statuses.status().figures.packets_in_per_s, 20.0, "but it can be asked for");
    }
}
