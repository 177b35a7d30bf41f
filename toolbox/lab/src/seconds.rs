//! One second of a run, as the server's status line told it: what the charts are drawn from, by what a run is judged to
//! have settled, and all that there is of a server that died.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Keys that a server does not send are zero; those that it adds are dropped.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Second {
    /// Since the server's start (s).
    pub second: u64,
    pub players: u64,
    /// By the name of the kind of world that they are in.
    pub players_by_kind: BTreeMap<String, u64>,
    pub worlds: u64,
    pub worlds_awake: u64,
    pub frame_ms_p50: f64,
    pub frame_ms_max: f64,
    pub frame_budget_ms: f64,
    pub tick_lateness_ms_max: f64,
    /// In this second.
    pub ticks: u64,
    pub ticks_missed: u64,
    /// Of these the host's, and the most that it took of a core for one of them.
    pub ticks_missed_host: u64,
    pub host_took_ms_max: f64,
    pub packets_in: u64,
    pub packets_out: u64,
    pub cpu_cores: f64,
    pub rss_mb: f64,
    /// What should be saved was in memory alone.
    pub saves_are_away: bool,
    /// When it was heard of, some tenths after its end (s since 1970); none of one that was read from a report.
    #[serde(skip)]
    pub heard_unix_s: Option<f64>,
}

impl Second {
    /// `None` if the status tells no second: then it is not drawn.
    pub(crate) fn from_status(status: &Value) -> Option<Self> {
        status.get("second")?;
        serde_json::from_value(status.clone()).ok()
    }

    pub fn players_of(&self, kind: &str) -> f64 {
        self.players_by_kind.get(kind).copied().unwrap_or_default() as f64
    }

    /// Names of the kinds of worlds in any of them, in order.
    pub(crate) fn kinds(seconds: &[Self]) -> BTreeSet<&str> {
        seconds.iter().flat_map(|second| second.players_by_kind.keys()).map(String::as_str).collect()
    }

    /// Players in each kind of world, mean of these seconds.
    pub(crate) fn mean_players_by_kind(seconds: &[Self]) -> BTreeMap<String, f64> {
        let mean =
            |kind: &str| seconds.iter().map(|second| second.players_of(kind)).sum::<f64>() / seconds.len() as f64;
        Self::kinds(seconds).into_iter().map(|kind| (kind.to_owned(), mean(kind))).collect()
    }

    /// What a server that left no report would have said in it, as far as its seconds tell.
    pub(crate) fn sum_up(seconds: &[Self]) -> Map<String, Value> {
        let sum = |value: fn(&Self) -> u64| seconds.iter().map(value).sum::<u64>();
        let mean = |value: fn(&Self) -> f64| seconds.iter().map(value).sum::<f64>() / seconds.len().max(1) as f64;
        let most = |value: fn(&Self) -> f64| seconds.iter().map(value).fold(0.0, f64::max);
        let Some(last) = seconds.last() else { return Map::new() };
        let report = json!({
            "seconds": seconds.len() as f64,
            "worlds": last.worlds,
            "players": last.players,
            "frame_ms": {"max": most(|second| second.frame_ms_max)},
            "frame_budget_ms": last.frame_budget_ms,
            "tick_lateness_ms": {"max": most(|second| second.tick_lateness_ms_max)},
            "ticks": sum(|second| second.ticks),
            "ticks_missed": sum(|second| second.ticks_missed),
            "ticks_missed_host": sum(|second| second.ticks_missed_host),
            "packets_in_per_s": mean(|second| second.packets_in as f64),
            "packets_out_per_s": mean(|second| second.packets_out as f64),
            "server_cpu_cores": mean(|second| second.cpu_cores),
            "server_rss_mb": last.rss_mb,
        });
        report.as_object().cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_server_is_summed_up_from_what_it_said_of_each_second() {
        let second = |second, cpu_cores, frame_ms_max| Second {
            players_by_kind: [("hub".to_owned(), second)].into(),
            ..Second {
                second,
                ticks: 20,
                ticks_missed: 2,
                ticks_missed_host: 1,
                packets_in: 10,
                cpu_cores,
                frame_ms_max,
                ..Second::default()
            }
        };
        let seconds = [second(4, 0.5, 3.0), second(5, 1.0, 7.0), second(6, 0.9, 2.0)];
        let report = Second::sum_up(&seconds);
        assert_eq!(
            (&report["ticks"], &report["ticks_missed"], &report["seconds"]),
            (&json!(60), &json!(6), &json!(3.0))
        );
        assert_eq!(report["ticks_missed_host"], 3);
        assert_eq!((&report["packets_in_per_s"], &report["frame_ms"]), (&json!(10.0), &json!({"max": 7.0})));
        assert!((report["server_cpu_cores"].as_f64().unwrap() - 0.8).abs() < 1e-9);
        assert_eq!(Second::mean_players_by_kind(&seconds), [("hub".to_owned(), 5.0)].into());
        assert_eq!((Second::sum_up(&[]), Second::mean_players_by_kind(&[])), (Map::new(), BTreeMap::new()));
    }
}
