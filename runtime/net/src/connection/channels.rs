//! Channels: everything of a connection above encryption. Payloads in, payloads out.
//!
//! A packet is filled in this order:
//!
//! ```text
//!  | header 8 | reliable, at most its share | queued unreliable | the caller's message | more reliable |
//! ```
//!
//! The share keeps reliable data moving under a stream of snapshots and leaves the snapshots most of the
//! packet; what the caller does not use goes to reliable data after all. [`room`](Channels::room) is
//! computed by the same code that fills the packet, so it is exact.
//!
//! A packet takes effect completely or not at all: it is parsed, its acks are checked and its number is
//! looked up before anything changes.
//!
//! Sans-IO. A steady connection does not allocate; its heap is booked in one `HeapBudget`, and what a burst
//! took is given back after [`IDLE_MAX`].

use throng_platform::{prefetch::FootprintDraft, time::Nanos};

use super::acks::{AckOfUnsent, Arrival, Decided, Fate, PacketContents, REMEMBERED_MAX, ReceivedPackets, SentPackets};
use super::blocks::{BlockPool, pool_bytes_max};
use super::budget::{HEAP_BYTES_MAX, HeapBudget};
use super::packet::{
    Chunk, FRAGMENT_BYTES_MAX, FRAGMENT_OVERHEAD_BYTES, HEADER_BYTES, MalformedPacket, PacketHeader, PacketWriter,
    UNRELIABLE_OVERHEAD_BYTES, parse,
};
use super::received::{Channel, MessageSink, Received};
use super::reliable::{
    FragmentRefusal, RECEIVE_BLOCKS_MAX, ReliableReceiver, ReliableSender, SEND_BLOCKS_MAX, STALL_MAX, SendError,
};
use super::ring::Ring;
use super::rtt::RoundTrip;
use super::sequence::PacketSequence;
use super::stats::ConnectionStats;
use super::unreliable::{QUEUED_BLOCKS_MAX, UnreliableQueue};
use crate::protocol::PAYLOAD_BYTES_MAX;

/// How long received data may wait for an ack: one tick at 20 Hz.
pub const ACK_DELAY_MAX: Nanos = Nanos::from_millis(50);
/// So many packets are acked without waiting. Half of what a header can name, so that none falls out of it.
const UNACKED_MAX: u32 = 16;
/// A packet goes out after this silence, to keep firewalls open and the other side patient.
pub const KEEP_ALIVE: Nanos = Nanos::from_secs(1);
/// The same where both sides rest for as long as nobody has anything to say, at most: a quarter of the silence that a server
/// bears by its shipped settings, since the client does not know how long that is, and three in a row may be lost. Firewalls
/// forget a way after half a minute (RFC 4787).
pub const QUIET_KEEP_ALIVE: Nanos = Nanos::from_millis(2_500);
/// A peer of whom something came counts as heard for so long: more than any pause between two keep-alives.
const HEARD_FOR: Nanos = Nanos::from_secs(3);
const _: () = assert!(HEARD_FOR.0 > QUIET_KEEP_ALIVE.0);
/// What reliable data may take of a packet before the caller's message: one whole fragment.
const RELIABLE_SHARE_BYTES: usize = FRAGMENT_OVERHEAD_BYTES + FRAGMENT_BYTES_MAX;
/// The longest message for `send_packet`, in a packet that has nothing else to carry (bytes).
pub const ROOM_MAX: usize = PAYLOAD_BYTES_MAX - HEADER_BYTES - UNRELIABLE_OVERHEAD_BYTES;
/// The longest message for `send_unreliable`: it fits beside the reliable share, so it never waits twice.
pub const UNRELIABLE_BYTES_MAX: usize = ROOM_MAX - RELIABLE_SHARE_BYTES;
/// Unused memory is kept so long for the next burst.
pub const IDLE_MAX: Nanos = Nanos::from_secs(30);

