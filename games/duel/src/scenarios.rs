//! The ways in which a duel can be played, for load runs.

use throng_bots::{Joins, Scenario};

/// As most play: about a third of the matches buy at any time.
pub const USUAL: Scenario =
    Scenario { name: Scenario::USUAL, about: "rounds with a phase in which everybody buys", joins: Joins::InTurn };
/// All matches are played all the time: what the phase to buy saves is the difference.
pub const NO_BUY: Scenario = Scenario {
    name: "no-buy",
    about: "nobody buys: rounds follow each other, and everybody has the same in each",
    joins: Joins::InTurn,
};

/// All that there are, the usual one first.
pub const SCENARIOS: [Scenario; 3] = [USUAL, NO_BUY, Scenario::LOG_IN_AT_ONCE];
