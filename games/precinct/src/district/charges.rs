//! Charges: what players throw, and what that does to people and to the level.
//!
//! A charge lies where it came to a wall, and goes off after a second and a half. It hurts all who are near, blows away what is
//! weak (gates, barriers, crates, cars), and where nothing weak was, rubble comes down. Both change this district's level,
//! and no other's: its sectors are baked again, and until they are there the ground is as it was.

use bevy_ecs::prelude::*;
use glam::Vec3;
use throng::prelude::*;
use throng_pack::{List, Pack};
use throng_query::geometry::Aabb;
use throng_query::nav::sectors::Damage;
use throng_replication::table_resource;

use super::{
    body::{FarPose, Footing},
    level::is_weak,
    streaming::Streets,
};
use crate::{
    components::{Action, ActionKind, HEALTH_MAX, Vitals},
    lives::LifeClock,
    movement::Controls,
    passport::PlayerClient,
    weapons::ticks_of,
};

/// How far a charge flies at most. (m)
pub const THROW_M: f32 = 12.0;
/// How long it lies there. (ms)
const FUSE_MS: u32 = 1_500;
/// Between two throws of a player. (ms)
const THROW_MS: u32 = 3_000;
/// How far it reaches. (m)
pub const BLAST_M: f32 = 5.0;
/// Half of a heap's side, and its height. (m)
const RUBBLE_M: [f32; 2] = [1.2, 1.3];
/// Charges that lie in a district at the same time: more are not thrown.
const CHARGES_MAX: usize = 64;

#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "precinct.charge")]
struct Charge {
    goes_off_tick: u32,
    #[pack(via = [f32; 3])]
    place: Vec3,
}

/// Charges that lie in a district, the oldest first.
#[derive(Default)]
pub struct Charges {
    lying: Vec<Charge>,
    /// Who threw last, and when each may throw again: those whose time has come are not in it.
    throwers: Vec<(ClientKey, u32)>,
}

table_resource!(Charges);

/// Charges in a checkpoint.
#[derive(Debug, Clone, Default, Pack)]
#[pack(name = "precinct.charges")]
pub struct SavedCharges {
    lying: List<Charge, CHARGES_MAX>,
    throwers: List<Thrower, CHARGES_MAX>,
}

#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "precinct.thrower")]
struct Thrower {
    client: ClientKey,
    until_tick: u32,
}

impl Charges {
    pub fn save(&self) -> SavedCharges {
        let throwers = self.throwers.iter().map(|&(client, until_tick)| Thrower { client, until_tick });
        SavedCharges {
            lying: self.lying.clone().try_into().expect("no more than lie"),
            throwers: throwers.collect::<Vec<_>>().try_into().expect("no more than may throw"),
        }
    }

    pub fn load(&mut self, saved: SavedCharges) {
        self.lying = saved.lying.into_vec();
        self.throwers = saved.throwers.iter().map(|thrower| (thrower.client, thrower.until_tick)).collect();
    }

    /// Lays a charge; false if as many lie there as may.
    pub fn lay(&mut self, place: Vec3, goes_off_tick: u32) -> bool {
        let fits = self.lying.len() < CHARGES_MAX;
        if fits {
            self.lying.push(Charge { goes_off_tick, place });
        }
        fits
    }
}

/// Triggers are pulled.
pub fn throw(
    tick: Res<TickInfo>,
    streets: Res<Streets>,
    mut charges: ResMut<Charges>,
    mut players: Query<(&Controls, &Vitals, &Footing, &PlayerClient, &mut Action)>,
) {
    charges.throwers.retain(|(_, until_tick)| *until_tick > tick.tick);
    for (controls, vitals, footing, client, mut action) in &mut players {
        let is_busy = |charges: &Charges| charges.throwers.iter().any(|(thrower, _)| *thrower == client.0);
        if !controls.fire() || !vitals.alive || charges.throwers.len() == CHARGES_MAX || is_busy(&charges) {
            continue;
        }
        let Some(from) = footing.0 else { continue };
        let (yaw, _) = controls.shot_aim();
        let to = from.position() + Vec3::new(yaw.sin(), 0.0, yaw.cos()) * THROW_M;
        let Some(flight) = streets.sectors.walk_straight(from, to) else { continue };
        if charges.lay(flight.end.position(), tick.tick + ticks_of(FUSE_MS, tick.rate.0)) {
            charges.throwers.push((client.0, tick.tick + ticks_of(THROW_MS, tick.rate.0)));
            action.happened(ActionKind::Shot);
            throng::count!("charges");
        }
    }
}

/// Charges whose time has come go off.
pub fn explode(
    tick: Res<TickInfo>,
    mut charges: ResMut<Charges>,
    mut streets: ResMut<Streets>,
    mut everybody: Query<(&FarPose, &mut Vitals, &mut LifeClock)>,
) {
    while charges.lying.first().is_some_and(|charge| charge.goes_off_tick <= tick.tick) {
        let place = charges.lying.remove(0).place;
        throng::count!("blasts");
        for (pose, mut vitals, mut life) in &mut everybody {
            let share = 1.0 - pose.feet().distance(place) / BLAST_M;
            if !vitals.alive || share <= 0.0 {
                continue;
            }
            vitals.health = vitals.health.saturating_sub((share * f32::from(HEALTH_MAX)).ceil() as u8);
            if vitals.health == 0 {
                vitals.alive = false;
                life.ends(tick.tick, tick.rate.0);
                throng::count!("deaths");
            }
        }
        damage(&mut streets, place);
    }
}

/// Blows away what is weak and near; where nothing is, rubble comes down.
fn damage(streets: &mut Streets, place: Vec3) {
    let reach = Vec3::splat(BLAST_M);
    let around = Aabb::new(place - reach, place + reach);
    let mut weak = Vec::new();
    streets.sectors.level().geometry().each_overlapping(&around, |solid| weak.extend(is_weak(solid).then_some(solid)));
    weak.sort_unstable();
    let mut gone = 0;
    for solid in weak {
        gone += u64::from(streets.sectors.change(Damage::Removed { solid }));
    }
    throng::count!("solids_blown_away", gone);
    let [half_m, high_m] = RUBBLE_M;
    let heap = Vec3::new(half_m, 0.0, half_m);
    let is_near =
        |change: &Damage| matches!(change, Damage::Added { min, .. } if (*min + heap).distance(place) < BLAST_M);
    if gone == 0 && !streets.sectors.damage().iter().any(is_near) {
        let change = Damage::Added { min: place - heap - Vec3::Y * 0.1, max: place + heap + Vec3::Y * high_m };
        throng::count!("heaps_of_rubble", streets.sectors.change(change));
    }
}
