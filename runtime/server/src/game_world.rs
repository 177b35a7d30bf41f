//! A world: one isolated simulated space, and everything that belongs to it, by value.
//!
//! `tick` is the whole life of a world, top to bottom: mail in, systems, changes collected, orders carried out, conceal asked, events
//! delivered, truths written, packets out. It runs on whichever worker took the world and touches nothing but the world, the worker's own
//! buffers and shared read-only data; so worlds tick in parallel without a lock between them. The clients of a crowded world are opened and
//! told in lots, on idle workers too (`clients_part`); all else stays on the one worker. The same mail gives the same world and the same
//! bytes on any number of workers.
//!
//! A client is in exactly one world. Its connection (keys, channels, acks) lives here with it, so that opening and sealing
//! packets happens on the workers, and travelling means moving that value to another world's mailbox.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bevy_ecs::prelude::*;
use throng_metrics::{
    Counters, counters,
    game::{GameSums, WorldGauges, begin_tick},
};
use throng_net::{
    connection::{Received, SendError},
    control::{self, EnterWorld},
    transport::DatagramSender,
};
use throng_platform::{clock::Clock, time::Nanos};
use throng_profiler::{Phases, scope, site, thread::enter_world};
use throng_replication::{
    ReplicationRules, ReplicationStats, ResolvedRules, ViewId, WorldReplication,
    ecs::{Collector, Replicated},
    traffic::{Counts, Overhead},
};
use throng_scheduler::{Crew, Hertz};

use crate::{
    client_seat::{ClientSeat, Seats},
    clients_part::{CLIENTS_PER_LOT_MIN, ClientsPart, Work, open, take_opened, tell_all},
    deliver::Delivery,
    events::Events,
    ids::{ClientKey, KindId, WorldId},
    mailbox::{Incoming, Mail, MailBatch, Mailbox},
    packet_report::{PacketSums, Reported},
    system_order::WorldSystems,
    tick_resources::{
        Arrival, Arrivals, Departures, Inbox, Luggage, MayBeDormant, Order, Outbox, TickInfo, WorldMessages,
    },
    world_builder::{ConcealFilter, Viewer},
};

// The two crates that know these bytes must agree on them.
const _: () = assert!(control::SNAPSHOT == throng_replication::SNAPSHOT_KIND);
const _: () = assert!(control::TRUTH == throng_replication::TRUTH_KIND);
const _: () = assert!(control::EVENT == throng_replication::EVENT_KIND);

/// How often each client is sent a ground truth to hold its copy against. (s)
const TRUTH_PERIOD_S: f32 = 0.5;

/// What a tick may take, if no rule says otherwise: half the period of the usual 20 Hz. Ten times what a busy world needs.
const TICK_BUDGET_US: u64 = 25_000;

/// Lots that a world's clients are cut into at most: two for each of eight workers, so that one that comes late finds something to do.
pub(crate) const LOTS_MAX: usize = 16;

/// Ticks between two looks at Bevy's change ticks; they must be moved along every 2^29 ticks of any system.
const CHANGE_TICK_CHECK_PERIOD: u32 = 4096;

/// What a tick needs that is not the world's own: the worker's buffers and its way out to the network.
pub struct WorkerContext {
    pub sender: Box<dyn DatagramSender>,
    /// For watching only: no world sees it.
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) received: Received,
    pub(crate) mail: MailBatch,
    /// What the games of the worlds that ran here counted since the frame thread last took it.
    pub(crate) game: GameSums,
    pub(crate) snapshot: Vec<u8>,
    /// What the worlds that ran here since the frame thread last took it have sent, by kind and cause.
    pub(crate) packets: PacketSums,
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
            game: GameSums::default(),
            snapshot: Vec::with_capacity(throng_net::protocol::PAYLOAD_BYTES_MAX),
            packets: PacketSums::default(),
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

