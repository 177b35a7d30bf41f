//! A world: one isolated simulated space, and everything that belongs to it, by value.
//!
//! `tick` is the whole life of a world, top to bottom: mail in, systems, changes collected, packets out. It runs on whichever
//! worker took the world and touches nothing but the world, the worker's own buffers and shared read-only data; so worlds tick
//! in parallel without a lock between them, and the same mail gives the same world on any number of workers.
//!
//! A client is in exactly one world. Its connection (keys, channels, acks) lives here with it, so that opening and sealing
//! packets happens on the workers, and travelling means moving that value to another world's mailbox.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bevy_ecs::prelude::*;
use throng_net::{
    connection::{Channel, EndReason, Received, SendError},
    control::{self, EnterWorld},
    transport::DatagramSender,
};
use throng_platform::{clock::Clock, time::Nanos};
use throng_profiler::{
    Phases, scope, site,
    thread::{enter_world, note_input},
};
use throng_replication::{
    WorldReplication,
    ecs::{Collector, Replicated},
};
use throng_scheduler::Hertz;

use crate::{
    allowance::Verdict,
    client_seat::{ClientSeat, Seats},
    events::{Audience, Events},
    ids::{ClientKey, KindId, WorldId},
    mailbox::{Incoming, Mail, MailBatch, Mailbox},
    system_order::WorldSystems,
    telemetry::{Telemetry, TelemetrySums},
    tick_resources::{
        Arrival, Arrivals, Departures, Inbox, Luggage, MayBeDormant, MessageKind, Order, Outbox, TickInfo,
        WorldMessages,
    },
    world_builder::ConcealFilter,
};

// The two crates that know these bytes must agree on them.
const _: () = assert!(control::SNAPSHOT == throng_replication::SNAPSHOT_KIND);
const _: () = assert!(control::TRUTH == throng_replication::TRUTH_KIND);
const _: () = assert!(control::EVENT == throng_replication::EVENT_KIND);

/// How often each client is sent a ground truth to hold its copy against. (s)
const TRUTH_PERIOD_S: f32 = 0.5;

/// What a tick may take, if no rule says otherwise: half the period of the usual 20 Hz. Ten times what a busy world needs.
const TICK_BUDGET_US: u64 = 25_000;

/// Packets for one client in one tick at most. Snapshots stop earlier, at their byte budget; the reliable channel when it is empty.
const PACKETS_PER_TICK_MAX: usize = 16;

/// Ticks between two looks at Bevy's change ticks; they must be moved along every 2^29 ticks of any system.
const CHANGE_TICK_CHECK_PERIOD: u32 = 4096;

/// What a tick needs that is not the world's own: the worker's buffers and its way out to the network.
pub struct WorkerContext {
    pub sender: Box<dyn DatagramSender>,
    /// For watching only: no world sees it.
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) received: Received,
    pub(crate) mail: MailBatch,
    /// Game counters and changes of gauges of the worlds that ran here since the frame thread last took them.
    pub(crate) telemetry: TelemetrySums,
    pub(crate) snapshot: Vec<u8>,
    pub(crate) truth: Vec<u8>,
    /// Datagrams that the kernel did not take. Added to by all workers, read by the frame thread once a frame; only the sum
    /// matters, so relaxed order is enough.
    pub(crate) send_dropped: Arc<AtomicU64>,
}

impl WorkerContext {
    pub fn new(sender: Box<dyn DatagramSender>, clock: Arc<dyn Clock>, send_dropped: Arc<AtomicU64>) -> Self {
        Self {
            sender,
            clock,
            received: Received::default(),
            mail: MailBatch::default(),
            telemetry: TelemetrySums::default(),
            snapshot: Vec::with_capacity(throng_net::protocol::PAYLOAD_BYTES_MAX),
            truth: Vec::with_capacity(256),
            send_dropped,
        }
    }

    /// Hands what tasks have left in the batch to the kernel.
    pub(crate) fn flush(&mut self) {
        scope!("net.flush");
        let outcome = self.sender.flush();
        if outcome.dropped > 0 {
            self.send_dropped.fetch_add(outcome.dropped as u64, Ordering::Relaxed);
        }
    }
}

/// Resources of a tick that are not empty.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Filled {
    inbox: bool,
    arrivals: bool,
    departures: bool,
    messages: bool,
}

