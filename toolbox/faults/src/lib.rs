//! Faults on purpose: test switches that make a server slow in one known way, to see that the others do not notice and
//! that the recorder names the cause.
//!
//! | name | what is wrong | what should be saved |
//! |---|---|---|
//! | `dear-hideout` | one of many worlds, such as a hideout or a match, takes ten times as long as it would | |
//! | `hung-world` | one tick of a world sleeps for two seconds | `stuck-tick`, then `scope` |
//! | `stuck-world` | one tick of a world sleeps for ten minutes | `stuck-tick` |
//! | `hung-in-...` | one tick of a world hangs for 1.5 s: in a `loop`, a blocking `read`, a `lock` that another has | `stuck-tick` |
//! | `slow-world` | every tick of a world computes for 40 ms more | `scope` |
//! | `surge` | in one minute of three a world computes for 80 ms in each tick, in the others for 16 | `scope` |
//! | `short-surge` | the same in ten seconds of thirty | `scope` |
//! | `spikes` | every 6 s one tick of a world computes for 40 ms more | `scope` |
//! | `lock-inversion` | a world waits 42 ms for a lock that a save has | `lock-wait` |
//! | `stolen-cores` | foreign processes take the cores | `run-queue` |
//! | `long-tasks` | our own exports take the cores | `run-queue` |
//! | `alloc-rate` | a thread allocates 10 MB/s | `memory-rate` |
//! | `over-budget` | a subsystem takes 20 % more than its budget | `subsystem` |
//! | `big-alloc` | a tick of a world allocates 300 KiB at once | `large-allocation` |
//! | `leak` | a world keeps what it should forget, 0.6 MB/s | `leak` |
//! | `dies-of-...` | a world ends the process: `stack-overflow`, `double-panic`, `out-of-memory`, `segv`, `bus`, `abort` | |
//! | `rare-crash` | one action of players in 100,000 (`rare-crash=N`: in N) ends the process, in whichever world it came to | |
//! | `panics-...` | a tick of a world panics, once: `out-of-range`, `not-there`, `lent-twice`, `without-text`, `in-drop`, `in-command` | |
//! | `hungry-world` | one tick takes 1 GiB: more than a control group may have | |
//! | `hung-start` | the server sleeps for ten minutes before its first frame | |
//! | `turnover` | 10,000 further worlds are made and retired, 250 at once | |
//!
//! A switch has up to two parts. What hits a world is a [`WorldFault`]: the game chooses the world and adds
//! [`FaultPlugin`] to it. What goes on beside the worlds is a [`BackgroundFault`]. Both begin with [`start`], when the
//! worlds are made. A game that can put a fault nowhere refuses its switch. Sizes are for worlds of 20 Hz;
//! [`WorldFault::at_rate`] fits them to others.
//!
//! Which action it is that `rare-crash` strikes follows from the world's seed, the tick and what came in it: a replay of a recording comes
//! to it again.
//!
//! They look at a real clock, as nothing else in a game does, and they never change what a world computes: only how
//! long it takes. Without a switch none of it is in any world.

mod background;
mod hang;
mod turnover;
mod world;

use std::str::FromStr;

use throng::{Server, server::ServerError};
use throng_crash::drill::Death;

pub use background::BackgroundFault;
pub use hang::Hang;
pub use turnover::Turnover;
pub use world::{FaultPlugin, Once, Panic, WorldFault};

/// A fault by name, with the sizes that the tests of the project use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultSwitch {
    CostlyHideout,
    HungWorld,
    HungIn(Hang),
    StuckWorld,
    SlowWorld,
    Surge,
    ShortSurge,
    Spikes,
    LockInversion,
    StolenCores,
    LongTasks,
    AllocRate,
    OverBudget,
    BigAlloc,
    Leak,
    Dies(Death),
    /// Every so many actions [1 or more].
    RareCrash {
        one_in: u32,
    },
    Panics(Panic),
    HungryWorld,
    HungStart,
    Turnover,
}

/// Actions of which `rare-crash` strikes one, unless somebody says otherwise.
const RARE_ONE_IN: u32 = 100_000;

