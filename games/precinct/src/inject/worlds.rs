//! Faults of a hideout: what its last system does in a tick.

use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;
use throng::prelude::*;
use throng_profiler::scope;

use super::background::LEDGER;

/// What is wrong with a world.
#[derive(Resource, Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    None,
    /// Its ticks take `factor` times as long, spent computing.
    Dear {
        from_tick: u32,
        factor: u32,
    },
    /// One tick blocks, asleep.
    Hung {
        at_tick: u32,
        seconds: f64,
    },
    /// One tick in so many computes for so much longer.
    Slow {
        busy_ms: u64,
        every_ticks: u32,
    },
    /// Each tick takes the lock that [`super::Background::HoldLock`] holds now and then.
    Locked,
    /// Each tick computes for so long in the subsystem `precinct.ballast`.
    OverBudget {
        busy_us: u64,
    },
    /// One tick in so many allocates so much at once, and gives it back.
    BigAllocation {
        bytes: usize,
        every_ticks: u32,
    },
    /// Each tick keeps so much more.
    Leak {
        bytes_per_tick: usize,
    },
}

/// A fault and the hideout that has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FaultyHideout {
    pub hideout: usize,
    pub fault: Fault,
}

/// When the systems of this tick began.
#[derive(Resource)]
pub(crate) struct TickBegan(Instant);

impl Default for TickBegan {
    fn default() -> Self {
        Self(Instant::now())
    }
}

/// First system of a tick.
pub(crate) fn note_begin(mut began: ResMut<TickBegan>) {
    began.0 = Instant::now();
}

/// Last system of a tick.
pub(crate) fn inflict(tick: Res<TickInfo>, fault: Res<Fault>, began: Res<TickBegan>, mut kept: Local<Vec<Vec<u8>>>) {
    match *fault {
        Fault::None => {}
        Fault::Dear { from_tick, factor } if tick.tick >= from_tick => {
            let took = began.0.elapsed();
            compute_until(began.0 + took * factor);
        }
        Fault::Dear { .. } => {}
        Fault::Hung { at_tick, seconds } => {
            if tick.tick == at_tick {
                std::thread::sleep(Duration::from_secs_f64(seconds));
            }
        }
        Fault::Slow { busy_ms, every_ticks } => {
            if tick.tick.is_multiple_of(every_ticks) {
                compute_until(Instant::now() + Duration::from_millis(busy_ms));
            }
        }
        Fault::Locked => {
            scope!("precinct.ledger.read");
            LEDGER.read();
        }
        Fault::OverBudget { busy_us } => {
            scope!("precinct.ballast.lift");
            compute_until(Instant::now() + Duration::from_micros(busy_us));
        }
        Fault::BigAllocation { bytes, every_ticks } => {
            if tick.tick.is_multiple_of(every_ticks) {
                scope!("precinct.satchel.fill");
                std::hint::black_box(Vec::<u8>::with_capacity(bytes));
            }
        }
        Fault::Leak { bytes_per_tick } => {
            scope!("precinct.attic.store");
            kept.push(vec![1; bytes_per_tick]);
        }
    }
}

/// Keeps a core busy.
pub(super) fn compute_until(end: Instant) {
    let mut busy = 1_u64;
    while Instant::now() < end {
        for _ in 0..100 {
            busy = std::hint::black_box(busy.wrapping_mul(6_364_136_223_846_793_005));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computing_takes_as_long_as_asked() {
        let begin = Instant::now();
        compute_until(begin + Duration::from_millis(5));
        assert!(begin.elapsed() >= Duration::from_millis(5));
    }
}
