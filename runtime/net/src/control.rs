//! Control: what server and client say to each other above the channels, before the game says anything.
//!
//! Every message begins with a byte that tells whom it is for; the server and the client share the table below. There
//! are two control messages: "I write by this schema" and "you are in this world now". Little endian.
//!
//! **Schema.** The server says it once per connection, reliably, before it names the first world. A client that goes by
//! another schema would read values where there are none, so it leaves; it says its own hash with its last packets,
//! unreliably and more than once, since nothing confirms them.
//!
//! ```text
//! 0        1      2             10
//! +--------+------+-------------+
//! | kind 0 | op 2 | schema hash |
//! | u8     | u8   | u64         |
//! +--------+------+-------------+
//! ```
//!
//! **The world** travels on the reliable channel when a player arrives in one, and again whenever the server names
//! another entity as the player's own.
//!
//! ```text
//! 0        1      2      3        4       8         12       13      17          18        19
//! +--------+------+------+--------+-------+---------+--------+-------+-----------+---------+------+
//! | kind 0 | op 1 | epoch| tick_hz| tick  | world id| flags  | slot  | generation| name len| name |
//! | u8     | u8   | u8   | u8     | u32   | u32     | u8     | u32   | u8        | u8      | utf8 |
//! +--------+------+------+--------+-------+---------+--------+-------+-----------+---------+------+
//! ```
//!
//! Flags: 1, the player has an entity; 2, the world that the client was sent to did not take it, and it is back; 4, the
//! world is reactive: it rests while nobody has anything to say, and both sides' keep-alives come more seldom. `slot`
//! and `generation` are always there and mean nothing without flag 1. Bytes after the name
//! are an error: a message that is longer than it says was written by something else.
//!
//! Sans-IO, no allocation: the name is borrowed from the message.

/// First byte of a server's control message, reliable: this file.
pub const CONTROL: u8 = 0;
/// First byte of a client's numbered input, unreliable: `[1][epoch u8][number u16][kind u8][packed]`
/// (`throng_replication`).
pub const INPUT: u8 = 1;
/// First byte of a snapshot, for the replicas (`throng_replication`).
pub const SNAPSHOT: u8 = 2;
/// First byte of an exact state to check the replicas against (`throng_replication`).
pub const AUDIT_SAMPLE: u8 = 3;
/// First byte of an event (`throng_replication`).
pub const EVENT: u8 = 4;
/// First byte of a client's request, reliable (`throng_replication`).
pub const REQUEST: u8 = 5;
/// First byte of a world's message to one client, reliable (`throng_replication`).
pub const MESSAGE: u8 = 6;

/// First byte of a snapshot of a world whose time is slowed (`throng_replication`).
pub const SLOWED_SNAPSHOT: u8 = 7;

/// Room for any `EnterWorld`.
pub const ENTER_WORLD_BYTES_MAX: usize = ENTER_WORLD_FIXED_BYTES + NAME_BYTES_MAX;

/// Longest world name (bytes); what is longer is cut at a character.
pub const NAME_BYTES_MAX: usize = 64;

const ENTER_WORLD_FIXED_BYTES: usize = 19;

/// What a control message is about: its second byte.
const OP_ENTER_WORLD: u8 = 1;
const OP_SCHEMA: u8 = 2;

const FLAG_OWN: u8 = 1;
const FLAG_RETURNED: u8 = 2;
const FLAG_REACTIVE: u8 = 4;

/// One side's schema (`throng_replication::Schema::hash`). From the server: what it writes by. From a client: it goes by
/// another one than the server, and leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaHash(pub u64);

impl SchemaHash {
    /// Length of the message (bytes).
    pub const BYTES: usize = 10;

    /// Reads a whole control message, kind byte included; `None` if it is another one, or none. Never panics.
    pub fn decode(message: &[u8]) -> Option<Self> {
        let &[CONTROL, OP_SCHEMA, h0, h1, h2, h3, h4, h5, h6, h7] = message else { return None };
        Some(Self(u64::from_le_bytes([h0, h1, h2, h3, h4, h5, h6, h7])))
    }

    /// Writes the message.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let [h0, h1, h2, h3, h4, h5, h6, h7] = self.0.to_le_bytes();
        [CONTROL, OP_SCHEMA, h0, h1, h2, h3, h4, h5, h6, h7]
    }
}

