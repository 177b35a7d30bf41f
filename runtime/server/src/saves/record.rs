//! Records: what is under the key of a player and of a world.
//!
//! ```text
//! player
//! byte   0        1        2                    10
//!        +--------+--------+--------------------+----------------------+
//!        | format | placed | world              | an envelope of the   |
//!        | 1      | 0 or 1 | u64, little endian | game's own type      |
//!        +--------+--------+--------------------+----------------------+
//! world
//! byte   0        1        2        2 + length
//!        +--------+--------+--------+----------------------------------+
//!        | format | length | kind   | the world's state, as its kind   |
//!        | 1      | u8     | UTF-8  | packs it                         |
//!        +--------+--------+--------+----------------------------------+
//! ```
//!
//! `world` is the number that the world is saved under; 0, with `placed` 0, for one that is not saved. What is longer,
//! shorter or of another format is refused, never guessed at.

use std::fmt;

use throng_world::transfer::Transfer;

const FORMAT: u8 = 1;
pub(super) const PLAYER_HEADER_BYTES: usize = 10;

/// Bytes of a kind's name that are kept.
const KIND_BYTES_MAX: usize = u8::MAX as usize;

/// Why a record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unreadable {
    TooShort,
    Format(u8),
    Place,
    /// It is of a world of this kind.
    OtherKind(String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort => write!(out, "it ends too early"),
            Self::Format(format) => write!(out, "it has format {format}, and this build reads {FORMAT}"),
            Self::Place => write!(out, "it says nothing that is known of where its player is"),
            Self::OtherKind(kind) => write!(out, "it is of a world of the kind `{kind}`"),
        }
    }
}

/// What is saved of a player: the world that they are in, and what they have.
pub(crate) fn of_player(world: Option<u64>, has: &Transfer) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PLAYER_HEADER_BYTES + has.bytes().len());
    bytes.extend_from_slice(&[FORMAT, u8::from(world.is_some())]);
    bytes.extend_from_slice(&world.unwrap_or(0).to_le_bytes());
    bytes.extend_from_slice(has.bytes());
    bytes
}

pub(crate) fn read_player(bytes: &[u8]) -> Result<(Option<u64>, Transfer), Unreadable> {
    let (header, has) = bytes.split_at_checked(PLAYER_HEADER_BYTES).ok_or(Unreadable::TooShort)?;
    let [format, placed, world @ ..] = header else { return Err(Unreadable::TooShort) };
    if *format != FORMAT {
        return Err(Unreadable::Format(*format));
    }
    let world = u64::from_le_bytes(world.try_into().map_err(|_| Unreadable::TooShort)?);
    let world = match (placed, world) {
        (0, 0) => None,
        (1, world) => Some(world),
        _ => return Err(Unreadable::Place),
    };
    Ok((world, Transfer::from_bytes(has.to_vec())))
}

/// What says that a player's record is older than those of whom they dealt with: that it is there. One byte, the format.
pub(crate) fn of_left_out() -> Vec<u8> {
    vec![FORMAT]
}

/// What is saved of a world of this kind.
pub(crate) fn of_world(kind: &str, state: &[u8]) -> Vec<u8> {
    let kind = &kind.as_bytes()[..kind.len().min(KIND_BYTES_MAX)];
    let mut bytes = Vec::with_capacity(2 + kind.len() + state.len());
    bytes.extend_from_slice(&[FORMAT, kind.len() as u8]);
    bytes.extend_from_slice(kind);
    bytes.extend_from_slice(state);
    bytes
}

/// The name of a world's kind, as it was cut, and its state.
pub(crate) fn split_world(bytes: &[u8]) -> Result<(&[u8], &[u8]), Unreadable> {
    let [format, length, rest @ ..] = bytes else { return Err(Unreadable::TooShort) };
    if *format != FORMAT {
        return Err(Unreadable::Format(*format));
    }
    rest.split_at_checked(usize::from(*length)).ok_or(Unreadable::TooShort)
}

/// The state of a world of this kind.
pub(crate) fn read_world<'a>(kind: &str, bytes: &'a [u8]) -> Result<&'a [u8], Unreadable> {
    let (found, state) = split_world(bytes)?;
    if *found != kind.as_bytes()[..kind.len().min(KIND_BYTES_MAX)] {
        return Err(Unreadable::OtherKind(String::from_utf8_lossy(found).into_owned()));
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use throng_pack::{Pack, envelope};

    use super::*;

    const SPEC: &str = include_str!("../../../../docs/spec/saves.md");

    #[derive(Pack)]
    #[pack(name = "spec.purse")]
    struct Purse {
        coins: u32,
    }

    #[track_caller]
    fn check_spec(name: &str, bytes: &[u8]) {
        let drawn = SPEC.split_once(&format!("```hex {name}\n")).unwrap().1.split_once("```").unwrap().0;
        let drawn: Vec<u8> = drawn.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        let text: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(drawn, bytes, "the spec should draw {name} as\n{}", text.join(" "));
    }

    #[test]
    fn the_bytes_in_the_spec_are_those_of_a_player_and_a_world() {
        let purse = Purse { coins: 300 };
        check_spec("player", &of_player(Some(11), &Transfer::of(&purse).unwrap()));
        let mut state = Vec::new();
        envelope::write(&purse, &mut state).unwrap();
        check_spec("world", &of_world("market", &state));
    }

    #[test]
    fn records_come_back_and_others_are_refused() {
        let has = Transfer::from_bytes(vec![1, 2, 3]);
        for world in [None, Some(0), Some(u64::MAX)] {
            let bytes = of_player(world, &has);
            assert_eq!(read_player(&bytes), Ok((world, has.clone())));
            (0..PLAYER_HEADER_BYTES).for_each(|end| assert!(read_player(&bytes[..end]).is_err()));
        }
        let mut bytes = of_player(Some(7), &has);
        bytes[1] = 0;
        assert_eq!(read_player(&bytes), Err(Unreadable::Place));
        bytes[0] = 2;
        assert_eq!(read_player(&bytes), Err(Unreadable::Format(2)));

        let bytes = of_world("meadow", &[9, 8]);
        assert_eq!(bytes, [1, 6, b'm', b'e', b'a', b'd', b'o', b'w', 9, 8]);
        assert_eq!(read_world("meadow", &bytes), Ok(&[9, 8][..]));
        assert_eq!(read_world("hub", &bytes), Err(Unreadable::OtherKind("meadow".into())));
        (0..8).for_each(|end| assert!(read_world("meadow", &bytes[..end]).is_err()));
    }
}
