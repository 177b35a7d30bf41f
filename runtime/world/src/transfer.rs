//! What goes from one world to another: typed values as bytes.
//!
//! A player on its way takes a [`Transfer`] along, and a world sends another a [`WorldMessage`]. Both are a value of
//! the game's own type in an envelope that says type and version (`throng_pack`), so they can be kept, recorded and
//! sent to another process, and whoever gets them believes none of it: what cannot be read is refused with a reason,
//! and whoever sent it still has it.

use throng_pack::{HasSchema, PackError, envelope};

use crate::ids::WorldId;

/// Longest transfer or message (bytes). A player with a full inventory takes well under one; a queue of 4,096 of them
/// is 256 MiB at worst.
pub const TRANSFER_BYTES_MAX: usize = 64 * 1024;

/// A player with all that it carries, as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer(Vec<u8>);

impl Transfer {
    /// # Errors
    /// If the value breaks its type's limits.
    pub fn of<T: HasSchema>(value: &T) -> Result<Self, PackError> {
        Ok(Self(packed(value)?))
    }

    /// Bytes from elsewhere, whatever they are.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// # Errors
    /// If it is no `T`, or one that this program does not know, or broken.
    pub fn read<T: HasSchema>(&self) -> Result<T, PackError> {
        envelope::read(&self.0)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// What another world sends, as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldMessage {
    /// Who sent it.
    pub from: WorldId,
    bytes: Vec<u8>,
}

impl WorldMessage {
    /// # Errors
    /// If the value breaks its type's limits.
    pub fn of<T: HasSchema>(from: WorldId, value: &T) -> Result<Self, PackError> {
        Ok(Self { from, bytes: packed(value)? })
    }

    /// Bytes that were packed elsewhere, whatever they are.
    pub fn from_packed(from: WorldId, bytes: Vec<u8>) -> Self {
        Self { from, bytes }
    }

    /// Whether it is a `T`, of whatever version.
    pub fn is<T: HasSchema>(&self) -> bool {
        envelope::Envelope::parse(&self.bytes).is_ok_and(|(envelope, _)| envelope.holds::<T>())
    }

    /// # Errors
    /// If it is no `T`, or one that this program does not know, or broken.
    pub fn read<T: HasSchema>(&self) -> Result<T, PackError> {
        envelope::read(&self.bytes)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

pub(crate) fn packed<T: HasSchema>(value: &T) -> Result<Vec<u8>, PackError> {
    const { assert!(envelope::bytes_max::<T>() <= TRANSFER_BYTES_MAX, "a transfer is too long at its largest") }
    let mut bytes = Vec::new();
    envelope::write(value, &mut bytes)?;
    Ok(bytes)
}

type TransferCheck = fn(&Transfer) -> Result<(), PackError>;

/// What a world takes in, asked before a client comes in: anything, if the game does not say.
#[derive(Debug, Clone, Default)]
pub(crate) struct TransferChecks {
    newest: Option<TransferCheck>,
    older: Vec<TransferCheck>,
}

impl TransferChecks {
    pub fn accept<T: HasSchema>(&mut self) {
        self.newest = Some(can_be_read_as::<T>);
    }

    pub fn accept_older<Old: HasSchema>(&mut self) {
        self.older.push(can_be_read_as::<Old>);
    }

    /// # Errors
    /// What the newest type has against it, if no older one is what it is.
    pub fn check(&self, transfer: &Transfer) -> Result<(), PackError> {
        let Some(newest) = self.newest else { return Ok(()) };
        newest(transfer).or_else(|error| match self.older.iter().any(|older| older(transfer).is_ok()) {
            true => Ok(()),
            false => Err(error),
        })
    }
}

fn can_be_read_as<T: HasSchema>(transfer: &Transfer) -> Result<(), PackError> {
    transfer.read::<T>().map(drop)
}

#[cfg(test)]
mod tests {
    use throng_pack::{Fault, Pack};

    use super::*;

    #[derive(Debug, PartialEq, Pack)]
    #[pack(name = "test.hero")]
    struct Hero {
        #[pack(max = 100)]
        health: u8,
    }

    #[derive(Debug, PartialEq, Pack)]
    #[pack(name = "test.note")]
    struct Note(u32);

    #[test]
    fn a_value_comes_out_as_it_went_in_and_as_nothing_else() {
        let transfer = Transfer::of(&Hero { health: 40 }).unwrap();
        assert_eq!(transfer.read::<Hero>(), Ok(Hero { health: 40 }));
        assert!(matches!(transfer.read::<Note>().unwrap_err().fault, Fault::WrongType { .. }));
        assert_eq!(Transfer::of(&Hero { health: 101 }).unwrap_err().fault, Fault::OutOfRange);
        let message = WorldMessage::of(WorldId::new(3, 0), &Note(7)).unwrap();
        assert!(message.is::<Note>() && !message.is::<Hero>());
        assert_eq!(message.read::<Note>(), Ok(Note(7)));
    }

    /// Whatever bytes come: an error, or a value within its limits.
    #[test]
    fn hostile_bytes_are_refused_or_within_limits() {
        let good = Transfer::of(&Hero { health: 40 }).unwrap();
        for bit in 0..good.bytes().len() * 8 {
            let mut bytes = good.bytes().to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(hero) = Transfer::from_bytes(bytes).read::<Hero>() {
                assert!(hero.health <= 100);
            }
        }
        (0..good.bytes().len()).for_each(|len| {
            assert!(Transfer::from_bytes(good.bytes()[..len].to_vec()).read::<Hero>().is_err());
        });
    }
}
