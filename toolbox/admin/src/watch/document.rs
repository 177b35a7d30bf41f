//! The document: what a watcher of a server is told, line by line, each a JSON object.
//!
//! These types are the one definition of it. `web/console/document.ts` is made of them by a test (`UPDATE_EXPECT=1 cargo
//! test -p throng-admin` writes it), and `throng top` reads lines back into them. `docs/admin.md` says where they come from.
//!
//! Units are in the names. Numbers are such that a double holds them. Lists that can grow have a maximum, and say how much
//! is left out. A figure that nobody knows is null. Times are rounded to a hundredth of their unit: nobody is shown more.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A text that is as a rule one of this executable's own, and is copied for nobody.
pub type Text = Cow<'static, str>;

/// A line of the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Line {
    /// First of all.
    Hello(Hello),
    /// Next, once.
    Past(Past),
    /// Four times a second, if there were any.
    Frames(Frames),
    /// Once a second, whatever the server does.
    Health(Health),
    /// Once a second, unless the frame's thread stands still.
    Second(Box<Second>),
}

/// What does not change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Hello {
    /// Of the executable.
    pub version: String,
    /// What the asker may do: `observe` or `operate`.
    pub role: String,
    /// The name of the asker's key; null without one.
    pub who: Option<String>,
}

/// The last five minutes in what charts show, watched or not: a list for each figure, all of one length, the oldest
/// second first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Past {
    /// Since the start (s).
    pub second: Vec<u32>,
    /// By the host's clock (s since 1970).
    pub at_unix_s: Vec<f64>,
    pub players: Vec<u32>,
    pub worlds_overloaded: Vec<u32>,
    pub frame_ms_max: Vec<f64>,
    pub frame_budget_ms: Vec<f64>,
    pub ticks_missed: Vec<u32>,
    pub bytes_out_per_s: Vec<u32>,
    pub cpu_cores: Vec<f64>,
    pub rss_mb: Vec<f64>,
    /// As in a second's `host`.
    pub host: Vec<HostPast>,
}

/// A figure of the host in each of these seconds; null where it does not tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HostPast {
    pub name: Text,
    pub values: Vec<Option<f64>>,
}

/// Frames that have ended since the line before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Frames {
    /// Their numbers in the grid, and how long each took (us): two lists of one length.
    pub numbers: Vec<f64>,
    pub us: Vec<u32>,
    /// Frames that came too fast to be told.
    pub lost: f64,
}

/// A second of the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Second {
    /// By the host's clock (s since 1970).
    pub at_unix_s: f64,
    pub server: ServerNow,
    pub load: Load,
    pub door: Door,
    /// The costliest first.
    pub subsystems: Vec<Subsystem>,
    pub categories: Vec<CategoryTime>,
    pub kinds: Vec<KindOfWorld>,
    /// The costliest first, `WORLDS_MAX` at most.
    pub worlds: Worlds,
    pub worlds_left_out: u32,
    /// Of most bytes first, `PACKETS_MAX` at most.
    pub packets: Vec<PacketsOfKind>,
    /// Who takes most first, `CLIENTS_MAX` at most.
    pub clients: Vec<ClientNow>,
    pub memory: MemoryNow,
    /// What the process uses by its own word (`inside.`) and by others' (`outside.`); names as in docs/metrics.md.
    pub host: Vec<HostFigure>,
    pub recorder: Option<RecorderNow>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Health {
    /// `running`, `sleeping` or `stuck`.
    pub state: Text,
    /// Since the end of the last frame (ms).
    pub frame_age_ms: f64,
    /// For how long no worker has finished a tick though each has one (ms).
    pub workers_stuck_ms: f64,
    pub worlds_stuck: u32,
    pub long_tasks_stuck: u32,
    /// The store of the saves has failed, or takes nothing.
    pub saves_are_away: bool,
    /// Requests that changed something since the start; `changes` of the console lists the last.
    pub changes: f64,
    pub watch: WatchCost,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ServerNow {
    /// Since the start (s).
    pub second: f64,
    pub workers: u32,
    pub players: u32,
    pub players_by_kind: Vec<Count>,
    pub worlds: u32,
    pub worlds_awake: u32,
    pub plans_parked: u32,
    pub frame_ms_p50: f64,
    pub frame_ms_max: f64,
    pub frame_budget_ms: f64,
    pub tick_lateness_ms_max: f64,
    pub ticks: f64,
    pub ticks_missed: f64,
    /// Of these the host's, and the most that it took of a core for one of them (ms).
    pub ticks_missed_host: f64,
    pub host_took_ms_max: f64,
    pub packets_in_per_s: f64,
    pub packets_out_per_s: f64,
    pub bytes_out_per_s: f64,
    pub cpu_cores: f64,
    pub rss_mb: f64,
    /// What the game sets.
    pub game_gauges: Vec<Count>,
}

/// A name and a number.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Count {
    pub name: String,
    pub count: f64,
}