/// What a tick did, for the frame to add up.
#[derive(Debug, Default, Clone, Copy)]
pub struct TickStats {
    pub datagrams_in: u64,
    pub bytes_in: u64,
    pub datagrams_refused: u64,
    pub packets_out: u64,
    pub bytes_out: u64,
    pub packets_lost: u64,
    pub inputs_stale: u64,
    pub inputs_over_allowance: u64,
    pub entity_updates: u64,
    pub snapshot_bytes: u64,
    pub allocations: u64,
    pub poisoned: u64,
}

/// A client that leaves this world, for the frame to act on.
pub(crate) enum Leaving {
    Travel { to: WorldId, incoming: Box<Incoming> },
    Gone { client: ClientKey, reason: &'static str },
}

/// One world. Built by `WorldBuilder`, ticked by a worker, looked after by the frame.
pub struct GameWorld {
    pub id: WorldId,
    pub kind: KindId,
    pub name: Arc<str>,
    pub rate: Hertz,
    pub(crate) ecs: World,
    pub(crate) systems: WorldSystems,
    pub(crate) replication: WorldReplication,
    pub(crate) collector: Collector,
    /// Who may see concealed entities; everybody, if the game does not say.
    pub(crate) conceal: Option<ConcealFilter>,
    pub(crate) seats: Seats,
    pub(crate) mailbox: Arc<Mailbox>,
    /// When a worker began this tick, 0 while none has it. Written by the worker, read by the frame thread to tell a world that
    /// hangs from one that waits for its turn; nothing else follows from it, so relaxed order is enough.
    pub(crate) running_since: Arc<AtomicU64>,
    /// Ticks done.
    pub(crate) tick: u32,
    /// Time of the frame that this tick belongs to; the same for all worlds of the frame.
    pub(crate) now: Nanos,
    pub stats: TickStats,
    pub(crate) leaving: Vec<Leaving>,
    pub(crate) posts: Vec<(WorldId, Luggage)>,
    /// Which resources hold something that the next run of the systems is to see and then to lose.
    pub(crate) filled: Filled,
    /// Changes places with the world's `Outbox` after the systems; empty otherwise.
    pub(crate) outbox: Outbox,
    /// Changes places with the world's `Events` after the systems; empty otherwise.
    pub(crate) events: Events,
    /// Nobody is here and the game allows sleep: unless there is mail, the next tick would do nothing.
    pub(crate) has_nothing_to_do: bool,
    /// Set before a tick after which the hash of the world's state is wanted.
    pub(crate) hash_wanted: bool,
    pub(crate) state_hash: u64,
}

impl GameWorld {
    /// Runs one tick. The order is the contract: what clients sent is seen by this tick's systems, and what the systems changed
    /// goes out with this tick's packets.
    pub(crate) fn tick(&mut self, worker: &mut WorkerContext) {
        let _in_world = enter_world(self.id.0, self.tick);
        scope!("world.tick", budget_us = TICK_BUDGET_US);
        self.stats = TickStats::default();
        let mut phases = Phases::begin(site!("net.open"));
        self.take_mail(worker);
        phases.next(site!("world.systems"));
        self.run_systems(&mut phases);
        phases.next(site!("replication.collect"));
        self.collect_changes();
        phases.next(site!("world.orders"));
        self.carry_out_orders();
        self.greet();
        phases.next(site!("replication.interest"));
        self.replication.refresh_interest();
        phases.next(site!("replication.events"));
        self.deliver_events();
        phases.next(site!("replication.send"));
        self.send_packets(worker, &mut phases);
        phases.next(site!("world.finish"));
        self.let_go(worker);
        self.finish_tick(worker);
    }

    /// Opens datagrams, seats newcomers and hands messages to the game.
    fn take_mail(&mut self, worker: &mut WorkerContext) {
        let WorkerContext { mail, received, .. } = worker;
        self.mailbox.swap(mail);
        let MailBatch { bytes, items, .. } = &mut *mail;
        let mut begin = 0;
        for item in items.drain(..) {
            match item {
                Mail::Datagram { client, end } => {
                    let datagram = &mut bytes[begin..end];
                    begin = end;
                    self.receive(client, datagram, received);
                }
                Mail::Incoming(incoming) => self.seat(*incoming),
                Mail::Message(message) => {
                    self.filled.messages = true;
                    self.ecs.resource_mut::<WorldMessages>().0.push(message);
                }
                Mail::Dismiss { client, reason } => self.dismiss(client, reason),
            }
        }
        mail.clear();
    }

