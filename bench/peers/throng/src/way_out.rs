//! Way out: where workers' packets go: to memory, or through the transport of UDP and counted.
//!
//! A worker fills what is its own and hands it over when it flushes, once before a tick is done: so a packet takes no
//! lock.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use peers_scenario::{Outbox, Terms};
use throng_net::protocol::PACKET_BYTES_MAX;
use throng_net::transport::{DatagramSender, PacketSink, SendOutcome, ServerTransport, UdpTransport};

use crate::handshake::client_at;

/// Bytes that the kernel may hold of what a tick sends.
const SEND_BUFFER_BYTES: usize = 4 << 20;

/// What all workers have sent since it was last handed over. Written by workers when they flush, read between two
/// ticks.
#[derive(Clone, Default)]
pub struct Sent(Arc<Mutex<Batches>>);

#[derive(Default)]
struct Batches {
    full: Vec<Packets>,
    /// Emptied, for their memory.
    spare: Vec<Packets>,
    /// Packets and bytes that went through sockets, and datagrams that the kernel did not take.
    udp_packets: u64,
    udp_bytes: u64,
    dropped: usize,
    order: Vec<(u32, u32, u32, u32)>,
}

/// Packets one behind the other, each with its client and its end.
#[derive(Default)]
struct Packets {
    bytes: Vec<u8>,
    ends: Vec<(u32, u32)>,
}

impl Sent {
    /// Copies what was sent to the wire, by client: which worker served whom is chance.
    pub fn hand_over(&self, out: &mut Outbox) {
        let mut batches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Batches { full, spare, udp_packets, udp_bytes, dropped, order } = &mut *batches;
        assert_eq!(*dropped, 0, "the kernel takes everything");
        out.count_many(std::mem::take(udp_packets), std::mem::take(udp_bytes));
        order.clear();
        for (batch, packets) in (0..).zip(full.iter()) {
            let mut begin = 0;
            for &(client, end) in &packets.ends {
                order.push((client, batch, begin, end));
                begin = end;
            }
        }
        // Of one client they are all of one batch, one behind the other.
        order.sort_unstable();
        for &(client, batch, begin, end) in order.iter() {
            out.push(client, &full[batch as usize].bytes[begin as usize..end as usize]);
        }
        for mut packets in full.drain(..) {
            packets.bytes.clear();
            packets.ends.clear();
            spare.push(packets);
        }
    }
}

/// Gives workers their senders.
pub struct WayOut {
    sent: Sent,
    udp: Option<UdpTransport>,
}

impl WayOut {
    pub fn new(terms: &Terms, sent: Sent) -> Self {
        let bind = || {
            let address = "127.0.0.1:0".parse().expect("an address");
            let sockets = terms.workers.max(1) as usize;
            let bound = UdpTransport::bind(address, sockets, SEND_BUFFER_BYTES, SEND_BUFFER_BYTES);
            bound.expect("a port is free").0
        };
        Self { sent, udp: terms.udp.then(bind) }
    }

    pub fn sender(&mut self, worker: usize) -> Box<dyn DatagramSender> {
        let sent = self.sent.clone();
        match &mut self.udp {
            Some(udp) => Box::new(Counting { inner: udp.sender(worker), packets: 0, bytes: 0, sent }),
            None => Box::new(ToMemory::new(sent)),
        }
    }
}

struct ToMemory {
    buffer: Box<[u8; PACKET_BYTES_MAX]>,
    packets: Packets,
    sent: Sent,
}

impl ToMemory {
    fn new(sent: Sent) -> Self {
        Self { buffer: Box::new([0; PACKET_BYTES_MAX]), packets: Packets::default(), sent }
    }
}

impl PacketSink for ToMemory {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer[..]
    }

    fn commit(&mut self, to: SocketAddr, len: usize) {
        self.packets.bytes.extend_from_slice(&self.buffer[..len]);
        self.packets.ends.push((client_at(to), self.packets.bytes.len() as u32));
    }
}

impl DatagramSender for ToMemory {
    fn flush(&mut self) -> SendOutcome {
        if !self.packets.ends.is_empty() {
            let mut batches = self.sent.0.lock().unwrap_or_else(PoisonError::into_inner);
            let empty = batches.spare.pop().unwrap_or_default();
            batches.full.push(std::mem::replace(&mut self.packets, empty));
        }
        SendOutcome::default()
    }
}

struct Counting {
    inner: Box<dyn DatagramSender>,
    packets: u64,
    bytes: u64,
    sent: Sent,
}

impl PacketSink for Counting {
    fn buffer(&mut self) -> &mut [u8] {
        self.inner.buffer()
    }

    fn commit(&mut self, to: SocketAddr, len: usize) {
        self.inner.commit(to, len);
        self.packets += 1;
        self.bytes += len as u64;
    }
}

impl DatagramSender for Counting {
    fn flush(&mut self) -> SendOutcome {
        let outcome = self.inner.flush();
        let mut batches = self.sent.0.lock().unwrap_or_else(PoisonError::into_inner);
        batches.udp_packets += std::mem::take(&mut self.packets);
        batches.udp_bytes += std::mem::take(&mut self.bytes);
        batches.dropped += outcome.dropped;
        outcome
    }
}
