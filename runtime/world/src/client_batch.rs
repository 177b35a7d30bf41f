//! Client batch: some of a world's clients with all that their packets are made of, so that any worker can serve them.
//!
//! What a tick does for each client is most of the work of a crowded world: open what it sent; look at what is near it,
//! write its snapshot, seal it, send it. None of that touches another client. So a world cuts its clients into batches,
//! each a value of its own: the clients, their datagrams, and what all of them are told, which nobody changes
//! meanwhile. Batches are served on whichever workers are idle (fork-join), and the world and every client get the same
//! bytes whatever their number. A world with few clients has one batch.
//!
//! ```text
//! mail ---> batches: open ---> messages, in the order of arrival ---> systems ---> batches: refresh, write, seal
//! ```
//!
//! Each worker seals into its own send batch, which it hands to the kernel before it goes to sleep. A batch never waits
//! for another one. Allocates nothing once its lists have grown, but for messages with lists in them, which are unpacked
//! here. Cost: some 1 µs per datagram opened and 5 µs per client told, most of it the kernel's. How a datagram is opened
//! is in `opening`.

mod opening;

use std::sync::Arc;

use throng_metrics::Counters;
use throng_net::connection::EndReason;
use throng_platform::{
    allocator::{self, thread_counts},
    prefetch,
    time::Nanos,
};
use throng_profiler::{KindNumber, Phases, log_category, site, thread::enter_world};
use throng_replication::{TimeFactor, Traffic, ViewScratch, WorldReplication};

use self::opening::{Opener, Unread};
use crate::{
    client::Client,
    client_cost::line_units,
    declared::Declared,
    opened::{Buffer, Opened},
    report::TickStats,
    worker::Worker,
};

log_category!(
    /// What clients cannot have, or cannot be told.
    pub(crate) CLIENTS = "world.clients"
);

/// Packets for one client in one tick at most. Snapshots stop earlier, at their byte budget; the reliable channel when
/// it is empty.
const PACKETS_PER_TICK_MAX: usize = 16;

/// Ticks of a world of which one has its batches timed.
const TIMED_EVERY: u32 = 8;

/// What is done with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Open,
    Tell,
}

/// A datagram of a batch, still sealed.
#[derive(Clone, Copy)]
pub(crate) struct SealedDatagram {
    /// Its place among the world's mail.
    pub number: u32,
    /// Whose it is, by place in the batch.
    pub client: u32,
    /// Where it lies in the world's mail.
    pub begin: usize,
    pub end: usize,
}

/// Where and when a batch is served.
#[derive(Clone, Copy)]
pub(crate) struct Stage {
    pub world: u32,
    pub kind: KindNumber,
    pub tick: u32,
    pub now: Nanos,
    pub time_factor: TimeFactor,
    /// Of a world that rests: positions that it has left out before this one. `None`: it never does.
    pub rested: Option<u32>,
    /// The worker that runs the world's tick.
    pub worker: usize,
}

/// Some clients of a world, away from it.
pub struct ClientBatch {
    pub(crate) work: Work,
    pub(crate) stage: Stage,
    pub(crate) clients: Vec<Box<Client>>,
    /// What there is to tell, and where to count what was told, while the batch is told.
    pub(crate) replication: Option<Arc<WorldReplication>>,
    pub(crate) traffic: Option<Traffic>,
    /// The world's mail, and what may be in it, while the batch is opened.
    pub(crate) mail: Option<(Arc<Vec<u8>>, Arc<Declared>)>,
    pub(crate) datagrams: Vec<SealedDatagram>,
    /// What its clients said, until the world's inbox takes it. Empty and without memory while nothing is opened.
    pub(crate) buffer: Buffer,
    pub(crate) opened: Vec<Opened>,
    /// Scratch of opening and of telling.
    unread: Unread,
    views: ViewScratch,
    pub(crate) stats: TickStats,
    /// When the first of its clients is due again, once they are told; of a world that rests.
    pub(crate) next_due: Nanos,
}

