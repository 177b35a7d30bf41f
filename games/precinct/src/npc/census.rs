//! Census: how many NPCs there are, at which load level, and how many of them fight. Gauges for operators, and
//! the figures that the game's promises are held against.

use bevy_ecs::prelude::*;
use throng::prelude::*;

use super::{LoadLevel, Pace, Senses};
use crate::{components::Vitals, weapons::ticks_of};

/// Who fired or was hit so recently is in combat. (ms)
pub const COMBAT_MS: u32 = 3_000;
/// Between two counts. (ms)
const PERIOD_MS: u32 = 500;

/// Twice a second; worlds count in different ticks.
pub fn is_due(tick: Res<TickInfo>) -> bool {
    let period = ticks_of(PERIOD_MS, tick.rate.0).max(1);
    tick.tick.wrapping_add(tick.world.number()).is_multiple_of(period)
}

/// Counts them.
pub fn count(tick: Res<TickInfo>, npcs: Query<(&Vitals, &Senses, &Pace)>) {
    let combat_ticks = ticks_of(COMBAT_MS, tick.rate.0);
    let (mut count, mut alive, mut in_combat) = (0, 0, 0);
    let mut levels = [0; 3];
    for (vitals, senses, pace) in &npcs {
        count += 1;
        alive += i64::from(vitals.alive);
        in_combat += i64::from(vitals.alive && senses.fought.within(tick.tick, combat_ticks));
        levels[pace.level as usize] += 1;
    }
    throng::gauge!("npcs", count);
    throng::gauge!("npcs_alive", alive);
    throng::gauge!("npcs_in_combat", in_combat);
    throng::gauge!("npcs_full", levels[LoadLevel::Full as usize]);
    throng::gauge!("npcs_near", levels[LoadLevel::Near as usize]);
    throng::gauge!("npcs_far", levels[LoadLevel::Far as usize]);
}
