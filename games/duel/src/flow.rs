//! Flow: what the deeds of a tick and its time mean for the round and the match.
//!
//! [`decide`] finds out what has changed, once in a tick, after all shots; the systems after it do what follows from
//! that: pay here, stand up in `lives`, explode in `spike`, go home in `arrivals`.

use throng::prelude::*;

use crate::{
    analytics::{RoundWon, end_name},
    components::{Phase, Player, RoundEnd, Vitals},
    economy::{Purse, of_round},
    rounds::{Change, Rounds},
    scene::RoundChange,
    seats::Seats,
    settings::MatchRules,
    spike::SpikeState,
    teams::TeamId,
};

/// What this tick has brought about; nothing in most.
pub fn decide(
    tick: Res<TickInfo>,
    rules: Res<MatchRules>,
    spike_state: Res<SpikeState>,
    seats: Res<Seats>,
    players: Query<(&Player, &Vitals)>,
    mut rounds: ResMut<Rounds>,
    mut round_change: ResMut<RoundChange>,
) {
    let end = if spike_state.is_defused && rounds.phase() == Phase::Planted {
        Some(RoundEnd::SpikeDefused)
    } else {
        let alive =
            |team| players.iter().filter(|(player, vitals)| player.team == team && vitals.is_alive).count() as u32;
        rounds.elimination(alive(rounds.attackers), alive(rounds.attackers.other()))
    };
    let is_missing = rounds.phase() == Phase::WarmUp && TeamId::BOTH.iter().any(|team| seats.connected(*team) == 0);
    // A round that ends in the tick in which somebody leaves counts: who is left is asked for in the next.
    let ends_by_time = rounds.phase().is_live() && rounds.is_due(tick.tick);
    let change = match (end, deserted(&rounds, &seats, &rules)) {
        (Some(end), _) => Some(rounds.end_round(end, tick.tick, &rules)),
        (None, Some(winner)) if !ends_by_time => Some(rounds.end_match(winner, tick.tick, &rules)),
        _ if is_missing => rounds.wait(tick.tick),
        _ => rounds.advance(tick.tick, &rules),
    };
    // In most ticks nothing is written.
    round_change.set_if_neq(RoundChange(change));
}

/// The team that is left when all of the other have gone; none once a team has won: it may go.
fn deserted(rounds: &Rounds, seats: &Seats, rules: &MatchRules) -> Option<TeamId> {
    let is_decided = rounds.first_with_enough(rules).is_some();
    if is_decided || matches!(rounds.phase(), Phase::WarmUp | Phase::MatchOver) {
        return None;
    }
    TeamId::BOTH.into_iter().find(|team| seats.connected(*team) > 0 && seats.connected(team.other()) == 0)
}

/// Whether a round is over in this tick.
pub fn a_round_ends(round_change: Res<RoundChange>) -> bool {
    matches!(round_change.0, Some(Change::RoundEnds(_)))
}

/// Everybody is paid for the round.
pub fn pay(round_change: Res<RoundChange>, rounds: Res<Rounds>, mut players: Query<(&Player, &mut Purse, &Vitals)>) {
    for (player, mut purse, _) in &mut players {
        purse.earn(of_round(rounds.lost_in_a_row(player.team)));
    }
    count!("rounds");
    let Some(Change::RoundEnds(end)) = round_change.0 else { return };
    let alive = players.iter().filter(|(_, _, vitals)| vitals.is_alive).count();
    let score = rounds.score(alive as u16);
    RoundWon {
        by_attackers: end.is_won_by_attackers(),
        end: end_name(end),
        wins_one: score.wins_one,
        wins_two: score.wins_two,
        alive: alive as u32,
    }
    .emit();
    match end {
        RoundEnd::AttackersEliminated => count!("rounds.attackers_eliminated"),
        RoundEnd::DefendersEliminated => count!("rounds.defenders_eliminated"),
        RoundEnd::SpikeExploded => count!("rounds.spike_exploded"),
        RoundEnd::SpikeDefused => count!("rounds.spike_defused"),
        RoundEnd::TimeRanOut => count!("rounds.time_ran_out"),
    }
}
