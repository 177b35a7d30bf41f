//! A client against the server's half of the network, in memory: the real handshake, connection and replication.
//! Long because each is the same client and server, and one more thing that goes between them.

mod replicated;

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

#[test]
fn the_handshake_leads_into_the_world_that_the_server_names() {
    let mut stage = Stage::connected(nothing_replicated());
    assert_eq!(stage.client.world(), None);
    stage.say_enter(EnterWorld { own_entity: Some((7, 2)), ..HIDEOUT });
    stage.step();
    assert_eq!(stage.client.next_event(), Some(ClientEvent::EnteredWorld { epoch: 0 }));
    assert_eq!(stage.client.next_event(), Some(ClientEvent::OwnEntityChanged));
    assert_eq!(stage.client.next_event(), None);
    let world = stage.client.world().expect("entered");
    assert_eq!((world.id, world.name.as_str(), world.tick_hz, world.entered_tick), (1, "hideout", 20, 500));
    assert_eq!(stage.client.own_entity(), Some(NetId { slot: 7, generation: 2 }));

    stage.say_enter(EnterWorld { own_entity: Some((8, 1)), ..HIDEOUT });
    stage.step();
    assert_eq!(stage.client.next_event(), Some(ClientEvent::OwnEntityChanged), "the world is the same");
    assert_eq!(stage.client.next_event(), None);
    assert_eq!(stage.client.own_entity(), Some(NetId { slot: 8, generation: 1 }));
}

#[test]
fn a_server_of_another_schema_is_left_and_told_why() {
    let schema = nothing_replicated();
    let own = schema.hash();
    let mut stage = Stage::connected(schema);
    // Unreadable here, and sooner than the reason for it, which a lost packet has held up.
    stage.say(&[control::SNAPSHOT, 0, 1]);
    stage.step();
    stage.server().send_reliable(&SchemaHash(own ^ 1).encode()).expect("room");
    stage.say_enter(HIDEOUT);
    stage.step();
    stage.step();
    let reason = DisconnectReason::SchemaMismatch { own, server: own ^ 1 };
    assert_eq!(stage.client.state(), ClientState::Disconnected(reason));
    assert_eq!(stage.client.next_event(), Some(ClientEvent::Disconnected(reason)));
    assert_eq!((stage.client.world(), stage.client.stats().protocol_errors), (None, 0));
    assert!(reason.to_string().contains("different versions of the game"), "{reason}");
    assert!(stage.server_heard_goodbye);
    let said = (Channel::Unreliable, SchemaHash(own).encode().to_vec());
    assert_eq!(stage.at_server, vec![said; MISMATCHES_SAID]);
}

#[test]
fn a_server_of_the_same_schema_is_taken_at_its_word() {
    let schema = nothing_replicated();
    let own = SchemaHash(schema.hash());
    let mut stage = Stage::connected(schema);
    stage.server().send_reliable(&own.encode()).expect("room");
    stage.say_enter(HIDEOUT);
    stage.step();
    assert_eq!(stage.client.next_event(), Some(ClientEvent::EnteredWorld { epoch: 0 }));
    assert_eq!(stage.client.stats().protocol_errors, 0);
}

#[test]
fn a_client_that_is_back_where_it_was_is_told_so_once() {
    let mut stage = Stage::in_world(nothing_replicated());
    assert!(!stage.client.world().expect("entered").has_returned);
    let back = EnterWorld { epoch: 1, has_returned: true, ..HIDEOUT };
    stage.say_enter(back);
    stage.say_enter(EnterWorld { own_entity: Some((8, 1)), ..back });
    stage.step();
    assert!(stage.client.world().expect("entered").has_returned);
    assert_eq!(stage.client.stats().travels_refused, 1);
    stage.say_enter(EnterWorld { epoch: 2, world: 2, ..HIDEOUT });
    stage.step();
    assert!(!stage.client.world().expect("entered").has_returned);
    assert_eq!(stage.client.stats().travels_refused, 1);
}

