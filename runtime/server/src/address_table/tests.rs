//! Promise: datagrams under a player's address, whoever wrote them, neither take that player's place nor have it
//! dismissed.

use std::net::{IpAddr, Ipv4Addr};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_metrics::Counters;
use throng_net::{
    connection::Received,
    control,
    protocol::{
        ClientHandshake, ClientHandshakeSettings, ConnectToken, PrivateKey, ProtocolId, ServerHandshakeSettings,
        TokenRequest,
    },
    transport::{Impairment, MemoryEndpoint, MemoryNetwork, MemoryServer, PacketSink},
};

use super::*;
use throng_pack::Pack;
use throng_replication::{ClientInput, ClientRequest, InterestSettings, Protocol};
use throng_scheduler::Hertz;
use throng_world::{
    Alone, GameWorld, Mail, TickStats, Worker,
    ids::WorldKindId,
    world_builder::{Kind, WorldBuilder},
    world_kind::WorldKind,
};

use crate::{directory::Everybody, testing::empty};

const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 1_000);
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 2_000);
const WORLD: WorldId = WorldId::new(0, 0);
const UNIX_S: u64 = 1_000;
const FRAMES_PER_S: u64 = 60;
/// The world ticks, and the client sends, every third frame.
const FRAMES_PER_TICK: u64 = 3;

/// What who writes the client's address knows of it.
#[derive(Clone, Copy, Debug)]
enum Forger {
    /// Address and port.
    Anywhere,
    /// All that the client has sent so far.
    OnThePath,
}

/// An address table, a world behind it, and one client.
struct Scene {
    network: MemoryNetwork,
    transport: MemoryServer,
    addresses: AddressTable,
    mailboxes: Mailboxes,
    world: GameWorld,
    /// What the world has counted, and whether it wants the client gone.
    stats: TickStats,
    dismissed: bool,
}

/// Keeps the last datagram, for who listens.
struct Tapped {
    endpoint: MemoryEndpoint,
    last: Vec<u8>,
}

impl PacketSink for Tapped {
    fn buffer(&mut self) -> &mut [u8] {
        self.endpoint.buffer()
    }

    fn commit(&mut self, to: SocketAddr, len: usize) {
        self.last = self.endpoint.buffer()[..len].to_vec();
        self.endpoint.commit(to, len);
    }
}

impl Scene {
    fn new() -> Scene {
        Scene::of(empty())
    }

    fn of(kind: impl WorldKind) -> Scene {
        let network = MemoryNetwork::new(1, Impairment::default());
        let mut transport = network.server(SERVER);
        let settings = ServerHandshakeSettings::new(ProtocolId(1), PrivateKey::new([7; 32]), vec![SERVER], 1);
        let addresses =
            AddressTable::new(ServerHandshake::new(settings, [1; 32]), transport.sender(0), &ServerSettings::default());
        let mut mailboxes = Mailboxes::default();
        mailboxes.insert(WORLD, Default::default());
        let (schema, interest) = (kind.protocol().schema(), InterestSettings::default());
        let mut kind = Kind::new(WorldKindId(0), Box::new(kind));
        let world = kind.build_world(WORLD, 1, None, &schema, &interest).unwrap();
        Scene { network, transport, addresses, mailboxes, world, stats: TickStats::default(), dismissed: false }
    }

    fn frame(&mut self, now: Nanos) {
        self.network.advance(now);
        self.addresses.receive(&mut self.transport, &self.mailboxes, &mut Everybody(WORLD), now, UNIX_S);
    }

    fn tick(&mut self, now: Nanos) {
        let mut mail = Mail::default();
        self.mailboxes.get(WORLD).unwrap().swap(&mut mail);
        let mut worker = Worker::new(0, self.transport.sender(0));
        let report = self.world.tick(now, &mut mail, &mut worker, &Alone);
        self.stats.merge(&report.stats);
        self.dismissed |= !report.leaving.is_empty();
        assert_eq!(worker.sender.flush().dropped, 0);
    }

