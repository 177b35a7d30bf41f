//! The server: puts the world of Frontier into a [`Server`], and everybody into the world.

use std::sync::Arc;

use throng::{Server, directory::OneWorld, lifecycle::NewWorld, prelude::*, server::ServerError};

use crate::{
    budgets,
    land::store::SavedLand,
    settings::FrontierSettings,
    worlds::{FRONTIER, Frontier},
};

/// The number that the world is saved under.
pub const SAVE_ID: u64 = 1;

/// The world of a Frontier server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontierWorld {
    pub world: WorldId,
    pub npcs: usize,
}

/// Makes the world, and puts everybody into it. Where the server keeps saves, players and land are as they were saved. If it
/// panics, it is made again.
///
/// Cost: about 20 ms for the landscape and 5 µs for each NPC.
pub fn build(server: &mut Server, settings: &FrontierSettings) -> Result<FrontierWorld, ServerError> {
    server.set_game(FRONTIER);
    // Land is read while the world goes on, so the store is there before it.
    server.open_saves()?;
    let saved = server.saved().map(|reads| Arc::new(SavedLand::new(reads, SAVE_ID)));
    let kind = server.add_kind(Frontier { settings: settings.clone(), saved })?;
    let plan = NewWorld::new(kind, settings.seed).saved_as(SAVE_ID);
    let world = server.create_world_as(plan.clone())?;
    budgets::suggest(server, settings.players, settings.npcs);
    throng_faults::start(server, settings.faults.iter().copied(), &settings.background_faults)?;
    server.set_directory(OneWorld::new(server.control(), plan, world));
    Ok(FrontierWorld { world, npcs: settings.npcs })
}
