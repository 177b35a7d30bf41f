//! Players: what they do in a tick, as their clients ask.
//!
//! Messages are decoded once a tick for all players; a message that makes no sense is dropped and counted. Then each
//! player stands up, walks, leaves through a portal or fires. How players come and go is in [`crate::arrivals`].

use bevy_ecs::{prelude::*, query::QueryData};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;

use crate::{
    arena::Arena,
    components::{Action, ActionKind, Character, Pose, Slot, Standing, Vitals},
    lives::{LifeClock, begin_life},
    movement::{Controls, step},
    passport::Passport,
    portals::PortalWatch,
    protocol::{ClientMessage, Input},
    roster::PlayerClient,
    scene::Scene,
    shots::{Shots, direction_of},
    travel::Traveller,
    weapons::{Trigger, Weapon},
};

/// A player's row, as its own system sees it.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct PlayerRow {
    entity: Entity,
    pub slot: &'static Slot,
    pub client: &'static PlayerClient,
    pub passport: &'static Passport,
    pub character: &'static Character,
    pub life: &'static LifeClock,
    pub controls: &'static mut Controls,
    pub pose: &'static mut Pose,
    pub standing: &'static mut Standing,
    pub vitals: &'static mut Vitals,
    pub weapon: &'static mut Weapon,
    pub action: &'static mut Action,
    pub portal_watch: &'static mut PortalWatch,
}

/// What all players of a world do in a tick, player by player: stand up, walk, leave through a portal or fire.
pub fn play(
    tick: Res<TickInfo>,
    scene: Res<Scene>,
    inbox: Res<Inbox>,
    mut arena: ResMut<Arena>,
    mut rng: ResMut<WorldRng>,
    mut outbox: ResMut<Outbox>,
    mut players: Query<PlayerRow>,
) {
    let (arena, rng) = (&mut *arena, &mut rng.0);
    read_messages(&inbox, arena, &mut players);
    for mut player in &mut players {
        let velocity = player.controls.settle(tick.dt_s);
        if !player.vitals.alive {
            if !player.life.is_over(tick.tick) {
                continue;
            }
            let PlayerRowItem { vitals, pose, standing, weapon, .. } = &mut player;
            begin_life(scene.places.any_spawn(rng), &scene, rng, vitals, pose, standing, weapon);
        }
        let (yaw, _) = player.controls.aim();
        step(velocity, yaw, tick.dt_s, &scene.level.navmesh, &mut player.pose, &mut player.standing);
        let standing = player.standing.0;
        arena.actors.place(*player.slot, player.entity, standing, player.character.into());

        let destination = player.portal_watch.pass(&scene.portals, scene.here, standing.position());
        let home = player.passport.home;
        if let Some(world) = destination.and_then(|destination| scene.worlds.world(destination, home)) {
            let traveller = Traveller { health: player.vitals.health, passport: *player.passport };
            // Within its limits, or the player stays.
            if outbox.travel(player.client.0, world, &traveller).is_ok() {
                arena.leavers.push(player.client.0);
                throng::count!("travels");
            }
        } else if player.controls.fire() && !scene.rules.players_are_safe {
            pull_trigger(&tick, &mut player, &mut arena.shots, rng);
        }
    }
}

/// Decodes what clients sent: inputs to their controls, words to the [`Sayings`](crate::sayings::Sayings).
fn read_messages(inbox: &Inbox, arena: &mut Arena, players: &mut Query<PlayerRow>) {
    let Arena { roster, sayings, .. } = arena;
    for message in inbox.iter() {
        // Messages of a client that left in an earlier tick have no addressee.
        let Some(player) = roster.entity(message.client) else { continue };
        match message.kind {
            MessageKind::Input { .. } => {
                let Ok(input) = Input::decode(message.bytes) else {
                    throng::count!("inputs_refused");
                    continue;
                };
                let taken = players.get_mut(player).is_ok_and(|mut player| player.controls.take(&input));
                throng::count!("inputs", taken);
                throng::count!("inputs_excess", !taken);
            }
            MessageKind::Reliable => match ClientMessage::decode(message.bytes) {
                Ok(said) => sayings.hear(player, &said),
                Err(_) => throng::count!("messages_refused"),
            },
        }
    }
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
