//! Shooting: triggers, what shots hit, and what that costs the victim.
//!
//! A shot leaves the shooter's eye along its view, turned by recoil and spread ([`crate::weapons`]), and is cast at
//! where everybody was when the shooter saw it ([`crate::past`]). Nothing about a shot comes from a client but the
//! direction of its view and the moment that it saw, which is held against what the server knows. Shots of a tick hurt
//! in the order of their seats, so that the same inputs always leave the same match; who has been killed by one of them
//! has still fired its own.

use throng::prelude::*;
use throng_rewind::past_casts::PastTarget;
use throng_rewind::view_limits::ViewVerdict;

use crate::{
    analytics::{Kill, part_name, weapon_name},
    chance::Chance,
    components::{Player, Pose, Vitals},
    controls::Controls,
    economy::{OF_KILL, Purse, hurt},
    movement::{Motion, RUN_M_PER_S},
    past::{Past, Shot, judged_at, part_of},
    protocol::{HitConfirmed, Input, Killed, ShotFired, TICK_HZ, direction_of},
    rounds::Rounds,
    scene::Scene,
    seats::{Seats, Senses},
    spike::SpikeState,
    teams::TeamId,
    weapons::{BodyPart, Trigger, Weapon, recoil_rad, stray_rad},
};

/// Whether players can be hurt.
pub fn a_round_is_played(rounds: Res<Rounds>) -> bool {
    rounds.phase().is_live()
}

/// Of a player: what a shot reads and writes.
type Shooter = (
    Entity,
    &'static Player,
    &'static Vitals,
    &'static Controls,
    &'static Motion,
    &'static Pose,
    &'static mut Weapon,
    &'static mut Senses,
);

/// Pulls the triggers that are held.
pub fn fire(
    tick: Res<TickInfo>,
    spike_state: Res<SpikeState>,
    mut chance: ResMut<Chance>,
    mut past: ResMut<Past>,
    mut events: ResMut<Events>,
    mut players: Query<Shooter>,
) {
    for (entity, player, vitals, controls, motion, pose, mut weapon, mut senses) in &mut players {
        let is_firing = vitals.is_alive && controls.input().is_some_and(Input::fire);
        if !is_firing || spike_state.is_worked_by(player.seat) {
            continue;
        }
        let Trigger::Fired(shots_before) = weapon.fire(tick.tick, TICK_HZ) else { continue };
        let judged = judged_at(&mut senses.view, tick.tick, controls.seen());
        let spread_rad = weapon.kind.spread_rad(motion.speed_m_per_s() / RUN_M_PER_S, motion.is_on_ground);
        let [right, up] = recoil_rad(weapon.kind, shots_before);
        let [stray_right, stray_up] = stray_rad(spread_rad, &mut *chance);
        let (yaw, pitch) = (pose.yaw + right + stray_right, pose.pitch + up + stray_up);
        let shot = Shot { seat: player.seat, weapon: weapon.kind };
        past.fire(shot, motion.eye(), direction_of(yaw, pitch), judged.at);
        let fired = ShotFired { seat: player.seat, weapon: weapon.kind, yaw, pitch };
        events.send(&fired, Audience::Around(entity), "duel.shot");
        count!("shots");
        count!("shots.views_moved", judged.verdict != ViewVerdict::AsClaimed);
    }
}

/// Whether there is anything for [`resolve`] to do.
pub fn somebody_fired(past: Res<Past>) -> bool {
    past.waiting() > 0
}

/// Casts the tick's shots and hurts who was hit.
pub fn resolve(
    scene: Res<Scene>,
    mut past: ResMut<Past>,
    mut seats: ResMut<Seats>,
    mut events: ResMut<Events>,
    mut players: Query<(&mut Vitals, &mut Purse)>,
) {
    for (shot, hit) in past.cast(&scene.map.geometry) {
        let PastTarget::Body { slot, limb } = hit.target else { continue };
        let (seat, part) = (slot as u8, part_of(limb));
        if TeamId::of_seat(seat) == TeamId::of_seat(shot.seat) {
            continue;
        }
        let Ok((mut vitals, _)) = players.get_mut(seats.entity(seat)) else { continue };
        if !vitals.is_alive {
            continue; // by an earlier shot of this tick, or since the moment that the shooter saw
        }
        let damage = shot.weapon.damage(part);
        let is_killed = hurt(&mut vitals, damage);
        count!("hits");
        if let Some(client) = seats.client(shot.seat) {
            events.send(&HitConfirmed { part, damage }, Audience::Client(client), "duel.hit");
        }
        if is_killed {
            *vitals = Vitals::DEAD;
            note_kill(shot, seat, part, &mut seats, &mut events);
            if let Ok((_, mut purse)) = players.get_mut(seats.entity(shot.seat)) {
                purse.earn(OF_KILL);
            }
        }
    }
}

/// Everybody is told who killed whom, and both keep count of it.
fn note_kill(shot: Shot, victim: u8, part: BodyPart, seats: &mut Seats, events: &mut Events) {
    seats.passports[usize::from(shot.seat)].kills += 1;
    seats.passports[usize::from(victim)].deaths += 1;
    let killed = Killed { seat: victim, by: Some(shot.seat), weapon: Some(shot.weapon), part };
    events.send(&killed, Audience::Everyone, "duel.kill");
    count!("kills");
    Kill { by: shot.seat, victim, weapon: weapon_name(shot.weapon), part: part_name(part) }.emit();
}
