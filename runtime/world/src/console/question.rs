//! Question: what somebody outside wants of a world, run in its next tick before the systems.

use std::fmt;

use throng_net::protocol::ClientId;

use crate::game_world::GameWorld;

/// Mail that is run in the world. Whoever asks puts where the answer goes into it; a world that ends drops it unasked.
pub struct Question(Box<dyn FnOnce(&mut GameWorld) + Send>);

impl Question {
    pub fn new(ask: impl FnOnce(&mut GameWorld) + Send + 'static) -> Self {
        Self(Box::new(ask))
    }

    pub(crate) fn ask(self, world: &mut GameWorld) {
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
