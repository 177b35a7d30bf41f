//! Telling: what the state of a match looks like to its clients.
//!
//! Resources are what systems work on; here they become the components of the match's entities, and messages to those
//! whose own affair something is. What has not changed is not written, and costs no bytes.

use bevy_ecs::prelude::*;
use throng::prelude::*;

use crate::{
    components::{Clock, Clouds, Condition, Player, Score, Spike, TeamVitals, Vitals},
    economy::Purse,
    protocol::{Blinded, Kit, TICK_HZ},
    rounds::Rounds,
    seats::{Known, KnownKit, Seats, Senses},
    smoke::Smoke,
    spike::SpikeState,
    teams::{TeamId, place_in_team},
    weapons::Weapon,
};

/// Spawns the entities of a match that are nobody's, with nothing to tell yet.
pub fn spawn_board(world: &mut World, rounds: &Rounds) {
    world.spawn((Replicated::default(), rounds.clock, rounds.score(0), Clouds::default()));
    // Entities of their own: what is hidden is hidden with all its components.
    world.spawn((Replicated::default(), VisibilityFiltered, Spike::Gone));
    for team in TeamId::BOTH {
        world.spawn((Replicated::default(), VisibilityFiltered, TeamVitals::dead(team)));
    }
}

/// Clock, score, smoke, spike, and how well the teams are, as it is at the end of the tick.
pub fn write_board(
    rounds: Res<Rounds>,
    smoke: Res<Smoke>,
    spike_state: Res<SpikeState>,
    players: Query<(&Player, &Vitals)>,
    mut boards: Query<(&mut Clock, &mut Score, &mut Clouds)>,
    mut spikes: Query<&mut Spike>,
    mut teams: Query<&mut TeamVitals>,
) {
    let living = players.iter().filter(|(_, vitals)| vitals.is_alive);
    let alive = living.fold(0, |alive, (player, _)| alive | 1 << player.seat);
    for (mut clock, mut score, mut clouds) in &mut boards {
        clock.set_if_neq(rounds.clock);
        score.set_if_neq(rounds.score(alive));
        if clouds.clouds != smoke.clouds {
            clouds.clouds = smoke.clouds.clone();
        }
    }
    for mut spike in &mut spikes {
        spike.set_if_neq(spike_state.spike);
    }
    for mut told in &mut teams {
        let mut next = TeamVitals::dead(told.team);
        for (player, vitals) in players.iter().filter(|(player, _)| player.team == next.team) {
            next.members[place_in_team(player.seat)] = Condition::from(vitals);
        }
        told.set_if_neq(next);
    }
}

/// Players are told what they have, when that has changed: after each shot, too. Whoever else may know of a shot hears the
/// event.
pub fn tell_kits(
    seats: Res<Seats>,
    mut outbox: ResMut<Outbox>,
    mut players: Query<(&Player, &Purse, &Weapon, &mut Known)>,
) {
    for (player, purse, weapon, mut known) in &mut players {
        let Some(client) = seats.client(player.seat) else { continue };
        let next =
            Known { kit: Some(KnownKit { purse: *purse, weapon: weapon.kind }), rounds: weapon.rounds, ..*known };
        if known.set_if_neq(next) {
            let Purse { credits, smokes, flashes } = *purse;
            let kit = Kit { credits, weapon: weapon.kind, rounds: weapon.rounds, smokes, flashes };
            outbox.send(client, &kit).expect("what a player has is within its limits");
        }
    }
}

/// Players are told for how long they are blind, when a flash has made it longer.
pub fn tell_blinded(
    tick: Res<TickInfo>,
    seats: Res<Seats>,
    mut outbox: ResMut<Outbox>,
    mut players: Query<(&Player, &Senses, &mut Known)>,
) {
    for (player, senses, mut known) in &mut players {
        let Some(client) = seats.client(player.seat) else { continue };
        let blind_until_tick = senses.blind_until_tick;
        let is_new = known.set_if_neq(Known { blind_until_tick, ..*known });
        let left_ticks = blind_until_tick.saturating_sub(tick.tick);
        if is_new && left_ticks > 0 {
            let for_ms = (left_ticks * 1_000 / u32::from(TICK_HZ)).min(u16::MAX.into()) as u16;
            outbox.send(client, &Blinded { for_ms }).expect("it has no limits");
        }
    }
}
