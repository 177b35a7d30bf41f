//! Faults on purpose: test switches that make a server slow in one known way, to see that the others do not notice and that the
//! recorder names the cause.
//!
//! | name | what is wrong | what should be saved |
//! |---|---|---|
//! | `dear-hideout` | a hideout takes ten times as long as it would | |
//! | `hung-world` | one tick of a hideout sleeps for two seconds | `scope` |
//! | `slow-world` | every tick of a hideout computes for 40 ms more | `scope` |
//! | `spikes` | every 6 s one tick of a hideout computes for 40 ms more | `scope` |
//! | `lock-inversion` | a hideout waits 42 ms for a lock that a save has | `lock-wait` |
//! | `stolen-cores` | foreign processes take the cores | `run-queue` |
//! | `long-tasks` | our own exports take the cores | `run-queue` |
//! | `alloc-rate` | a thread allocates 10 MB/s | `memory-rate` |
//! | `over-budget` | a subsystem takes 20 % more than its budget | `subsystem` |
//! | `big-alloc` | a tick of a hideout allocates 300 KiB at once | `large-allocation` |
//! | `leak` | a hideout keeps what it should forget, 0.6 MB/s | `leak` |
//!
//! They are the only code of the game that looks at a real clock, and they never change what a world computes: only how long
//! it takes. Without a switch none of it is in any world.

mod background;
mod worlds;

use std::str::FromStr;

pub use background::Background;
pub use worlds::{Fault, FaultyHideout};
pub(crate) use worlds::{TickBegan, inflict, note_begin};

/// A fault by name, with the sizes that the tests of the project use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inject {
    DearHideout,
    HungWorld,
    SlowWorld,
    Spikes,
    LockInversion,
    StolenCores,
    LongTasks,
    AllocRate,
    OverBudget,
    BigAlloc,
    Leak,
}

const NAMES: [(&str, Inject); 11] = [
    ("dear-hideout", Inject::DearHideout),
    ("hung-world", Inject::HungWorld),
    ("slow-world", Inject::SlowWorld),
    ("spikes", Inject::Spikes),
    ("lock-inversion", Inject::LockInversion),
    ("stolen-cores", Inject::StolenCores),
    ("long-tasks", Inject::LongTasks),
    ("alloc-rate", Inject::AllocRate),
    ("over-budget", Inject::OverBudget),
    ("big-alloc", Inject::BigAlloc),
    ("leak", Inject::Leak),
];

/// A fault whose name is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no fault is called `{name}`; there are {}", NAMES.map(|(name, _)| name).join(", "))]
pub struct UnknownFault {
    name: String,
}

impl std::fmt::Display for Inject {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known = NAMES.iter().find(|(_, fault)| fault == self);
        out.write_str(known.map_or("", |(name, _)| name))
    }
}

impl FromStr for Inject {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Self, UnknownFault> {
        let known = NAMES.iter().find(|(other, _)| *other == name);
        known.map(|(_, fault)| *fault).ok_or_else(|| UnknownFault { name: name.into() })
    }
}

impl Inject {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.into_iter().map(|(_, fault)| fault)
    }

    /// What it does to a hideout, with its usual size.
    pub fn fault(self) -> Option<Fault> {
        match self {
            Self::DearHideout => Some(Fault::Dear { from_tick: 200, factor: 10 }),
            Self::HungWorld => Some(Fault::Hung { at_tick: 200, seconds: 2.0 }),
            Self::SlowWorld => Some(Fault::Slow { busy_ms: 40, every_ticks: 1 }),
            Self::Spikes => Some(Fault::Slow { busy_ms: 40, every_ticks: 120 }),
            Self::LockInversion => Some(Fault::Locked),
            Self::OverBudget => Some(Fault::OverBudget { busy_us: BALLAST_BUDGET_US * 6 / 5 }),
            Self::BigAlloc => Some(Fault::BigAllocation { bytes: 300 << 10, every_ticks: 40 }),
            Self::Leak => Some(Fault::Leak { bytes_per_tick: 32 << 10 }),
            Self::StolenCores | Self::LongTasks | Self::AllocRate => None,
        }
    }

    /// What it does beside the worlds.
    pub fn background(self) -> Option<Background> {
        match self {
            Self::LockInversion => Some(Background::HoldLock { hold_ms: 42, every_s: 2 }),
            Self::StolenCores => Some(Background::ForeignProcesses { seconds: 5, every_s: 20 }),
            Self::LongTasks => Some(Background::LongTasks { seconds: 3, every_s: 20 }),
            Self::AllocRate => Some(Background::Allocate { bytes_per_s: 10 << 20 }),
            _ => None,
        }
    }
}

/// The subsystem that `over-budget` is about, and what it may take in a frame (µs).
pub(crate) const BALLAST: &str = "precinct.ballast";
pub(crate) const BALLAST_BUDGET_US: u64 = 5_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_names() {
        for (name, fault) in NAMES {
            assert_eq!((name.parse(), fault.to_string().as_str()), (Ok(fault), name));
            assert!(fault.fault().is_some() || fault.background().is_some(), "{name} does nothing");
        }
        assert!("hang".parse::<Inject>().unwrap_err().to_string().contains("hung-world"));
    }
}
