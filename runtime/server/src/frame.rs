//! The frame: one pass of the server loop. Read this file first.
//!
//! ```text
//! begin (serial, small)   commands, packets to their worlds' mailboxes, which worlds are due
//! worlds (parallel)       workers take due worlds from one list: earliest deadline first, among equals the costliest;
//!                         mail -> systems -> changes -> packets (`GameWorld::tick`)
//! end (serial, small)     worlds come home, clients travel, figures are merged
//! ```
//!
//! Frames lie on a fixed grid (60 Hz for worlds of 20 and 30 Hz), and worlds of one rate are spread over it, so that
//! frames are even. A frame closes on time: a world that is not done stays away with its worker, nothing waits for it,
//! and it rejoins when it is done. At most one tick per world and frame, so a late frame never spirals.
//!
//! **Architecture Invariant:** `begin` and `end` touch only worlds that are home; mailboxes are queues. No world holds
//! a reference to another one. The frame thread never runs a world.

use throng_metrics::Counters;
use throng_platform::time::Nanos;
use throng_profiler::{LateTick, Phases, is_recording, log_category, log_debug, log_error, log_warn, site};
use throng_scheduler::Scheduled;
use throng_world::{
    Client, GameWorld, Leaving,
    failures::FailedSystem,
    ids::WorldId,
    tick_resources::{RefusedTravel, TravelRefusal},
    transfer::Transfer,
};

use crate::{
    address_table::CLIENTS, directory::Directory, metrics::TickOfKind, overload::Level, saves::WithSaves,
    server::Server, tick_trace::TickRecord, world_hash::WorldHash, world_slot::HANG_REPORT_AFTER,
};

log_category!(WORLD = "server.world");
log_category!(HOST = "server.host");

impl Server {
    /// Runs frame number `frame` of the grid, on the frame thread.
    pub fn frame(&mut self, frame: u64) {
        let now = self.timeline.start_of(frame);
        let frame_end = self.timeline.start_of(frame + 1);
        self.begin_frame_of_recorder(frame);

        // begin
        let mut phases = Phases::begin(site!("frame.commands"));
        self.frame_number = Some(frame);
        self.obey_commands(now);
        self.watch_overload(now);
        self.pace_long_tasks();
        self.turn_over_worlds(frame);
        self.begin_saves(now);
        self.deliver_long_results();
        self.directory.frame(now);
        self.place_stranded(now);
        phases.next(site!("net.receive"));
        self.receive_packets(now);
        phases.next(site!("frame.pick_worlds"));
        self.pick_due_worlds(frame);

        // worlds
        let started_count = self.due.len();
        self.pool.submit(&mut self.due);
        phases.next(site!("idle.wait_for_worlds"));
        // Worlds that are not done are welcomed home in a later frame.
        let _ = self.pool.wait(frame_end, &mut self.finished);

        // end
        phases.next(site!("frame.welcome_home"));
        self.welcome_home(frame);
        self.end_saves(now);
        self.hand_over_events();
        self.watch_absent_worlds(now);
        phases.next(site!("frame.measure"));
        self.measure_frame(now, started_count);
        drop(phases);
        self.end_frame_of_recorder(started_count);
    }

    /// Datagrams go to their worlds' mailboxes, still sealed; new clients are let in.
    fn receive_packets(&mut self, now: Nanos) {
        let unix_s = self.clock.unix_seconds();
        let mut placing = WithSaves { directory: &mut self.directory, saves: self.saves.as_mut(), now };
        self.addresses.receive(&mut *self.transport, &self.mailboxes, &mut placing, now, unix_s);
    }

    /// Fills the list of worlds to tick in this frame.
    fn pick_due_worlds(&mut self, frame: u64) {
        let now = self.timeline.start_of(frame);
        let saved_ones_wait = self.saves.as_ref().is_some_and(|saves| saves.holds_worlds(now));
        let saves_are_away = self.saves.as_ref().is_some_and(|saves| saves.is_away());
        for slot in self.worlds.iter_mut().filter(|slot| !saved_ones_wait || !slot.saves.is_on) {
            if slot.is_dormant && !slot.mailbox.is_empty() {
                slot.wake(frame);
                slot.home.iter_mut().for_each(|hosted| self.game_totals.take_back(hosted.world.gauges_mut()));
            }
            if !slot.is_due(frame) {
                continue;
            }
            // A world that is away is not due until it is home again; what it misses meanwhile is counted then.
            let Some(mut world) = slot.home.take() else { continue };
            world.now = now;
            let skipped = slot.end_rest();
            world.world.skip(skipped);
            self.counts.server.ticks_skipped += u64::from(skipped);
            world.world.thin_far_updates(slot.ladder.level() >= Level::FarUpdatesThin);
            world.world.set_time_factor(slot.obey_ladder(self.timeline.grid));
            world.world.set_saves_away(saves_are_away);
            slot.expect_arrivals(self.mailboxes.take_arrivals_count(slot.id));
            let cost = if self.uses_cost_estimates { slot.cost.estimate() } else { Nanos::ZERO };
            self.due.push(Scheduled { task: world, deadline: slot.deadline(&self.timeline), cost });
        }
        if !self.due.is_empty() {
            self.look_at_host();
        }
    }

