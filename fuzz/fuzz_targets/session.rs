//! A session from hello to goodbye over a network that loses, doubles, delays, damages and invents datagrams.
//!
//! Promise: the token makes one session; reliable messages come complete, once and in order; unreliable ones are as
//! they were sent; neither side holds more heap than its budget; and nothing that was made up on the way is believed.

#![no_main]

use std::collections::VecDeque;
use std::net::SocketAddr;

use libfuzzer_sys::fuzz_target;
use throng_fuzz::{
    scene::{self, START, UNIX_S, address, server_address},
    script::Script,
};
use throng_net::{
    connection::{Channel, Connection, HEAP_BYTES_MAX, PacketSink, Received},
    protocol::{ClientHandshake, ClientId, DenialReason, HandshakeState, PACKET_BYTES_MAX, Reply, ServerHandshake},
};
use throng_platform::time::Nanos;

/// Datagrams that may be under way in one direction; above it the oldest is lost.
const UNDER_WAY_MAX: usize = 64;

fuzz_target!(|input: &[u8]| {
    let mut script = Script::new(input);
    let mut session = Session::new(script.u8() & 1 == 0);
    while let Some(operation) = script.operation() {
        session.step(operation, &mut script);
        session.check();
    }
});

struct Session {
    now: Nanos,
    server_handshake: ServerHandshake,
    handshake: Option<ClientHandshake>,
    client: Option<Side>,
    server: Option<Side>,
    to_server: Path,
    to_client: Path,
    admitted: u32,
}

/// One end of the connection, what it has said and what it may hear next.
struct Side {
    connection: Connection,
    said: Said,
    heard_reliable: u32,
}

#[derive(Clone, Copy, Default)]
struct Said {
    reliable: u32,
    unreliable: u32,
}

/// Datagrams under way in one direction; what is sealed is written into `buffer` first.
struct Path {
    buffer: [u8; PACKET_BYTES_MAX + 100],
    datagrams: VecDeque<Vec<u8>>,
}

impl Session {
    fn new(cookie_first: bool) -> Self {
        Self {
            now: START,
            server_handshake: scene::server_handshake(),
            handshake: Some(scene::handshake(cookie_first)),
            client: None,
            server: None,
            to_server: Path::new(),
            to_client: Path::new(),
            admitted: 0,
        }
    }

    fn step(&mut self, operation: u8, script: &mut Script<'_>) {
        let at_server = operation & 0x80 != 0;
        match operation & 15 {
            0 | 1 => self.say(at_server),
            2 | 3 => self.deliver(at_server, 0),
            4 => self.deliver(at_server, script.u8().into()),
            5 => self.towards(at_server).double(script.u8().into()),
            6 => self.towards(at_server).lose(script.u8().into()),
            7 => {
                if let Some(datagram) = self.towards(at_server).datagrams.front_mut() {
                    script.damage(datagram);
                }
            }
            8 => {
                let invented = script.block().to_vec();
                self.towards(at_server).push(invented);
            }
            9 => self.pass_time(Nanos::from_millis(u64::from(script.u8()) * 20)),
            10 | 11 => self.send_reliable(at_server, script.u16().into()),
            12 => self.send_unreliable(at_server, script.u8().into()),
            13 if at_server => self.move_line(script.u8()),
            13 => self.update_both(),
            14 => self.close(at_server),
            _ => {
                self.deliver_all();
                self.move_line(7);
                self.deliver_all();
            }
        }
    }

    fn side(&mut self, at_server: bool) -> Option<&mut Side> {
        if at_server { self.server.as_mut() } else { self.client.as_mut() }
    }

    fn towards(&mut self, server: bool) -> &mut Path {
        if server { &mut self.to_server } else { &mut self.to_client }
    }

    /// A packet, whether one is due or not; before there is a connection, a step of the handshake.
    fn say(&mut self, at_server: bool) {
        let (now, unix_s) = (self.now, self.unix_s());
        if let (false, Some(handshake)) = (at_server, &mut self.handshake) {
            let mut out = [0; 1400];
            if let Some((to, len)) = handshake.poll(now, unix_s, &mut out) {
                assert_eq!(to, server_address());
                self.to_server.push(out[..len].to_vec());
            }
            return;
        }
        let (side, path) =
            if at_server { (&mut self.server, &mut self.to_client) } else { (&mut self.client, &mut self.to_server) };
        if let Some(side) = side {
            side.connection.send_packet(now, &[], path);
        }
    }

    fn deliver(&mut self, at_server: bool, index: usize) {
        let path = self.towards(at_server);
        let index = index % path.datagrams.len().max(1);
        let Some(datagram) = path.datagrams.remove(index) else { return };
        if at_server { self.server_hears(datagram) } else { self.client_hears(datagram) }
    }

    fn deliver_all(&mut self) {
        for at_server in [true, false] {
            for _ in 0..self.towards(at_server).datagrams.len() {
                self.deliver(at_server, 0);
            }
        }
    }

    fn server_hears(&mut self, mut datagram: Vec<u8>) {
        let said = self.client.as_ref().map(|client| client.said).unwrap_or_default();
        if let Some(server) = &mut self.server {
            return server.hear(self.now, &mut datagram, said);
        }
        let (asked_bytes, mut reply) = (datagram.len(), Reply::new());
        self.server_handshake.handle(address(0), &mut datagram, &mut reply);
        assert!(reply.len() <= asked_bytes);
        if !reply.is_empty() {
            self.to_client.push(reply.bytes().to_vec());
        }
    }