#[test]
fn inputs_carry_epoch_and_number_and_are_answered_by_snapshots() {
    let mut stage = Stage::connected(nothing_replicated());
    assert_eq!(stage.client.send_raw_input(stage.now, &[5]), Err(SendInputError::NotInWorld));
    stage.say_enter(EnterWorld { epoch: 0, ..HIDEOUT });
    stage.step();
    assert_eq!(stage.client.send_raw_input(stage.now, &[0; INPUT_BYTES_MAX + 1]), Err(SendInputError::TooLarge));

    assert_eq!(stage.client.send_raw_input(stage.now, &[5, 6]), Ok(1));
    stage.step();
    assert_eq!(stage.inputs_at_server(), [vec![control::INPUT, 0, 1, 0, 5, 6]]);
    stage.step();
    assert_eq!(stage.inputs_at_server(), [[0u8; 0]; 0], "an input is sent once");

    assert_eq!(stage.client.send_raw_input(stage.now, &[7]), Ok(2));
    assert_eq!(stage.client.send_raw_input(stage.now, &[]), Ok(3));
    stage.step();
    assert_eq!(stage.inputs_at_server(), [vec![control::INPUT, 0, 2, 0, 7], vec![control::INPUT, 0, 3, 0]]);

    stage.say(&empty_snapshot(0, 501, 2));
    stage.step();
    assert_eq!(stage.samples_ms(), [40, 20], "of the first two, from their own sending");
    stage.say(&empty_snapshot(0, 502, 3));
    stage.step();
    assert_eq!(stage.samples_ms(), [30]);
    assert_eq!((stage.client.newest_tick(), stage.client.stats().snapshots), (502, 2));
}

#[test]
fn a_snapshot_of_the_next_world_may_come_before_its_name() {
    let mut stage = Stage::in_world(nothing_replicated());
    stage.client.send_raw_input(stage.now, &[1]).expect("in a world");
    stage.say(&empty_snapshot(1, 90, 0));
    stage.step();
    assert_eq!(stage.client.world(), None, "the old world is left, the new one has no name yet");
    assert_eq!(stage.client.newest_tick(), 90);
    assert_eq!(stage.client.send_raw_input(stage.now, &[1]), Err(SendInputError::NotInWorld));
    assert_eq!(stage.client.stats().inputs_unanswered, 1);

    stage.say(&empty_snapshot(0, 600, 1));
    stage.step();
    assert_eq!((stage.client.newest_tick(), stage.client.stats().old_epoch_messages), (90, 1));
    assert_eq!(stage.samples_ms(), [0u64; 0]);

    stage.say_enter(EnterWorld { epoch: 1, world: 2, name: "hub", ..HIDEOUT });
    stage.step();
    assert_eq!(stage.client.next_event(), Some(ClientEvent::EnteredWorld { epoch: 1 }));
    assert_eq!(stage.client.world().map(|world| (world.id, world.name.as_str())), Some((2, "hub")));
    assert_eq!(stage.client.send_raw_input(stage.now, &[1]), Ok(2), "numbers go on");
}

#[test]
fn the_name_of_a_world_that_was_left_again_is_passed_over() {
    let mut stage = Stage::in_world(nothing_replicated());
    stage.say(&empty_snapshot(2, 90, 0));
    stage.step();
    stage.say_enter(EnterWorld { epoch: 1, name: "passage", ..HIDEOUT });
    stage.step();
    assert_eq!(stage.client.world(), None);
    assert_eq!(stage.client.next_event(), None);
    stage.say_enter(EnterWorld { epoch: 2, name: "hub", ..HIDEOUT });
    stage.step();
    assert_eq!(stage.client.world().map(|world| world.name.as_str()), Some("hub"));
    assert_eq!(stage.client.stats().protocol_errors, 0);
}

#[test]
fn epochs_go_on_past_the_wrap() {
    let mut stage = Stage::connected(nothing_replicated());
    for travel in 0..600u32 {
        stage.say_enter(EnterWorld { epoch: travel as u8, world: travel, ..HIDEOUT });
        stage.step();
        assert_eq!(stage.client.world().map(|world| world.id), Some(travel));
    }
}

#[derive(Pack, Debug, PartialEq)]
struct Pockets {
    #[pack(max = 100)]
    coins: u8,
}

impl ClientMessage for Pockets {}

#[derive(Pack, Debug, PartialEq)]
struct Farewell;

impl ClientMessage for Farewell {}

#[derive(Pack, Debug, PartialEq)]
struct Walk {
    #[pack(max = 9)]
    x: u8,
}

impl ClientInput for Walk {}

#[derive(Pack, Debug, PartialEq)]
struct PickUp {
    #[pack(max = 9)]
    thing: u8,
}

