//! Question: what somebody outside wants of a world, run in its next tick before the systems.

use std::fmt;

use bevy_ecs::prelude::*;
use throng_net::protocol::ClientId;

/// A world, as far as it can be asked.
pub trait AskedWorld {
    /// Its entities and resources.
    fn ecs_mut(&mut self) -> &mut World;

    /// Everybody who is here, in the order in which they came, and where they stood at the end of the last tick.
    fn player_rows(&self) -> Vec<PlayerRow>;
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
