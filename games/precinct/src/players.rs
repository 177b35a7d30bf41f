//! Players: what they do in a tick, as their clients ask.
//!
//! Each line is a system that goes through all players, in this order:
//!
//! ```text
//!   read_inputs     what clients want goes to their players' controls
//!   rise            the dead whose time has come begin their next lives
//!   walk            the living go a step, and their places are written into the columns
//!   enter_portals   who stands in a portal will leave, and does nothing more in this tick
//!   open_doors      hands go to doors, in worlds that have any
//!   pick_up         what lies there goes into pockets
//!   heal            medkits are used
//!   fire            triggers are pulled
//! ```
//!
//! None runs where nobody is. How players come and go is in [`crate::arrivals`]. A client is told what its player carries
//! when it arrives and when something came or went that it cannot work out from its player's shots and reloads: a message
//! of some 10 bytes now and then is less than a component that all who are near would be told of.

use bevy_ecs::{prelude::*, query::QueryData};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;
use throng_rewind::{
    ecs::Shoots,
    view_limits::{ViewLimits, ViewVerdict},
};

use crate::{
    arena::{Arena, ArenaParts, Leaver},
    components::{Action, ActionKind, Character, HEALTH_MAX, Pose, Slot, Standing, Vitals},
    inventory::{Inventory, Item},
    lives::{LifeClock, begin_life},
    movement::{Controls, step},
    passport::{Passport, PlayerClient},
    past::claim_of,
    portals::PortalWatch,
    protocol::{Input, Pockets},
    scene::Scene,
    shots::{Shots, direction_of},
    weapons::{Trigger, Weapon},
};

/// What a medkit heals (percent), and how long the hands are busy with it. (ms)
const MEDKIT_HEALTH: u8 = 50;
const MEDKIT_MS: u32 = 2_000;

/// Whether there is anybody for the systems below.
pub fn some_are_here(arena: Res<Arena>) -> bool {
    !arena.actors.players().is_empty()
}

/// Inputs go to their players' controls.
pub fn read_inputs(tick: Res<TickInfo>, inputs: Inputs<Input>, mut players: Query<(&mut Controls, &mut Shoots)>) {
    for (sender, input) in inputs.read() {
        // Who has left in an earlier tick, or is not here yet, has no player.
        let Some(player) = sender.entity else { continue };
        let Ok((mut controls, mut shoots)) = players.get_mut(player) else { continue };
        let taken = controls.take(input);
        if let Some(seen) = sender.seen.filter(|_| taken && input.fire()) {
            shoots.0.claims(tick.tick, claim_of(seen));
        }
        throng::count!("inputs", taken);
        throng::count!("inputs_excess", !taken);
    }
}

/// Of a player: what a new life writes.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct PlayerLife {
    client: &'static PlayerClient,
    life: &'static LifeClock,
    vitals: &'static mut Vitals,
    pose: &'static mut Pose,
    standing: &'static mut Standing,
    weapon: &'static mut Weapon,
    inventory: &'static mut Inventory,
}

/// The dead whose time has come begin their next lives, somewhere else and with the usual equipment.
pub fn rise(
    tick: Res<TickInfo>,
    scene: Res<Scene>,
    mut rng: ResMut<WorldRng>,
    mut outbox: ResMut<Outbox>,
    mut players: Query<PlayerLife>,
) {
    let rng = &mut rng.0;
    for mut player in &mut players {
        if player.vitals.alive || !player.life.is_over(tick.tick) {
            continue;
        }
        let PlayerLifeItem { vitals, pose, standing, weapon, .. } = &mut player;
        begin_life(scene.places.any_spawn(rng), &scene, rng, vitals, pose, standing, weapon);
        if player.inventory.equip(player.weapon.kind) {
            tell_pockets(&mut outbox, *player.client, &player.inventory);
        }
    }
}

/// Of a player: what a step reads and writes.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct Walker {
    entity: Entity,
    slot: &'static Slot,
    character: &'static Character,
    vitals: &'static Vitals,
    controls: &'static mut Controls,
    pose: &'static mut Pose,
    standing: &'static mut Standing,
}

