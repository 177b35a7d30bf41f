//! Measure: what the frame adds up about itself, and the windows it is looked at through.
//!
//! A frame counts into `Server::counts`; at its end that is added to the totals since the start and to every window
//! that is open. All
//! of it is owned by the frame thread and costs some 100 nanoseconds per frame, without allocating; the status, once a
//! second, allocates.

use std::{collections::BTreeMap, sync::atomic::Ordering};

use throng_metrics::{
    Counters, Histogram, Percentiles, counters,
    game::{GameTotals, counter_name, gauge_name},
};
use throng_platform::{process, time::Nanos};
use throng_profiler::RecorderFigures;
use throng_world::TickStats;

use crate::{
    front_door::DoorCounts,
    packet_report::Counted,
    recorder_turns::RecorderTurns,
    report::{PercentilesMs, ServerReport, ServerStatus},
    server::Server,
};

/// Steps of the report's histogram of frames.
const FRAME_STEPS: usize = 40;

counters! {
    /// What the frame thread does.
    pub(crate) struct ServerCounts {
        Sum frames: "server.frames", "frames",
            "Frames run.",
            "Follows the frame grid; less than that when all worlds sleep.";
        Sum frames_over_budget: "server.frames_over_budget", "frames",
            "Frames longer than the frame grid.",
            "Worlds or the frame thread need more time than there is. A capture of such a frame says who; \
             `subsystem.frame_us` says which subsystem.";
        Sum ticks: "server.ticks", "ticks",
            "Ticks of worlds.",
            "Follows the worlds that are awake and their rates.";
        Sum ticks_missed: "server.ticks_missed", "ticks",
            "Ticks that did not start within their period.",
            "Players feel it. Too many worlds for the cores, a world that hangs (`server.world_hangs`), or a host that \
             gives its cores to others.";
        Sum hangs: "server.world_hangs", "hangs",
            "Times a world did not come back from a tick within 100 ms.",
            "The log names the world; a capture shows where it is. The other worlds play on with a worker less.";
        Sum worlds_parked: "server.worlds_parked", "worlds",
            "Worlds taken out of service after a panic.",
            "A bug: any is one too many. The log has the panic; the world's players were disconnected.";
        Sum worlds_created: "server.worlds_created", "worlds",
            "Worlds that were asked for at run time and made.",
            "Follows what the game asks for.";
        Sum worlds_retired: "server.worlds_retired", "worlds",
            "Worlds that were ended at run time.",
            "Follows the worlds created; if fewer, worlds pile up.";
        Sum travels_refused: "server.travels_refused", "clients",
            "Clients that were sent to a world that is no more, and stayed with all they carry.",
            "The game sends players to worlds that it has retired.";
        Sum transfers_refused: "server.transfers_refused", "clients",
            "Clients that a world turned back, because it cannot read what they carry.",
            "Two builds disagree about a transfer's type or version. The log names both.";
        Sum messages_undeliverable: "world.messages_undeliverable", "messages",
            "Messages to worlds that are no more.",
            "A few follow worlds that end. Many: the game keeps ids of worlds that it has retired.";
        Sum disconnects: "server.disconnects", "connections",
            "Connections that ended, for whatever reason.",
            "The log says why each ended. Many at once: a network fault, or a world that was parked.";
        Sum messages_dropped: "world.messages_dropped", "messages",
            "Messages from one world to another that found its mailbox full.",
            "The receiving world does not tick, or is told more than it can read. What was in them is lost.";
        Sum allocations: "server.allocations", "allocations",
            "Allocations of the frame thread.",
            "A steady frame makes a few a second, for what is published.";
        Sum worker_send_dropped: "net.worker_send_dropped", "datagrams",
            "Datagrams of worlds to their clients that the kernel did not take. They are sent again when their loss is \
             noticed.",
            "As `net.send_dropped`.";
    }
}

counters! {
    /// Everything that a server counts. What is declared in a group is in all that is published.
    pub(crate) struct Totals {
    }
    with {
        server: ServerCounts,
        door: DoorCounts,
        ticks: TickStats,
    }
}

/// Game metrics of a window: sums, and the most in one frame, by the counter's number; the highest of each gauge by the
/// gauge's.
#[derive(Debug, Default)]
struct GameWindow {
    counters: Vec<(u64, u64)>,
    gauges_max: Vec<i64>,
}

impl GameWindow {
    fn count(&mut self, id: usize, in_frame: u64) {
        if id >= self.counters.len() {
            self.counters.resize((id + 1).next_power_of_two(), (0, 0));
        }
        let (sum, most) = &mut self.counters[id];
        *sum += in_frame;
        *most = in_frame.max(*most);
    }