/// What the server said about the world that the player is in now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnterWorld<'a> {
    /// Which stay this is: one more with every world, wrapping. Snapshots carry the same number.
    pub epoch: u8,
    /// The world's tick rate (Hz, > 0).
    pub tick_hz: u8,
    /// The world's tick when the message was written.
    pub tick: u32,
    /// The world's number on its server. Comes again after 4,096 worlds in one place: `epoch` tells stays apart.
    pub world: u32,
    /// Slot and generation of the entity that the player steers, if it has one yet.
    pub own_entity: Option<(u32, u8)>,
    /// The world that the client was sent to did not take it: it is back in the one that sent it.
    pub has_returned: bool,
    /// The world rests while nobody has anything to say: see
    /// [`Connection::set_quiet`](crate::connection::Connection::set_quiet).
    pub is_reactive: bool,
    /// The world's kind, such as `hideout`.
    pub name: &'a str,
}

/// Why a control message was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EnterWorldError {
    #[error("control message ends too early or too late")]
    Length,
    #[error("unknown control operation")]
    UnknownOperation,
    #[error("tick rate is zero, or a flag is unknown")]
    OutOfRange,
    #[error("world name is not UTF-8")]
    NameNotUtf8,
}

impl<'a> EnterWorld<'a> {
    /// Reads a whole control message, kind byte included. Never panics, whatever the bytes.
    pub fn decode(message: &'a [u8]) -> Result<Self, EnterWorldError> {
        let (&[_kind, operation], fields) = message.split_first_chunk().ok_or(EnterWorldError::Length)?;
        if operation != OP_ENTER_WORLD {
            return Err(EnterWorldError::UnknownOperation);
        }
        let (&[epoch, tick_hz, t0, t1, t2, t3, w0, w1, w2, w3, flags, s0, s1, s2, s3, generation, name_bytes], name) =
            fields.split_first_chunk().ok_or(EnterWorldError::Length)?;
        if name.len() != usize::from(name_bytes) || name.len() > NAME_BYTES_MAX {
            return Err(EnterWorldError::Length);
        }
        if tick_hz == 0 || flags & !(FLAG_OWN | FLAG_RETURNED | FLAG_REACTIVE) != 0 {
            return Err(EnterWorldError::OutOfRange);
        }
        Ok(Self {
            epoch,
            tick_hz,
            tick: u32::from_le_bytes([t0, t1, t2, t3]),
            world: u32::from_le_bytes([w0, w1, w2, w3]),
            own_entity: (flags & FLAG_OWN != 0).then(|| (u32::from_le_bytes([s0, s1, s2, s3]), generation)),
            has_returned: flags & FLAG_RETURNED != 0,
            is_reactive: flags & FLAG_REACTIVE != 0,
            name: std::str::from_utf8(name).map_err(|_| EnterWorldError::NameNotUtf8)?,
        })
    }

    /// Writes the message and returns its length.
    pub fn encode(&self, out: &mut [u8; ENTER_WORLD_BYTES_MAX]) -> usize {
        let name = &self.name[..self.name.floor_char_boundary(NAME_BYTES_MAX)];
        let (slot, generation) = self.own_entity.unwrap_or_default();
        out[..4].copy_from_slice(&[CONTROL, OP_ENTER_WORLD, self.epoch, self.tick_hz]);
        out[4..8].copy_from_slice(&self.tick.to_le_bytes());
        out[8..12].copy_from_slice(&self.world.to_le_bytes());
        let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
        out[12] = flag(self.own_entity.is_some(), FLAG_OWN)
            | flag(self.has_returned, FLAG_RETURNED)
            | flag(self.is_reactive, FLAG_REACTIVE);
        out[13..17].copy_from_slice(&slot.to_le_bytes());
        out[17] = generation;
        out[18] = name.len() as u8;
        let length = ENTER_WORLD_FIXED_BYTES + name.len();
        out[ENTER_WORLD_FIXED_BYTES..length].copy_from_slice(name.as_bytes());
        length
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    const HUB: EnterWorld<'static> = EnterWorld {
        epoch: 7,
        tick_hz: 20,
        tick: 0x0102_0304,
        world: 1_001,
        own_entity: Some((70_000, 3)),
        has_returned: false,
        is_reactive: false,
        name: "hub",
    };

