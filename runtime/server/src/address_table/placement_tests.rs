//! Promise: a client whose world is being made waits and is told so; it is let in in its turn and at the rate that
//! is set, or refused in time; and the game hears of each that goes away.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use throng_net::{
    protocol::{
        ClientHandshake, ClientHandshakeSettings, ConnectToken, HandshakeFailure, HandshakeState, PrivateKey,
        ProtocolId, QueueState, ServerHandshakeSettings, TokenRequest,
    },
    transport::{Impairment, MemoryEndpoint, MemoryNetwork, MemoryServer},
};

use throng_world::Mail;

use super::*;
use crate::directory::Directory;

const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 1_000);
const KEY: [u8; 32] = [7; 32];
const UNIX_S: u64 = 1_000;
const WORLD: WorldId = WorldId::new(0, 0);
const FRAME: Nanos = Nanos::from_millis(50);

/// Makes worlds as slowly as a test wants, and remembers what it was asked and told.
#[derive(Default)]
struct Slow {
    ready: HashSet<u64>,
    unwanted: HashSet<u64>,
    /// These are sent to a world that is no more.
    lost: HashSet<u64>,
    asked: Vec<u64>,
    left: Vec<u64>,
}

impl Directory for Slow {
    fn place(&mut self, ClientId(client): ClientId, _: &UserData) -> Placement {
        self.asked.push(client);
        if self.unwanted.contains(&client) {
            return Placement::Refuse("unwanted");
        }
        if self.lost.contains(&client) {
            return Placement::World(WorldId::new(7, 0));
        }
        if self.ready.contains(&client) { Placement::World(WORLD) } else { Placement::Pending }
    }

    fn left(&mut self, ClientId(client): ClientId) {
        self.left.push(client);
    }
}

struct Scenario {
    network: MemoryNetwork,
    transport: MemoryServer,
    addresses: AddressTable,
    mailboxes: Mailboxes,
    directory: Slow,
    clients: Vec<(MemoryEndpoint, ClientHandshake)>,
    /// These say nothing any more.
    silent: HashSet<usize>,
    /// Of those who came in, in their order.
    keys: Vec<ClientKey>,
    /// Those whom the world was told to let go.
    dismissed: Vec<ClientKey>,
    now: Nanos,
}

impl Scenario {
    /// Clients 0, 1, .. come in this order, in one frame.
    fn new(clients: u64, settings: &ServerSettings) -> Self {
        let network = MemoryNetwork::new(1, Impairment::default());
        let mut transport = network.server(SERVER);
        let key = PrivateKey::new(KEY);
        let handshake_settings = ServerHandshakeSettings {
            admissions_per_frame_max: settings.joins_per_frame_max,
            ..ServerHandshakeSettings::new(ProtocolId(1), key.clone(), vec![SERVER], 100)
        };
        let addresses =
            AddressTable::new(ServerHandshake::new(handshake_settings, [1; 32]), transport.sender(0), settings);
        let clients = (0..clients).map(|number| newcomer(&network, number, number, Nanos::ZERO)).collect();
        let mut mailboxes = Mailboxes::default();
        mailboxes.insert(WORLD, Default::default());
        Self {
            transport,
            addresses,
            mailboxes,
            directory: Slow::default(),
            clients,
            silent: HashSet::new(),
            keys: Vec::new(),
            dismissed: Vec::new(),
            now: Nanos::ZERO,
            network,
        }
    }

    /// A client comes once more, from another port and with a fresh token.
    fn come_back(&mut self, client: u64) {
        let number = self.clients.len() as u64;
        self.clients.push(newcomer(&self.network, client, number, self.now));
    }

    /// The client at this place crashes and comes once more, from the same port and with a fresh token.
    fn crash_and_come_back(&mut self, place: usize, client: u64) {
        let number = 1_000 + self.clients.len() as u64;
        self.clients[place].1 = newcomer(&self.network, client, number, self.now).1;
    }