/// Moves the living by a step. What the dead wish for runs out as everybody's does.
pub fn walk(tick: Res<TickInfo>, scene: Res<Scene>, mut arena: ResMut<Arena>, mut players: Query<Walker>) {
    let ArenaParts { actors, doors, .. } = &mut **arena;
    for mut player in &mut players {
        let velocity = player.controls.settle(tick.dt_s);
        if !player.vitals.alive {
            continue;
        }
        let (yaw, _) = player.controls.aim();
        let ground = (&scene.level.navmesh, &*doors);
        step(velocity, yaw, tick.dt_s, ground, &mut player.pose, &mut player.standing);
        actors.place(*player.slot, player.entity, player.standing.0, player.character.into());
    }
}

/// Lists those whom a portal takes: they leave at the end of the tick, if they live to see it.
pub fn enter_portals(
    scene: Res<Scene>,
    mut arena: ResMut<Arena>,
    mut players: Query<(Entity, &PlayerClient, &Passport, &Vitals, &Standing, &mut PortalWatch)>,
) {
    let ArenaParts { homes, leavers, .. } = &mut **arena;
    for (player, client, passport, vitals, standing, mut portal_watch) in &mut players {
        if !vitals.alive {
            continue;
        }
        let destination = portal_watch.pass(&scene.portals, scene.here, standing.0.position());
        if let Some(through) = destination
            && let Some(to) = scene.worlds.world(through, homes.world(passport.home))
        {
            leavers.push(Leaver { client: client.0, player, through, to });
        }
    }
}

/// Opens the doors that hands go to. For worlds with doors.
pub fn open_doors(
    tick: Res<TickInfo>,
    mut arena: ResMut<Arena>,
    mut players: Query<(Entity, &Vitals, &Standing, &mut Controls)>,
) {
    let ArenaParts { doors, leavers, .. } = &mut **arena;
    for (player, vitals, standing, mut controls) in &mut players {
        let is_able = vitals.alive && !is_leaving(player, leavers);
        if is_able
            && controls.take_grip(tick.tick, tick.rate.0)
            && let Some(door) = doors.in_reach(standing.0.position())
        {
            doors.open(door, &tick);
            throng::count!("doors_opened_by_players");
        }
    }
}

/// What lies within reach goes into pockets.
pub fn pick_up(
    tick: Res<TickInfo>,
    mut arena: ResMut<Arena>,
    mut outbox: ResMut<Outbox>,
    mut players: Query<(Entity, &PlayerClient, &Vitals, &Standing, &mut Inventory)>,
) {
    let ArenaParts { loot, leavers, .. } = &mut **arena;
    for (player, client, vitals, standing, mut inventory) in &mut players {
        if !vitals.alive || is_leaving(player, leavers) {
            continue;
        }
        let is_richer = loot.pick_up(standing.0.position(), tick.tick, &mut inventory);
        throng::count!("pick_ups", is_richer);
        if is_richer {
            tell_pockets(&mut outbox, *client, &inventory);
        }
    }
}

/// Uses a medkit for each who wants it, has one, needs it and has its hands free.
pub fn heal(
    tick: Res<TickInfo>,
    arena: Res<Arena>,
    mut outbox: ResMut<Outbox>,
    mut players: Query<(Entity, &PlayerClient, &Controls, &mut Vitals, &mut Weapon, &mut Inventory)>,
) {
    for (player, client, controls, mut vitals, mut weapon, mut inventory) in &mut players {
        if !vitals.alive || !controls.heal() || is_leaving(player, &arena.leavers) {
            continue;
        }
        let is_able = vitals.health < HEALTH_MAX && weapon.is_ready(tick.tick);
        let is_healed = is_able && inventory.take(Item::Medkit, 1) > 0;
        throng::count!("medkits_used", is_healed);
        if is_healed {
            vitals.health = HEALTH_MAX.min(vitals.health + MEDKIT_HEALTH);
            weapon.busy(tick.tick, tick.rate.0, MEDKIT_MS);
            tell_pockets(&mut outbox, *client, &inventory);
        }
    }
}

