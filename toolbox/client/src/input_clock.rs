//! Input clock: when a client's inputs are due, and in which tick the server takes one that is sent now.
//!
//! A game that predicts sends one input for each of the server's ticks. Which ticks have begun the
//! [server clock](crate::server_clock) says, so a client's inputs keep pace with its server and not with its own clock.
//!
//! An input is taken some time after the snapshot that was newest when it was sent: the way there and back, and the wait for
//! the tick. Snapshots say which input was the newest that their tick took in, so that time is measured where it counts, at
//! the server:
//!
//! ```text
//!   server clock reads    5.030 s ------ lead: 120 ms, of which 20 ms are waited -----> tick 103 = 5.150 s
//!   input 71 is sent      |                         the snapshot of tick 103 says: 71
//! ```
//!
//! The lead is the mean of what was measured and twice its mean deviation, as for retransmissions in RFC 6298: some inputs
//! in a hundred are later. Before the first answer it is the round trip, the jitter and a whole tick.
//!
//! Sans-IO, on its client's thread. A ring of 128 numbers, made at the start; no allocation after.

use std::collections::VecDeque;

use crate::server_clock::{period_ns, server_ns_of};

/// Inputs that wait for an answer: a second of them at 128 Hz. Of more the oldest are not measured.
const WAITING_MAX: usize = 128;

/// Inputs that are due at once are those of so long. (ms) Whoever did not look for longer has missed the others: it would
/// only send a burst that the server takes in one tick. A program at 4 pictures a second misses none: 5 at 20 Hz, 32 at
/// 128 Hz.
const DUE_MAX_MS: u32 = 250;

/// The inputs of one stay in a world.
#[derive(Debug)]
pub(crate) struct InputClock {
    /// Number, and what the server clock read when it was sent; oldest first.
    sent: VecDeque<(u16, i64)>,
    lead: Option<Lead>,
    /// The newest tick whose inputs were due.
    due_tick: Option<u32>,
    /// What was last said of the tick in which an input is taken.
    said_tick: u32,
}

#[derive(Debug, Clone, Copy)]
struct Lead {
    mean_ns: i64,
    deviation_ns: i64,
}

impl Default for InputClock {
    fn default() -> Self {
        Self { sent: VecDeque::with_capacity(WAITING_MAX), lead: None, due_tick: None, said_tick: 0 }
    }
}

impl InputClock {
    /// Another stay. The way is the same; the ticks are others.
    pub fn left_world(&mut self) {
        self.sent.clear();
        (self.due_tick, self.said_tick) = (None, 0);
    }

    /// Input `number` is sent where the server clock reads `server_ns`.
    pub fn sent(&mut self, number: u16, server_ns: i64) {
        if self.sent.len() == WAITING_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back((number, server_ns));
    }

    /// A snapshot says that `number` was the newest input that its tick took in.
    pub fn answered(&mut self, number: u16, tick: u32, tick_hz: u8) {
        let Some(place) = self.sent.iter().position(|(sent, _)| *sent == number) else { return };
        let (_, server_ns) = self.sent[place];
        self.sent.drain(..=place);
        let took_ns = server_ns_of(tick, tick_hz) - server_ns;
        self.lead = Some(match self.lead {
            None => Lead { mean_ns: took_ns, deviation_ns: took_ns.abs() / 4 },
            Some(Lead { mean_ns, deviation_ns }) => {
                let off_ns = took_ns - mean_ns;
                Lead { mean_ns: mean_ns + off_ns / 8, deviation_ns: deviation_ns + (off_ns.abs() - deviation_ns) / 4 }
            }
        });
    }

    /// How long after what the server clock reads an input is taken that is sent now. (ns, at least 0) Before anything was
    /// measured it follows from the line.
    pub fn lead_ns(&self, rtt_ns: i64, jitter_ns: i64, tick_hz: u8) -> i64 {
        let lead = self.lead.map(|lead| lead.mean_ns + 2 * lead.deviation_ns);
        lead.unwrap_or(rtt_ns + 2 * jitter_ns + period_ns(tick_hz)).max(0)
    }

    /// The tick in which an input is taken that is sent where the server clock reads `server_ns`. Never an earlier one than
    /// was said before.
    pub fn tick(&mut self, server_ns: i64, lead_ns: i64, tick_hz: u8) -> u32 {
        self.said_tick = self.said_tick.max(tick_at(server_ns.saturating_add(lead_ns), tick_hz));
        self.said_tick
    }

