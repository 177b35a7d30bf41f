//! Measure: what the frame adds up about itself, and what it tells of it.
//!
//! A frame counts into `Server::counts`; at its end that is added to the totals since the start and to every window
//! that is open. All of it is owned by the frame thread and costs some 100 nanoseconds per frame, without allocating;
//! the status, once a second, allocates.

use std::{collections::BTreeMap, sync::atomic::Ordering};

use throng_metrics::{
    Counters, Histogram, Percentiles,
    game::{GameTotals, SAMPLES, counter_name, gauge_name},
};
use throng_platform::{accounts::Rates, never, process, time::Nanos};
use throng_profiler::{log_category, log_error};

use crate::{
    accounts::Accounts,
    browser_counts::BrowserWatch,
    client_report::ClientsCounted,
    packet_report::Counted,
    recorder_turns::RecorderTurns,
    report::{PercentilesMs, ServerReport, ServerStatus},
    saves::Saves,
    server::Server,
    totals::{LastSecond, Totals},
    watch::PastSecond,
    windows::{AccountsThen, TicksOfKind, WindowEnd},
};

log_category!(BUGS = "server.bugs");

/// Steps of the report's histogram of frames.
const FRAME_STEPS: usize = 40;

impl Server {
    /// Books a frame that began at `began_at` and is over now. One that a packet or the second's status woke the thread
    /// for began when that came, somewhere within the grid.
    pub(crate) fn measure_frame(&mut self, began_at: Nanos, worlds_started: usize) {
        let length = self.clock.now().saturating_sub(began_at.max(self.woke_at));
        let mut counts = std::mem::take(&mut self.counts);
        counts.server.frames = 1;
        counts.server.frames_over_budget = u64::from(length > self.timeline.grid.period());
        counts.admission = self.addresses.take_counts();
        if let Some(saves) = &mut self.saves {
            counts.saves.merge(&saves.take_counts());
        }
        if let Some(analytics) = &mut self.analytics {
            counts.analytics = analytics.take_counts();
            self.control.published.set_analytics_away(analytics.is_away());
        }
        counts.uploads = self.uploads.take_counts();
        if let Some(browsers) = &mut self.browsers {
            counts.browsers.merge(&browsers.take());
        }
        self.long_tasks.count_into(&mut counts.long_tasks);
        self.recording_counter.count_into(self.recording.queue(), &mut counts.recording);
        counts.server.worker_send_dropped = self.send_dropped.swap(0, Ordering::Relaxed);
        counts.server.directory_panics = self.directory.take_panics();
        let stalls = self.host_watch.take_stall_counts();
        counts.server.host_stalls = stalls.stalls;
        counts.server.host_stall_ms = stalls.stalled.as_micros() / 1_000;
        counts.server.host_stall_longest_ms = stalls.longest.as_micros() / 1_000;
        let allocations = throng_platform::allocator::thread_counts().allocations;
        let impossible = never::count();
        counts.server.impossible_states = impossible - std::mem::replace(&mut self.impossible_before, impossible);
        counts.server.allocations = allocations - std::mem::replace(&mut self.allocations_before, allocations);
        if counts.server.ticks > 0 || self.worlds.is_empty() {
            self.control.published.set_has_ticked();
        }
        self.totals.merge(&counts);
        self.status.counts.merge(&counts);
        let idle_tail_share = (worlds_started > 0).then(|| self.pool.idle_tail().share());
        self.measure.frame(length, &counts, idle_tail_share);
        self.status.frame.record_time(length);
        self.watch_frame(length);
        self.measure_game();
        let now = self.clock.now();
        self.host_watch.look_if_due(now);
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
        let (players_by_kind, plans_parked) = (self.players_by_kind(), self.publish_parked(now));
        let worlds_by_kind = self.worlds_by_kind();
        let worlds_awake = self.worlds.iter().filter(|slot| !slot.is_dormant).count();
        let window = &mut self.status;
        let cpu = process::cpu_time();
        let elapsed_s = (now.saturating_sub(window.next_at).as_secs_f64() + 1.0).max(1.0);
        let frame = percentiles_ms(&window.frame.percentiles());
        let counts = std::mem::take(&mut window.counts);
        let cpu_before = std::mem::replace(&mut window.cpu_at_begin, cpu);
        let per_s = |count: u64| (count as f64 / elapsed_s) as u64;
        for spot in never::take_unlogged() {
            log_error!(BUGS, %spot, "a state was met that only a bug can make; the server goes on");
        }
        let waiting = self.addresses.waiting();
        let accounts = self.control.published.accounts().try_read();
        let of_host = |name: &str| accounts.as_deref()?.as_ref()?.rates.get(name);
        let status = ServerStatus {
            second: window.second,
            players: self.addresses.players_count(),
            players_by_kind,
            join_queue: waiting.in_line as u64,
            placements_pending: waiting.for_world as u64,
            worlds: self.worlds.len(),
            worlds_awake,
            plans_parked,
            overload_level: self.overload.now().level as u8,
            worlds_overloaded: self.overload.now().worlds,
            worlds_slowed: self.overload.now().worlds_slowed,
            time_factor_min: f64::from(std::mem::take(&mut window.time_factor_min).percent()) / 100.0,
            time_lost_share: counts.server.time_lost_us as f64 / 1e6 / (elapsed_s * worlds_awake.max(1) as f64),
            admission_is_closed: self.overload.now().admission_is_closed,
            starvation_level: self.long_tasks.level(),
            admission_waits: self.long_tasks.admission_waits(),
            long_tasks_waiting: self.long_tasks.tasks().waiting(),
            long_tasks_ms: self.long_tasks.tasks().outstanding().as_millis_f64(),
            long_tasks_freeing_ms: self.long_tasks.tasks().freeing().as_millis_f64(),
            frame_ms_p50: frame.p50,
            frame_ms_max: frame.max,
            frame_budget_ms: self.timeline.grid.period().as_millis_f64(),
            tick_lateness_ms_max: std::mem::take(&mut window.lateness_max).as_millis_f64(),
            ticks: counts.server.ticks,
            ticks_missed: counts.server.ticks_missed,
            ticks_missed_host: counts.server.ticks_missed_host,
            host_took_ms_max: std::mem::take(&mut window.host_took_max).as_millis_f64(),
            packets_in: per_s(counts.admission.packets),
            packets_out: per_s(counts.ticks.packets_out),
            bytes_out: per_s(counts.ticks.bytes_out),
            cpu_cores: cpu.saturating_sub(cpu_before).as_secs_f64() / elapsed_s,
            group_cpu_cores: of_host("outside.group_cpu_cores"),
            group_quota_cores: of_host("outside.group_quota_cores"),
            group_throttled_share: of_host("outside.group_throttled_share"),
            rss_mb: process::rss_bytes() as f64 / 1e6,
            saves_are_away: self.saves.as_ref().is_some_and(Saves::is_away),
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
            metrics.refused(self.addresses.handshake_stats());
            metrics.browsers_stand(self.browsers.as_ref().map_or(0, BrowserWatch::open));
            metrics.kinds_stand(&worlds_by_kind, &status.players_by_kind);
            let of_second = LastSecond { counts: &counts, seconds: elapsed_s };
            metrics.publish(now, &status, &self.totals, &of_second, &self.game_totals, &self.control.published);
        }
        // Watched or not: whoever opens the console later sees since when it is bad.
        self.control.published.watched().keep_second(PastSecond::of(now, &status, of_host));
        self.publish_watched(now, elapsed_s, &status);
        Some(status)
    }

