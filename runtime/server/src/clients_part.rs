//! Clients part: some of a world's clients with all that their packets are made of, so that any worker can serve them.
//!
//! What a tick does for each client is most of the work of a crowded world: open what it sent; look at what is near it, write its
//! snapshot, seal it, send it. None of that touches another client. So a world with many clients hands them out in lots, each a value of
//! its own: seats, datagrams or views, and a read-only share of what there is to tell. The lots are served on whichever workers are idle
//! (`throng_scheduler::Crew`), and the world and every client get the same bytes whatever their number.
//!
//! ```text
//! mail ----> lots: open --------> messages, back in the order of arrival ----> systems ----> lots: refresh, write, seal
//! ```
//!
//! Each worker seals into its own send batch, which it hands to the kernel before it goes to sleep. A lot never waits for another one.
//! Allocates nothing once its lists have grown. Cost: some 1 µs per datagram opened and 5 µs per client told, most of it the kernel's.

use std::cell::Cell;

use throng_net::{
    connection::{Channel, EndReason, Received},
    control,
};
use throng_platform::{
    allocator::{self, thread_counts},
    prefetch,
    time::Nanos,
};
use throng_profiler::{
    Phases, scope, site,
    thread::{enter_world, note_input},
};
use throng_replication::{Share, ViewId, WorldReplication};

use crate::{
    allowance::Verdict,
    client_seat::ClientSeat,
    game_world::{TickStats, WorkerContext},
    ids::{ClientKey, WorldId},
    tick_resources::MessageKind,
};

/// Packets for one client in one tick at most. Snapshots stop earlier, at their byte budget; the reliable channel when it is empty.
const PACKETS_PER_TICK_MAX: usize = 16;

/// Clients for which a lot is worth its way to another worker: at 5 µs each some 0.3 ms, against about 5 µs to wake a sleeper.
pub(crate) const CLIENTS_PER_LOT_MIN: usize = 64;

thread_local! {
    /// This thread runs a world's tick, so parts that it runs are that tick's, too.
    static IN_TICK: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread runs a tick for as long as this lives, also when the tick panics.
pub(crate) struct InTick;

impl InTick {
    pub fn begin() -> Self {
        IN_TICK.set(true);
        allocator::short_task(true);
        Self
    }
}

impl Drop for InTick {
    fn drop(&mut self) {
        IN_TICK.set(false);
        allocator::short_task(false);
    }
}

/// What is done with a lot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Open,
    Tell,
}

/// A datagram of a lot, still sealed.
#[derive(Clone, Copy)]
struct Letter {
    /// Its place among the world's mail.
    number: u32,
    /// Whose it is, by place in the lot.
    seat: u32,
    end: usize,
}

/// A message that a letter held.
struct Opened {
    number: u32,
    client: ClientKey,
    kind: MessageKind,
    end: usize,
}

/// Some clients of a world, away from it.
pub struct ClientsPart {
    pub(crate) work: Work,
    pub(crate) world: WorldId,
    pub(crate) tick: u32,
    pub(crate) now: Nanos,
    pub(crate) seats: Vec<ClientSeat>,
    pub(crate) share: Share,
    letters: Vec<Letter>,
    letter_bytes: Vec<u8>,
    opened: Vec<Opened>,
    opened_bytes: Vec<u8>,
    pub(crate) stats: TickStats,
}

impl ClientsPart {
    pub(crate) fn new(world: WorldId) -> Self {
        Self {
            work: Work::Open,
            world,
            tick: 0,
            now: Nanos::ZERO,
            seats: Vec::new(),
            share: Share::default(),
            letters: Vec::new(),
            letter_bytes: Vec::new(),
            opened: Vec::new(),
            opened_bytes: Vec::new(),
            stats: TickStats::default(),
        }
    }

    /// Gives it a datagram of the seat at place `seat` of the lot, in the order of arrival.
    pub(crate) fn add_letter(&mut self, number: u32, seat: usize, datagram: &[u8]) {
        self.letter_bytes.extend_from_slice(datagram);
        self.letters.push(Letter { number, seat: seat as u32, end: self.letter_bytes.len() });
    }

    /// Does the work, on the world's own worker or on one that helps.
    pub(crate) fn run(&mut self, worker: &mut WorkerContext) {
        if IN_TICK.get() {
            return self.work(worker);
        }
        let _in_world = enter_world(self.world.0, self.tick);
        let before = thread_counts().allocations;
        let in_tick = InTick::begin();
        self.work(worker);
        drop(in_tick);
        self.stats.allocations += thread_counts().allocations - before;
    }

