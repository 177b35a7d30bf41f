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
//! here. Cost: some 1 µs per datagram opened and 5 µs per client told, most of it the kernel's.

use std::sync::Arc;

use throng_metrics::Counters;
use throng_net::{
    connection::{Channel, EndReason, MessageSink},
    control::{self, SchemaHash},
};
use throng_platform::{
    allocator::{self, thread_counts},
    prefetch,
    time::Nanos,
};
use throng_profiler::{
    KindNumber, Phases, log_category, log_warn, site,
    thread::{enter_world, note_input},
};
use throng_replication::{PackedId, REQUEST_HEADER_BYTES, SEEN_BYTES, Seen, Traffic, ViewScratch, WorldReplication};

use crate::{
    allowance::Verdict,
    client::Client,
    client_cost::line_units,
    declared::{Declared, Heard},
    opened::{Buffer, MessageKind, Opened},
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

/// First byte, epoch, number and kind, ahead of what an input says.
const INPUT_HEADER_BYTES: usize = 5;

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
    /// What its clients said, until the world's inbox takes it.
    pub(crate) buffer: Buffer,
    pub(crate) opened: Vec<Opened>,
    /// Scratch of opening and of telling.
    opening: Opening,
    views: ViewScratch,
    pub(crate) stats: TickStats,
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
            stage: Stage { world: 0, kind: KindNumber::NONE, tick: 0, now: Nanos::ZERO, worker: 0 },
            clients: Vec::new(),
            replication: None,
            traffic: None,
            mail: None,
            datagrams: Vec::new(),
            buffer: Buffer::default(),
            opened: Vec::new(),
            opening: Opening::default(),
            views: ViewScratch::default(),
            stats: TickStats::default(),
        }
    }

    /// Begins a piece of work; the clients are put in afterwards.
    pub(crate) fn begin(&mut self, work: Work, stage: Stage) {
        (self.work, self.stage) = (work, stage);
        self.stats = TickStats::default();
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
        let Self { clients, datagrams, buffer, opened, opening, stats, stage, .. } = self;
        for place in 0..datagrams.len() {
            let client = |datagram: &SealedDatagram| &clients[datagram.client as usize];
            prefetch::look_ahead(
                datagrams,
                place,
                |next| client(next).connection.prefetch_lists(),
                |next| client(next).prefetch_for_opening(),
            );
            let SealedDatagram { number, client, begin, end } = datagrams[place];
            let at = buffer.bytes.len();
            buffer.bytes.extend_from_slice(&mail[begin..end]);
            let client = &mut clients[client as usize];
            open(client, (stage, &declared), (number, at), buffer, opening, opened, stats);
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
            tell(client, &replication, views_and_traffic, self.stage.now, &mut self.stats, worker, phases);
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

/// Where the messages of one datagram lie in the bytes of its batch, once what was put together follows the datagram
/// there.
struct Found<'a> {
    messages: &'a mut Vec<(Channel, usize, usize)>,
    /// Where the datagram lies in memory, and in the batch's bytes.
    address: usize,
    begin: usize,
    end: usize,
    assembled: &'a mut Vec<u8>,
}

impl MessageSink for Found<'_> {
    fn message(&mut self, channel: Channel, bytes: &[u8]) {
        let offset = bytes.as_ptr().addr().wrapping_sub(self.address);
        if offset < self.end - self.begin {
            let begin = self.begin + offset;
            self.messages.push((channel, begin, begin + bytes.len()));
        } else {
            self.message_in_parts(channel, std::iter::once(bytes));
        }
    }

    fn message_in_parts<'b>(&mut self, channel: Channel, parts: impl Iterator<Item = &'b [u8]>) {
        let begin = self.end + self.assembled.len();
        parts.for_each(|part| self.assembled.extend_from_slice(part));
        self.messages.push((channel, begin, self.end + self.assembled.len()));
    }
}

