//! Held worlds: the places of worlds that are not there, since their plans are parked, and what is to be parked soon.
//!
//! What is done about them is in [`crate::parked_worlds`]; frame thread.

use throng_platform::time::Nanos;
use throng_world::ids::WorldId;

use crate::{lifecycle::NewWorld, parking::Culprit, world_facts::WorldNews};

/// Worlds that are not there though their places are.
#[derive(Default)]
pub(crate) struct HeldWorlds {
    pub places: Vec<HeldPlace>,
    /// Worlds that are to be parked as soon as they are home.
    pub leaving: Vec<WorldId>,
    /// Worlds that earlier servers died of, until their plans are known, and until when they are parked.
    pub culprits: Vec<(Culprit, Nanos)>,
    /// Tells of worlds that come and go.
    pub news: WorldNews,
}

pub(crate) struct HeldPlace {
    pub id: WorldId,
    pub plan: NewWorld,
    pub is_being_made: bool,
}

impl HeldWorlds {
    /// Its place is held, or was until now: the world is in it.
    pub fn has(&self, id: WorldId) -> bool {
        self.places.iter().any(|place| place.id == id)
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}
