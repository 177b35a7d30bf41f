//! Tap: all that the server sends, opened where it leaves, before the network loses, doubles or delays any of it.
//!
//! What a client holds does not say what it was sent: packets get lost, and newer values hide older ones. So the
//! server's transport keeps a copy of each datagram, and of each player's link there is a second end, made from the
//! same token, that only listens: it follows the handshake by what the server says, and opens the rest.
//!
//! Costs a copy and an opening, some 2 µs, of each datagram; nothing without `SimulationSettings::tap`.
//!
//! What the server receives can be kept, too, as it came: sealed, and a copy is all that it costs.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use throng_net::protocol::{
    ClientHandshake, ClientHandshakeSettings, ConnectToken, HandshakeState, OpenError, Opened, SealedLink,
};
use throng_net::transport::{DatagramSender, PacketSink, SendOutcome, ServerTransport};
use throng_platform::time::Nanos;

/// Datagrams with the client's address.
type Datagrams = Vec<(SocketAddr, Vec<u8>)>;

/// Those that went out, of one client in the order in which they left; or those that came in, in the order in which the server
/// took them.
#[derive(Clone, Default)]
pub(crate) struct Tapped(Arc<Mutex<Datagrams>>);

impl Tapped {
    fn keep(&self, client: SocketAddr, datagram: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((client, datagram.to_vec()));
    }

    /// Takes what there is since it was last taken.
    pub fn take(&self) -> Datagrams {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Keeps copies of what goes through the transport inside it, each way if it is wanted.
pub(crate) struct TapTransport {
    pub inner: Box<dyn ServerTransport>,
    /// Written by the workers, read between two frames.
    pub outgoing: Option<Tapped>,
    /// Written by the frame's thread, read between two frames.
    pub incoming: Option<Tapped>,
}

impl ServerTransport for TapTransport {
    fn receive(&mut self, each: &mut dyn FnMut(SocketAddr, &mut [u8]), max: usize) -> usize {
        let Some(incoming) = &self.incoming else { return self.inner.receive(each, max) };
        self.inner.receive(
            &mut |from, datagram| {
                // Before the server opens it in place.
                incoming.keep(from, datagram);
                each(from, datagram);
            },
            max,
        )
    }

    fn sender(&mut self, worker: usize) -> Box<dyn DatagramSender> {
        let inner = self.inner.sender(worker);
        match &self.outgoing {
            Some(outgoing) => Box::new(TapSender { inner, outgoing: outgoing.clone() }),
            None => inner,
        }
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
    outgoing: Tapped,
}

impl PacketSink for TapSender {
    fn buffer(&mut self) -> &mut [u8] {
        self.inner.buffer()
    }

    fn commit(&mut self, to: SocketAddr, len: usize) {
        self.outgoing.keep(to, &self.inner.buffer()[..len]);
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
