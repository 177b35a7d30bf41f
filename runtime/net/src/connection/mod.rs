//! Connection: messages, acks and losses on one sealed link.
//!
//! A world owns the connections of its clients by value, and they move with them: keys, queues, counters,
//! nothing shared. A client owns one of the same kind. Each side calls, per tick:
//!
//! ```text
//!   receive(datagram)*  ->  messages                   update()  ->  acked, lost
//!   send_reliable*, send_unreliable*                   room() -> send_packet(message) -> its number
//!   while wants_packet() { send_packet(nothing) }
//! ```
//!
//! The number that `send_packet` returns comes back exactly once, as acked or as lost; replication hangs what
//! a packet carried on it.
//!
//! | file | idea |
//! | --- | --- |
//! | `packet` | the bytes: header and chunks |
//! | `sequence` | numbers that wrap |
//! | `acks` | which packets arrived, which are lost |
//! | `rtt` | how long to wait for an ack |
//! | `reliable` | fragments, window, order |
//! | `unreliable` | the queue for the next packet |
//! | `channels` | all of these together, without encryption |
//! | `budget`, `blocks`, `ring` | 256 KiB of heap at most, booked at one desk |
//!
//! Runs on the thread of its world. A steady tick does not allocate. Cost for one packet each way: one
//! open, one seal, and well under a microsecond of this module.

mod acks;
mod blocks;
mod budget;
mod channels;
mod packet;
mod received;
mod reliable;
mod ring;
mod rtt;
mod sequence;
mod stats;
mod unreliable;

use std::net::SocketAddr;

use throng_platform::{
    prefetch::{self, FootprintDraft},
    time::Nanos,
};

pub use acks::AckOfUnsent;
pub use budget::{HEAP_BYTES_MAX, OverBudget};
pub use channels::{
    ACK_DELAY_MAX, Channels, IDLE_MAX, KEEP_ALIVE, PayloadError, QUIET_KEEP_ALIVE, ROOM_MAX, Refusal,
    UNRELIABLE_BYTES_MAX,
};
pub use packet::{Acks, Chunk, Chunks, FRAGMENT_BYTES_MAX, MalformedPacket, PacketHeader, PacketWriter, parse};
pub use received::{Channel, MessageSink, Received};
pub use reliable::{FragmentRefusal, MESSAGE_BYTES_MAX, STALL_MAX, SendError, WINDOW_FRAGMENTS};
pub use sequence::{FragmentId, PacketSequence};
pub use stats::ConnectionStats;

use crate::protocol::{ClientId, OpenError, Opened, SealedLink};

/// Until the other side is known to hold its half of the link, it is told so this often.
const UNCONFIRMED_KEEP_ALIVE: Nanos = Nanos::from_millis(100);
/// A goodbye is not acknowledged, so it is said this often (as netcode 1.02 asks).
const GOODBYES: usize = 10;

/// Where sealed packets go. Implemented by transports, and by tests.
pub trait PacketSink {
    /// Room for one datagram, at least [`PACKET_BYTES_MAX`](crate::protocol::PACKET_BYTES_MAX) bytes.
    fn buffer(&mut self) -> &mut [u8];
    /// Sends the first `len` bytes of the buffer to `to`, now or with others at the next flush.
    fn commit(&mut self, to: SocketAddr, len: usize);
}

/// Why a datagram was not taken. Count it and carry on; [`Connection::ended`] says when not to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    #[error(transparent)]
    Unopened(#[from] OpenError),
    #[error(transparent)]
    Payload(#[from] PayloadError),
}

/// Why a connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndReason {
    #[error("the other side disconnected")]
    Disconnected,
    #[error("nothing was heard for the timeout of its token")]
    TimedOut,
    #[error(transparent)]
    Refused(Refusal),
}

/// One side of a connection.
pub struct Connection {
    link: SealedLink,
    channels: Channels,
    address: SocketAddr,
    client_id: ClientId,
    disconnected: bool,
    bytes_sent: u64,
    bytes_received: u64,
    unopened: u64,
}

impl Connection {
    /// `address` is the other side's; `client_id` the client's, on both sides.
    pub fn new(link: SealedLink, address: SocketAddr, client_id: ClientId, now: Nanos) -> Self {
        Connection {
            link,
            channels: Channels::new(now),
            address,
            client_id,
            disconnected: false,
            bytes_sent: 0,
            bytes_received: 0,
            unopened: 0,
        }
    }

    /// Asks for the memory of a connection that is going to be used soon (`throng_platform::prefetch`).
    #[inline]
    pub fn prefetch(&self) {
        prefetch::value(self);
    }

    /// As [`prefetch`](Self::prefetch), some hundred nanoseconds later: what lies elsewhere and every packet reads.
    #[inline]
    pub fn prefetch_lists(&self) {
        self.channels.prefetch_lists();
    }

    /// Notes what lies elsewhere and every packet reads.
    pub fn note_lists(&self, footprint: &mut FootprintDraft) {
        self.channels.note_lists(footprint);
    }

    /// Opens a datagram in place and gives its messages to `into`. What it says of our packets is told by
    /// [`update`](Self::update).
    pub fn receive(
        &mut self,
        now: Nanos,
        datagram: &mut [u8],
        into: &mut impl MessageSink,
    ) -> Result<(), ReceiveError> {
        self.bytes_received += datagram.len() as u64;
        match self.link.open(datagram, now).inspect_err(|_| self.unopened += 1)? {
            Opened::Payload(payload) => self.channels.read(now, payload, into)?,
            Opened::KeepAlive => {}
            Opened::Disconnect => {
                self.disconnected = true;
                into.goodbye();
            }
        }
        Ok(())
    }

