//! A world: one isolated simulated space, and everything that belongs to it, by value.
//!
//! `tick` is the whole life of a world, top to bottom: mail in, systems, changes collected, orders carried out, the
//! visibility filter asked, events delivered, audit samples written, packets out. It does no input or output of its
//! own: mail, time and a way out come in, a report goes out. It touches nothing but the world, the worker's own buffers
//! and shared read-only data; so worlds tick in parallel without a lock between them. Clients are opened and told in
//! batches, on idle workers too (`client_batch`); all else stays on the one worker. The same mail gives the same world
//! and the same bytes on any number of workers.
//!
//! A client is in exactly one world. All of it lives here while it is here (`client`), so that opening and sealing
//! packets happens on the workers, and travelling means moving that value to another world's mail.

mod footprint;
mod orders;

use std::sync::Arc;

use bevy_ecs::prelude::*;
use throng_metrics::{
    Counters,
    game::{WorldGauges, begin_tick},
};
use throng_net::control::{self, SchemaHash};
use throng_pack::PackError;
use throng_platform::{prefetch::Footprint, time::Nanos};
use throng_profiler::{KindNumber, Phases, log_category, log_warn, site, thread::enter_world};
use throng_replication::{
    ReplicationRules, ResolvedRules, View, WorldReplication,
    ecs::{Collector, Replicated},
    rules::InterestRadii,
    traffic::TrafficRow,
};
use throng_scheduler::Hertz;

use crate::{
    client::{Client, Leave},
    client_batch::{ClientBatch, SealedDatagram, Stage, Work},
    client_cost::ClientCost,
    clients::Clients,
    declared::Declared,
    deliver::{Delivery, Scene},
    events::Events,
    ids::{ClientKey, WorldId, WorldKindId},
    inbox::{Inbox, MessageKind},
    mail::{Mail, MailItem},
    report::{Leaving, TickReport},
    scratch::{Lent, Scratch},
    sent::Sent,
    testing::Told,
    tick_resources::{Arrival, Arrivals, Departures, MayBeDormant, Outbox, ScanRange, TickInfo, WorldMessages},
    tick_time::TickTime,
    transfer::{Transfer, TransferCheck},
    worker::{ForkJoin, Worker},
    world_builder::{Viewer, VisibilityFilter},
    world_systems::WorldSystems,
};

// The two crates that know these bytes must agree on them.
const _: () = assert!(control::SNAPSHOT == throng_replication::SNAPSHOT_KIND);
const _: () = assert!(control::AUDIT_SAMPLE == throng_replication::AUDIT_SAMPLE_KIND);
const _: () = assert!(control::EVENT == throng_replication::EVENT_KIND);
const _: () = assert!(control::REQUEST == throng_replication::REQUEST_KIND);
const _: () = assert!(control::MESSAGE == throng_replication::MESSAGE_KIND);

log_category!(
    /// What a game's components hold that cannot be sent as it is.
    VALUES = "replication.values"
);

/// How often a client that is to have them is sent an audit sample to hold its copy against. (s)
const AUDIT_PERIOD_S: f32 = 0.5;

/// What a tick may take, if no rule says otherwise: half the period of the usual 20 Hz. Ten times what a busy world
/// needs.
const TICK_BUDGET_US: u64 = 25_000;

/// Ticks between two looks at Bevy's change ticks; they must be moved along every 2^29 ticks of any system.
const CHANGE_TICK_CHECK_PERIOD: u32 = 4096;

/// Resources of a tick that are not empty.
#[derive(Debug, Default, Clone, Copy)]
struct Filled {
    inbox: bool,
    arrivals: bool,
    departures: bool,
    messages: bool,
}

/// What a world is put together from.
pub(crate) struct Parts {
    pub id: WorldId,
    pub kind: WorldKindId,
    pub recorded_kind: KindNumber,
    pub name: Arc<str>,
    pub rate: Hertz,
    pub ecs: World,
    pub systems: WorldSystems,
    pub time: Option<TickTime>,
    pub replication: WorldReplication,
    pub collector: Collector,
    pub declared: Arc<Declared>,
    pub visibility_filter: Option<VisibilityFilter>,
    pub transfer_check: Option<TransferCheck>,
}

