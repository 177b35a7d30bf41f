//! Tap: all that the server sends, opened where it leaves, before the network loses, doubles or delays any of it.
//!
//! What a client holds does not say what it was sent: packets get lost, and newer values hide older ones. So the
//! server's transport keeps a copy of each datagram, and of each player's link there is a second end, made from the
//! same token, that only listens: it follows the handshake by what the server says, and opens the rest.
//!
//! Costs a copy and an opening, some 2 µs, of each datagram; nothing without `SimulationSettings::tap`.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use throng_net::protocol::{
    ClientHandshake, ClientHandshakeSettings, ConnectToken, HandshakeState, OpenError, Opened, SealedLink,
};
use throng_net::transport::{DatagramSender, PacketSink, SendOutcome, ServerTransport};
use throng_platform::time::Nanos;

/// Datagrams with the address they go to. Of one client they are in the order in which they left.
pub(crate) type Outgoing = Arc<Mutex<Vec<(SocketAddr, Vec<u8>)>>>;

/// Takes what has left since it was last taken.
pub(crate) fn take(outgoing: &Outgoing) -> Vec<(SocketAddr, Vec<u8>)> {
    std::mem::take(&mut outgoing.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Keeps copies of what goes out through the transport inside it.
pub(crate) struct TapTransport {
    inner: Box<dyn ServerTransport>,
    /// Written by the workers, read between two frames.
    outgoing: Outgoing,
}

impl TapTransport {
    pub fn new(inner: Box<dyn ServerTransport>) -> (Self, Outgoing) {
        let outgoing = Outgoing::default();
        (Self { inner, outgoing: outgoing.clone() }, outgoing)
    }
}

impl ServerTransport for TapTransport {
    fn receive(&mut self, each: &mut dyn FnMut(SocketAddr, &mut [u8]), max: usize) -> usize {
        self.inner.receive(each, max)
    }

    fn sender(&mut self, worker: usize) -> Box<dyn DatagramSender> {
        Box::new(TapSender { inner: self.inner.sender(worker), outgoing: self.outgoing.clone() })
    }

    fn wait(&self, timeout: Option<Nanos>) {
        self.inner.wait(timeout);
    }

    fn local_addr(&self) -> SocketAddr {
        self.inner.local_addr()
    }
}

struct TapSender {
    inner: Box<dyn DatagramSender>,
    outgoing: Outgoing,
}

impl PacketSink for TapSender {
    fn buffer(&mut self) -> &mut [u8] {
        self.inner.buffer()
    }

    fn commit(&mut self, to: SocketAddr, len: usize) {
        let copy = (to, self.inner.buffer()[..len].to_vec());
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).push(copy);
        self.inner.commit(to, len);
    }
}

impl DatagramSender for TapSender {
    fn flush(&mut self) -> SendOutcome {
        self.inner.flush()
    }
}

/// A second end of a player's link, that only listens.
pub(crate) enum Listener {
    Connecting(Box<ClientHandshake>),
    Connected(Box<SealedLink>),
    /// Only while one becomes the other.
    Neither,
}

impl Listener {
    /// `token` and `seed` are those of the client.
    pub fn new(token: ConnectToken, now: Nanos, seed: [u8; 32]) -> Self {
        let settings = ClientHandshakeSettings { cookie_first: true };
        Self::Connecting(Box::new(ClientHandshake::new(token, settings, now, seed)))
    }

    /// Opens a datagram of the server in place; `None` for those that carry no packet.
    ///
    /// # Panics
    /// If it does not open: the tap would be deaf from then on.
    pub fn open<'a>(&mut self, now: Nanos, datagram: &'a mut [u8]) -> Option<&'a [u8]> {
        match self {
            Self::Connecting(handshake) => {
                handshake.handle(now, datagram);
                if handshake.state() == HandshakeState::Connected
                    && let Self::Connecting(handshake) = std::mem::replace(self, Self::Neither)
                {
                    *self = Self::Connected(Box::new(handshake.into_link()));
                }
                None
            }
            Self::Connected(link) => match link.open(datagram, now) {
                Ok(Opened::Payload(payload)) => Some(payload),
                Ok(Opened::KeepAlive | Opened::Disconnect) | Err(OpenError::Handshake) => None,
                Err(error) => panic!("what the server sends does not open: {error}"),
            },
            Self::Neither => None,
        }
    }
}
