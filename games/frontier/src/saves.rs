//! Saves: what of the world is there again after a restart, and the land that is read while it goes on.
//!
//! Players are saved as [`Character`](crate::characters::Character)s, and each changed cell as a record of its own, in one
//! commit: whoever has claimed a plot has it on both sides, and what was paid for a wall stands in it. Of the world as a whole
//! nothing is saved but what its land grows from. NPCs begin anew.
//!
//! When somebody comes near a sector that is not in memory, a long task reads its records, and what it brings comes as mail
//! ([`crate::works::hear`]).
//!
//! Cost: of a cut, 0.3 µs for each cell that has changed since the last one, however many were ever changed; of a sector that
//! somebody comes near, a long task.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use throng::prelude::*;
use throng_pack::{Pack, envelope};
use throng_profiler::{log_category, log_error};

use crate::land::{
    Map,
    map::Wanted,
    store::{LoadedSector, SavedLand, packed},
};

log_category!(LAND = "frontier.land");

/// A sector is there before somebody who runs has crossed it.
const LOAD: LongTaskTerms = LongTaskTerms::new("frontier.load_sector").within_ms(500);

/// Where saved land is read.
#[derive(Resource)]
pub struct LandReader(pub Arc<SavedLand>);

/// What is saved of the world as a whole: the number that its land grows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.world")]
struct SavedWorld {
    #[pack(fixed)]
    seed: u64,
}

/// How the world is saved: its land cell by cell.
pub struct LandState;

impl WorldState for LandState {
    fn save(&self, ecs: &mut World, _players: &[Entity]) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let saved = SavedWorld { seed: ecs.resource::<Map>().seed() };
        envelope::write(&saved, &mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    fn load(&self, ecs: &mut World, bytes: &[u8]) -> Result<(), String> {
        let SavedWorld { seed } = envelope::read(bytes).map_err(|error| error.to_string())?;
        // Also with another seed in the settings: trees stand where they were felled otherwise.
        ecs.insert_resource(Map::new(seed, true));
        Ok(())
    }

    fn take_cells(&self, ecs: &mut World, tick: u32) -> Result<Vec<CellToSave>, String> {
        let mut map = ecs.resource_mut::<Map>();
        let dirty = map.take_dirty(tick);
        packed(&dirty).map_err(|error| {
            map.not_saved(tick);
            error.to_string()
        })
    }

    fn cells_saved(&self, ecs: &mut World, tick: u32) {
        ecs.resource_mut::<Map>().saved(tick);
    }
}

/// Whether there is anything for [`ask_for_sectors`] to do.
pub fn somebody_came_near(map: Res<Map>) -> bool {
    map.wants_any()
}

/// Has sectors read that somebody came near.
pub fn ask_for_sectors(reader: Option<Res<LandReader>>, mut map: ResMut<Map>, mut outbox: ResMut<Outbox>) {
    let Some(reader) = reader else { return };
    for Wanted { sector, ask } in map.take_wanted() {
        let land = reader.0.clone();
        outbox.start_long_task(LOAD, move || {
            let cells = land.load(sector).map_err(|error| {
                log_error!(LAND, sector = sector.number(), %error, "the land of a sector cannot be read: nobody can change it");
            });
            LoadedSector { sector, ask, cells: cells.ok() }
        });
    }
}