    /// Gives those who came into the world in this frame.
    fn frame(&mut self) -> Vec<u64> {
        self.now += FRAME;
        self.network.advance(self.now);
        let mut buffer = [0; 1400];
        for (index, (endpoint, handshake)) in self.clients.iter_mut().enumerate() {
            while let Some((_, mut datagram)) = endpoint.receive() {
                handshake.handle(self.now, &mut datagram);
            }
            if self.silent.contains(&index) {
                continue;
            }
            if let Some((to, len)) = handshake.poll(self.now, UNIX_S, &mut buffer) {
                endpoint.send_to(&buffer[..len], to);
            }
        }
        self.network.advance(self.now);
        self.directory.asked.clear();
        self.addresses.receive(&mut self.transport, &self.mailboxes, &mut self.directory, self.now, UNIX_S);
        self.addresses.server_handshake.check();
        let mut mail = Mail::default();
        self.mailboxes.get(WORLD).unwrap().swap(&mut mail);
        let incoming = mail.drain().filter_map(|item| match item {
            MailItem::Arrival { client, .. } => {
                self.keys.push(client.key());
                Some(client.client_id().0)
            }
            MailItem::Dismiss { client, .. } => {
                self.dismissed.push(client);
                None
            }
            _ => None,
        });
        incoming.collect()
    }

    fn frames(&mut self, count: usize) -> Vec<u64> {
        (0..count).flat_map(|_| self.frame()).collect()
    }

    fn told(&self) -> Vec<Option<QueueState>> {
        self.clients.iter().map(|(_, handshake)| handshake.queue()).collect()
    }

    fn states(&self) -> Vec<HandshakeState> {
        self.clients.iter().map(|(_, handshake)| handshake.state()).collect()
    }
}

fn newcomer(network: &MemoryNetwork, client: u64, number: u64, now: Nanos) -> (MemoryEndpoint, ClientHandshake) {
    let request = TokenRequest {
        protocol_id: ProtocolId(1),
        client_id: ClientId(client),
        server_addresses: vec![SERVER],
        created_unix_s: UNIX_S,
        expires_unix_s: UNIX_S + 60,
        timeout_s: 15,
        user_data: [0; 256],
    };
    let mut rng = ChaCha20Rng::seed_from_u64(number);
    let token = ConnectToken::generate(&request, &PrivateKey::new(KEY), &mut rng).expect("the request is in order");
    let handshake = ClientHandshake::new(token, ClientHandshakeSettings::default(), now, [number as u8; 32]);
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 2_000 + number as u16);
    (network.endpoint(address), handshake)
}

fn in_line(place: u32, length: u32) -> Option<QueueState> {
    Some(QueueState::InLine { place, length })
}

const BEING_MADE: Option<QueueState> = Some(QueueState::WorldBeingMade);

#[test]
fn a_client_waits_for_its_world_and_comes_in_when_it_is_there() {
    let mut scenario = Scenario::new(3, &ServerSettings::default());
    assert_eq!(scenario.frames(30), [0; 0]);
    assert_eq!(scenario.told(), [BEING_MADE; 3]);
    assert_eq!(scenario.directory.asked, [0, 1, 2], "each once a frame, in the order in which they came");
    assert_eq!((scenario.addresses.waiting().for_world, scenario.addresses.waiting().in_line), (3, 0));
    scenario.directory.ready.insert(1);
    assert_eq!(scenario.frame(), [1]);
    scenario.directory.ready.extend([2, 0]);
    assert_eq!(scenario.frame(), [0, 2]);
    scenario.frame();
    assert_eq!(scenario.states(), [HandshakeState::Connected; 3]);
    assert_eq!((scenario.directory.left.len(), scenario.addresses.counts.joined), (0, 3));
    assert!(!scenario.addresses.has_waiting());
}

/// A world hears of who left with its next tick, and perhaps of the newcomer with the same.
#[test]
fn who_comes_when_another_has_just_left_does_not_get_its_key() {
    let mut scenario = Scenario::new(2, &ServerSettings::default());
    scenario.directory.ready.insert(0);
    assert_eq!(scenario.frames(30), [0]);
    scenario.silent.insert(0);
    assert_eq!(scenario.addresses.left(scenario.keys[0]), Some(ClientId(0)));
    scenario.directory.ready.insert(1);
    assert_eq!(scenario.frame(), [1]);
    assert_ne!(scenario.keys[0], scenario.keys[1]);
    assert_eq!(scenario.addresses.players_count(), 1);
    // The count has gone round: who is here keeps its key to itself.
    scenario.addresses.keys_given = scenario.keys[1].0;
    assert_ne!(scenario.addresses.next_key(), scenario.keys[1]);
}

#[test]
fn worlds_that_are_ready_at_once_are_entered_at_the_rate_that_is_set() {
    let settings = ServerSettings { joins_per_frame_max: 2, ..ServerSettings::default() };
    let mut scenario = Scenario::new(7, &settings);
    scenario.frames(20);
    scenario.directory.ready.extend(0..7);
    let joined: Vec<Vec<u64>> = (0..4).map(|_| scenario.frame()).collect();
    assert_eq!(joined, [vec![0, 1], vec![2, 3], vec![4, 5], vec![6]]);
}

