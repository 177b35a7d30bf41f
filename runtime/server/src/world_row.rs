//! World row: what the frame's thread knows of a world, for those who look at all of them.

use std::sync::Arc;

use throng_platform::time::Nanos;
use throng_scheduler::Hertz;
use throng_world::ids::WorldId;

use crate::{behind::Behind, overload::Level};

/// A tick that has lasted for so long hangs: what others see of it before is a tick under way.
const HANGS_AFTER: Nanos = Nanos::from_secs(1);

/// A world, as the frame's thread knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct WorldRow {
    pub id: WorldId,
    /// The name of its kind.
    pub kind: Arc<str>,
    pub rate: Hertz,
    pub players: usize,
    /// It does not tick until somebody comes.
    pub is_dormant: bool,
    /// How fast its time runs, in percent.
    pub time_percent: u8,
    /// Estimated, of the next tick.
    pub tick_cost: Nanos,
    /// What the last one took.
    pub last_tick: Nanos,
    /// What the longest of the last 10 to 20 s took.
    pub longest_tick: Nanos,
    /// How overloaded it is.
    pub overload: Level,
    /// For how long a worker has been in its tick, if one is.
    pub in_tick_for: Option<Nanos>,
    /// Since it is there.
    pub ticks_missed: u64,
    /// Its last episode of not keeping up, if there was one.
    pub behind: Option<Behind>,
}

impl WorldRow {
    /// What its ticks take of one worker [0 to 1 and above], as it is estimated; 0 while it sleeps.
    pub fn load(&self) -> f64 {
        let cost = if self.is_dormant { 0.0 } else { self.tick_cost.as_secs_f64() };
        cost * f64::from(self.rate.0) * f64::from(self.time_percent) / 100.0
    }

    /// For how long its tick has hung, if it does.
    pub fn hangs_for(&self) -> Option<Nanos> {
        self.in_tick_for.filter(|since| *since >= HANGS_AFTER)
    }
}
