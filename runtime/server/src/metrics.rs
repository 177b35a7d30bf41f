//! Metrics: the server's figures as Prometheus sees them.
//!
//! The frame thread keeps a registry of its own and records every frame as it happens: its length, what it counted, and
//! what the games counted in it, so that a single bad frame is in the histogram and in the windows' maxima whenever
//! somebody scrapes. The whole is published once a second (`latest`): the admin thread reads a copy, never the frame's
//! own data.
//!
//! What is counted is declared where it is counted (`throng_metrics::declared`) and reaches registry, console and page
//! from there. `docs/metrics.md` is made of the same declarations (`page`).
//!
//! Cost: about 0.3 µs a frame, 28 ns a tick, and some 20 µs once a second. A game's name that is new allocates once.

mod figures;
#[cfg(test)]
mod page;
mod subsystems;
mod world_kinds;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
};

use serde::Serialize;
use throng_metrics::{
    Beside, Cells, Counter, CounterId, Counters, Exemplar, GaugeId, HistogramId, LabelledGauges, Merge,
    MetricsSnapshot, Registry, WindowMaxId,
    game::{GameTotals, counter_name, gauge_name},
};
pub use throng_metrics::{CONTENT_TYPE as OPEN_METRICS, LabelledCounters, PROTOBUF_CONTENT_TYPE as PROTOBUF};
use throng_net::protocol::{DropReason, ServerHandshakeStats};
use throng_platform::{clock::Clock, time::Nanos};
use throng_profiler::{FrameFigures, KeptCapture, RecorderControl, RecorderFigures};
use throng_scheduler::LongTasks;

use self::subsystems::SubsystemMetrics;
pub(crate) use self::world_kinds::TickOfKind;
use self::world_kinds::WorldKindMetrics;
use figures::*;

use crate::{
    accounts::{self, LatestAccounts},
    client_report::{self, ClientRow, ClientsCounted},
    ids::WorldKindId,
    latest::Latest,
    long_tasks::{self, LongTaskReport},
    overload::ladder::Level,
    packet_report::{self, Counted, PacketRow, PacketSums},
    parking::{Parked, ParkedPlan},
    report::{Build, ServerStatus},
    totals::{LastSecond, Totals},
    watch::{PastSecond, Watch, Watcher},
};

/// The maximum of a window outlives scrape gaps and slow dashboards: a 900 ms frame is seen for this long. (s)
const WINDOW_S: u32 = 300;

/// A counter as of the last second, for the console.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CounterRow {
    /// As in `docs/metrics.md`; `game.NAME` of what the game counts.
    pub name: String,
    /// Since the start; a gauge's as it stands, a maximum's the largest since the start.
    pub value: i64,
    /// Of the last second; none for gauges and maxima.
    pub per_s: Option<f64>,
    pub unit: &'static str,
    pub help: &'static str,
}

/// A row without its text.
#[derive(Debug, Clone, Copy)]
struct CounterNow {
    is_of_game: bool,
    name: &'static str,
    value: i64,
    per_s: Option<f64>,
    unit: &'static str,
    help: &'static str,
}

