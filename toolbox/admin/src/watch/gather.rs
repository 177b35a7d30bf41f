//! Gathering: the document of a server, made of what its frame published and of what others keep anyway.
//!
//! Runs on the admin thread, once a second while somebody watches. What is the frame's own came from it without a lock
//! that it waits for; the rest is read where it lies: memory by scope, the accounts, the recorder's figures and rules.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use throng::metrics::PublishedMetrics;
use throng::overload::Level;
use throng::packet_report::PacketRow;
use throng::questions::WorldRow;
use throng::report::ServerStatus;
use throng::watch::{HOST_FIGURES_KEPT, KindSecond, PastSecond, SubsystemSecond, WatchedSecond, Watcher};
use throng_platform::time::Nanos;
use throng_profiler::rules::Rules;
use throng_profiler::{memory, site};

use super::WatchSource;
use super::document::{
    CLIENTS_MAX, CategoryTime, ClientNow, Count, Door, Frames, Health, HostFigure, HostPast, InKind, KindOfWorld, Load,
    MemoryNow, PACKETS_MAX, PacketsOfKind, Past, RecorderNow, SCOPES_MAX, ScopeMemory, Second, ServerNow, Subsystem,
    Text, WORLDS_MAX, Worlds,
};
use crate::AdminSource;

/// A server that is watched.
pub(crate) struct ServerWatch {
    published: Arc<PublishedMetrics>,
    watcher: Watcher,
}

impl ServerWatch {
    pub(crate) fn begin(published: Arc<PublishedMetrics>) -> Self {
        let watcher = published.watch();
        Self { published, watcher }
    }
}

impl WatchSource for ServerWatch {
    fn frames(&mut self) -> Frames {
        let mut frames = Frames::default();
        let lost = self.watcher.frames(|number, us| {
            frames.numbers.push(number as f64);
            frames.us.push(us);
        });
        frames.lost = lost as f64;
        frames
    }

    fn health(&mut self) -> Health {
        let published = &*self.published;
        let health = AdminSource::health(published);
        Health {
            state: health.state.name().into(),
            frame_age_ms: rounded(health.frame_age_ms),
            workers_stuck_ms: rounded(health.workers_stuck_ms),
            worlds_stuck: published.worlds_stuck() as u32,
            long_tasks_stuck: published.long_tasks_stuck() as u32,
            saves_are_away: health.are_saves_away,
            ..Health::default()
        }
    }

    fn second(&mut self) -> Option<Second> {
        let watched = self.watcher.second()?;
        let (published, status) = (&*self.published, &watched.status);
        let rules = published.recorder().map(|recorder| recorder.rules()).unwrap_or_default();
        let subsystems = subsystems(&watched, &rules);
        Some(Second {
            at_unix_s: unix_s(published, watched.at),
            server: server(&watched),
            load: load(published, status),
            door: Door { join_queue: status.join_queue as u32, placements_pending: status.placements_pending as u32 },
            categories: categories(&subsystems),
            subsystems,
            kinds: watched.kinds.iter().map(kind).collect(),
            worlds: worlds(&watched.worlds, |at| unix_s(published, at)),
            worlds_left_out: watched.worlds.len().saturating_sub(WORLDS_MAX) as u32,
            packets: packets(published),
            clients: clients(published),
            memory: memory_now(status),
            host: host(published),
            recorder: recorder(published),
        })
    }
}

/// A moment of the server's clock by that of the host (s since 1970).
fn unix_s(published: &PublishedMetrics, at: Nanos) -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    rounded(now.as_secs_f64() - published.age(at).as_secs_f64())
}

/// The seconds before a stream begins: some 20 KB for all that are kept.
pub(crate) fn past(published: &PublishedMetrics) -> Past {
    let past = published.past_seconds();
    let host = |(place, name): (usize, &'static str)| HostPast {
        name: name.into(),
        values: of_past(&past, |second| second.host[place].map(rounded)),
    };
    Past {
        second: of_past(&past, |second| second.second as u32),
        at_unix_s: of_past(&past, |second| unix_s(published, second.at)),
        players: of_past(&past, |second| second.players as u32),
        worlds_overloaded: of_past(&past, |second| second.worlds_overloaded as u32),
        frame_ms_max: of_past(&past, |second| rounded(second.frame_ms_max)),
        frame_budget_ms: of_past(&past, |second| rounded(second.frame_budget_ms)),
        ticks_missed: of_past(&past, |second| second.ticks_missed as u32),
        bytes_out_per_s: of_past(&past, |second| second.bytes_out_per_s.min(u32::MAX.into()) as u32),
        cpu_cores: of_past(&past, |second| rounded(second.cpu_cores)),
        rss_mb: of_past(&past, |second| rounded(second.rss_mb)),
        host: HOST_FIGURES_KEPT.into_iter().enumerate().map(host).collect(),
    }
}

