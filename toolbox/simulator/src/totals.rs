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

    /// Asserts that so many play, that nobody was told what cannot be (`violations`, as games' bots count it), and that
    /// what each is shown was checked once a second or more, for so many seconds.
    #[track_caller]
    pub fn check_all_play(&self, players: usize, seconds: u64) {
        assert_eq!((self.playing, self.protocol_errors), (players as u64, 0), "{self:#?}");
        assert_eq!(self.counter("violations"), 0, "{self:#?}");
        assert!(self.state_checks >= players as u64 * seconds, "{self:#?}");
    }
}