const NAMES: [(&str, FaultSwitch); 33] = [
    ("dear-hideout", FaultSwitch::CostlyHideout),
    ("hung-world", FaultSwitch::HungWorld),
    ("stuck-world", FaultSwitch::StuckWorld),
    ("slow-world", FaultSwitch::SlowWorld),
    ("surge", FaultSwitch::Surge),
    ("short-surge", FaultSwitch::ShortSurge),
    ("spikes", FaultSwitch::Spikes),
    ("lock-inversion", FaultSwitch::LockInversion),
    ("stolen-cores", FaultSwitch::StolenCores),
    ("long-tasks", FaultSwitch::LongTasks),
    ("alloc-rate", FaultSwitch::AllocRate),
    ("over-budget", FaultSwitch::OverBudget),
    ("big-alloc", FaultSwitch::BigAlloc),
    ("leak", FaultSwitch::Leak),
    ("dies-of-stack-overflow", FaultSwitch::Dies(Death::StackOverflow)),
    ("dies-of-double-panic", FaultSwitch::Dies(Death::DoublePanic)),
    ("dies-of-out-of-memory", FaultSwitch::Dies(Death::OutOfMemory)),
    ("dies-of-segv", FaultSwitch::Dies(Death::Segv)),
    ("dies-of-bus", FaultSwitch::Dies(Death::Bus)),
    ("dies-of-abort", FaultSwitch::Dies(Death::Abort)),
    ("rare-crash", FaultSwitch::RareCrash { one_in: RARE_ONE_IN }),
    ("panics-out-of-range", FaultSwitch::Panics(Panic::OutOfRange)),
    ("panics-not-there", FaultSwitch::Panics(Panic::NotThere)),
    ("panics-lent-twice", FaultSwitch::Panics(Panic::LentTwice)),
    ("panics-without-text", FaultSwitch::Panics(Panic::WithoutText)),
    ("panics-in-drop", FaultSwitch::Panics(Panic::InDrop)),
    ("panics-in-command", FaultSwitch::Panics(Panic::InCommand)),
    ("hung-in-loop", FaultSwitch::HungIn(Hang::Loop)),
    ("hung-in-read", FaultSwitch::HungIn(Hang::Read)),
    ("hung-in-lock", FaultSwitch::HungIn(Hang::Lock)),
    ("hungry-world", FaultSwitch::HungryWorld),
    ("hung-start", FaultSwitch::HungStart),
    ("turnover", FaultSwitch::Turnover),
];

/// A fault whose name is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no fault is called `{name}`; there are {}, and rare-crash=N for one action in N", NAMES.map(|(name, _)| name).join(", "))]
pub struct UnknownFault {
    name: String,
}

impl std::fmt::Display for FaultSwitch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())?;
        match self {
            Self::RareCrash { one_in } if *one_in != RARE_ONE_IN => write!(out, "={one_in}"),
            _ => Ok(()),
        }
    }
}

impl FromStr for FaultSwitch {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Self, UnknownFault> {
        let one_in =
            name.strip_prefix("rare-crash=").and_then(|one_in| one_in.parse().ok()).filter(|one_in| *one_in > 0);
        if let Some(one_in) = one_in {
            return Ok(Self::RareCrash { one_in });
        }
        let known = NAMES.iter().find(|(other, _)| *other == name);
        known.map(|(_, fault)| *fault).ok_or_else(|| UnknownFault { name: name.into() })
    }
}