fn of_past<T>(past: &[PastSecond], figure: impl Fn(&PastSecond) -> T) -> Vec<T> {
    past.iter().map(figure).collect()
}

fn server(watched: &WatchedSecond) -> ServerNow {
    let status = &watched.status;
    ServerNow {
        second: status.second as f64,
        workers: watched.workers as u32,
        players: status.players as u32,
        players_by_kind: counts(status.players_by_kind.iter().map(|(kind, count)| (kind.as_str(), *count as f64))),
        worlds: status.worlds as u32,
        worlds_awake: status.worlds_awake as u32,
        plans_parked: status.plans_parked as u32,
        frame_ms_p50: status.frame_ms_p50,
        frame_ms_max: status.frame_ms_max,
        frame_budget_ms: status.frame_budget_ms,
        tick_lateness_ms_max: status.tick_lateness_ms_max,
        ticks: status.ticks as f64,
        ticks_missed: status.ticks_missed as f64,
        ticks_missed_host: status.ticks_missed_host as f64,
        host_took_ms_max: status.host_took_ms_max,
        packets_in_per_s: status.packets_in as f64,
        packets_out_per_s: status.packets_out as f64,
        bytes_out_per_s: status.bytes_out as f64,
        cpu_cores: status.cpu_cores,
        rss_mb: status.rss_mb,
        game_gauges: counts(status.game_gauges.iter().map(|(name, value)| (*name, *value as f64))),
    }
}

fn counts<'a>(pairs: impl Iterator<Item = (&'a str, f64)>) -> Vec<Count> {
    pairs.map(|(name, count)| Count { name: name.to_owned(), count }).collect()
}

fn load(published: &PublishedMetrics, status: &ServerStatus) -> Load {
    Load {
        overload: published.overload_level().name().into(),
        worlds_overloaded: status.worlds_overloaded as u32,
        worlds_slowed: status.worlds_slowed as u32,
        time_factor_min: status.time_factor_min,
        time_lost_share: status.time_lost_share,
        admission_is_closed: status.admission_is_closed,
        starvation_level: status.starvation_level as u32,
        admission_waits: status.admission_waits,
        long_tasks_waiting: status.long_tasks_waiting as u32,
        long_tasks_ms: status.long_tasks_ms,
        long_tasks_freeing_ms: status.long_tasks_freeing_ms,
    }
}

const NS_PER_US: f64 = 1e3;

/// To a hundredth.
fn us(ns: u64) -> f64 {
    rounded(ns as f64 / NS_PER_US)
}

/// To a hundredth, which is shorter to write and to send than all digits.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Budgets that nothing has been measured against yet are told as well.
fn subsystems(watched: &WatchedSecond, rules: &Rules) -> Vec<Subsystem> {
    let frames = watched.frames.max(1) as f64;
    let mut told: Vec<Subsystem> = (watched.subsystems.iter())
        .map(|of| Subsystem {
            name: of.name.into(),
            category: of.category.into(),
            us_per_frame: rounded(us(of.taken_ns) / frames),
            us_frame_max: us(of.frame_ns_max),
            lock_wait_us_per_frame: rounded(us(of.lock_wait_ns) / frames),
            budget_us: said(&rules.subsystem_budgets_ns, of.name),
            kinds: in_kinds(of, &watched.kinds, rules),
        })
        .collect();
    told.sort_by(|a, b| b.us_per_frame.total_cmp(&a.us_per_frame));
    told
}

fn said(budgets: &[(String, u64)], name: &str) -> Option<f64> {
    budgets.iter().find(|(other, _)| other == name).map(|(_, budget_ns)| us(*budget_ns))
}

fn in_kinds(of: &SubsystemSecond, kinds: &[KindSecond], rules: &Rules) -> Vec<InKind> {
    let mut told = BTreeMap::<&str, InKind>::new();
    let entry = |kind: Text| InKind { kind, ..InKind::default() };
    for taken in &of.in_kinds {
        let in_kind = told.entry(taken.kind).or_insert_with(|| entry(taken.kind.into()));
        in_kind.us_frame_max = us(taken.frame_ns_max);
        let ticks = kinds.iter().find(|kind| kind.kind == taken.kind).map(|kind| kind.ticks as f64);
        in_kind.us_per_tick = ticks.map(|ticks| rounded(us(taken.taken_ns) / ticks));
    }
    for budgets in &rules.kind_budgets {
        let (per_frame, per_tick) = (said(&budgets.subsystems_ns, of.name), said(&budgets.per_tick_ns, of.name));
        if per_frame.is_some() || per_tick.is_some() {
            let in_kind = told.entry(&budgets.kind).or_insert_with(|| entry(budgets.kind.clone().into()));
            (in_kind.frame_budget_us, in_kind.tick_budget_us) = (per_frame, per_tick);
        }
    }
    told.into_values().collect()
}

