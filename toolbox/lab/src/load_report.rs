//! The figures of one load run: what `throng load --json` prints and `report.json` holds.
//!
//! The server measured itself and so did the bots; each key here says whose word it takes. What either said beyond
//! these keys is kept: the server's in [`LoadReport::more`], flat, and all of the bots' under `bots`. The server's
//! packets by kind and world are told by kind alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use throng_crash::deaths::DeathGroup;

use crate::bars::Bar;
use crate::load_packets::{PacketRow, rows_of_all_worlds};
use crate::saves_cost::SavesCost;
use crate::settling::Settling;

/// Keys of the report that programs rely on; a key in an object with a dot. They stay, whatever else is added.
pub const PROMISED_KEYS: [&str; 51] = [
    "passed",
    "version",
    "commit",
    "game",
    "players_connected",
    "worlds",
    "npcs",
    "tick_hz",
    "seconds",
    "frame_ms.mean",
    "frame_ms.p50",
    "frame_ms.p99",
    "frame_ms.p999",
    "frame_ms.max",
    "tick_lateness_ms.p50",
    "tick_lateness_ms.p99",
    "tick_lateness_ms.max",
    "frame_budget_ms",
    "frames_over_budget",
    "ticks",
    "ticks_missed",
    "ticks_missed_host",
    "server_cpu_cores",
    "worlds_per_core",
    "server_rss_mb",
    "bots_cpu_cores",
    "packets_in_per_s",
    "packets_out_per_s",
    "bytes_out_per_player_per_s",
    "bytes_per_entity_update",
    "entity_updates_per_s",
    "allocations_per_frame",
    "input_to_update_ms.p50",
    "input_to_update_ms.p99",
    "state_errors",
    "disconnects",
    "captures",
    "packet_report",
    "report",
    "not_filled",
    "scenario",
    "settling",
    "players_by_kind",
    "categories_us_per_tick",
    "tick_ms_mean_by_kind",
    "ended_early",
    "capture_files",
    "interrupted",
    "deaths",
    "saves",
    "conditions",
];

/// Keys of [`LoadReport::conditions`]. What is not said is as usual.
pub mod condition {
    /// Bots and NPCs that were wanted; no NPCs of games that have none.
    pub const PLAYERS: &str = "players";
    pub const NPCS: &str = "npcs";
    /// That were injected.
    pub const FAULTS: &str = "faults";
    /// Words that the game takes, for its worlds or its bots: `--all-awake --bot-casts=2`.
    pub const OPTIONS: &str = "options";
    /// Threads that ran worlds, by the server's word.
    pub const WORKERS: &str = "workers";
    /// Threads that drove the bots, where somebody said how many.
    pub const BOTS_THREADS: &str = "bots_threads";
    /// Where the server saved: `report`, `none` or `settings`.
    pub const SAVES: &str = "saves";
    /// `on`: the run was told to record what entered its worlds.
    pub const RECORDING: &str = "recording";
    /// `off`, or `turns`: in every other third of a second.
    pub const RECORDER: &str = "recorder";
    /// `ignored`: worlds were taken in any order.
    pub const COST_ESTIMATES: &str = "cost_estimates";
    /// `none`: the window opened without waiting for the run to settle.
    pub const SETTLING: &str = "settling";
}

/// How much of a core worlds may take that are to hold their tick: the rest is for what comes and goes.
const CORE_SHARE: f64 = 0.9;

/// Mean and percentiles of a time (ms).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FrameMs {
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// How long after the end of its period a tick finished (ms); 0 = in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatenessMs {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

/// From a bot's input to the update that shows it applied (ms).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InputToUpdateMs {
    pub p50: f64,
    pub p99: f64,
}

/// A run in which not every bot came to play in time: how far it came, and what kept the others, by the bots' word.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NotFilled {
    pub players_in: u64,
    pub players_wanted: u64,
    /// When it was given up (s after the bots' start).
    pub after_s: f64,
    /// Still in the server's line, waiting there for their world, and given up for good.
    pub queued: u64,
    pub awaiting_world: u64,
    pub gave_up: u64,
    /// Attempts that were repeated, that the server turned down by reason, and that it did not answer.
    pub retries: u64,
    pub refusals: Map<String, Value>,
    pub timeouts: u64,
    /// Bots that had been in and fell out.
    pub disconnects: u64,
    /// What the server last wrote to its log.
    pub server_words: String,
}

