//! The server: puts the world of Frontier into a [`Server`], and everybody into the world.

use throng::{Server, directory::Everybody, prelude::*, server::ServerError};

use crate::{
    settings::FrontierSettings,
    worlds::{FRONTIER, Frontier},
};

/// The world of a Frontier server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontierWorld {
    pub world: WorldId,
    pub npcs: usize,
}

/// Makes the world, and puts everybody into it.
///
/// Cost: about 20 ms for the landscape and 5 µs for each NPC.
pub fn build(server: &mut Server, settings: &FrontierSettings) -> Result<FrontierWorld, ServerError> {
    server.set_game(FRONTIER);
    let kind = server.add_kind(Frontier { settings: settings.clone() })?;
    let world = server.create_world(kind, settings.seed)?;
    throng_faults::start(server, settings.faults.iter().copied(), &settings.background_faults)?;
    server.set_directory(Everybody(world));
    Ok(FrontierWorld { world, npcs: settings.npcs })
}