    /// Queues a message of 1 to [`MESSAGE_BYTES_MAX`] bytes that arrives once and in order.
    pub fn send_reliable(&mut self, message: &[u8]) -> Result<(), SendError> {
        self.channels.send_reliable(message)
    }

    /// Queues a message of 1 to [`UNRELIABLE_BYTES_MAX`] bytes for the next packet. When too many wait, the
    /// oldest is dropped and counted.
    pub fn send_unreliable(&mut self, message: &[u8]) -> Result<(), SendError> {
        self.channels.send_unreliable(message)
    }

    /// How long a message the next [`send_packet`](Self::send_packet) takes; 0: none. Exact until something
    /// is queued or received.
    pub fn room(&self, _now: Nanos) -> usize {
        self.channels.room()
    }

    /// Sends a packet: due reliable data, queued unreliable messages, acks, and `message`, which may be empty
    /// and is at most [`room`](Self::room) long. Sealed straight into the sink's buffer.
    pub fn send_packet(&mut self, now: Nanos, message: &[u8], sink: &mut dyn PacketSink) -> PacketSequence {
        if !self.link.confirmed() {
            let len = self.link.seal_keep_alive(sink.buffer(), now);
            self.commit(sink, len);
        }
        let mut sequence = PacketSequence::default();
        let len = self.link.seal_with(sink.buffer(), now, |payload| {
            let len;
            (sequence, len) = self.channels.write(now, message, payload);
            len
        });
        self.commit(sink, len);
        sequence
    }

    /// Whether a packet should go out although there is no message for it: data, an ack or a keep-alive is
    /// due. False again after a few calls of [`send_packet`](Self::send_packet).
    pub fn wants_packet(&self, now: Nanos) -> bool {
        if self.disconnected {
            return false;
        }
        let silence = now.saturating_sub(self.link.last_sent());
        (!self.link.confirmed() && silence >= UNCONFIRMED_KEEP_ALIVE) || self.channels.wants_packet(now)
    }

    /// Whether both sides are silent for longer while nobody has anything to say, as in a world that rests then: keep-alives
    /// come after [`QUIET_KEEP_ALIVE`], or after a quarter of the timeout where that is shorter, and not after
    /// [`KEEP_ALIVE`]. Both sides are to say the same.
    pub fn set_quiet(&mut self, is_quiet: bool) {
        let quiet = Nanos(self.link.timeout().0 / 4).min(QUIET_KEEP_ALIVE).max(KEEP_ALIVE);
        self.channels.set_keep_alive(if is_quiet { quiet } else { KEEP_ALIVE });
    }

    /// When there is something to do next if nothing is queued or received until then: a packet is due, one of ours is
    /// lost, or the other side has been silent for too long. Now or in the past: at once.
    pub fn next_due(&self, now: Nanos) -> Nanos {
        if self.disconnected {
            return now;
        }
        let timeout = self.link.last_received().saturating_add(self.link.timeout());
        let due = self.channels.next_due(now).min(timeout);
        if self.link.confirmed() { due } else { due.min(self.link.last_sent() + UNCONFIRMED_KEEP_ALIVE) }
    }

    /// Once a tick or more often: adds what became of our packets since the last call to `into.acked` and `into.lost`.
    pub fn update(&mut self, now: Nanos, into: &mut Received) {
        self.channels.update(now, self.link.last_received(), into);
    }

    /// Says goodbye, several times. The connection is to be dropped afterwards.
    pub fn close(&mut self, now: Nanos, sink: &mut dyn PacketSink) {
        for _ in 0..GOODBYES {
            let len = self.link.seal_disconnect(sink.buffer(), now);
            self.commit(sink, len);
        }
        self.disconnected = true;
    }

    /// Why the connection is over, if it is. Ask once a tick; tell the other side with
    /// [`close`](Self::close).
    pub fn ended(&self, now: Nanos) -> Option<EndReason> {
        if self.disconnected {
            return Some(EndReason::Disconnected);
        }
        if let Some(refusal) = self.channels.refusal() {
            return Some(EndReason::Refused(refusal));
        }
        self.timed_out(now).then_some(EndReason::TimedOut)
    }

    /// Whether nothing authentic came for the timeout of the token.
    pub fn timed_out(&self, now: Nanos) -> bool {
        now.saturating_sub(self.link.last_received()) >= self.link.timeout()
    }

    /// Counts so much less of the other side's silence: this side stood still for so long, and did not listen.
    pub fn forgive_silence(&mut self, now: Nanos, by: Nanos) {
        self.link.forgive_silence(now, by);
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn client_id(&self) -> ClientId {
        self.client_id
    }

    /// Smoothed round trip time; it includes the other side's wait before it answers. 200 ms before the
    /// first ack.
    pub fn rtt(&self) -> Nanos {
        self.channels.rtt()
    }

    /// Bytes of datagrams sent so far, sealed.
    pub fn bytes_sent(&self) -> u64 {
        self.bytes_sent
    }

    pub fn stats(&self) -> ConnectionStats {
        ConnectionStats {
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            unopened: self.unopened,
            ..self.channels.stats()
        }
    }

    /// The heap held now, to the byte; the connection itself is `size_of::<Connection>()` more. Never above
    /// [`HEAP_BYTES_MAX`].
    pub fn heap_bytes(&self) -> usize {
        self.channels.heap_bytes()
    }

    /// Asserts what must hold between calls; for tests and the simulator.
    pub fn check(&self) {
        self.channels.check();
    }

    /// `len` 0: the link has used up its sequences and says nothing any more.
    fn commit(&mut self, sink: &mut dyn PacketSink, len: usize) {
        if len > 0 {
            self.bytes_sent += len as u64;
            sink.commit(self.address, len);
        }
    }
}

const fn assert_send<T: Send>() {}
const _: () = assert_send::<Connection>();
