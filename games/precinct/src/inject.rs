//! Faults on purpose: test switches that make one world dear, slow or hung, to see that the others do not notice.
//!
//! They are the only code of the game that looks at a real clock, and they never change what a world computes: only how long
//! it takes. Without a switch none of it is in any world.

use std::{
    str::FromStr,
    time::{Duration, Instant},
};

use bevy_ecs::prelude::*;
use throng::prelude::*;

/// A fault by name, with the sizes that the tests of the project use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inject {
    /// `dear-hideout`: from its tick 200 on, one hideout takes ten times as long as it would.
    DearHideout,
    /// `hung-world`: in its tick 200, one hideout sleeps for two seconds.
    HungWorld,
    /// `slow-world`: every tick of one hideout computes for 40 ms more.
    SlowWorld,
}

/// A fault whose name is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no fault is called `{0}`; there are dear-hideout, hung-world and slow-world")]
pub struct UnknownFault(String);

impl std::fmt::Display for Inject {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::DearHideout => "dear-hideout",
            Self::HungWorld => "hung-world",
            Self::SlowWorld => "slow-world",
        })
    }
}

impl FromStr for Inject {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Self, UnknownFault> {
        match name {
            "dear-hideout" => Ok(Self::DearHideout),
            "hung-world" => Ok(Self::HungWorld),
            "slow-world" => Ok(Self::SlowWorld),
            _ => Err(UnknownFault(name.into())),
        }
    }
}

impl Inject {
    /// The fault with its usual size.
    pub fn fault(self) -> Fault {
        match self {
            Self::DearHideout => Fault::Dear { from_tick: 200, factor: 10 },
            Self::HungWorld => Fault::Hung { at_tick: 200, seconds: 2.0 },
            Self::SlowWorld => Fault::Slow { busy_ms: 40 },
        }
    }
}

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
    /// Each tick computes for so much longer.
    Slow {
        busy_ms: u64,
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
pub(crate) fn inflict(tick: Res<TickInfo>, fault: Res<Fault>, began: Res<TickBegan>) {
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
        Fault::Slow { busy_ms } => compute_until(Instant::now() + Duration::from_millis(busy_ms)),
    }
}

fn compute_until(end: Instant) {
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
    fn faults_have_names() {
        assert_eq!("hung-world".parse(), Ok(Inject::HungWorld));
        assert_eq!("dear-hideout".parse(), Ok(Inject::DearHideout));
        assert_eq!("slow-world".parse(), Ok(Inject::SlowWorld));
        assert!("hang".parse::<Inject>().unwrap_err().to_string().contains("hung-world"));
    }

    #[test]
    fn computing_takes_as_long_as_asked() {
        let begin = Instant::now();
        compute_until(begin + Duration::from_millis(5));
        assert!(begin.elapsed() >= Duration::from_millis(5));
    }
}