/// One world. Built by [`Kind`](crate::world_builder::Kind), ticked by whoever hosts it.
pub struct GameWorld {
    id: WorldId,
    kind: WorldKindId,
    /// The kind as the recorder numbers it.
    recorded_kind: KindNumber,
    name: Arc<str>,
    rate: Hertz,
    ecs: World,
    systems: WorldSystems,
    /// Bevy's `Time`, if the game uses it.
    time: Option<TickTime>,
    /// What there is to tell. Shared with batches while they are told, the world's alone at all other times.
    replication: Arc<WorldReplication>,
    collector: Collector,
    /// What clients may say here.
    declared: Arc<Declared>,
    /// Who may see visibility-filtered entities; everybody, if the game does not say.
    visibility_filter: Option<VisibilityFilter>,
    /// What travellers must carry to come in; anything, if the game does not say.
    transfer_check: Option<TransferCheck>,
    clients: Clients,
    /// How far and how often what is heard here.
    rules: Box<ResolvedRules>,
    delivery: Delivery,
    sent: Sent,
    /// Ticks done. None comes twice: clients take what is older than the newest tick for stale, and games wait for
    /// ticks, so both would stand still. They are enough for 6.8 years at 20 Hz, 388 days at 128 Hz and 195 days at
    /// 255 Hz; a world that has used them up panics and ends as one, with its clients told.
    tick: u32,
    /// The time of this tick.
    now: Nanos,
    /// Which resources hold something that the next run of the systems is to see and then to lose.
    filled: Filled,
    /// What clients without a connection were told, in a test.
    told: Option<Box<Told>>,
    /// Whether the hash of the world's state is wanted after each tick.
    hash_wanted: bool,
    /// The game's gauges as this world last set them.
    gauges: WorldGauges,
    report: TickReport,
    /// What every tick reads, while the world is small.
    footprint: Footprint,
    /// The worker's, in a tick.
    scratch: Lent,
}