impl ClientRequest for PickUp {}

fn said() -> Arc<Schema> {
    SchemaBuilder::new().message::<Farewell>().message::<Pockets>().input::<Walk>().request::<PickUp>().build()
}

#[test]
fn messages_are_values_and_wait_until_they_are_cleared() {
    let mut stage = Stage::in_world(said());
    stage.server().send_reliable(&[control::MESSAGE, 1, 100]).expect("room");
    stage.server().send_reliable(&[control::MESSAGE, 0]).expect("room");
    stage.step();
    let read: Vec<_> = stage.client.messages().map(|message| (message.name(), message.read::<Pockets>())).collect();
    assert_eq!(read, [("Pockets", Some(Pockets { coins: 100 })), ("Farewell", None)]);
    stage.client.clear_messages();
    assert_eq!(stage.client.messages().count(), 0);
}

/// Promise: a message that is none is a fault of the server's and never shown to the game.
#[test]
fn messages_that_are_none_are_counted_and_never_seen() {
    let mut stage = Stage::in_world(said());
    let bad: [&[u8]; 6] = [
        &[control::MESSAGE],
        &[control::MESSAGE, 2],
        &[control::MESSAGE, 1],
        &[control::MESSAGE, 1, 101],
        &[control::MESSAGE, 0, 0],
        &[16, 1],
    ];
    for (index, message) in bad.iter().enumerate() {
        stage.server().send_reliable(message).expect("room");
        stage.step();
        assert_eq!(stage.client.stats().protocol_errors, index as u64 + 1, "{message:?}");
    }
    stage.say(&[control::MESSAGE, 1, 5]);
    stage.step();
    assert_eq!(stage.client.stats().protocol_errors, bad.len() as u64 + 1, "messages are reliable");
    assert_eq!(stage.client.messages().count(), 0);
}

#[test]
fn what_we_say_has_its_kind_and_its_limits() {
    let mut stage = Stage::in_world(said());
    assert_eq!(stage.client.send_input(stage.now, &Walk { x: 9 }), Ok(1));
    assert!(matches!(stage.client.send_input(stage.now, &Walk { x: 10 }), Err(SendInputError::Value(_))));
    stage.client.request(&PickUp { thing: 7 }).expect("connected");
    assert!(matches!(stage.client.request(&PickUp { thing: 10 }), Err(SendMessageError::Value(_))));
    stage.step();
    let mut said = stage.at_server.clone();
    said.sort_by_key(|(_, message)| message[0]);
    let expect = [
        (Channel::Unreliable, vec![control::INPUT, 0, 1, 0, 0, 9]),
        (Channel::Reliable, vec![control::REQUEST, 0, 0, 7]),
    ];
    assert_eq!(said, expect);

    let mut stranger = Stage::in_world(nothing_replicated());
    let refused = stranger.client.send_input(stranger.now, &Walk { x: 1 });
    assert_eq!(refused, Err(SendInputError::NotInSchema("Walk")));
    assert!(matches!(stranger.client.request(&PickUp { thing: 1 }), Err(SendMessageError::NotInSchema("PickUp"))));
}

/// What a player is called, in all worlds.
#[derive(Pack, Debug, PartialEq)]
struct CallMe(u8);

impl ClientRequest for CallMe {
    const FOR_ANY_WORLD: bool = true;
}

#[test]
fn requests_carry_the_stay_in_which_they_were_asked() {
    let mut stage = Stage::connected(SchemaBuilder::new().request::<PickUp>().request::<CallMe>().build());
    let request = |kind: u8, epoch: u8| vec![control::REQUEST, epoch, kind, 7];
    assert!(matches!(stage.client.request(&PickUp { thing: 7 }), Err(SendMessageError::NotInWorld)));
    stage.client.request(&CallMe(7)).expect("it is for any world");
    stage.step();
    assert_eq!(stage.inputs_at_server(), [request(1, 0)]);
    stage.say_enter(EnterWorld { epoch: 3, ..HIDEOUT });
    stage.step();
    stage.client.request(&PickUp { thing: 7 }).expect("in a world");
    stage.step();
    assert_eq!(stage.inputs_at_server(), [request(0, 3)]);
    stage.say(&empty_snapshot(4, 90, 0));
    stage.step();
    assert!(matches!(stage.client.request(&PickUp { thing: 7 }), Err(SendMessageError::NotInWorld)), "between two");
}