    fn receive(&mut self, client: ClientKey, datagram: &mut [u8], received: &mut Received) {
        // A datagram can be on its way here while its client leaves; UDP may lose it just as well.
        let Some(seat) = self.seats.get_mut(client) else { return };
        self.stats.datagrams_in += 1;
        self.stats.bytes_in += datagram.len() as u64;
        received.clear();
        let outcome = seat.connection.receive(self.now, datagram, received);
        // What a packet acknowledged before it turned out to be malformed is acknowledged.
        apply_delivery(&mut self.replication, &mut self.stats, seat, received);
        if outcome.is_err() {
            self.stats.datagrams_refused += 1;
            return;
        }
        // It opened, so it is the client's own: this is what counts against it.
        let verdict = seat.allowance.spend(datagram.len(), self.now);
        if verdict == Verdict::Dismiss {
            seat.leave("sent more than its allowance");
        }
        self.filled.inbox = true;
        let mut inbox = self.ecs.resource_mut::<Inbox>();
        for message in received.messages() {
            match message {
                (Channel::Unreliable, [control::INPUT, epoch, low, high, bytes @ ..]) => {
                    let number = u16::from_le_bytes([*low, *high]);
                    if *epoch != seat.epoch {
                        self.stats.inputs_stale += 1;
                    } else if verdict != Verdict::Pass {
                        self.stats.inputs_over_allowance += 1;
                    } else {
                        seat.take_input(number);
                        note_input(client.0, number);
                        inbox.push(client, MessageKind::Input { number }, bytes);
                    }
                }
                (Channel::Reliable, bytes @ [kind, ..]) if *kind >= control::GAME_MIN => {
                    inbox.push(client, MessageKind::Reliable, bytes);
                }
                _ => self.stats.datagrams_refused += 1,
            }
        }
    }

    fn seat(&mut self, mut incoming: Incoming) {
        let view = self.replication.add_client(incoming.epoch);
        let arrival = Arrival {
            client: incoming.client,
            client_id: incoming.client_id,
            user_data: incoming.user_data.clone(),
            luggage: incoming.luggage.take(),
        };
        self.seats.add(ClientSeat::new(incoming, view));
        self.filled.arrivals = true;
        self.ecs.resource_mut::<Arrivals>().0.push(arrival);
    }

    fn dismiss(&mut self, client: ClientKey, reason: &'static str) {
        if let Some(seat) = self.seats.get_mut(client) {
            seat.leave(reason);
        }
    }

    fn run_systems(&mut self, phases: &mut Phases) {
        let mut info = self.ecs.resource_mut::<TickInfo>();
        info.tick = self.tick;
        self.systems.run(&mut self.ecs, phases);
        phases.next(site!("world.systems"));
        if self.tick.is_multiple_of(CHANGE_TICK_CHECK_PERIOD) {
            self.systems.check_change_ticks(&mut self.ecs);
        }
        // Finding a resource costs a few cache misses: only those that were filled are emptied.
        let filled = std::mem::take(&mut self.filled);
        if filled.inbox {
            self.ecs.resource_mut::<Inbox>().clear();
        }
        if filled.arrivals {
            self.ecs.resource_mut::<Arrivals>().0.clear();
        }
        if filled.departures {
            self.ecs.resource_mut::<Departures>().0.clear();
        }
        if filled.messages {
            self.ecs.resource_mut::<WorldMessages>().0.clear();
        }
    }

    /// Walks the change marks of every replicated column once and encodes what changed, once.
    fn collect_changes(&mut self) {
        self.replication.begin_tick(self.tick);
        self.collector.collect(&mut self.ecs, &mut self.replication);
        self.quarantine_poisoned();
        self.ecs.clear_trackers();
    }

    /// An entity with a value that is no finite number is taken out of replication in the tick that made it: clients see it go. The
    /// entity stays in the world, where its game may find and mend it.
    fn quarantine_poisoned(&mut self) {
        let Self { replication, collector, ecs, .. } = self;
        for &id in replication.poisoned() {
            let Some(entity) = collector.entity_of(id) else { continue };
            if let Ok(mut entity) = ecs.get_entity_mut(entity) {
                entity.remove::<Replicated>();
            }
        }
    }