// Every maximum reached at once stays within the budget, so `OverBudget` is a second check of the same bound.
const _: () = assert!(
    pool_bytes_max(SEND_BLOCKS_MAX + RECEIVE_BLOCKS_MAX + QUEUED_BLOCKS_MAX)
        + ReliableSender::HEAP_BYTES_MAX
        + ReliableReceiver::HEAP_BYTES_MAX
        + UnreliableQueue::HEAP_BYTES_MAX
        + SentPackets::HEAP_BYTES_MAX
        + Fates::BYTES_MAX
        <= HEAP_BYTES_MAX
);

/// Why a payload was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    #[error(transparent)]
    Malformed(#[from] MalformedPacket),
    #[error(transparent)]
    AckOfUnsent(#[from] AckOfUnsent),
    #[error("received before")]
    Duplicate,
    #[error("32 newer packets have arrived")]
    Late,
    /// The connection takes nothing any more; end it.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Why a connection takes nothing more from its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    Fragment(#[from] FragmentRefusal),
    #[error("no reliable data was acknowledged for {} s", STALL_MAX.as_secs_f64())]
    Unacknowledged,
    #[error("a reliable message was left unfinished for {} s", STALL_MAX.as_secs_f64())]
    Unfinished,
}

/// What became of packets: at most all whose fate was open.
type Fates = Ring<(PacketSequence, bool), REMEMBERED_MAX>;

/// Both directions of one connection.
#[derive(Default)]
pub struct Channels {
    received: ReceivedPackets,
    sent: SentPackets,
    /// What became of our packets since the last `update`, and whether each has arrived.
    fates: Fates,
    rtt: RoundTrip,
    sender: ReliableSender,
    receiver: ReliableReceiver,
    unreliable: UnreliableQueue,
    pool: BlockPool,
    budget: HeapBudget,
    last_sent: Nanos,
    /// After so long a silence of ours a packet goes out.
    keep_alive: Nanos,
    /// When anything was last kept in the pool.
    busy_at: Nanos,
    /// Packets with chunks that no header of ours has acknowledged yet.
    unacked: u32,
    refusal: Option<Refusal>,
    stats: ConnectionStats,
}

impl Channels {
    pub fn new(now: Nanos) -> Self {
        Channels { last_sent: now, busy_at: now, keep_alive: KEEP_ALIVE, ..Channels::default() }
    }

    #[inline]
    pub fn prefetch_lists(&self) {
        self.sent.prefetch();
        self.fates.prefetch();
    }

    /// Notes what every packet reads, beside itself.
    pub fn note_lists(&self, footprint: &mut FootprintDraft) {
        self.sent.note(footprint);
        self.fates.note(footprint);
    }

    /// Takes an authentic payload, and gives its messages to `into`. What it says of our packets is told by `update`.
    pub fn read(&mut self, now: Nanos, payload: &[u8], into: &mut impl MessageSink) -> Result<(), PayloadError> {
        if let Some(refusal) = self.refusal {
            return Err(refusal.into());
        }
        let (header, chunks) = parse(payload).inspect_err(|_| self.stats.malformed += 1)?;
        self.sent.check_acks(header.acks).inspect_err(|_| self.stats.acks_of_unsent += 1)?;
        match self.received.arrival(header.sequence) {
            Arrival::Fresh => {}
            Arrival::Duplicate => {
                self.stats.duplicates += 1;
                return Err(PayloadError::Duplicate);
            }
            Arrival::Late => {
                self.stats.late += 1;
                return Err(PayloadError::Late);
            }
        }
        self.take_acks(now, header);
        let mut any = false;
        for chunk in chunks {
            any = true;
            self.take_chunk(chunk, into)?;
        }
        self.received.mark(header.sequence);
        self.stats.packets_received += 1;
        self.unacked += u32::from(any);
        Ok(())
    }

    /// Queues a reliable message of 1 to 65,536 bytes.
    pub fn send_reliable(&mut self, message: &[u8]) -> Result<(), SendError> {
        self.sender.push(message, &mut self.pool, &mut self.budget)
    }

    /// Queues an unreliable message of 1 to [`UNRELIABLE_BYTES_MAX`] bytes; drops the oldest when there are
    /// too many.
    pub fn send_unreliable(&mut self, message: &[u8]) -> Result<(), SendError> {
        if message.is_empty() {
            return Err(SendError::Empty);
        }
        if message.len() > UNRELIABLE_BYTES_MAX {
            return Err(SendError::TooLarge);
        }
        self.unreliable.push(message, &mut self.pool, &mut self.budget).map_err(|_| SendError::Full)
    }

    /// How long a message the next [`write`](Self::write) takes: exactly this long fits, one byte more does
    /// not. 0: none.
    pub fn room(&self) -> usize {
        let mut space = PAYLOAD_BYTES_MAX - HEADER_BYTES;
        space -= self.sender.plan(RELIABLE_SHARE_BYTES);
        for len in self.unreliable.lengths() {
            match space.checked_sub(UNRELIABLE_OVERHEAD_BYTES + len) {
                Some(rest) => space = rest,
                None => break,
            }
        }
        space.saturating_sub(UNRELIABLE_OVERHEAD_BYTES)
    }

    /// Writes the next packet into `out`: its number and its length. A `message` longer than
    /// [`room`](Self::room) is a bug of the caller: dropped and counted.
    pub fn write(&mut self, now: Nanos, message: &[u8], out: &mut [u8; PAYLOAD_BYTES_MAX]) -> (PacketSequence, usize) {
        let sequence = self.sent.next();
        let header = PacketHeader { sequence, acks: self.received.acks() };
        let mut packet = PacketWriter::begin(out, header);
        let mut fragments = self.sender.write(&mut packet, RELIABLE_SHARE_BYTES, sequence, &self.pool);
        while let Some(queued) = self.unreliable.front()
            && UNRELIABLE_OVERHEAD_BYTES + queued.len() <= packet.space()
        {
            self.pool.read(queued, packet.unreliable(queued.len()));
            self.unreliable.pop(&mut self.pool);
        }
        if !message.is_empty() {
            let fits = UNRELIABLE_OVERHEAD_BYTES + message.len() <= packet.space();
            debug_assert!(fits, "the message is longer than its room");
            if fits {
                packet.unreliable(message.len()).copy_from_slice(message);
            } else {
                self.stats.oversize_dropped += 1;
            }
        }
        let space = packet.space();
        fragments += self.sender.write(&mut packet, space, sequence, &self.pool);

        let contents = PacketContents { awaits_ack: !packet.is_empty(), carries_fragments: fragments > 0 };
        let len = packet.len();
        self.sent.sent(now, contents, &mut self.budget);
        self.stats.packets_sent += 1;
        self.last_sent = now;
        self.unacked = 0;
        (sequence, len)
    }

    /// Whether a packet should go out although the caller has no message for it.
    pub fn wants_packet(&self, now: Nanos) -> bool {
        if self.refusal.is_some() {
            return false;
        }
        let silence = now.saturating_sub(self.last_sent);
        self.unacked >= UNACKED_MAX
            || (self.unacked > 0 && silence >= ACK_DELAY_MAX)
            || silence >= self.keep_alive
            || !self.unreliable.is_empty()
            || self.sender.has_due()
    }

    /// How long a silence of ours may last, and of the other side's as well: both change it together.
    pub fn set_keep_alive(&mut self, keep_alive: Nanos) {
        self.keep_alive = keep_alive;
    }

    /// When there is something to do next if nothing is queued or received until then: a packet is due, or one of ours is
    /// lost. In the past or now: at once. Stalls and unused memory are no reason, they are looked at on such an occasion.
    pub fn next_due(&self, now: Nanos) -> Nanos {
        if self.wants_packet(now) {
            return now;
        }
        let ack_or_keep_alive = if self.unacked > 0 { ACK_DELAY_MAX.min(self.keep_alive) } else { self.keep_alive };
        let due = self.last_sent.saturating_add(ack_or_keep_alive);
        self.sent.next_loss(self.rtt.loss_times(self.keep_alive)).map_or(due, |loss| due.min(loss))
    }

    /// Once a tick or more often: tells what became of our packets since the last call, those whose time is up
    /// included; notices a peer that stands still though it is heard, and returns memory that has been unused for long.
    /// `heard_at`: when anything came of the peer last, be it none of our packets.
    pub fn update(&mut self, now: Nanos, heard_at: Nanos, into: &mut Received) {
        while let Some((sequence, has_arrived)) = self.fates.pop_front() {
            if has_arrived { &mut into.acked } else { &mut into.lost }.push(sequence);
        }
        let times = self.rtt.loss_times(self.keep_alive);
        let Channels { sent, sender, stats, .. } = self;
        sent.expire(now, times, |decided| {
            stats.packets_lost += 1;
            into.lost.push(decided.sequence);
            if decided.contents.carries_fragments {
                sender.packet_lost(decided.sequence, true);
            }
        });
        let is_heard = now.saturating_sub(heard_at) <= HEARD_FOR;
        if self.sender.stalled(now, is_heard) {
            self.refusal.get_or_insert(Refusal::Unacknowledged);
        }
        if self.receiver.stalled(now, is_heard) {
            self.refusal.get_or_insert(Refusal::Unfinished);
        }
        self.release_unused(now);
    }

    /// Why this connection takes nothing any more, if so.
    pub fn refusal(&self) -> Option<Refusal> {
        self.refusal
    }

    /// Smoothed round trip time, with the other side's wait before it answers; 200 ms before the first ack.
    pub fn rtt(&self) -> Nanos {
        self.rtt.smoothed()
    }

    pub fn stats(&self) -> ConnectionStats {
        ConnectionStats {
            unreliable_dropped: self.unreliable.dropped(),
            fragments_resent: self.sender.resent(),
            fragments_duplicate: self.receiver.duplicates(),
            ..self.stats
        }
    }

    /// The heap held now, to the byte. Never above [`HEAP_BYTES_MAX`].
    pub fn heap_bytes(&self) -> usize {
        self.budget.held_bytes()
    }

    /// Asserts what must hold between calls.
    pub fn check(&self) {
        self.pool.check();
        self.sender.check();
        self.receiver.check();
        let blocks = self.sender.blocks() + self.receiver.blocks() + self.unreliable.blocks();
        assert_eq!(self.pool.blocks_used(), blocks, "every block has one owner");
        assert!(self.heap_bytes() <= HEAP_BYTES_MAX);
    }

    fn take_acks(&mut self, now: Nanos, header: PacketHeader) {
        let Channels { sent, sender, pool, stats, rtt, fates, budget, .. } = self;
        let round_trip = sent.acknowledge(header.acks, now, |Decided { sequence, fate, contents }| {
            // There are never more fates than packets that were open; a full budget would lose the oldest.
            while fates.push_back((sequence, fate == Fate::Acked), budget).is_err() && fates.pop_front().is_some() {
                debug_assert!(false, "fates are told before more packets are sent than are remembered");
            }
            match fate {
                Fate::Acked => {
                    stats.packets_acked += 1;
                    if contents.carries_fragments {
                        sender.packet_acked(sequence, pool);
                    }
                }
                Fate::Lost => {
                    stats.packets_lost += 1;
                    if contents.carries_fragments {
                        sender.packet_lost(sequence, false);
                    }
                }
            }
        });
        if let Some(measured) = round_trip {
            rtt.sample(measured);
        }
    }

    fn take_chunk(&mut self, chunk: Chunk<'_>, into: &mut impl MessageSink) -> Result<(), Refusal> {
        match chunk {
            Chunk::Unreliable(message) => into.message(Channel::Unreliable, message),
            Chunk::Fragment { id, last, bytes } => {
                let taken = self.receiver.receive((id, last, bytes), &mut self.pool, &mut self.budget, into);
                if let Err(refused) = taken {
                    self.refusal = Some(refused.into());
                    return Err(refused.into());
                }
            }
        }
        Ok(())
    }

    fn release_unused(&mut self, now: Nanos) {
        if !self.pool.is_idle() {
            self.busy_at = now;
            return;
        }
        if now.saturating_sub(self.busy_at) < IDLE_MAX {
            return;
        }
        self.busy_at = now;
        self.pool.release(&mut self.budget);
        self.sender.release(&mut self.budget);
        self.receiver.release(&mut self.budget);
        self.unreliable.release(&mut self.budget);
        self.fates.release(&mut self.budget);
    }
}
