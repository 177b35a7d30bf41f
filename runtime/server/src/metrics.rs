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
//! Cost: about 0.3 µs a frame, and some 20 µs once a second. A game's name that is new allocates once.

#[cfg(test)]
mod page;
mod subsystems;

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
};

use serde::Serialize;
use throng_metrics::{
    Cells, Counter, CounterId, Counters, GaugeId, HistogramId, LabelledGauges, Merge, MetricsSnapshot, Registry,
    WindowMaxId,
    game::{GameTotals, counter_name, gauge_name},
};
use throng_net::protocol::{DropReason, ServerHandshakeStats};
use throng_platform::{clock::Clock, time::Nanos};
use throng_profiler::{FrameFigures, RecorderControl, RecorderFigures};
use throng_scheduler::LongTasks;

use self::subsystems::SubsystemMetrics;
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
            kind_names: OnceLock::new(),
        }
    }

    /// The packet report of the last second, the costliest row first. Empty before the first one is over.
    pub fn packets(&self) -> Vec<PacketRow> {
        self.packets.read().rows(|kind| self.kind_name(kind))
    }

    /// The clients that took most in the last second, of each figure some; who asked for most work first. Empty before
    /// the first one is over.
    pub fn clients(&self) -> Vec<ClientRow> {
        self.clients.read().rows(|kind| self.kind_name(kind))
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

    /// Prometheus text as of the last second; empty before the first one is over.
    pub fn to_prometheus_text(&self) -> String {
        let snapshot = self.snapshot.read();
        snapshot.as_ref().as_ref().map_or_else(String::new, |snapshot| {
            let rows = self.packets.read().rows_with_silent(|kind| self.kind_name(kind));
            let mut gauges = packet_report::gauges(&rows);
            gauges.extend(client_report::gauges(&self.clients()));
            gauges.extend(accounts::gauges((*self.accounts.read()).as_ref()));
            gauges.extend(long_tasks::gauges(&self.long_tasks()));
            gauges.push(stuck_gauge(&WORLDS_STUCK, self.worlds_stuck()));
            gauges.push(stuck_gauge(&LONG_TASKS_STUCK, self.long_tasks_stuck()));
            snapshot.to_prometheus_text_with(gauges)
        })
    }

    /// Time since the last frame ended.
    pub fn frame_age(&self) -> Nanos {
        self.clock.now().saturating_sub(Nanos(self.last_frame_at.load(Ordering::Relaxed)))
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

/// What a figure that is no counter says, and what an operator does when it grows.
pub(super) struct Figure {
    name: &'static str,
    help: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the page, which a test writes"))]
    advice: &'static str,
}

const FRAME: Figure = Figure {
    name: "server.frame",
    help: "Time from a frame's begin to its end.",
    advice: "A capture of a long frame says who took it; `throng_subsystem_frame_us_window_max` names the subsystem.",
};
const FRAME_MAX: Figure = Figure {
    name: "server.frame_us",
    help: "Longest frame of the last five minutes.",
    advice: "As above. One long frame is a hitch that somebody felt.",
};
const LATENESS_MAX: Figure = Figure {
    name: "server.tick_lateness_us",
    help: "Latest end of a tick after its period, of the last five minutes.",
    advice: "Players of that world felt it: too little processor time for its worlds, or one that takes long.",
};
/// With the label `reason`.
const REFUSED: Figure = Figure {
    name: "net.handshake_refused",
    help: "Datagrams of strangers that the handshake refused, by reason.",
    advice: "`token_expired`, `token_used`, `token_forged` and `other_server` are about connect tokens; `other_protocol` is \
             another version; `plain_netcode_off` are clients without address cookies, which `plain_netcode` in the settings \
             lets in; the others are noise or a flood.",
};
/// Gauges that are published once a second.
const GAUGES: [&Figure; 21] = [
    &PLAYERS,
    &JOIN_QUEUE,
    &PLACEMENTS_PENDING,
    &WORLDS,
    &WORLDS_AWAKE,
    &WORLDS_DORMANT,
    &PLANS_PARKED,
    &OVERLOAD_LEVEL,
    &WORLDS_OVERLOADED,
    &WORLDS_SLOWED,
    &TIME_FACTOR_MIN,
    &TIME_LOST_SHARE,
    &ADMISSION_CLOSED,
    &STARVATION_LEVEL,
    &ADMISSION_WAITS,
    &LONG_TASKS_WAITING,
    &LONG_TASKS_MS,
    &LONG_TASKS_FREEING_MS,
    &CPU_CORES,
    &RSS_BYTES,
    &HEARTBEATS,
];
const PLAYERS: Figure =
    Figure { name: "server.players", help: "Clients connected.", advice: "Good. Compare with what the host carries." };
const JOIN_QUEUE: Figure = Figure {
    name: "server.join_queue",
    help: "Clients in line to come in.",
    advice: "A storm of log-ins. Raise `joins_per_frame_max` in the settings if frames have room.",
};
const PLACEMENTS_PENDING: Figure = Figure {
    name: "server.placements_pending",
    help: "Clients whose world is being made.",
    advice: "Worlds are made more slowly than they are asked for.",
};
const WORLDS: Figure = Figure {
    name: "server.worlds",
    help: "Worlds in this process.",
    advice: "Each takes memory, and time while it is awake.",
};
const WORLDS_AWAKE: Figure = Figure {
    name: "server.worlds_awake",
    help: "Worlds that tick.",
    advice: "More than have players: a game keeps them awake.",
};
const WORLDS_DORMANT: Figure = Figure {
    name: "server.worlds_dormant",
    help: "Worlds that sleep, since they have nothing to do until somebody comes or writes. They take memory alone.",
    advice: "Good. If players are few and it is 0, a game keeps its worlds awake.",
};
const PLANS_PARKED: Figure = Figure {
    name: "server.plans_parked",
    help: "Plans by which no world is made for now, since worlds made by them panicked again and again.",
    advice: "As `server.parkings`. The console's `world.parked` names them.",
};
const OVERLOAD_LEVEL: Figure = Figure {
    name: "server.overload_level",
    help: "Step of the overload ladder of the world that is worst off: 0 normal, 1 long tasks yield, 2 far updates thin out, 3 its time slows, 4 newcomers wait.",
    advice: "A world's ticks end when their period is nearly over or later. `subsystem.frame_us` says what takes the time; docs/overload.md says what is done.",
};
const WORLDS_OVERLOADED: Figure = Figure {
    name: "server.worlds_overloaded",
    help: "Worlds on any step of the overload ladder.",
    advice: "One: that world is hot. Many: the host has too few cores for what it is given.",
};
const WORLDS_SLOWED: Figure = Figure {
    name: "server.worlds_slowed",
    help: "Worlds whose time is slowed, since they have too little of it for their rate.",
    advice: "Their players see slow motion. As `throng_server_worlds_overloaded`.",
};
const TIME_FACTOR_MIN: Figure = Figure {
    name: "server.time_factor_min",
    help: "How fast the slowest world's time ran in the last second: 1 as a clock's, 0.1 at worst.",
    advice: "Below 1 for more than moments: give the world less to do or the server more cores. docs/overload.md.",
};
const TIME_LOST_SHARE: Figure = Figure {
    name: "server.time_lost_share",
    help: "Share of the time of all worlds that are awake which was lost in the last second since theirs was slowed.",
    advice: "What the overload costs players, in one figure.",
};
const ADMISSION_CLOSED: Figure = Figure {
    name: "server.admission_closed",
    help: "1 while newcomers wait in line because worlds with a quarter of all clients are on the ladder's last step.",
    advice: "Players cannot get in until it is calm again. Start another server, or give this one more cores.",
};
const STARVATION_LEVEL: Figure = Figure {
    name: "server.starvation_level",
    help: "Workers that leave their cores to long tasks, since these pile up.",
    advice: "Worlds take nearly all of the cores. For long above 0: the host has too few. docs/long-tasks.md.",
};
const ADMISSION_WAITS: Figure = Figure {
    name: "server.admission_waits",
    help: "1 while nobody is let in from the line and no world is made, since ended worlds pile up that are to be dropped.",
    advice: "Worlds come and go faster than they can be dropped. Give this server more cores, or keep worlds for longer.",
};
const LONG_TASKS_WAITING: Figure = Figure {
    name: "server.long_tasks_waiting",
    help: "Long tasks that have not begun.",
    advice: "A rush passes. If it stays, see `throng_server_starvation_level`; the console's `tasks` tells the kinds.",
};
const LONG_TASKS_MS: Figure = Figure {
    name: "server.long_tasks_ms",
    help: "What all long tasks that are not done will take of a core, by what such tasks took before.",
    advice: "Held against `high_mark_ms` in `[long_tasks]`.",
};
const LONG_TASKS_FREEING_MS: Figure = Figure {
    name: "server.long_tasks_freeing_ms",
    help: "Of that, what gives memory back.",
    advice: "Held against `admission_mark_ms` in `[long_tasks]`.",
};
const CPU_CORES: Figure = Figure {
    name: "process.cpu_cores",
    help: "Cores' worth of processor time used in the last second.",
    advice: "Near the number of workers the next players are too many.",
};
const RSS_BYTES: Figure = Figure {
    name: "process.rss_bytes",
    help: "Memory of the process in RAM.",
    advice: "If it grows with the same players and worlds, a capture with memory on says which scopes hold on to it.",
};
const HEARTBEATS: Figure = Figure {
    name: "host.heartbeats",
    help: "Cores that are watched for stalls of the host.",
    advice: "0: it is off in the settings, or real-time priority is not permitted, as the log says at the start. Then no stall is known.",
};

/// Told by the watchdog, not by the frame's thread: it is up to date while that one is stuck.
const WORLDS_STUCK: Figure = Figure {
    name: "server.worlds_stuck",
    help: "Worlds that are stuck in their ticks now.",
    advice: "The log has a line for each, with the stack that it is stuck in, and a capture was saved. The other worlds play on with a worker less.",
};

const LONG_TASKS_STUCK: Figure = Figure {
    name: "server.long_tasks_stuck",
    help: "Long tasks that block, or take far longer than others of their kind, now.",
    advice: "The log names the kind and the stack; other long tasks wait for its thread.",
};

fn stuck_gauge(figure: &Figure, count: u64) -> LabelledGauges {
    let help = figure.help.trim_end_matches('.');
    LabelledGauges { name: figure.name, help, keys: &[], rows: vec![(Vec::new(), count as f64)] }
}

const BUILD: Figure = Figure {
    name: "build.info",
    help: "Always 1. Its labels `version` and `commit` say which build the server is.",
    advice: "A figure that changed with the commit is a change of the code; one that changed without is a change of the load or the host.",
};

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
    game: GameMetrics,
    subsystems: SubsystemMetrics,
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
            game: GameMetrics::default(),
            subsystems: SubsystemMetrics::default(),
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

    /// How many cores are watched for stalls. Once, before the first frame.
    pub fn tell_heartbeats(&mut self, cores: usize) {
        self.registry.set(self.heartbeats, cores as f64);
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

    pub fn tick_lateness(&mut self, lateness: Nanos) {
        self.cells.max(self.lateness_max, lateness.as_micros());
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
mod tests;
