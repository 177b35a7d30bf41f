//! Players: what their inputs come to, one thing after the other for all of them: they look, walk, cast and gather.
//!
//! A client never says where it is. It says which way it wants to go, and each tick moves its player one step of its
//! speed at most, whatever number of inputs has come ([`Controls`](crate::roster::Controls)). So a fast clock, a burst
//! or a replay gains nothing. Without inputs a player goes on for [`HOLD_MS`] and then stands.
//!
//! Cost: a look at each message, and a pass over all players for each of these things.

#[cfg(test)]
mod page;

use bevy_ecs::prelude::*;
use throng::prelude::*;

use crate::{
    actors::FIGHT_MS,
    land::{Cell, Map},
    protocol::{Ability, Input},
    roster::{PlayerRow, Roster},
    services,
    zone::{FIGHTER_WEIGHT, Zone},
};

pub const WALK_M_PER_S: f32 = 5.0;
pub const RUN_M_PER_S: f32 = 7.5;
pub const SNEAK_M_PER_S: f32 = 2.5;
/// Of a step, while snared.
const SNARED_SHARE: f32 = 0.5;
/// How long a player goes on without inputs. (ms)
pub const HOLD_MS: u32 = 250;
/// So long after a blow nobody begins to sneak. (ms)
const SNEAK_AFTER_FIGHT_MS: u32 = 3_000;

/// Inputs go to their players' controls.
pub fn read(tick: Res<TickInfo>, inputs: Inputs<Input>, rows: Query<&PlayerRow>, mut roster: ResMut<Roster>) {
    for (sender, &input) in inputs.read() {
        // Who has left in an earlier tick has no row.
        let Some(Ok(row)) = sender.entity.map(|player| rows.get(player)) else { continue };
        let taken = roster.get_mut(row.0).is_some_and(|player| player.take(tick.tick, input, sender.seen));
        throng::count!("inputs", taken);
        throng::count!("inputs_excess", !taken);
    }
}

/// Of each player's inputs one becomes its wish, which the systems below follow.
pub fn settle(mut zone: Zone) {
    let hold_ticks = zone.ticks(HOLD_MS).min(255) as u8;
    zone.roster.settle(hold_ticks);
}

/// Players look where they wish to, sneak or stop to, and are the more urgent to others while they fight.
pub fn look(mut zone: Zone) {
    let (now, calm, fight) = (zone.now(), zone.ticks(SNEAK_AFTER_FIGHT_MS), zone.ticks(FIGHT_MS));
    each_living(&mut zone, |zone, index, wish| {
        zone.turn_to(index, wish.heading());
        let is_calm = !zone.actors[index].fought_within(now, calm);
        zone.set_filtered(index, wish.sneaks() && is_calm);
        let weight = if zone.actors[index].fought_within(now, fight) { FIGHTER_WEIGHT } else { 1.0 };
        zone.weigh(index, weight);
    });
}

/// Players go one step, but not into walls. Whoever walks away from a spell in the making ends it, but for songs.
pub fn walk(mut zone: Zone, map: Res<Map>) {
    let (now, dt_s) = (zone.now(), zone.tick.dt_s);
    each_living(&mut zone, |zone, index, wish| {
        if !moves(wish) || zone.actors[index].is_stunned(now) {
            return;
        }
        let (from, is_snared) = (zone.actors[index].place, zone.actors[index].clocks.snared > now);
        let Some(to) = step_to(&map, from, wish, dt_s, is_snared) else {
            throng::count!("walks_into_walls");
            return;
        };
        zone.walk_to(index, to);
        let breaks = zone.actors[index].casting.is_some_and(|casting| casting.ability != Ability::Sing);
        if breaks {
            zone.actors[index].casting = None;
            zone.actors.casting.remove(index);
            throng::count!("casts_failed");
        }
    });
}

/// Where the step of a wish leads. `None`: into a wall that it did not begin in. Out of one that was built around it anybody
/// may walk.
fn step_to(map: &Map, from: [f32; 2], wish: Input, dt_s: f32, is_snared: bool) -> Option<[f32; 2]> {
    let share = if is_snared { SNARED_SHARE } else { 1.0 };
    let [x, z] = step_m(wish, dt_s);
    let to = [from[0] + x * share, from[1] + z * share];
    let cell = Cell::at(to);
    let is_free = cell == Cell::at(from) || !map.ground(cell).is_some_and(|ground| ground.is_wall());
    is_free.then_some(to)
}

/// The step that a wish comes to in a tick, where nothing hinders it (m, along x and z).
fn step_m(wish: Input, dt_s: f32) -> [f32; 2] {
    let speed = match (wish.sneaks(), wish.runs()) {
        (true, _) => SNEAK_M_PER_S,
        (false, true) => RUN_M_PER_S,
        (false, false) => WALK_M_PER_S,
    };
    wish.direction().map(|part| part * (speed * dt_s))
}

/// Players who stand begin the spells that they wish for.
pub fn cast(mut zone: Zone) {
    let now = zone.now();
    each_living(&mut zone, |zone, index, wish| {
        if wish.ability() != Ability::None && !moves(wish) && !zone.actors[index].is_stunned(now) {
            let target = zone.actors[index].target;
            zone.begin_cast(index, wish.ability(), target);
        }
    });
}

/// Players who stand gather, or stop to.
pub fn gather(mut zone: Zone) {
    let now = zone.now();
    each_living(&mut zone, |zone, index, wish| {
        let row = zone.actors[index].player;
        if zone.actors[index].is_stunned(now) {
            return;
        }
        if wish.gathers() && !moves(wish) {
            services::gather(zone, index, row);
        } else {
            zone.roster.stop_gathering(row);
        }
    });
}

/// Goes through all living players: their actors, and what they wish for.
fn each_living(zone: &mut Zone, mut act: impl FnMut(&mut Zone, u32, Input)) {
    let mut players = zone.scratch.take();
    players.extend(zone.roster.actors());
    for &index in &players {
        let row = &zone.actors[index];
        if let Some(wish) = zone.roster.wish(row.player).filter(|_| row.alive) {
            act(zone, index, wish);
        }
    }
    zone.scratch.give_back(players);
}

fn moves(wish: Input) -> bool {
    wish.direction() != [0.0, 0.0]
}
