//! Shooting: who fires at what, what is hit, and what it costs the victim.
//!
//! Players and NPCs put [`ShotOrder`]s into one list; the shots of a tick are then cast in one
//! batch against the level and everybody in it. The weapon's own clock has decided before whether there is a shot at
//! all ([`Weapon::fire`](crate::weapons::Weapon::fire)), the cast decides what it meets within the weapon's
//! range, and the world's `Rules` whether that hurts. Nothing about a shot comes from a client but the
//! direction of its view.
//!
//! Damage is applied in the order of the shots, so that the same orders always leave the same world. Cost:
//! about 0.3 µs a shot and 2 ns for each character in the world.

use bevy_ecs::prelude::*;
use glam::Vec3;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;
use throng_query::casts::{Ray, Shot, ShotHit, ShotTarget, cast_rays_against_capsules};

use crate::{
    actors::EYE,
    arena::Arena,
    components::{ActionKind, Slot, Vitals},
    lives::LifeClock,
    npc::Senses,
    players::{Passport, PlayerRowItem},
    scene::Scene,
    weapons::{Trigger, WeaponKind},
};

/// A shot that has been fired and is to be cast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShotOrder {
    pub shooter: Slot,
    pub weapon: WeaponKind,
    pub ray: Ray,
}

/// The shots of this tick, and room to cast them in.
#[derive(Default)]
pub struct Shots {
    /// NPCs in the middle of a burst.
    pub shooters: Vec<Slot>,
    orders: Vec<ShotOrder>,
    casts: Vec<Shot>,
    hits: Vec<Option<ShotHit>>,
}

impl ShotOrder {
    /// A shot from the eyes of one to the chest of the other, exactly.
    #[cfg(test)]
    pub fn between(shooter: Slot, weapon: WeaponKind, from_feet: Vec3, to_feet: Vec3) -> Self {
        let origin = from_feet + EYE;
        let direction = to_feet + crate::actors::CHEST - origin;
        Self { shooter, weapon, ray: Ray { origin, direction, distance_m_max: weapon.traits().range_m } }
    }
}

impl Shots {
    #[cfg(test)]
    pub fn order(&mut self, order: ShotOrder) {
        self.orders.push(order);
    }

    /// Adds a shot from the eyes of somebody who stands at `feet` towards `aim`, strayed as the weapon does.
    pub fn fire(&mut self, shooter: Slot, weapon: WeaponKind, feet: Vec3, aim: Vec3, rng: &mut Xoshiro256PlusPlus) {
        let traits = weapon.traits();
        let ray =
            Ray { origin: feet + EYE, direction: stray(aim, traits.spread_rad, rng), distance_m_max: traits.range_m };
        self.orders.push(ShotOrder { shooter, weapon, ray });
    }
}

/// The direction of a view. Yaw 0 looks along +z, a quarter turn along +x.
pub fn direction_of(yaw: f32, pitch: f32) -> Vec3 {
    let (sin_yaw, cos_yaw) = yaw.sin_cos();
    let (sin_pitch, cos_pitch) = pitch.sin_cos();
    Vec3::new(sin_yaw * cos_pitch, sin_pitch, cos_yaw * cos_pitch)
}

fn stray(aim: Vec3, spread_rad: f32, rng: &mut Xoshiro256PlusPlus) -> Vec3 {
    if spread_rad <= 0.0 {
        return aim;
    }
    let aside: Vec3 = std::array::from_fn(|_| rng.random_range(-1.0..1.0)).into();
    aim.normalize_or_zero() + aside * spread_rad
}

/// Pulls the trigger that a living player holds.
pub fn pull_trigger(tick: &TickInfo, player: &mut PlayerRowItem, shots: &mut Shots, rng: &mut Xoshiro256PlusPlus) {
    match player.weapon.fire(tick.tick, tick.rate.0) {
        Trigger::Fired => {
            let (yaw, pitch) = player.controls.aim();
            let feet = player.standing.0.position();
            shots.fire(*player.slot, player.weapon.kind, feet, direction_of(yaw, pitch), rng);
            player.action.happened(ActionKind::Shot);
        }
        Trigger::Reloading => player.action.happened(ActionKind::Reloaded),
        Trigger::NotReady => {}
    }
}

/// Whether there is anything for [`resolve`] to do.
pub fn somebody_fired(arena: Res<Arena>) -> bool {
    !arena.shots.orders.is_empty()
}

/// Casts the tick's shots and hurts who was hit.
pub fn resolve(
    tick: Res<TickInfo>,
    scene: Res<Scene>,
    mut arena: ResMut<Arena>,
    mut victims: Query<(&mut Vitals, &mut LifeClock, Option<&mut Senses>, Option<&mut Passport>)>,
) {
    let Arena { shots: Shots { orders, casts, hits, .. }, actors, tally, .. } = &mut *arena;
    casts.clear();
    casts.extend(orders.iter().map(|order| Shot { ray: order.ray, shooter: Some(order.shooter.0.into()) }));
    let counts = cast_rays_against_capsules(&scene.level.geometry, casts, &actors.capsules(), hits);
    tally.shots += orders.len() as u64;
    tally.casts += u64::from(counts.cast);

    for (order, hit) in orders.drain(..).zip(hits) {
        let Some(ShotHit { target: ShotTarget::Character(target), .. }) = *hit else { continue };
        let target = Slot(target as u16);
        if !scene.rules.may_hurt(actors.side(order.shooter), actors.side(target)) {
            continue;
        }
        let Ok((mut vitals, mut life, senses, passport)) = victims.get_mut(actors.entity(target)) else { continue };
        if !vitals.alive {
            continue; // by an earlier shot of this tick
        }
        tally.hits += 1;
        if let Some(mut senses) = senses {
            senses.was_hurt(tick.tick, order.shooter);
        }
        vitals.health = vitals.health.saturating_sub(order.weapon.traits().damage);
        if vitals.health > 0 {
            continue;
        }
        vitals.alive = false;
        life.ends(tick.tick, tick.rate.0);
        actors.take_away(target);
        tally.deaths += 1;
        if let Some(mut killed) = passport {
            killed.deaths += 1;
        }
        if let Ok((_, _, _, Some(mut killer))) = victims.get_mut(actors.entity(order.shooter)) {
            killer.kills += 1;
        }
    }
}