    fn bytes(message: &EnterWorld) -> Vec<u8> {
        let mut out = [0; ENTER_WORLD_BYTES_MAX];
        let length = message.encode(&mut out);
        out[..length].to_vec()
    }

    #[test]
    fn what_was_written_is_read_back() {
        for own_entity in [None, Some((0, 0)), Some((u32::MAX, 255))] {
            for name in ["", "hub", "höhle"] {
                for (has_returned, is_reactive) in [(false, false), (true, false), (false, true), (true, true)] {
                    let message = EnterWorld { own_entity, has_returned, is_reactive, name, ..HUB };
                    assert_eq!(EnterWorld::decode(&bytes(&message)), Ok(message));
                }
            }
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_drawing() {
        assert_eq!(bytes(&HUB), [0, 1, 7, 20, 4, 3, 2, 1, 0xE9, 3, 0, 0, 1, 0x70, 0x11, 1, 0, 3, 3, b'h', b'u', b'b']);
    }

    #[test]
    fn a_schemas_hash_has_one_way_to_be_written_and_is_no_world() {
        let message = SchemaHash(0x0102_0304_0506_0708).encode();
        assert_eq!(message, [0, 2, 8, 7, 6, 5, 4, 3, 2, 1], "the bytes of the drawing");
        assert_eq!(SchemaHash::decode(&message), Some(SchemaHash(0x0102_0304_0506_0708)));
        assert_eq!(EnterWorld::decode(&message), Err(EnterWorldError::UnknownOperation));
        assert_eq!(SchemaHash::decode(&bytes(&HUB)), None);
        for length in 0..message.len() {
            assert_eq!(SchemaHash::decode(&message[..length]), None);
        }
        assert_eq!(SchemaHash::decode(&[&message[..], &[0]].concat()), None);
        for (at, other) in [(0, 1), (1, 1), (1, 3)] {
            let mut other_message = message;
            other_message[at] = other;
            assert_eq!(SchemaHash::decode(&other_message), None);
        }
    }

    #[test]
    fn every_cut_and_every_tail_is_refused() {
        let whole = bytes(&HUB);
        for length in 0..whole.len() {
            assert_eq!(EnterWorld::decode(&whole[..length]), Err(EnterWorldError::Length));
        }
        let mut longer = whole;
        longer.push(0);
        assert_eq!(EnterWorld::decode(&longer), Err(EnterWorldError::Length));
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let mut message = bytes(&HUB);
        message[1] = 9;
        assert_eq!(EnterWorld::decode(&message), Err(EnterWorldError::UnknownOperation));
        let mut message = bytes(&HUB);
        message[3] = 0;
        assert_eq!(EnterWorld::decode(&message), Err(EnterWorldError::OutOfRange));
        let mut message = bytes(&HUB);
        message[12] = 8;
        assert_eq!(EnterWorld::decode(&message), Err(EnterWorldError::OutOfRange));
        let mut message = bytes(&HUB);
        message[19] = 0xFF;
        assert_eq!(EnterWorld::decode(&message), Err(EnterWorldError::NameNotUtf8));
    }

    #[test]
    fn a_hundred_thousand_mutated_messages_never_panic_and_mean_the_same_when_said_again() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut accepted = 0;
        for _ in 0..100_000 {
            let mut message = bytes(&HUB);
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(0..=message.len());
                match rng.random_range(0..4) {
                    0 if at < message.len() => message[at] ^= 1 << rng.random_range(0..8),
                    1 => message.truncate(at),
                    2 => message.insert(at, rng.random()),
                    _ => {
                        // A longer name that says so.
                        message.extend((0..rng.random_range(0..100)).map(|_| b'x'));
                        let name_bytes = message.len().saturating_sub(ENTER_WORLD_FIXED_BYTES) as u8;
                        if let Some(said) = message.get_mut(ENTER_WORLD_FIXED_BYTES - 1) {
                            *said = name_bytes;
                        }
                    }
                }
            }
            if let Ok(read) = EnterWorld::decode(&message) {
                assert_eq!(EnterWorld::decode(&bytes(&read)), Ok(read));
                accepted += 1;
            }
        }
        assert!(accepted > 1_000, "the mutations reach behind the first check: {accepted}");
    }
}
