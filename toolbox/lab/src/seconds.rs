//! One second of a run, as the server's status line told it: what the charts are drawn from.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Keys that a server does not send are zero; those that it adds are dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Second {
    /// Since the server's start (s).
    pub second: u64,
    pub players: u64,
    pub worlds: u64,
    pub worlds_awake: u64,
    pub frame_ms_p50: f64,
    pub frame_ms_max: f64,
    pub frame_budget_ms: f64,
    pub tick_lateness_ms_max: f64,
    /// In this second.
    pub ticks_missed: u64,
    pub packets_in: u64,
    pub packets_out: u64,
    pub cpu_cores: f64,
    pub rss_mb: f64,
}

impl Second {
    /// `None` if the status tells no second: then it is not drawn.
    pub(crate) fn from_status(status: &Value) -> Option<Self> {
        status.get("second")?;
        serde_json::from_value(status.clone()).ok()
    }
}
