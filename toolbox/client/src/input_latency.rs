//! Input to update: how long a player waits until the world shows that an input was applied.
//!
//! Every input carries a number, every snapshot the number of the newest input that its world had
//! applied. One sample per input: from the moment the game handed it over to the arrival of the
//! first snapshot whose number is the same or newer. It contains everything a player feels: the
//! way out, the wait for the tick, the tick itself, the way back, and every lost packet between.
//!
//! Numbers go on across worlds, so that a number never means two inputs. A snapshot's number counts
//! only when it lies between the oldest unanswered input and the newest one sent: a world that has
//! applied nothing yet reports any old number, and that answers nothing.
//!
//! Sans-IO; two rings of fixed size made at the start, no allocation after. Cost: one push per
//! input, one comparison per snapshot plus one pop per answered input.

use std::collections::VecDeque;

use throng_platform::time::Nanos;

use crate::input_number::is_at_or_after;

/// Inputs waiting for an answer. At 20 inputs a second 256 are 12.8 s, past the time after which a
/// connection is given up. One more: the oldest is dropped and counted as unanswered.
const WAITING_MAX: usize = 256;

/// Samples kept until the owner takes them. One answer can bring as many samples as inputs wait.
const SAMPLES_MAX: usize = 2 * WAITING_MAX;

/// Measures `input_to_update` of one client.
#[derive(Debug)]
pub(crate) struct InputLatency {
    /// Number given to the last input. None is 0, not after 65,535 either, so that 0 can mean "none yet".
    last_number: u16,
    /// Unanswered inputs, oldest first; their numbers rise by one, wrapping past 0.
    waiting: VecDeque<(u16, Nanos)>,
    samples: VecDeque<Nanos>,
    unanswered: u64,
    samples_lost: u64,
}

impl InputLatency {
    pub fn new() -> Self {
        Self {
            last_number: 0,
            waiting: VecDeque::with_capacity(WAITING_MAX),
            samples: VecDeque::with_capacity(SAMPLES_MAX),
            unanswered: 0,
            samples_lost: 0,
        }
    }

    /// An input leaves now; returns its number.
    pub fn sent(&mut self, now: Nanos) -> u16 {
        self.last_number = self.last_number.checked_add(1).unwrap_or(1);
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
            self.unanswered += 1;
        }
        self.waiting.push_back((self.last_number, now));
        self.last_number
    }

    /// A snapshot arrived that says `number` was the newest input applied; 0 if there was none.
    pub fn answered(&mut self, now: Nanos, number: u16) {
        if number == 0 || !is_at_or_after(self.last_number, number) {
            return;
        }
        while let Some(&(oldest, sent)) = self.waiting.front()
            && is_at_or_after(number, oldest)
        {
            self.waiting.pop_front();
            if self.samples.len() == SAMPLES_MAX {
                self.samples.pop_front();
                self.samples_lost += 1;
            }
            self.samples.push_back(now.saturating_sub(sent));
        }
    }

    /// The world that would have answered is gone: what still waits will never be answered.
    pub fn left_world(&mut self) {
        self.unanswered += self.waiting.len() as u64;
        self.waiting.clear();
    }

    /// The number of the last input; 0 before the first.
    pub fn last_number(&self) -> u16 {
        self.last_number
    }

    /// Takes the oldest sample, if any.
    pub fn next_sample(&mut self) -> Option<Nanos> {
        self.samples.pop_front()
    }

    /// Inputs that no snapshot answered: their world was left, or they waited too long.
    pub fn unanswered(&self) -> u64 {
        self.unanswered
    }

    /// Samples dropped because nobody took them.
    pub fn samples_lost(&self) -> u64 {
        self.samples_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn samples(latency: &mut InputLatency) -> Vec<u64> {
        std::iter::from_fn(|| latency.next_sample()).map(|sample| sample.as_micros() / 1_000).collect()
    }

    #[test]
    fn one_sample_per_input_from_its_own_sending() {
        let mut latency = InputLatency::new();
        assert_eq!(latency.sent(at(0)), 1);
        assert_eq!(latency.sent(at(50)), 2);
        assert_eq!(latency.sent(at(100)), 3);
        latency.answered(at(120), 2);
        assert_eq!(samples(&mut latency), [120, 70]);
        latency.answered(at(125), 2);
        assert_eq!(samples(&mut latency), [0u64; 0]);
        latency.answered(at(180), 3);
        assert_eq!(samples(&mut latency), [80]);
    }

    #[test]
    fn numbers_wrap_without_a_wrong_sample() {
        let mut latency = InputLatency::new();
        for step in 0..70_000u64 {
            let before = latency.last_number();
            assert_ne!(latency.sent(at(step * 50)), 0, "it means that there is none");
            latency.answered(at(step * 50 + 30), before);
            for sample in samples(&mut latency) {
                assert_eq!(sample, 80);
            }
        }
        assert_eq!((latency.unanswered(), latency.samples_lost()), (0, 0));
    }

    /// Promise: a world that has taken none, and says so after numbers went round, answers none from before that.
    #[test]
    fn none_answers_nothing_after_numbers_went_round() {
        let mut latency = InputLatency { last_number: 65_533, ..InputLatency::new() };
        let sent = [0, 50, 100, 150].map(|ms| latency.sent(at(ms)));
        assert_eq!(sent, [65_534, 65_535, 1, 2]);
        latency.answered(at(160), 0);
        assert_eq!(samples(&mut latency), [0u64; 0]);
        latency.answered(at(170), 1);
        assert_eq!(samples(&mut latency), [170, 120, 70]);
    }

    #[test]
    fn a_number_that_was_never_sent_answers_nothing() {
        let mut latency = InputLatency::new();
        latency.sent(at(0));
        for number in [0, 2, 900, 40_000, u16::MAX] {
            latency.answered(at(10), number);
        }
        assert_eq!(samples(&mut latency), [0u64; 0]);
    }

    #[test]
    fn leaving_a_world_counts_what_it_never_answered() {
        let mut latency = InputLatency::new();
        latency.sent(at(0));
        latency.sent(at(50));
        latency.left_world();
        assert_eq!(latency.sent(at(100)), 3);
        latency.answered(at(130), 3);
        assert_eq!(samples(&mut latency), [30]);
        assert_eq!(latency.unanswered(), 2);
    }

    #[test]
    fn a_silent_server_costs_no_more_than_the_rings() {
        let mut latency = InputLatency::new();
        let newest = (0..1_000).map(|step| latency.sent(at(step))).last().expect("some were sent");
        assert_eq!(latency.unanswered(), 1_000 - WAITING_MAX as u64);
        latency.answered(at(1_000), newest);
        assert_eq!(samples(&mut latency).len(), WAITING_MAX);
    }
}
