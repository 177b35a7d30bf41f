//! Budgets: what the subsystems of a match may take in one of its ticks, for operators whose rules say nothing of them.
//!
//! Sixty matches on a core at 128 Hz, with a tenth of it in reserve, leave 7,812.5 µs x 0.9 / 60 = 117 µs for a tick.
//! That is what the figures below add up to, on average of all phases of a match: in the phase in which one buys a
//! match takes less, in a fight more. They are what the density asks for, and no measurement. Where the figures come
//! from:
//!
//! | subsystem | µs | for |
//! |---|---:|---|
//! | `replication` | 34 | ten clients, each told of five to eight bodies in every tick |
//! | `net` | 26 | ten packets opened and ten sealed; the kernel's part is the larger one |
//! | `rewind`, `animation` | 12 + 2 | ten bodies recorded, 2.5 poses sampled; a shot in every third tick |
//! | `movement` | 10 | ten inputs and ten steps |
//! | `occlusion` | 9 | 50 pairs of enemies, most of them known |
//! | `world` | 8 | the tick itself |
//! | `combat` | 5 | triggers, damage, grenades |
//! | `game`, `character`, `duel.telling` | 4 + 2 + 3 | the round, lives, what is told of them |
//! | `query` | 2 | casts of grenades and flashes |
//!
//! A subsystem that takes more than its budget on average of a second fires a capture, whatever the others take.

use throng::Server;

use crate::protocol::MATCH;

const PER_TICK_US: [(&str, f64); 12] = [
    ("replication", 34.0),
    ("net", 26.0),
    ("rewind", 12.0),
    ("animation", 2.0),
    ("movement", 10.0),
    ("occlusion", 9.0),
    ("world", 8.0),
    ("combat", 5.0),
    ("game", 4.0),
    ("character", 2.0),
    ("duel.telling", 3.0),
    ("query", 2.0),
];

/// Gives the server the budgets of its matches.
pub(crate) fn suggest(server: &mut Server) {
    for (subsystem, us) in PER_TICK_US {
        server.suggest_per_tick(MATCH, subsystem, us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a tick of a match may take in all (µs).
    const TICK_US: f64 = 117.0;

    /// Promise: all of them together are what sixty matches on a core leave for a tick.
    #[test]
    fn budgets_add_up_to_the_density() {
        let sum_us: f64 = PER_TICK_US.iter().map(|(_, us)| us).sum();
        assert_eq!(sum_us, TICK_US);
        let period_us = 1e6 / f64::from(crate::protocol::TICK_HZ);
        assert!((period_us * 0.9 / 60.0 - TICK_US).abs() < 0.5);
    }
}
