//! Combat: blows with what is in hand, at a target in reach.
//!
//! NPCs strike whom they hate most; a player strikes its target while it holds the button, where it saw it
//! ([`crate::aims`]). A weapon's own clock decides how often.
//!
//! Cost: 30 ns per fighter and tick.

use crate::{
    actors::Who,
    components::{Gesture, Kind},
    deeds::Blow,
    events::Means,
    traits::{REACH_M, Traits},
    zone::Zone,
};

const HIT_CHANCE: f32 = 0.8;
const CRITICAL_CHANCE: f32 = 0.06;
/// Chance that a plaguebearer's blow makes its victim sick.
const INFECT_CHANCE: f32 = 0.25;

/// Everybody strikes whose time it is.
pub fn swing(mut zone: Zone) {
    let fighters = zone.batch(|actors| actors.fighting.list());
    throng::gauge!("fighters", fighters.len());
    for &index in &fighters {
        let Some(target) = zone.actors[index].target.and_then(|who| zone.actors.resolve(who)) else {
            zone.actors.set_target(index, None);
            continue;
        };
        swing_at(&mut zone, index, target);
    }
    zone.scratch.give_back(fighters);
}

fn swing_at(zone: &mut Zone, index: u32, target: u32) {
    let now = zone.now();
    let row = &zone.actors[index];
    let ready = row.swing_tick <= now && row.casting.is_none() && !row.is_stunned(now);
    let wanted = !row.is_player() || zone.roster.attacks(row.player);
    let (kind, level) = (row.kind(), row.look.level);
    let is_struck_at = ready && wanted && zone.actors.are_enemies(index, target);
    if !(is_struck_at && zone.is_in_reach(index, target, REACH_M)) {
        return;
    }
    let traits = Traits::of(kind);
    zone.actors[index].swing_tick = now + zone.ticks(traits.swing_ms);
    zone.set_filtered(index, false);
    zone.actors[index].fought_tick = now + 1;
    zone.actors.play(index, Gesture::Swing);
    throng::count!("swings");
    if zone.chance() >= HIT_CHANCE {
        return;
    }
    let critical = zone.chance() < CRITICAL_CHANCE;
    let spread = 0.75 + 0.5 * zone.chance();
    let amount = (traits.damage_at(level) as f32 * spread * if critical { 2.0 } else { 1.0 }) as i32;
    let (source, who): (Who, Who) = (zone.actors.who(index), zone.actors.who(target));
    zone.strike(Blow { target: who, source: Some(source), amount: amount.max(1), means: Means::Melee, critical });
    if kind == Kind::Plaguebearer && zone.chance() < INFECT_CHANCE {
        zone.infect(target);
    }
}
