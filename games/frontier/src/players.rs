//! Players: what their inputs come to.
//!
//! A client never says where it is. It says which way it wants to go, and each tick moves its player one step of its
//! speed at most, whatever number of inputs has come ([`Controls`](crate::roster::Controls)). So a fast clock, a burst
//! or a replay gains nothing. Without inputs a player goes on for [`HOLD_MS`] and then stands.
//!
//! Cost: 60 ns a message and 60 ns a player that walks.

use bevy_ecs::prelude::*;
use throng::prelude::*;

use crate::{
    actors::FIGHT_MS,
    protocol::{Ability, Input},
    roster::{PlayerRow, Roster},
    services,
    zone::{FIGHTER_WEIGHT, Zone},
};

pub const WALK_M_PER_S: f32 = 5.0;
pub const RUN_M_PER_S: f32 = 7.5;
pub const SNEAK_M_PER_S: f32 = 2.5;
/// How long a player goes on without inputs. (ms)
pub const HOLD_MS: u32 = 250;
/// So long after a blow nobody begins to sneak. (ms)
const SNEAK_AFTER_FIGHT_MS: u32 = 3_000;

/// Inputs go to their players' controls.
pub fn read(inputs: Inputs<Input>, rows: Query<&PlayerRow>, mut roster: ResMut<Roster>) {
    for (sender, &input) in inputs.read() {
        // Who has left in an earlier tick has no row.
        let Some(Ok(row)) = sender.entity.map(|player| rows.get(player)) else { continue };
        let taken = roster.get_mut(row.0).is_some_and(|player| player.controls.take(input));
        throng::count!("inputs", taken);
        throng::count!("inputs_excess", !taken);
    }
}

/// What all players do with their controls: walk, look, sneak, begin spells.
pub fn walk(mut zone: Zone) {
    let mut players = zone.scratch.take();
    players.extend(zone.roster.actors());
    let hold_ticks = zone.ticks(HOLD_MS).min(255) as u8;
    for &index in &players {
        let row = zone.actors[index].player;
        let Some(player) = zone.roster.get_mut(row) else { continue };
        let input = player.controls.settle(hold_ticks);
        if zone.actors[index].alive {
            act(&mut zone, index, row, input);
        }
    }
    zone.scratch.give_back(players);
}

fn act(zone: &mut Zone, index: u32, row: u32, input: Input) {
    let now = zone.now();
    let dt_s = zone.tick.dt_s;
    zone.turn_to(index, input.heading());
    let calm = !zone.actors[index].fought_within(now, zone.ticks(SNEAK_AFTER_FIGHT_MS));
    zone.set_filtered(index, input.sneaks() && calm);
    let weight = if zone.actors[index].fought_within(now, zone.ticks(FIGHT_MS)) { FIGHTER_WEIGHT } else { 1.0 };
    zone.weigh(index, weight);
    if zone.actors[index].is_stunned(now) {
        return;
    }
    let [x, z] = input.direction();
    let moves = x != 0.0 || z != 0.0;
    if moves {
        let speed = match (input.sneaks(), input.runs()) {
            (true, _) => SNEAK_M_PER_S,
            (false, true) => RUN_M_PER_S,
            (false, false) => WALK_M_PER_S,
        };
        let snared = if zone.actors[index].clocks.snared > now { 0.5 } else { 1.0 };
        let step_m = speed * snared * dt_s;
        let [from_x, from_z] = zone.actors[index].place;
        zone.walk_to(index, [from_x + x * step_m, from_z + z * step_m]);
        // Whoever walks away from a spell in the making ends it, but for songs.
        let breaks = zone.actors[index].casting.is_some_and(|casting| casting.ability != Ability::Sing);
        if breaks {
            zone.actors[index].casting = None;
            zone.actors.casting.remove(index);
            throng::count!("casts_failed");
        }
    } else if input.ability() != Ability::None {
        let target = zone.actors[index].target;
        zone.begin_cast(index, input.ability(), target);
    }
    if input.gathers() && !moves {
        services::gather(zone, index, row);
    } else {
        zone.roster.stop_gathering(row);
    }
}
