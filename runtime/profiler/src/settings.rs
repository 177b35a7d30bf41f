//! Settings of a recorder: how much it keeps, where captures go, and what is in them.

use std::path::PathBuf;

use throng_platform::heartbeat::StallLog;

use crate::rules::Rules;

/// What a recorder is to keep, and where.
#[derive(Debug, Clone)]
pub struct RecorderSettings {
    /// For records of the past (bytes). 64 MiB are 10 s at 400,000 scopes a second; too low → captures lack their
    /// beginning.
    pub memory_bytes: usize,
    /// The folder of captures; without one nothing is saved by itself.
    pub captures: Option<PathBuf>,
    pub rules: Rules,
    /// Program and version, for captures.
    pub build: String,
    pub game: String,
    /// Captures keep log texts and other free text as they are, with what players wrote and where they are.
    pub free_text: bool,
    /// Context switches are recorded, where the host allows it.
    pub context_switches: bool,
    /// Those of all other processes on our cores as well, where the host allows it; nothing without `context_switches`.
    pub core_switches: bool,
    /// Cores that stood still, where there is a heartbeat.
    pub host_stalls: Option<StallLog>,
}

impl Default for RecorderSettings {
    fn default() -> RecorderSettings {
        RecorderSettings {
            memory_bytes: 64 << 20,
            captures: None,
            rules: Rules::default(),
            build: String::new(),
            game: String::new(),
            free_text: false,
            context_switches: true,
            core_switches: true,
            host_stalls: None,
        }
    }
}
