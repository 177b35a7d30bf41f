//! Shooting: what a shot hits, and what it costs the victim.
//!
//! The weapon's own clock has decided before whether there is a shot at all
//! ([`Weapon::fire`](crate::weapons::Weapon::fire)), and all shots of the tick wait in one list
//! ([`Shots`](crate::shots::Shots)). The cast decides what a shot meets within the weapon's range, a player's as that
//! saw it and an NPC's as it is, and the world's `Rules` whether that hurts. Nothing about a shot comes from a client but
//! the direction of its view and, within limits, the moment that it was shown. Then all are remembered where they stand,
//! for the shots of the next ticks ([`crate::past`]).
//!
//! Damage is applied in the order of the shots, so that the same orders always leave the same world. It is done to who is
//! alive now: nobody dies twice, and who was seen but has left the world by now is missed.
//!
//! What the fallen leave: rounds and such ([`crate::loot`]), and gear ([`crate::ground`]). Players lose theirs where players
//! fight players.

use bevy_ecs::prelude::*;
use throng::prelude::*;

use crate::{
    analytics::PlayerDowned,
    arena::{Arena, ArenaParts},
    components::Vitals,
    gear::{Bag, GearKind},
    handling::tell_bag,
    lives::LifeClock,
    npc::Senses,
    passport::{Passport, PlayerClient},
    scene::Scene,
    weapons::Weapon,
};

/// Whether there is anything for [`resolve`] to do.
pub fn somebody_fired(arena: Res<Arena>) -> bool {
    arena.shots.count() > 0
}

/// What a shot may change of whom it hits.
type Victim = (
    &'static mut Vitals,
    &'static mut LifeClock,
    &'static Weapon,
    Option<&'static mut Senses>,
    Option<(&'static mut Passport, &'static PlayerClient, &'static mut Bag)>,
);

/// Casts the tick's shots and hurts who was hit.
pub fn resolve(
    tick: Res<TickInfo>,
    scene: Res<Scene>,
    mut arena: ResMut<Arena>,
    mut outbox: ResMut<Outbox>,
    mut victims: Query<Victim>,
) {
    let ArenaParts { shots, actors, doors, loot, ground, ledger, past, .. } = &mut **arena;
    throng::count!("shots", shots.count());
    throng::count!("casts", u64::from(shots.cast(&scene.level.geometry, &actors.capsules(), past.history())));

    for (order, target) in shots.landed(doors) {
        if !scene.rules.may_hurt(actors.side(order.shooter), actors.side(target)) {
            continue;
        }
        let Ok(victim) = victims.get_mut(actors.entity(target)) else { continue };
        let (mut vitals, mut life, weapon, senses, player) = victim;
        if !vitals.alive {
            continue; // by an earlier shot of this tick
        }
        throng::count!("hits");
        if let Some(mut senses) = senses {
            senses.was_hurt(tick.tick, order.shooter);
        }
        vitals.health = vitals.health.saturating_sub(order.weapon.traits().damage);
        if vitals.health > 0 {
            continue;
        }
        vitals.alive = false;
        life.ends(tick.tick, tick.rate.0);
        let (is_npc, feet) = (actors.side(target).npc, actors.feet(target));
        if is_npc && let Some(feet) = feet {
            loot.leave(feet, target, weapon.kind, tick.tick, tick.rate.0);
        }
        actors.take_away(target);
        throng::count!("deaths");
        if let Some((mut killed, client, mut bag)) = player {
            killed.deaths += 1;
            let gear_before = bag.gear.len();
            if scene.rules.players_fight_players
                && !bag.gear.is_empty()
                && let Some(feet) = feet
            {
                for gear in bag.gear.take_all().iter() {
                    ground.fall(feet, gear);
                    throng::count!("gear_lost_by_dying");
                }
                tell_bag(&mut outbox, *client, &bag);
            }
            let [x_m, y_m, z_m] = feet.unwrap_or_default().into();
            let gear_lost = (gear_before - bag.gear.len()) as u32;
            let by_npc = actors.side(order.shooter).npc;
            PlayerDowned { player: killed.name, by_npc, gear_lost, x_m, y_m, z_m }.emit();
        }
        if let Ok((.., Some((mut killer, ..)))) = victims.get_mut(actors.entity(order.shooter)) {
            killer.kills += 1;
            if is_npc && let Some(feet) = feet {
                let gear = ledger.create(&mut outbox, |id| GearKind::by_number(id.number + u64::from(target.0)));
                ground.fall(feet, gear);
                throng::count!("gear_found");
            }
        }
    }
    shots.clear();
}

/// Whether there are players who might fire in the next tick.
pub fn players_may_fire(scene: Res<Scene>, arena: Res<Arena>) -> bool {
    !scene.rules.players_are_safe && !arena.actors.players().is_empty()
}

/// Records where everybody who lives stands at the end of this tick, which is what clients are told.
pub fn remember(tick: Res<TickInfo>, mut arena: ResMut<Arena>) {
    let ArenaParts { actors, past, .. } = &mut **arena;
    past.record(tick.tick, actors.capsules().feet);
}
