//! Transports: what carries datagrams. The only sockets of the game are here.
//!
//! The frame speaks to a [`ServerTransport`]: it takes what has arrived, on the frame's own thread, and
//! gives each worker a [`DatagramSender`] that the worker alone fills and flushes. Nothing here knows a
//! client; a datagram is bytes and an address.
//!
//! | file | carries datagrams |
//! | --- | --- |
//! | `udp` | over sockets, in batches |
//! | `tunnels` | of clients that have no UDP: inside a stream of theirs, which somebody else holds |
//! | `memory` | inside the process, with losses and delays drawn from a seed: tests and the simulator |
//! | `impairment` | not at all: what becomes of one on a bad network |

pub mod impairment;
pub mod memory;
pub mod tunnels;
pub mod udp;

use std::net::SocketAddr;

use throng_platform::time::Nanos;
pub use throng_platform::udp::SendOutcome;

pub use crate::connection::PacketSink;
pub use impairment::Impairment;
pub use memory::{MemoryEndpoint, MemoryNetwork, MemoryServer};
pub use tunnels::{Refusal, Tunnel, TunnelStats, TunnelledTransport, Tunnels};
pub use udp::UdpTransport;

/// Where a server's datagrams come from. Owned by the thread of the frame.
pub trait ServerTransport: Send {
    /// Hands over what has arrived, at most `max` datagrams, and returns how many. Never waits; what is
    /// left waits for the next call. The bytes may be changed in place.
    fn receive(&mut self, each: &mut dyn FnMut(SocketAddr, &mut [u8]), max: usize) -> usize;

    /// A way out for one worker. Called once per worker, at start.
    fn sender(&mut self, worker: usize) -> Box<dyn DatagramSender>;

    /// Sleeps until a datagram has arrived, `timeout` has passed (`None`: no end), or a signal came.
    fn wait(&self, timeout: Option<Nanos>);

    /// Where clients send to.
    fn local_addr(&self) -> SocketAddr;
}

/// One worker's way out. `commit` flushes by itself when the batch is full.
pub trait DatagramSender: PacketSink + Send {
    /// Sends what is left. What became of everything since the last flush.
    fn flush(&mut self) -> SendOutcome;
}
