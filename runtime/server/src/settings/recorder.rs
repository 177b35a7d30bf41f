//! `[recorder]`: the flight recorder's memory, where its captures go, and what may stand in them.

use std::path::PathBuf;

use serde::Deserialize;

use super::{Checks, Section};

/// `[recorder]`: what is remembered, and what is saved.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecorderSettings {
    /// Record at all. Default true. False → a bad frame leaves no more than its length behind.
    pub on: bool,
    /// What the recorder holds [MiB, 1 to 4,096]. Default 64: 10 s at 400,000 scopes a second.
    /// Too low → the pre-roll of a capture is cut short; too high → memory held for moments nobody asks for.
    pub memory_mb: u32,
    /// The folder of captures, made if there is none. Default none: triggers are counted and nothing is saved.
    /// On a disk that stalls → captures come late; frames never wait for it.
    pub captures: Option<PathBuf>,
    /// The file with budgets, triggers and log levels, read again when it changes; beside the settings, unless its path is
    /// absolute. Default none: defaults hold.
    pub rules: Option<PathBuf>,
    /// Keep texts that a player may have had a hand in, such as names in log lines. Default false.
    /// True → captures hold personal data, and are to be kept and given away as such.
    pub free_text: bool,
    /// Note when threads lose their core, as far as the kernel tells. Default true.
    /// False → a capture cannot tell a slow scope from one that was not running.
    pub context_switches: bool,
    /// Note who else has our cores, where the kernel lets this process watch them: with CAP_PERFMON, or
    /// `kernel.perf_event_paranoid` 0 or less. Default true; without `context_switches` nothing is noted.
    /// True → each switch on the host costs its core some 2 us more, 1 % of one that switches 5,000 times a second;
    /// false → a capture guesses which other process had a core.
    pub core_switches: bool,
}

impl Default for RecorderSettings {
    fn default() -> Self {
        Self {
            on: true,
            memory_mb: 64,
            captures: None,
            rules: None,
            free_text: false,
            context_switches: true,
            core_switches: true,
        }
    }
}

impl Section for RecorderSettings {
    fn check(&self, checks: &mut Checks<'_>) {
        checks.range("memory_mb", self.memory_mb, 1..=4_096, "MiB");
        for (key, path) in [("captures", &self.captures), ("rules", &self.rules)] {
            if path.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
                checks.mistake(key, "names nothing; write a path, or remove the key");
            }
        }
    }
}
