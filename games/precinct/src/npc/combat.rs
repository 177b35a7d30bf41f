//! Combat of NPCs: pulling the trigger, through the same weapons and casts that players use.
//!
//! A thought decides on a burst; this system fires its rounds as fast as the weapon allows, at the chest of the target
//! where it stands now. Whether it hits is the shot's affair: spread, walls and whoever runs into the line.

use bevy_ecs::prelude::*;
use throng::prelude::*;

use super::{Moment, Senses};
use crate::{
    arena::{Arena, ArenaParts},
    components::{Action, ActionKind, CHEST, EYE, Standing},
    weapons::{Trigger, Weapon, endless},
};

/// Fires for those who are in the middle of a burst: the shooters.
pub fn fire(
    tick: Res<TickInfo>,
    mut arena: ResMut<Arena>,
    mut rng: ResMut<WorldRng>,
    mut npcs: Query<(&Standing, &mut Weapon, &mut Senses, &mut Action)>,
) {
    let ArenaParts { shots, actors, .. } = &mut **arena;
    for index in 0..shots.shooters.len() {
        let slot = shots.shooters[index];
        let Ok((standing, mut weapon, mut senses, mut action)) = npcs.get_mut(actors.entity(slot)) else { continue };
        let Some(target) = senses.target.and_then(|target| actors.feet(target)) else {
            weapon.burst = 0;
            continue;
        };
        match weapon.fire(tick.tick, tick.rate.0, endless) {
            Trigger::Fired => {
                weapon.burst = weapon.burst.saturating_sub(1);
                senses.fought = Moment::at(tick.tick);
                let feet = standing.0.position();
                shots.fire((slot, weapon.kind), feet, target + CHEST - (feet + EYE), None, &mut rng.0);
                action.happened(ActionKind::Shot);
            }
            Trigger::Reloading => action.happened(ActionKind::Reloaded),
            Trigger::NotReady | Trigger::Empty => {}
        }
    }
}