#[test]
fn while_too_many_worlds_are_being_made_the_line_stands() {
    let settings = ServerSettings { placements_pending_max: 2, ..ServerSettings::default() };
    let mut scenario = Scenario::new(4, &settings);
    scenario.frames(30);
    assert_eq!(scenario.told(), [BEING_MADE, BEING_MADE, in_line(1, 2), in_line(2, 2)]);
    scenario.directory.ready.extend([0, 1]);
    assert_eq!(scenario.frame(), [0, 1]);
    assert_eq!(scenario.directory.asked, [0, 1, 2, 3]);
    scenario.frames(20);
    assert_eq!(scenario.told(), [None, None, BEING_MADE, BEING_MADE]);
}

#[test]
fn a_world_that_does_not_come_in_time_is_an_answer_too() {
    let settings = ServerSettings { placement_timeout_s: 2, ..ServerSettings::default() };
    let mut scenario = Scenario::new(2, &settings);
    scenario.directory.unwanted.insert(1);
    scenario.frames(60);
    let denied = |reason| HandshakeState::Failed(HandshakeFailure::Denied(reason));
    assert_eq!(scenario.states(), [denied(DenialReason::WorldNotReady), denied(DenialReason::RefusedByGame)]);
    assert_eq!(scenario.directory.left, [0], "the one that it was placing; once");
    assert_eq!((scenario.addresses.counts.placements_timed_out, scenario.addresses.counts.refused_by_game), (1, 1));
    assert!(!scenario.addresses.has_waiting());
}

#[test]
fn a_world_that_does_not_exist_is_a_reason_of_its_own() {
    let mut scenario = Scenario::new(2, &ServerSettings::default());
    scenario.directory.lost.insert(1);
    scenario.frames(19);
    let denied = HandshakeState::Failed(HandshakeFailure::Denied(DenialReason::NoSuchWorld));
    assert_eq!(scenario.states(), [HandshakeState::Connecting, denied], "in less than a second");
    assert_eq!(scenario.addresses.counts.refused_by_game, 1);
    assert!(scenario.directory.left.is_empty(), "as after any refusal");
}

#[test]
fn a_world_that_is_ready_when_the_time_is_over_is_ready_in_time() {
    let settings = ServerSettings { placement_timeout_s: 1, ..ServerSettings::default() };
    for late in [false, true] {
        let mut scenario = Scenario::new(1, &settings);
        while scenario.directory.asked.is_empty() {
            scenario.frame();
        }
        // Called in this frame, and over twenty frames later.
        assert_eq!(scenario.frames(19), [0; 0]);
        if late {
            scenario.frame();
        }
        scenario.directory.ready.insert(0);
        assert_eq!(scenario.frame().len(), usize::from(!late));
        assert_eq!(scenario.addresses.counts.placements_timed_out, u64::from(late));
    }
}

#[test]
fn the_game_is_told_of_who_goes_away_while_its_world_is_made() {
    let mut scenario = Scenario::new(2, &ServerSettings::default());
    scenario.frames(10);
    scenario.silent.insert(0);
    scenario.frames(130);
    assert_eq!((scenario.directory.left.as_slice(), scenario.addresses.counts.waiting_left), (&[0][..], 1));
    assert_eq!(scenario.told()[1], BEING_MADE, "who speaks stays");
    scenario.directory.ready.extend([0, 1]);
    assert_eq!(scenario.frames(10), [1]);
}

#[test]
fn a_server_that_ends_sends_them_away() {
    let mut scenario = Scenario::new(2, &ServerSettings::default());
    scenario.frames(10);
    scenario.addresses.close();
    scenario.frame();
    scenario.frame();
    assert_eq!(scenario.directory.left, [0, 1]);
    let denied = HandshakeState::Failed(HandshakeFailure::Denied(DenialReason::Unable));
    assert_eq!(scenario.states(), [denied; 2]);
    assert_eq!(scenario.addresses.counts.placements_timed_out, 0);
}

