//! Metrics: the server's figures as Prometheus sees them.
//!
//! The frame thread keeps a registry of its own and records every frame's length as it happens, so that a single long frame is in the
//! histogram and in the window's maximum whenever somebody scrapes. Counters are brought up to date and the whole is published once a
//! second: a copy behind a lock that the admin thread takes to read, never the frame's own data.
//!
//! Cost: about 20 ns a frame, and some 20 µs once a second.

mod subsystems;

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use throng_metrics::{Cells, CounterId, GaugeId, HistogramId, MetricsSnapshot, Registry, WindowMaxId};
use throng_platform::{clock::Clock, time::Nanos};
use throng_profiler::{FrameFigures, RecorderControl, RecorderFigures};

use self::subsystems::SubsystemMetrics;
use crate::{
    ids::KindId,
    measure::Totals,
    packet_report::{Counted, PacketRow, PacketSums, append_prometheus},
    report::ServerStatus,
    telemetry::{TelemetryNames, TelemetrySums},
};

/// The maximum of a window outlives scrape gaps and slow dashboards: a 900 ms frame is seen for this long. (s)
const WINDOW_S: u32 = 300;

/// What the admin thread reads: written by the frame thread, read by anybody.
pub struct PublishedMetrics {
    clock: Arc<dyn Clock>,
    snapshot: Mutex<Option<MetricsSnapshot>>,
    /// Time of the last frame's end by the server's clock. Written by the frame thread alone; an age that is read a moment late is
    /// still an age, so relaxed order is enough.
    last_frame_at: AtomicU64,
    /// True while the frame thread waits for packets with nothing due. Written and read as above.
    is_sleeping: AtomicBool,
    /// Set once, before the first frame.
    recorder: OnceLock<RecorderControl>,
    /// The packet report of the last second.
    packets: Mutex<Counted>,
    /// Names of the kinds of worlds, by id. Set once, before the first frame.
    kind_names: OnceLock<Vec<Arc<str>>>,
}

impl PublishedMetrics {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            snapshot: Mutex::default(),
            last_frame_at: AtomicU64::default(),
            is_sleeping: AtomicBool::default(),
            recorder: OnceLock::new(),
            packets: Mutex::default(),
            kind_names: OnceLock::new(),
        }
    }

    /// The packet report of the last second, the dearest row first. Empty before the first one is over.
    pub fn packets(&self) -> Vec<PacketRow> {
        let name = |kind: KindId| {
            let names = self.kind_names.get().and_then(|names| names.get(usize::from(kind.0)));
            names.map_or_else(|| "world".to_owned(), |name| name.to_string())
        };
        self.packets.lock().unwrap_or_else(PoisonError::into_inner).rows(name)
    }

    pub(crate) fn set_packets(&self, packets: &PacketSums, seconds: f64) {
        packets.copy_to(seconds, &mut self.packets.lock().unwrap_or_else(PoisonError::into_inner));
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
        let snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(mut text) = snapshot.map(|snapshot| snapshot.to_prometheus_text()) else { return String::new() };
        append_prometheus(&self.packets(), &mut text);
        text
    }

    /// Time since the last frame ended.
    pub fn frame_age(&self) -> Nanos {
        self.clock.now().saturating_sub(Nanos(self.last_frame_at.load(Ordering::Relaxed)))
    }

    /// True while nothing is due and nobody is there, so that no frame is a good sign.
    pub fn is_sleeping(&self) -> bool {
        self.is_sleeping.load(Ordering::Relaxed)
    }

    pub(crate) fn set_sleeping(&self, is_sleeping: bool) {
        self.is_sleeping.store(is_sleeping, Ordering::Relaxed);
    }
}

/// One counter of `Totals` with its name.
struct TotalCounter {
    id: CounterId,
    read: fn(&Totals) -> u64,
    told: u64,
}

pub(crate) struct ServerMetrics {
    registry: Registry,
    cells: Cells,
    frame: HistogramId,
    frame_max: WindowMaxId,
    lateness_max: WindowMaxId,
    totals: Vec<TotalCounter>,
    players: GaugeId,
    join_queue: GaugeId,
    placements_pending: GaugeId,
    join_wait_ms_max: GaugeId,
    worlds: GaugeId,
    worlds_awake: GaugeId,
    cpu_cores: GaugeId,
    rss_bytes: GaugeId,
    game_counters: Vec<(CounterId, u64)>,
    game_gauges: Vec<GaugeId>,
    subsystems: SubsystemMetrics,
    recorder_before: RecorderFigures,
}

/// Name, help, and where the figure is.
type TotalRow = (&'static str, &'static str, fn(&Totals) -> u64);

