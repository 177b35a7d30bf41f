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
pub struct Question(Ask);

type Ask = Box<dyn FnOnce(&mut dyn AskedWorld) + Send>;

impl Question {
    pub fn new(ask: impl FnOnce(&mut dyn AskedWorld) + Send + 'static) -> Self {
        Self(Box::new(ask))
    }

    pub(crate) fn ask(self, world: &mut dyn AskedWorld) {
        (self.0)(world);
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