    fn stand(&mut self, id: usize, value: i64) {
        if id >= self.gauges_max.len() {
            self.gauges_max.resize((id + 1).next_power_of_two(), i64::MIN);
        }
        self.gauges_max[id] = value.max(self.gauges_max[id]);
    }
}

/// How things stood when the window closed.
struct WindowEnd {
    at: Nanos,
    cpu: Nanos,
    players: usize,
    recorder: RecorderFigures,
    game_gauges: BTreeMap<&'static str, i64>,
}

/// The steady window that the report is about.
pub(crate) struct Measure {
    began_at: Nanos,
    ended: Option<WindowEnd>,
    counts: Totals,
    game: GameWindow,
    cpu_at_begin: Nanos,
    recorder_at_begin: RecorderFigures,
    frame: Histogram,
    lateness: Histogram,
    /// Sum over frames of the share of the worlds part in which a worker had nothing left to do, and those frames.
    idle_tail_shares: f64,
    frames_with_worlds: u64,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            began_at: Nanos::ZERO,
            ended: None,
            counts: Totals::default(),
            game: GameWindow::default(),
            cpu_at_begin: Nanos::ZERO,
            recorder_at_begin: RecorderFigures::default(),
            frame: Histogram::new(),
            lateness: Histogram::new(),
            idle_tail_shares: 0.0,
            frames_with_worlds: 0,
        }
    }
}

impl Measure {
    pub fn begin(&mut self, now: Nanos, recorder: RecorderFigures) {
        *self =
            Self { began_at: now, cpu_at_begin: process::cpu_time(), recorder_at_begin: recorder, ..Self::default() };
    }

    /// What happens now is not in the report any more.
    fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    pub fn tick_lateness(&mut self, lateness: Nanos) {
        if self.ended.is_none() {
            self.lateness.record_time(lateness);
        }
    }

    fn frame(&mut self, length: Nanos, counts: &Totals, idle_tail_share: Option<f64>) {
        if self.ended.is_some() {
            return;
        }
        self.frame.record_time(length);
        self.counts.merge(counts);
        if let Some(share) = idle_tail_share {
            self.frames_with_worlds += 1;
            self.idle_tail_shares += share;
        }
    }
}

/// The last second, for the status line.
pub(crate) struct StatusWindow {
    second: u64,
    next_at: Nanos,
    counts: Totals,
    cpu_at_begin: Nanos,
    frame: Histogram,
    lateness_max: Nanos,
}

impl Default for StatusWindow {
    fn default() -> Self {
        Self {
            second: 0,
            next_at: Nanos::ZERO,
            counts: Totals::default(),
            cpu_at_begin: Nanos::ZERO,
            frame: Histogram::new(),
            lateness_max: Nanos::ZERO,
        }
    }
}

impl StatusWindow {
    pub fn tick_lateness(&mut self, lateness: Nanos) {
        self.lateness_max = self.lateness_max.max(lateness);
    }
}

impl Server {
    /// Books a frame that began at `began_at` and is over now.
    pub(crate) fn measure_frame(&mut self, began_at: Nanos, worlds_started: usize) {
        let length = self.clock.now().saturating_sub(began_at);
        let mut counts = std::mem::take(&mut self.counts);
        counts.server.frames = 1;
        counts.server.frames_over_budget = u64::from(length > self.timeline.grid.period());
        counts.door = self.door.take_counts();
        counts.server.worker_send_dropped = self.send_dropped.swap(0, Ordering::Relaxed);
        let allocations = throng_platform::allocator::thread_counts().allocations;
        counts.server.allocations = allocations - std::mem::replace(&mut self.allocations_before, allocations);
        self.totals.merge(&counts);
        self.status.counts.merge(&counts);
        let idle_tail_share = (worlds_started > 0).then(|| self.pool.idle_tail().share());
        self.measure.frame(length, &counts, idle_tail_share);
        self.status.frame.record_time(length);
        self.measure_game();
        let now = self.clock.now();
        if let Some(metrics) = &mut self.metrics {
            metrics.frame(length, now, &counts, &self.control.published);
        }
    }

    /// Adds up what the games counted in this frame.
    fn measure_game(&mut self) {
        let Self { pool, game_totals, measure, metrics, .. } = self;
        pool.with_workers(|_, worker| game_totals.take(worker.game_mut()));
        let is_open = !measure.is_over();
        game_totals.end_frame(|id, in_frame| {
            if is_open {
                measure.game.count(id, in_frame);
            }
            if let Some(metrics) = metrics {
                metrics.game_counted(id, in_frame);
            }
        });
        for (id, value) in game_totals.gauges() {
            if is_open {
                measure.game.stand(id, value);
            }
            if let Some(metrics) = metrics {
                metrics.game_stands(id, value);
            }
        }
    }

