//! Analytics: what is told of the land to those who decide about the game. See `docs/guide/analytics.md`.
//!
//! A player can do two such deeds a second at most, and does some in a minute.

use throng::analytics;

analytics!(
    /// A player has claimed a plot, by the cell of its corner.
    pub PlotClaimed = "plot.claimed", 1 { account: u64, x_m: f32, z_m: f32 }
);

analytics!(
    /// A player has put a piece of its house into a cell of its plot.
    pub PiecePlaced = "piece.placed", 1 { account: u64, x_m: f32, z_m: f32, is_wall: bool }
);

analytics!(
    /// A piece of a house is broken.
    pub PieceDestroyed = "piece.destroyed", 1 { by_account: u64, x_m: f32, z_m: f32 }
);