/// Overload and starvation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Load {
    /// Of the world that is worst off: `normal` to `admission_closed`.
    pub overload: Text,
    pub worlds_overloaded: u32,
    pub worlds_slowed: u32,
    /// The slowest that any world's time ran [0 to 1], and the share of all worlds' time that was lost by it.
    pub time_factor_min: f64,
    pub time_lost_share: f64,
    pub admission_is_closed: bool,
    /// Workers that leave their cores to long tasks.
    pub starvation_level: u32,
    /// Newcomers wait because dropped worlds pile up.
    pub admission_waits: bool,
    pub long_tasks_waiting: u32,
    /// What all that are not done will take of a core, and of that what gives memory back (ms).
    pub long_tasks_ms: f64,
    pub long_tasks_freeing_ms: f64,
}

/// Who wants in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Door {
    pub join_queue: u32,
    /// Clients whose world is being made.
    pub placements_pending: u32,
}

/// What the scopes of a subsystem took on all threads, without others inside.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Subsystem {
    pub name: Text,
    /// Its heading.
    pub category: Text,
    /// In the mean frame and in the costliest of the second.
    pub us_per_frame: f64,
    pub us_frame_max: f64,
    pub lock_wait_us_per_frame: f64,
    /// What it may take in a frame, in worlds of kinds that have no budget of their own for it; null if nothing is said.
    pub budget_us: Option<f64>,
    /// Of kinds of worlds in which it took anything or has a budget.
    pub kinds: Vec<InKind>,
}

/// A subsystem in the worlds of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct InKind {
    pub kind: Text,
    /// In all worlds of the kind together, in the costliest frame.
    pub us_frame_max: f64,
    pub frame_budget_us: Option<f64>,
    /// In the mean tick of one world; null in a second without ticks.
    pub us_per_tick: Option<f64>,
    pub tick_budget_us: Option<f64>,
}

/// All subsystems of a heading.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CategoryTime {
    pub name: Text,
    pub us_per_frame: f64,
}

/// Ticks of all worlds of a kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct KindOfWorld {
    pub kind: Text,
    pub ticks: f64,
    /// By the clock.
    pub tick_us_mean: f64,
    pub tick_us_max: f64,
}

/// Worlds, in a list for each figure: their names before each figure of each world would be most of a line. All lists are of one
/// length, but for `kinds`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Worlds {
    /// Such as `7` or `7.2`, as commands take it.
    pub world: Vec<String>,
    /// The names of kinds, and of each world which of them it is of.
    pub kinds: Vec<String>,
    pub kind: Vec<u32>,
    pub rate_hz: Vec<u16>,
    pub players: Vec<u32>,
    pub is_dormant: Vec<bool>,
    /// How fast its time runs.
    pub time_percent: Vec<u8>,
    /// Smoothed, and the last one.
    pub tick_us: Vec<f64>,
    pub last_tick_us: Vec<f64>,
    /// Of the last 10 to 20 s.
    pub longest_tick_us: Vec<f64>,
    /// What its ticks take of one worker [0 to 1 and above].
    pub load: Vec<f64>,
    /// Since it is there.
    pub ticks_missed: Vec<f64>,
    /// Its last episode of being behind, by the host's clock (s since 1970): when the first of its late ticks was due, and
    /// when the last of them ended. Null if there was none.
    pub behind_unix_s: Vec<Option<[u32; 2]>>,
    /// Its step of the overload ladder.
    pub overload: Vec<Text>,
    /// For how long a worker has been in its tick, where that is a second and more: it hangs.
    pub hangs_for_ms: Vec<Option<f64>>,
}

/// One of [`Worlds`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorldNow {
    pub world: String,
    pub kind: String,
    pub rate_hz: u16,
    pub players: u32,
    pub is_dormant: bool,
    pub time_percent: u8,
    pub tick_us: f64,
    pub last_tick_us: f64,
    pub longest_tick_us: f64,
    pub load: f64,
    pub ticks_missed: f64,
    pub behind_unix_s: Option<[u32; 2]>,
    pub overload: Text,
    pub hangs_for_ms: Option<f64>,
}

impl Worlds {
    /// One after the other. Where a list is too short for one it has the default; what a server says may be any program's word.
    pub fn rows(&self) -> impl Iterator<Item = WorldNow> {
        fn at<T: Clone + Default>(list: &[T], at: usize) -> T {
            list.get(at).cloned().unwrap_or_default()
        }
        (0..self.world.len()).map(|row| WorldNow {
            world: at(&self.world, row),
            kind: at(&self.kinds, self.kind.get(row).map_or(usize::MAX, |&kind| kind as usize)),
            rate_hz: at(&self.rate_hz, row),
            players: at(&self.players, row),
            is_dormant: at(&self.is_dormant, row),
            time_percent: at(&self.time_percent, row),
            tick_us: at(&self.tick_us, row),
            last_tick_us: at(&self.last_tick_us, row),
            longest_tick_us: at(&self.longest_tick_us, row),
            load: at(&self.load, row),
            ticks_missed: at(&self.ticks_missed, row),
            behind_unix_s: at(&self.behind_unix_s, row),
            overload: at(&self.overload, row),
            hangs_for_ms: at(&self.hangs_for_ms, row),
        })
    }
}