/// What the admin thread reads: written by the frame thread, read by anybody.
pub struct PublishedMetrics {
    clock: Arc<dyn Clock>,
    snapshot: Latest<Option<MetricsSnapshot>>,
    /// Time of the last frame's end by the server's clock. Written by the frame thread alone; an age that is read a
    /// moment late is still an age, so relaxed order is enough.
    last_frame_at: AtomicU64,
    /// True while the frame thread waits for packets with nothing due. Written and read as above.
    is_sleeping: AtomicBool,
    /// Some world has ticked, or there is none that could. Written and read as above.
    has_ticked: AtomicBool,
    /// For how long all workers have been stuck (ns). Written and read as above.
    workers_stuck_for: AtomicU64,
    /// Worlds that are stuck in their ticks. Written by the watchdog alone, and read as above.
    worlds_stuck: AtomicU64,
    /// Long tasks that are stuck. Written and read as above.
    long_tasks_stuck: AtomicU64,
    /// Written by the frame thread, read by whoever asks; nothing else follows from it, so relaxed order is enough.
    saves_away: AtomicBool,
    analytics_away: AtomicBool,
    /// Workers that leave their cores to long tasks, and whether newcomers wait because of these. Written by the frame
    /// thread alone, and read as above.
    starvation_level: AtomicU64,
    admission_waits: AtomicBool,
    /// Set once, before the first frame.
    long_tasks: OnceLock<LongTasks>,
    /// How overloaded the worlds are together. Written by the frame thread alone, and read as above.
    overload_level: AtomicU8,
    /// Set once, before the first frame.
    recorder: OnceLock<RecorderControl>,
    /// The packet report of the last second.
    packets: Latest<Counted>,
    /// What clients took in the last second.
    clients: Latest<ClientsCounted>,
    /// All counters as of the last second.
    counters: Latest<Vec<CounterNow>>,
    /// Plans by which no world is made, published when that changes, and once a second if somebody was reading then.
    parked: Latest<Vec<Parked>>,
    /// What the process uses, by its own word and by others'. Written by a thread of its own.
    accounts: LatestAccounts,
    /// For those who watch, while somebody does.
    watch: Arc<Watch>,
    /// Names of the kinds of worlds, by id. Set once, before the first frame.
    kind_names: OnceLock<Vec<Arc<str>>>,
}