fn categories(subsystems: &[Subsystem]) -> Vec<CategoryTime> {
    let mut sums = BTreeMap::<&Text, f64>::new();
    subsystems.iter().for_each(|of| *sums.entry(&of.category).or_default() += of.us_per_frame);
    let told = |(name, us): (&Text, f64)| CategoryTime { name: name.clone(), us_per_frame: rounded(us) };
    let mut told: Vec<_> = sums.into_iter().map(told).collect();
    told.sort_by(|a, b| b.us_per_frame.total_cmp(&a.us_per_frame));
    told
}

fn kind(of: &KindSecond) -> KindOfWorld {
    KindOfWorld {
        kind: of.kind.into(),
        ticks: of.ticks as f64,
        tick_us_mean: rounded(us(of.taken_ns) / of.ticks.max(1) as f64),
        tick_us_max: us(of.tick_ns_max),
    }
}

/// What its ticks take of a worker is told to a thousandth of a percent: tables sort by it.
const LOAD_SCALE: f64 = 1e5;

/// `unix_s` tells a moment of the server's clock by that of the host.
fn worlds(all: &[WorldRow], unix_s: impl Fn(Nanos) -> f64) -> Worlds {
    let mut rows: Vec<(u8, f64, &WorldRow)> = all.iter().map(|row| (concern(row), row.load(), row)).collect();
    // One that hangs adds nothing to its load, and is what is looked for.
    rows.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
    rows.truncate(WORLDS_MAX);
    let mut kinds = Vec::<String>::new();
    let mut kind = |row: &WorldRow| {
        let known = kinds.iter().position(|kind| **kind == *row.kind);
        known.unwrap_or_else(|| {
            kinds.push(row.kind.to_string());
            kinds.len() - 1
        }) as u32
    };
    let kind = rows.iter().map(|(.., row)| kind(row)).collect();
    let load = |&(_, load, _): &(u8, f64, &WorldRow)| (load * LOAD_SCALE).round() / LOAD_SCALE;
    Worlds {
        kind,
        kinds,
        load: rows.iter().map(load).collect(),
        world: of_each(&rows, |row| row.id.to_string()),
        rate_hz: of_each(&rows, |row| row.rate.0),
        players: of_each(&rows, |row| row.players as u32),
        is_dormant: of_each(&rows, |row| row.is_dormant),
        time_percent: of_each(&rows, |row| row.time_percent),
        tick_us: of_each(&rows, |row| us(row.tick_cost.0)),
        last_tick_us: of_each(&rows, |row| us(row.last_tick.0)),
        longest_tick_us: of_each(&rows, |row| us(row.longest_tick.0)),
        ticks_missed: of_each(&rows, |row| row.ticks_missed as f64),
        behind_unix_s: of_each(&rows, |row| row.behind.map(|of| [of.since, of.until].map(|at| unix_s(at) as u32))),
        overload: of_each(&rows, |row| row.overload.name().into()),
        hangs_for_ms: of_each(&rows, |row| row.hangs_for().map(|hangs| rounded(hangs.as_millis_f64()))),
    }
}

fn of_each<T>(rows: &[(u8, f64, &WorldRow)], figure: impl Fn(&WorldRow) -> T) -> Vec<T> {
    rows.iter().map(|(.., row)| figure(row)).collect()
}

/// How much it matters that a world is seen, before what it takes does.
fn concern(world: &WorldRow) -> u8 {
    let is_late = world.time_percent < 100 || world.overload != Level::Normal;
    if world.hangs_for().is_some() { 2 } else { u8::from(is_late) }
}

/// Over all worlds: which of them sends what is what the console's `packets --by-world` tells.
fn packets(published: &PublishedMetrics) -> Vec<PacketsOfKind> {
    let rows = published.packets_of_all_worlds().into_iter().take(PACKETS_MAX);
    let told = |row: PacketRow| PacketsOfKind {
        kind: row.kind.into(),
        cause: row.cause.into(),
        packets_per_s: rounded(row.packets_per_s),
        updates_per_s: rounded(row.updates_per_s),
        bytes_per_s: rounded(row.bytes_per_s),
    };
    rows.map(told).collect()
}

fn clients(published: &PublishedMetrics) -> Vec<ClientNow> {
    let rows = published.clients().into_iter().take(CLIENTS_MAX);
    let told = rows.map(|row| ClientNow {
        client: row.client_id.to_string(),
        world: row.world,
        line_us_per_s: rounded(row.line_us_per_s),
        work_per_s: row.work_per_s,
        messages_per_s: row.messages_per_s,
        refused_per_s: row.refused_per_s,
        bytes_in_per_s: row.bytes_in_per_s,
        bytes_out_per_s: row.bytes_out_per_s,
    });
    told.collect()
}

