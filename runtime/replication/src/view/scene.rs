//! Scene: what all views of a world read in a tick.
//!
//! The world's own thread writes it while it takes in the tick's changes. While views are refreshed and snapshots are
//! written it is only read, so any number of threads may do that at once (`world`).

use std::sync::Arc;

use crate::{
    source::{
        bulk::Bulk,
        entities::Entities,
        rings::Rings,
        rules::{InterestRadii, ResolvedRules},
    },
    view::interest::{Finder, InterestSettings},
    wire::{schema::Schema, time_factor::TimeFactor},
};

/// As `world::AUDITED_DELAY_S_MAX`, until the world's rate is known: a second at 20 Hz. (ticks)
const AUDITED_DELAY_TICKS_MAX: u32 = 20;

/// In so many ticks after a world's time was slowed everybody is told that it is no more, though there be nothing else to
/// say: at 20 % loss one client in 10^14 hears nothing of it.
const TIME_TOLD_TICKS: u32 = 20;

pub(crate) struct Scene {
    pub entities: Entities,
    /// With the radii that hold now.
    pub settings: InterestSettings,
    /// The radii that it was made with.
    pub own_radii: InterestRadii,
    pub rings: Rings,
    pub finder: Finder,
    pub bulk: Bulk,
    /// How fast the world's time runs, and the last tick in which it was slowed.
    pub time_factor: TimeFactor,
    slowed_tick: Option<u32>,
}

impl Scene {
    pub fn new(schema: Arc<Schema>, settings: InterestSettings) -> Self {
        Self {
            rings: Rings::new(&ResolvedRules::default(), schema.every_kind(), AUDITED_DELAY_TICKS_MAX),
            entities: Entities::new(schema, settings.entities_max),
            own_radii: InterestRadii { enter_m: settings.enter_radius_m, leave_m: settings.leave_radius_m },
            settings,
            finder: Finder::default(),
            bulk: Bulk::default(),
            time_factor: TimeFactor::USUAL,
            slowed_tick: None,
        }
    }

    /// Puts other radii into force; none: those that it was made with.
    pub fn set_radii(&mut self, radii: Option<InterestRadii>) {
        let InterestRadii { enter_m, leave_m } = radii.unwrap_or(self.own_radii);
        (self.settings.enter_radius_m, self.settings.leave_radius_m) = (enter_m, leave_m);
    }

    pub fn set_time_factor(&mut self, factor: TimeFactor) {
        if !self.time_factor.is_usual() {
            self.slowed_tick = Some(self.entities.tick);
        }
        self.time_factor = factor;
    }

    /// Whether each client is told how fast time runs, whatever else there is to tell.
    pub fn says_time_factor(&self) -> bool {
        let lately = self.slowed_tick.is_some_and(|tick| self.entities.tick.wrapping_sub(tick) <= TIME_TOLD_TICKS);
        lately || !self.time_factor.is_usual()
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