impl PublishedMetrics {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            snapshot: Latest::default(),
            last_frame_at: AtomicU64::default(),
            is_sleeping: AtomicBool::default(),
            has_ticked: AtomicBool::default(),
            workers_stuck_for: AtomicU64::default(),
            worlds_stuck: AtomicU64::default(),
            long_tasks_stuck: AtomicU64::default(),
            saves_away: AtomicBool::default(),
            analytics_away: AtomicBool::default(),
            starvation_level: AtomicU64::default(),
            admission_waits: AtomicBool::default(),
            long_tasks: OnceLock::new(),
            overload_level: AtomicU8::default(),
            recorder: OnceLock::new(),
            packets: Latest::default(),
            clients: Latest::default(),
            counters: Latest::default(),
            parked: Latest::default(),
            accounts: LatestAccounts::default(),
            watch: Arc::default(),
            kind_names: OnceLock::new(),
        }
    }

    /// The packet report of the last second, the costliest row first. Empty before the first one is over.
    pub fn packets(&self) -> Vec<PacketRow> {
        self.packets.read().rows(|kind| self.kind_name(kind))
    }

    /// The same without its worlds: one row for each kind and cause, the one of most bytes first.
    pub fn packets_of_all_worlds(&self) -> Vec<PacketRow> {
        self.packets.read().rows_of_all_worlds()
    }

    /// The clients that took most in the last second, of each figure some; who asked for most work first. Empty before
    /// the first one is over.
    pub fn clients(&self) -> Vec<ClientRow> {
        self.clients.read().rows(|kind| self.kind_name(kind))
    }

    /// Names of all kinds of worlds; none before the first frame.
    pub fn kind_names(&self) -> Vec<String> {
        self.kind_names.get().into_iter().flatten().map(|name| name.to_string()).collect()
    }

    pub(crate) fn kind_name(&self, kind: WorldKindId) -> String {
        let names = self.kind_names.get().and_then(|names| names.get(usize::from(kind.0)));
        names.map_or_else(|| "world".to_owned(), |name| name.to_string())
    }

    /// All counters of the server, and its game's counters and gauges, as of the last second. Empty before the first
    /// one is over.
    pub fn counters(&self) -> Vec<CounterRow> {
        let row = |&CounterNow { is_of_game, name, value, per_s, unit, help }: &CounterNow| CounterRow {
            name: if is_of_game { format!("game.{name}") } else { name.to_owned() },
            value,
            per_s,
            unit,
            help,
        };
        self.counters.read().iter().map(row).collect()
    }

    /// The plans by which no world is made now; what an operator has just changed may take a second to be told.
    pub fn parked(&self) -> Vec<ParkedPlan> {
        let now = self.clock.now();
        let told = |parked: &Parked| parked.told(self.kind_name(parked.kind), now);
        self.parked.read().iter().filter_map(told).collect()
    }

    pub(crate) fn publish_parked(&self, parked: Vec<Parked>) {
        // As a rule there are none, and nobody has to be told so every second.
        let is_known = parked.is_empty() && self.parked.try_read().is_some_and(|told| told.is_empty());
        if !is_known {
            self.parked.publish(parked);
        }
    }

    pub(crate) fn accounts(&self) -> &LatestAccounts {
        &self.accounts
    }

    /// What the process used in the last second by its own word and by others': names as in `docs/metrics.md`, values where
    /// the host tells them. Empty where nobody reads them.
    pub fn account_figures(&self) -> Vec<(&'static str, f64)> {
        let accounts = self.accounts.read();
        let figures = (*accounts).as_ref().into_iter().flat_map(|accounts| accounts.rates.figures());
        figures.filter_map(|(figure, value)| Some((figure.name, value?))).collect()
    }

    pub(crate) fn watched(&self) -> &Watch {
        &self.watch
    }

    /// Has the frame's thread gather for somebody who looks, until that is dropped.
    pub fn watch(&self) -> Watcher {
        Watcher::begin(self.watch.clone(), self.clock.now())
    }

    /// The last seconds in a few figures each, the oldest first: [`SECONDS_KEPT`](crate::watch::SECONDS_KEPT) at most,
    /// watched or not. Allocates.
    pub fn past_seconds(&self) -> Vec<PastSecond> {
        self.watch.past_seconds()
    }

    /// How many watch.
    pub fn watchers_count(&self) -> usize {
        self.watch.watchers_count()
    }

    pub(crate) fn set_packets(&self, packets: &PacketSums, seconds: f64) {
        let mut counted = Counted::default();
        packets.copy_to(seconds, &mut counted);
        self.packets.publish(counted);
    }

    pub(crate) fn set_clients(&self, clients: ClientsCounted) {
        self.clients.publish(clients);
    }

    pub(crate) fn set_kind_names(&self, names: Vec<Arc<str>>) {
        // The first ones stay: a server is prepared once.
        let _ = self.kind_names.set(names);
    }

    /// The server's recorder, if it has one.
    pub fn recorder(&self) -> Option<&RecorderControl> {
        self.recorder.get()
    }

    pub(crate) fn set_recorder(&self, recorder: RecorderControl) {
        // The first one stays; a server is given one.
        let _ = self.recorder.set(recorder);
    }

    /// Prometheus text as of the last second, and behind it what is counted elsewhere; empty before the first one is over.
    pub fn to_prometheus_text(&self, counters: Vec<LabelledCounters>) -> String {
        let told = self.snapshot.read().as_ref().clone();
        told.map_or_else(String::new, |snapshot| snapshot.to_prometheus_text_with(self.beside(counters)))
    }

    /// The same in Prometheus' protobuf format, with native histograms beside the classic ones.
    pub fn to_prometheus_protobuf(&self, counters: Vec<LabelledCounters>) -> Vec<u8> {
        let told = self.snapshot.read().as_ref().clone();
        told.map_or_else(Vec::new, |snapshot| snapshot.to_prometheus_protobuf(self.beside(counters)))
    }

    /// What is told beside what the frame thread counts.
    fn beside(&self, counters: Vec<LabelledCounters>) -> Beside {
        let rows = self.packets.read().rows_with_silent(|kind| self.kind_name(kind));
        let mut gauges = packet_report::gauges(&rows);
        gauges.extend(client_report::gauges(&self.clients()));
        gauges.extend(accounts::gauges((*self.accounts.read()).as_ref()));
        gauges.extend(long_tasks::gauges(&self.long_tasks()));
        gauges.push(stuck_gauge(&WORLDS_STUCK, self.worlds_stuck()));
        gauges.push(stuck_gauge(&LONG_TASKS_STUCK, self.long_tasks_stuck()));
        gauges.push(stuck_gauge(&SAVES_AWAY, self.are_saves_away().into()));
        gauges.push(stuck_gauge(&ANALYTICS_AWAY, self.are_analytics_away().into()));
        let kept = self.recorder().map(RecorderControl::kept_captures).unwrap_or_default();
        gauges.push(capture_gauge(&kept));
        Beside { gauges, counters, exemplars: kept.iter().filter_map(exemplar).collect() }
    }

    /// Time since a moment of the server's clock.
    pub fn age(&self, at: Nanos) -> Nanos {
        self.clock.now().saturating_sub(at)
    }

    /// Time since the last frame ended.
    pub fn frame_age(&self) -> Nanos {
        self.age(Nanos(self.last_frame_at.load(Ordering::Relaxed)))
    }

    /// True while nothing is due and nobody is there, so that no frame is a good sign.
    pub fn is_sleeping(&self) -> bool {
        self.is_sleeping.load(Ordering::Relaxed)
    }

    /// For how long no worker has finished a tick though each has one, as of the last frame; zero while one is free.
    /// Frames go on meanwhile, and no world ticks.
    pub fn workers_stuck_for(&self) -> Nanos {
        Nanos(self.workers_stuck_for.load(Ordering::Relaxed))
    }

    /// Worlds that are stuck in their ticks now, by the watchdog's word; without one always 0.
    pub fn worlds_stuck(&self) -> u64 {
        self.worlds_stuck.load(Ordering::Relaxed)
    }

    /// Long tasks that block, or take far longer than others of their kind, by the watchdog's word.
    pub fn long_tasks_stuck(&self) -> u64 {
        self.long_tasks_stuck.load(Ordering::Relaxed)
    }

    /// The store of the saves has failed, takes nothing or stands still, as of the last frame: play goes on, and nothing is saved.
    pub fn are_saves_away(&self) -> bool {
        self.saves_away.load(Ordering::Relaxed)
    }

    pub(crate) fn set_saves_away(&self, are_away: bool) {
        self.saves_away.store(are_away, Ordering::Relaxed);
    }

    /// Files of analytics events cannot be written, or their receiver takes none, as of the last frame.
    pub fn are_analytics_away(&self) -> bool {
        self.analytics_away.load(Ordering::Relaxed)
    }

    pub(crate) fn set_analytics_away(&self, are_away: bool) {
        self.analytics_away.store(are_away, Ordering::Relaxed);
    }

    pub(crate) fn set_long_tasks_stuck(&self, count: u64) {
        self.long_tasks_stuck.store(count, Ordering::Relaxed);
    }

    /// How long tasks stand now. Allocates.
    pub fn long_tasks(&self) -> LongTaskReport {
        let (level, waits) = (&self.starvation_level, &self.admission_waits);
        let of =
            |tasks| LongTaskReport::of(tasks, level.load(Ordering::Relaxed) as usize, waits.load(Ordering::Relaxed));
        self.long_tasks.get().map(of).unwrap_or_default()
    }

    pub(crate) fn set_long_task_source(&self, tasks: LongTasks) {
        // The first one stays; a server has one.
        let _ = self.long_tasks.set(tasks);
    }

    pub(crate) fn set_long_tasks(&self, starvation_level: usize, admission_waits: bool) {
        self.starvation_level.store(starvation_level as u64, Ordering::Relaxed);
        self.admission_waits.store(admission_waits, Ordering::Relaxed);
    }

    pub(crate) fn set_worlds_stuck(&self, count: u64) {
        self.worlds_stuck.store(count, Ordering::Relaxed);
    }

    /// The overload level of the world that is worst off: up to a quarter of a second old. Long tasks are to leave the
    /// cores to ticks while it is above [`Level::Normal`].
    pub fn overload_level(&self) -> Level {
        Level::ALL[usize::from(self.overload_level.load(Ordering::Relaxed)).min(Level::ALL.len() - 1)]
    }

    pub(crate) fn set_overload_level(&self, level: Level) {
        self.overload_level.store(level as u8, Ordering::Relaxed);
    }

    /// The first tick has run, so that whoever connects can play; true, too, where there is no world that could tick.
    pub fn has_ticked(&self) -> bool {
        self.has_ticked.load(Ordering::Relaxed)
    }

    pub(crate) fn set_has_ticked(&self) {
        self.has_ticked.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_workers_stuck_for(&self, stuck: Nanos) {
        self.workers_stuck_for.store(stuck.0, Ordering::Relaxed);
    }

    pub(crate) fn set_sleeping(&self, is_sleeping: bool) {
        self.is_sleeping.store(is_sleeping, Ordering::Relaxed);
    }
}