    fn work(&mut self, worker: &mut WorkerContext) {
        self.stats = TickStats::default();
        match self.work {
            Work::Open => self.open(worker),
            Work::Tell => self.tell(worker),
        }
    }

    fn open(&mut self, worker: &mut WorkerContext) {
        scope!("net.open");
        let Self { seats, letters, letter_bytes, opened, opened_bytes, stats, now, .. } = self;
        let mut begin = 0;
        for place in 0..letters.len() {
            let connection = |letter: &Letter| &seats[letter.seat as usize].connection;
            let next = |letter: &Letter| connection(letter).prefetch_lists();
            prefetch::look_ahead(letters, place, next, |letter| connection(letter).prefetch());
            let Letter { number, seat, end } = letters[place];
            let datagram = &mut letter_bytes[begin..end];
            begin = end;
            open(&mut seats[seat as usize], *now, datagram, &mut worker.received, stats, |client, kind, bytes| {
                opened_bytes.extend_from_slice(bytes);
                opened.push(Opened { number, client, kind, end: opened_bytes.len() });
            });
        }
        letters.clear();
        letter_bytes.clear();
    }

    fn tell(&mut self, worker: &mut WorkerContext) {
        let mut phases = Phases::begin(site!("replication.send"));
        tell_all(&mut self.seats, &mut self.share, self.now, &mut self.stats, worker, &mut phases);
    }

    /// Forgets the messages that were taken out.
    fn clear_opened(&mut self) {
        self.opened.clear();
        self.opened_bytes.clear();
    }
}

/// Gives all messages of all lots, in the order in which their datagrams arrived.
pub(crate) fn take_opened(parts: &mut [ClientsPart], mut each: impl FnMut(ClientKey, MessageKind, &[u8])) {
    /// Lots of one world at most, as the world makes them.
    const PARTS_MAX: usize = crate::game_world::LOTS_MAX;
    let mut next = [0; PARTS_MAX];
    let oldest = |parts: &[ClientsPart], next: &[usize; PARTS_MAX]| {
        let waiting = parts.iter().enumerate();
        let numbers = waiting.filter_map(|(lot, part)| Some((part.opened.get(next[lot])?.number, lot)));
        numbers.min().map(|(_, lot)| lot)
    };
    while let Some(lot) = oldest(parts, &next) {
        let part = &parts[lot];
        let begin = next[lot].checked_sub(1).map_or(0, |before| part.opened[before].end);
        let Opened { client, kind, end, .. } = part.opened[next[lot]];
        each(client, kind, &part.opened_bytes[begin..end]);
        next[lot] += 1;
    }
    parts.iter_mut().for_each(ClientsPart::clear_opened);
}

/// Opens one datagram of a client and gives the game's messages in it to `push`.
pub(crate) fn open(
    seat: &mut ClientSeat,
    now: Nanos,
    datagram: &mut [u8],
    received: &mut Received,
    stats: &mut TickStats,
    mut push: impl FnMut(ClientKey, MessageKind, &[u8]),
) {
    stats.datagrams_in += 1;
    stats.bytes_in += datagram.len() as u64;
    received.clear();
    let outcome = seat.connection.receive(now, datagram, received);
    // What a packet acknowledged before it turned out to be malformed is acknowledged.
    seat.note_delivery(received);
    if outcome.is_err() {
        stats.datagrams_refused += 1;
        return;
    }
    // It opened, so it is the client's own: this is what counts against it.
    let verdict = seat.allowance.spend(datagram.len(), now);
    if verdict == Verdict::Dismiss {
        seat.leave("sent more than its allowance");
    }
    for message in received.messages() {
        match message {
            (Channel::Unreliable, [control::INPUT, epoch, low, high, bytes @ ..]) => {
                let number = u16::from_le_bytes([*low, *high]);
                if *epoch != seat.epoch {
                    stats.inputs_stale += 1;
                } else if verdict != Verdict::Pass {
                    stats.inputs_over_allowance += 1;
                } else {
                    seat.take_input(number);
                    note_input(seat.client.0, number);
                    push(seat.client, MessageKind::Input { number }, bytes);
                }
            }
            (Channel::Reliable, bytes @ [kind, ..]) if *kind >= control::GAME_MIN => {
                push(seat.client, MessageKind::Reliable, bytes);
            }
            _ => stats.datagrams_refused += 1,
        }
    }
}

/// A world's clients as telling them needs them: all of them at home, or a share of them on another worker.
pub(crate) trait Views {
    fn acked(&mut self, view: ViewId, packet: u16);
    fn lost(&mut self, view: ViewId, packet: u16);
    fn set_budget(&mut self, view: ViewId, bytes_per_tick: u32);
    fn refresh(&mut self, view: ViewId);
    fn write_snapshot(&mut self, view: ViewId, input: u16, out: &mut [u8]) -> usize;
    fn sent(&mut self, view: ViewId, packet: u16);
    fn prefetch(&self, view: ViewId);
    fn prefetch_lists(&self, view: ViewId);
}

