//! Scene: what all clients of a world share while they are told of a tick.
//!
//! Written by the world's own thread while the tick's changes are taken in, and only read while views are
//! refreshed and snapshots are written, so that any number of threads may do that at once (`world`).

use std::sync::Arc;

use crate::{
    bulk::Bulk,
    entities::{Entities, NetId, Standing},
    interest::{Finder, InterestSettings},
    rings::Rings,
    rules::ResolvedRules,
    schema::Schema,
    view::View,
};

/// Ticks within which what truths tell must be current, until the world's rate is known: a second at 20 Hz.
const TRUTH_TICKS_MAX: u32 = 20;

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
            rings: Rings::new(&ResolvedRules::default(), schema.every_kind(), TRUTH_TICKS_MAX),
            entities: Entities::new(schema, &settings),
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

    /// Calls `ask` with the concealed entities that a client would hear of if it may see them. In slot order. `slots` is scratch.
    pub fn each_concealed_near(&self, view: &View, slots: &mut Vec<u32>, mut ask: impl FnMut(NetId)) {
        let Self { entities, settings, finder, .. } = self;
        let centre = view.look_from(entities);
        let leave2 = settings.leave_radius_m.powi(2);
        finder.concealed_near(centre, settings.leave_radius_m, slots);
        for &slot in &*slots {
            let row = &entities.slots[slot as usize];
            let id = NetId { slot, generation: row.generation };
            let is_near = |place: [f32; 2]| {
                let square = |centre: [f32; 2]| (place[0] - centre[0]).powi(2) + (place[1] - centre[1]).powi(2);
                centre.is_some_and(|centre| square(centre) <= leave2)
            };
            let is_candidate = match row.standing {
                Standing::Everywhere => true,
                Standing::Hidden => false,
                Standing::At(place) => is_near(place) || (row.team != 0 && row.team == view.team),
            };
            if is_candidate && view.own != Some(id) {
                ask(id);
            }
        }
    }

    pub fn heap_bytes(&self) -> usize {
        self.entities.heap_bytes() + self.finder.heap_bytes() + self.bulk.heap_bytes()
    }
}
