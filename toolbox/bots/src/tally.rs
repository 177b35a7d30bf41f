//! Sums over all bots at one moment, from which reports are made by subtraction.

use std::collections::BTreeMap;

use throng_net::protocol::DenialReason;
use throng_platform::time::Nanos;

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
    /// Processor time of the swarm's thread.
    pub cpu: Nanos,
    pub players_wanted: u64,
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
    pub inputs_unanswered: u64,
    pub entity_updates: u64,
    pub thinks_due: u64,
    pub thinks_skipped: u64,
    pub traffic: Traffic,
    pub counters: BTreeMap<String, u64>,
}