    /// The client's side of the handshake, from time zero on.
    fn connect(&mut self, endpoint: &mut MemoryEndpoint) -> (Connection, Nanos) {
        let request = TokenRequest {
            protocol_id: ProtocolId(1),
            client_id: ClientId(5),
            server_addresses: vec![SERVER],
            created_unix_s: UNIX_S,
            expires_unix_s: UNIX_S + 60,
            timeout_s: 15,
            user_data: [0; 256],
        };
        let token =
            ConnectToken::generate(&request, &PrivateKey::new([7; 32]), &mut ChaCha20Rng::seed_from_u64(3)).unwrap();
        let mut handshake = ClientHandshake::new(token, ClientHandshakeSettings::default(), Nanos::ZERO, [2; 32]);
        let mut buffer = [0; 1400];
        let mut now = Nanos::ZERO;
        while self.world.clients_count() == 0 {
            if let Some((to, len)) = handshake.poll(now, UNIX_S, &mut buffer) {
                endpoint.send_to(&buffer[..len], to);
            }
            now += Nanos::from_millis(50);
            self.frame(now);
            self.tick(now);
            self.network.advance(now);
            while let Some((_, mut datagram)) = endpoint.receive() {
                handshake.handle(now, &mut datagram);
            }
        }
        (Connection::new(handshake.into_link(), SERVER, ClientId(5), now), now)
    }
}

fn forge(forger: Forger, genuine: &[u8], rng: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let mut datagram = vec![0; rng.random_range(40..120)];
    rng.fill(&mut datagram[..]);
    // Six bytes of sequence, a payload.
    datagram[0] = 0x65;
    if let Forger::OnThePath = forger {
        assert_eq!(genuine[0], 0x65);
        let mut sequence = [0; 8];
        sequence[..6].copy_from_slice(&genuine[1..7]);
        let ahead = u64::from_le_bytes(sequence) + rng.random_range(0..50);
        datagram[1..7].copy_from_slice(&ahead.to_le_bytes()[..6]);
    }
    datagram
}

/// The share of the client's packets that come through in four seconds of `per_s` forged ones, and the address table's
/// counts.
fn share_through(forger: Forger, per_s: u64) -> (f64, AdmissionCounts) {
    let mut scene = Scene::new();
    let mut client = Tapped { endpoint: scene.network.endpoint(CLIENT), last: Vec::new() };
    let (mut connection, begin) = scene.connect(&mut client.endpoint);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    let mut sent = 0;
    for frame in 0..4 * FRAMES_PER_S {
        let now = begin + Nanos(frame * 1_000_000_000 / FRAMES_PER_S);
        let forged = per_s / FRAMES_PER_S;
        let place = rng.random_range(0..=forged);
        for number in 0..=forged {
            if number == place && frame % FRAMES_PER_TICK == 0 {
                let before = connection.stats().packets_sent;
                connection.send_packet(now, &[control::INPUT, 0, 1, 0, 7], &mut client);
                sent += connection.stats().packets_sent - before;
            } else if !client.last.is_empty() {
                let datagram = forge(forger, &client.last, &mut rng);
                client.endpoint.send_to(&datagram, SERVER);
            }
        }
        scene.frame(now);
        if frame % FRAMES_PER_TICK == 2 {
            scene.tick(now);
            while let Some((_, mut datagram)) = client.endpoint.receive() {
                connection.receive(now, &mut datagram, &mut Received::default()).unwrap();
            }
        }
    }
    assert!(!scene.dismissed, "{forger:?} had the client dismissed at {per_s} packets/s");
    assert!(sent >= 70, "{sent}");
    let opened = scene.stats.datagrams_in - scene.stats.datagrams_refused;
    (opened as f64 / sent as f64, scene.addresses.counts)
}

/// Twenty times what a client is allowed, in packets a second.
const TWENTY_FOLD: u64 = 20 * 300;