/// How a declared counter is exposed.
enum Told {
    Sum(CounterId),
    Max(WindowMaxId),
}

pub(crate) struct ServerMetrics {
    registry: Registry,
    cells: Cells,
    frame: HistogramId,
    frame_max: WindowMaxId,
    lateness_max: WindowMaxId,
    /// In the order of `Totals`.
    declared: Vec<Told>,
    players: GaugeId,
    join_queue: GaugeId,
    placements_pending: GaugeId,
    worlds: GaugeId,
    worlds_awake: GaugeId,
    worlds_dormant: GaugeId,
    plans_parked: GaugeId,
    overload_level: GaugeId,
    worlds_overloaded: GaugeId,
    worlds_slowed: GaugeId,
    time_factor_min: GaugeId,
    time_lost_share: GaugeId,
    admission_closed: GaugeId,
    starvation_level: GaugeId,
    admission_waits: GaugeId,
    long_tasks_waiting: GaugeId,
    long_tasks_ms: GaugeId,
    long_tasks_freeing_ms: GaugeId,
    cpu_cores: GaugeId,
    rss_bytes: GaugeId,
    heartbeats: GaugeId,
    browsers_open: GaugeId,
    game: GameMetrics,
    subsystems: SubsystemMetrics,
    world_kinds: WorldKindMetrics,
    recorder_before: RecorderFigures,
    /// By reason, and how it stood before.
    refused: [(CounterId, u64); DropReason::ALL.len()],
}

