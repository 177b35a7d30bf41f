//! Way in: the transport that the shipped server is given: what clients send comes from memory, and what they are sent
//! goes the ways of `way_out`.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use throng_net::transport::{DatagramSender, ServerTransport};
use throng_platform::time::Nanos;

use crate::handshake::SERVER;
use crate::way_out::WayOut;

/// What clients have sent and the server has not received. Written by the driver between two ticks, read in them.
#[derive(Clone, Default)]
pub struct Waiting(Arc<Mutex<Datagrams>>);

/// Datagrams one behind the other, each with its sender and its end.
#[derive(Default)]
struct Datagrams {
    bytes: Vec<u8>,
    ends: Vec<(SocketAddr, usize)>,
    /// So many have been received.
    received: usize,
}

impl Waiting {
    pub fn push(&self, from: SocketAddr, datagram: &[u8]) {
        let mut datagrams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        datagrams.bytes.extend_from_slice(datagram);
        let end = datagrams.bytes.len();
        datagrams.ends.push((from, end));
    }

    fn receive(&self, each: &mut dyn FnMut(SocketAddr, &mut [u8]), max: usize) -> usize {
        let mut datagrams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Datagrams { bytes, ends, received } = &mut *datagrams;
        let count = max.min(ends.len() - *received);
        for index in *received..*received + count {
            let begin = index.checked_sub(1).map_or(0, |before| ends[before].1);
            let (from, end) = ends[index];
            each(from, &mut bytes[begin..end]);
        }
        *received += count;
        if *received == ends.len() {
            bytes.clear();
            ends.clear();
            *received = 0;
        }
        count
    }
}

/// Carries datagrams between the driver and the server.
pub struct DriverTransport {
    pub waiting: Waiting,
    pub way_out: WayOut,
}

impl ServerTransport for DriverTransport {
    fn receive(&mut self, each: &mut dyn FnMut(SocketAddr, &mut [u8]), max: usize) -> usize {
        self.waiting.receive(each, max)
    }

    fn sender(&mut self, worker: usize) -> Box<dyn DatagramSender> {
        self.way_out.sender(worker)
    }

    /// The driver decides when frames begin.
    fn wait(&self, _timeout: Option<Nanos>) {}

    fn local_addr(&self) -> SocketAddr {
        SERVER
    }
}