/// Two moves and a flag: three bytes.
#[derive(Pack)]
struct Turn(i8, i8, bool);

impl ClientInput for Turn {}

/// Says what was seen.
#[derive(Pack)]
struct Fire(i8);

impl ClientInput for Fire {
    const SAYS_SEEN: bool = true;
}

#[derive(Pack)]
struct Bow;

impl ClientRequest for Bow {}

#[derive(Pack, Debug, PartialEq)]
struct Coins(u16);

impl ClientMessage for Coins {}

/// Promise: the bytes in docs/spec/messages.md are those that go over the wire.
#[test]
fn the_document_has_the_bytes_that_are_sent() {
    let document = include_str!("../../../../docs/spec/messages.md");
    let (_, drawn) = document.split_once("```text\n").expect("a drawing");
    let (drawn, _) = drawn.split_once("```").expect("its end");
    let byte = |hex: &str| u8::from_str_radix(hex, 16).expect("two digits");
    let drawn: Vec<Vec<u8>> = drawn.lines().map(|line| line.split(' ').map(byte).collect()).collect();

    let schema = SchemaBuilder::new().input::<Turn>().input::<Fire>();
    let schema = schema.request::<PickUp>().request::<Bow>().message::<Coins>().build();
    let mut stage = Stage::connected(schema);
    stage.say_enter(EnterWorld { epoch: 2, ..HIDEOUT });
    stage.step();
    for _ in 0..8 {
        stage.at_server.clear();
        stage.client.send_input(stage.now, &Turn(10, -10, true)).expect("in a world");
        stage.step();
    }
    assert_eq!(stage.inputs_at_server(), [drawn[0].clone()]);
    stage.client.request(&Bow).expect("connected");
    stage.step();
    assert_eq!(stage.inputs_at_server(), [drawn[1].clone()]);
    stage.server().send_reliable(&drawn[2]).expect("room");
    stage.step();
    assert_eq!(stage.client.messages().next().and_then(|message| message.read()), Some(Coins(300)));
    stage.say(&empty_snapshot(2, 501, 8));
    stage.step();
    stage.at_server.clear();
    stage.client.send_input(stage.now, &Fire(10)).expect("in a world");
    stage.step();
    assert_eq!(stage.inputs_at_server(), [drawn[3].clone()]);
}

/// A step, said again in three packets.
#[derive(Pack)]
struct Stride(u8);

impl ClientInput for Stride {
    const REPEATS: u8 = 3;
}

/// Promise: an input of a kind that is repeated comes with each of the next packets, in order, until a snapshot has it.
#[test]
fn inputs_of_a_repeated_kind_are_said_again_until_they_are_answered() {
    let mut stage = Stage::connected(SchemaBuilder::new().input::<Stride>().build());
    stage.say_enter(EnterWorld { epoch: 0, ..HIDEOUT });
    stage.step();
    let stride = |stage: &mut Stage, length: u8| {
        stage.client.send_input(stage.now, &Stride(length)).expect("in a world");
        stage.step();
        stage.inputs_at_server()
    };
    let said = |number: u8| vec![control::INPUT, 0, number, 0, 0, number];
    assert_eq!(stride(&mut stage, 1), [said(1)]);
    assert_eq!(stride(&mut stage, 2), [1, 2].map(said));
    assert_eq!(stride(&mut stage, 3), [1, 2, 3].map(said));
    assert_eq!(stride(&mut stage, 4), [1, 2, 3, 4].map(said));
    assert_eq!(stride(&mut stage, 5), [2, 3, 4, 5].map(said), "three times again");
    stage.say(&empty_snapshot(0, 501, 5));
    stage.step();
    stage.at_server.clear();
    assert_eq!(stride(&mut stage, 6), [said(6)], "what was taken is not said again");
    stage.say(&empty_snapshot(1, 90, 0));
    stage.step();
    stage.say_enter(EnterWorld { epoch: 1, world: 2, ..HIDEOUT });
    stage.step();
    stage.at_server.clear();
    stage.client.send_input(stage.now, &Stride(7)).expect("in a world");
    stage.step();
    assert_eq!(stage.inputs_at_server(), [vec![control::INPUT, 1, 7, 0, 0, 7]], "nor what was for another world");
}

