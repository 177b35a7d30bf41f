//! The footprint of a small world: what its tick reads whatever happens, asked for at once when the tick begins.
//!
//! A thousand small worlds that take turns find nothing of theirs in the nearest caches, and what a tick reads lies in
//! some hundred places: each resource of Bevy's is an entity of its own, each system and each list a block of its own.
//! A tick that comes to them one after the other waits for each. So where they are is noted now and then, and the next
//! ticks ask for all of them before they need the first. Only what can be reached is noted: lists
//! inside Bevy's queries and behind the game's own pointers are not.
//!
//! Asked for into the second cache: a small world's tick reads more than the first one holds. (Into the first one it is
//! worth less than half as much.)
//!
//! Cost: some 2 us of a tick to ask for 550 lines, and a walk over all columns in one tick of 64; memory 2 KB a world. A
//! world that is not small has none: its own tick fills the caches.

use bevy_ecs::prelude::*;
use throng_platform::prefetch::FootprintDraft;

use super::GameWorld;

/// Ticks between two looks; the first ones are more often, since a world fills then.
const PERIOD: u32 = 64;

/// Clients of a small world.
const CLIENTS_MAX: usize = 16;

/// Entities of a small world, its resources included.
const ENTITIES_MAX: u32 = 512;

/// Lines of a small world: 128 KB, a quarter of the smallest second cache of today's servers.
const LINES_MAX: usize = 2048;

impl GameWorld {
    /// Lines of memory that its ticks ask for before they need them. 0: it is not small, or has not ticked. For tests.
    pub fn footprint_lines(&self) -> usize {
        self.footprint.lines_count()
    }

    /// Notes the footprint, if its time has come. Not all worlds do in the same tick.
    pub(super) fn note_footprint(&mut self, draft: &mut FootprintDraft) {
        let turn = self.tick.wrapping_add(self.id.number());
        let is_due = turn.is_multiple_of(PERIOD) || (self.tick < PERIOD && self.tick.is_power_of_two());
        if !is_due {
            return;
        }
        if self.clients.len() <= CLIENTS_MAX && self.ecs.entities().len() <= ENTITIES_MAX {
            draft.note(self);
            draft.note(&*self.replication);
            draft.note(&*self.rules);
            self.systems.note_lists(draft);
            self.collector.note_lists(draft);
            self.replication.note_lists(draft);
            self.clients.iter_mut().for_each(|client| client.note(draft));
            note_tables(&self.ecs, draft);
            note_resources(&self.ecs, draft);
        }
        draft.finish(&mut self.footprint, LINES_MAX);
    }
}

/// Notes the tables that hold something: where each column is, its values, and when they changed. A table's archetype
/// and its list of entities are not read, unless somebody asks which entity it is.
fn note_tables(ecs: &World, draft: &mut FootprintDraft) {
    for archetype in ecs.archetypes().iter().filter(|archetype| !archetype.is_empty()) {
        let Some(table) = ecs.storages().tables.get(archetype.table_id()) else { continue };
        let Some(first) = table.entities().first().and_then(|&first| ecs.get_entity(first).ok()) else { continue };
        draft.note(table);
        for &id in archetype.components() {
            let (Some(column), Some(info)) = (table.get_column(id), ecs.components().get_info(id)) else { continue };
            if info.layout().size() == 0 {
                continue;
            }
            draft.note(column);
            if let Some(changed) = table.get_changed_ticks_slice_for(id) {
                draft.note(changed);
            }
            if let Ok(value) = first.get_by_id(id) {
                draft.note_bytes(value.as_ptr(), info.layout().size() * table.entities().len());
            }
        }
    }
}

/// Notes the resources that lie in sparse sets. The others are rows of tables, and are noted with those.
fn note_resources(ecs: &World, draft: &mut FootprintDraft) {
    for (id, info, value) in ecs.iter_resources() {
        let Some(set) = ecs.storages().sparse_sets.get(id) else { continue };
        draft.note(set);
        draft.note_bytes(value.as_ptr(), info.layout().size());
    }
}
