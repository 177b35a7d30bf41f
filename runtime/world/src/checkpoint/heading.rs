//! Heading: what stands in front of a checkpoint, so that nothing of it is believed which is not as it was written.

use throng_pack::Reader;

use super::{error::LoadError, parts::PlayerEntities};

const MAGIC: [u8; 8] = *b"throngcp";
const VERSION: u16 = 2;
pub(super) const HEADING_BYTES: usize = 8 + 2 + 2 + 4 + 4 + 4;
const PLAYERS_LEFT_OUT: u16 = 1;

/// Longest checkpoint (bytes): a world of a million entities, with 256 bytes of each.
pub const CHECKPOINT_BYTES_MAX: usize = 256 << 20;

/// What a checkpoint says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointHeading {
    pub players: PlayerEntities,
}

impl CheckpointHeading {
    /// A body in its heading, whatever it is: for those who test what a loader believes.
    #[doc(hidden)]
    pub fn seal(self, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADING_BYTES];
        bytes.extend_from_slice(body);
        self.write(0, &mut bytes);
        bytes
    }

    /// Writes the heading of what stands behind the room for it, from `begin` on.
    pub(super) fn write(self, begin: usize, out: &mut [u8]) {
        let (heading, body) = out[begin..].split_at_mut(HEADING_BYTES);
        let flags = if self.players == PlayerEntities::LeftOut { PLAYERS_LEFT_OUT } else { 0 };
        heading[..8].copy_from_slice(&MAGIC);
        heading[8..10].copy_from_slice(&VERSION.to_le_bytes());
        heading[10..12].copy_from_slice(&flags.to_le_bytes());
        heading[12..16].copy_from_slice(&(body.len() as u32).to_le_bytes());
        heading[16..20].copy_from_slice(&crc32fast::hash(body).to_le_bytes());
        let crc = crc32fast::hash(&heading[..20]);
        heading[20..].copy_from_slice(&crc.to_le_bytes());
    }

    /// The heading, and the body as it was written.
    ///
    /// # Errors
    /// If the bytes are no checkpoint, or not all of one.
    pub fn read(bytes: &[u8]) -> Result<(Self, &[u8]), LoadError> {
        let (heading, body) = bytes.split_first_chunk::<HEADING_BYTES>().ok_or(LoadError::NoCheckpoint)?;
        let mut from = Reader::new(heading);
        if from.array()? != MAGIC {
            return Err(LoadError::NoCheckpoint);
        }
        let version = u16::from_le_bytes(from.array()?);
        let flags = u16::from_le_bytes(from.array()?);
        let [length, body_crc, crc] = [from.array()?, from.array()?, from.array()?].map(u32::from_le_bytes);
        if crc32fast::hash(&heading[..20]) != crc {
            return Err(LoadError::Damaged);
        }
        if version != VERSION {
            return Err(LoadError::UnknownVersion { got: version, known: VERSION });
        }
        let players = match flags {
            0 => PlayerEntities::Stay,
            PLAYERS_LEFT_OUT => PlayerEntities::LeftOut,
            _ => return Err(LoadError::Damaged),
        };
        if body.len() != length as usize || bytes.len() > CHECKPOINT_BYTES_MAX {
            return Err(LoadError::WrongLength);
        }
        if crc32fast::hash(body) != body_crc {
            return Err(LoadError::Damaged);
        }
        Ok((Self { players }, body))
    }
}
