//! The frame: one pass of the server loop. Read this file first.
//!
//! ```text
//! begin (serial, small)   commands, packets to their worlds' mailboxes, which worlds are due
//! worlds (parallel)       workers take due worlds from one list: earliest deadline first, among equals the dearest;
//!                         mail -> systems -> changes -> packets (`GameWorld::tick`)
//! end (serial, small)     worlds come home, clients travel, figures are merged
//! ```
//!
//! Frames lie on a fixed grid (60 Hz for worlds of 20 and 30 Hz), and worlds of one rate are spread over it, so that frames are
//! even. A frame closes on time: a world that is not done stays away with its worker, nothing waits for it, and it rejoins
//! when it is done. At most one tick per world and frame, so a late frame never spirals.
//!
//! **Architecture Invariant:** `begin` and `end` touch only worlds that are home; mailboxes are queues. No world holds a reference
//! to another one. The frame thread never runs a world.

use std::sync::Arc;

use throng_metrics::Counters;
use throng_platform::time::Nanos;
use throng_profiler::{Phases, log_category, log_debug, log_error, log_warn, site};
use throng_scheduler::Scheduled;

use crate::{
    directory::Directory,
    front_door::{DOOR, FrontDoor},
    game_world::{GameWorld, Leaving},
    ids::WorldId,
    inspection::WorldHash,
    mailbox::{Mail, Mailbox},
    measure::ServerCounts,
    server::Server,
    tick_trace::TickRecord,
};

log_category!(WORLD = "server.world");

impl Server {
    /// Runs frame number `frame` of the grid, on the frame thread.
    pub fn frame(&mut self, frame: u64) {
        let now = self.timeline.start_of(frame);
        let frame_end = self.timeline.start_of(frame + 1);
        self.begin_frame_of_recorder(frame);

        // begin
        let mut phases = Phases::begin(site!("frame.commands"));
        self.obey_commands(now);
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
        self.watch_absent_worlds(now);
        phases.next(site!("frame.measure"));
        self.measure_frame(now, started_count);
        drop(phases);
        self.end_frame_of_recorder(started_count);
    }

    /// Datagrams go to their worlds' mailboxes, still sealed; new clients are let in.
    fn receive_packets(&mut self, now: Nanos) {
        let unix_s = self.clock.unix_seconds();
        self.door.receive(&mut *self.transport, &self.mailboxes, &mut *self.directory, now, unix_s);
    }

    /// Fills the list of worlds to tick in this frame.
    fn pick_due_worlds(&mut self, frame: u64) {
        let now = self.timeline.start_of(frame);
        for slot in &mut self.slots {
            if slot.is_dormant && !slot.mailbox.is_empty() {
                slot.wake(frame);
            }
            if !slot.is_due(frame) {
                continue;
            }
            // A world that is away is not due until it is home again; what it misses meanwhile is counted then.
            let Some(mut world) = slot.home.take() else { continue };
            world.now = now;
            let cost = if self.uses_cost_estimates { slot.cost.estimate() } else { Nanos::ZERO };
            self.due.push(Scheduled { task: world, deadline: slot.deadline(&self.timeline), cost });
        }
    }

    /// Worlds that have finished rejoin, in the order of their ids so that it does not matter which worker was quicker.
    fn welcome_home(&mut self, frame: u64) {
        self.finished.sort_unstable_by_key(|finished| finished.task.id);
        for finished in self.finished.drain(..) {
            let cost = finished.cost();
            let mut world = finished.task;
            let slot = &mut self.slots[world.id.0 as usize];
            if finished.panicked {
                // Its state may be half-changed: it must not tick again, and is dropped with all that is in it.
                log_error!(WORLD, world = world.id.0, name = &*world.name, "world panicked in its tick and is parked");
                self.counts.server.worlds_parked += 1;
                self.game_totals.withdraw(&mut world.gauges);
                slot.park();
                slot.mailbox.close();
                let (directory, disconnects) = (&mut self.directory, &mut self.counts.server.disconnects);
                self.door.lost_world(world.id, |client_id| {
                    *disconnects += 1;
                    directory.left(client_id);
                });
                continue;
            }
            self.trace.record(TickRecord {
                frame,
                world: world.id,
                worker: finished.worker,
                started: finished.started,
                finished: finished.finished,
                estimate: slot.cost.estimate(),
            });
            slot.cost.measured(cost);
            let outcome = slot.close_tick(finished.started, finished.finished, &self.timeline);
            self.counts.server.ticks += 1;
            self.counts.server.ticks_missed += outcome.missed;
            self.counts.ticks.merge(&world.stats);
            self.measure.tick_lateness(outcome.lateness);
            self.status.tick_lateness(outcome.lateness);
            if let Some(metrics) = &mut self.metrics {
                metrics.tick_lateness(outcome.lateness);
            }
            if world.hash_wanted {
                let tick = world.tick.wrapping_sub(1);
                self.hashes.push(WorldHash { world: world.id, tick, hash: world.state_hash });
            }
            see_off(&mut world, &mut self.door, &self.mailboxes, &mut *self.directory, &mut self.counts.server);
            slot.is_dormant = world.has_nothing_to_do && slot.mailbox.is_empty();
            slot.home = Some(world);
        }
    }

    /// Names worlds that hang: their worker is lost until they return, the others play on.
    fn watch_absent_worlds(&mut self, now: Nanos) {
        for slot in self.slots.iter_mut().filter(|slot| slot.home.is_none()) {
            if let Some(running) = slot.reports_hang(now) {
                self.counts.server.hangs += 1;
                log_warn!(
                    WORLD,
                    world = slot.id.0,
                    name = &*slot.name,
                    running_ms = running.as_millis_f64(),
                    "world has not come back from its tick"
                );
            }
        }
    }
}

/// Clients that leave a world go where they want, and its messages to other worlds are delivered.
fn see_off(
    world: &mut GameWorld,
    door: &mut FrontDoor,
    mailboxes: &[Arc<Mailbox>],
    directory: &mut dyn Directory,
    counts: &mut ServerCounts,
) {
    for leaving in world.leaving.drain(..) {
        match leaving {
            Leaving::Travel { to, incoming } => {
                let WorldId(index) = to;
                let Some(mailbox) = mailboxes.get(index as usize).filter(|mailbox| !mailbox.is_closed()) else {
                    log_error!(
                        WORLD,
                        world = world.id.0,
                        to = index,
                        "a client was sent to a world that does not exist any more"
                    );
                    counts.disconnects += 1;
                    if let Some(client_id) = door.left(incoming.client) {
                        directory.left(client_id);
                    }
                    continue;
                };
                door.moved(incoming.client, to);
                mailbox.push(Mail::Incoming(incoming));
            }
            Leaving::Gone { client, reason } => {
                counts.disconnects += 1;
                if let Some(client_id) = door.left(client) {
                    log_debug!(DOOR, client = client_id.0, reason, "client left");
                    directory.left(client_id);
                }
            }
        }
    }
    for (to, message) in world.posts.drain(..) {
        match mailboxes.get(to.0 as usize) {
            Some(mailbox) if mailbox.push_message(message) => {}
            Some(_) => counts.messages_dropped += 1,
            None => {
                log_error!(WORLD, world = world.id.0, to = to.0, "a message was sent to a world that does not exist")
            }
        }
    }
}