    /// Tells the console which plans are parked, and gives their number.
    pub(crate) fn publish_parked(&self, now: Nanos) -> usize {
        let parked: Vec<_> = self.parking.parked(now).chain(self.parked_culprits()).collect();
        let count = parked.len();
        self.control.published.publish_parked(parked);
        count
    }

    /// Once a second, a look-up in the list of worlds for each player: some 0.1 ms for a thousand in as many worlds.
    fn players_by_kind(&self) -> BTreeMap<String, usize> {
        let mut counts: BTreeMap<&str, usize> = self.kinds.iter().map(|row| (&*row.name, 0)).collect();
        for slot in self.addresses.worlds_of_players().filter_map(|world| self.worlds.get(world)) {
            *counts.entry(&*slot.name).or_default() += 1;
        }
        counts.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect()
    }

    /// By the number of the kind. Once a second: some 10 ns a world.
    fn worlds_by_kind(&self) -> Vec<u64> {
        let mut counts = vec![0; self.kinds.len()];
        for slot in self.worlds.iter() {
            if let Some(count) = counts.get_mut(usize::from(slot.plan.kind.0)) {
                *count += 1;
            }
        }
        counts
    }

    /// Adds up what the workers' worlds have sent and told of their clients, and publishes the rows of the last second.
    fn publish_packets(&mut self, seconds: f64) {
        let (packets, mut clients) = (&mut self.packets, ClientsCounted::for_clients(self.addresses.players_count()));
        self.pool.with_workers(|_, worker| {
            packets.absorb(&mut worker.packets);
            clients.absorb(&mut worker.clients);
        });
        self.control.published.set_clients(clients);
        if !self.measure.is_over() {
            self.packets_of_window.add_all(packets);
        }
        self.control.published.set_packets(packets, seconds);
        packets.clear();
    }