impl ClientBatch {
    /// Batches that a world's clients are cut into at most: two for each of eight workers, so that one that comes late
    /// finds something to do.
    pub(crate) const PER_WORLD_MAX: usize = 16;

    /// Clients for which a batch is worth its way to another worker: at 5 µs each some 0.3 ms, against about 5 µs to
    /// wake a sleeper.
    pub(crate) const CLIENTS_MIN: usize = 64;

    pub(crate) fn empty() -> Self {
        Self {
            work: Work::Open,
            stage: Stage {
                world: 0,
                kind: KindNumber::NONE,
                tick: 0,
                now: Nanos::ZERO,
                time_factor: TimeFactor::USUAL,
                rested: None,
                worker: 0,
            },
            clients: Vec::new(),
            replication: None,
            traffic: None,
            mail: None,
            datagrams: Vec::new(),
            buffer: Buffer::default(),
            opened: Vec::new(),
            unread: Unread::default(),
            views: ViewScratch::default(),
            stats: TickStats::default(),
            next_due: Nanos::MAX,
        }
    }

    /// Begins a piece of work; the clients are put in afterwards.
    pub(crate) fn begin(&mut self, work: Work, stage: Stage) {
        (self.work, self.stage) = (work, stage);
        (self.stats, self.next_due) = (TickStats::default(), Nanos::MAX);
    }

    /// Whether a host that wants to know what clients cost is to time this one: one tick in eight, since two
    /// readings of the clock for each batch are much beside what a small world's tick takes.
    pub fn is_to_be_timed(&self) -> bool {
        self.stage.tick.wrapping_add(self.stage.world).is_multiple_of(TIMED_EVERY)
    }

    /// What it is served with: opening what clients sent, or else telling them what there is.
    pub fn is_opening(&self) -> bool {
        self.work == Work::Open
    }

    /// How much was opened or told, by which the time that it took is spread over clients.
    pub fn line_units(&self) -> u64 {
        let TickStats { datagrams_in, bytes_in, packets_out, bytes_out, .. } = self.stats;
        line_units(datagrams_in + packets_out, bytes_in + bytes_out)
    }

    /// Does the work, on the world's own worker or on one that helps.
    pub fn run(&mut self, worker: &mut Worker) {
        if worker.number == self.stage.worker {
            return self.serve(worker);
        }
        let _in_world = enter_world(self.stage.kind, self.stage.world, self.stage.tick);
        let before = thread_counts().allocations;
        let in_tick = InTick::begin();
        self.serve(worker);
        drop(in_tick);
        self.stats.allocations += thread_counts().allocations - before;
    }

    fn serve(&mut self, worker: &mut Worker) {
        match self.work {
            Work::Open => self.open(),
            Work::Tell => self.tell(worker),
        }
    }

    fn open(&mut self) {
        // The world's own worker is in this phase already.
        let _phases = Phases::go_on(site!("net.open"));
        let Some((mail, declared)) = self.mail.take() else { return };
        let Self { clients, datagrams, buffer, opened, unread, stats, stage, .. } = self;
        let mut opener = Opener { stage: *stage, declared: &declared, buffer, opened, unread, stats };
        for place in 0..datagrams.len() {
            let client = |datagram: &SealedDatagram| &clients[datagram.client as usize];
            prefetch::look_ahead(
                datagrams,
                place,
                |next| client(next).connection.prefetch_lists(),
                |next| client(next).prefetch_for_opening(),
            );
            let SealedDatagram { number, client, begin, end } = datagrams[place];
            opener.open(&mut clients[client as usize], number, &mail[begin..end]);
        }
        datagrams.clear();
    }

