//! Roll call: the living are written into the world's lists, where the rest of the tick finds them.
//!
//! Perception and shots ask about everybody at once, so everybody's place goes into the columns ([`Actors::place`]). Most
//! NPCs do nothing else in a tick: those whose turn it is to look around, and those in the middle of a burst, are listed,
//! and only they are looked up again.
//!
//! [`Actors::place`]: crate::actors::Actors::place

use bevy_ecs::{prelude::*, query::QueryData};
use throng::prelude::*;

use super::Pace;
use crate::{
    arena::{Arena, ArenaParts},
    components::{Character, Slot, Standing, Vitals},
    weapons::Weapon,
};

/// Of an NPC: what a roll call writes down.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct Called {
    entity: Entity,
    slot: &'static Slot,
    character: &'static Character,
    vitals: &'static Vitals,
    standing: &'static Standing,
    weapon: &'static Weapon,
    pace: &'static mut Pace,
}

/// Writes down who lives, where, and who has something to do in this tick.
pub fn call_roll(tick: Res<TickInfo>, mut arena: ResMut<Arena>, mut npcs: Query<Called>) {
    let ArenaParts { actors, sight, shots, .. } = &mut **arena;
    sight.askers.clear();
    shots.shooters.clear();
    for mut npc in &mut npcs {
        if !npc.vitals.alive {
            continue;
        }
        actors.place(*npc.slot, npc.entity, npc.standing.0, npc.character.into());
        if npc.pace.take_look(tick.tick, tick.rate.0) {
            sight.askers.push(npc.slot.0.into());
        }
        if npc.weapon.burst > 0 {
            shots.shooters.push(*npc.slot);
        }
    }
}