    /// Closes the steady window; what follows is not in the report. A window that is closed stays as it is. What a
    /// world that is still away has missed counts in it, as our own.
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
            kernel: process::kernel_time(),
            recorder_share: self.recorder_turns.as_ref().and_then(RecorderTurns::share),
            players: self.addresses.players_count(),
            recorder: self.recorder_figures(),
            game_gauges: named_gauges(&self.game_totals),
            accounts: self.control.published.accounts().try_read(),
        });
    }

    /// The report of the steady window, or of the time since the start if none was set.
    pub fn report(&mut self) -> ServerReport {
        let now = self.clock.now();
        self.end_measure(now);
        let measure = &self.measure;
        let Some(WindowEnd { at, cpu, kernel, recorder_share, players, recorder, game_gauges, accounts }) =
            &measure.ended
        else {
            unreachable!("the window was closed two lines above")
        };
        let Totals { server, admission, ticks, .. } = &measure.counts;
        let replication = &ticks.replication;
        let (recorder_begin, recorder_now) = (&measure.recorder_at_begin, self.recorder_figures());
        let seconds = at.saturating_sub(measure.began_at).as_secs_f64();
        let per_s = |count: u64| count as f64 / seconds.max(1e-9);
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let players = *players;
        let (cpu, kernel) = (cpu.saturating_sub(measure.cpu_at_begin), kernel.saturating_sub(measure.kernel_at_begin));
        let bytes_out_per_s = per_s(ticks.bytes_out);
        let mut counted = Counted::default();
        self.packets_of_window.copy_to(seconds, &mut counted);
        let packets = counted.rows(|kind| self.kinds[usize::from(kind.0)].name.to_string());
        let waiting = self.addresses.waiting();
        let mut counters = BTreeMap::new();
        measure.counts.each(&mut |counter, value| _ = counters.insert(counter.name, value));
        ServerReport {
            game: self.game.clone(),
            build: self.build.clone(),
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
            ticks_missed_host: server.ticks_missed_host,
            ticks_slowed: server.ticks_slowed,
            time_lost_share: self.time_lost_share(),
            time_factor_min: f64::from(measure.time_factor_min.percent()) / 100.0,
            idle_tail_share: ratio(measure.idle_tail_shares, measure.frames_with_worlds as f64),
            players,
            server_cpu_cores: cpu.as_secs_f64() / seconds.max(1e-9),
            tick_time_us: measure.tick_time.parts(cpu, kernel, server.ticks),
            scopes_us_per_tick: measure.tick_time.by_subsystem_us(),
            budgets_us_per_tick: self.budgets_us_per_tick(),
            categories_us_per_tick: measure.tick_time.by_category_us(),
            tick_ms_mean_by_kind: self.of_ticked_kinds(|ticks| ticks.took.as_millis_f64() / ticks.count as f64),
            tick_lateness_ms_max_by_kind: self.of_ticked_kinds(|ticks| ticks.lateness_max.as_millis_f64()),
            server_rss_mb: process::rss_bytes() as f64 / 1e6,
            packets_in_per_s: per_s(admission.packets),
            packets_out_per_s: per_s(ticks.packets_out),
            bytes_out_per_s,
            bytes_out_per_player_per_s: ratio(bytes_out_per_s, players as f64),
            bytes_per_entity_update: ratio(replication.snapshot_bytes as f64, replication.entity_updates as f64),
            entity_updates_per_s: per_s(replication.entity_updates),
            send_dropped: admission.send_dropped + server.worker_send_dropped,
            packets_lost_per_s: per_s(ticks.packets_lost),
            allocations_per_frame: ratio((ticks.allocations + server.allocations) as f64, server.frames as f64),
            joined_per_s: per_s(admission.joined),
            join_wait_ms_max: waiting.wait_max.as_micros() / 1_000,
            join_queue: waiting.in_line as u64,
            placements_pending: waiting.for_world as u64,
            placements_timed_out: admission.placements_timed_out,
            refused_queue_full: admission.refused_queue_full,
            disconnects: server.disconnects,
            worlds_parked: server.worlds_parked,
            world_hangs: server.hangs,
            datagrams_refused: [
                ("gate", admission.refused_by_handshake + admission.implausible),
                ("connection", ticks.datagrams_refused),
                ("message", ticks.messages_refused),
                (
                    "over_allowance",
                    admission.over_allowance
                        + ticks.inputs_over_allowance
                        + ticks.messages_over_allowance
                        + ticks.dear_messages_over_allowance,
                ),
                ("mailbox_full", admission.mailbox_full),
                ("game", admission.refused_by_game),
                ("stale_input", ticks.inputs_stale),
                ("stale_request", ticks.requests_stale),
            ]
            .into(),
            poisoned: replication.poisoned,
            packets,
            events_per_s: per_s(ticks.events),
            event_copies_per_s: per_s(ticks.event_copies),
            events_throttled: ticks.events_throttled,
            counters,
            accounts: accounts_between(&measure.accounts_at_begin, accounts),
            accounts_missing: known(accounts).map(|accounts| accounts.account.missing()).unwrap_or_default(),
            saves_missing: false,
            captures: recorder_now.captures_saved,
            captures_in_cooldown: recorder_now.in_cooldown,
            captures_lost: recorder_now.crowded_out + recorder_now.captures_failed,
            scopes_per_s: per_s(recorder.scopes - recorder_begin.scopes),
            records_lost: recorder.records_lost - recorder_begin.records_lost,
            recorder_cpu_share: recorder_share.map(|share| share.median),
            recorder_cpu_share_interval: recorder_share.and_then(|share| share.interval),
            game_per_s: self.game_counters().map(|(name, (sum, _))| (name, per_s(sum))).collect(),
            game_frame_max: self.game_counters().map(|(name, (_, most))| (name, most)).collect(),
            game_mean: means(&self.game_counters().map(|(name, (sum, _))| (name, sum)).collect()),
            game_gauges: game_gauges.clone(),
            game_gauges_max: (self.game_totals.gauges())
                .filter_map(|(id, _)| Some((gauge_name(id), *measure.game.gauges_max.get(id)?)))
                .filter(|(_, most)| *most > i64::MIN)
                .collect(),
        }
    }

    /// Of the time that worlds' ticks stand for, with what they fell behind for being slowed, the latter.
    fn time_lost_share(&self) -> f64 {
        let ticked = self.kinds.iter().zip(&self.measure.ticks_by_kind);
        let run_s: f64 = ticked.map(|(kind, ticks)| ticks.count as f64 / f64::from(kind.rate.0)).sum();
        let lost_s = self.measure.counts.server.time_lost_us as f64 / 1e6;
        if lost_s > 0.0 { lost_s / (lost_s + run_s) } else { 0.0 }
    }

    /// None without a recorder, which has the rules.
    fn budgets_us_per_tick(&self) -> BTreeMap<&'static str, f64> {
        let Some(recorder) = &self.recorder else { return BTreeMap::new() };
        let ticks = self.kinds.iter().zip(&self.measure.ticks_by_kind).map(|(kind, ticks)| (&*kind.name, ticks.count));
        self.measure.tick_time.budgets_us(&recorder.control().rules(), &ticks.collect::<Vec<_>>())
    }

    /// A figure of each kind of world that ticked in the steady window.
    fn of_ticked_kinds(&self, figure: impl Fn(&TicksOfKind) -> f64) -> BTreeMap<String, f64> {
        let kinds = self.kinds.iter().zip(&self.measure.ticks_by_kind);
        let ticked = kinds.filter(|(_, ticks)| ticks.count > 0);
        ticked.map(|(kind, ticks)| (kind.name.to_string(), figure(ticks))).collect()
    }

    /// The game's counters with their sum in the steady window and the most in one frame of it; also those that were
    /// not used in it.
    fn game_counters(&self) -> impl Iterator<Item = (&'static str, (u64, u64))> {
        let of_window = |id| self.measure.game.counters.get(id).copied().unwrap_or_default();
        self.game_totals.counters().map(move |(id, _)| (counter_name(id), of_window(id)))
    }
}