const BYTES_PER_MB: f64 = 1e6;

fn memory_now(status: &ServerStatus) -> MemoryNow {
    let mut by_name = BTreeMap::<&'static str, u64>::new();
    let outside = ("outside of every scope", memory::live_bytes(None));
    let of_sites = site::all().into_iter().map(|site| (site.name(), memory::live_bytes(site.id())));
    of_sites.chain([outside]).for_each(|(name, bytes)| *by_name.entry(name).or_default() += bytes);
    let mut scopes: Vec<(&'static str, u64)> = by_name.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
    scopes.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let mb = |bytes: u64| bytes as f64 / BYTES_PER_MB;
    let (told, others) = scopes.split_at(scopes.len().min(SCOPES_MAX));
    MemoryNow {
        rss_mb: status.rss_mb,
        scopes: told
            .iter()
            .map(|&(scope, bytes)| ScopeMemory { scope: scope.into(), mb: rounded(mb(bytes)) })
            .collect(),
        others_mb: mb(others.iter().map(|(_, bytes)| bytes).sum()),
    }
}

fn host(published: &PublishedMetrics) -> Vec<HostFigure> {
    let figures = published.account_figures().into_iter();
    figures.map(|(name, value)| HostFigure { name: name.into(), value }).collect()
}

fn recorder(published: &PublishedMetrics) -> Option<RecorderNow> {
    let figures = published.recorder()?.figures();
    Some(RecorderNow {
        captures: figures.captures_saved as f64,
        captures_failed: figures.captures_failed as f64,
        in_cooldown: figures.in_cooldown as f64,
        records_lost: figures.records_lost as f64,
        memory_mb: figures.memory_bytes as f64 / BYTES_PER_MB,
    })
}

#[cfg(test)]
mod tests {
    use throng::{ids::WorldId, prelude::Hertz, questions::Behind};
    use throng_platform::allocator::{CountingAllocator, thread_counts};

    use super::super::{document::Line, write};

    use super::*;

    #[global_allocator]
    static ALLOCATOR: CountingAllocator = CountingAllocator;

    fn row(number: u32, tick_us: u64) -> WorldRow {
        WorldRow {
            id: WorldId::new(number, 0),
            kind: ["hub", "hideout"][number as usize % 2].into(),
            rate: Hertz(20),
            players: number as usize,
            is_dormant: false,
            time_percent: 100,
            tick_cost: Nanos::from_micros(tick_us),
            last_tick: Nanos(1_234_567),
            longest_tick: Nanos(0),
            overload: Level::Normal,
            in_tick_for: None,
            ticks_missed: 0,
            behind: None,
        }
    }

    #[test]
    fn the_world_that_hangs_comes_first_then_those_whose_time_is_slowed_then_the_costliest() {
        let mut rows = [row(0, 10), row(1, 500), row(2, 30), row(3, 40)];
        rows[0].in_tick_for = Some(Nanos::from_secs(2));
        rows[2].time_percent = 50;
        rows[2].behind = Some(Behind { since: Nanos::from_secs(7), until: Nanos::from_millis(9_900) });
        let told = worlds(&rows, |at| 1_000.0 + at.as_secs_f64());
        assert_eq!(told.world, ["0", "2", "1", "3"]);
        assert_eq!(told.hangs_for_ms, [Some(2_000.0), None, None, None]);
        assert_eq!(told.behind_unix_s, [None, Some([1_007, 1_009]), None, None]);
        let third = told.rows().nth(2).unwrap();
        assert_eq!((&*third.kind, third.players, third.load), ("hideout", 1, 0.01));
        assert_eq!((third.tick_us, third.last_tick_us), (500.0, 1_234.57));
    }

    /// Promise: the worlds of a line take an allocation for the number of each and some for all, and writing a line takes
    /// none where one as long was written before.
    #[test]
    fn a_line_costs_an_allocation_for_each_world() {
        let rows: Vec<_> = (0..200).map(|number| row(number, 10)).collect();
        let before = thread_counts().allocations;
        let worlds = worlds(&rows, |_| 0.0);
        let taken = thread_counts().allocations - before;
        assert!((200..=230).contains(&taken), "{taken}");
        let line = Line::Second(Box::new(Second { worlds, ..Second::default() }));
        let mut text = Vec::new();
        write(&line, &mut text);
        assert!(text.len() < 80 * rows.len(), "{} bytes", text.len());
        text.clear();
        let before = thread_counts().allocations;
        write(&line, &mut text);
        assert_eq!(thread_counts().allocations, before);
    }
}