/// Of a player: what a shot reads and writes.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct Shooter {
    entity: Entity,
    slot: &'static Slot,
    client: &'static PlayerClient,
    passport: &'static Passport,
    vitals: &'static Vitals,
    standing: &'static Standing,
    controls: &'static Controls,
    shoots: &'static mut Shoots,
    weapon: &'static mut Weapon,
    inventory: &'static mut Inventory,
    action: &'static mut Action,
}

/// Pulls the triggers that are held, where there is anybody to hurt.
pub fn fire(
    tick: Res<TickInfo>,
    scene: Res<Scene>,
    mut arena: ResMut<Arena>,
    mut rng: ResMut<WorldRng>,
    mut outbox: ResMut<Outbox>,
    mut players: Query<Shooter>,
) {
    if scene.rules.players_are_safe {
        return;
    }
    let ArenaParts { shots, past, leavers, .. } = &mut **arena;
    for mut player in &mut players {
        let is_firing = player.vitals.alive && player.controls.fire();
        if !is_firing || is_leaving(player.entity, leavers) {
            continue;
        }
        let is_at_home = player.passport.home == scene.hideout;
        if pull_trigger(&tick, is_at_home, &mut player, (&mut *shots, past.limits()), &mut rng.0) {
            tell_pockets(&mut outbox, *player.client, &player.inventory);
        }
    }
}

/// Whether a portal has taken the player in this tick. In nearly all ticks there is nobody.
fn is_leaving(player: Entity, leavers: &[Leaver]) -> bool {
    leavers.iter().any(|leaver| leaver.player == player)
}

/// Tells a client what its player carries.
pub fn tell_pockets(outbox: &mut Outbox, client: PlayerClient, inventory: &Inventory) {
    let told = outbox.send(client.0, &Pockets { inventory: *inventory });
    told.expect("what a player carries is within its limits");
}

/// Pulls the trigger that a living player holds. At home, who lacks rounds for a magazine is given the usual equipment
/// first; whether that was so.
fn pull_trigger(
    tick: &TickInfo,
    is_at_home: bool,
    player: &mut ShooterItem,
    (shots, limits): (&mut Shots, &ViewLimits),
    rng: &mut Xoshiro256PlusPlus,
) -> bool {
    let ShooterItem { weapon, inventory, .. } = player;
    let (kind, mut is_equipped) = (weapon.kind, false);
    let from_pockets = |wanted: u8| {
        if is_at_home && Item::rounds_of(kind).is_some_and(|item| inventory.count(item) < wanted.into()) {
            is_equipped = inventory.equip(kind);
        }
        inventory.load(kind, wanted)
    };
    match weapon.fire(tick.tick, tick.rate.0, from_pockets) {
        Trigger::Fired => {
            let (yaw, pitch) = player.controls.shot_aim();
            let feet = player.standing.0.position();
            let seen = player.shoots.0.judge(limits, tick.tick);
            count_verdict(seen.admitted.verdict);
            shots.fire((*player.slot, player.weapon.kind), feet, direction_of(yaw, pitch), Some(seen), rng);
            player.action.happened(ActionKind::Shot);
        }
        Trigger::Reloading => player.action.happened(ActionKind::Reloaded),
        Trigger::Empty => throng::count!("triggers_empty"),
        Trigger::NotReady => {}
    }
    is_equipped
}

/// Shots that were not judged at the moment which their client claims, by reason.
fn count_verdict(verdict: ViewVerdict) {
    match verdict {
        ViewVerdict::AsClaimed => {}
        ViewVerdict::Ahead => throng::count!("views_ahead"),
        ViewVerdict::BeyondLatency => throng::count!("views_beyond_latency"),
        ViewVerdict::BeyondClamp => throng::count!("views_beyond_clamp"),
        ViewVerdict::Backwards => throng::count!("views_backwards"),
    }
}