/// What went to clients of one sort.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PacketsOfKind {
    pub kind: Text,
    pub cause: Text,
    pub packets_per_s: f64,
    pub updates_per_s: f64,
    pub bytes_per_s: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ClientNow {
    /// A number of up to 64 bits, in words.
    pub client: String,
    /// Kind and world.
    pub world: String,
    /// Estimated time to open what it sends and to write what it is sent.
    pub line_us_per_s: f64,
    pub work_per_s: f64,
    pub messages_per_s: f64,
    pub refused_per_s: f64,
    pub bytes_in_per_s: f64,
    pub bytes_out_per_s: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MemoryNow {
    pub rss_mb: f64,
    /// Estimated from samples; who holds most first, `SCOPES_MAX` at most. Empty without a recorder.
    pub scopes: Vec<ScopeMemory>,
    /// Of scopes that are left out.
    pub others_mb: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ScopeMemory {
    /// `outside of every scope` for what was allocated there.
    pub scope: Text,
    pub mb: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HostFigure {
    pub name: Text,
    pub value: f64,
}

/// The flight recorder, since the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RecorderNow {
    pub captures: f64,
    pub captures_failed: f64,
    pub in_cooldown: f64,
    pub records_lost: f64,
    pub memory_mb: f64,
}

/// What watching costs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WatchCost {
    /// Streams now, of `WATCHERS_MAX`.
    pub watchers: u32,
    /// What the admin thread took to make the line before, and how long it was.
    pub us: f64,
    pub bytes: u32,
    /// Lines that watchers were too slow for, since the start.
    pub lines_dropped: f64,
}

/// What lists have at most.
pub const WORLDS_MAX: usize = 256;
pub const PACKETS_MAX: usize = 48;
pub const CLIENTS_MAX: usize = 24;
pub const SCOPES_MAX: usize = 24;

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use ts_rs::{Config, TS};

    use super::*;

    const HEAD: &str = "// What a watched server tells, line by line. Made from toolbox/admin/src/watch/document.rs by `UPDATE_EXPECT=1 cargo\n\
                        // test -p throng-admin`: change it there.\n";

    fn path() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../web/console/document.ts")
    }

    fn declarations() -> String {
        let config = Config::default();
        let types = [
            Line::decl(&config),
            Hello::decl(&config),
            Past::decl(&config),
            HostPast::decl(&config),
            Frames::decl(&config),
            Second::decl(&config),
            Health::decl(&config),
            ServerNow::decl(&config),
            Count::decl(&config),
            Load::decl(&config),
            Door::decl(&config),
            Subsystem::decl(&config),
            InKind::decl(&config),
            CategoryTime::decl(&config),
            KindOfWorld::decl(&config),
            Worlds::decl(&config),
            PacketsOfKind::decl(&config),
            ClientNow::decl(&config),
            MemoryNow::decl(&config),
            ScopeMemory::decl(&config),
            HostFigure::decl(&config),
            RecorderNow::decl(&config),
            WatchCost::decl(&config),
        ];
        let declared: String = types.iter().map(|text| format!("\nexport {text}\n")).collect();
        format!("{HEAD}{declared}")
    }

    /// The promise: what the page expects is what the server writes.
    #[test]
    fn the_pages_types_are_these() {
        let (path, expected) = (path(), declarations());
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, &expected).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == expected,
            "{} is of other types; run UPDATE_EXPECT=1 cargo test -p throng-admin",
            path.display()
        );
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let second = Second {
            worlds: Worlds { world: vec!["7.2".to_owned()], load: vec![0.25], ..Worlds::default() },
            recorder: Some(RecorderNow::default()),
            ..Second::default()
        };
        let line = Line::Second(Box::new(second));
        let text = serde_json::to_string(&line).unwrap();
        assert!(text.starts_with(r#"{"line":"second","#) && !text.contains('\n'), "{text}");
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
    }

    #[test]
    fn worlds_are_told_one_after_the_other_even_where_lists_are_too_short() {
        let worlds = Worlds {
            world: vec!["7".to_owned(), "8.1".to_owned(), "9".to_owned()],
            kinds: vec!["hub".to_owned(), "hideout".to_owned()],
            kind: vec![1, 0, 5],
            players: vec![3, 4],
            ..Worlds::default()
        };
        let told: Vec<_> = worlds.rows().map(|row| (row.world, row.kind, row.players)).collect();
        let expect = [("7", "hideout", 3), ("8.1", "hub", 4), ("9", "", 0)];
        assert_eq!(told, expect.map(|(world, kind, players)| (world.to_owned(), kind.to_owned(), players)));
    }
}