    /// Does what the systems asked for, in their order.
    fn carry_out_orders(&mut self) {
        let mut outbox = std::mem::take(&mut self.outbox);
        std::mem::swap(&mut *self.ecs.resource_mut::<Outbox>(), &mut outbox);
        let mut begin = 0;
        for order in outbox.orders.drain(..) {
            match order {
                Order::Reliable { client, end } => {
                    let message = &outbox.bytes[begin..end];
                    begin = end;
                    if let Some(seat) = self.seats.get_mut(client)
                        && seat.connection.send_reliable(message).is_err()
                    {
                        seat.leave("its reliable messages pile up");
                    }
                }
                Order::Unreliable { client, end } => {
                    let message = &outbox.bytes[begin..end];
                    begin = end;
                    if let Some(seat) = self.seats.get_mut(client) {
                        // A full queue drops its oldest, counted by the connection.
                        let _ = seat.connection.send_unreliable(message);
                    }
                }
                Order::Player { client, entity } => {
                    if let Some(seat) = self.seats.get_mut(client) {
                        seat.player = Some(entity);
                        seat.greeted = false;
                    }
                }
                Order::Team { client, team } => {
                    if let Some(seat) = self.seats.get_mut(client) {
                        seat.team = team;
                    }
                }
                Order::Teleported { entity: _ } => {}
                Order::Travel { client, to, luggage } => self.seats.mark_travel(client, to, luggage),
                Order::Disconnect { client, reason } => self.dismiss(client, reason),
                Order::Post { to, message } => self.posts.push((to, message)),
            }
        }
        outbox.bytes.clear();
        self.outbox = outbox;
    }

    /// Tells clients which world they are in and which entity is theirs, when that is new.
    fn greet(&mut self) {
        for seat in self.seats.iter_mut().filter(|seat| !seat.greeted) {
            let own = seat.player.and_then(|entity| self.collector.net_id(&self.ecs, entity));
            self.replication.set_own(seat.view, own);
            let message = EnterWorld {
                epoch: seat.epoch,
                tick_hz: self.rate.0 as u8,
                tick: self.tick,
                world: self.id.0,
                own_entity: own.map(|id| (id.slot, id.generation)),
                name: &self.name,
            };
            let mut bytes = [0; control::ENTER_WORLD_BYTES_MAX];
            let length = message.encode(&mut bytes);
            seat.greeted = true;
            if matches!(seat.connection.send_reliable(&bytes[..length]), Err(SendError::Full)) {
                seat.leave("its reliable messages pile up");
            }
        }
    }

    /// Puts what was told this tick into the queues of those who are to hear it.
    fn deliver_events(&mut self) {
        let Self { ecs, seats, replication, collector, events, .. } = self;
        let mut told = ecs.resource_mut::<Events>();
        if told.is_empty() {
            return;
        }
        std::mem::swap(&mut *told, events);
        let schema = replication.schema().clone();
        for (said, message) in events.iter_mut() {
            let kind = &schema.events()[said.kind.index()];
            let about = match said.audience {
                Audience::Around(entity) => match collector.net_id(ecs, entity) {
                    Some(id) => Some(id),
                    None => continue,
                },
                _ => None,
            };
            let place = match said.audience {
                Audience::Near(place) => Some(place),
                _ => about.and_then(|id| replication.place_of(id)),
            };
            for seat in seats.iter_mut() {
                let is_near = || match (place, kind.range_m) {
                    (Some(place), Some(range_m)) => replication.view_place(seat.view).is_some_and(|from| {
                        let (x, z) = (place[0] - from[0], place[1] - from[1]);
                        x * x + z * z <= range_m * range_m
                    }),
                    _ => true,
                };
                let hears = match said.audience {
                    Audience::Everyone => true,
                    Audience::Near(_) => is_near(),
                    Audience::Around(_) => is_near() && about.is_some_and(|id| replication.hears(seat.view, id)),
                    Audience::Team(team) => seat.team == Some(team),
                    Audience::Client(client) => seat.client == client,
                };
                if !hears {
                    continue;
                }
                message[1] = seat.epoch;
                if !kind.reliable {
                    // A full queue drops its oldest, counted by the connection.
                    let _ = seat.connection.send_unreliable(message);
                } else if seat.connection.send_reliable(message).is_err() {
                    seat.leave("its reliable messages pile up");
                }
            }
        }
        events.clear();
    }

