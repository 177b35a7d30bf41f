//! How long the way there and back takes, and how long to wait before believing in a loss.
//!
//! Smoothed as in RFC 6298. A sample contains what the other side waited before it answered (up to 50 ms when
//! it ticks at 20 Hz), which is what a retransmission has to wait for as well, so it is not taken out.

use throng_platform::time::Nanos;

use super::acks::LossTimes;
use super::channels::ACK_DELAY_MAX;

/// Assumed until the first sample: a player on another continent.
const FIRST_GUESS: Nanos = Nanos::from_millis(200);
/// A peer that delays its acks shall not make us wait for ever.
const SAMPLE_MAX: Nanos = Nanos::from_secs(2);
/// Below this, a hiccup of either side's frame would look like a loss.
const LOSS_TIME_MIN: Nanos = Nanos::from_millis(100);

/// Smoothed round trip time of one connection.
#[derive(Debug, Default)]
pub struct RoundTrip {
    /// Zero: no sample yet.
    smoothed: Nanos,
    variation: Nanos,
}

impl RoundTrip {
    pub fn sample(&mut self, measured: Nanos) {
        let measured = measured.clamp(Nanos(1), SAMPLE_MAX);
        if self.smoothed == Nanos::ZERO {
            self.smoothed = measured;
            self.variation = Nanos(measured.0 / 2);
            return;
        }
        let apart = measured.0.abs_diff(self.smoothed.0);
        self.variation = Nanos((3 * self.variation.0 + apart) / 4);
        self.smoothed = Nanos((7 * self.smoothed.0 + measured.0) / 8);
    }

    /// The smoothed time, or a guess before the first sample.
    pub fn smoothed(&self) -> Nanos {
        match self.smoothed {
            Nanos::ZERO => FIRST_GUESS,
            smoothed => smoothed,
        }
    }

    /// When a packet that nothing was heard of is lost. A bare header asks for no answer, so it may have to
    /// wait until two keep-alives have come to acknowledge it, which come after `keep_alive` at most.
    pub fn loss_times(&self, keep_alive: Nanos) -> LossTimes {
        let smoothed = self.smoothed();
        let unsteady = smoothed + Nanos(4 * self.variation.0);
        let with_chunks = LOSS_TIME_MIN.max(Nanos(2 * smoothed.0)).max(unsteady) + ACK_DELAY_MAX;
        LossTimes { with_chunks, without_chunks: with_chunks + Nanos(2 * keep_alive.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::channels::KEEP_ALIVE;

    #[test]
    fn a_steady_path_is_learned_and_its_losses_are_seen_after_two_round_trips() {
        let mut rtt = RoundTrip::default();
        assert_eq!(rtt.loss_times(KEEP_ALIVE).with_chunks, Nanos::from_millis(450));
        (0..100).for_each(|_| rtt.sample(Nanos::from_millis(80)));
        assert_eq!(rtt.smoothed(), Nanos::from_millis(80));
        assert_eq!(rtt.loss_times(KEEP_ALIVE).with_chunks, Nanos::from_millis(210));
    }

    #[test]
    fn a_fast_path_waits_the_minimum_and_a_dishonest_one_the_maximum() {
        let mut fast = RoundTrip::default();
        (0..100).for_each(|_| fast.sample(Nanos::ZERO));
        assert_eq!(fast.loss_times(KEEP_ALIVE).with_chunks, LOSS_TIME_MIN + ACK_DELAY_MAX);
        let mut slow = RoundTrip::default();
        (0..100).for_each(|_| slow.sample(Nanos::MAX));
        assert!(slow.loss_times(KEEP_ALIVE).with_chunks < Nanos::from_secs(5));
    }
}
