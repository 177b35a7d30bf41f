//! Players: what they do in a tick, as their clients ask.
//!
//! Inputs are read once a tick for all players. Then each player stands up, walks, enters a portal, opens a door, picks up what lies there, heals or fires. How players come
//! and go is in [`crate::arrivals`]. A client is told what its player carries when it arrives and when something came or
//! went that it cannot work out from its player's shots and reloads: a message of some 10 bytes now and then is less
//! than a component that all who are near would be told of.

use bevy_ecs::{prelude::*, query::QueryData};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;

use crate::{
    arena::{Arena, ArenaParts, Leaver},
    components::{Action, ActionKind, Character, HEALTH_MAX, Pose, Slot, Standing, Vitals},
    inventory::{Inventory, Item},
    lives::{LifeClock, begin_life},
    movement::{Controls, step},
    passport::{Passport, PlayerClient},
    portals::PortalWatch,
    protocol::{Input, Pockets},
    scene::Scene,
    shots::direction_of,
    weapons::{Trigger, Weapon},
};

/// What a medkit heals (percent), and how long the hands are busy with it. (ms)
const MEDKIT_HEALTH: u8 = 50;
const MEDKIT_MS: u32 = 2_000;

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
    pub inventory: &'static mut Inventory,
    pub action: &'static mut Action,
    pub portal_watch: &'static mut PortalWatch,
}

/// What all players of a world do in a tick, player by player: stand up, walk, leave through a portal or fire.
pub fn play(
    tick: Res<TickInfo>,
    scene: Res<Scene>,
    inputs: Inputs<Input>,
    mut arena: ResMut<Arena>,
    mut rng: ResMut<WorldRng>,
    mut outbox: ResMut<Outbox>,
    mut players: Query<PlayerRow>,
) {
    let (arena, rng) = (&mut **arena, &mut rng.0);
    read_inputs(&inputs, &mut players);
    for mut player in &mut players {
        let velocity = player.controls.settle(tick.dt_s);
        if !player.vitals.alive {
            if !player.life.is_over(tick.tick) {
                continue;
            }
            let PlayerRowItem { vitals, pose, standing, weapon, .. } = &mut player;
            begin_life(scene.places.any_spawn(rng), &scene, rng, vitals, pose, standing, weapon);
            if player.inventory.equip(player.weapon.kind) {
                tell_pockets(&mut outbox, *player.client, &player.inventory);
            }
        }
        let (yaw, _) = player.controls.aim();
        let ground = (&scene.level.navmesh, &arena.doors);
        step(velocity, yaw, tick.dt_s, ground, &mut player.pose, &mut player.standing);
        let standing = player.standing.0;
        arena.actors.place(*player.slot, player.entity, standing, player.character.into());

        let destination = player.portal_watch.pass(&scene.portals, scene.here, standing.position());
        if let Some(through) = destination
            && let Some(to) = scene.worlds.world(through, arena.homes.world(player.passport.home))
        {
            arena.leavers.push(Leaver { client: player.client.0, player: player.entity, through, to });
            continue;
        }
        if player.controls.take_grip(tick.tick, tick.rate.0)
            && let Some(door) = arena.doors.in_reach(standing.position())
        {
            arena.doors.open(door, &tick);
            throng::count!("doors_opened_by_players");
        }
        let is_richer = arena.loot.pick_up(standing.position(), tick.tick, &mut player.inventory);
        throng::count!("pick_ups", u64::from(is_richer));
        let has_healed = player.controls.heal() && heal(&tick, &mut player);
        throng::count!("medkits_used", u64::from(has_healed));
        let mut is_equipped = false;
        if player.controls.fire() && !scene.rules.players_are_safe {
            let is_at_home = player.passport.home == scene.hideout;
            is_equipped = pull_trigger(&tick, is_at_home, &mut player, arena, rng);
        }
        if is_richer || has_healed || is_equipped {
            tell_pockets(&mut outbox, *player.client, &player.inventory);
        }
    }
}

/// Tells a client what its player carries.
pub fn tell_pockets(outbox: &mut Outbox, client: PlayerClient, inventory: &Inventory) {
    let told = outbox.send(client.0, &Pockets { inventory: *inventory });
    told.expect("what a player carries is within its limits");
}

/// Uses a medkit, if the player has one, needs it and has its hands free.
fn heal(tick: &TickInfo, player: &mut PlayerRowItem) -> bool {
    let is_able = player.vitals.health < HEALTH_MAX && player.weapon.is_ready(tick.tick);
    if !is_able || player.inventory.take(Item::Medkit, 1) == 0 {
        return false;
    }
    player.vitals.health = HEALTH_MAX.min(player.vitals.health + MEDKIT_HEALTH);
    player.weapon.busy(tick.tick, tick.rate.0, MEDKIT_MS);
    true
}

/// Inputs go to their players' controls.
fn read_inputs(inputs: &Inputs<Input>, players: &mut Query<PlayerRow>) {
    for (sender, input) in inputs.read() {
        // Who has left in an earlier tick, or is not here yet, has no player.
        let Some(player) = sender.entity else { continue };
        let taken = players.get_mut(player).is_ok_and(|mut player| player.controls.take(input));
        throng::count!("inputs", taken);
        throng::count!("inputs_excess", !taken);
    }
}

/// Pulls the trigger that a living player holds. At home, who lacks rounds for a magazine is given the usual equipment
/// first; whether that was so.
fn pull_trigger(
    tick: &TickInfo,
    is_at_home: bool,
    player: &mut PlayerRowItem,
    arena: &mut ArenaParts,
    rng: &mut Xoshiro256PlusPlus,
) -> bool {
    let PlayerRowItem { weapon, inventory, .. } = player;
    let (kind, mut is_equipped) = (weapon.kind, false);
    let from_pockets = |wanted: u8| {
        if is_at_home && Item::rounds_of(kind).is_some_and(|item| inventory.count(item) < wanted.into()) {
            is_equipped = inventory.equip(kind);
        }
        inventory.load(kind, wanted)
    };
    match weapon.fire(tick.tick, tick.rate.0, from_pockets) {
        Trigger::Fired => {
            let (yaw, pitch) = player.controls.aim();
            let feet = player.standing.0.position();
            arena.shots.fire(*player.slot, player.weapon.kind, feet, direction_of(yaw, pitch), rng);
            player.action.happened(ActionKind::Shot);
        }
        Trigger::Reloading => player.action.happened(ActionKind::Reloaded),
        Trigger::Empty => throng::count!("triggers_empty"),
        Trigger::NotReady => {}
    }
    is_equipped
}