    /// The line moves, if there is one: the client is let in, called to wait for its world, or turned away.
    fn move_line(&mut self, what: u8) {
        let mut reply = Reply::new();
        let called = self.server_handshake.call_next();
        assert!(called.is_none_or(|called| self.server_handshake.is_called(address(0), called.client_id)));
        let admitted = match what % 8 {
            0 => {
                self.server_handshake.refuse(address(0), DenialReason::WorldNotReady, &mut reply);
                None
            }
            1 | 2 => None,
            _ => self.server_handshake.admit(address(0), &mut reply),
        };
        if !reply.is_empty() {
            self.to_client.push(reply.bytes().to_vec());
        }
        if let Some(admitted) = admitted {
            self.admitted += 1;
            self.server = Some(Side::new(Connection::new(admitted.link, address(0), admitted.client_id, self.now)));
        }
    }

    fn client_hears(&mut self, mut datagram: Vec<u8>) {
        let said = self.server.as_ref().map(|server| server.said).unwrap_or_default();
        if let Some(client) = &mut self.client {
            return client.hear(self.now, &mut datagram, said);
        }
        let Some(handshake) = &mut self.handshake else { return };
        handshake.handle(self.now, &mut datagram);
        if handshake.state() != HandshakeState::Connected {
            return;
        }
        assert_eq!(self.admitted, 1, "a client is connected to nobody");
        let link = self.handshake.take().map(ClientHandshake::into_link);
        self.client = link.map(|link| Side::new(Connection::new(link, server_address(), ClientId(7), self.now)));
    }

    fn pass_time(&mut self, by: Nanos) {
        self.now += by;
        self.server_handshake.begin_frame(self.now, self.unix_s());
        for at_server in [true, false] {
            let now = self.now;
            if self.side(at_server).is_some_and(|side| side.connection.ended(now).is_some()) {
                self.close(at_server);
            }
        }
    }

    fn send_reliable(&mut self, at_server: bool, len: usize) {
        let Some(side) = self.side(at_server) else { return };
        let message = message(side.said.reliable, len);
        side.said.reliable += u32::from(side.connection.send_reliable(&message).is_ok());
    }

    fn send_unreliable(&mut self, at_server: bool, len: usize) {
        let Some(side) = self.side(at_server) else { return };
        let message = message(side.said.unreliable, len);
        side.said.unreliable += u32::from(side.connection.send_unreliable(&message).is_ok());
    }

    fn update_both(&mut self) {
        let now = self.now;
        for side in [&mut self.client, &mut self.server].into_iter().flatten() {
            side.connection.update(now, &mut Received::default());
        }
    }

    fn close(&mut self, at_server: bool) {
        let (side, path) =
            if at_server { (&mut self.server, &mut self.to_client) } else { (&mut self.client, &mut self.to_server) };
        if let Some(mut side) = side.take() {
            side.connection.close(self.now, path);
            if at_server {
                self.server_handshake.disconnected(side.connection.address());
            }
        }
    }

    fn unix_s(&self) -> u64 {
        UNIX_S + (self.now - START).as_micros() / 1_000_000
    }

    fn check(&self) {
        assert!(self.admitted <= 1, "one token made two sessions");
        self.server_handshake.check();
        assert_eq!(self.server_handshake.connected_count(), usize::from(self.server.is_some()));
        for side in [&self.client, &self.server].into_iter().flatten() {
            assert!(side.connection.heap_bytes() <= HEAP_BYTES_MAX);
            side.connection.check();
        }
    }
}

impl Side {
    fn new(connection: Connection) -> Self {
        Self { connection, said: Said::default(), heard_reliable: 0 }
    }

    /// `said` is what the other side has said so far, if it is still there.
    fn hear(&mut self, now: Nanos, datagram: &mut [u8], said: Said) {
        let mut received = Received::default();
        let _ = self.connection.receive(now, datagram, &mut received);
        for (channel, heard) in received.messages() {
            let number = u32::from_le_bytes(*heard.first_chunk().expect("none was shorter"));
            assert_eq!(heard, message(number, heard.len() - 4), "a message was changed on its way");
            match channel {
                Channel::Reliable => {
                    assert_eq!(number, self.heard_reliable, "a message is missing, or came twice");
                    self.heard_reliable += 1;
                }
                Channel::Unreliable => assert!(said.unreliable == 0 || number < said.unreliable),
            }
        }
    }
}

/// A message that tells its number and whether it was changed; `len` bytes beside its number.
fn message(number: u32, len: usize) -> Vec<u8> {
    let pattern = (0..len).map(|index| (index as u32).wrapping_mul(31).wrapping_add(number) as u8);
    number.to_le_bytes().into_iter().chain(pattern).collect()
}

impl Path {
    fn new() -> Self {
        Self { buffer: [0; PACKET_BYTES_MAX + 100], datagrams: VecDeque::new() }
    }

    fn push(&mut self, datagram: Vec<u8>) {
        if self.datagrams.len() == UNDER_WAY_MAX {
            self.datagrams.pop_front();
        }
        self.datagrams.push_back(datagram);
    }

    fn double(&mut self, index: usize) {
        if let Some(datagram) = self.datagrams.get(index % self.datagrams.len().max(1)) {
            self.push(datagram.clone());
        }
    }

    fn lose(&mut self, index: usize) {
        self.datagrams.remove(index % self.datagrams.len().max(1));
    }
}

impl PacketSink for Path {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    fn commit(&mut self, _to: SocketAddr, len: usize) {
        assert!(len <= PACKET_BYTES_MAX);
        self.push(self.buffer[..len].to_vec());
    }
}
