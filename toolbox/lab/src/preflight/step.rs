//! What a workload says when it is ready, of a step and of its scopes: lines of docs/spec/workload.md, as the one side writes them and
//! the other reads them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A process that is ready. Earlier builds may leave any of it out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ready {
    pub version: String,
    pub commit: String,
    #[serde(flatten)]
    pub played: Played,
    /// What is wrong with the files of the recording, and what is left out for it.
    pub recording_faults: Vec<String>,
    /// Why the processor's instructions are not counted, if they are not.
    #[serde(default = "not_counted_yet")]
    pub instructions_missing: Option<String>,
    /// Why the flight recorder goes by the default rules and not by the recorded ones, if it does.
    pub rules_missing: Option<String>,
}

/// What a process plays: a game with its bots, or a recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Played {
    pub game: String,
    /// With bots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub players: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npcs: Option<u32>,
    /// File or folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<PathBuf>,
    /// So many tick at one time, in the mean of the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worlds: Option<u64>,
    /// Behind the warm-up, of all worlds of the recording together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticks: Option<u64>,
}

fn not_counted_yet() -> Option<String> {
    Some("it is a build that does not count them yet".to_owned())
}

/// One step of one process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// By subsystem: category, and time without others inside (ns).
    pub times_ns: BTreeMap<String, (String, u64)>,
    pub allocations: u64,
    pub packets_out: u64,
    pub bytes_out: u64,
    /// For a core, of all threads of the server.
    pub waited_ns: u64,
    /// Of the server's frames; none where they are not counted.
    #[serde(default)]
    pub instructions: Option<u64>,
    /// Of a recording, a number of its states so far.
    #[serde(default)]
    pub states: u64,
}

impl Step {
    pub(super) fn ns(&self, subsystem: &str) -> f64 {
        self.times_ns.get(subsystem).map_or(0.0, |(_, ns)| *ns as f64)
    }

    pub(super) fn category_ns(&self, category: &str) -> f64 {
        self.times_ns.values().filter(|(of, _)| of == category).map(|(_, ns)| *ns as f64).sum()
    }

    pub(super) fn all_ns(&self) -> f64 {
        self.times_ns.values().map(|(_, ns)| *ns as f64).sum()
    }
}

/// What scopes took in the last steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Scopes {
    /// By name.
    pub scopes: BTreeMap<String, ScopeSum>,
}

/// Subsystem, scopes, and time without others inside (ns).
pub type ScopeSum = (String, u64, u64);