/// Messages of one batch that have been opened and not been looked at.
#[derive(Default)]
struct Opening {
    messages: Vec<(Channel, usize, usize)>,
    assembled: Vec<u8>,
}

fn tell_of_mismatch(client: &Client, schema: u64) {
    let client = client.client_id().0;
    log_warn!(
        CLIENTS,
        client,
        schema = format_args!("{schema:016x}"),
        "a client goes by another schema than this server, and leaves: bring both to the same version of the game"
    );
}

/// Opens the datagram that lies at the end of the buffer's bytes from `begin` on, and notes the game's messages in it.
fn open(
    client: &mut Client,
    (stage, declared): (&Stage, &Declared),
    (number, begin): (u32, usize),
    Buffer { bytes, values }: &mut Buffer,
    opening: &mut Opening,
    opened: &mut Vec<Opened>,
    stats: &mut TickStats,
) {
    let Opening { messages, assembled } = opening;
    messages.clear();
    assembled.clear();
    let end = bytes.len();
    let datagram = &mut bytes[begin..];
    stats.datagrams_in += 1;
    stats.bytes_in += datagram.len() as u64;
    let address = datagram.as_ptr().addr();
    let outcome =
        client.connection.receive(stage.now, datagram, &mut Found { messages, address, begin, end, assembled });
    if outcome.is_err() {
        stats.datagrams_refused += 1;
        return;
    }
    bytes.extend_from_slice(assembled);
    // It opened, so it is the client's own: this is what counts against it.
    let verdict = client.allowance.spend(end - begin, stage.now);
    if verdict == Verdict::Dismiss {
        client.leave("sent more than its allowance");
    }
    client.meter.spent.packets_in += 1;
    client.meter.spent.bytes_in += (end - begin) as u64;
    for (channel, begin, end) in messages.drain(..) {
        let said = Said::of(channel, &bytes[begin..end], client.epoch, declared);
        let begin = begin + said.header_bytes();
        let says_seen = matches!(said, Said::Game(kind) if declared.says_seen(kind));
        let seen = says_seen.then(|| bytes[begin..end].first_chunk::<SEEN_BYTES>().copied());
        let begin = if let Some(Some(_)) = seen { begin + SEEN_BYTES } else { begin };
        let heard = match said {
            Said::Game(MessageKind::Input { .. }) if verdict != Verdict::Pass => None,
            Said::Game(kind) if seen == Some(None) => Some((kind, Heard::Refused)),
            Said::Game(kind) => Some((kind, declared.hear(&mut client.spent, stage.tick, kind, end - begin))),
            Said::StaleInput | Said::StaleRequest | Said::OtherSchema(_) | Said::Nothing => None,
        };
        // What the world is not given is no work for it: it counts as one message, and no more.
        let unpacked = match heard {
            Some((kind, Heard::Taken)) => declared.unpack(kind, &bytes[begin..end], values),
            _ => None,
        };
        let price = unpacked.map_or(1, |value| value.price);
        // What was sent reliably and its world is to have is not lost by a client that stays.
        let is_owed = channel == Channel::Reliable && matches!(heard, Some((_, Heard::Taken)));
        let message_verdict = if is_owed {
            client.allowance.spend_reliable_message(price)
        } else {
            client.allowance.spend_message(price)
        };
        client.meter.spent.messages += 1;
        if message_verdict != Verdict::Pass {
            client.meter.spent.refused += 1;
            let refused =
                if price > 1 { &mut stats.dear_messages_over_allowance } else { &mut stats.messages_over_allowance };
            *refused += 1;
            if message_verdict == Verdict::Dismiss || is_owed {
                client.leave("sent more messages than its allowance");
            }
            if let (Some((kind, _)), Some(_)) = (heard, unpacked) {
                values.forget_last(declared.place(kind));
            }
            continue;
        }
        match (said, heard) {
            (_, Some((kind, Heard::Taken))) => {
                client.meter.spent.work += u64::from(price);
                stats.message_work += u64::from(price);
                let mut is_late = false;
                if let MessageKind::Input { number, .. } = kind {
                    is_late = !client.take_input(number);
                    note_input(client.key.0, number);
                }
                let seen = seen.flatten().map(|seen| client.seen_moment(Seen::decode(seen, stage.tick)));
                let (client, value) = (client.key, unpacked.map(|value| value.index));
                let (begin, end) = (begin as u32, end as u32);
                opened.push(Opened { number, client, kind, is_late, seen, begin, end, value });
            }
            (_, Some((_, Heard::Excess))) => stats.said_over_limit += 1,
            (_, Some((_, Heard::Refused))) | (Said::Nothing, None) => stats.messages_refused += 1,
            (Said::Game(_), None) => stats.inputs_over_allowance += 1,
            (Said::StaleInput, None) => stats.inputs_stale += 1,
            (Said::StaleRequest, None) => stats.requests_stale += 1,
            // It says so more than once, in case of loss.
            (Said::OtherSchema(_), None) if client.is_gone() => {}
            (Said::OtherSchema(schema), None) => {
                stats.schema_mismatches += 1;
                tell_of_mismatch(client, schema);
                client.leave("it was built from another version of the game");
            }
        }
    }
}