macro_rules! views {
    ($who:ty, $refresh:expr) => {
        impl Views for $who {
            fn acked(&mut self, view: ViewId, packet: u16) {
                <$who>::acked(self, view, packet);
            }
            fn lost(&mut self, view: ViewId, packet: u16) {
                <$who>::lost(self, view, packet);
            }
            fn set_budget(&mut self, view: ViewId, bytes_per_tick: u32) {
                <$who>::set_budget(self, view, bytes_per_tick);
            }
            fn refresh(&mut self, view: ViewId) {
                $refresh(self, view);
            }
            fn write_snapshot(&mut self, view: ViewId, input: u16, out: &mut [u8]) -> usize {
                <$who>::write_snapshot(self, view, input, out)
            }
            fn sent(&mut self, view: ViewId, packet: u16) {
                <$who>::sent(self, view, packet);
            }
            fn prefetch(&self, view: ViewId) {
                <$who>::prefetch(self, view);
            }
            fn prefetch_lists(&self, view: ViewId) {
                <$who>::prefetch_lists(self, view);
            }
        }
    };
}
views!(Share, Share::refresh);
// At home all views are refreshed at once, before the first is told.
views!(WorldReplication, |_: &mut WorldReplication, _| ());

/// Tells clients one after the other, and asks for the memory of those to come: it lies in a dozen places for each, and with a thousand
/// clients none of them is near when it is needed.
pub(crate) fn tell_all(
    seats: &mut [ClientSeat],
    views: &mut impl Views,
    now: Nanos,
    stats: &mut TickStats,
    worker: &mut WorkerContext,
    phases: &mut Phases,
) {
    for index in 0..seats.len() {
        let next = |seat: &ClientSeat| {
            views.prefetch_lists(seat.view);
            seat.connection.prefetch_lists();
        };
        let after_next = |seat: &ClientSeat| {
            views.prefetch(seat.view);
            seat.connection.prefetch();
        };
        prefetch::look_ahead(seats, index, next, after_next);
        tell(&mut seats[index], views, now, stats, worker, phases);
    }
}

/// Tells one client: takes in what arrived and what did not, looks at what is near, and writes its packets, sealed straight into the
/// worker's send batch.
fn tell(
    seat: &mut ClientSeat,
    views: &mut impl Views,
    now: Nanos,
    stats: &mut TickStats,
    worker: &mut WorkerContext,
    phases: &mut Phases,
) {
    let WorkerContext { sender, received, snapshot, .. } = worker;
    received.clear();
    seat.connection.update(now, received);
    seat.note_delivery(received);
    let (acked, lost) = (seat.acked.len() as u32, seat.lost.len() as u32);
    seat.acked.drain(..).for_each(|packet| views.acked(seat.view, packet.0));
    seat.lost.drain(..).for_each(|packet| views.lost(seat.view, packet.0));
    stats.packets_lost += u64::from(lost);
    if let Some(reason) = seat.connection.ended(now) {
        seat.leave(end_reason(reason));
        return;
    }
    let budget_bytes = seat.pacing.begin_tick(acked, lost);
    views.set_budget(seat.view, budget_bytes);
    phases.next(site!("replication.interest"));
    views.refresh(seat.view);
    phases.next(site!("replication.send"));
    let bytes_before = seat.connection.stats().bytes_sent;
    let packets_before = stats.packets_out;
    for _ in 0..PACKETS_PER_TICK_MAX {
        snapshot.resize(seat.connection.room(now), 0);
        // With nothing to spend what can wait waits: changes are owed until they are told.
        let length = if budget_bytes == 0 { 0 } else { views.write_snapshot(seat.view, seat.last_input(), snapshot) };
        if length == 0 && !seat.connection.wants_packet(now) {
            break;
        }
        phases.next(site!("net.seal"));
        let packet = seat.connection.send_packet(now, &snapshot[..length], &mut **sender);
        if length > 0 {
            views.sent(seat.view, packet.0);
        }
        stats.packets_out += 1;
        phases.next(site!("replication.send"));
    }
    let bytes = seat.connection.stats().bytes_sent - bytes_before;
    seat.pacing.sent((stats.packets_out - packets_before) as u32, bytes as u32);
    stats.bytes_out += bytes;
}

fn end_reason(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Disconnected => "disconnected by the client",
        EndReason::TimedOut => "timed out",
        EndReason::Refused(_) => "broke the rules of the channels",
    }
}
