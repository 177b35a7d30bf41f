//! Report: what a tick did, and what it asks of whoever hosts the world.

use throng_pack::PackError;
use throng_replication::ReplicationStats;

use crate::{
    client::Client,
    ids::{ClientKey, WorldId},
    transfer::{Transfer, WorldMessage},
};

/// What a tick did, for the host to add up.
#[derive(Debug, Default, Clone, Copy)]
pub struct TickStats {
    pub datagrams_in: u64,
    pub bytes_in: u64,
    pub datagrams_refused: u64,
    pub packets_out: u64,
    pub bytes_out: u64,
    pub packets_lost: u64,
    pub inputs_stale: u64,
    pub inputs_over_allowance: u64,
    pub entity_updates: u64,
    pub snapshot_bytes: u64,
    pub allocations: u64,
    /// Values that were no finite numbers; never sent.
    pub poisoned: u64,
    /// Components sent again because the packet that carried them was lost.
    pub owed_again: u64,
    /// Values outside the range that their component declares, moved to its nearer end.
    pub clamped: u64,
    /// Entities that a full world could not replicate.
    pub spawns_refused: u64,
    /// Events told, the copies of them that went to clients, and those that came faster than their rule allows.
    pub events: u64,
    pub event_copies: u64,
    pub events_throttled: u64,
}

impl TickStats {
    /// Adds what was done for some of the clients.
    pub(crate) fn add(&mut self, part: &Self) {
        self.datagrams_in += part.datagrams_in;
        self.bytes_in += part.bytes_in;
        self.datagrams_refused += part.datagrams_refused;
        self.packets_out += part.packets_out;
        self.bytes_out += part.bytes_out;
        self.packets_lost += part.packets_lost;
        self.inputs_stale += part.inputs_stale;
        self.inputs_over_allowance += part.inputs_over_allowance;
        self.snapshot_bytes += part.snapshot_bytes;
        self.allocations += part.allocations;
    }

    pub(crate) fn add_replication(&mut self, stats: &ReplicationStats) {
        self.entity_updates += stats.entity_updates;
        self.poisoned += stats.poisoned;
        self.owed_again += stats.owed_again;
        self.clamped += stats.clamped;
        self.spawns_refused += stats.spawns_refused;
    }
}

/// A client that leaves its world, for the host to act on.
pub enum Leaving {
    Travel {
        client: Box<Client>,
        to: WorldId,
        transfer: Transfer,
    },
    /// It did not come in, since what it carries cannot be read here: back to where it was, with it.
    Returned {
        client: Box<Client>,
        to: Option<WorldId>,
        transfer: Transfer,
        error: PackError,
    },
    /// Its connection is closed, and it has been told.
    Gone {
        client: ClientKey,
        reason: &'static str,
    },
}

/// What a tick did and asks for. The host empties the lists before the world's next tick.
#[derive(Default)]
pub struct TickReport {
    pub stats: TickStats,
    pub leaving: Vec<Leaving>,
    /// Messages to other worlds.
    pub messages: Vec<(WorldId, WorldMessage)>,
    /// Nobody is here and the game allows sleep: unless there is mail, the next tick would do nothing.
    pub has_nothing_to_do: bool,
    /// One number for the world's state, if it was asked for.
    pub state_hash: Option<u64>,
}