    /// Worlds that have finished rejoin, in the order of their ids so that it does not matter which worker was quicker.
    fn welcome_home(&mut self, frame: u64) {
        let mut finished = std::mem::take(&mut self.finished);
        let mut taken_max = Nanos::ZERO;
        finished.sort_unstable_by_key(|finished| finished.task.world.id());
        for finished in finished.drain(..) {
            let cost = finished.cost();
            let Some(mut hosted) = self.send_back_if_marked(finished.task, self.timeline.start_of(frame)) else {
                continue;
            };
            if finished.panicked {
                self.end_panicked(hosted, self.timeline.start_of(frame));
                continue;
            }
            let world = &mut hosted.world;
            // A world that is away keeps its place.
            let Some(slot) = self.worlds.get_mut(world.id()) else { continue };
            self.trace.record(TickRecord {
                frame,
                world: slot.id,
                worker: finished.worker,
                started: finished.started,
                finished: finished.finished,
                estimate: slot.cost.estimate(),
            });
            slot.cost.measured(cost);
            slot.last_cost = cost;
            slot.longest_tick.note(finished.finished, cost);
            world.note_tick_took(cost);
            slot.cost.hint(world.report_mut().next_tick_hint);
            if let Some(limits) = self.overload.limits() {
                let share = slot.period_share(finished.finished, &self.timeline);
                let cost_share = slot.share_of_period(cost);
                let changed = slot.ladder.observe(finished.finished, share, cost_share, slot.limits(limits));
                self.counts.server.overload_steps += u64::from(changed);
            }
            if !slot.time_factor().is_usual() {
                self.counts.server.ticks_slowed += 1;
                self.counts.server.time_lost_us += slot.time_lost_per_tick().as_micros();
                self.measure.time_runs(slot.time_factor());
                self.status.time_factor_min = self.status.time_factor_min.min(slot.time_factor());
            }
            let outcome = slot.close_tick(finished.started, finished.finished, &self.timeline, &mut self.host_watch);
            let report = world.report_mut();
            let (was_listening, rests) = (report.was_listening, report.rests);
            self.counts.server.ticks += u64::from(!was_listening);
            self.counts.server.listenings += u64::from(was_listening);
            slot.begin_rest(rests);
            self.counts.server.ticks_missed += outcome.missed;
            self.counts.server.ticks_missed_host += outcome.of_host.missed;
            taken_max = taken_max.max(outcome.of_host.taken);
            if let Some(recorder) = self.recorder.as_mut().filter(|_| is_recording()) {
                let (number, kind) = (slot.id.number(), world.recorded_kind());
                recorder.note_tick(kind);
                self.watch_sums.tick(kind, cost);
                if outcome.late_by > Nanos::ZERO {
                    let (late_ns, is_missed) = (outcome.late_by.0, outcome.missed > 0);
                    recorder.note_late_tick(LateTick { world: number, kind, late_ns, is_missed });
                }
            }
            self.counts.ticks.merge(&world.report_mut().stats);
            self.measure.tick_lateness(outcome.lateness);
            self.measure.tick(world.kind(), cost, outcome.lateness);
            self.status.tick_lateness(outcome.lateness);
            if let Some(metrics) = &mut self.metrics {
                let (kind, lateness, missed) = (world.kind(), outcome.lateness, outcome.missed);
                metrics.tick(&TickOfKind { kind, took: cost, lateness, missed });
            }
            if let Some(hash) = world.report_mut().state_hash {
                let tick = world.ticks().wrapping_sub(1);
                self.hashes.push(WorldHash { world: slot.id, tick, hash });
            }
            slot.is_dormant = world.report_mut().has_nothing_to_do && slot.mailbox.is_empty();
            if slot.is_dormant {
                self.game_totals.leave_out(world.gauges_mut());
                slot.ladder.reset();
            }
            self.see_off(world);
            if let Some(slot) = self.worlds.get_mut(hosted.world.id()) {
                slot.home = Some(hosted);
            }
        }
        self.finished = finished;
        self.tell_of_host(taken_max);
    }

    /// Says that the host took a core away, and what that cost: in the status, and in the log, from which captures have
    /// it.
    fn tell_of_host(&mut self, taken_max: Nanos) {
        if taken_max == Nanos::ZERO {
            return;
        }
        self.status.host_took(taken_max);
        let ticks_missed = self.counts.server.ticks_missed_host;
        log_warn!(
            HOST,
            taken_ms = taken_max.as_millis_f64(),
            ticks_missed,
            "the host took a core away, and ticks were missed for it"
        );
    }