#[test]
fn who_only_knows_the_address_is_charged_to_nobody() {
    for per_s in [0, TWENTY_FOLD, 10 * TWENTY_FOLD] {
        let (share, counts) = share_through(Forger::Anywhere, per_s);
        assert_eq!(share, 1.0, "{per_s} packets/s: {counts:?}");
        assert_eq!((counts.on_reserve, counts.over_allowance), (0, 0));
        assert!(counts.implausible >= per_s * 39 / 10, "{counts:?}");
    }
}

#[test]
fn who_sees_the_clients_packets_does_not_crowd_them_out() {
    let (share, counts) = share_through(Forger::OnThePath, TWENTY_FOLD);
    assert!(share >= 0.95, "{share}: {counts:?}");
    assert!(counts.on_reserve > 0 && counts.over_allowance == 0, "{counts:?}");
}

/// The negative control: beyond the reserve a part of the client's packets is lost with the forged ones; it stays all
/// the same.
#[test]
fn who_sees_them_and_sends_more_than_the_reserve_is_noticed() {
    let (share, counts) = share_through(Forger::OnThePath, 20 * TWENTY_FOLD);
    assert!(share < 0.95, "{share}: {counts:?}");
    assert!(counts.over_allowance > 0, "{counts:?}");
}

/// A datagram that opened has come through, whatever its client says in it.
#[test]
fn a_client_of_plain_netcode_is_counted_by_its_reason_and_told_of_once_a_minute() {
    let mut scene = Scene::new();
    let mut client = scene.network.endpoint(CLIENT);
    // A request of netcode 1.02, by its first byte and its length.
    let request = [0; 1_078];
    let mut told = Vec::new();
    for second in 0..100 {
        client.send_to(&request, SERVER);
        scene.frame(Nanos::from_secs(second));
        told.extend(scene.addresses.plain_told_at);
    }
    let refused = scene.addresses.counts.refused_by_handshake;
    assert!(refused >= 99, "the last one may be on its way: {refused}");
    assert_eq!(scene.addresses.handshake_stats().dropped(DropReason::PlainNetcodeOff), refused);
    told.dedup();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(client.receive().is_none(), "it gets no answer");
}

#[test]
fn what_a_client_may_not_say_is_counted_by_the_message() {
    let mut scene = Scene::new();
    let mut client = Tapped { endpoint: scene.network.endpoint(CLIENT), last: Vec::new() };
    let (mut connection, now) = scene.connect(&mut client.endpoint);
    scene.stats = TickStats::default();
    for kind in [control::SNAPSHOT, control::REQUEST] {
        connection.send_unreliable(&[kind]).unwrap();
    }
    for message in [&[control::CONTROL][..], &[control::REQUEST, 0], &[control::REQUEST, 0, 0], &[16, 1]] {
        connection.send_reliable(message).unwrap();
    }
    connection.send_packet(now, &[control::INPUT, 0, 1, 0, 7], &mut client);
    scene.frame(now);
    scene.tick(now);
    assert!(scene.stats.datagrams_in > 0);
    assert_eq!((scene.stats.datagrams_refused, scene.stats.messages_refused), (0, 7), "the input's kind is unknown");
}

#[test]
fn a_client_that_goes_by_another_schema_is_counted_once_and_let_go() {
    let mut scene = Scene::new();
    let mut client = Tapped { endpoint: scene.network.endpoint(CLIENT), last: Vec::new() };
    let (mut connection, now) = scene.connect(&mut client.endpoint);
    scene.stats = TickStats::default();
    let said = control::SchemaHash(7).encode();
    for length in 1..said.len() {
        connection.send_unreliable(&said[..length]).unwrap();
        connection.send_packet(now, &[], &mut client);
    }
    scene.frame(now);
    scene.tick(now);
    assert_eq!((scene.stats.schema_mismatches, scene.stats.messages_refused), (0, 9), "a part of it says nothing");
    assert!(!scene.dismissed);
    for _ in 0..3 {
        connection.send_unreliable(&said).unwrap();
        connection.send_packet(now, &[], &mut client);
    }
    connection.close(now, &mut client);
    scene.frame(now);
    scene.tick(now);
    assert_eq!((scene.stats.schema_mismatches, scene.stats.messages_refused), (1, 9));
    assert!(scene.dismissed);
}

