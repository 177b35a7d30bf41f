//! Sockets: naia's transport traits over queues in memory.
//!
//! Every packet has one byte before it that says what it is, since naia asks for an identity on a second way.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use naia_shared::IdentityToken;

const PACKET: u8 = 0;
/// A client asks for an identity; the server gives it one.
const IDENTITY: u8 = 1;

/// Packets of one side, as they are framed.
#[derive(Default)]
pub struct Queues {
    pub arrived: VecDeque<(u32, Vec<u8>)>,
    asked: VecDeque<u32>,
    pub token: Option<String>,
    pub sent: Vec<(u32, Vec<u8>)>,
}

#[derive(Clone, Default)]
pub struct Socket(Arc<Mutex<Queues>>);

impl Socket {
    pub fn queues(&self) -> MutexGuard<'_, Queues> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes what came over the wire.
    pub fn arrive(&self, client: u32, framed: &[u8]) {
        let mut queues = self.queues();
        match framed {
            [PACKET, packet @ ..] => queues.arrived.push_back((client, packet.to_vec())),
            [IDENTITY] => queues.asked.push_back(client),
            [IDENTITY, token @ ..] => queues.token = Some(String::from_utf8_lossy(token).into_owned()),
            _ => {}
        }
    }

    fn send(&self, client: u32, kind: u8, bytes: &[u8]) {
        let mut framed = Vec::with_capacity(bytes.len() + 1);
        framed.push(kind);
        framed.extend_from_slice(bytes);
        self.queues().sent.push((client, framed));
    }
}

/// A made up address for each client.
pub fn address(client: u32) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from(0x0A01_0000 + client)), 2000)
}

fn client_at(address: &SocketAddr) -> u32 {
    match address.ip() {
        IpAddr::V4(ip) => u32::from(ip) - 0x0A01_0000,
        IpAddr::V6(_) => unreachable!("no client has such an address"),
    }
}

/// The server's end.
pub mod server {
    use naia_server::transport::{
        AuthReceiver, AuthSender, ListenResult, PacketReceiver, PacketSender, RecvError, SendError, Socket as Listen,
    };

    use super::*;

    #[derive(Clone)]
    struct Sender(Socket);

    #[derive(Clone)]
    struct Receiver(Socket, Vec<u8>);

    #[derive(Clone)]
    struct Auth(Socket);

    impl From<Socket> for Box<dyn Listen> {
        fn from(socket: Socket) -> Self {
            Box::new(socket)
        }
    }

    impl Listen for Socket {
        fn listen(self: Box<Self>) -> ListenResult {
            let own = || (*self).clone();
            (
                Box::new(Auth(own())),
                Box::new(Auth(own())),
                Box::new(Sender(own())),
                Box::new(Receiver(own(), Vec::new())),
            )
        }
    }

    impl PacketSender for Sender {
        fn send(&self, address: &SocketAddr, payload: &[u8]) -> Result<(), SendError> {
            self.0.send(client_at(address), PACKET, payload);
            Ok(())
        }
    }

    impl PacketReceiver for Receiver {
        fn receive(&mut self) -> Result<Option<(SocketAddr, &[u8])>, RecvError> {
            let Some((client, packet)) = self.0.queues().arrived.pop_front() else { return Ok(None) };
            self.1 = packet;
            Ok(Some((address(client), &self.1)))
        }
    }

    impl AuthSender for Auth {
        fn accept(&self, address: &SocketAddr, token: &IdentityToken) -> Result<(), SendError> {
            self.0.send(client_at(address), IDENTITY, token.as_bytes());
            Ok(())
        }

        fn reject(&self, _address: &SocketAddr) -> Result<(), SendError> {
            Err(SendError)
        }
    }

    impl AuthReceiver for Auth {
        fn receive(&mut self) -> Result<Option<(SocketAddr, &[u8])>, RecvError> {
            let asked = self.0.queues().asked.pop_front();
            Ok(asked.map(|client| (address(client), &[][..])))
        }
    }
}

/// A client's end.
pub mod client {
    use naia_client::transport::{
        IdentityReceiver, IdentityReceiverResult, PacketReceiver, PacketSender, RecvError, SendError, ServerAddr,
        Socket as Connect,
    };

    use super::*;

    type Ends = (Box<dyn IdentityReceiver>, Box<dyn PacketSender>, Box<dyn PacketReceiver>);

    #[derive(Clone)]
    struct Sender(Socket);

    #[derive(Clone)]
    struct Receiver(Socket);

    #[derive(Clone)]
    struct Packets(Socket, Vec<u8>);

    fn server() -> ServerAddr {
        ServerAddr::Found(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 1000))
    }

    impl From<Socket> for Box<dyn Connect> {
        fn from(socket: Socket) -> Self {
            Box::new(socket)
        }
    }

    impl Connect for Socket {
        fn connect(self: Box<Self>) -> Ends {
            self.send(0, IDENTITY, &[]);
            let own = || (*self).clone();
            (Box::new(Receiver(own())), Box::new(Sender(own())), Box::new(Packets(own(), Vec::new())))
        }

        fn connect_with_auth(self: Box<Self>, _auth_bytes: Vec<u8>) -> Ends {
            self.connect()
        }

        fn connect_with_auth_headers(self: Box<Self>, _auth_headers: Vec<(String, String)>) -> Ends {
            self.connect()
        }

        fn connect_with_auth_and_headers(self: Box<Self>, _bytes: Vec<u8>, _headers: Vec<(String, String)>) -> Ends {
            self.connect()
        }
    }

    impl PacketSender for Sender {
        fn send(&self, payload: &[u8]) -> Result<(), SendError> {
            self.0.send(0, PACKET, payload);
            Ok(())
        }

        fn server_addr(&self) -> ServerAddr {
            server()
        }
    }

    impl PacketReceiver for Packets {
        fn receive(&mut self) -> Result<Option<&[u8]>, RecvError> {
            let Some((_, packet)) = self.0.queues().arrived.pop_front() else { return Ok(None) };
            self.1 = packet;
            Ok(Some(&self.1))
        }

        fn server_addr(&self) -> ServerAddr {
            server()
        }
    }

    impl IdentityReceiver for Receiver {
        fn receive(&mut self) -> IdentityReceiverResult {
            match self.0.queues().token.take() {
                Some(token) => IdentityReceiverResult::Success(token),
                None => IdentityReceiverResult::Waiting,
            }
        }
    }
}
