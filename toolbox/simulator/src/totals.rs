//! What all players of a simulation found, in one place.

use std::collections::BTreeMap;

/// Sums over all players since the start, those who left included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Players who are in a world, or between two.
    pub playing: u64,
    /// Players whose handshake is under way or whose first world has not been named yet.
    pub joining: u64,
    /// Players who left by [`Simulation::leave`](crate::Simulation::leave).
    pub left: u64,
    /// Players whose connection ended otherwise, or never came about.
    pub disconnects: u64,
    pub entity_updates: u64,
    pub state_checks: u64,
    pub state_errors: u64,
    pub state_checks_superseded: u64,
    pub protocol_errors: u64,
    /// The first state errors in words, one line each.
    pub state_error_examples: Vec<String>,
    /// What the behaviours count.
    pub counters: BTreeMap<&'static str, u64>,
}

impl Totals {
    /// A counter of the behaviours; 0 if none of them has it.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or_default()
    }
}
