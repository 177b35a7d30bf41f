//! A world: one isolated simulated space, and everything that belongs to it, by value.
//!
//! `tick` is the whole life of a world, top to bottom: mail in (`mail_in`), systems, changes collected (`telling`), orders
//! carried out (`orders`), the visibility filter asked, events delivered, audit samples written (`telling` again), packets
//! out (`batches`), leavers handed over (`leaving`). It does no input or output of its own: mail, time and a way out come
//! in, a report goes out. It touches nothing but the world, the worker's own buffers and shared read-only data; so worlds
//! tick in parallel without a lock between them. Clients are opened and told in batches, on idle workers too
//! (`client_batch`); all else stays on the one worker. The same mail gives the same world and the same bytes on any number
//! of workers.
//!
//! A client is in exactly one world. All of it lives here while it is here (`client`), so that opening and sealing
//! packets happens on the workers, and travelling means moving that value to another world's mail.

mod asked;
mod batches;
mod between_ticks;
mod checkpoints;
mod footprint;
mod leaving;
mod logging;
mod mail_in;
mod orders;
mod put_back;
mod reacting;
mod replay;
mod saves;
mod telling;

pub use replay::{ReplayError, ReplayWorker};

use std::sync::Arc;

use bevy_ecs::prelude::*;
use throng_analytics::tick;
use throng_metrics::{
    Counters,
    game::{WorldGauges, begin_tick},
};
use throng_net::control;
use throng_platform::{prefetch::Footprint, time::Nanos};
use throng_profiler::{
    KindNumber, Phases, site,
    thread::{InWorld, enter_world},
};
use throng_replication::{ResolvedRules, WorldReplication, ecs::Collector};
use throng_scheduler::Hertz;

use crate::{
    checkpoint::Registry,
    clients::Clients,
    console::Question,
    declared::Declared,
    deliver::Delivery,
    ids::{WorldId, WorldKindId},
    inbox::Inbox,
    input_log::SharedInputLog,
    mail::Mail,
    reactive::Reactive,
    report::TickReport,
    saving::{SaveHooks, Saving},
    scratch::Lent,
    sent::Sent,
    testing::Told,
    tick_resources::{Arrivals, Departures, MayBeDormant, Outbox, TickInfo, WorldMessages},
    tick_time::TickTime,
    transfer::TransferChecks,
    visibility::VisibilityFilter,
    worker::ForkJoin,
    world_systems::WorldSystems,
};

// The two crates that know these bytes must agree on them.
const _: () = assert!(control::SNAPSHOT == throng_replication::SNAPSHOT_KIND);
const _: () = assert!(control::SLOWED_SNAPSHOT == throng_replication::SLOWED_SNAPSHOT_KIND);
const _: () = assert!(control::AUDIT_SAMPLE == throng_replication::AUDIT_SAMPLE_KIND);
const _: () = assert!(control::EVENT == throng_replication::EVENT_KIND);
const _: () = assert!(control::REQUEST == throng_replication::REQUEST_KIND);
const _: () = assert!(control::MESSAGE == throng_replication::MESSAGE_KIND);

/// What a tick may take, if no rule says otherwise: half the period of 20 Hz, three quarters of that of 30 Hz and more.
/// Ten times what a busy world needs.
const TICK_BUDGET_US: u64 = 25_000;

/// Ticks between two looks at Bevy's change ticks; they must be moved along every 2^29 ticks of any system.
const CHANGE_TICK_CHECK_PERIOD: u32 = 4096;

