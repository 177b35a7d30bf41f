//! Scene: what all views of a world read in a tick.
//!
//! The world's own thread writes it while it takes in the tick's changes. While views are refreshed and snapshots are
//! written it is only read, so any number of threads may do that at once (`world`).

use std::sync::Arc;

use crate::{
    source::{bulk::Bulk, entities::Entities, rings::Rings, rules::ResolvedRules},
    view::interest::{Finder, InterestSettings},
    wire::schema::Schema,
};

/// As `world::AUDITED_DELAY_S_MAX`, until the world's rate is known: a second at 20 Hz. (ticks)
const AUDITED_DELAY_TICKS_MAX: u32 = 20;

pub(crate) struct Scene {
    pub entities: Entities,
    pub settings: InterestSettings,
    pub rings: Rings,
    pub finder: Finder,
    pub bulk: Bulk,
}

impl Scene {
    pub fn new(schema: Arc<Schema>, settings: InterestSettings) -> Self {
        Self {
            rings: Rings::new(&ResolvedRules::default(), schema.every_kind(), AUDITED_DELAY_TICKS_MAX),
            entities: Entities::new(schema, settings.entities_max),
            settings,
            finder: Finder::default(),
            bulk: Bulk::default(),
        }
    }

    /// Brings what is derived from the tick's changes up to date. Cheap when it is.
    pub fn prepare(&mut self) {
        let Self { entities, rings, bulk, .. } = self;
        entities.release_due();
        bulk.build(entities, rings);
    }

    pub fn heap_bytes(&self) -> usize {
        self.entities.heap_bytes() + self.finder.heap_bytes() + self.bulk.heap_bytes()
    }
}
