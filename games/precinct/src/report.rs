//! Report: the last system of a tick hands the world's [`Tally`](crate::tally::Tally) to the server, every few ticks.

use bevy_ecs::prelude::*;
use throng::prelude::*;

use crate::{arena::Arena, tally::TallyNames};

/// Ticks between two reports of a world: counts may be so much late, and cost so much less.
const REPORT_PERIOD: u32 = 8;

/// Hands the counters and the gauges to the server; counters start again from zero.
pub fn report(tick: Res<TickInfo>, names: Res<TallyNames>, mut arena: ResMut<Arena>, mut telemetry: ResMut<Telemetry>) {
    if tick.tick.is_multiple_of(REPORT_PERIOD) {
        names.report(&mut arena.tally, &mut telemetry);
    }
}
