//! Activity: how many of the players live and run, and how many matches are in the phase to buy, for reports.
//!
//! What a match costs depends on what is done in it: one in which everybody stands and buys costs half of a fight. So a
//! figure of cost says little without these. Counted in each tick, so that rates of a window are means over it:
//! `players.ticks.moving` by `players.ticks` is the share of players who were alive and moving, and
//! `matches.ticks.buying` by `matches.ticks` that of matches in which one buys.
//!
//! And all counters of a match are named here, in its first tick: whoever counts one for the first time has the server
//! make its metrics, which allocates, and the first spike that explodes may be hours away.

use throng::prelude::*;

use crate::{
    components::{Phase, Player, Vitals},
    movement::Motion,
    rounds::Rounds,
};

/// Slower than this is standing (m/s): a tenth of a walk.
const MOVING_M_PER_S: f32 = 0.3;

macro_rules! name {
    ($($name:literal)*) => { $(count!($name, 0);)* };
}

/// Names every counter. For a match's first tick.
pub fn name_counters() {
    name!("inputs" "inputs_late" "inputs_over_rate" "inputs_excess" "bought" "grenades" "blinded");
    name!("players.sent_back");
    name!("shots" "shots.views_moved" "shots.bodies" "shots.unrecorded" "hits" "kills");
    name!("spikes.planted" "spikes.defused" "matches" "rounds" "rounds.begun");
    name!("rounds.attackers_eliminated" "rounds.defenders_eliminated" "rounds.spike_exploded");
    name!("rounds.spike_defused" "rounds.time_ran_out");
    name!("round.tick_ns" "round.buying.tick_ns" "round.playing.tick_ns");
    name!("round.tick_ns.samples" "round.buying.tick_ns.samples" "round.playing.tick_ns.samples");
}

/// Counts this tick.
pub fn count(rounds: Res<Rounds>, players: Query<(&Player, &Vitals, &Motion)>) {
    let (mut here, mut alive, mut moving) = (0_u64, 0_u64, 0_u64);
    for (player, vitals, motion) in &players {
        here += u64::from(player.is_connected);
        let lives = player.is_connected && vitals.is_alive;
        alive += u64::from(lives);
        moving += u64::from(lives && motion.speed_m_per_s() > MOVING_M_PER_S);
    }
    count!("matches.ticks");
    count!("matches.ticks.buying", rounds.phase() == Phase::Buy);
    count!("players.ticks", here);
    count!("players.ticks.alive", alive);
    count!("players.ticks.moving", moving);
}

#[cfg(test)]
mod tests {
    use std::fs;

    /// Promise: nothing that a match counts is missing, so that no tick but its first makes metrics.
    #[test]
    fn every_counter_of_a_match_is_named() {
        let own = include_str!("activity.rs");
        let mut found = 0;
        for file in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap().map(|file| file.unwrap().path())
        {
            // Who waits in a lobby is in no round.
            if file.is_dir() || file.ends_with("lobby.rs") {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            for (how, behind) in [("count!(\"", ""), ("sample!(\"", ""), ("sample!(\"", ".samples")] {
                for name in text.split(how).skip(1).filter_map(|rest| rest.split('"').next()) {
                    assert!(own.contains(&format!("\"{name}{behind}\"")), "{name}{behind} of {}", file.display());
                    found += 1;
                }
            }
        }
        assert!(found > 25, "{found}");
    }
}