const TOTALS: [TotalRow; 25] = [
    ("server.frames", "Frames run", |totals| totals.frames),
    ("server.frames_over_budget", "Frames longer than the frame grid", |totals| totals.frames_over_budget),
    ("server.ticks", "Ticks of worlds", |totals| totals.ticks),
    ("server.ticks_missed", "Ticks that did not start within their period", |totals| totals.ticks_missed),
    ("server.world_hangs", "Worlds that did not come back from a tick within 100 ms", |totals| totals.hangs),
    ("server.worlds_parked", "Worlds taken out of service after a panic", |totals| totals.worlds_parked),
    ("server.joined", "Clients let in", |totals| totals.joined),
    ("server.disconnects", "Connections that ended", |totals| totals.disconnects),
    ("server.refused_by_game", "Clients that the game did not let in", |totals| totals.refused_by_game),
    ("server.refused_queue_full", "Clients sent away because the line was full", |totals| totals.refused_queue_full),
    ("server.waiting_left", "Clients that fell silent while they waited to come in", |totals| totals.waiting_left),
    ("server.placements_timed_out", "Clients whose world was not ready in time", |totals| totals.placements_timed_out),
    ("net.send_dropped", "Datagrams that the kernel did not take", |totals| totals.send_dropped),
    ("net.packets_in", "Datagrams received", |totals| totals.packets_in),
    ("net.bytes_in", "Bytes of datagrams received", |totals| totals.bytes_in),
    ("net.packets_out", "Packets sent to connected clients", |totals| totals.packets_out),
    ("net.bytes_out", "Bytes of packets sent to connected clients", |totals| totals.bytes_out),
    ("net.packets_lost", "Packets sent that were reported lost", |totals| totals.packets_lost),
    ("net.datagrams_refused", "Datagrams refused by gate, allowance or connection", |totals| {
        totals.datagrams_refused + totals.refused_by_gate + totals.over_allowance + totals.mailbox_full
    }),
    ("replication.entity_updates", "Updates of entities sent to clients", |totals| totals.entity_updates),
    ("replication.owed_again", "Components sent again because the packet that carried them was lost", |totals| {
        totals.owed_again
    }),
    ("replication.clamped", "Values outside their declared range, moved to its end", |totals| totals.clamped),
    ("replication.spawns_refused", "Entities that a full world could not replicate", |totals| totals.spawns_refused),
    ("replication.events", "Events told", |totals| totals.events),
    (
        "replication.poisoned",
        "Values that were no finite number; clamped, and their entity is no longer replicated",
        |totals| totals.poisoned,
    ),
];

impl ServerMetrics {
    pub fn new(names: &TelemetryNames) -> Self {
        let mut registry = Registry::new();
        let frame = registry.register_histogram("server.frame", "Time from a frame's begin to its end");
        let frame_max =
            registry.register_window_max("server.frame_us", "Longest frame of the last five minutes", WINDOW_S);
        let lateness_max = registry.register_window_max(
            "server.tick_lateness_us",
            "Latest end of a tick after its period, of the last five minutes",
            WINDOW_S,
        );
        let totals = TOTALS
            .iter()
            .map(|&(name, help, read)| TotalCounter { id: registry.register_counter(name, help), read, told: 0 })
            .collect();
        let players = registry.register_gauge("server.players", "Clients connected");
        let join_queue = registry.register_gauge("server.join_queue", "Clients in line to come in");
        let placements_pending =
            registry.register_gauge("server.placements_pending", "Clients whose world is being made");
        let join_wait_ms_max = registry.register_gauge(
            "server.join_wait_ms_max",
            "Longest wait in line of a client that was let in, since the start",
        );
        let worlds = registry.register_gauge("server.worlds", "Worlds in this process");
        let worlds_awake = registry.register_gauge("server.worlds_awake", "Worlds that tick");
        let cpu_cores = registry.register_gauge("process.cpu_cores", "Cores' worth of CPU used in the last second");
        let rss_bytes = registry.register_gauge("process.rss_bytes", "Memory of the process in RAM");
        let game_counters = names
            .counters
            .iter()
            .map(|name| (registry.register_counter(&format!("game.{name}"), "Counted by the game"), 0))
            .collect();
        let game_gauges = names
            .gauges
            .iter()
            .map(|name| registry.register_gauge(&format!("game.{name}"), "Set by the game, summed over worlds"))
            .collect();
        let cells = registry.cells();
        Self {
            registry,
            cells,
            frame,
            frame_max,
            lateness_max,
            totals,
            players,
            join_queue,
            placements_pending,
            join_wait_ms_max,
            worlds,
            worlds_awake,
            cpu_cores,
            rss_bytes,
            game_counters,
            game_gauges,
            subsystems: SubsystemMetrics::default(),
            recorder_before: RecorderFigures::default(),
        }
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

    pub fn frame(&mut self, length: Nanos, now: Nanos, published: &PublishedMetrics) {
        self.cells.record_time(self.frame, length);
        self.cells.max(self.frame_max, length.as_micros());
        self.registry.merge(&mut self.cells, now);
        published.last_frame_at.store(now.0, Ordering::Relaxed);
    }

    pub fn tick_lateness(&mut self, lateness: Nanos) {
        self.cells.max(self.lateness_max, lateness.as_micros());
    }

    /// Brings counters and gauges up to date and hands a copy to the readers.
    pub fn publish(
        &mut self,
        now: Nanos,
        status: &ServerStatus,
        totals: &Totals,
        telemetry: &TelemetrySums,
        published: &PublishedMetrics,
    ) {
        for counter in &mut self.totals {
            let value = (counter.read)(totals);
            self.cells.add(counter.id, value - std::mem::replace(&mut counter.told, value));
        }
        for ((id, told), &value) in self.game_counters.iter_mut().zip(&telemetry.counters) {
            self.cells.add(*id, value - std::mem::replace(told, value));
        }
        self.registry.merge(&mut self.cells, now);
        for (&id, &value) in self.game_gauges.iter().zip(&telemetry.gauges) {
            self.registry.set(id, value as f64);
        }
        self.registry.set(self.players, status.players as f64);
        self.registry.set(self.join_queue, totals.join_queue as f64);
        self.registry.set(self.placements_pending, totals.placements_pending as f64);
        self.registry.set(self.join_wait_ms_max, totals.join_wait_ms_max as f64);
        self.registry.set(self.worlds, status.worlds as f64);
        self.registry.set(self.worlds_awake, status.worlds_awake as f64);
        self.registry.set(self.cpu_cores, status.cpu_cores);
        self.registry.set(self.rss_bytes, status.rss_mb * 1e6);
        let snapshot = self.registry.snapshot();
        *published.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = Some(snapshot);
    }
}