/// What the game counts, by the numbers of its names. `None` of those that were not met yet, and of those whose names
/// come out as another's.
#[derive(Default)]
struct GameMetrics {
    counters: Vec<Met<(CounterId, WindowMaxId)>>,
    gauges: Vec<Met<(GaugeId, WindowMaxId)>>,
    /// How counters stood when they were published last.
    told: Vec<u64>,
}

#[derive(Clone, Copy, Default)]
enum Met<T> {
    #[default]
    Not,
    /// Its name comes out as another's once dots are underscores: it is in reports and in the console only.
    Hidden,
    As(T),
}

impl<T: Copy> Met<T> {
    /// The entry of a number; `register` makes it at the first time.
    fn of(all: &mut Vec<Self>, id: usize, register: impl FnOnce() -> Option<T>) -> Option<T> {
        if id >= all.len() {
            all.resize((id + 1).next_power_of_two(), Met::Not);
        }
        if matches!(all[id], Met::Not) {
            all[id] = register().map_or(Met::Hidden, Met::As);
        }
        match all[id] {
            Met::As(ids) => Some(ids),
            Met::Not | Met::Hidden => None,
        }
    }
}

impl ServerMetrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("throng");
        let frame = registry.register_histogram(FRAME.name, FRAME.help);
        let mut max = |figure: &Figure| registry.register_window_max(figure.name, figure.help, WINDOW_S);
        let (frame_max, lateness_max) = (max(&FRAME_MAX), max(&LATENESS_MAX));
        let declare = |counter: &'static Counter| match counter.merge {
            Merge::Sum => Told::Sum(registry.register_declared(counter)),
            Merge::Max => Told::Max(registry.register_declared_max(counter, WINDOW_S)),
        };
        let declared = Totals::declared().into_iter().map(declare).collect();
        let [
            players,
            join_queue,
            placements_pending,
            worlds,
            worlds_awake,
            worlds_dormant,
            plans_parked,
            overload_level,
            worlds_overloaded,
            worlds_slowed,
            time_factor_min,
            time_lost_share,
            admission_closed,
            starvation_level,
            admission_waits,
            long_tasks_waiting,
            long_tasks_ms,
            long_tasks_freeing_ms,
            cpu_cores,
            rss_bytes,
            heartbeats,
            browsers_open,
        ] = GAUGES.map(|figure| registry.register_gauge(figure.name, figure.help));
        let refused = DropReason::ALL.map(|reason| {
            (registry.register_counter_with(REFUSED.name, REFUSED.help, &[("reason", reason.name())]), 0)
        });
        let cells = registry.cells();
        Self {
            registry,
            cells,
            frame,
            frame_max,
            lateness_max,
            declared,
            players,
            join_queue,
            placements_pending,
            worlds,
            worlds_awake,
            worlds_dormant,
            plans_parked,
            overload_level,
            worlds_overloaded,
            worlds_slowed,
            time_factor_min,
            time_lost_share,
            admission_closed,
            starvation_level,
            admission_waits,
            long_tasks_waiting,
            long_tasks_ms,
            long_tasks_freeing_ms,
            cpu_cores,
            rss_bytes,
            heartbeats,
            browsers_open,
            game: GameMetrics::default(),
            subsystems: SubsystemMetrics::default(),
            world_kinds: WorldKindMetrics::default(),
            recorder_before: RecorderFigures::default(),
            refused,
        }
    }

    /// Which build this is. Once, before the first frame.
    pub fn tell_build(&mut self, build: &Build) {
        let labels = [("version", build.version.as_str()), ("commit", build.commit.as_str())];
        let info = self.registry.register_gauge_with(BUILD.name, BUILD.help, &labels);
        self.registry.set(info, 1.0);
    }

    /// Which kinds of worlds there are, by number. Once, before the first frame.
    pub fn tell_kinds(&mut self, names: &[Arc<str>]) {
        self.world_kinds = WorldKindMetrics::register(&mut self.registry, names);
    }

    /// How many cores are watched for stalls from now on.
    pub fn tell_heartbeats(&mut self, cores: usize) {
        self.registry.set(self.heartbeats, cores as f64);
    }

    /// How many browsers have a tunnel. Once a second.
    pub fn browsers_stand(&mut self, open: usize) {
        self.registry.set(self.browsers_open, open as f64);
    }

    /// What the recorder added up about a frame.
    pub fn subsystems(&mut self, figures: &FrameFigures) {
        if self.subsystems.meet(&mut self.registry) {
            let mut before = std::mem::replace(&mut self.cells, self.registry.cells());
            self.registry.merge(&mut before, Nanos::ZERO);
        }
        self.subsystems.add(figures, &mut self.cells);
    }

    /// What the recorder has counted since the start.
    pub fn recorder(&mut self, figures: RecorderFigures) {
        let before = std::mem::replace(&mut self.recorder_before, figures);
        self.subsystems.add_recorder(&figures, &before, &mut self.cells);
    }

    /// What the handshake has refused since the start.
    pub fn refused(&mut self, stats: &ServerHandshakeStats) {
        for (reason, (id, before)) in DropReason::ALL.into_iter().zip(&mut self.refused) {
            let dropped = stats.dropped(reason);
            self.cells.add(*id, dropped - std::mem::replace(before, dropped));
        }
    }

    /// A counter of the game counted so many in the frame that ends. Before `frame`.
    pub fn game_counted(&mut self, id: usize, in_frame: u64) {
        let Self { registry, cells, game, .. } = self;
        let ids = Met::of(&mut game.counters, id, || {
            let name = format!("game.{}", counter_name(id));
            let family = name.replace('.', "_");
            let is_free = !registry.is_taken(&family) && !registry.is_taken(&format!("{family}_frame_window_max"));
            is_free.then(|| {
                let help = "The most that it counted in one frame of the last five minutes, over all worlds.";
                let most = registry.register_window_max(&format!("{name}_frame"), help, WINDOW_S);
                (registry.register_counter(&name, "Counted by the game."), most)
            })
        });
        if let Some((sum, most)) = ids {
            cells.add(sum, in_frame);
            cells.max(most, in_frame);
        }
    }

    /// How a gauge of the game stands at the end of a frame. Before `frame`.
    pub fn game_stands(&mut self, id: usize, value: i64) {
        let Self { registry, cells, game, .. } = self;
        let ids = Met::of(&mut game.gauges, id, || {
            let name = format!("game.{}", gauge_name(id));
            let family = name.replace('.', "_");
            let is_free = !registry.is_taken(&family) && !registry.is_taken(&format!("{family}_window_max"));
            is_free.then(|| {
                let help = "The highest of the last five minutes, at the end of any frame; 0 if it was never above.";
                let most = registry.register_window_max(&name, help, WINDOW_S);
                (registry.register_gauge(&name, "Set by the game, summed over worlds."), most)
            })
        });
        if let Some((gauge, most)) = ids {
            registry.set(gauge, value as f64);
            cells.max(most, value.max(0) as u64);
        }
    }

    /// A frame is over, in which `counts` were counted.
    pub fn frame(&mut self, length: Nanos, now: Nanos, counts: &Totals, published: &PublishedMetrics) {
        self.cells.record_time(self.frame, length);
        self.cells.max(self.frame_max, length.as_micros());
        let mut declared = self.declared.iter();
        counts.each(&mut |_, value| match declared.next() {
            Some(Told::Sum(id)) => self.cells.add(*id, value),
            Some(Told::Max(id)) => self.cells.max(*id, value),
            None => {}
        });
        self.registry.merge(&mut self.cells, now);
        published.last_frame_at.store(now.0, Ordering::Relaxed);
    }

    /// A tick of a world is over.
    pub fn tick(&mut self, tick: &TickOfKind) {
        self.cells.max(self.lateness_max, tick.lateness.as_micros());
        self.world_kinds.tick(tick, &mut self.cells);
    }

    /// Worlds and players of each kind, once a second: the former by the kind's number, the latter by its name.
    pub fn kinds_stand(&mut self, worlds: &[u64], players: &BTreeMap<String, usize>) {
        self.world_kinds.set(worlds, players, &mut self.registry);
    }

    /// Brings gauges up to date and hands a copy of all to the readers.
    pub fn publish(
        &mut self,
        now: Nanos,
        status: &ServerStatus,
        totals: &Totals,
        last: &LastSecond<'_>,
        game: &GameTotals,
        published: &PublishedMetrics,
    ) {
        self.registry.merge(&mut self.cells, now);
        self.registry.set(self.players, status.players as f64);
        self.registry.set(self.join_queue, status.join_queue as f64);
        self.registry.set(self.placements_pending, status.placements_pending as f64);
        self.registry.set(self.worlds, status.worlds as f64);
        self.registry.set(self.worlds_awake, status.worlds_awake as f64);
        self.registry.set(self.worlds_dormant, status.worlds.saturating_sub(status.worlds_awake) as f64);
        self.registry.set(self.plans_parked, status.plans_parked as f64);
        self.registry.set(self.overload_level, status.overload_level.into());
        self.registry.set(self.worlds_overloaded, status.worlds_overloaded as f64);
        self.registry.set(self.worlds_slowed, status.worlds_slowed as f64);
        self.registry.set(self.time_factor_min, status.time_factor_min);
        self.registry.set(self.time_lost_share, status.time_lost_share);
        self.registry.set(self.admission_closed, u8::from(status.admission_is_closed).into());
        self.registry.set(self.starvation_level, status.starvation_level as f64);
        self.registry.set(self.admission_waits, u8::from(status.admission_waits).into());
        self.registry.set(self.long_tasks_waiting, status.long_tasks_waiting as f64);
        self.registry.set(self.long_tasks_ms, status.long_tasks_ms);
        self.registry.set(self.long_tasks_freeing_ms, status.long_tasks_freeing_ms);
        self.registry.set(self.cpu_cores, status.cpu_cores);
        self.registry.set(self.rss_bytes, status.rss_mb * 1e6);
        published.snapshot.publish(Some(self.registry.snapshot()));
        let mut rows = Vec::new();
        list_declared(totals, last, &mut rows);
        self.game.list(game, last.seconds, &mut rows);
        published.counters.publish(rows);
    }
}

