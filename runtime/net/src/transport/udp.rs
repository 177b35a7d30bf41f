//! Datagrams over UDP sockets, in batches.
//!
//! Several sockets on one port (SO_REUSEPORT) let the kernel's work for arriving datagrams spread over
//! cores; it picks the socket by the client's address, so a client's datagrams stay in order. One thread
//! drains them all, in turns. Each worker sends through its own batch; a socket may be shared by several,
//! since the kernel does not mind and neither holds a lock of ours.
//!
//! A datagram that can not be sent at once is dropped and counted, never waited for.
//!
//! Memory: 128 KiB for the receiver, 88 KiB per sender, at start; nothing after.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use throng_platform::poll::{WAIT_FDS_MAX, wait_readable};
use throng_platform::time::Nanos;
use throng_platform::udp::{
    BATCH_DATAGRAMS_MAX, BindError, BindOptions, BindWarning, ReceiveBatch, SendBatch, SendOutcome, UdpSocket,
};

use throng_profiler::scoped;

use super::{DatagramSender, PacketSink, ServerTransport};
use crate::protocol::PACKET_BYTES_MAX;

/// A sender hands its datagrams to the kernel when so many have gathered. The call itself is cheap beside the datagrams (about 3.5 us
/// each), so that larger batches gain nothing, and at the end of a frame a worker has fewer left to send while others wait.
const FLUSH_AT_DATAGRAMS: usize = 16;

/// The sockets of one server.
pub struct UdpTransport {
    sockets: Vec<Arc<UdpSocket>>,
    batch: ReceiveBatch,
    /// Where the next receive begins, so that a busy first socket does not starve the others.
    turn: usize,
    receive_errors: u64,
}

impl UdpTransport {
    /// Opens `sockets` sockets [1 to 32] on `address`; with port 0 the kernel picks one port for all.
    ///
    /// The buffers are the kernel's, for each socket (bytes). Receiving, too small: a burst during a long
    /// frame is lost; too large: after a stall the server works through what nobody waits for any more.
    /// Sending, too small: a tick of many worlds at once is dropped; too large: costs kernel memory only.
    pub fn bind(
        address: SocketAddr,
        sockets: usize,
        receive_buffer_bytes: usize,
        send_buffer_bytes: usize,
    ) -> Result<(Self, Vec<BindWarning>), BindError> {
        let sockets = sockets.clamp(1, WAIT_FDS_MAX);
        let options = BindOptions { reuse_port: sockets > 1, receive_buffer_bytes, send_buffer_bytes };
        let (first, warnings) = UdpSocket::bind(address, &options)?;
        let shared = first.local_addr();
        let mut bound = vec![Arc::new(first)];
        while bound.len() < sockets {
            // The same warnings again; one of each is enough.
            let (socket, _) = UdpSocket::bind(shared, &options)?;
            bound.push(Arc::new(socket));
        }
        let transport = UdpTransport { sockets: bound, batch: ReceiveBatch::new(), turn: 0, receive_errors: 0 };
        Ok((transport, warnings))
    }

    /// Datagrams dropped because they were longer than any packet.
    pub fn truncated(&self) -> u64 {
        self.batch.truncated()
    }

    /// Receives that the kernel answered with an error.
    pub fn receive_errors(&self) -> u64 {
        self.receive_errors
    }
}

impl ServerTransport for UdpTransport {
    /// `max` is rounded up to whole batches of 64: a batch that was taken from the kernel is handed over.
    fn receive(&mut self, each: &mut dyn FnMut(SocketAddr, &mut [u8]), max: usize) -> usize {
        let (mut count, mut empty) = (0, 0);
        while count < max && empty < self.sockets.len() {
            let socket = &self.sockets[self.turn];
            let taken = socket.receive_batch(&mut self.batch).unwrap_or_else(|_| {
                self.receive_errors += 1;
                0
            });
            for (from, datagram) in self.batch.iter_mut().take(taken) {
                each(from, datagram);
            }
            count += taken;
            empty = if taken < BATCH_DATAGRAMS_MAX { empty + 1 } else { 0 };
            self.turn = (self.turn + 1) % self.sockets.len();
        }
        count
    }