/// A tick that comes so much too late was kept from coming: below this, clients' silence counts as ever.
const STOOD_STILL_MIN: Nanos = Nanos::from_secs(1);

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
    pub transfer_checks: TransferChecks,
    pub save_hooks: SaveHooks,
    pub checkpoints: Arc<Registry>,
    pub reactive: Option<Box<Reactive>>,
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
    /// When it ticks, if that depends on what comes.
    reactive: Option<Box<Reactive>>,
    /// What there is to tell. Shared with batches while they are told, the world's alone at all other times.
    replication: Arc<WorldReplication>,
    collector: Collector,
    /// What clients may say here.
    declared: Arc<Declared>,
    /// Who may see visibility-filtered entities; everybody, if the game does not say.
    visibility_filter: Option<VisibilityFilter>,
    /// What travellers must carry to come in; anything, if the game does not say.
    transfer_checks: TransferChecks,
    /// What its kind keeps in checkpoints.
    checkpoints: Arc<Registry>,
    clients: Clients,
    /// What of it is kept.
    saving: Box<Saving>,
    /// Nothing that was saved has been put into it.
    is_as_built: bool,
    /// Its last tick is not over: a panic left it there.
    is_in_tick: bool,
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
    /// How long the last one took, for the game's metrics.
    last_tick_took: Nanos,
    /// Which resources hold something that the next run of the systems is to see and then to lose.
    filled: Filled,
    /// What somebody outside wants of it, to be asked before the next run of the systems.
    questions: Vec<Question>,
    /// Where all that enters it is written, if its host wants that.
    log: Option<SharedInputLog>,
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
            transfer_checks,
            save_hooks,
            checkpoints,
            reactive,
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
            reactive,
            replication: Arc::new(replication),
            collector,
            declared,
            visibility_filter,
            transfer_checks,
            checkpoints,
            clients: Clients::default(),
            saving: Box::new(Saving::of(save_hooks)),
            is_as_built: true,
            is_in_tick: false,
            rules: Box::default(),
            delivery: Delivery::default(),
            scratch: Lent::default(),
            footprint: Footprint::default(),
            sent: Sent::new(schema),
            tick: 0,
            now: Nanos::ZERO,
            last_tick_took: Nanos::ZERO,
            filled: Filled::default(),
            questions: Vec::new(),
            log: None,
            told: None,
            hash_wanted: false,
            gauges: WorldGauges::default(),
            report: TickReport { next_tick_hint, ..TickReport::default() },
        }
    }

    /// Scopes of the calling thread are of this world until the guard is dropped.
    pub fn enter_world(&self) -> InWorld {
        enter_world(self.recorded_kind, self.id.number(), self.tick)
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
        let _in_world = self.enter_world();
        self.is_in_tick = true;
        // A thousand small worlds tick twenty thousand times a second: a phase in which there is seldom anything to do
        // begins where there is.
        let of_tick = site!("world.tick", budget_us = TICK_BUDGET_US, fits_rate = true);
        let mut phases = Phases::divide(of_tick, site!("net.open"));
        self.footprint.ask();
        self.begin_at(now);
        self.report.stats = Default::default();
        let counting = begin_tick();
        let emitting = tick::begin_tick(&mut worker.as_mut().events, self.id.bits(), self.tick, now.0);
        self.scratch.take(&mut worker.as_mut().scratch);
        own(&mut self.replication).swap_buffers(&mut self.scratch.updates);
        let has_news = self.take_mail(mail, worker, helpers);
        if self.is_to_tick(has_news) {
            self.log_what_entered();
            phases.next(site!("world.systems"));
            self.run_systems(&mut phases);
            phases.next(site!("replication.collect"));
            self.collect_changes();
            phases.next(site!("world.orders"));
            self.empty_what_was_filled();
            self.carry_out_orders(has_news);
            self.greet();
            self.filter_visibility(&mut phases);
            self.deliver_events(&mut phases);
            self.write_audit_samples(&mut phases);
        } else {
            self.listen(&mut phases);
        }
        phases.next(site!("replication.share"));
        self.tell_clients(worker, helpers);
        phases.next(site!("world.finish"));
        self.let_go(worker.as_mut());
        self.note_footprint(&mut worker.as_mut().footprint);
        self.finish_tick();
        own(&mut self.replication).swap_buffers(&mut self.scratch.updates);
        self.scratch.give_back(&mut worker.as_mut().scratch);
        emitting.end(&mut worker.as_mut().events);
        counting.end(&mut self.gauges, &mut worker.as_mut().game);
        self.is_in_tick = false;
        &mut self.report
    }

    /// The clock goes on. Where the world stood still, with its process, its host or by itself, nobody listened to its
    /// clients: what they said then is lost or still to be read, and is no silence of theirs.
    fn begin_at(&mut self, now: Nanos) {
        let percent = u64::from(self.replication.time_factor().percent());
        let period = Nanos(100 * self.rate.period().0 / percent);
        let rested = self.go_on_after_rest();
        let stood_still = now.saturating_sub(self.now).saturating_sub(Nanos(period.0 * (1 + u64::from(rested))));
        self.now = now;
        if stood_still >= STOOD_STILL_MIN {
            self.clients.iter_mut().for_each(|client| client.connection.forgive_silence(now, stood_still));
        }
    }

    fn run_systems(&mut self, phases: &mut Phases) {
        let since_last = self.ticks_since_last();
        let mut info = self.ecs.resource_mut::<TickInfo>();
        (info.tick, info.last_tick_took) = (self.tick, self.last_tick_took);
        if self.reactive.is_some() {
            info.dt_s = since_last as f32 / f32::from(self.rate.0);
        }
        if let Some(time) = &self.time {
            time.advance(&mut self.ecs, self.tick, since_last);
        }
        self.report.was_changed_from_outside = self.questions.iter().any(Question::changes);
        if !self.questions.is_empty() {
            std::mem::take(&mut self.questions).into_iter().for_each(|question| question.ask(self));
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
        if self.tick % CHANGE_TICK_CHECK_PERIOD < self.ticks_since_last() {
            self.systems.check_change_ticks(&mut self.ecs);
        }
        // Finding a resource costs a few cache misses: only those that were filled are emptied.
        let filled = std::mem::take(&mut self.filled);
        if filled.inbox {
            self.ecs.resource_mut::<Inbox>().clear(&mut self.scratch.spare_buffers);
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

    fn finish_tick(&mut self) {
        self.report.stats.replication.merge(&own(&mut self.replication).take_stats());
        let ticks =
            self.tick.checked_add(1).expect("this world has used up its ticks: worlds are to be made anew in time");
        let has_ticked = !self.report.was_listening;
        self.report.state_hash = (self.hash_wanted && has_ticked).then(|| self.state_hash());
        self.sent.add_packets(self.report.stats.packets_out, self.report.stats.bytes_out);
        // The last that may fail: a cut that was taken is of a tick that is over.
        self.finish_saves();
        if let Some(mut log) = self.log().filter(|_| has_ticked) {
            log.end_tick();
        }
        self.report.has_nothing_to_do = self.clients.is_empty()
            && self.ecs.resource::<MayBeDormant>().0
            && !self.filled.departures
            && !self.owes_saves();
        self.tick = ticks;
        self.report.rests = self.rests();
    }
}

/// What batches share is the world's alone again when all are back.
fn own<T>(shared: &mut Arc<T>) -> &mut T {
    Arc::get_mut(shared).expect("every batch has let go of what it was lent")
}
