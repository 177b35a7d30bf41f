//! Question: what somebody outside wants of a world, run in its next tick before the systems.

use std::fmt;

use bevy_ecs::prelude::*;
use throng_net::protocol::ClientId;
use throng_platform::time::Nanos;

/// A world, as far as it can be asked.
pub trait AskedWorld {
    /// Its entities and resources.
    fn ecs_mut(&mut self) -> &mut World;

    /// Everybody who is here, in the order in which they came, and where they stood at the end of the last tick.
    fn player_rows(&self) -> Vec<PlayerRow>;

    /// What the line of each of them is like, in the same order.
    fn client_lines(&self) -> Vec<ClientLine>;

    /// Its entities, counted by what they are made of; most of one sort first. Cost: a look at each archetype.
    fn entity_sorts(&self) -> Vec<EntitySort>;

    /// Ticks done.
    fn ticks_done(&self) -> u32;
}

/// Mail that is run in the world. Whoever asks puts where the answer goes into it; a world that ends drops it unasked.
pub struct Question {
    ask: Ask,
    changes: bool,
}

/// What is done in the world.
pub type Ask = Box<dyn FnOnce(&mut dyn AskedWorld) + Send>;

impl Question {
    pub fn new(ask: Ask) -> Self {
        Self { ask, changes: true }
    }

    /// One that changes nothing in the world.
    pub fn that_looks(ask: Ask) -> Self {
        Self { ask, changes: false }
    }

    /// Whether the world may be another one after it.
    pub(crate) fn changes(&self) -> bool {
        self.changes
    }

    pub(crate) fn ask(self, world: &mut dyn AskedWorld) {
        (self.ask)(world);
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Question")
    }
}

/// A player in a world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlayerRow {
    pub client_id: ClientId,
    /// Where it stands (m); `None` for one that has no entity yet, or none with a place.
    pub place_m: Option<[f32; 2]>,
}

/// The line of a client, since it connected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClientLine {
    pub client_id: ClientId,
    /// Smoothed.
    pub round_trip: Nanos,
    /// Our packets, and those of them that came through or are known to be lost.
    pub packets_sent: u64,
    pub packets_acked: u64,
    pub packets_lost: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// What it is sent at most now (bytes/s); `None` on its way in.
    pub budget_bytes_per_s: Option<f32>,
    /// Share of packets that its line seems to lose whatever is sent.
    pub usual_loss: f32,
}

/// Entities that have the same components.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntitySort {
    pub count: usize,
    /// What clients hear of them, by the names that these know; empty if they hear of none.
    pub replicated: Vec<&'static str>,
    /// Their other components, without paths, but for the engine's own.
    pub others: Vec<String>,
}