    /// The status of the last second, once a second; publishes metrics at the same time.
    pub(crate) fn status_if_due(&mut self, now: Nanos) -> Option<ServerStatus> {
        if now < self.status.next_at {
            return None;
        }
        let window = &mut self.status;
        let cpu = process::cpu_time();
        let elapsed_s = (now.saturating_sub(window.next_at).as_secs_f64() + 1.0).max(1.0);
        let frame = percentiles_ms(&window.frame.percentiles());
        let counts = std::mem::take(&mut window.counts);
        let cpu_before = std::mem::replace(&mut window.cpu_at_begin, cpu);
        let per_s = |count: u64| (count as f64 / elapsed_s) as u64;
        let waiting = self.door.waiting();
        let status = ServerStatus {
            second: window.second,
            players: self.door.players_count(),
            join_queue: waiting.in_line as u64,
            placements_pending: waiting.for_world as u64,
            worlds: self.worlds.len(),
            worlds_awake: self.worlds.iter().filter(|slot| !slot.is_dormant).count(),
            frame_ms_p50: frame.p50,
            frame_ms_max: frame.max,
            frame_budget_ms: self.timeline.grid.period().as_millis_f64(),
            tick_lateness_ms_max: std::mem::take(&mut window.lateness_max).as_millis_f64(),
            ticks: counts.server.ticks,
            ticks_missed: counts.server.ticks_missed,
            packets_in: per_s(counts.door.packets),
            packets_out: per_s(counts.ticks.packets_out),
            bytes_out: per_s(counts.ticks.bytes_out),
            cpu_cores: cpu.saturating_sub(cpu_before).as_secs_f64() / elapsed_s,
            rss_mb: process::rss_bytes() as f64 / 1e6,
            game_gauges: named_gauges(&self.game_totals),
        };
        let window = &mut self.status;
        window.second += 1;
        window.next_at = now + Nanos::from_secs(1);
        window.frame = Histogram::new();
        self.publish_packets(elapsed_s);
        if let Some(metrics) = &mut self.metrics {
            if let Some(recorder) = &self.recorder {
                metrics.recorder(recorder.control().figures());
            }
            let of_second = LastSecond { counts: &counts, seconds: elapsed_s };
            metrics.publish(now, &status, &self.totals, &of_second, &self.game_totals, &self.control.published);
        }
        Some(status)
    }

    /// Adds up what the workers' worlds have sent, and publishes the rows of the last second.
    fn publish_packets(&mut self, seconds: f64) {
        let packets = &mut self.packets;
        self.pool.with_workers(|_, worker| packets.absorb(&mut worker.packets));
        if !self.measure.is_over() {
            self.packets_of_window.add_all(packets);
        }
        self.control.published.set_packets(packets, seconds);
        packets.clear();
    }

    /// Closes the steady window; what follows is not in the report. A window that is closed stays as it is. What a world that is still away has
    /// missed counts in it.
    pub(crate) fn end_measure(&mut self, now: Nanos) {
        if self.measure.is_over() {
            return;
        }
        self.measure.counts.server.ticks_missed +=
            self.worlds.iter().map(|slot| slot.missing_since_it_left(now, &self.timeline)).sum::<u64>();
        // What was sent since the last status is of the window, too; the next status tells it all the same.
        let packets = &mut self.packets;
        self.pool.with_workers(|_, worker| packets.absorb(&mut worker.packets));
        self.packets_of_window.add_all(packets);
        self.measure.ended = Some(WindowEnd {
            at: now,
            cpu: process::cpu_time(),
            players: self.door.players_count(),
            recorder: self.recorder_figures(),
            game_gauges: named_gauges(&self.game_totals),
        });
    }