counters! {
    /// What a tick did, for the frame to add up.
    pub struct TickStats {
        Sum datagrams_in: "world.datagrams_in", "datagrams",
            "Datagrams that worlds found in their mailboxes, still sealed.",
            "Follows players. Much less than `net.packets_in`: the door holds something back; see \
             `net.refused_by_gate` and its neighbours.";
        Sum bytes_in: "world.bytes_in", "bytes",
            "Bytes of those datagrams.",
            "As `world.datagrams_in`.";
        Sum datagrams_refused: "net.refused_by_connection", "datagrams",
            "Datagrams under a client's address that did not open with its key, or held what it may not send.",
            "Few are late or doubled by the network. Many: somebody writes a player's address on datagrams of their \
             own, or a client is broken.";
        Sum packets_out: "net.packets_out", "packets",
            "Packets sent to connected clients.",
            "Follows players and tick rates.";
        Sum bytes_out: "net.bytes_out", "bytes",
            "Bytes of packets sent to connected clients.",
            "The console's `packets` says what they hold. Lower rates and ranges in the rules file, or the budget in \
             the settings.";
        Sum packets_lost: "net.packets_lost", "packets",
            "Packets to clients that were reported lost.",
            "A few per cent are usual on players' lines. If all clients lose at once, look at this host's network and \
             at `net.send_dropped`.";
        Sum inputs_stale: "net.inputs_stale", "inputs",
            "Inputs that a client sent for a world that it had left.",
            "Follows travels: one or two for each.";
        Sum inputs_over_allowance: "net.inputs_over_allowance", "inputs",
            "Inputs that were dropped because their client sends more than its allowance.",
            "A client that sends too often. It is dismissed if it goes on; raise the allowance in the settings if \
             honest ones are.";
        Sum allocations: "world.allocations", "allocations",
            "Allocations in ticks of worlds, on all workers.",
            "A steady tick makes none. A capture with memory on names the scope that allocates.";
        Max allocations_in_tick: "world.allocations_in_tick", "allocations",
            "Most allocations in one tick of a world.",
            "As `world.allocations`; a spike is a world that starts, or a crowd that comes at once.";
        Sum events: "replication.events", "events",
            "Events told by games.",
            "Follows what happens in the game.";
        Sum event_copies: "replication.event_copies", "messages",
            "Copies of events that went to clients: one for each that heard.",
            "Grows with the square of a crowd. Lower the event's range in the rules file.";
        Sum events_throttled: "replication.events_throttled", "events",
            "Events that came faster than their rule allows, and were told to nobody.",
            "Rules at work. If players miss something, raise the event's rate in the rules file.";
    }
    with {
        /// What replication did in the tick.
        replication: ReplicationStats,
    }
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
    /// The game's gauges as this world last set them.
    pub(crate) gauges: WorldGauges,
    pub(crate) leaving: Vec<Leaving>,
    /// Empty between ticks; kept for its memory.
    pub(crate) leavers: Vec<ClientSeat>,
    pub(crate) posts: Vec<(WorldId, Luggage)>,
    /// Which resources hold something that the next run of the systems is to see and then to lose.
    pub(crate) filled: Filled,
    /// Changes places with the world's `Outbox` after the systems; empty otherwise.
    pub(crate) outbox: Outbox,
    /// Changes places with the world's `Events` after the systems; empty otherwise.
    pub(crate) events: Events,
    pub(crate) delivery: Delivery,
    /// How far and how often what is heard here.
    pub(crate) rules: Box<ResolvedRules>,
    /// Lots of clients, empty between their uses; kept for their memory.
    pub(crate) parts: Vec<ClientsPart>,
    pub(crate) spare_parts: Vec<ClientsPart>,
    pub(crate) lent_views: Vec<ViewId>,
    /// Packets and bytes that went out since they were last reported.
    pub(crate) sent: Counts,
    pub(crate) truth: Vec<u8>,
    /// Nobody is here and the game allows sleep: unless there is mail, the next tick would do nothing.
    pub(crate) has_nothing_to_do: bool,
    /// Set before a tick after which the hash of the world's state is wanted.
    pub(crate) hash_wanted: bool,
    pub(crate) state_hash: u64,
}

