//! Measure: what the frame adds up about itself, and the windows it is looked at through.
//!
//! `Totals` only ever grow; a window keeps a copy of them from its beginning and subtracts. Distributions are of the window
//! alone. All of it is owned by the frame thread and costs a few dozen nanoseconds per tick, without allocating; the status, once a
//! second, allocates.

use std::sync::atomic::Ordering;

use throng_metrics::{Histogram, Percentiles};
use throng_platform::{process, time::Nanos};
use throng_profiler::RecorderFigures;
use throng_world::{TickStats, telemetry::TelemetrySums};

use crate::{
    packet_report::Counted,
    recorder_turns::RecorderTurns,
    report::{PercentilesMs, ServerReport, ServerStatus},
    server::Server,
};

/// Steps of the report's histogram of frames.
const FRAME_STEPS: usize = 40;

/// Everything that is counted since the server started.
#[derive(Debug, Default, Clone)]
pub(crate) struct Totals {
    pub frames: u64,
    pub frames_over_budget: u64,
    pub ticks: u64,
    pub ticks_missed: u64,
    pub disconnects: u64,
    pub worlds_parked: u64,
    /// Worlds that came and went at run time.
    pub worlds_created: u64,
    pub worlds_retired: u64,
    /// Messages to worlds that are no more.
    pub messages_undeliverable: u64,
    /// Clients that wanted to a world that is no more, and those that a world turned back.
    pub travels_refused: u64,
    pub transfers_refused: u64,
    pub hangs: u64,
    /// Messages between worlds that found a full mailbox.
    pub messages_dropped: u64,
    pub packets_in: u64,
    pub bytes_in: u64,
    pub packets_out: u64,
    pub bytes_out: u64,
    pub packets_lost: u64,
    pub entity_updates: u64,
    pub snapshot_bytes: u64,
    pub allocations: u64,
    pub datagrams_refused: u64,
    pub inputs_stale: u64,
    pub poisoned: u64,
    pub owed_again: u64,
    pub clamped: u64,
    pub spawns_refused: u64,
    pub events: u64,
    pub event_copies: u64,
    /// Events that came faster than their rule allows.
    pub events_throttled: u64,
    pub refused_by_gate: u64,
    pub over_allowance: u64,
    pub mailbox_full: u64,
    pub joined: u64,
    pub refused_by_game: u64,
    /// Called in time, and their world was not there.
    pub placements_timed_out: u64,
    /// Gave up waiting: in line, or for their world.
    pub waiting_left: u64,
    pub refused_queue_full: u64,
    /// Those who are in line now, wait for their world now, and the longest wait so far.
    pub join_queue: u64,
    pub placements_pending: u64,
    pub join_wait_ms_max: u64,
    /// Datagrams that the kernel did not take.
    pub send_dropped: u64,
    /// Sum over frames of the share of the worlds part in which a worker had nothing left to do.
    pub idle_tail_shares: f64,
    pub frames_with_worlds: u64,
}

impl Totals {
    pub fn add_tick(&mut self, stats: &TickStats) {
        self.packets_out += stats.packets_out;
        self.bytes_out += stats.bytes_out;
        self.packets_lost += stats.packets_lost;
        self.entity_updates += stats.entity_updates;
        self.snapshot_bytes += stats.snapshot_bytes;
        self.allocations += stats.allocations;
        self.datagrams_refused += stats.datagrams_refused;
        self.inputs_stale += stats.inputs_stale;
        self.over_allowance += stats.inputs_over_allowance;
        self.poisoned += stats.poisoned;
        self.owed_again += stats.owed_again;
        self.clamped += stats.clamped;
        self.spawns_refused += stats.spawns_refused;
        self.events += stats.events;
        self.event_copies += stats.event_copies;
        self.events_throttled += stats.events_throttled;
    }
}

/// How things stood when the window closed.
struct WindowEnd {
    at: Nanos,
    totals: Totals,
    telemetry: TelemetrySums,
    cpu: Nanos,
    players: usize,
    recorder: RecorderFigures,
}

