//! The ways in which bots can play Frontier.

use throng_bots::{Joins, Scenario};

/// As most play.
pub const USUAL: Scenario = Scenario {
    name: Scenario::USUAL,
    about: "everybody around its own hearth, all over the map",
    joins: Joins::InTurn,
};
/// Everybody is told of everybody.
pub const ONE_PLACE: Scenario =
    Scenario { name: "one-place", about: "everybody at one hearth, and in the camp beside it", joins: Joins::InTurn };

/// All that there are, the usual one first.
pub const SCENARIOS: [Scenario; 3] = [USUAL, ONE_PLACE, Scenario::LOG_IN_AT_ONCE];