#[test]
fn what_was_seen_is_said_with_the_input_and_never_goes_back() {
    let mut stage = Stage::connected(SchemaBuilder::new().input::<Fire>().build());
    assert_eq!(stage.client.seen(stage.now), None);
    assert_eq!(stage.client.send_input(stage.now, &Fire(1)), Err(SendInputError::NotInWorld));
    stage.say_enter(EnterWorld { epoch: 0, ..HIDEOUT });
    stage.step();
    assert_eq!(stage.client.seen(stage.now), Some(Seen { newest_tick: 500, behind_parts: 0 }), "as it came in");
    stage.client.set_interpolation_delay(Nanos::from_millis(150));
    let mut before = (500, 0);
    for tick in 501..520 {
        stage.say(&empty_snapshot(0, tick, 0));
        for _ in 0..5 {
            stage.step();
            stage.client.send_input(stage.now, &Fire(1)).expect("in a world");
            let seen = stage.client.seen(stage.now).expect("in a world");
            assert!(seen.moment() >= before);
            before = seen.moment();
        }
    }
    assert_eq!(before, (516, 204), "40 ms after the last came, and 150 ms behind");
    stage.step();
    let said = stage.inputs_at_server();
    let last = said.last().expect("they were sent");
    assert_eq!((&last[..5], &last[9..]), (&[control::INPUT, 0, 95, 0, 0][..], &[1][..]));
    assert_eq!(Seen::decode([last[5], last[6], last[7], last[8]], 521).moment(), before);
}

#[test]
fn unreadable_messages_are_counted_and_change_nothing() {
    let mut stage = Stage::in_world(nothing_replicated());
    let bad: [&[u8]; 9] = [
        &[control::CONTROL, 1, 0, 20],
        &[control::INPUT, 0, 1, 0],
        &[control::SNAPSHOT],
        &[control::SNAPSHOT, 0, 1],
        &[control::SNAPSHOT, 0, 1, 0, 0, 0, 0, 0, 0xFF],
        &[control::AUDIT_SAMPLE],
        &[control::AUDIT_SAMPLE, 0, 1],
        &[4, 1, 2],
        &[15],
    ];
    for (index, message) in bad.iter().enumerate() {
        stage.say(message);
        stage.step();
        assert_eq!(stage.client.stats().protocol_errors, index as u64 + 1, "{message:?}");
    }
    stage.server().send_reliable(&[control::CONTROL, 77]).expect("room");
    stage.step();
    assert_eq!(stage.client.stats().protocol_errors, bad.len() as u64 + 1);
    assert_eq!(stage.client.world().map(|world| world.id), Some(1));
    assert_eq!(stage.client.state(), ClientState::Connected);
}

/// Promise: whatever an authenticated server says, a client counts and carries on.
#[test]
fn random_messages_never_panic() {
    let mut stage = Stage::in_world(nothing_replicated());
    let mut rng = ChaCha20Rng::from_seed([8; 32]);
    for _ in 0..20_000 {
        let mut message = vec![0; rng.random_range(1..60)];
        rng.fill(&mut message[..]);
        message[0] = rng.random_range(0..5);
        stage.say(&message);
        stage.step();
    }
    assert!(stage.client.stats().protocol_errors > 1_000);
    assert_eq!(stage.client.state(), ClientState::Connected);
}

#[test]
fn random_and_repeated_datagrams_are_refused_before_and_after_connecting() {
    let mut rng = ChaCha20Rng::from_seed([8; 32]);
    let mut junk = move || {
        let mut datagram = vec![0; rng.random_range(0..1_500)];
        rng.fill(&mut datagram[..]);
        datagram
    };
    let mut stage = Stage::new(nothing_replicated());
    for _ in 0..200 {
        stage.client.receive(stage.now, &mut junk());
    }
    assert_eq!(stage.client.state(), ClientState::Connecting);

    let mut stage = Stage::in_world(nothing_replicated());
    for _ in 0..200 {
        stage.client.receive(stage.now, &mut junk());
    }
    stage.say(&empty_snapshot(0, 501, 0));
    let mut repeated = stage.down.datagrams[0].clone();
    stage.step();
    stage.client.receive(stage.now, &mut repeated);
    assert_eq!(stage.client.stats().datagrams_refused, 201);
    assert_eq!((stage.client.stats().snapshots, stage.client.stats().protocol_errors), (1, 0));
}