/// The steady window that the report is about.
pub(crate) struct Measure {
    began_at: Nanos,
    ended: Option<WindowEnd>,
    at_begin: Totals,
    telemetry_at_begin: TelemetrySums,
    cpu_at_begin: Nanos,
    recorder_at_begin: RecorderFigures,
    frame: Histogram,
    lateness: Histogram,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            began_at: Nanos::ZERO,
            ended: None,
            at_begin: Totals::default(),
            telemetry_at_begin: TelemetrySums::default(),
            cpu_at_begin: Nanos::ZERO,
            recorder_at_begin: RecorderFigures::default(),
            frame: Histogram::new(),
            lateness: Histogram::new(),
        }
    }
}

impl Measure {
    pub fn begin(&mut self, now: Nanos, totals: &Totals, telemetry: &TelemetrySums, recorder: RecorderFigures) {
        self.began_at = now;
        self.ended = None;
        self.at_begin = totals.clone();
        self.telemetry_at_begin = telemetry.clone();
        self.cpu_at_begin = process::cpu_time();
        self.recorder_at_begin = recorder;
        self.frame = Histogram::new();
        self.lateness = Histogram::new();
    }

    /// Closes the window; what follows is not in the report. A window that is closed stays as it is.
    pub fn end(
        &mut self,
        at: Nanos,
        totals: &Totals,
        telemetry: &TelemetrySums,
        players: usize,
        recorder: RecorderFigures,
    ) {
        if self.ended.is_none() {
            let (totals, telemetry) = (totals.clone(), telemetry.clone());
            self.ended = Some(WindowEnd { at, totals, telemetry, cpu: process::cpu_time(), players, recorder });
        }
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

    fn frame(&mut self, length: Nanos) {
        if self.ended.is_none() {
            self.frame.record_time(length);
        }
    }
}

/// The last second, for the status line.
pub(crate) struct StatusWindow {
    second: u64,
    next_at: Nanos,
    at_begin: Totals,
    cpu_at_begin: Nanos,
    frame: Histogram,
    lateness_max: Nanos,
}

impl Default for StatusWindow {
    fn default() -> Self {
        Self {
            second: 0,
            next_at: Nanos::ZERO,
            at_begin: Totals::default(),
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
        self.totals.frames += 1;
        if length > self.timeline.grid.period() {
            self.totals.frames_over_budget += 1;
        }
        if worlds_started > 0 {
            self.totals.frames_with_worlds += 1;
            self.totals.idle_tail_shares += self.pool.idle_tail().share();
        }
        let telemetry = &mut self.telemetry;
        self.pool.with_workers(|_, worker| telemetry.take(&mut worker.telemetry));
        let door = std::mem::take(&mut self.door.counts);
        self.totals.packets_in += door.packets;
        self.totals.bytes_in += door.bytes;
        self.totals.refused_by_gate += door.refused_by_gate + door.implausible;
        self.totals.over_allowance += door.over_allowance;
        self.totals.mailbox_full += door.mailbox_full;
        self.totals.joined += door.joined;
        self.totals.refused_by_game += door.refused_by_game;
        self.totals.placements_timed_out += door.placements_timed_out;
        let waiting = self.door.waiting();
        self.totals.waiting_left = waiting.fell_silent;
        self.totals.refused_queue_full = waiting.refused_full;
        self.totals.join_queue = waiting.in_line as u64;
        self.totals.placements_pending = waiting.for_world as u64;
        self.totals.join_wait_ms_max = waiting.wait_max.as_micros() / 1_000;
        self.totals.send_dropped += door.send_dropped + self.send_dropped.swap(0, Ordering::Relaxed);
        let allocations = throng_platform::allocator::thread_counts().allocations;
        self.totals.allocations += allocations - std::mem::replace(&mut self.allocations_before, allocations);
        self.measure.frame(length);
        self.status.frame.record_time(length);
        let now = self.clock.now();
        if let Some(metrics) = &mut self.metrics {
            metrics.frame(length, now, &self.control.published);
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
        let before = std::mem::replace(&mut window.at_begin, self.totals.clone());
        let cpu_before = std::mem::replace(&mut window.cpu_at_begin, cpu);
        let per_s = |now: u64, before: u64| ((now - before) as f64 / elapsed_s) as u64;
        let status = ServerStatus {
            second: window.second,
            players: self.door.players_count(),
            join_queue: self.totals.join_queue,
            placements_pending: self.totals.placements_pending,
            worlds: self.worlds.len(),
            worlds_awake: self.worlds.iter().filter(|slot| !slot.is_dormant).count(),
            frame_ms_p50: frame.p50,
            frame_ms_max: frame.max,
            frame_budget_ms: self.timeline.grid.period().as_millis_f64(),
            tick_lateness_ms_max: std::mem::take(&mut window.lateness_max).as_millis_f64(),
            ticks: self.totals.ticks - before.ticks,
            ticks_missed: self.totals.ticks_missed - before.ticks_missed,
            packets_in: per_s(self.totals.packets_in, before.packets_in),
            packets_out: per_s(self.totals.packets_out, before.packets_out),
            bytes_out: per_s(self.totals.bytes_out, before.bytes_out),
            cpu_cores: cpu.saturating_sub(cpu_before).as_secs_f64() / elapsed_s,
            rss_mb: process::rss_bytes() as f64 / 1e6,
            game_gauges: self.named_gauges(),
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
            metrics.publish(now, &status, &self.totals, &self.telemetry, &self.control.published);
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

    /// Closes the steady window. What a world that is still away has missed counts in it.
    pub(crate) fn end_measure(&mut self, now: Nanos) {
        let mut totals = self.totals.clone();
        totals.ticks_missed +=
            self.worlds.iter().map(|slot| slot.missing_since_it_left(now, &self.timeline)).sum::<u64>();
        let (players, recorder) = (self.door.players_count(), self.recorder_figures());
        self.measure.end(now, &totals, &self.telemetry, players, recorder);
    }

    /// The report of the steady window, or of the time since the start if none was set.
    pub fn report(&mut self) -> ServerReport {
        let now = self.clock.now();
        self.end_measure(now);
        let measure = &self.measure;
        let Some(WindowEnd { at, totals, telemetry, cpu, players, recorder }) = &measure.ended else {
            unreachable!("the window was closed two lines above")
        };
        let begin = &measure.at_begin;
        let (recorder_begin, recorder_now) = (&measure.recorder_at_begin, self.recorder_figures());
        let seconds = at.saturating_sub(measure.began_at).as_secs_f64();
        let per_s = |end: u64, begin: u64| (end - begin) as f64 / seconds.max(1e-9);
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let players = *players;
        let frames = totals.frames - begin.frames;
        let bytes_out_per_s = per_s(totals.bytes_out, begin.bytes_out);
        let mut counted = Counted::default();
        self.packets_of_window.copy_to(seconds, &mut counted);
        let packets = counted.rows(|kind| self.kinds[usize::from(kind.0)].name.to_string());
        let entity_updates = totals.entity_updates - begin.entity_updates;
        ServerReport {
            game: self.game.clone(),
            worlds: self.worlds.len(),
            seconds,
            tick_hz: self.worlds.iter().map(|slot| slot.rate.0).max().unwrap_or_default(),
            tick_hz_by_kind: self.worlds.iter().map(|slot| (slot.name.to_string(), slot.rate.0)).collect(),
            frame_hz: self.timeline.grid.frame_hz().into(),
            workers: self.pool.worker_count(),
            frames,
            frame_ms: percentiles_ms(&measure.frame.percentiles()),
            frame_ms_histogram: measure.frame.steps_ms(FRAME_STEPS),
            frame_budget_ms: self.timeline.grid.period().as_millis_f64(),
            frames_over_budget: totals.frames_over_budget - begin.frames_over_budget,
            tick_lateness_ms: percentiles_ms(&measure.lateness.percentiles()),
            ticks: totals.ticks - begin.ticks,
            ticks_missed: totals.ticks_missed - begin.ticks_missed,
            idle_tail_share: ratio(
                totals.idle_tail_shares - begin.idle_tail_shares,
                (totals.frames_with_worlds - begin.frames_with_worlds) as f64,
            ),
            players,
            server_cpu_cores: cpu.saturating_sub(measure.cpu_at_begin).as_secs_f64() / seconds.max(1e-9),
            server_rss_mb: process::rss_bytes() as f64 / 1e6,
            packets_in_per_s: per_s(totals.packets_in, begin.packets_in),
            packets_out_per_s: per_s(totals.packets_out, begin.packets_out),
            bytes_out_per_s,
            bytes_out_per_player_per_s: ratio(bytes_out_per_s, players as f64),
            bytes_per_entity_update: ratio(
                (totals.snapshot_bytes - begin.snapshot_bytes) as f64,
                entity_updates as f64,
            ),
            entity_updates_per_s: per_s(totals.entity_updates, begin.entity_updates),
            send_dropped: totals.send_dropped - begin.send_dropped,
            packets_lost_per_s: per_s(totals.packets_lost, begin.packets_lost),
            allocations_per_frame: ratio((totals.allocations - begin.allocations) as f64, frames as f64),
            joined_per_s: per_s(totals.joined, begin.joined),
            join_wait_ms_max: totals.join_wait_ms_max,
            join_queue: totals.join_queue,
            placements_pending: totals.placements_pending,
            placements_timed_out: totals.placements_timed_out - begin.placements_timed_out,
            refused_queue_full: totals.refused_queue_full - begin.refused_queue_full,
            disconnects: totals.disconnects - begin.disconnects,
            worlds_parked: totals.worlds_parked - begin.worlds_parked,
            world_hangs: totals.hangs - begin.hangs,
            datagrams_refused: [
                ("gate", totals.refused_by_gate - begin.refused_by_gate),
                ("connection", totals.datagrams_refused - begin.datagrams_refused),
                ("over_allowance", totals.over_allowance - begin.over_allowance),
                ("world_mailbox_full", totals.messages_dropped - begin.messages_dropped),
                ("mailbox_full", totals.mailbox_full - begin.mailbox_full),
                ("game", totals.refused_by_game - begin.refused_by_game),
                ("stale_input", totals.inputs_stale - begin.inputs_stale),
            ]
            .into(),
            poisoned: totals.poisoned - begin.poisoned,
            packets,
            events_per_s: per_s(totals.events, begin.events),
            event_copies_per_s: per_s(totals.event_copies, begin.event_copies),
            events_throttled: totals.events_throttled - begin.events_throttled,
            captures: recorder_now.captures_saved,
            captures_in_cooldown: recorder_now.in_cooldown,
            captures_lost: recorder_now.crowded_out + recorder_now.captures_failed,
            scopes_per_s: per_s(recorder.scopes, recorder_begin.scopes),
            records_lost: recorder.records_lost - recorder_begin.records_lost,
            recorder_cpu_share: self.recorder_turns.as_ref().and_then(RecorderTurns::share),
            game_per_s: self
                .known_names()
                .counters
                .iter()
                .enumerate()
                .map(|(index, &name)| {
                    (name, per_s(telemetry.counters[index], measure.telemetry_at_begin.counters[index]))
                })
                .collect(),
            game_gauges: self
                .known_names()
                .gauges
                .iter()
                .enumerate()
                .map(|(index, &name)| (name, telemetry.gauges[index]))
                .collect(),
        }
    }

    fn named_gauges(&self) -> std::collections::BTreeMap<&'static str, i64> {
        let gauges = self.known_names().gauges.into_iter().enumerate();
        gauges.map(|(index, name)| (name, self.telemetry.gauges[index])).collect()
    }
}

fn percentiles_ms(percentiles: &Percentiles) -> PercentilesMs {
    PercentilesMs {
        p50: percentiles.p50_ms,
        p99: percentiles.p99_ms,
        p999: percentiles.p999_ms,
        max: percentiles.max_ms,
    }
}
