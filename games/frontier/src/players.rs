//! Players: what their inputs come to, one thing after the other for all of them: they look, walk, cast and gather.
//!
//! A client never says where it is. It says which way it wants to go, and each tick moves its player one step of its
//! speed at most, whatever number of inputs has come ([`Controls`](crate::roster::Controls)). So a fast clock, a burst
//! or a replay gains nothing. Without inputs a player goes on for [`HOLD_MS`] and then stands.
//!
//! Cost: a look at each message, and a pass over all players for each of these things.

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
        let snared = if zone.actors[index].clocks.snared > now { 0.5 } else { 1.0 };
        let ([x, z], [from_x, from_z]) = (step_m(wish, dt_s), zone.actors[index].place);
        let to = [from_x + x * snared, from_z + z * snared];
        let (cell, from) = (Cell::at(to), Cell::at([from_x, from_z]));
        // Out of a wall that was built around it anybody may walk.
        if cell != from && map.ground(cell).is_some_and(|ground| ground.is_wall()) {
            throng::count!("walks_into_walls");
            return;
        }
        zone.walk_to(index, to);
        let breaks = zone.actors[index].casting.is_some_and(|casting| casting.ability != Ability::Sing);
        if breaks {
            zone.actors[index].casting = None;
            zone.actors.casting.remove(index);
            throng::count!("casts_failed");
        }
    });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::landscape::within_edge;

    /// Promise: the page that plays predicts by the same steps, where nothing hinders it. The tests in `web/` hold it to the
    /// file that this compares; `UPDATE_EXPECT=1 cargo test -p frontier --lib players` writes it anew.
    #[test]
    fn the_page_is_held_to_these_steps() {
        let mut lines = Vec::new();
        for direction in [[0.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.6, 0.8], [-0.7, 0.7], [0.3, -0.1]] {
            for (runs, tick_hz) in [(false, 20.0), (true, 20.0), (true, 10.0)] {
                let [x, z] = step_m(Input::new(direction, 0.0).running(runs), 1.0 / tick_hz);
                lines.push(format!(
                    "{{\"direction\": {direction:?}, \"is_fast\": {runs}, \"tick_hz\": {tick_hz:?}, \"metres\": [{x:.5}, {z:.5}]}}"
                ));
            }
        }
        check_steps("frontier.json", &lines);
    }

    /// Promise: it lets its player go no farther than the land's edge. Held to, and written anew, as the steps are.
    #[test]
    fn the_page_is_held_to_this_edge() {
        let near_edge = [
            ([3_999.75, 10.0], [1.0, 0.0]),
            ([-3_999.75, 3_999.75], [-0.6, 0.8]),
            ([7.0, -4_000.0], [0.6, -0.8]),
            ([4_000.0, 0.0], [-1.0, 0.0]),
        ];
        let lines = near_edge.map(|(from, direction): ([f32; 2], [f32; 2])| {
            let [x, z] = step_m(Input::new(direction, 0.0).running(true), 1.0 / 20.0);
            let [to_x, to_z] = [from[0] + x, from[1] + z].map(within_edge);
            format!("{{\"from\": {from:?}, \"metres\": [{x:.5}, {z:.5}], \"to\": [{to_x:.3}, {to_z:.3}]}}")
        });
        check_steps("frontier_edge.json", &lines);
    }

    /// Holds a file of the page's tests to what the game makes of it.
    #[track_caller]
    fn check_steps(file: &str, lines: &[String]) {
        let text = format!("[\n{}\n]\n", lines.join(",\n"));
        let path = format!("{}/../../web/tests/steps/{file}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, &text).expect("the file is writable");
        }
        let known = std::fs::read_to_string(&path).expect("the file of the page's tests");
        assert_eq!(known, text, "run the test with UPDATE_EXPECT=1, and the tests in web/");
    }
}