impl FaultSwitch {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.into_iter().map(|(_, fault)| fault)
    }

    /// Without its size.
    pub fn name(self) -> &'static str {
        let is_it = |fault: &Self| match (*fault, self) {
            (Self::RareCrash { .. }, Self::RareCrash { .. }) => true,
            (fault, this) => fault == this,
        };
        NAMES.iter().find(|(_, fault)| is_it(fault)).map_or("", |(name, _)| *name)
    }

    /// What it does to a world, with its usual size.
    pub fn in_world(self) -> Option<WorldFault> {
        match self {
            Self::CostlyHideout => Some(WorldFault::Costly { from_tick: 200, factor: 10 }),
            Self::HungWorld => Some(WorldFault::Hung { at_tick: 200, ms: 2_000, how: Hang::Sleep }),
            Self::HungIn(how) => Some(WorldFault::Hung { at_tick: hangs_at_tick(how), ms: 1_500, how }),
            Self::StuckWorld => Some(WorldFault::Hung { at_tick: 200, ms: 600_000, how: Hang::Sleep }),
            Self::SlowWorld => Some(WorldFault::Slow { busy_ms: 40, every_ticks: 1 }),
            Self::Surge => Some(WorldFault::Surge { usual_ms: 16, times: 5, phase_s: 60 }),
            Self::ShortSurge => Some(WorldFault::Surge { usual_ms: 16, times: 5, phase_s: 10 }),
            Self::Spikes => Some(WorldFault::Slow { busy_ms: 40, every_ticks: 120 }),
            Self::LockInversion => Some(WorldFault::Locked),
            Self::OverBudget => Some(WorldFault::OverBudget { busy_us: BALLAST_BUDGET_US * 6 / 5 }),
            Self::BigAlloc => Some(WorldFault::BigAllocation { bytes: 300 << 10, every_ticks: 40 }),
            Self::Leak => Some(WorldFault::Leak { bytes_per_tick: 32 << 10 }),
            Self::Dies(death) => Some(WorldFault::Dies { at_tick: DIES_AT_TICK, death }),
            Self::RareCrash { one_in } => Some(WorldFault::RareCrash { one_in }),
            Self::Panics(how) => Some(WorldFault::Panics { at_tick: PANICS_AT_TICK, how, once: Once::default() }),
            Self::HungryWorld => Some(WorldFault::Hungry { at_tick: DIES_AT_TICK, bytes: 1 << 30 }),
            Self::StolenCores | Self::LongTasks | Self::AllocRate | Self::HungStart | Self::Turnover => None,
        }
    }

    /// What it does beside the worlds.
    pub fn in_background(self) -> Option<BackgroundFault> {
        match self {
            Self::LockInversion => Some(BackgroundFault::HoldLock { hold_ms: 42, every_s: 2 }),
            Self::StolenCores => Some(BackgroundFault::ForeignProcesses { ms: 200, every_s: 2 }),
            Self::LongTasks => Some(BackgroundFault::LongTasks { seconds: 3, every_s: 20 }),
            Self::AllocRate => Some(BackgroundFault::Allocate { bytes_per_s: 10 << 20 }),
            Self::HungStart => Some(BackgroundFault::HangStart { s: 600 }),
            Self::Turnover => Some(BackgroundFault::Turnover(Turnover { worlds: 10_000, at_once: 250, stay_ms: 200 })),
            _ => None,
        }
    }
}

/// Three worlds of 20 Hz that were made together and hang each in another way do so one after the other: 3 s apart.
fn hangs_at_tick(how: Hang) -> u32 {
    match how {
        Hang::Sleep | Hang::Loop => 100,
        Hang::Read => 160,
        Hang::Lock => 220,
    }
}

/// Long enough after a world's beginning that its players are in it.
const DIES_AT_TICK: u32 = 60;

/// Later than that: after the first checkpoint of a world of 20 Hz.
const PANICS_AT_TICK: u32 = 300;

/// The subsystem that `over-budget` is about, and what it may take in a frame (µs).
const BALLAST: &str = "faults.ballast";
const BALLAST_BUDGET_US: u64 = 5_000;

/// Starts what goes on beside the worlds, and gives the server the budget that a world with [`WorldFault::OverBudget`]
/// breaks.
///
/// Fails when the host has no room for another thread.
pub fn start(
    server: &mut Server,
    worlds: impl IntoIterator<Item = WorldFault>,
    background: &[BackgroundFault],
) -> Result<(), ServerError> {
    if worlds.into_iter().any(|fault| matches!(fault, WorldFault::OverBudget { .. })) {
        server.suggest_budget(BALLAST, BALLAST_BUDGET_US);
    }
    background.iter().try_for_each(|fault| fault.start(server))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_names() {
        for (name, fault) in NAMES {
            assert_eq!((name.parse(), fault.to_string().as_str()), (Ok(fault), name));
            assert!(fault.in_world().is_some() || fault.in_background().is_some(), "{name} does nothing");
        }
        let rare = FaultSwitch::RareCrash { one_in: 300 };
        assert_eq!(
            ("rare-crash=300".parse(), rare.to_string().as_str(), rare.name()),
            (Ok(rare), "rare-crash=300", "rare-crash")
        );
        assert!("rare-crash=0".parse::<FaultSwitch>().is_err() && "rare-crash=often".parse::<FaultSwitch>().is_err());
        assert!("hang".parse::<FaultSwitch>().unwrap_err().to_string().contains("hung-world"));
    }
}
