//! What a workload says of a step and of its scopes: lines of docs/spec/workload.md, as the one side writes them and the other reads
//! them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
