//! What a server says of itself: a line of status every second and a report at the end, both plain data for JSON.
//!
//! Units are in the names. Figures of the report are of the steady window between `measure_begin` and `measure_end`, or
//! of the whole run if nobody set one.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::packet_report::PacketRow;
pub use crate::tick_time::TickTimeUs;

/// Milliseconds at percentiles of a distribution, and its mean.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct PercentilesMs {
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// Which build of the program a server is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Build {
    pub version: String,
    /// Of the source that it was made of; `unknown` if nobody knows.
    pub commit: String,
}

/// The steady window of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ServerReport {
    pub game: String,
    /// None in a server that was not told, such as a test's.
    #[serde(flatten)]
    pub build: Option<Build>,
    pub worlds: usize,
    pub seconds: f64,
    /// Rate of the fastest world kind, and of each kind by name.
    pub tick_hz: u16,
    pub tick_hz_by_kind: BTreeMap<String, u16>,
    pub frame_hz: u32,
    pub workers: usize,
    pub frames: u64,
    pub frame_ms: PercentilesMs,
    /// Pairs of a time in ms and the frames that took up to it and more than the one before; equal steps up to the
    /// worst frame.
    pub frame_ms_histogram: Vec<(f64, u64)>,
    pub frame_budget_ms: f64,
    pub frames_over_budget: u64,
    pub tick_lateness_ms: PercentilesMs,
    pub ticks: u64,
    /// Ticks that did not start within their period, and those of them that are the host's: it took a core away
    /// for 25 ms or more. The others are our own.
    pub ticks_missed: u64,
    pub ticks_missed_host: u64,
    /// Ticks of worlds whose time was slowed for overload; the share of all worlds' time that was lost by it; and the
    /// slowest that any world's time ran, 1 being as fast as a clock's. See [`overload`](crate::overload).
    pub ticks_slowed: u64,
    pub time_lost_share: f64,
    pub time_factor_min: f64,
    /// Share of a frame's time in the worlds part in which a worker had nothing to do while another still worked, mean
    /// of frames.
    pub idle_tail_share: f64,
    pub players: usize,
    pub server_cpu_cores: f64,
    /// What a tick of a world costs the processor, split; none without a recorder.
    pub tick_time_us: Option<TickTimeUs>,
    /// What the scopes of each subsystem took per tick (µs), waits for a core included.
    pub scopes_us_per_tick: BTreeMap<&'static str, f64>,
    /// What the rules at the report's time let each of them take, as they come to a tick of the window (µs); nothing of those of which the
    /// rules say nothing. A frame's budget is divided by the ticks of a mean frame.
    pub budgets_us_per_tick: BTreeMap<&'static str, f64>,
    /// The same by heading (`throng_profiler::Category`), which stay while subsystems come and go.
    pub categories_us_per_tick: BTreeMap<&'static str, f64>,
    /// How long a tick of each kind of world took by the clock, mean of those that ended in the window.
    pub tick_ms_mean_by_kind: BTreeMap<String, f64>,
    /// How long after its period the latest of them ended.
    pub tick_lateness_ms_max_by_kind: BTreeMap<String, f64>,
    pub server_rss_mb: f64,
    pub packets_in_per_s: f64,
    pub packets_out_per_s: f64,
    pub bytes_out_per_s: f64,
    pub bytes_out_per_player_per_s: f64,
    pub bytes_per_entity_update: f64,
    pub entity_updates_per_s: f64,
    pub packets_lost_per_s: f64,
    /// Datagrams that the kernel did not take; owed again when their loss is noticed.
    pub send_dropped: u64,
    /// Allocations on workers and the frame thread.
    pub allocations_per_frame: f64,
    /// Clients let in, and the longest that one of them waited in line since the start of the server.
    pub joined_per_s: f64,
    pub join_wait_ms_max: u64,
    /// Clients in line, and waiting for their world, at the end.
    pub join_queue: u64,
    pub placements_pending: u64,
    /// Clients refused because their world was not ready in time, and because the line was full.
    pub placements_timed_out: u64,
    pub refused_queue_full: u64,
    pub disconnects: u64,
    pub worlds_parked: u64,
    pub world_hangs: u64,
    /// Datagrams, and messages of those that opened, that were refused, by cause.
    pub datagrams_refused: BTreeMap<&'static str, u64>,
    /// Values that were NaN or infinite. They were not sent, and their entities are no longer replicated.
    pub poisoned: u64,
    /// What went to the clients by kind, cause and world, the costliest first.
    pub packets: Vec<PacketRow>,
    pub events_per_s: f64,
    /// Events told, once for each client that heard.
    pub event_copies_per_s: f64,
    /// Events that came faster than their rule allows, and were told to nobody.
    pub events_throttled: u64,
    /// All that the server counts, by the names of `docs/metrics.md`.
    pub counters: BTreeMap<&'static str, u64>,
    /// What the process used in the window by its own word and by others', by the names of `docs/metrics.md`: from the
    /// reading before its begin to the one before its end. Without what the host does not tell, which is named below.
    pub accounts: BTreeMap<&'static str, f64>,
    pub accounts_missing: Vec<&'static str>,
    /// When the server ended, not everything could be saved.
    pub saves_missing: bool,
    /// Captures that the recorder saved since the start, and triggers that fired within the cooldown of their cause.
    pub captures: u64,
    pub captures_in_cooldown: u64,
    /// Triggers since the start that were lost because too many captures waited, and captures that the disk did not
    /// take.
    pub captures_lost: u64,
    /// What the recorder took note of in the window, and what it had no room for.
    pub scopes_per_s: f64,
    pub records_lost: u64,
    /// What recording adds to the processor time of a tick, measured in turns; none if the server took no turns.
    pub recorder_cpu_share: Option<f64>,
    /// Low and high end of its 95 % interval; none of fewer than six comparisons, which take 8 s.
    pub recorder_cpu_share_interval: Option<[f64; 2]>,
    /// The game's counters, as rates per second.
    pub game_per_s: BTreeMap<&'static str, f64>,
    /// The most that each of them counted in one frame.
    pub game_frame_max: BTreeMap<&'static str, u64>,
    /// Of each mean that the game keeps (`sample!`): the mean of the values that were added in the window. Nothing of those to
    /// which none was added.
    pub game_mean: BTreeMap<&'static str, f64>,
    /// The game's gauges, as they stood at the end of the window.
    pub game_gauges: BTreeMap<&'static str, i64>,
    /// And the highest at the end of any frame.
    pub game_gauges_max: BTreeMap<&'static str, i64>,
}