    /// The report of the steady window, or of the time since the start if none was set.
    pub fn report(&mut self) -> ServerReport {
        let now = self.clock.now();
        self.end_measure(now);
        let measure = &self.measure;
        let Some(WindowEnd { at, cpu, players, recorder, game_gauges }) = &measure.ended else {
            unreachable!("the window was closed two lines above")
        };
        let Totals { server, door, ticks } = &measure.counts;
        let replication = &ticks.replication;
        let (recorder_begin, recorder_now) = (&measure.recorder_at_begin, self.recorder_figures());
        let seconds = at.saturating_sub(measure.began_at).as_secs_f64();
        let per_s = |count: u64| count as f64 / seconds.max(1e-9);
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let players = *players;
        let bytes_out_per_s = per_s(ticks.bytes_out);
        let mut counted = Counted::default();
        self.packets_of_window.copy_to(seconds, &mut counted);
        let packets = counted.rows(|kind| self.kinds[usize::from(kind.0)].name.to_string());
        let waiting = self.door.waiting();
        let mut counters = BTreeMap::new();
        measure.counts.each(&mut |counter, value| _ = counters.insert(counter.name, value));
        ServerReport {
            game: self.game.clone(),
            worlds: self.worlds.len(),
            seconds,
            tick_hz: self.worlds.iter().map(|slot| slot.rate.0).max().unwrap_or_default(),
            tick_hz_by_kind: self.worlds.iter().map(|slot| (slot.name.to_string(), slot.rate.0)).collect(),
            frame_hz: self.timeline.grid.frame_hz().into(),
            workers: self.pool.worker_count(),
            frames: server.frames,
            frame_ms: percentiles_ms(&measure.frame.percentiles()),
            frame_ms_histogram: measure.frame.steps_ms(FRAME_STEPS),
            frame_budget_ms: self.timeline.grid.period().as_millis_f64(),
            frames_over_budget: server.frames_over_budget,
            tick_lateness_ms: percentiles_ms(&measure.lateness.percentiles()),
            ticks: server.ticks,
            ticks_missed: server.ticks_missed,
            idle_tail_share: ratio(measure.idle_tail_shares, measure.frames_with_worlds as f64),
            players,
            server_cpu_cores: cpu.saturating_sub(measure.cpu_at_begin).as_secs_f64() / seconds.max(1e-9),
            server_rss_mb: process::rss_bytes() as f64 / 1e6,
            packets_in_per_s: per_s(door.packets),
            packets_out_per_s: per_s(ticks.packets_out),
            bytes_out_per_s,
            bytes_out_per_player_per_s: ratio(bytes_out_per_s, players as f64),
            bytes_per_entity_update: ratio(replication.snapshot_bytes as f64, replication.entity_updates as f64),
            entity_updates_per_s: per_s(replication.entity_updates),
            send_dropped: door.send_dropped + server.worker_send_dropped,
            packets_lost_per_s: per_s(ticks.packets_lost),
            allocations_per_frame: ratio((ticks.allocations + server.allocations) as f64, server.frames as f64),
            joined_per_s: per_s(door.joined),
            join_wait_ms_max: waiting.wait_max.as_micros() / 1_000,
            join_queue: waiting.in_line as u64,
            placements_pending: waiting.for_world as u64,
            placements_timed_out: door.placements_timed_out,
            refused_queue_full: door.refused_queue_full,
            disconnects: server.disconnects,
            worlds_parked: server.worlds_parked,
            world_hangs: server.hangs,
            datagrams_refused: [
                ("gate", door.refused_by_gate + door.implausible),
                ("connection", ticks.datagrams_refused),
                ("over_allowance", door.over_allowance + ticks.inputs_over_allowance),
                ("mailbox_full", door.mailbox_full),
                ("game", door.refused_by_game),
                ("stale_input", ticks.inputs_stale),
            ]
            .into(),
            poisoned: replication.poisoned,
            packets,
            events_per_s: per_s(ticks.events),
            event_copies_per_s: per_s(ticks.event_copies),
            events_throttled: ticks.events_throttled,
            counters,
            captures: recorder_now.captures_saved,
            captures_in_cooldown: recorder_now.in_cooldown,
            captures_lost: recorder_now.crowded_out + recorder_now.captures_failed,
            scopes_per_s: per_s(recorder.scopes - recorder_begin.scopes),
            records_lost: recorder.records_lost - recorder_begin.records_lost,
            recorder_cpu_share: self.recorder_turns.as_ref().and_then(RecorderTurns::share),
            game_per_s: self.game_counters().map(|(name, (sum, _))| (name, per_s(sum))).collect(),
            game_frame_max: self.game_counters().map(|(name, (_, most))| (name, most)).collect(),
            game_gauges: game_gauges.clone(),
            game_gauges_max: (self.game_totals.gauges())
                .filter_map(|(id, _)| Some((gauge_name(id), *measure.game.gauges_max.get(id)?)))
                .filter(|(_, most)| *most > i64::MIN)
                .collect(),
        }
    }

    /// The game's counters with their sum in the steady window and the most in one frame of it; also those that were not used in it.
    fn game_counters(&self) -> impl Iterator<Item = (&'static str, (u64, u64))> {
        let of_window = |id| self.measure.game.counters.get(id).copied().unwrap_or_default();
        self.game_totals.counters().map(move |(id, _)| (counter_name(id), of_window(id)))
    }
}

/// What was counted since the last status.
pub(crate) struct LastSecond<'a> {
    pub counts: &'a Totals,
    pub seconds: f64,
}

fn named_gauges(game: &GameTotals) -> BTreeMap<&'static str, i64> {
    game.gauges().map(|(id, value)| (gauge_name(id), value)).collect()
}

fn percentiles_ms(percentiles: &Percentiles) -> PercentilesMs {
    PercentilesMs {
        p50: percentiles.p50_ms,
        p99: percentiles.p99_ms,
        p999: percentiles.p999_ms,
        max: percentiles.max_ms,
    }
}