impl GameWorld {
    /// Runs one tick. The order is the contract: what clients sent is seen by this tick's systems, and what the systems changed
    /// goes out with this tick's packets.
    pub(crate) fn tick(&mut self, worker: &mut WorkerContext, crew: &Crew<GameWorld>) {
        let _in_world = enter_world(self.id.0, self.tick);
        scope!("world.tick", budget_us = TICK_BUDGET_US);
        self.stats = TickStats::default();
        let counting = begin_tick();
        let mut phases = Phases::begin(site!("net.open"));
        self.take_mail(worker, crew);
        phases.next(site!("world.systems"));
        self.run_systems(&mut phases);
        phases.next(site!("replication.collect"));
        self.collect_changes();
        phases.next(site!("world.orders"));
        self.carry_out_orders();
        self.greet();
        phases.next(site!("replication.conceal"));
        self.conceal();
        phases.next(site!("replication.events"));
        self.deliver_events();
        phases.next(site!("replication.truths"));
        self.write_truths();
        phases.next(site!("replication.interest"));
        self.tell_clients(worker, crew, &mut phases);
        phases.next(site!("world.finish"));
        self.let_go(worker);
        self.finish_tick(worker);
        counting.end(&mut self.gauges, &mut worker.game);
    }

    /// Opens datagrams, seats newcomers and hands messages to the game. Who comes and goes is taken in before the first datagram is opened.
    fn take_mail(&mut self, worker: &mut WorkerContext, crew: &Crew<GameWorld>) {
        let mut mail = std::mem::take(&mut worker.mail);
        self.mailbox.swap(&mut mail);
        let MailBatch { bytes, items, .. } = &mut mail;
        let mut datagrams_count = 0;
        items.retain_mut(|item| match item {
            Mail::Datagram { .. } => {
                datagrams_count += 1;
                true
            }
            item => {
                self.take_item(std::mem::replace(item, Mail::Datagram { client: ClientKey(0), end: 0 }));
                false
            }
        });
        let letters = items.drain(..).filter_map(|item| match item {
            Mail::Datagram { client, end } => Some((client, end)),
            _ => None,
        });
        if self.lots_count(datagrams_count, crew) > 1 {
            self.open_in_lots(letters, bytes, worker, crew);
        } else {
            self.open_here(letters, bytes, &mut worker.received);
        }
        mail.clear();
        worker.mail = mail;
    }

    fn take_item(&mut self, item: Mail) {
        match item {
            Mail::Datagram { .. } => {}
            Mail::Incoming(incoming) => self.seat(*incoming),
            Mail::Message(message) => {
                self.filled.messages = true;
                self.ecs.resource_mut::<WorldMessages>().0.push(message);
            }
            Mail::Dismiss { client, reason } => self.dismiss(client, reason),
            Mail::Rules(rules) => self.set_rules(&rules),
        }
    }

    /// Puts rules into force, as of this tick.
    pub(crate) fn set_rules(&mut self, rules: &ReplicationRules) {
        let ticks_per_s = f32::from(self.rate.0);
        let resolved = rules.resolved(ticks_per_s);
        // New rules make every copy current once; those that change nothing here must not.
        if *self.rules != resolved {
            *self.rules = resolved;
            self.replication.set_rules(&self.rules, ticks_per_s);
        }
    }

    fn open_here(
        &mut self,
        letters: impl Iterator<Item = (ClientKey, usize)>,
        bytes: &mut [u8],
        received: &mut Received,
    ) {
        let mut begin = 0;
        for (client, end) in letters {
            let datagram = &mut bytes[begin..end];
            begin = end;
            // A datagram can be on its way here while its client leaves; UDP may lose it just as well.
            let Some(seat) = self.seats.get_mut(client) else { continue };
            self.filled.inbox = true;
            let mut inbox = self.ecs.resource_mut::<Inbox>();
            open(seat, self.now, datagram, received, &mut self.stats, |client, kind, bytes| {
                inbox.push(client, kind, bytes)
            });
        }
    }

