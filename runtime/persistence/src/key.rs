//! Keys: what can be saved, and how it is found again.
//!
//! ```text
//! byte   0        1                        17
//!        +--------+------------------------+
//!        | kind   | id, big endian         |
//!        +--------+------------------------+
//! ```
//!
//! Big endian, so that the order of bytes is the order of ids, and the cells of one world lie beside each other.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// Bytes of a key.
pub const KEY_BYTES: usize = 17;

/// What kind of thing a record is of.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// That the record of a player is older than those of whom they dealt with: a save was made without them. The first of all, so
    /// that whoever reads everything knows before the player's own record comes.
    LeftOut = 0,
    /// A player, with everything that is theirs alone.
    Player = 1,
    /// A world as a whole.
    World = 2,
    /// A part of a world's map that was changed.
    Cell = 3,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::LeftOut, Kind::Player, Kind::World, Kind::Cell];

    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::LeftOut => "left_out",
            Kind::Player => "player",
            Kind::World => "world",
            Kind::Cell => "cell",
        }
    }

    fn from_byte(byte: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// A kind of item, of those whose number must not change by itself; numbered by the game.
pub type ItemKind = u32;

/// Names one record. Ordered by kind, then by id.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub kind: Kind,
    pub id: u128,
}

impl Key {
    pub const fn player(id: u64) -> Key {
        Key { kind: Kind::Player, id: id as u128 }
    }

    /// What says that the record of this player is too old.
    pub const fn left_out(player: u64) -> Key {
        Key { kind: Kind::LeftOut, id: player as u128 }
    }

    pub const fn world(id: u64) -> Key {
        Key { kind: Kind::World, id: id as u128 }
    }

    /// A cell of a world; which number is which place is the game's affair.
    pub const fn cell(world: u64, cell: u64) -> Key {
        Key { kind: Kind::Cell, id: (world as u128) << 64 | cell as u128 }
    }

    /// The key whose lease says who may write this one: a cell goes with its world, and what is said of a player
    /// with the player.
    pub const fn leased_with(&self) -> Key {
        match self.kind {
            Kind::Cell => Key::world((self.id >> 64) as u64),
            Kind::LeftOut => Key::player(self.id as u64),
            Kind::Player | Kind::World => *self,
        }
    }

    pub fn to_bytes(self) -> [u8; KEY_BYTES] {
        let mut bytes = [0; KEY_BYTES];
        bytes[0] = self.kind as u8;
        bytes[1..].copy_from_slice(&self.id.to_be_bytes());
        bytes
    }

    /// `None` for bytes that name no kind that this program knows.
    pub fn from_bytes(bytes: &[u8; KEY_BYTES]) -> Option<Key> {
        let kind = Kind::from_byte(bytes[0])?;
        let id = bytes[1..].try_into().ok()?;
        Some(Key { kind, id: u128::from_be_bytes(id) })
    }
}

/// `player:7`, `world:11`, or `cell:11:20`, the 20th cell of world 11.
impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Cell => write!(out, "{}:{}:{}", self.kind.name(), (self.id >> 64) as u64, self.id as u64),
            kind => write!(out, "{}:{}", kind.name(), self.id),
        }
    }
}

/// A text that names no record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` names no record; a record is player:NUMBER, left_out:NUMBER, world:NUMBER, or cell:WORLD:NUMBER")]
pub struct NoKey(String);

impl FromStr for Key {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<Key, NoKey> {
        let parts: Vec<&str> = text.split(':').collect();
        let number = |part: &str| part.parse::<u64>().map_err(|_| NoKey(text.to_owned()));
        match parts[..] {
            ["left_out", id] => Ok(Key::left_out(number(id)?)),
            ["player", id] => Ok(Key::player(number(id)?)),
            ["world", id] => Ok(Key::world(number(id)?)),
            ["cell", world, cell] => Ok(Key::cell(number(world)?, number(cell)?)),
            _ => Err(NoKey(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_from_their_bytes_and_cells_of_a_world_lie_beside_each_other() {
        let keys =
            [Key::left_out(8), Key::player(7), Key::world(7), Key::cell(1, u64::MAX), Key::cell(2, 0), Key::cell(2, 1)];
        for pair in keys.windows(2) {
            assert!(pair[0] < pair[1] && pair[0].to_bytes() < pair[1].to_bytes(), "{pair:?}");
        }
        for key in keys {
            assert_eq!(Key::from_bytes(&key.to_bytes()), Some(key));
        }
        assert_eq!(Key::from_bytes(&[9; KEY_BYTES]), None);
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        for key in
            [Key::left_out(7), Key::player(7), Key::world(u64::MAX), Key::cell(11, u64::MAX), Key::cell(u64::MAX, 0)]
        {
            assert_eq!(key.to_string().parse::<Key>(), Ok(key), "{key}");
        }
        assert_eq!(Key::cell(11, 20).to_string(), "cell:11:20");
        for text in
            ["", "7", "player", "player:", "player:-1", "player:1:2", "cell:1", "world:18446744073709551616", "npc:1"]
        {
            assert_eq!(text.parse::<Key>(), Err(NoKey(text.to_owned())));
        }
    }
}