impl NotFilled {
    /// From what the bots last said of themselves.
    pub(crate) fn from_status(status: &Value, players_wanted: u32, after_s: f64, server_words: String) -> Self {
        let count = |key: &str| status.get(key).and_then(Value::as_u64).unwrap_or_default();
        Self {
            players_in: count("players_connected"),
            players_wanted: players_wanted.into(),
            after_s,
            queued: count("players_queued"),
            awaiting_world: count("players_awaiting_world"),
            gave_up: count("connect_failures"),
            retries: count("login_retries"),
            refusals: status.get("login_refusals").and_then(Value::as_object).cloned().unwrap_or_default(),
            timeouts: count("login_timeouts"),
            disconnects: count("disconnects"),
            server_words,
        }
    }
}

impl std::fmt::Display for NotFilled {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { players_in, players_wanted, after_s, queued, awaiting_world, gave_up, retries, timeouts, .. } = self;
        write!(
            out,
            "only {players_in} of {players_wanted} bots were playing after {after_s:.0} s: {queued} in line, \
             {awaiting_world} waiting for their world, {gave_up} gave up; {retries} attempts were repeated, \
             {timeouts} had no answer"
        )?;
        for (reason, count) in &self.refusals {
            write!(out, ", {count} refused ({reason})")?;
        }
        if self.disconnects > 0 {
            write!(out, "; {} fell out again", self.disconnects)?;
        }
        Ok(())
    }
}

/// A process of the run that ended before it was told to, or did not end when it was, or not well. Of both, the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndedEarly {
    /// `serve` or `bots`.
    pub process: String,
    /// What the run was at: `joining`, `settling`, `measuring` or `stopping`.
    pub during: String,
    /// How long after the bots' start that was (s).
    pub after_s: f64,
    /// Its exit status, or the signal that it died of.
    pub status: String,
    /// With which it was started.
    pub command: String,
    /// What it last wrote to its log.
    pub words: String,
    /// The report of its death, and what that says first; none if it left none.
    pub crash_report: Option<String>,
    pub crash_words: Option<String>,
    /// Of a server: how the bots had ended before it, in a line; none if they had not.
    pub other: Option<String>,
}

impl std::fmt::Display for EndedEarly {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { process, during, after_s, status, crash_report, crash_words, other, .. } = self;
        match during.as_str() {
            "stopping" => write!(out, "`{process}` did not end as it was told to ({status})")?,
            during => write!(out, "`{process}` ended early ({status}) while {during}")?,
        }
        write!(out, ", {after_s:.0} s after the bots' start")?;
        if let Some(words) = crash_words {
            write!(out, ": {words}")?;
        }
        if let Some(path) = crash_report {
            write!(out, "; the report of its death is {path}")?;
        }
        if let Some(other) = other {
            write!(out, "; before that {other}")?;
        }
        Ok(())
    }
}