impl GameWorld {
    /// A world without clients, before its first tick.
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            id,
            kind,
            recorded_kind,
            name,
            rate,
            mut ecs,
            systems,
            time,
            replication,
            collector,
            declared,
            visibility_filter,
            transfer_check,
        } = parts;
        let schema = replication.schema().clone();
        // Other orders wait for the first tick; what is said of that tick must be known before.
        let next_tick_hint = std::mem::take(&mut ecs.resource_mut::<Outbox>().next_tick_hint);
        Self {
            id,
            kind,
            recorded_kind,
            name,
            rate,
            ecs,
            systems,
            time,
            replication: Arc::new(replication),
            collector,
            declared,
            visibility_filter,
            transfer_check,
            clients: Clients::default(),
            rules: Box::default(),
            delivery: Delivery::default(),
            scratch: Lent::default(),
            footprint: Footprint::default(),
            sent: Sent::new(schema),
            tick: 0,
            now: Nanos::ZERO,
            filled: Filled::default(),
            told: None,
            hash_wanted: false,
            gauges: WorldGauges::default(),
            report: TickReport { next_tick_hint, ..TickReport::default() },
        }
    }

    /// Runs one tick at `now`. The order is the contract: what clients sent is seen by this tick's systems, and what
    /// the systems changed goes out with this tick's packets. `mail` is emptied; packets go to the worker's sender. The
    /// host empties the lists of the report.
    pub fn tick<H: ForkJoin>(
        &mut self,
        now: Nanos,
        mail: &mut Mail,
        worker: &mut H::Worker,
        helpers: &H,
    ) -> &mut TickReport {
        self.footprint.ask();
        let _in_world = enter_world(self.recorded_kind, self.id.number(), self.tick);
        // A thousand small worlds tick twenty thousand times a second: a phase in which there is seldom anything to do
        // begins where there is.
        let mut phases = Phases::divide(site!("world.tick", budget_us = TICK_BUDGET_US), site!("net.open"));
        self.now = now;
        self.report.stats = Default::default();
        let counting = begin_tick();
        self.scratch.take(&mut worker.as_mut().scratch);
        own(&mut self.replication).swap_buffers(&mut self.scratch.updates);
        self.take_mail(mail, worker, helpers);
        phases.next(site!("world.systems"));
        self.run_systems(&mut phases);
        phases.next(site!("replication.collect"));
        self.collect_changes();
        phases.next(site!("world.orders"));
        self.empty_what_was_filled();
        self.carry_out_orders();
        self.greet();
        self.filter_visibility(&mut phases);
        self.deliver_events(&mut phases);
        self.write_audit_samples(&mut phases);
        phases.next(site!("replication.share"));
        self.tell_clients(worker, helpers);
        phases.next(site!("world.finish"));
        self.let_go(worker.as_mut());
        self.note_footprint(&mut worker.as_mut().footprint);
        self.finish_tick();
        own(&mut self.replication).swap_buffers(&mut self.scratch.updates);
        self.scratch.give_back(&mut worker.as_mut().scratch);
        counting.end(&mut self.gauges, &mut worker.as_mut().game);
        &mut self.report
    }

    /// Takes newcomers in, hands messages to the game and opens datagrams. Who comes and goes is taken in before the
    /// first datagram is opened.
    fn take_mail<H: ForkJoin>(&mut self, mail: &mut Mail, worker: &mut H::Worker, helpers: &H) {
        let mut datagrams_count = 0;
        for item in &mut mail.items {
            if matches!(item, MailItem::Datagram { .. }) {
                datagrams_count += 1;
                continue;
            }
            let taken = std::mem::replace(item, MailItem::Taken);
            self.take_item(taken);
        }
        if datagrams_count > 0 && !self.clients.is_empty() {
            self.open_datagrams(mail, datagrams_count, worker, helpers);
        }
        mail.clear();
    }

    fn take_item(&mut self, item: MailItem) {
        match item {
            MailItem::Arrival { client, from, transfer } => self.take_in(client, from, transfer),
            MailItem::Message(message) => {
                self.filled.messages = true;
                self.ecs.resource_mut::<WorldMessages>().0.push(message);
            }
            MailItem::Dismiss { client, reason } => self.dismiss(client, reason),
            MailItem::Rules(rules) => self.set_rules(&rules),
            MailItem::End { reason } => self.clients.iter_mut().for_each(|client| client.leave(reason)),
            MailItem::Datagram { .. } | MailItem::Taken => {}
        }
    }

    /// Puts rules into force, as of this tick.
    pub fn set_rules(&mut self, rules: &ReplicationRules) {
        let ticks_per_s = f32::from(self.rate.0);
        let resolved = rules.resolved(ticks_per_s);
        // New rules make every copy current once; those that change nothing here must not.
        if *self.rules != resolved {
            *self.rules = resolved;
            let views = self.clients.iter_mut().filter_map(|client| client.view.as_mut());
            own(&mut self.replication).set_rules(&self.rules, ticks_per_s, views);
        }
        if let Some(mut scan) = self.ecs.get_resource_mut::<ScanRange>() {
            scan.ruled_m = rules.scan_range_m;
        }
    }

    /// How far clients see here where no rule says otherwise.
    pub fn own_radii(&self) -> InterestRadii {
        self.replication.own_radii()
    }

    /// Opens what clients sent, in batches, and gives the game's messages to its inbox in the order in which their
    /// datagrams came.
    fn open_datagrams<H: ForkJoin>(
        &mut self,
        mail: &mut Mail,
        datagrams_count: usize,
        worker: &mut H::Worker,
        helpers: &H,
    ) {
        let per_batch = self.cut_batches(Work::Open, datagrams_count, worker.as_mut().number, helpers.count());
        let mut begin = 0;
        for (number, item) in (0..).zip(&mail.items) {
            let MailItem::Datagram { client, end } = *item else { continue };
            // A datagram can be on its way here while its client leaves; UDP may lose it just as well.
            if let Some(place) = self.clients.place_of(client) {
                let client = (place % per_batch) as u32;
                self.scratch.batches[place / per_batch].datagrams.push(SealedDatagram { number, client, begin, end });
            }
            begin = end;
        }
        let Scratch { batches, mail_bytes, .. } = &mut *self.scratch;
        std::mem::swap(own(mail_bytes), &mut mail.bytes);
        batches.iter_mut().for_each(|batch| batch.mail = Some((mail_bytes.clone(), self.declared.clone())));
        helpers.fork_join(batches, worker);
        std::mem::swap(own(mail_bytes), &mut mail.bytes);
        self.filled.inbox = true;
        self.ecs.resource_mut::<Inbox>().take_opened(batches);
        self.take_batches_back();
    }

    /// Cuts all clients into batches, as many as are worth it if so many of them need work, and returns how many are in
    /// each but the last.
    fn cut_batches(&mut self, work: Work, work_count: usize, worker: usize, helpers_count: usize) -> usize {
        let count = self.clients.len();
        let worthwhile = work_count.min(count) / ClientBatch::CLIENTS_MIN;
        let batches_count = worthwhile.min(2 * (helpers_count + 1)).clamp(1, ClientBatch::PER_WORLD_MAX);
        let per_batch = count.div_ceil(batches_count);
        let (world, kind) = (self.id.number(), self.recorded_kind);
        let stage = Stage { world, kind, tick: self.tick, now: self.now, worker };
        let Scratch { batches, spare_batches, .. } = &mut *self.scratch;
        // Exactly: a batch takes most of a kilobyte, and a list that grows by itself begins with room for four.
        batches.reserve_exact(count.div_ceil(per_batch));
        for index in (0..count.div_ceil(per_batch)).rev() {
            let mut batch = spare_batches.pop().unwrap_or_else(ClientBatch::empty);
            batch.begin(work, stage);
            self.clients.take_last(count.min((index + 1) * per_batch) - index * per_batch, &mut batch.clients);
            batches.push(batch);
        }
        batches.reverse();
        per_batch
    }

    fn take_batches_back(&mut self) {
        let Scratch { batches, spare_batches, .. } = &mut *self.scratch;
        spare_batches.reserve_exact(batches.len());
        for mut batch in batches.drain(..) {
            self.clients.give_back(&mut batch.clients);
            self.report.stats.merge(&batch.stats);
            if let Some(traffic) = batch.traffic.take() {
                self.sent.take_back(traffic);
            }
            spare_batches.push(batch);
        }
    }

    /// Takes a client in, unless it carries what this world cannot read: then it goes back with it.
    fn take_in(&mut self, mut client: Box<Client>, from: Option<WorldId>, transfer: Option<Transfer>) {
        if let Some(carried) = &transfer
            && let Err(error) = self.check_transfer(carried)
        {
            let transfer = carried.clone();
            self.report.leaving.push(Leaving::Returned { client, to: from, transfer, error });
            return;
        }
        client.enter(own(&mut self.replication), f32::from(self.rate.0));
        if !std::mem::replace(&mut client.knows_schema, true) {
            let message = SchemaHash(self.replication.schema().hash()).encode();
            // Of a connection that is new the queue has room. Before a system can say anything.
            let _ = client.connection.send_reliable(&message);
        }
        let refused = client.refused_travel.take();
        client.has_returned = refused.is_some();
        let arrival = Arrival {
            client: client.key,
            client_id: client.client_id(),
            user_data: Box::new(*client.user_data()),
            from,
            transfer,
            refused,
        };
        self.sent.begin();
        self.clients.add(client);
        self.delivery.outdate();
        self.note_arrival(arrival);
    }

    /// What this world has against a transfer.
    pub(crate) fn check_transfer(&self, transfer: &Transfer) -> Result<(), PackError> {
        self.transfer_check.map_or(Ok(()), |check| check(transfer))
    }

    /// The systems see an arrival in their next run.
    pub(crate) fn note_arrival(&mut self, arrival: Arrival) {
        self.filled.arrivals = true;
        self.ecs.resource_mut::<Inbox>().players.arrive(arrival.client);
        self.ecs.resource_mut::<Arrivals>().0.push(arrival);
    }

    /// The systems see in their next run that a client is gone.
    pub(crate) fn note_departure(&mut self, client: ClientKey) {
        self.filled.departures = true;
        self.ecs.resource_mut::<Inbox>().players.depart(client);
        self.ecs.resource_mut::<Departures>().0.push(client);
    }

    /// The systems see in their next run a message that came in no datagram, for tests.
    pub(crate) fn note_message(&mut self, client: ClientKey, kind: MessageKind, bytes: &[u8]) {
        self.filled.inbox = true;
        self.ecs.resource_mut::<Inbox>().push(client, kind, bytes);
    }

    fn dismiss(&mut self, client: ClientKey, reason: &'static str) {
        if let Some(client) = self.clients.get_mut(client) {
            client.leave(reason);
        }
    }

    fn run_systems(&mut self, phases: &mut Phases) {
        let mut info = self.ecs.resource_mut::<TickInfo>();
        info.tick = self.tick;
        if let Some(time) = &self.time {
            time.advance(&mut self.ecs, self.tick);
        }
        self.systems.run(&mut self.ecs, phases, self.now);
        let failures = self.systems.failures_mut();
        if failures.count > 0 {
            self.report.stats.systems_failed += std::mem::take(&mut failures.count);
            self.report.failed.append(&mut failures.lines);
        }
    }

    /// The systems have seen what came before them.
    fn empty_what_was_filled(&mut self) {
        if self.tick.is_multiple_of(CHANGE_TICK_CHECK_PERIOD) {
            self.systems.check_change_ticks(&mut self.ecs);
        }
        // Finding a resource costs a few cache misses: only those that were filled are emptied.
        let filled = std::mem::take(&mut self.filled);
        if filled.inbox {
            self.ecs.resource_mut::<Inbox>().clear(&mut self.scratch.spare_batches);
        }
        if filled.arrivals {
            self.ecs.resource_mut::<Arrivals>().0.clear();
        }
        if filled.departures {
            self.ecs.resource_mut::<Departures>().0.clear();
            self.ecs.resource_mut::<Inbox>().players.forget_departed();
        }
        if filled.messages {
            self.ecs.resource_mut::<WorldMessages>().0.clear();
        }
    }

    /// Walks the change marks of every replicated column once and encodes what changed, once.
    fn collect_changes(&mut self) {
        let replication = own(&mut self.replication);
        replication.begin_tick(self.tick);
        self.collector.collect(&mut self.ecs, replication);
        self.tell_of_bad_values();
        self.quarantine_poisoned();
        self.ecs.clear_trackers();
    }

    /// Names the component of which the game has made a value that cannot be sent as it is: one a tick, the first.
    fn tell_of_bad_values(&self) {
        let (kind, world) = (&*self.name, self.id.number());
        let schema = self.replication.schema();
        if let Some((component, id)) = self.replication.first_clamped() {
            let (component, entity) = (schema.name_of(component), self.collector.entity_of(id));
            log_warn!(
                VALUES,
                kind,
                world,
                component,
                ?entity,
                "a value is outside its declared range, and clients see the nearer end of that"
            );
        }
        if let Some(&id) = self.replication.poisoned().first() {
            let component = self.replication.first_poisoned_component();
            let component = component.map_or("the entity's place", |component| schema.name_of(component));
            let entity = self.collector.entity_of(id);
            log_warn!(
                VALUES,
                kind,
                world,
                component,
                ?entity,
                "a value is NaN or infinite, and clients see its entity vanish"
            );
        }
    }

    /// An entity with a value that is no finite number is taken out of replication in the tick that made it: clients
    /// see it go. The entity stays in the world, where its game may find and mend it.
    fn quarantine_poisoned(&mut self) {
        let Self { replication, collector, ecs, .. } = self;
        for &id in replication.poisoned() {
            let Some(entity) = collector.entity_of(id) else { continue };
            if let Ok(mut entity) = ecs.get_entity_mut(entity) {
                entity.remove::<Replicated>();
            }
        }
    }

    /// Asks the game's filter who may see what is visibility-filtered.
    fn filter_visibility(&mut self, phases: &mut Phases) {
        let Self { visibility_filter, replication, clients, collector, ecs, scratch, .. } = self;
        if clients.is_empty() || !replication.has_visibility_filtered() {
            return;
        }
        phases.next(site!("replication.visibility"));
        own(replication).prepare_visibility_filter();
        for client in clients.iter_mut() {
            let viewer = Viewer { client: client.key, player: client.player, team: client.team };
            let Some(view) = &mut client.view else { continue };
            replication.filter_visibility(view, &mut scratch.views, &mut |id| {
                let Some(entity) = collector.entity_of(id) else { return false };
                visibility_filter.as_ref().is_none_or(|filter| filter(ecs, viewer, entity))
            });
        }
    }

    /// Puts what was told this tick into the queues of those who are to hear it.
    fn deliver_events(&mut self, phases: &mut Phases) {
        let mut events = self.ecs.resource_mut::<Events>();
        if events.told.is_empty() {
            return;
        }
        phases.next(site!("replication.events"));
        let mut told = std::mem::take(&mut events.told);
        let Self { ecs, clients, replication, collector, delivery, rules, report, sent, scratch, .. } = self;
        if let Some(traffic) = sent.traffic_mut() {
            let scene = Scene { ecs, collector, replication, rules };
            delivery.deliver(&mut told, &scene, clients, &mut scratch.hearing, traffic, &mut report.stats);
        }
        told.clear();
        // Back for its memory.
        ecs.resource_mut::<Events>().told = told;
    }

    /// Tells some of the clients that are to be told, each in its turn, what one entity really looks like. First it is settled what is
    /// relevant to them in this tick: else an audit sample would be about what has just gone out of sight.
    fn write_audit_samples(&mut self, phases: &mut Phases) {
        let audit_period = ((AUDIT_PERIOD_S * f32::from(self.rate.0)) as u32).max(1);
        let Self { clients, collector, replication, ecs, tick, sent, scratch, .. } = self;
        let Some(traffic) = sent.traffic_mut() else { return };
        let Scratch { views, audit_sample, .. } = &mut **scratch;
        let mut is_first = true;
        let tick = *tick;
        let is_due =
            |client: &Client| client.is_audited && tick.wrapping_add(client.key.0).is_multiple_of(audit_period);
        for client in clients.iter_mut().filter(|client| is_due(client)) {
            let Some(view) = &mut client.view else { continue };
            if std::mem::take(&mut is_first) {
                phases.next(site!("replication.audit_samples"));
            }
            audit_sample.clear();
            let replication = own(replication);
            replication.settle();
            replication.refresh(view, views);
            if collector.write_audit_sample(ecs, replication, view, traffic, audit_sample) {
                // A full queue drops its oldest audit sample: one check less, never a wrong one.
                let _ = client.connection.send_unreliable(audit_sample);
            }
        }
    }

    /// Brings every client up to date, on all workers that have nothing else to do.
    fn tell_clients<H: ForkJoin>(&mut self, worker: &mut H::Worker, helpers: &H) {
        if self.clients.is_empty() {
            return;
        }
        own(&mut self.replication).settle();
        self.cut_batches(Work::Tell, self.clients.len(), worker.as_mut().number, helpers.count());
        let batches = &mut self.scratch.batches;
        for batch in batches.iter_mut() {
            batch.replication = Some(self.replication.clone());
            batch.traffic = Some(self.sent.lend());
        }
        helpers.fork_join(batches, worker);
        self.take_batches_back();
    }

    /// Hands leaving clients to the host: travellers with all that is theirs, others closed.
    fn let_go(&mut self, worker: &mut Worker) {
        self.clients.take_leaving(&mut self.scratch.leavers);
        // Those who still wait stay in the scratch, where a host finds them if one of these panics.
        self.scratch.leavers.reverse();
        while let Some(mut client) = self.scratch.leavers.pop() {
            self.delivery.outdate();
            if let Some(view) = client.exit() {
                self.report.stats.replication.merge(&own(&mut self.replication).remove_view(view));
            }
            match client.leaving.take() {
                Some(Leave::Travel { to, transfer }) => {
                    self.ecs.resource_mut::<Inbox>().players.remove(client.key);
                    self.report.leaving.push(Leaving::Travel { client, to, transfer });
                }
                Some(Leave::Gone { reason }) => {
                    client.connection.close(self.now, &mut *worker.sender);
                    self.note_departure(client.key);
                    self.report.leaving.push(Leaving::Gone { client: client.key, reason });
                }
                None => {}
            }
        }
    }

    fn finish_tick(&mut self) {
        self.report.stats.replication.merge(&own(&mut self.replication).take_stats());
        self.report.state_hash = self.hash_wanted.then(|| self.state_hash());
        self.sent.add_packets(self.report.stats.packets_out, self.report.stats.bytes_out);
        self.report.has_nothing_to_do =
            self.clients.is_empty() && self.ecs.resource::<MayBeDormant>().0 && !self.filled.departures;
        self.tick =
            self.tick.checked_add(1).expect("this world has used up its ticks: worlds are to be made anew in time");
    }

    /// Gives what was sent since the last call, by kind and cause.
    pub fn take_traffic(&mut self, row: impl FnMut(TrafficRow)) {
        self.sent.take(row);
    }

    /// Gives what each client took since the last call. Cost: a look at every client.
    pub fn take_client_costs(&mut self, cost: impl FnMut(ClientCost)) {
        let now = self.now;
        self.clients.iter_mut().filter_map(|client| client.take_cost(now)).for_each(cost);
    }

    /// The game's gauges as this world last set them, for a host that takes the world out of its sums.
    pub fn gauges_mut(&mut self) -> &mut WorldGauges {
        &mut self.gauges
    }

    /// Gives up all clients, those included that a panic left in the middle of a tick. What the tick was doing with
    /// them may be half done: whoever takes them gives them a new view, and their connections go on. The world is not
    /// to tick again.
    pub fn take_clients(&mut self) -> Vec<Box<Client>> {
        let mut clients: Vec<_> = self.clients.drain().collect();
        if let Some(Scratch { batches, leavers, .. }) = self.scratch.left() {
            batches.iter_mut().for_each(|batch| clients.append(&mut batch.clients));
            clients.append(leavers);
        }
        clients.iter_mut().for_each(|client| _ = client.exit());
        clients
    }

    /// Adds allocations that the host has counted around the tick.
    pub fn count_allocations(&mut self, count: u64) {
        self.report.stats.allocations += count;
        self.report.stats.allocations_in_tick = self.report.stats.allocations;
    }

    /// What the last tick did and asks for.
    pub fn report_mut(&mut self) -> &mut TickReport {
        &mut self.report
    }

    pub fn id(&self) -> WorldId {
        self.id
    }

    pub fn kind(&self) -> WorldKindId {
        self.kind
    }

    /// Its kind as the recorder numbers it.
    pub fn recorded_kind(&self) -> KindNumber {
        self.recorded_kind
    }

    /// Its kind's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub fn rate(&self) -> Hertz {
        self.rate
    }

    /// Ticks done.
    pub fn ticks(&self) -> u32 {
        self.tick
    }

    /// As if it had ticked so often.
    #[cfg(test)]
    pub(crate) fn set_ticks(&mut self, ticks: u32) {
        self.tick = ticks;
    }

    pub fn clients_count(&self) -> usize {
        self.clients.len()
    }

    /// Whether a system that fails panics, as in a debug build, or is told of in the report, as in a release build.
    pub fn panic_on_failure(&mut self, panics: bool) {
        self.systems.panic_on_failure(panics);
    }

    /// From now on every tick leaves a hash of the world's state in its report: about 50 ns for each component that
    /// counts.
    pub fn want_hash(&mut self, wanted: bool) {
        self.hash_wanted = wanted;
    }

    /// One number for the world's state as it is now: the same for the same state.
    pub(crate) fn state_hash(&mut self) -> u64 {
        self.collector.hash_state(&mut self.ecs, self.tick)
    }

    /// Where it is kept what clients without a connection are told, for tests.
    pub(crate) fn told_mut(&mut self) -> &mut Told {
        self.told.get_or_insert_default()
    }

    pub(crate) fn told(&self) -> Option<&Told> {
        self.told.as_deref()
    }

    /// What clients may say here.
    pub(crate) fn declared(&self) -> &Declared {
        &self.declared
    }

    /// The world's entities and resources, for tests and tools that look in between ticks.
    pub fn ecs_mut(&mut self) -> &mut World {
        &mut self.ecs
    }

    pub fn ecs(&self) -> &World {
        &self.ecs
    }

    /// Clients' names for entities, for tests and tools.
    pub fn collector(&self) -> &Collector {
        &self.collector
    }

    /// Asserts what must hold between two ticks; for tests and the simulator.
    pub fn check(&self) {
        self.clients.check();
        self.clients.as_slice().iter().filter_map(|client| client.view.as_ref()).for_each(View::check);
        self.replication.check();
        assert!(self.scratch.is_back(), "the worker has its scratch");
        assert_eq!(Arc::strong_count(&self.replication), 1, "nothing is lent");
    }

    /// Test switch: breaks what clients are told, to show that broken copies do not go unseen.
    pub fn break_replication(&mut self, fault: throng_replication::Fault) {
        own(&mut self.replication).set_fault(fault);
    }
}

/// What batches share is the world's alone again when all are back.
fn own<T>(shared: &mut Arc<T>) -> &mut T {
    Arc::get_mut(shared).expect("every batch has let go of what it was lent")
}
