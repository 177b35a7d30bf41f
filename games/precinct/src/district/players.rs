//! Players of a district: they come, walk and go. Who arrives stands where it stands until the ground under it is streamed.

use bevy_ecs::prelude::*;
use glam::Vec3;
use rand::Rng;
use throng::prelude::*;
use throng_replication::ecs::Replicated;

use super::{
    body::{FarPose, Footing},
    level::{LOTS_HALF, crossing},
    streaming::Streets,
};
use crate::{
    components::{Action, Character, Faction, Vitals},
    lives::LifeClock,
    movement::Controls,
    passport::PlayerClient,
    protocol::Input,
    weapons::WeaponKind,
};

/// How far the ground may be from where somebody wants to stand. (m)
const REACH_M: f32 = 8.0;
/// Crossings around a district's own at which its players arrive.
const CROSSINGS: i32 = 2;

/// Makes entities for those who arrived.
pub fn come(
    arrivals: Res<Arrivals>,
    streets: Res<Streets>,
    mut rng: ResMut<WorldRng>,
    mut outbox: ResMut<Outbox>,
    mut commands: Commands,
) {
    for arrival in &arrivals.0 {
        let feet = start(streets.ordinal(), &mut rng.0);
        let character = Character { npc: false, faction: Faction::Agents, weapon: WeaponKind::Rifle };
        let player = commands
            .spawn((
                (Replicated::default(), FarPose::new(feet, 0.0), Vitals::FULL, character, Action::NONE),
                (PlayerClient(arrival.client), Footing::default(), Controls::default(), LifeClock::default()),
            ))
            .id();
        outbox.set_player(arrival.client, player);
    }
}

/// Where somebody arrives: bands begin in different parts of the level.
fn start(ordinal: u16, rng: &mut impl Rng) -> Vec3 {
    let spread = i32::from(ordinal) * 7;
    let width = 2 * (LOTS_HALF - CROSSINGS);
    // The first in the middle.
    let around = [spread, spread / width * 5].map(|number| (number + width / 2) % width - width / 2);
    let [column, row] = around.map(|number| number + rng.random_range(-CROSSINGS..=CROSSINGS));
    let aside = Vec3::new(rng.random_range(-4.0..4.0), 0.0, rng.random_range(-4.0..4.0));
    crossing(column, row) + aside
}

/// Takes away those whose connections ended.
pub fn leave(departures: Res<Departures>, players: Query<(Entity, &PlayerClient)>, mut commands: Commands) {
    for (entity, _) in players.iter().filter(|(_, client)| departures.0.contains(&client.0)) {
        commands.entity(entity).despawn();
    }
}

/// Inputs go to their players' controls.
pub fn read_inputs(inputs: Inputs<Input>, mut players: Query<&mut Controls>) {
    for (sender, input) in inputs.read() {
        let Some(player) = sender.entity else { continue };
        let Ok(mut controls) = players.get_mut(player) else { continue };
        let taken = controls.take(input);
        throng::count!("inputs", taken);
        throng::count!("inputs_excess", !taken);
    }
}

/// Puts those on the ground who wait for it.
pub fn settle(streets: Res<Streets>, mut waiting: Query<(&mut FarPose, &mut Footing), With<PlayerClient>>) {
    for (mut pose, mut footing) in &mut waiting {
        if footing.0.is_some() {
            continue;
        }
        if let Ok(ground) = streets.sectors.nearest(pose.feet(), REACH_M) {
            pose.set_feet(ground.position());
            footing.0 = Some(ground);
        }
    }
}

/// The dead whose time has come begin their next lives, somewhere in the streamed part.
pub fn rise(
    tick: Res<TickInfo>,
    streets: Res<Streets>,
    mut rng: ResMut<WorldRng>,
    mut dead: Query<(&LifeClock, &mut Vitals, &mut FarPose, &mut Footing), With<Replicated>>,
) {
    for (life, mut vitals, mut pose, mut footing) in &mut dead {
        if vitals.alive || !life.is_over(tick.tick) {
            continue;
        }
        let Some(ground) = streets.sectors.random_point(&mut rng.0) else { continue };
        *vitals = Vitals::FULL;
        pose.set_feet(ground.position());
        footing.0 = Some(ground);
    }
}

/// Moves the living by a step.
pub fn walk(
    tick: Res<TickInfo>,
    streets: Res<Streets>,
    mut players: Query<(&mut Controls, &Vitals, &mut FarPose, &mut Footing)>,
) {
    for (mut controls, vitals, mut pose, mut footing) in &mut players {
        let [x, z] = controls.settle(tick.dt_s);
        if !vitals.alive {
            continue;
        }
        let (yaw, _) = controls.aim();
        if pose.yaw != yaw {
            pose.yaw = yaw;
        }
        let Some(from) = footing.0.filter(|_| x != 0.0 || z != 0.0) else { continue };
        let to = from.position() + Vec3::new(x, 0.0, z) * tick.dt_s;
        match streets.sectors.walk_sliding(from, to) {
            Some(walk) => {
                footing.0 = Some(walk.end);
                pose.set_feet(walk.end.position());
            }
            // Its ground is gone: it is looked for anew.
            None => footing.0 = None,
        }
    }
}