/// The latest captures, each with the moment that it is about: what a dashboard marks, and leads to.
fn capture_gauge(kept: &[KeptCapture]) -> LabelledGauges {
    let row = |capture: &KeptCapture| {
        let KeptCapture { id, trigger, cause, world_kind, .. } = capture;
        (vec![id.clone(), trigger.name().to_owned(), cause.clone(), world_kind.clone()], capture.at_unix_ms as f64)
    };
    LabelledGauges {
        name: CAPTURE_AT.name,
        help: CAPTURE_AT.help.trim_end_matches('.'),
        keys: &["capture", "trigger", "cause", "kind"],
        rows: kept.iter().map(row).collect(),
    }
}

/// Leads from a frame's time to its capture.
fn exemplar(capture: &KeptCapture) -> Option<Exemplar> {
    Some(Exemplar {
        histogram: FRAME.name,
        label: ("capture", capture.id.clone()),
        value_us: capture.frame_us?,
        at_unix_ms: capture.at_unix_ms,
    })
}

fn list_declared(totals: &Totals, last: &LastSecond<'_>, rows: &mut Vec<CounterNow>) {
    let per_s = |count: u64| count as f64 / last.seconds;
    totals.each(&mut |&Counter { name, unit, help, .. }, value| {
        rows.push(CounterNow { is_of_game: false, name, value: value as i64, per_s: None, unit, help });
    });
    let mut rows = rows.iter_mut();
    last.counts.each(&mut |counter, value| {
        if let Some(row) = rows.next()
            && counter.merge == Merge::Sum
        {
            row.per_s = Some(per_s(value));
        }
    });
}

impl GameMetrics {
    fn list(&mut self, game: &GameTotals, seconds: f64, rows: &mut Vec<CounterNow>) {
        let row = |name, value, per_s, help| CounterNow { is_of_game: true, name, value, per_s, unit: "", help };
        for (id, sum) in game.counters() {
            if id >= self.told.len() {
                self.told.resize(id + 1, 0);
            }
            let per_s = (sum - std::mem::replace(&mut self.told[id], sum)) as f64 / seconds;
            rows.push(row(counter_name(id), sum as i64, Some(per_s), "counted by the game"));
        }
        for (id, value) in game.gauges() {
            rows.push(row(gauge_name(id), value, None, "set by the game, summed over worlds"));
        }
    }
}

#[cfg(test)]
mod spikes;
#[cfg(test)]
mod tests;
