//! A client against the server's half of the network, in memory: the real handshake, connection and replication.
//! Here is what all of them need; the tests are in files by theme.

mod connection;
mod hostile;
mod inputs;
mod messages;
mod replicated;
mod worlds;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use throng_net::connection::{Channel, Connection, PacketSink, Received};
use throng_net::control::{self, ENTER_WORLD_BYTES_MAX, EnterWorld, SchemaHash};
use throng_net::protocol::{
    ClientId, ConnectToken, DenialReason, HandshakeFailure, PrivateKey, ProtocolId, Reply, ServerHandshake,
    ServerHandshakeSettings, TokenRequest,
};
use throng_pack::Pack;
use throng_platform::time::Nanos;
use throng_replication::{ClientMessage, Schema, SchemaBuilder};

use super::*;

const STEP: Nanos = Nanos::from_millis(10);
const UNIX_S: u64 = 1_000;

fn server_address() -> SocketAddr {
    "10.0.0.1:40000".parse().expect("an address")
}

fn client_address() -> SocketAddr {
    "10.0.0.2:50000".parse().expect("an address")
}

const PROTOCOL: ProtocolId = ProtocolId(9);
const KEY: PrivateKey = PrivateKey::new([3; 32]);

fn server_handshake(clients_max: usize) -> ServerHandshake {
    ServerHandshake::new(ServerHandshakeSettings::new(PROTOCOL, KEY, vec![server_address()], clients_max), [4; 32])
}

fn token(client: u64, seed: u8) -> ConnectToken {
    let request = TokenRequest {
        protocol_id: PROTOCOL,
        client_id: ClientId(client),
        server_addresses: vec![server_address()],
        created_unix_s: UNIX_S,
        expires_unix_s: UNIX_S + 30,
        timeout_s: 5,
        user_data: [0; 256],
    };
    ConnectToken::generate(&request, &KEY, &mut ChaCha20Rng::from_seed([seed; 32])).expect("sound")
}

/// Datagrams on their way.
struct Wire {
    buffer: [u8; 1400],
    datagrams: VecDeque<Vec<u8>>,
}

impl Wire {
    fn new() -> Self {
        Self { buffer: [0; 1400], datagrams: VecDeque::new() }
    }
}

impl PacketSink for Wire {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    fn commit(&mut self, _to: SocketAddr, len: usize) {
        self.datagrams.push_back(self.buffer[..len].to_vec());
    }
}

/// One client, one server that does what the test says, and no network between but queues.
struct Stage {
    now: Nanos,
    client: Client,
    up: Wire,
    down: Wire,
    server_handshake: ServerHandshake,
    reply: Reply,
    server: Option<Connection>,
    /// Messages that the server got and no test has looked at.
    at_server: Vec<(Channel, Vec<u8>)>,
    server_heard_goodbye: bool,
}

impl Stage {
    fn new(schema: Arc<Schema>) -> Self {
        Self {
            now: Nanos::ZERO,
            client: Client::new(token(42, 1), schema, Nanos::ZERO, [2; 32]),
            up: Wire::new(),
            down: Wire::new(),
            server_handshake: server_handshake(4),
            reply: Reply::new(),
            server: None,
            at_server: Vec::new(),
            server_heard_goodbye: false,
        }
    }

    /// Connected, and told nothing yet.
    fn connected(schema: Arc<Schema>) -> Self {
        let mut stage = Self::new(schema);
        for _ in 0..20 {
            stage.step();
        }
        assert_eq!(stage.client.state(), ClientState::Connected);
        assert_eq!(stage.client.next_event(), Some(ClientEvent::Connected));
        stage
    }

    /// Connected and in world 1 of epoch 0, without an own entity.
    fn in_world(schema: Arc<Schema>) -> Self {
        let mut stage = Self::connected(schema);
        stage.say_enter(EnterWorld { epoch: 0, ..HIDEOUT });
        stage.step();
        assert_eq!(stage.client.next_event(), Some(ClientEvent::EnteredWorld { epoch: 0 }));
        stage
    }

    /// 10 ms pass; everything that was sent arrives, both ways.
    fn step(&mut self) {
        self.now += STEP;
        self.client.poll(self.now, UNIX_S, &mut self.up);
        self.deliver_up();
        if let Some(server) = &mut self.server {
            server.update(self.now, &mut Received::default());
        }
        if let Some(server) = self.server.as_mut().filter(|server| server.wants_packet(self.now)) {
            server.send_packet(self.now, &[], &mut self.down);
        }
        self.deliver_down();
    }

    fn deliver_up(&mut self) {
        self.server_handshake.begin_frame(self.now, UNIX_S);
        let mut received = Received::default();
        while let Some(mut datagram) = self.up.datagrams.pop_front() {
            if let Some(server) = &mut self.server {
                received.clear();
                server.receive(self.now, &mut datagram, &mut received).expect("an honest client");
                self.at_server.extend(received.messages().map(|(channel, message)| (channel, message.to_vec())));
                self.server_heard_goodbye |= received.disconnected;
                continue;
            }
            let admitted = self.server_handshake.handle_and_admit(client_address(), &mut datagram, &mut self.reply);
            if !self.reply.is_empty() {
                self.down.datagrams.push_back(self.reply.bytes().to_vec());
            }
            if let Some(admitted) = admitted {
                self.server = Some(Connection::new(admitted.link, client_address(), admitted.client_id, self.now));
            }
        }
    }

    fn deliver_down(&mut self) {
        while let Some(mut datagram) = self.down.datagrams.pop_front() {
            self.client.receive(self.now, &mut datagram);
        }
    }

    fn server(&mut self) -> &mut Connection {
        self.server.as_mut().expect("connected")
    }

    /// The server sends one packet with `message` in it; it arrives at the next `step`.
    fn say(&mut self, message: &[u8]) {
        let (server, now) = (self.server.as_mut().expect("connected"), self.now);
        server.send_packet(now, message, &mut self.down);
    }

    fn say_enter(&mut self, entered: EnterWorld<'_>) {
        let mut message = [0; ENTER_WORLD_BYTES_MAX];
        let len = entered.encode(&mut message);
        self.server().send_reliable(&message[..len]).expect("room for one message");
    }

    fn inputs_at_server(&mut self) -> Vec<Vec<u8>> {
        self.at_server.drain(..).map(|(_, message)| message).collect()
    }

    fn samples_ms(&mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.client.next_input_to_update()).map(|sample| sample.as_micros() / 1_000).collect()
    }
}

const HIDEOUT: EnterWorld<'static> = EnterWorld {
    epoch: 0,
    tick_hz: 20,
    tick: 500,
    world: 1,
    own_entity: None,
    has_returned: false,
    is_reactive: false,
    name: "hideout",
};

fn nothing_replicated() -> Arc<Schema> {
    SchemaBuilder::new().build()
}

fn empty_snapshot(epoch: u8, tick: u32, input: u16) -> Vec<u8> {
    let mut message = vec![control::SNAPSHOT, epoch];
    message.extend(tick.to_le_bytes());
    message.extend(input.to_le_bytes());
    message
}

/// Says what was seen.
#[derive(Pack)]
struct Fire(i8);

impl ClientInput for Fire {
    const SAYS_SEEN: bool = true;
}