    fn tell(&mut self, worker: &mut Worker) {
        let (Some(replication), Some(traffic)) = (self.replication.take(), &mut self.traffic) else { return };
        // The world's own worker is in a phase, and stays in it until the first client's interest.
        let mut phases = Phases::go_on(site!("replication.send"));
        for index in 0..self.clients.len() {
            prefetch::look_ahead(&self.clients, index, |next| next.prefetch_lists(), |next| next.prefetch());
            let client = &mut self.clients[index];
            let views_and_traffic = (&mut self.views, &mut *traffic);
            let phases = (&mut phases, index == 0);
            tell(client, &replication, views_and_traffic, &self.stage, &mut self.stats, worker, phases);
            if self.stage.rested.is_some() {
                self.next_due = self.next_due.min(next_due(client, &self.stage));
            }
            if let Some(view) = &mut client.view {
                self.stats.replication.merge(&view.take_counts());
            }
        }
    }
}

/// The calling thread runs a tick for as long as this lives, also when the tick panics.
pub struct InTick(());

impl InTick {
    pub fn begin() -> Self {
        allocator::short_task(true);
        Self(())
    }
}

impl Drop for InTick {
    fn drop(&mut self) {
        allocator::short_task(false);
    }
}

/// Tells one client: takes in what arrived and what did not, looks at what is near, and writes its packets, sealed
/// straight into the worker's send batch.
fn tell(
    client: &mut Client,
    replication: &WorldReplication,
    (views, traffic): (&mut ViewScratch, &mut Traffic),
    &Stage { now, rested, .. }: &Stage,
    stats: &mut TickStats,
    worker: &mut Worker,
    (phases, is_first): (&mut Phases, bool),
) {
    let Worker { sender, received, snapshot, .. } = worker;
    let input = client.last_input();
    let Client { connection, view: Some(view), pacing: Some(pacing), .. } = client else { return };
    received.clear();
    connection.update(now, received);
    let (acked, lost) = (received.acked.len() as u32, received.lost.len() as u32);
    received.acked.iter().for_each(|packet| view.acked(packet.0));
    received.lost.iter().for_each(|packet| replication.lost(view, packet.0));
    stats.packets_lost += u64::from(lost);
    if let Some(reason) = connection.ended(now) {
        client.leave(end_reason(reason));
        return;
    }
    if let Some(rested) = rested {
        pacing.skip_ticks(rested);
    }
    let mut budget_bytes = pacing.begin_tick(acked, lost);
    // In a large world it is seldom a client's turn, and then its share of the phase before goes on.
    let wants_refresh = replication.wants_refresh(view);
    if wants_refresh {
        phases.next(site!("replication.interest"));
        replication.refresh(view, views);
    }
    if budget_bytes == 0 && view.owes_sight() {
        budget_bytes = pacing.overdraw();
    }
    view.set_budget(budget_bytes);
    if wants_refresh || is_first {
        phases.next(site!("replication.send"));
    }
    let bytes_before = connection.bytes_sent();
    let packets_before = stats.packets_out;
    for _ in 0..PACKETS_PER_TICK_MAX {
        snapshot.resize(connection.room(now), 0);
        // With nothing to spend what can wait waits: changes are owed until they are told.
        let length = if budget_bytes == 0 { 0 } else { replication.write_snapshot(view, traffic, input, snapshot) };
        if length == 0 && !connection.wants_packet(now) {
            break;
        }
        phases.next(site!("net.seal"));
        let packet = connection.send_packet(now, &snapshot[..length], &mut **sender);
        if length > 0 {
            replication.sent(view, packet.0);
        }
        stats.packets_out += 1;
        phases.next(site!("replication.send"));
    }
    let bytes = connection.bytes_sent() - bytes_before;
    let packets = stats.packets_out - packets_before;
    pacing.sent(packets as u32, bytes as u32);
    stats.bytes_out += bytes;
    client.meter.spent.packets_out += packets;
    client.meter.spent.bytes_out += bytes;
}

/// When a client that has been told is due again, if nothing comes.
fn next_due(client: &Client, stage: &Stage) -> Nanos {
    match &client.view {
        _ if client.leaving.is_some() => Nanos::MAX,
        Some(view) if !view.is_told(stage.tick) => stage.now,
        _ => client.connection.next_due(stage.now),
    }
}

fn end_reason(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Disconnected => "disconnected by the client",
        EndReason::TimedOut => "timed out",
        EndReason::Refused(_) => "broke the rules of the channels",
    }
}
