//! Sums over all bots at one moment, from which reports are made by subtraction.

use std::collections::BTreeMap;

use throng_net::protocol::DenialReason;
use throng_platform::time::Nanos;

use crate::behaviour::BehaviourCounters;

/// Datagrams and UDP payload bytes of one bot, or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub packets_in: u64,
    pub packets_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Datagrams that the kernel did not take.
    pub packets_refused: u64,
}

impl Traffic {
    pub fn add(&mut self, other: &Traffic) {
        self.packets_in += other.packets_in;
        self.packets_out += other.packets_out;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.packets_refused += other.packets_refused;
    }
}

/// Totals since the swarm started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub at: Nanos,
    /// Processor time of the threads that drive the bots.
    pub cpu: Nanos,
    pub players_wanted: u64,
    /// Of these, those that ask for audit samples.
    pub players_audited: u64,
    /// Bots that have been sent in and have not been in a world yet.
    pub joining: u64,
    /// Of these: told that they stand in line, and that their world is being made.
    pub queued: u64,
    pub awaiting_world: u64,
    /// Attempts to come in beyond each bot's first, denials by reason, attempts without an answer.
    pub login_retries: u64,
    pub login_refusals: [u64; DenialReason::ALL.len()],
    pub login_timeouts: u64,
    /// Longest way of a bot into its first world, those who are not there yet included.
    pub login_took_max: Nanos,
    /// Bots that got into a world and are still connected.
    pub playing: u64,
    pub disconnects: u64,
    pub connect_failures: u64,
    pub state_checks: u64,
    pub state_errors: u64,
    pub state_error_bots: u64,
    pub state_checks_superseded: u64,
    pub protocol_errors: u64,
    pub travels_refused: u64,
    pub inputs_unanswered: u64,
    pub entity_updates: u64,
    pub thinks_due: u64,
    pub thinks_skipped: u64,
    pub traffic: Traffic,
    pub counters: BTreeMap<String, u64>,
}

impl Tally {
    /// Sums over the bots of several threads. These tell at about the same time: `at` is the mean, by which the
    /// difference of two sums, divided by their time, is about the sum of the threads' rates.
    pub fn sum<'a>(tallies: impl ExactSizeIterator<Item = &'a Self>) -> Self {
        let (mut sum, threads) = (Self::default(), tallies.len().max(1) as u64);
        tallies.for_each(|tally| sum.add(tally));
        sum.at.0 /= threads;
        sum
    }

    fn add(&mut self, other: &Self) {
        // By name, so that no field is forgotten.
        let Self {
            at,
            cpu,
            players_wanted,
            players_audited,
            joining,
            queued,
            awaiting_world,
            login_retries,
            login_refusals,
            login_timeouts,
            login_took_max,
            playing,
            disconnects,
            connect_failures,
            state_checks,
            state_errors,
            state_error_bots,
            state_checks_superseded,
            protocol_errors,
            travels_refused,
            inputs_unanswered,
            entity_updates,
            thinks_due,
            thinks_skipped,
            traffic,
            counters,
        } = other;
        self.at += *at;
        self.cpu += *cpu;
        self.login_took_max = self.login_took_max.max(*login_took_max);
        for (sum, count) in [
            (&mut self.players_wanted, players_wanted),
            (&mut self.players_audited, players_audited),
            (&mut self.joining, joining),
            (&mut self.queued, queued),
            (&mut self.awaiting_world, awaiting_world),
            (&mut self.login_retries, login_retries),
            (&mut self.login_timeouts, login_timeouts),
            (&mut self.playing, playing),
            (&mut self.disconnects, disconnects),
            (&mut self.connect_failures, connect_failures),
            (&mut self.state_checks, state_checks),
            (&mut self.state_errors, state_errors),
            (&mut self.state_error_bots, state_error_bots),
            (&mut self.state_checks_superseded, state_checks_superseded),
            (&mut self.protocol_errors, protocol_errors),
            (&mut self.travels_refused, travels_refused),
            (&mut self.inputs_unanswered, inputs_unanswered),
            (&mut self.entity_updates, entity_updates),
            (&mut self.thinks_due, thinks_due),
            (&mut self.thinks_skipped, thinks_skipped),
        ] {
            *sum += count;
        }
        for (sum, count) in self.login_refusals.iter_mut().zip(login_refusals) {
            *sum += count;
        }
        self.traffic.add(traffic);
        for (name, total) in counters {
            self.count(name, *total);
        }
    }

    /// Adds to one of the game's own totals.
    pub fn count(&mut self, name: &str, total: u64) {
        match self.counters.get_mut(name) {
            Some(sum) => *sum = BehaviourCounters::joined(name, *sum, total),
            None => drop(self.counters.insert(name.to_owned(), total)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tally of a thread, in which every count is `count`.
    fn tally(at_ms: u64, count: u64, counter: &str) -> Tally {
        Tally {
            at: Nanos::from_millis(at_ms),
            cpu: Nanos(count),
            players_wanted: count,
            players_audited: count,
            joining: count,
            queued: count,
            awaiting_world: count,
            login_retries: count,
            login_refusals: [count; DenialReason::ALL.len()],
            login_timeouts: count,
            login_took_max: Nanos(count),
            playing: count,
            disconnects: count,
            connect_failures: count,
            state_checks: count,
            state_errors: count,
            state_error_bots: count,
            state_checks_superseded: count,
            protocol_errors: count,
            travels_refused: count,
            inputs_unanswered: count,
            entity_updates: count,
            thinks_due: count,
            thinks_skipped: count,
            traffic: Traffic {
                packets_in: count,
                packets_out: count,
                bytes_in: count,
                bytes_out: count,
                packets_refused: count,
            },
            counters: ["taps", "late_ms_max", counter].map(|name| (name.to_owned(), count)).into(),
        }
    }

    #[test]
    fn a_sum_has_all_counts_the_largest_of_what_is_a_maximum_and_the_mean_moment() {
        let sum = Tally::sum([tally(1_000, 3, "shots"), tally(1_010, 5, "hits")].iter());
        let mut expect = tally(1_005, 8, "taps");
        expect.login_took_max = Nanos(5);
        let counters = [("taps", 8), ("late_ms_max", 5), ("shots", 3), ("hits", 5)];
        expect.counters = counters.map(|(name, sum)| (name.to_owned(), sum)).into();
        assert_eq!(format!("{sum:?}"), format!("{expect:?}"));
    }
}