/// A load run in figures, of its steady window unless it says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadReport {
    /// Did every bar hold to the end of the window?
    pub passed: bool,
    pub bars: Vec<Bar>,
    /// Which build the server was, by its own word; empty if it did not say.
    pub version: String,
    pub commit: String,
    pub game: String,
    /// How it was played: `usual`, or the name of a worst case.
    pub scenario: String,
    /// What shaped its load beside game and scenario, by the keys in [`condition`]: runs are held against each other only where all of
    /// it is the same. Empty in reports of earlier builds.
    pub conditions: BTreeMap<String, String>,
    /// How it came to rest before the window; none if that was not waited for.
    pub settling: Option<Settling>,
    /// Players in each kind of world, mean of the window's seconds.
    pub players_by_kind: BTreeMap<String, f64>,
    /// Bots in a world at the end of the window, by the bots' count.
    pub players_connected: u64,
    pub worlds: u64,
    pub npcs: u64,
    pub tick_hz: f64,
    /// Length of the window (s), by the server's clock.
    pub seconds: f64,
    pub frame_ms: FrameMs,
    pub tick_lateness_ms: LatenessMs,
    /// How long a tick of each kind of world took by the clock (ms), mean of the window.
    pub tick_ms_mean_by_kind: BTreeMap<String, f64>,
    /// What scopes took per tick under each heading, waits for a core included (us); empty without a recorder.
    pub categories_us_per_tick: BTreeMap<String, f64>,
    pub frame_budget_ms: f64,
    pub frames_over_budget: u64,
    pub ticks: u64,
    /// Ticks that did not start within their period, whoever is to blame.
    pub ticks_missed: u64,
    /// Of these the host's: it took a core away for 25 ms or more, and they would have been in time otherwise.
    pub ticks_missed_host: u64,
    /// Processor time of the server / time, by the server's word; by the kernel's if it says nothing.
    pub server_cpu_cores: f64,
    /// Worlds like these that hold their tick on nine tenths of one core, by what the server took: counted in worlds of the
    /// fastest kind. Says little where kinds cost differently.
    pub worlds_per_core: f64,
    pub server_rss_mb: f64,
    /// As the server's, by the bots' word or the kernel's.
    pub bots_cpu_cores: f64,
    pub packets_in_per_s: f64,
    pub packets_out_per_s: f64,
    pub bytes_out_per_player_per_s: f64,
    pub bytes_per_entity_update: f64,
    pub entity_updates_per_s: f64,
    pub allocations_per_frame: f64,
    pub input_to_update_ms: InputToUpdateMs,
    /// Wrong, missing or left-over values that the bots saw.
    pub state_errors: u64,
    /// Connections that the bots lost.
    pub disconnects: u64,
    /// Captures saved during the run.
    pub captures: u64,
    /// What each kind of message and component took of the way to the players, the costliest first; none if the server
    /// does not tell.
    pub packet_report: Vec<PacketRow>,
    /// The page of this run; none if no report was asked for.
    pub report: Option<String>,
    /// What it cost to keep players and worlds; none if nothing is saved.
    pub saves: Option<SavesCost>,
    /// Set in a run that was never steady, since not everybody came in: then there is no window, and the server's
    /// figures are of its whole life.
    pub not_filled: Option<NotFilled>,
    /// Set when the server or the bots ended before their time. Without a report of the server's own its figures are put
    /// together from what it said every second.
    pub ended_early: Option<EndedEarly>,
    /// Somebody asked for a stop before the window was over: the figures are of what there was of it, and it has not
    /// passed.
    pub interrupted: bool,
    /// The server's deaths that are reported in the run's folder, earlier runs' among them, grouped by what they died of.
    pub deaths: Vec<DeathGroup>,
    /// The captures that were saved in this run, the earliest first.
    pub capture_files: Vec<String>,
    /// All that the bots reported.
    pub bots: Map<String, Value>,
    /// What else the server reported.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// What the kernel said about both processes over the window: for what they did not say themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct FromOutside {
    pub server_cpu_cores: f64,
    pub server_rss_mb: f64,
    pub bots_cpu_cores: f64,
}

impl LoadReport {
    /// Missed ticks that are not the host's, or of which nothing shows that they are.
    pub fn ticks_missed_ours(&self) -> u64 {
        self.ticks_missed.saturating_sub(self.ticks_missed_host)
    }

    /// Puts the two reports together. `bars` are not judged yet.
    pub(crate) fn merge(
        server: Map<String, Value>,
        bots: Map<String, Value>,
        outside: FromOutside,
    ) -> Result<Self, serde_json::Error> {
        let mut all = server;
        // The server counts disconnects of its own; under this name the bots' word counts, since they are the players.
        if let Some(value) = all.remove("disconnects") {
            all.insert("server_disconnects".to_owned(), value);
        }
        for key in ["players_connected", "disconnects", "state_errors", "input_to_update_ms"] {
            if let Some(value) = bots.get(key) {
                all.insert(key.to_owned(), value.clone());
            }
        }
        if let Some(cores) = bots.get("cpu_cores") {
            all.insert("bots_cpu_cores".to_owned(), cores.clone());
        }
        for (key, value) in [
            ("server_cpu_cores", outside.server_cpu_cores),
            ("server_rss_mb", outside.server_rss_mb),
            ("bots_cpu_cores", outside.bots_cpu_cores),
        ] {
            all.entry(key).or_insert(value.into());
        }
        if let Some(npcs) = all.get("game_gauges").and_then(|gauges| gauges.get("npcs")).cloned() {
            all.entry("npcs").or_insert(npcs);
        }
        let packets = all.remove("packets");
        let counters = all.get("counters").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut all = Value::Object(all);
        drop_nulls(&mut all);
        let mut report: Self = serde_json::from_value(all)?;
        report.packet_report = packets.map_or_else(
            || Ok(Vec::new()),
            |mut packets| {
                drop_nulls(&mut packets);
                rows_of_all_worlds(packets)
            },
        )?;
        report.worlds_per_core = report.count_worlds_per_core();
        report.saves = SavesCost::of(&counters, report.server_cpu_cores * report.seconds);
        report.bots = bots;
        Ok(report)
    }
}

