//! Combat of NPCs: pulling the trigger, through the same weapons and casts that players use.
//!
//! A thought decides on a burst; this system fires its rounds as fast as the weapon allows, at the chest of the target
//! where it stands now. Whether it hits is the shot's affair: spread, walls and whoever runs into the line.

use bevy_ecs::system::Query;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;

use super::{Moment, NpcRow};
use crate::{
    arena::ArenaParts,
    components::{ActionKind, CHEST, EYE},
    weapons::{Trigger, endless},
};

/// Fires for those who are in the middle of a burst: the shooters.
pub fn fire(tick: &TickInfo, arena: &mut ArenaParts, rng: &mut Xoshiro256PlusPlus, npcs: &mut Query<NpcRow>) {
    let ArenaParts { shots, actors, .. } = arena;
    for index in 0..shots.shooters.len() {
        let slot = shots.shooters[index];
        let Ok(mut npc) = npcs.get_mut(actors.entity(slot)) else { continue };
        let Some(target) = npc.senses.target.and_then(|target| actors.feet(target)) else {
            npc.weapon.burst = 0;
            continue;
        };
        match npc.weapon.fire(tick.tick, tick.rate.0, endless) {
            Trigger::Fired => {
                npc.weapon.burst = npc.weapon.burst.saturating_sub(1);
                npc.senses.fought = Moment::at(tick.tick);
                let feet = npc.standing.0.position();
                shots.fire(slot, npc.weapon.kind, feet, target + CHEST - (feet + EYE), rng);
                npc.action.happened(ActionKind::Shot);
            }
            Trigger::Reloading => npc.action.happened(ActionKind::Reloaded),
            Trigger::NotReady | Trigger::Empty => {}
        }
    }
}