    /// Clients that leave a world go where they want, and its messages to other worlds are delivered.
    pub(crate) fn see_off(&mut self, world: &mut GameWorld) {
        let from = world.id();
        let is_unsaved = self.take_saves(world);
        if !world.report_mut().failed.is_empty() {
            tell_of_failed_systems(world);
        }
        if !world.report_mut().long_tasks.is_empty() {
            self.start_long_tasks_of(world);
        }
        let report = world.report_mut();
        for leaving in report.leaving.drain(..) {
            match leaving {
                // What they have would be in two worlds' saves, or in none.
                Leaving::Travel { client, to, transfer } if is_unsaved => {
                    self.turn_back(client, Some(from), RefusedTravel { to, reason: TravelRefusal::NotSaved }, transfer);
                }
                Leaving::Travel { client, to, transfer } => self.send(client, Some(from), to, transfer),
                Leaving::Returned { mut client, to, transfer, error } => {
                    log_error!(
                        WORLD,
                        kind = self.kind_of(from),
                        world = %from,
                        client = client.client_id().0,
                        %error,
                        "a client was turned back, since what it carries cannot be read"
                    );
                    self.counts.server.transfers_refused += 1;
                    client.refuse_travel(RefusedTravel { to: from, reason: TravelRefusal::TransferUnreadable });
                    match to {
                        Some(to) => self.send(client, None, to, transfer),
                        None => self.disconnect(client, "what it carries cannot be read"),
                    }
                }
                Leaving::Gone { client, reason } => {
                    self.counts.server.disconnects += 1;
                    if let Some(client_id) = self.addresses.left(client) {
                        log_debug!(CLIENTS, client = client_id.0, reason, "client left");
                        self.directory.left(client_id);
                        self.client_left_saves(client_id, Some(from));
                    }
                }
            }
        }
        for (to, message) in report.messages.drain(..) {
            match self.mailboxes.get(to) {
                Some(mailbox) if mailbox.push_message(message) => {}
                Some(_) => self.counts.server.messages_dropped += 1,
                None => self.counts.server.messages_undeliverable += 1,
            }
        }
    }

    /// Sends a client into a world with what it carries. If that world is no more, it goes back to where it comes from,
    /// with it, and is told why; if there is nothing to go back to, it is disconnected.
    pub(crate) fn send(&mut self, client: Box<Client>, from: Option<WorldId>, to: WorldId, transfer: Transfer) {
        if self.mailboxes.get(to).is_some() {
            self.addresses.moved(client.key(), to);
            return self.mailboxes.push_arrival(to, client, from, Some(transfer));
        }
        self.turn_back(client, from, RefusedTravel { to, reason: TravelRefusal::NoSuchWorld }, transfer);
    }

    /// It does not go where it was sent: back to where it comes from, with what it carries.
    fn turn_back(
        &mut self,
        mut client: Box<Client>,
        from: Option<WorldId>,
        refused: RefusedTravel,
        transfer: Transfer,
    ) {
        let Some(home) = from.filter(|from| self.mailboxes.get(*from).is_some()) else {
            return self.disconnect(client, "its world has ended");
        };
        self.counts.server.travels_refused += 1;
        let why = match refused.reason {
            TravelRefusal::NoSuchWorld => "that world is no more",
            TravelRefusal::TransferUnreadable => "that world cannot read what it carries",
            TravelRefusal::NotSaved => "this world could not be saved with it",
        };
        log_error!(
            WORLD,
            kind = self.kind_of(home),
            world = %home,
            client = client.client_id().0,
            to = %refused.to,
            why,
            "a client was sent to another world, and is back where it was"
        );
        client.refuse_travel(refused);
        self.addresses.moved(client.key(), home);
        self.mailboxes.push_arrival(home, client, None, Some(transfer));
    }

    /// The name of a world's kind, for the log; nothing if the world is no more.
    fn kind_of(&self, world: WorldId) -> &str {
        self.worlds.get(world).map_or("", |slot| &*slot.name)
    }

    /// Names worlds that hang: their worker is lost until they return, the others play on.
    fn watch_absent_worlds(&mut self, now: Nanos) {
        for slot in self.worlds.iter_mut().filter(|slot| slot.home.is_none()) {
            if let Some(running) = slot.reports_hang(now) {
                self.counts.server.hangs += 1;
                // The watchdog has said more already.
                if self.watchdog.is_some() {
                    continue;
                }
                log_warn!(
                    WORLD,
                    world = %slot.id,
                    name = &*slot.name,
                    running_ms = running.as_millis_f64(),
                    "world has not come back from its tick"
                );
            }
        }
        self.control.published.set_workers_stuck_for(self.workers_stuck_for(now));
    }

    /// For how long no worker has finished a tick, though each has one; zero while one of them is free.
    fn workers_stuck_for(&self, now: Nanos) -> Nanos {
        let shortest = self.worlds.iter().filter_map(|slot| slot.running_for(now)).min().unwrap_or_default();
        // The pool's lock is asked for only where it matters.
        if shortest > HANG_REPORT_AFTER && self.pool.idle_workers() == 0 { shortest } else { Nanos::ZERO }
    }
}

/// Says which systems of a world failed. Rare: a world tells of each system at most once in ten seconds.
#[cold]
fn tell_of_failed_systems(world: &mut GameWorld) {
    let (id, kind) = (world.id(), world.name().clone());
    for FailedSystem { system, error, times } in world.report_mut().failed.drain(..) {
        log_error!(WORLD, world = %id, kind = &*kind, system, error, times, "a system failed");
    }
}
