//! Lives: how players stand up at the beginning of a round, and what they have then.
//!
//! Nobody is spawned or taken away. Who has died keeps its entity and its seat, lies where it fell and is told to
//! nobody but its team, until the next round begins. Who has survived keeps what it carries.

use bevy_ecs::{prelude::*, query::QueryData};
use glam::Vec3;
use throng::prelude::*;

use crate::{
    chance::Chance,
    components::{HEALTH_MAX, Phase, Player, Pose, Vitals},
    controls::Controls,
    economy::Purse,
    movement::Motion,
    rounds::{Change, Rounds},
    scene::{RoundChange, Scene},
    seats::{Seats, Senses},
    settings::MatchRules,
    smoke::Smoke,
    spike::SpikeState,
    teams::{Side, TeamId},
    throwing::Thrown,
    weapons::{Weapon, WeaponKind},
};

/// Of a player: what a new life writes.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct Life {
    entity: Entity,
    player: &'static Player,
    vitals: &'static mut Vitals,
    pose: &'static mut Pose,
    motion: &'static mut Motion,
    controls: &'static mut Controls,
    weapon: &'static mut Weapon,
    purse: &'static mut Purse,
    senses: &'static mut Senses,
}

/// Stands up at a place, and looks to `yaw`. The dead have lost what they carried. Whoever holds it hears of it in this
/// tick.
fn stand_up_at(life: &mut LifeItem, place: Vec3, yaw: f32, outbox: &mut Outbox) {
    let (kind, armour) = if life.vitals.is_alive {
        (life.weapon.kind, life.vitals.armour)
    } else {
        (life.purse.smokes, life.purse.flashes) = (0, 0);
        (WeaponKind::Pistol, 0)
    };
    *life.weapon = Weapon::new(kind);
    *life.vitals = Vitals { health: HEALTH_MAX, armour, is_alive: true };
    life.senses.blind_until_tick = 0;
    life.senses.life += 1;
    *life.motion = Motion::standing(place);
    *life.pose = Pose::new(place, yaw, life.senses.life);
    life.controls.clear();
    outbox.teleported(life.entity);
}

/// A side looks at the middle of the map: east from the attackers' base, and west from the defenders'.
fn yaw_of(side: Side) -> f32 {
    match side {
        Side::Attackers => std::f32::consts::FRAC_PI_2,
        Side::Defenders => 3.0 * std::f32::consts::FRAC_PI_2,
    }
}

/// Whether a round begins in this tick.
pub fn a_round_begins(round_change: Res<RoundChange>) -> bool {
    matches!(round_change.0, Some(Change::RoundBegins { .. }))
}

/// Everybody who is connected stands up in the base of its side.
pub fn stand_up(
    round_change: Res<RoundChange>,
    scene: Res<Scene>,
    rules: Res<MatchRules>,
    rounds: Res<Rounds>,
    mut outbox: ResMut<Outbox>,
    mut players: Query<Life>,
) {
    let is_new_half = round_change.0 == Some(Change::RoundBegins { is_new_half: true });
    for mut life in &mut players {
        let Player { seat, team, is_connected } = *life.player;
        if is_new_half {
            // Whatever one had is gone, as of the dead.
            life.vitals.is_alive = false;
            *life.purse = Purse::FIRST;
        }
        if !is_connected {
            continue;
        }
        let side = Side::of(team, rounds.attackers);
        stand_up_at(&mut life, scene.map.spawn(side, seat.into()), yaw_of(side), &mut outbox);
        if rules.buy_ticks == 0 {
            let LifeItem { purse, weapon, vitals, .. } = &mut life;
            purse.equip(weapon, vitals);
        }
    }
    count!("rounds.begun");
}

/// Before a round is played, who comes stands up at once; later, with the next one.
pub fn stand_up_early(
    scene: Res<Scene>,
    rounds: Res<Rounds>,
    arrivals: Res<Arrivals>,
    seats: Res<Seats>,
    mut outbox: ResMut<Outbox>,
    mut players: Query<Life>,
) {
    if !matches!(rounds.phase(), Phase::WarmUp | Phase::Buy) {
        return;
    }
    for seat in arrivals.0.iter().filter_map(|arrival| seats.of_client(arrival.client)) {
        let Ok(mut life) = players.get_mut(seats.entity(seat)) else { continue };
        let side = Side::of(TeamId::of_seat(seat), rounds.attackers);
        stand_up_at(&mut life, scene.map.spawn(side, seat.into()), yaw_of(side), &mut outbox);
    }
}

/// What the last round has left goes, and one of the attackers has the spike.
pub fn clear_the_field(
    rounds: Res<Rounds>,
    seats: Res<Seats>,
    mut chance: ResMut<Chance>,
    mut spike_state: ResMut<SpikeState>,
    mut smoke: ResMut<Smoke>,
    mut thrown: ResMut<Thrown>,
) {
    smoke.clouds.clear();
    thrown.clear();
    let attackers = rounds.attackers.seats();
    let able = || seats.iter().map(|(seat, _)| seat).filter(|seat| attackers >> seat & 1 == 1);
    let chosen = chance.random_range(0..able().count().max(1));
    spike_state.begin(able().nth(chosen));
}
