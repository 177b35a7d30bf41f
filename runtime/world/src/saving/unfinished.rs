//! Unfinished: what a world still owes its saves, in a tick and after one that failed.
//!
//! What a tick brings counts when it is over. So a world that panics leaves what it owed at the end of the tick before
//! ([`SavesLeft`]), and the world that is made in its place takes that up: nothing that was saved is said again, nothing
//! that was not is lost. Whether it is the same world, its newest cut tells: packed again in the same tick of the replay it must
//! be the same, but for ids that no game knows of ([`CutMark`]), since what left the world since its checkpoint left with a cut.

use throng_net::protocol::ClientId;

use super::SaveRequest;
use crate::{ids::ClientKey, transfer::Transfer};

/// What a tick has brought so far.
#[derive(Debug, Default)]
pub(crate) struct TickSaves {
    /// Connections that ended in it.
    pub gone: Vec<(ClientKey, ClientId)>,
    pub travellers: Vec<(ClientId, Transfer)>,
    pub left_with: Vec<(ClientId, Transfer)>,
    pub items: Vec<(u32, i64)>,
    pub requests: Vec<SaveRequest>,
}

/// Everybody and the world, as the game has packed them.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    pub players: Vec<(ClientId, Transfer)>,
    /// Those of them who could not be packed.
    pub left_out: Vec<ClientId>,
    pub world: Option<Vec<u8>>,
    pub world_crc: u32,
}

impl Packed {
    /// Tells accidents, not attackers.
    pub fn crc(&self) -> u32 {
        let mut crc = crc32fast::Hasher::new();
        for (client, has) in &self.players {
            crc.update(&client.0.to_le_bytes());
            crc.update(has.bytes());
        }
        crc.update(&self.world_crc.to_le_bytes());
        crc.finalize()
    }
}

/// What a cut held, for a replay that comes to its tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutMark {
    pub(crate) tick: u32,
    pub(crate) players: Vec<(ClientKey, ClientId)>,
    pub(crate) crc: u32,
}

/// What a world that panicked owed its saves when its last whole tick was over.
#[derive(Debug, Default)]
pub struct SavesLeft {
    pub(crate) mark: Option<CutMark>,
    /// Those whose end the game has not seen, in the tick that failed too.
    pub(crate) seen: Vec<(ClientKey, ClientId)>,
    pub(crate) left_with: Vec<(ClientId, Transfer)>,
    pub(crate) departed: Vec<ClientId>,
    pub(crate) left_unsaved: Vec<ClientId>,
    pub(crate) items: Vec<(u32, i64)>,
    pub(crate) requests: Vec<SaveRequest>,
}
