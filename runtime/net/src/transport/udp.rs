//! Datagrams over UDP sockets, in batches.
//!
//! Several sockets on one port (SO_REUSEPORT) let the kernel's work for arriving datagrams spread over
//! cores; it picks the socket by the client's address, so a client's datagrams stay in order. One thread
//! drains them all, in turns. Each worker sends through its own batch; a socket may be shared by several,
//! since the kernel does not mind and neither holds a lock of ours.
//!
//! Consecutive datagrams of one size to one client, and a shorter one after them, leave together at a third of the cost
//! (see `throng_platform::udp`): whoever has several packets for a client commits them one after the other, all but the
//! last equally long.
//!
//! A datagram that can not be sent at once is dropped and counted, never waited for.
//!
//! Memory: 128 KiB for the receiver, 88 KiB per sender, at start; nothing after.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use throng_platform::poll::{WAIT_FDS_MAX, wait_readable};
use throng_platform::time::Nanos;
use throng_platform::udp::{
    BATCH_DATAGRAMS_MAX, BindError, BindOptions, BindWarning, ReceiveBatch, SegmentationStats, SendBatch, SendOutcome,
    UdpSocket,
};

use throng_profiler::{log_category, log_warn, scoped};

use super::{DatagramSender, PacketSink, ServerTransport};
use crate::protocol::PACKET_BYTES_MAX;

/// A sender hands its datagrams to the kernel when so many have gathered. The call itself is cheap beside the datagrams
/// (1 to 4 us each), so that larger batches gain nothing but fewer trains that are cut in two by a batch's end; and at
/// the end of a frame a worker has fewer left to send while others wait.
const FLUSH_AT_DATAGRAMS: usize = 32;
const _: () = assert!(FLUSH_AT_DATAGRAMS <= BATCH_DATAGRAMS_MAX);

/// One descriptor of those that a sleep ends for is another's.
const SOCKETS_MAX: usize = WAIT_FDS_MAX - 1;

log_category!(
    /// What sockets and devices do.
    NET = "net.udp"
);

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
        let sockets = sockets.clamp(1, SOCKETS_MAX);
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

    /// How often datagrams to one client left together, over all sockets.
    pub fn segmentation(&self) -> SegmentationStats {
        let none = SegmentationStats { is_used: true, merged: 0, refused: 0 };
        self.sockets.iter().map(|socket| socket.segmentation()).fold(none, |sum, socket| SegmentationStats {
            is_used: sum.is_used && socket.is_used,
            merged: sum.merged + socket.merged,
            refused: sum.refused + socket.refused,
        })
    }

    /// Receives that the kernel answered with an error.
    pub fn receive_errors(&self) -> u64 {
        self.receive_errors
    }

    /// As [`ServerTransport::wait`], and until `other` can be read.
    pub(super) fn wait_or(&self, other: BorrowedFd<'_>, timeout: Option<Nanos>) {
        let mut descriptors = [other; WAIT_FDS_MAX];
        for (descriptor, socket) in descriptors[1..].iter_mut().zip(&self.sockets) {
            *descriptor = socket.as_fd();
        }
        // An error here means the next receive will show one; there is nothing else to wait for.
        let _ = wait_readable(&descriptors[..=self.sockets.len()], timeout);
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
        self.wait_or(self.sockets[0].as_fd(), timeout);
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
        if self.socket.take_segmentation_refusal() {
            log_warn!(
                NET,
                "the network device does not segment datagrams (`ethtool -k` lists what it does): they are sent one by one"
            );
        }
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

    /// Trains to many clients, through more than a batch: each client has its own, whole and in order.
    #[test]
    fn packets_that_leave_together_arrive_in_order() {
        let mut server = loopback(1);
        let mut clients: Vec<_> = (0..20).map(|_| loopback(1)).collect();
        let mut out = server.sender(0);
        let sizes = [1_200, 1_200, 1_200, 300];
        for client in &clients {
            for (number, size) in (0..).zip(sizes) {
                out.buffer()[0] = number;
                out.commit(client.local_addr(), size);
            }
        }
        assert_eq!(out.flush(), SendOutcome { sent: 80, dropped: 0 });
        let stats = server.segmentation();
        // 80 datagrams in batches of 32 cut no train of four.
        assert_eq!((stats.merged, stats.refused), (if stats.is_used { 60 } else { 0 }, 0));
        for client in &mut clients {
            let mut arrived = Vec::new();
            while arrived.len() < sizes.len() {
                client.wait(Some(Nanos::from_secs(5)));
                let taken = client.receive(&mut |_, datagram| arrived.push((datagram[0], datagram.len())), usize::MAX);
                assert!(taken > 0, "{arrived:?} arrived, and no more");
            }
            assert!(arrived.into_iter().eq((0..).zip(sizes)));
        }
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
