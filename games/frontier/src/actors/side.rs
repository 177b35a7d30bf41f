//! Sides: who is for and against whom.

use throng_pack::Pack;

use crate::{components::Kind, neighbours::groups};

/// Which side somebody is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.side")]
pub enum Side {
    /// Players and townsfolk.
    Folk,
    Monsters,
    /// Nobody's.
    None,
}

impl Side {
    /// The side that a kind is on by nature. Traps and totems take that of who made them.
    pub fn of(kind: Kind) -> Self {
        match kind {
            Kind::Player | Kind::Guard | Kind::Banker => Self::Folk,
            kind if kind.is_monster() => Self::Monsters,
            _ => Self::None,
        }
    }

    /// The groups of those on this side.
    pub fn groups(self) -> u32 {
        match self {
            Self::Folk => groups::FOLK,
            Self::Monsters => groups::MONSTERS,
            Self::None => 0,
        }
    }

    pub fn enemies(self) -> u32 {
        match self {
            Self::Folk => groups::MONSTERS,
            Self::Monsters => groups::FOLK,
            Self::None => 0,
        }
    }

    /// Those of this side that are worth healing.
    pub fn hurt(self) -> u32 {
        match self {
            Self::Folk => groups::HURT_FOLK,
            Self::Monsters => groups::HURT_MONSTERS,
            Self::None => 0,
        }
    }
}