    fn open_in_lots(
        &mut self,
        letters: impl Iterator<Item = (ClientKey, usize)>,
        bytes: &[u8],
        worker: &mut WorkerContext,
        crew: &Crew<GameWorld>,
    ) {
        let per_lot = self.lend_seats(Work::Open, crew);
        let mut begin = 0;
        for (number, (client, end)) in (0..).zip(letters) {
            if let Some(seat) = self.seats.index_of(client) {
                self.parts[seat / per_lot].add_letter(number, seat % per_lot, &bytes[begin..end]);
            }
            begin = end;
        }
        crew.share(&mut self.parts, worker);
        self.filled.inbox = true;
        let mut inbox = self.ecs.resource_mut::<Inbox>();
        take_opened(&mut self.parts, |client, kind, bytes| inbox.push(client, kind, bytes));
        self.take_seats_back();
    }

    /// Into how many lots the clients are cut, if so many of them need work.
    fn lots_count(&self, clients_count: usize, crew: &Crew<GameWorld>) -> usize {
        let lots_max = clients_count.min(self.seats.len()) / CLIENTS_PER_LOT_MIN;
        if lots_max < 2 { 1 } else { lots_max.min(2 * (crew.helpers_count() + 1)).min(LOTS_MAX) }
    }

    /// Cuts all clients into lots and returns how many are in each but the last one.
    fn lend_seats(&mut self, work: Work, crew: &Crew<GameWorld>) -> usize {
        let count = self.seats.len();
        let per_lot = count.div_ceil(self.lots_count(count, crew));
        for lot in (0..count.div_ceil(per_lot)).rev() {
            let mut part = self.spare_parts.pop().unwrap_or_else(|| ClientsPart::new(self.id));
            (part.work, part.tick, part.now) = (work, self.tick, self.now);
            self.seats.lend(count.min((lot + 1) * per_lot) - lot * per_lot, &mut part.seats);
            self.parts.push(part);
        }
        self.parts.reverse();
        per_lot
    }

