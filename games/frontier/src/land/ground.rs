//! Ground: what a cell is like, and how it is saved.

use throng_pack::Pack;
use throng_replication::Replicate;

/// How deep a cell can be dug.
pub const DEPTH_MAX: u8 = 3;
/// What a new piece of a house can bear.
pub const PIECE_HEALTH: u8 = 100;

/// What grows or lies in a cell.
#[derive(Replicate, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.growth")]
pub enum Growth {
    Bare,
    Tree,
    Boulder,
}

/// What a house is made of.
#[derive(Replicate, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.piece_kind")]
pub enum PieceKind {
    Floor,
    /// Nobody walks into it.
    Wall,
}

/// A piece of a house.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.piece")]
pub struct Piece {
    pub kind: PieceKind,
    #[pack(min = 1, max = PIECE_HEALTH)]
    pub health: u8,
}

/// All that a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.ground")]
pub struct Ground {
    pub growth: Growth,
    #[pack(max = DEPTH_MAX)]
    pub depth: u8,
    pub piece: Option<Piece>,
    /// In the corner of a plot: which player's it is, by the number of its account.
    pub owner: Option<u64>,
}

impl Ground {
    pub const BARE: Self = Self { growth: Growth::Bare, depth: 0, piece: None, owner: None };

    pub fn is_wall(&self) -> bool {
        matches!(self.piece, Some(Piece { kind: PieceKind::Wall, .. }))
    }
}