fn known(accounts: &AccountsThen) -> Option<&Accounts> {
    accounts.as_deref()?.as_ref()
}

/// Nothing if they were not read before the window's begin; a window shorter than a reading's period has none either.
fn accounts_between(begin: &AccountsThen, end: &AccountsThen) -> BTreeMap<&'static str, f64> {
    let (Some(begin), Some(end)) = (known(begin), known(end)) else { return BTreeMap::new() };
    if begin.account.at >= end.account.at {
        return BTreeMap::new();
    }
    let rates = Rates::between(&begin.account, &end.account);
    rates.figures().filter_map(|(figure, value)| Some((figure.name, value?))).collect()
}

/// Of sums and the counters that say of how many values they are.
fn means(counters: &BTreeMap<&'static str, u64>) -> BTreeMap<&'static str, f64> {
    let mean = |(name, samples): (&&'static str, &u64)| {
        let name = name.strip_suffix(SAMPLES)?;
        let sum = counters.get(name).filter(|_| *samples > 0)?;
        Some((name, *sum as f64 / *samples as f64))
    };
    counters.iter().filter_map(mean).collect()
}

fn named_gauges(game: &GameTotals) -> BTreeMap<&'static str, i64> {
    game.gauges().map(|(id, value)| (gauge_name(id), value)).collect()
}

fn percentiles_ms(percentiles: &Percentiles) -> PercentilesMs {
    PercentilesMs {
        mean: percentiles.mean_ms,
        p50: percentiles.p50_ms,
        p99: percentiles.p99_ms,
        p999: percentiles.p999_ms,
        max: percentiles.max_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_of_the_values_that_were_added_and_a_plain_counter_has_none() {
        let counters = [("round.s", 30), ("round.s.samples", 4), ("kills", 7), ("idle", 0), ("idle.samples", 0)];
        assert_eq!(means(&counters.into()), [("round.s", 7.5)].into());
    }
}
