//! Meter: what the ticks of a round take on average, for metrics.
//!
//! `round.tick_ns` is counted up by each round's average tick when the round is over, and `rounds` by one: the one over
//! the other is the average frame time per round, of all matches of the server, by build when a dashboard has it so.
//! What a tick takes is told by the host, and nothing of it goes into the match.

use throng::prelude::*;
use throng_replication::table_resource;

use crate::{rounds::Change, scene::Turn};

/// What the ticks of this round took so far.
#[derive(Debug, Default)]
pub struct Meter {
    ticks: u64,
    took_ns: u64,
}

table_resource!(Meter);

/// Adds the last tick; at the end of a round its average is counted, and the next one begins.
pub fn measure(tick: Res<TickInfo>, turn: Res<Turn>, mut meter: ResMut<Meter>) {
    meter.ticks += 1;
    meter.took_ns += tick.last_tick_took.0;
    match turn.0 {
        Some(Change::RoundEnds(_)) => {
            count!("round.tick_ns", meter.took_ns / meter.ticks);
            *meter = Meter::default();
        }
        // Of the pause between two rounds nothing is counted.
        Some(Change::RoundBegins { .. }) => *meter = Meter::default(),
        _ => {}
    }
}