    /// Writes each client's snapshot and seals it, straight into the worker's send batch.
    fn send_packets(&mut self, worker: &mut WorkerContext, phases: &mut Phases) {
        let WorkerContext { sender, received, snapshot, truth, .. } = worker;
        let truth_period = ((TRUTH_PERIOD_S * f32::from(self.rate.0)) as u32).max(1);
        for seat in self.seats.iter_mut() {
            received.clear();
            seat.connection.update(self.now, received);
            apply_delivery(&mut self.replication, &mut self.stats, seat, received);
            if let Some(reason) = seat.connection.ended(self.now) {
                seat.leave(end_reason(reason));
                continue;
            }
            let bytes_before = seat.connection.stats().bytes_sent;
            if (self.tick.wrapping_add(seat.client.0)).is_multiple_of(truth_period) {
                truth.clear();
                if self.collector.write_truth(&self.ecs, &mut self.replication, seat.view, truth) {
                    // A full queue drops its oldest truth: one check less, never a wrong one.
                    let _ = seat.connection.send_unreliable(truth);
                }
            }
            for _ in 0..PACKETS_PER_TICK_MAX {
                snapshot.resize(seat.connection.room(self.now), 0);
                let length = self.replication.write_snapshot(seat.view, seat.last_input(), snapshot);
                if length == 0 && !seat.connection.wants_packet(self.now) {
                    break;
                }
                phases.next(site!("net.seal"));
                let packet = seat.connection.send_packet(self.now, &snapshot[..length], &mut **sender);
                if length > 0 {
                    self.replication.sent(seat.view, packet.0);
                    self.stats.snapshot_bytes += length as u64;
                }
                self.stats.packets_out += 1;
                phases.next(site!("replication.send"));
            }
            self.stats.bytes_out += seat.connection.stats().bytes_sent - bytes_before;
        }
    }

    /// Hands leaving clients to the frame: travellers with all that is theirs, others closed.
    fn let_go(&mut self, worker: &mut WorkerContext) {
        while let Some(mut seat) = self.seats.take_leaving() {
            self.replication.remove_client(seat.view);
            let client = seat.client;
            match seat.leaving.take() {
                Some(crate::client_seat::Leave::Travel { to, luggage }) => {
                    let incoming = seat.into_incoming(luggage);
                    self.leaving.push(Leaving::Travel { to, incoming: Box::new(incoming) });
                }
                Some(crate::client_seat::Leave::Gone { reason }) => {
                    seat.connection.close(self.now, &mut *worker.sender);
                    self.filled.departures = true;
                    self.ecs.resource_mut::<Departures>().0.push(client);
                    self.leaving.push(Leaving::Gone { client, reason });
                }
                None => {}
            }
        }
    }

    fn finish_tick(&mut self, worker: &mut WorkerContext) {
        let replicated = self.replication.take_stats();
        self.stats.entity_updates = replicated.entity_updates;
        self.stats.poisoned = replicated.poisoned;
        if self.hash_wanted {
            self.state_hash = self.collector.hash_state(&mut self.ecs, self.tick);
        }
        // Looked at here, where the world is in the worker's cache: the frame thread would wait for memory.
        self.ecs.resource_mut::<Telemetry>().drain_into(&mut worker.telemetry);
        self.has_nothing_to_do =
            self.seats.is_empty() && self.ecs.resource::<MayBeDormant>().0 && !self.filled.departures;
        self.tick = self.tick.wrapping_add(1);
    }

    pub fn clients_count(&self) -> usize {
        self.seats.len()
    }

    /// The world's entities and resources, for tests and tools that look in between ticks.
    pub fn ecs_mut(&mut self) -> &mut World {
        &mut self.ecs
    }
}

fn end_reason(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Disconnected => "disconnected by the client",
        EndReason::TimedOut => "timed out",
        EndReason::Refused(_) => "broke the rules of the channels",
    }
}

/// Tells replication which of its packets arrived and which did not.
fn apply_delivery(replication: &mut WorldReplication, stats: &mut TickStats, seat: &ClientSeat, received: &Received) {
    received.acked.iter().for_each(|packet| replication.acked(seat.view, packet.0));
    received.lost.iter().for_each(|packet| replication.lost(seat.view, packet.0));
    stats.packets_lost += received.lost.len() as u64;
}