    fn sender(&mut self, worker: usize) -> Box<dyn DatagramSender> {
        let socket = self.sockets[worker % self.sockets.len()].clone();
        Box::new(UdpSender { socket, batch: SendBatch::new(), outcome: SendOutcome::default() })
    }

    fn wait(&self, timeout: Option<Nanos>) {
        let mut descriptors = [self.sockets[0].as_fd(); WAIT_FDS_MAX];
        for (descriptor, socket) in descriptors.iter_mut().zip(&self.sockets) {
            *descriptor = socket.as_fd();
        }
        // An error here means the next receive will show one; there is nothing else to wait for.
        let _ = wait_readable(&descriptors[..self.sockets.len()], timeout);
    }

    fn local_addr(&self) -> SocketAddr {
        self.sockets[0].local_addr()
    }
}

/// A worker's batch and the socket it leaves through.
struct UdpSender {
    socket: Arc<UdpSocket>,
    batch: SendBatch,
    /// Of full batches since the last flush.
    outcome: SendOutcome,
}

impl PacketSink for UdpSender {
    fn buffer(&mut self) -> &mut [u8] {
        let buffer = self.batch.buffer();
        const { assert!(throng_platform::udp::SEND_BYTES_MAX >= PACKET_BYTES_MAX) }
        buffer
    }

    fn commit(&mut self, to: SocketAddr, len: usize) {
        self.batch.commit(to, len);
        if self.batch.len() >= FLUSH_AT_DATAGRAMS {
            self.outcome += self.socket.send_batch(&mut self.batch);
        }
    }
}

impl DatagramSender for UdpSender {
    #[scoped("net.send")]
    fn flush(&mut self) -> SendOutcome {
        self.outcome += self.socket.send_batch(&mut self.batch);
        std::mem::take(&mut self.outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn loopback(sockets: usize) -> UdpTransport {
        UdpTransport::bind("127.0.0.1:0".parse().unwrap(), sockets, 1 << 20, 1 << 20).unwrap().0
    }

    /// Each of `clients` sends `each` numbered datagrams to a server of `sockets` sockets. All arrive, a
    /// client's in order.
    fn check(sockets: usize, clients: usize, each: u8) {
        let mut server = loopback(sockets);
        let mut senders: Vec<_> = (0..clients).map(|_| loopback(1)).collect();
        for sender in &mut senders {
            let mut out = sender.sender(0);
            for number in 0..each {
                out.buffer()[0] = number;
                out.commit(server.local_addr(), 1);
            }
            assert_eq!(out.flush(), SendOutcome { sent: each as usize, dropped: 0 });
        }
        let mut arrived: HashMap<SocketAddr, Vec<u8>> = HashMap::new();
        let mut count = 0;
        while count < clients * each as usize {
            server.wait(Some(Nanos::from_secs(5)));
            let taken =
                server.receive(&mut |from, datagram| arrived.entry(from).or_default().push(datagram[0]), usize::MAX);
            assert!(taken > 0, "{count} datagrams arrived, and no more");
            count += taken;
        }
        for sender in &senders {
            assert!(arrived[&sender.local_addr()].iter().copied().eq(0..each));
        }
    }

    #[test]
    fn more_than_a_batch_arrives_in_order() {
        check(1, 1, 200);
    }

    #[test]
    fn several_sockets_on_a_port_keep_the_order_of_each_client() {
        check(4, 20, 100);
    }

    #[test]
    fn a_budget_ends_the_call_and_the_rest_waits() {
        let (mut server, mut client) = (loopback(1), loopback(1));
        let mut out = client.sender(0);
        for _ in 0..150 {
            out.commit(server.local_addr(), 1);
        }
        assert_eq!(out.flush().sent, 150);
        server.wait(Some(Nanos::from_secs(5)));
        assert_eq!(server.receive(&mut |_, _| {}, 1), 64);
        assert_eq!(server.receive(&mut |_, _| {}, 1_000), 86);
        assert_eq!(server.receive(&mut |_, _| {}, 1_000), 0);
    }
}