#[test]
fn a_server_that_never_answers_is_given_up_after_the_tokens_timeout() {
    let mut stage = Stage::new(nothing_replicated());
    let mut sent = 0;
    while stage.client.state() == ClientState::Connecting {
        stage.now += STEP;
        stage.client.poll(stage.now, UNIX_S, &mut stage.up);
        sent += std::mem::take(&mut stage.up.datagrams).len();
        assert!(stage.now < Nanos::from_secs(6), "the token says 5 s");
    }
    let reason = DisconnectReason::Handshake(HandshakeFailure::TimedOut);
    assert_eq!(stage.client.state(), ClientState::Disconnected(reason));
    assert_eq!(stage.client.next_event(), Some(ClientEvent::Disconnected(reason)));
    assert!((10..=50).contains(&sent), "it tried several times and did not flood: {sent}");
}

#[test]
fn a_server_that_falls_silent_is_noticed() {
    let mut stage = Stage::in_world(nothing_replicated());
    let silent_since = stage.now;
    while stage.client.state() == ClientState::Connected {
        stage.now += STEP;
        stage.client.poll(stage.now, UNIX_S, &mut stage.up);
        assert!(stage.now < silent_since + Nanos::from_secs(6), "the token says 5 s");
    }
    assert_eq!(stage.client.state(), ClientState::Disconnected(DisconnectReason::TimedOut));
    assert_eq!(stage.client.world().map(|world| world.id), Some(1), "the last view stays readable");
    assert_eq!(stage.client.send_raw_input(stage.now, &[1]), Err(SendInputError::NotInWorld));
    assert!(matches!(stage.client.send_raw(&[16]), Err(SendMessageError::NotConnected)));
}

#[test]
fn an_idle_connection_is_kept_alive_by_both_sides() {
    let mut stage = Stage::in_world(nothing_replicated());
    for _ in 0..2_000 {
        stage.step();
    }
    assert_eq!(stage.client.state(), ClientState::Connected, "20 s of nothing to say");
    let packets = stage.client.connection_stats().expect("connected").packets_sent;
    assert!(packets < 200, "{packets} packets for nothing");
}

#[test]
fn goodbyes_are_heard_both_ways() {
    let mut stage = Stage::in_world(nothing_replicated());
    stage.client.close(stage.now, &mut stage.up);
    assert_eq!(stage.client.state(), ClientState::Disconnected(DisconnectReason::ClosedByClient));
    stage.up.datagrams.truncate(1);
    stage.deliver_up();
    assert!(stage.server_heard_goodbye);

    let mut stage = Stage::in_world(nothing_replicated());
    let (now, server) = (stage.now, stage.server.as_mut().expect("connected"));
    server.close(now, &mut stage.down);
    stage.deliver_down();
    assert_eq!(stage.client.state(), ClientState::Disconnected(DisconnectReason::ClosedByServer));
    stage.client.poll(stage.now, UNIX_S, &mut stage.up);
    assert!(stage.up.datagrams.is_empty(), "a client that was turned out is silent");
}

/// The server is full, and then it is not: the client rests, asks for a fresh token each time, and comes in.
#[test]
fn a_client_that_was_sent_away_comes_again_with_a_fresh_token() {
    let mut stage = Stage::new(nothing_replicated());
    stage.server_handshake = server_handshake(1);
    stage.server_handshake.begin_frame(stage.now, UNIX_S);
    let occupant: SocketAddr = "10.0.0.3:50000".parse().expect("an address");
    let mut handshake = ClientHandshake::new(token(7, 7), ClientHandshakeSettings::default(), stage.now, [7; 32]);
    let mut datagram = [0; 1400];
    while let Some((_, len)) = handshake.poll(stage.now, UNIX_S, &mut datagram) {
        stage.server_handshake.handle_and_admit(occupant, &mut datagram[..len], &mut stage.reply);
        handshake.handle(stage.now, &mut stage.reply.bytes().to_vec());
    }
    assert_eq!(stage.server_handshake.connected_count(), 1);

    stage.client = stage.client.with_retries(RetrySettings::default());
    let (mut asked_at, mut failures) = (Vec::new(), 0);
    for _ in 0..500 {
        stage.step();
        while let Some(event) = stage.client.next_event() {
            failures += usize::from(matches!(event, ClientEvent::AttemptFailed(_)));
        }
        if stage.client.wants_token(stage.now) {
            assert_eq!(stage.client.state(), ClientState::Resting);
            asked_at.push(stage.now);
            if asked_at.len() == 2 {
                stage.server_handshake.disconnected(occupant);
            }
            let number = asked_at.len() as u8;
            stage.client.try_again(token(42, 10 + number), stage.now, [10 + number; 32]);
        }
    }
    assert_eq!(stage.client.state(), ClientState::Connected);
    let stats = stage.client.login_stats();
    assert_eq!((stats.attempts, failures, asked_at.len()), (3, 2, 2));
    assert_eq!((stats.denied[DenialReason::ServerFull as usize], stats.timeouts), (2, 0));
    assert!(asked_at[1] - asked_at[0] >= Nanos::from_secs(1), "the second rest is the longer one: {asked_at:?}");
}

