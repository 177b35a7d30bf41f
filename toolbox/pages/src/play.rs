//! Pages that play, and what others are made of.

/// The module `/play/client.js`: the client package (`web/client`) and the shell of pages (`web/play`), for a page that is
/// built of nothing.
pub const CLIENT: &str = include_str!("../built/client.js");

/// The page that plays `games/precinct`.
pub const PLAY_PRECINCT: &str = include_str!("../built/play_precinct.html");

/// The page that plays `games/frontier`.
pub const PLAY_FRONTIER: &str = include_str!("../built/play_frontier.html");

/// The page that plays `games/duel`.
pub const PLAY_DUEL: &str = include_str!("../built/play_duel.html");
