//! What saving cost a run: how much went to disk, how long the disk took, and what the thread that saves had of the
//! processor. By the server's counters (`saves.*` of `docs/metrics.md`), so of the window alone.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Of the steady window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavesCost {
    pub commits: u64,
    pub bytes: u64,
    /// Each has two fsyncs.
    pub transactions: u64,
    /// The longest, its fsyncs included.
    pub transaction_ms_max: f64,
    /// Processor time of the thread that saves (s), and its share of the server's. What ticks spend on packing is not in it.
    pub thread_cpu_s: f64,
    pub cpu_share: f64,
    /// Commits that the store refused, and frames in which it took nothing: both are handed in again.
    pub refused: u64,
    pub put_off: u64,
}

impl SavesCost {
    /// From a server's counters; `None` if nothing was saved, or was to be.
    pub(crate) fn of(counters: &Map<String, Value>, server_cpu_s: f64) -> Option<Self> {
        let count = |name: &str| counters.get(&format!("saves.{name}")).and_then(Value::as_u64).unwrap_or_default();
        if ["cuts", "commits", "refused", "put_off"].map(count) == [0; 4] {
            return None;
        }
        let thread_cpu_s = count("thread_cpu_us") as f64 / 1e6;
        let cpu_share = thread_cpu_s / server_cpu_s;
        Some(Self {
            commits: count("commits"),
            bytes: count("bytes"),
            transactions: count("transactions"),
            transaction_ms_max: count("transaction_us") as f64 / 1e3,
            thread_cpu_s,
            cpu_share: if cpu_share.is_finite() { cpu_share } else { 0.0 },
            refused: count("refused"),
            put_off: count("put_off"),
        })
    }
}

impl std::fmt::Display for SavesCost {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { commits, bytes, transactions, transaction_ms_max, thread_cpu_s, cpu_share, refused, put_off } = self;
        write!(
            out,
            "saved {} kB in {commits} commits and {transactions} transactions, the longest {transaction_ms_max:.1} ms, by a thread that took \
             {thread_cpu_s:.2} s, {:.2} % of the server's processor time",
            bytes / 1_000,
            cpu_share * 100.0
        )?;
        if *refused > 0 || *put_off > 0 {
            write!(
                out,
                "; the store was away: {refused} commits refused, {put_off} frames in which nothing was taken"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::load_report::tests::object;

    #[test]
    fn the_cost_is_what_the_counters_say() {
        let counters = json!({
            "saves.cuts": 40, "saves.commits": 30, "saves.bytes": 200_000, "saves.transactions": 20,
            "saves.transaction_us": 12_500, "saves.thread_cpu_us": 250_000, "saves.put_off": 3, "server.ticks": 9,
        });
        let cost = SavesCost::of(&object(counters), 5.0).unwrap();
        assert_eq!((cost.commits, cost.bytes, cost.transactions, cost.put_off), (30, 200_000, 20, 3));
        assert_eq!((cost.transaction_ms_max, cost.thread_cpu_s, cost.cpu_share), (12.5, 0.25, 0.05));
        let text = cost.to_string();
        assert!(
            text.contains("200 kB in 30 commits") && text.contains("5.00 %") && text.contains("3 frames"),
            "{text}"
        );
        assert_eq!(SavesCost::of(&object(json!({"saves.cuts": 0, "server.ticks": 9})), 5.0), None);
    }
}