#[test]
fn a_client_in_line_knows_its_place_and_waits_for_as_long_as_it_takes() {
    let mut stage = Stage::new(nothing_replicated());
    let line = ServerHandshakeSettings::new(PROTOCOL, KEY, vec![server_address()], 4);
    stage.server_handshake =
        ServerHandshake::new(ServerHandshakeSettings { admissions_per_frame_max: 0, ..line }, [4; 32]);
    for _ in 0..2_000 {
        stage.step();
    }
    assert_eq!(stage.client.state(), ClientState::Connecting, "20 s, where the token bears 5 s of silence");
    assert_eq!(stage.client.queue(), Some(QueueState::InLine { place: 1, length: 1 }));
    let called = stage.server_handshake.call_next();
    assert!(called.is_none(), "nobody is called in this test");
}

/// A game may show them as they are: one line to the player, and none of our words for what he does not see.
#[test]
fn every_reason_can_be_read_by_a_player() {
    let denials = DenialReason::ALL.map(HandshakeFailure::Denied);
    let failures = [HandshakeFailure::TimedOut, HandshakeFailure::TokenExpired].into_iter().chain(denials);
    let mut texts: Vec<String> = failures.map(|failure| DisconnectReason::Handshake(failure).to_string()).collect();
    let others = [
        DisconnectReason::ClosedByServer,
        DisconnectReason::TimedOut,
        DisconnectReason::Refused(Refusal::Unacknowledged),
        DisconnectReason::SchemaMismatch { own: 1, server: 2 },
        DisconnectReason::ClosedByClient,
    ];
    texts.extend(others.map(|reason| reason.to_string()));
    for text in &texts {
        assert!((5..=200).contains(&text.len()) && !text.contains('\n'), "{text:?}");
        for ours in ["handshake", "packet", "slot", "Denied", "of the token"] {
            assert!(!text.contains(ours), "{ours:?} in {text:?}");
        }
    }
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), DenialReason::ALL.len() + 7, "no two reasons read alike");
}

#[test]
fn what_is_packed_already_is_said_as_its_value_would_be() {
    let mut stage = Stage::connected(SchemaBuilder::new().input::<Fire>().input::<Stride>().build());
    stage.say_enter(EnterWorld { epoch: 0, ..HIDEOUT });
    stage.step();
    let mut said = |say: &dyn Fn(&mut Client, Nanos)| {
        stage.at_server.clear();
        say(&mut stage.client, stage.now);
        stage.step();
        stage.inputs_at_server().pop().expect("it was sent")
    };
    for (kind, value) in [(0, 1), (1, 9)] {
        let by_value = said(&|client, now| {
            let sent = if kind == 0 {
                client.send_input(now, &Fire(value as i8))
            } else {
                client.send_input(now, &Stride(value))
            };
            sent.expect("in a world");
        });
        let packed =
            said(&|client, now| _ = client.send_packed_input(now, PackedId(kind), &[value]).expect("in a world"));
        // All but the number, and the moment that was shown.
        assert_eq!((by_value[4], by_value.last(), by_value.len()), (packed[4], packed.last(), packed.len()));
    }
    let refused =
        |stage: &mut Stage, kind, packed: &[u8]| stage.client.send_packed_input(stage.now, PackedId(kind), packed);
    assert!(matches!(refused(&mut stage, 2, &[1]), Err(SendInputError::NotInSchema(_))));
    assert!(matches!(refused(&mut stage, 1, &[1, 2, 3]), Err(SendInputError::Value(_))));
    assert!(matches!(stage.client.request_packed(PackedId(0), &[]), Err(SendMessageError::NotInSchema(_))));
}