/// What a message is, before anybody looks into it.
enum Said {
    /// For the game.
    Game(MessageKind),
    /// For a world that the client has left, as the next.
    StaleInput,
    StaleRequest,
    /// The client was built from another version of the game, with this schema hash.
    OtherSchema(u64),
    /// Nothing that a client may say.
    Nothing,
}

impl Said {
    fn of(channel: Channel, message: &[u8], client_epoch: u8, declared: &Declared) -> Self {
        match (channel, message) {
            (Channel::Unreliable, [control::INPUT, epoch, low, high, kind, ..]) if *epoch == client_epoch => {
                Self::Game(MessageKind::Input { number: u16::from_le_bytes([*low, *high]), kind: PackedId(*kind) })
            }
            (Channel::Unreliable, [control::INPUT, _, _, _, _, ..]) => Self::StaleInput,
            (Channel::Reliable, &[control::REQUEST, epoch, kind, ..]) => {
                let kind = PackedId(kind);
                let is_for_here = epoch == client_epoch || declared.is_for_any_world(kind);
                if is_for_here { Self::Game(MessageKind::Request { kind }) } else { Self::StaleRequest }
            }
            _ => SchemaHash::decode(message).map_or(Self::Nothing, |SchemaHash(hash)| Self::OtherSchema(hash)),
        }
    }

    /// What the game is not given of the message.
    fn header_bytes(&self) -> usize {
        match self {
            Self::Game(MessageKind::Input { .. }) => INPUT_HEADER_BYTES,
            Self::Game(MessageKind::Request { .. }) => REQUEST_HEADER_BYTES,
            Self::StaleInput | Self::StaleRequest | Self::OtherSchema(_) | Self::Nothing => 0,
        }
    }
}

/// Tells one client: takes in what arrived and what did not, looks at what is near, and writes its packets, sealed
/// straight into the worker's send batch.
fn tell(
    client: &mut Client,
    replication: &WorldReplication,
    (views, traffic): (&mut ViewScratch, &mut Traffic),
    now: Nanos,
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
    let budget_bytes = pacing.begin_tick(acked, lost);
    view.set_budget(budget_bytes);
    // In a large world it is seldom a client's turn, and then its share of the phase before goes on.
    let wants_refresh = replication.wants_refresh(view);
    if wants_refresh {
        phases.next(site!("replication.interest"));
        replication.refresh(view, views);
    }
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

fn end_reason(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Disconnected => "disconnected by the client",
        EndReason::TimedOut => "timed out",
        EndReason::Refused(_) => "broke the rules of the channels",
    }
}
