//! Meter: what the ticks of a round take on average, for metrics and reports.
//!
//! Means ([`throng::sample!`]), to which each round adds one value when it is over: `round.tick_ns`, the average frame time per
//! round of all matches of the server, by build when a dashboard has it so, and that of its two parts: `round.buying.tick_ns`
//! while all buy, `round.playing.tick_ns` after it. What a tick takes is told by the host, and nothing of it goes into the
//! match.

use throng::prelude::*;
use throng_replication::table_resource;

use crate::{rounds::Change, scene::RoundChange};

/// Ticks, and what they took.
#[derive(Debug, Default, Clone, Copy)]
struct Took {
    ticks: u64,
    ns: u64,
}

impl Took {
    fn add(&mut self, other: Took) {
        (self.ticks, self.ns) = (self.ticks + other.ticks, self.ns + other.ns);
    }

    fn mean_ns(self) -> u64 {
        self.ns / self.ticks.max(1)
    }
}

/// What the ticks of this round took so far.
#[derive(Debug, Default)]
pub struct Meter {
    buying: Took,
    playing: Took,
    is_playing: bool,
}

table_resource!(Meter);

/// Adds the last tick; at the end of a round its averages are counted, and the next one begins.
pub fn measure(tick: Res<TickInfo>, round_change: Res<RoundChange>, mut meter: ResMut<Meter>) {
    let last = Took { ticks: 1, ns: tick.last_tick_took.0 };
    if meter.is_playing {
        meter.playing.add(last)
    } else {
        meter.buying.add(last)
    }
    match round_change.0 {
        Some(Change::PlayBegins) => meter.is_playing = true,
        Some(Change::RoundEnds(_)) => {
            let mut round = std::mem::take(&mut *meter);
            // Without a phase to buy there is none to tell of.
            if round.buying.ticks > 0 {
                sample!("round.buying.tick_ns", round.buying.mean_ns());
            }
            sample!("round.playing.tick_ns", round.playing.mean_ns());
            round.buying.add(round.playing);
            sample!("round.tick_ns", round.buying.mean_ns());
        }
        // Of the pause between two rounds nothing is counted.
        Some(Change::RoundBegins { .. }) => *meter = Meter::default(),
        _ => {}
    }
}
