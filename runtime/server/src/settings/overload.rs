//! `[overload]`: when a world counts as overloaded, and whether anything is done about it.

use serde::Deserialize;

use super::{Checks, Section};

/// `[overload]`: the ladder of [`overload`](crate::overload).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct OverloadSettings {
    /// Do something about overload at all. Default true. False → a world that has too little time misses ticks, whatever
    /// clients think of it, and those who come make it worse.
    pub on: bool,
    /// A world whose ticks end after this share of their period is busy, and goes a step up when it stays so for half a
    /// second [share, 0.1 to 2]. Default 0.9.
    /// Too low → players are told less though there is time; too high → ticks are missed before anything is done.
    pub busy_share: f32,
    /// One whose ticks end before this share is calm, and goes a step down after a second [share, 0.05 to less than
    /// `busy_share`]. Default 0.6.
    /// Too low → it stays a step up for long; too near to `busy_share` → it goes up and down.
    pub calm_share: f32,
    /// As slow as a world's time may get where it cannot hold its rate otherwise [share of a clock's time, 0.1 to 1].
    /// Default 0.1. 1 → time never slows: for games whose players would rather have ticks missed than slow motion.
    /// Too low → slow motion that nobody can play in; too high → ticks are missed beyond it. Worlds of less than 10 Hz are
    /// slowed to one tick a second at most.
    pub slowest_time: f32,
}

impl Default for OverloadSettings {
    fn default() -> Self {
        Self { on: true, busy_share: 0.9, calm_share: 0.6, slowest_time: 0.1 }
    }
}

impl Section for OverloadSettings {
    fn check(&self, checks: &mut Checks<'_>) {
        let Self { on: _, busy_share, calm_share, slowest_time } = *self;
        checks.range("slowest_time", slowest_time, 0.1..=1.0, "of a clock's time");
        let in_range = checks.range("busy_share", busy_share, 0.1..=2.0, "of a period")
            & checks.range("calm_share", calm_share, 0.05..=2.0, "of a period");
        if in_range && calm_share >= busy_share {
            checks.mistake(
                if checks.has("calm_share") { "calm_share" } else { "busy_share" },
                format!("calm_share is {calm_share} and busy_share is {busy_share}; make calm_share the smaller one"),
            );
        }
    }
}