#[derive(Pack)]
struct Cast;

impl ClientInput for Cast {
    fn price(&self) -> u32 {
        7
    }
}

#[derive(Pack)]
struct Ask;

impl ClientRequest for Ask {
    fn price(&self) -> u32 {
        5
    }
}

struct Duel;

impl WorldKind for Duel {
    fn name(&self) -> &str {
        "duel"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().input::<Cast>().request::<Ask>()
    }

    fn build(&self, _: &mut WorldBuilder) {}
}

/// A client's line. While it is down, what is said is lost, or waits and is handed over at once.
struct Line {
    endpoint: MemoryEndpoint,
    is_down: bool,
    holds: bool,
    held: Vec<Vec<u8>>,
}

impl PacketSink for Line {
    fn buffer(&mut self) -> &mut [u8] {
        self.endpoint.buffer()
    }

    fn commit(&mut self, to: SocketAddr, len: usize) {
        if !self.is_down {
            self.endpoint.commit(to, len);
        } else if self.holds {
            self.held.push(self.endpoint.buffer()[..len].to_vec());
        }
    }
}

/// A client casts as often as it may and asks ten times a second, which is 946 of the 1,000 units of its allowance, and
/// its line is down for nine seconds, one less than its timeout.
fn casting_through_a_blackout(holds: bool) -> Scene {
    let mut scene = Scene::of(Duel);
    let mut line = Line { endpoint: scene.network.endpoint(CLIENT), is_down: false, holds, held: Vec::new() };
    let (mut connection, begin) = scene.connect(&mut line.endpoint);
    let (mut casts, mut asks) = (0, 0);
    for frame in 0..16 * FRAMES_PER_S {
        let now = begin + Nanos(frame * 1_000_000_000 / FRAMES_PER_S);
        line.is_down = (3..12).contains(&(frame / FRAMES_PER_S));
        if !line.is_down {
            line.held.drain(..).for_each(|datagram| line.endpoint.send_to(&datagram, SERVER));
        }
        connection.update(now, &mut Received::default());
        while asks < 10 * frame / FRAMES_PER_S {
            connection.send_reliable(&[control::REQUEST, 0, 0]).expect("there is room for ten seconds of it");
            asks += 1;
        }
        while casts < u64::from(Cast::PER_S_MAX) * frame / FRAMES_PER_S {
            let [low, high] = (casts as u16).to_le_bytes();
            connection.send_unreliable(&[control::INPUT, 0, low, high, 0]).expect("there is room");
            connection.send_packet(now, &[], &mut line);
            casts += 1;
        }
        scene.frame(now);
        if frame % FRAMES_PER_TICK == 2 {
            scene.tick(now);
            while let Some((_, mut datagram)) = line.endpoint.receive() {
                if !line.is_down {
                    connection.receive(now, &mut datagram, &mut Received::default()).unwrap();
                }
            }
        }
    }
    scene
}

/// Promise: an honest client survives a blackout that is shorter than its timeout, whatever piled up in it.
#[test]
fn who_casts_all_the_time_is_not_dismissed_for_what_piled_up_in_a_blackout() {
    for holds in [false, true] {
        let scene = casting_through_a_blackout(holds);
        assert!(!scene.dismissed, "the line holds what waits: {holds}");
        assert!(scene.stats.said_over_limit > 0, "requests, at least, came in a lump");
        assert_eq!(scene.stats.dear_messages_over_allowance > 0, holds, "{:?}", scene.stats);
    }
}