impl LoadReport {
    fn count_worlds_per_core(&self) -> f64 {
        let worlds = self.ticks as f64 / (self.seconds * self.tick_hz);
        let per_core = CORE_SHARE * worlds / self.server_cpu_cores;
        if per_core.is_finite() { per_core } else { 0.0 }
    }
}

/// JSON writes a number that is none as null. As a missing key it becomes the default instead of spoiling the report.
fn drop_nulls(value: &mut Value) {
    if let Value::Object(object) = value {
        object.retain(|_, value| !value.is_null());
        object.values_mut().for_each(drop_nulls);
    }
    if let Value::Array(array) = value {
        array.iter_mut().for_each(drop_nulls);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(object) => object,
            other => panic!("not an object: {other}"),
        }
    }

    #[test]
    fn each_side_is_believed_about_what_it_can_see() {
        let server = json!({
            "game": "precinct", "worlds": 1002, "ticks": 12000, "tick_hz": 20, "seconds": 10.0, "disconnects": 3,
            "frame_ms": {"p50": 1.0, "p99": 2.0, "p999": 3.0, "max": 4.0}, "server_cpu_cores": 0.5,
            "game_gauges": {"npcs": 20000}, "workers": 2,
            "packets": [
                {"kind": "pose", "cause": "change", "world": 1, "packets_per_s": 2.0, "bytes_per_s": 70.0, "updates_per_s": 9.0},
                {"kind": "pose", "cause": "change", "world": 2, "packets_per_s": 1.0, "bytes_per_s": null, "updates_per_s": 1.0},
            ],
        });
        let bots = json!({
            "players_connected": 1000, "disconnects": 0, "state_errors": 2, "cpu_cores": 0.25, "state_checks": 77,
            "input_to_update_ms": {"p50": 30.0, "p99": 60.0, "max": 70.0, "samples": 9}, "packets_in_per_s": 5.0,
        });
        let outside = FromOutside { server_cpu_cores: 9.0, server_rss_mb: 120.0, bots_cpu_cores: 9.0 };
        let report = LoadReport::merge(object(server), object(bots), outside).unwrap();
        assert_eq!((report.game.as_str(), report.worlds, report.npcs), ("precinct", 1002, 20_000));
        assert_eq!((report.players_connected, report.disconnects, report.state_errors), (1000, 0, 2));
        assert_eq!(report.worlds_per_core, 0.9 * 12_000.0 / (10.0 * 20.0) / 0.5);
        assert_eq!((report.server_cpu_cores, report.bots_cpu_cores, report.server_rss_mb), (0.5, 0.25, 120.0));
        assert_eq!(report.frame_ms.p999, 3.0);
        assert_eq!(report.input_to_update_ms, InputToUpdateMs { p50: 30.0, p99: 60.0 });
        // The bots' packets are theirs; under the flat name stands the server's word, and it gave none.
        assert_eq!(report.packets_in_per_s, 0.0);
        assert_eq!(report.more["workers"], 2);
        let packets: Vec<_> = report.packet_report.iter().map(|row| (row.kind.as_str(), row.bytes_per_s)).collect();
        assert_eq!((packets, report.more.get("packets")), (vec![("pose", 70.0)], None));
        assert_eq!(report.more["server_disconnects"], 3);
        assert_eq!(report.bots["state_checks"], 77);
    }

    #[test]
    fn every_promised_key_is_printed_even_when_nobody_reported_it() {
        let empty = LoadReport::merge(Map::new(), Map::new(), FromOutside::default()).unwrap();
        let printed = object(serde_json::to_value(&empty).unwrap());
        for key in PROMISED_KEYS {
            let (object, member) = key.split_once('.').unwrap_or((key, ""));
            let value = printed.get(object).unwrap_or_else(|| panic!("{key} is missing"));
            assert!(member.is_empty() || value.get(member) == Some(&json!(0.0)), "{key}: {value}");
        }
    }

    #[test]
    fn a_figure_that_is_no_number_does_not_spoil_the_others() {
        let server = json!({"ticks": 7, "categories_us_per_tick": {"gameplay": null}, "packets_in_per_s": null, "frame_ms": {"p50": null, "max": 2.0}});
        let report = LoadReport::merge(object(server), Map::new(), FromOutside::default()).unwrap();
        assert_eq!((report.ticks, report.packets_in_per_s, report.frame_ms.max), (7, 0.0, 2.0));
    }

    #[test]
    fn what_is_printed_reads_back() {
        let report = LoadReport { game: "duel".to_owned(), ticks: 7, ..LoadReport::default() };
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<LoadReport>(&text).unwrap(), report);
    }
}