/// One second of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ServerStatus {
    pub second: u64,
    pub players: usize,
    /// In the worlds of each kind, also of those that nobody is in; who is on the way counts where it goes.
    pub players_by_kind: BTreeMap<String, usize>,
    /// Clients in line to come in, and those whose world is being made.
    pub join_queue: u64,
    pub placements_pending: u64,
    pub worlds: usize,
    pub worlds_awake: usize,
    /// By which no world is made for now, see [`crate::parking`].
    pub plans_parked: usize,
    /// The step of the overload ladder of the world that is worst off, 0 for none; worlds that are on any; and whether
    /// newcomers wait in line because of it. See [`overload`](crate::overload).
    pub overload_level: u8,
    pub worlds_overloaded: usize,
    /// Worlds whose time is slowed, the slowest that any ran in this second, and the share of all worlds' time that was
    /// lost by it.
    pub worlds_slowed: usize,
    pub time_factor_min: f64,
    pub time_lost_share: f64,
    pub admission_is_closed: bool,
    /// Workers that leave their cores to long tasks, whether newcomers wait because dropped worlds pile up, how many long
    /// tasks wait, and what all that are not done will take of a core; of that what gives memory back. See
    /// [`long_tasks`](crate::long_tasks).
    pub starvation_level: usize,
    pub admission_waits: bool,
    pub long_tasks_waiting: usize,
    pub long_tasks_ms: f64,
    pub long_tasks_freeing_ms: f64,
    pub frame_ms_p50: f64,
    pub frame_ms_max: f64,
    pub frame_budget_ms: f64,
    pub tick_lateness_ms_max: f64,
    pub ticks: u64,
    pub ticks_missed: u64,
    /// Of these the host's, and the most that it took of a core for one of them; zero if none is.
    pub ticks_missed_host: u64,
    pub host_took_ms_max: f64,
    pub packets_in: u64,
    pub packets_out: u64,
    pub bytes_out: u64,
    pub cpu_cores: f64,
    /// The same by the account of the process's control group, with all that is in it; the limit of that group; and the
    /// share of the limit's periods in which it had to stand still. None where the host does not tell.
    pub group_cpu_cores: Option<f64>,
    pub group_quota_cores: Option<f64>,
    pub group_throttled_share: Option<f64>,
    pub rss_mb: f64,
    /// The store of the saves has failed, is too slow or stands still: what is new is in memory alone.
    pub saves_are_away: bool,
    pub game_gauges: BTreeMap<&'static str, i64>,
}
