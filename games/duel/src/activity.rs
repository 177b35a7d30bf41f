//! Activity: how many of the players live and run, and how many matches are in the phase to buy, for reports.
//!
//! What a match costs depends on what is done in it: one in which everybody stands and buys costs half of a fight. So a
//! figure of cost says little without these. Counted in each tick, so that rates of a window are means over it:
//! `players.ticks.moving` by `players.ticks` is the share of players who were alive and moving, and
//! `matches.ticks.buying` by `matches.ticks` that of matches in which one buys.

use throng::prelude::*;

use crate::{
    components::{Phase, Player, Vitals},
    movement::Motion,
    rounds::Rounds,
};

/// Slower than this is standing (m/s): a tenth of a walk.
const MOVING_M_PER_S: f32 = 0.3;

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