    /// How many inputs are due: one for each tick that has begun since this was last asked, those of 250 ms at most,
    /// and one the first time.
    pub fn due(&mut self, server_ns: i64, tick_hz: u8) -> u32 {
        let tick = tick_at(server_ns, tick_hz);
        let due = self.due_tick.map_or(1, |before| tick.saturating_sub(before));
        self.due_tick = Some(self.due_tick.map_or(tick, |before| before.max(tick)));
        due.min(due_max(tick_hz))
    }
}

/// Inputs that are due at once, at most.
fn due_max(tick_hz: u8) -> u32 {
    (u32::from(tick_hz) * DUE_MAX_MS / 1_000).max(1)
}

/// The tick that begins at this time or has begun before it.
fn tick_at(server_ns: i64, tick_hz: u8) -> u32 {
    let tick = i128::from(server_ns.max(0)) * i128::from(tick_hz.max(1)) / 1_000_000_000;
    u32::try_from(tick).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ: u8 = 20;
    const MS: i64 = 1_000_000;

    #[test]
    fn the_lead_is_measured_where_inputs_are_taken() {
        let mut clock = InputClock::default();
        assert_eq!(
            clock.lead_ns(80 * MS, 5 * MS, HZ),
            140 * MS,
            "way, jitter and tick, as long as nothing was measured"
        );
        for turn in 0..100_u16 {
            // Sent 30 ms after a tick's snapshot came, and taken in the second tick after that one.
            let tick = 500 + u32::from(turn);
            clock.sent(turn, server_ns_of(tick, HZ) + 30 * MS);
            clock.answered(turn, tick + 2, HZ);
        }
        let lead_ms = clock.lead_ns(80 * MS, 5 * MS, HZ) / MS;
        assert_eq!(lead_ms, 70, "steady, so there is nothing to add");
        let sent_at = server_ns_of(700, HZ) + 30 * MS;
        assert_eq!(clock.tick(sent_at, 70 * MS, HZ), 702);
        assert_eq!(clock.tick(sent_at, 20 * MS, HZ), 702, "never an earlier one");
    }

    #[test]
    fn lateness_that_varies_makes_the_lead_longer() {
        let mut clock = InputClock::default();
        for turn in 0..200_u16 {
            let tick = 500 + u32::from(turn);
            clock.sent(turn, server_ns_of(tick, HZ));
            clock.answered(turn, tick + 2 + u32::from(turn) % 2, HZ);
        }
        let lead_ms = clock.lead_ns(0, 0, HZ) / MS;
        assert!((160..=185).contains(&lead_ms), "{lead_ms} ms: 125 on average, 25 off it");
    }

    #[test]
    fn numbers_that_were_not_sent_answer_nothing() {
        let mut clock = InputClock::default();
        clock.sent(7, 0);
        for number in [0, 6, 8, 40_000] {
            clock.answered(number, 9, HZ);
        }
        assert_eq!(clock.lead_ns(1, 0, HZ), 1 + period_ns(HZ));
        clock.left_world();
        clock.answered(7, 9, HZ);
        assert_eq!(clock.lead_ns(1, 0, HZ), 1 + period_ns(HZ));
    }

    /// Promise: one input for each tick of the server, however often the program looks, and no burst after a pause.
    #[test]
    fn one_input_is_due_for_each_tick() {
        let mut clock = InputClock::default();
        let begin = server_ns_of(900, HZ);
        assert_eq!(clock.due(begin, HZ), 1);
        let due: u32 = (1..=1_000).map(|look| clock.due(begin + look * 7 * MS, HZ)).sum();
        assert_eq!(due, 140, "in seven seconds");
        let due: u32 = (1..=10).map(|look| clock.due(begin + (7_000 + look * 75) * MS, HZ)).sum();
        assert_eq!(due, 15, "also where it looks less often than there are ticks");
        assert_eq!(clock.due(begin + 60_000 * MS, HZ), 5, "those of 250 ms");
        assert_eq!(clock.due(begin, HZ), 0);
        assert_eq!(clock.due(begin + 60_000 * MS, HZ), 0, "a clock that went back has nothing due twice");
    }

    /// Promise: a program that looks ten times a second misses no input, however many ticks there are.
    #[test]
    fn who_looks_seldom_has_all_inputs_due_at_any_rate() {
        for tick_hz in [1, 10, 20, 60, 128, 255] {
            let mut clock = InputClock::default();
            let begin = server_ns_of(900, tick_hz);
            clock.due(begin, tick_hz);
            let due: u32 = (1..=100).map(|look| clock.due(begin + look * 100 * MS, tick_hz)).sum();
            assert_eq!(due, 10 * u32::from(tick_hz), "in ten seconds at {tick_hz} Hz");
        }
    }
}