    fn take_seats_back(&mut self) {
        for mut part in self.parts.drain(..) {
            self.seats.give_back(&mut part.seats);
            self.stats.merge(&part.stats);
            self.spare_parts.push(part);
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
        let pace = (f32::from(self.rate.0), self.replication.settings().budget_bytes_per_tick);
        self.seats.add(ClientSeat::new(incoming, view, pace));
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
                    if let Some(seat) = self.seats.get_mut(client) {
                        match seat.connection.send_reliable(message) {
                            Ok(_) => book_message(&mut self.replication, message),
                            Err(_) => seat.leave("its reliable messages pile up"),
                        }
                    }
                }
                Order::Unreliable { client, end } => {
                    let message = &outbox.bytes[begin..end];
                    begin = end;
                    if let Some(seat) = self.seats.get_mut(client) {
                        // A full queue drops its oldest, counted by the connection.
                        if seat.connection.send_unreliable(message).is_ok() {
                            book_message(&mut self.replication, message);
                        }
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
                        self.replication.set_view_team(seat.view, team);
                    }
                }
                Order::Teleported { entity } => {
                    if let Some(id) = self.collector.net_id(&self.ecs, entity) {
                        self.replication.set_urgent(id);
                    }
                }
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

    /// Asks the game's filter who may see what is concealed.
    fn conceal(&mut self) {
        let Self { conceal, replication, seats, collector, ecs, .. } = self;
        if !replication.has_concealed() {
            return;
        }
        seats.index_views();
        replication.conceal(&mut |view, id| {
            let (Some(seat), Some(entity)) = (seats.of_view(view), collector.entity_of(id)) else { return false };
            let viewer = Viewer { client: seat.client, player: seat.player, team: seat.team };
            conceal.as_ref().is_none_or(|filter| filter(ecs, viewer, entity))
        });
    }

    /// Tells some of the clients, each in its turn, what one entity really looks like. First it is settled what is relevant to them in this
    /// tick: else a truth would be about what has just gone out of sight.
    fn write_truths(&mut self) {
        let truth_period = ((TRUTH_PERIOD_S * f32::from(self.rate.0)) as u32).max(1);
        let Self { seats, collector, replication, ecs, truth, tick, .. } = self;
        for seat in seats.iter_mut().filter(|seat| tick.wrapping_add(seat.client.0).is_multiple_of(truth_period)) {
            truth.clear();
            replication.refresh(seat.view);
            if collector.write_truth(ecs, replication, seat.view, truth) {
                // A full queue drops its oldest truth: one check less, never a wrong one.
                let _ = seat.connection.send_unreliable(truth);
            }
        }
    }

    /// Brings every client up to date, here or on all workers that have nothing else to do.
    fn tell_clients(&mut self, worker: &mut WorkerContext, crew: &Crew<GameWorld>, phases: &mut Phases) {
        if self.lots_count(self.seats.len(), crew) < 2 {
            self.replication.refresh_interest();
            phases.next(site!("replication.send"));
            let seats = self.seats.as_mut_slice();
            tell_all(seats, &mut self.replication, self.now, &mut self.stats, worker, phases);
            return;
        }
        self.lend_seats(Work::Tell, crew);
        let Self { parts, replication, lent_views, .. } = self;
        for part in parts {
            lent_views.clear();
            lent_views.extend(part.seats.iter().map(|seat| seat.view));
            part.share = replication.lend(lent_views);
        }
        phases.next(site!("replication.share"));
        crew.share(&mut self.parts, worker);
        for part in &mut self.parts {
            self.replication.give_back(std::mem::take(&mut part.share));
        }
        self.take_seats_back();
    }

    /// Hands leaving clients to the frame: travellers with all that is theirs, others closed.
    fn let_go(&mut self, worker: &mut WorkerContext) {
        let mut leaving = std::mem::take(&mut self.leavers);
        self.seats.take_leaving(&mut leaving);
        for mut seat in leaving.drain(..) {
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
        self.leavers = leaving;
    }

    fn finish_tick(&mut self, worker: &mut WorkerContext) {
        self.stats.replication.merge(&self.replication.take_stats());
        if self.hash_wanted {
            self.state_hash = self.collector.hash_state(&mut self.ecs, self.tick);
        }
        self.sent.packets += self.stats.packets_out;
        self.sent.bytes += self.stats.bytes_out;
        // Once a second, and not all worlds in the same tick.
        if self.tick.wrapping_add(self.id.0).is_multiple_of(u32::from(self.rate.0)) {
            self.give_up_traffic(&mut worker.packets);
        }
        self.has_nothing_to_do =
            self.seats.is_empty() && self.ecs.resource::<MayBeDormant>().0 && !self.filled.departures;
        self.tick = self.tick.wrapping_add(1);
    }

    /// Hands over what was sent since the last time, by kind and cause.
    fn give_up_traffic(&mut self, packets: &mut PacketSums) {
        let sent = std::mem::take(&mut self.sent);
        if sent == Counts::default() {
            return;
        }
        let world = Reported::of(self.id, self.kind);
        let schema = self.replication.schema().clone();
        let traffic = self.replication.traffic_mut();
        // What nobody counted by its kind is the transport's: acks, sealing, what was sent again.
        let around = Counts { bytes: sent.bytes.saturating_sub(traffic.total().bytes), ..sent };
        traffic.add_overhead(Overhead::Transport, around);
        traffic.take(&schema, |row| packets.add(world, row));
    }

    pub fn clients_count(&self) -> usize {
        self.seats.len()
    }

    /// The world's entities and resources, for tests and tools that look in between ticks.
    pub fn ecs_mut(&mut self) -> &mut World {
        &mut self.ecs
    }
}

/// Counts a message of the game's own for the packet report.
fn book_message(replication: &mut WorldReplication, message: &[u8]) {
    let counts = Counts { packets: 1, bytes: message.len() as u64, updates: 1 };
    replication.traffic_mut().add_overhead(Overhead::Message, counts);
}