#[test]
fn a_player_who_comes_back_takes_over_when_the_earlier_session_has_ended() {
    let mut scenario = Scenario::new(1, &ServerSettings::default());
    scenario.directory.ready.insert(0);
    assert_eq!(scenario.frames(30), [0]);
    scenario.silent.insert(0);
    scenario.come_back(0);
    assert_eq!(scenario.frames(10), [0; 0], "the earlier session is there still");
    assert_eq!(scenario.dismissed, scenario.keys, "its world is told, once");
    assert_eq!((scenario.directory.asked.len(), scenario.directory.left.len()), (0, 0));
    assert_eq!(scenario.told()[1], BEING_MADE);

    // It was on its way to another world, which has to be told, too.
    scenario.addresses.moved(scenario.keys[0], WORLD);
    scenario.frames(2);
    assert_eq!(scenario.dismissed, [scenario.keys[0]; 2]);

    assert_eq!(scenario.addresses.left(scenario.keys[0]), Some(ClientId(0)));
    assert_eq!(scenario.frame(), [0]);
    scenario.frame();
    assert_eq!(scenario.states()[1], HandshakeState::Connected);
    let counts = &scenario.addresses.counts;
    assert_eq!((counts.joined, counts.sessions_taken_over, scenario.addresses.players_count()), (2, 1, 1));
}

/// With a fixed port, or behind a translator that keeps it, a client that crashed has the address that its session has.
#[test]
fn a_player_who_comes_back_from_the_same_port_takes_over_too() {
    let mut scenario = Scenario::new(1, &ServerSettings::default());
    scenario.directory.ready.insert(0);
    assert_eq!(scenario.frames(30), [0]);
    scenario.crash_and_come_back(0, 0);
    assert_eq!(scenario.frames(10), [0; 0], "the earlier session is there still");
    assert_eq!(scenario.dismissed, scenario.keys, "its world is told, once");
    assert_eq!(scenario.told()[0], BEING_MADE);

    assert_eq!(scenario.addresses.left(scenario.keys[0]), Some(ClientId(0)));
    assert_eq!(scenario.frame(), [0]);
    scenario.frame();
    assert_eq!(scenario.states()[0], HandshakeState::Connected);
    let counts = &scenario.addresses.counts;
    assert_eq!((counts.joined, counts.sessions_taken_over, scenario.addresses.players_count()), (2, 1, 1));
    assert_ne!(scenario.keys[0], scenario.keys[1]);
}

/// Steps of a handshake that anybody can write, and a whole handshake of somebody else.
#[test]
fn forged_handshakes_and_other_peoples_tokens_end_no_session() {
    let mut scenario = Scenario::new(1, &ServerSettings::default());
    scenario.directory.ready.extend([0, 1]);
    assert_eq!(scenario.frames(30), [0]);
    let mut datagram = [0; 1400];
    let (_, mut forged) = newcomer(&scenario.network, 0, 500, scenario.now);
    let (_, hello_bytes) = forged.poll(scenario.now, UNIX_S, &mut datagram).expect("due at once");
    for prefix in [7, 9, 0, 0x83] {
        let bytes = match prefix {
            7 | 9 => hello_bytes,
            0 => 1_078,
            _ => 1 + 8 + 308 + 16,
        };
        datagram[0] = prefix;
        for _ in 0..20 {
            scenario.clients[0].0.send_to(&datagram[..bytes], SERVER);
        }
        scenario.frames(5);
    }
    scenario.crash_and_come_back(0, 1);
    assert_eq!(scenario.frames(50), [0; 0]);
    assert!(scenario.dismissed.is_empty());
    assert_eq!((scenario.addresses.players_count(), scenario.addresses.counts.sessions_taken_over), (1, 0));
    assert_eq!(scenario.addresses.counts.implausible, 0, "what the handshake dropped is the handshake's to count");
}

/// The directory knows of the earlier session only, and is told nothing of who waited for its end.
#[test]
fn who_waits_for_a_session_that_does_not_end_is_refused_in_time() {
    let settings = ServerSettings { placement_timeout_s: 2, ..ServerSettings::default() };
    let mut scenario = Scenario::new(1, &settings);
    scenario.directory.ready.insert(0);
    assert_eq!(scenario.frames(30), [0]);
    scenario.silent.insert(0);
    scenario.come_back(0);
    scenario.frames(60);
    let denied = HandshakeState::Failed(HandshakeFailure::Denied(DenialReason::AlreadyConnected));
    assert_eq!((scenario.states()[1], scenario.directory.left.len()), (denied, 0));
    assert_eq!(scenario.addresses.players_count(), 1);
    assert!(!scenario.addresses.has_waiting());
}
