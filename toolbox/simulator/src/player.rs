//! A player: a client, its place on the network, and the behaviour that steers it.
//!
//! Does what a bot of a swarm does (`throng_bots`), with time and datagrams handed to it.

use std::net::{IpAddr, SocketAddr};

use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::{Behaviour, BehaviourCounters, SlowedThoughts};
use throng_client::{Client, ClientEvent, ClientState, DisconnectReason};
use throng_net::protocol::{ClientId, ConnectToken, ProtocolId, TokenRequest, user_data};
use throng_net::transport::{MemoryEndpoint, MemoryNetwork};
use throng_platform::time::Nanos;
use throng_replication::StateError;

use crate::settings::{SERVER_ADDRESS, SimulationSettings};
use crate::tap::Listener;
use crate::totals::Totals;

/// Client ids begin here, so that no player has the default one.
const CLIENT_ID_FIRST: u64 = 1;
/// How long a token may be shown (s). Players show theirs at once, but the network may be dark for a while.
const TOKEN_LIFE_S: u64 = 300;
/// State errors of one player that are kept in words.
const STATE_ERRORS_TOLD_MAX: usize = 4;

/// One player of a simulation.
pub struct Player {
    client: Client,
    behaviour: Box<dyn Behaviour>,
    rng: Xoshiro256PlusPlus,
    thoughts: SlowedThoughts,
    endpoint: MemoryEndpoint,
    think_period: Nanos,
    next_thought_at: Nanos,
    was_in_world: bool,
    end: Option<DisconnectReason>,
    state_errors: Vec<StateError>,
    /// With a tap: hears what the server sends this player.
    pub(crate) listener: Option<Listener>,
}

impl Player {
    pub(crate) fn new(
        index: usize,
        behaviour: Box<dyn Behaviour>,
        settings: &SimulationSettings,
        network: &MemoryNetwork,
        rng: &mut ChaCha20Rng,
        (now, unix_s): (Nanos, u64),
    ) -> Self {
        let request = TokenRequest {
            protocol_id: ProtocolId(settings.server.server.protocol_id),
            client_id: ClientId(CLIENT_ID_FIRST + index as u64),
            server_addresses: vec![SERVER_ADDRESS],
            created_unix_s: unix_s,
            expires_unix_s: unix_s + TOKEN_LIFE_S,
            timeout_s: settings.token_timeout_s as i32,
            user_data: user_data(&[], true).expect("nothing always fits"),
        };
        let token = ConnectToken::generate(&request, &settings.private_key(), rng).expect("the request is in order");
        let mut link_seed = [0; 32];
        rng.fill_bytes(&mut link_seed);
        let listener = settings.tap.then(|| Listener::new(token.clone(), now, link_seed));
        let schema = settings.client_schema.as_ref().unwrap_or(&settings.schema);
        let think_period = Nanos(1_000_000_000 / u64::from(settings.think_hz));
        Self {
            client: Client::new(token, schema.clone(), now, link_seed),
            behaviour,
            rng: Xoshiro256PlusPlus::seed_from_u64(rng.next_u64()),
            thoughts: SlowedThoughts::default(),
            endpoint: network.endpoint(address_of(index)),
            think_period,
            // Spread over the period, as players are.
            next_thought_at: now + Nanos(rng.random_range(0..think_period.0)),
            was_in_world: false,
            end: None,
            state_errors: Vec::new(),
            listener,
        }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Why its connection is over, if it is.
    pub fn end(&self) -> Option<DisconnectReason> {
        self.end
    }

    /// True from the moment when its first world was named.
    pub fn was_in_world(&self) -> bool {
        self.was_in_world
    }

    /// Takes what has arrived, and thinks if it is time.
    pub(crate) fn step(&mut self, now: Nanos, unix_s: u64) {
        let mut has_received = false;
        while let Some((_, mut datagram)) = self.endpoint.receive() {
            self.client.receive(now, &mut datagram);
            has_received = true;
        }
        self.follow();
        if now >= self.next_thought_at {
            self.next_thought_at += self.think_period;
            let is_connected = self.client.state() == ClientState::Connected;
            if is_connected && self.thoughts.take_turn(self.client.time_factor()) {
                self.behaviour.think(now, &mut self.client, &mut self.rng);
                self.client.clear_messages();
            }
            self.client.poll(now, unix_s, &mut self.endpoint);
        } else if has_received && self.client.state() == ClientState::Connecting {
            // The next step of a handshake is not worth waiting a whole period for.
            self.client.poll(now, unix_s, &mut self.endpoint);
        }
        self.follow();
    }

    pub(crate) fn leave(&mut self, now: Nanos) {
        self.client.close(now, &mut self.endpoint);
        self.follow();
    }

    pub(crate) fn count_into(&self, totals: &mut Totals, index: usize) {
        match self.end {
            None if self.was_in_world => totals.playing += 1,
            None => totals.joining += 1,
            Some(DisconnectReason::ClosedByClient) => totals.left += 1,
            Some(_) => totals.disconnects += 1,
        }
        let stats = self.client.stats();
        totals.entity_updates += stats.entity_updates;
        totals.state_checks += stats.state_checks;
        totals.state_errors += stats.state_errors;
        totals.state_checks_superseded += stats.state_checks_superseded;
        totals.protocol_errors += stats.protocol_errors;
        totals.state_error_examples.extend(self.state_errors.iter().map(|error| format!("player {index}: {error}")));
        for (name, total) in self.behaviour.counters().iter() {
            let sum = totals.counters.entry(name).or_default();
            *sum = BehaviourCounters::joined(name, *sum, total);
        }
    }

    fn follow(&mut self) {
        while let Some(event) = self.client.next_event() {
            match event {
                ClientEvent::EnteredWorld { .. } => self.was_in_world = true,
                ClientEvent::Disconnected(reason) => self.end = Some(reason),
                ClientEvent::AttemptFailed(_) | ClientEvent::Connected | ClientEvent::OwnEntityChanged => {}
            }
        }
        while let Some(error) = self.client.next_state_error() {
            if self.state_errors.len() < STATE_ERRORS_TOLD_MAX {
                self.state_errors.push(error);
            }
        }
    }
}

/// Every player has an address of its own, in 10.1.0.0/16.
fn address_of(index: usize) -> SocketAddr {
    let [_, _, high, low] = (index as u32).to_be_bytes();
    SocketAddr::new(IpAddr::from([10, 1, high, low]), 50_000)
}

/// Whose address it is, if it is a player's.
pub(crate) fn index_of(address: SocketAddr) -> Option<usize> {
    match address.ip() {
        IpAddr::V4(ip) if ip.octets()[..2] == [10, 1] => Some((ip.to_bits() & 0xFFFF) as usize),
        _ => None,
    }
}
