//! One bot: a socket, a client, and the behaviour that steers it.

use std::net::SocketAddr;

use rand_xoshiro::Xoshiro256PlusPlus;
use throng_client::{Client, ClientEvent, ClientState, DisconnectReason};
use throng_net::connection::PacketSink;
use throng_net::protocol::{ConnectToken, QueueState};
use throng_platform::time::Nanos;
use throng_platform::udp::{SEND_BYTES_MAX, UdpSocket};
use throng_replication::StateError;

use crate::behaviour::Behaviour;
use crate::report::LatencyHistogram;
use crate::slowed::SlowedThoughts;
use crate::tally::{Tally, Traffic};

/// Datagrams taken from one socket before the others get their turn. A server sends a client a few
/// packets per tick; what is above that is reported as readable again.
const DATAGRAMS_PER_VISIT_MAX: usize = 16;

/// Buffers that all bots of a thread share, since one acts at a time: a thousand bots need one of each.
pub(crate) struct Buffers {
    pub receive: [u8; 2_048],
    pub send: [u8; SEND_BYTES_MAX],
}

impl Buffers {
    pub fn new() -> Self {
        Self { receive: [0; 2_048], send: [0; SEND_BYTES_MAX] }
    }
}

/// State errors that are told in words; the rest is only counted.
pub(crate) const STATE_ERRORS_TOLD_MAX: usize = 8;

/// What bots find out that is more than a count.
pub(crate) struct Findings {
    /// `input_to_update` since the last status.
    pub latency: LatencyHistogram,
    /// The first state errors of the run, one line each, and when they came.
    pub state_errors: Vec<(Nanos, String)>,
}

impl Findings {
    pub fn new() -> Self {
        Self { latency: LatencyHistogram::new(), state_errors: Vec::new() }
    }

    fn note(&mut self, now: Nanos, bot: usize, error: StateError) {
        if self.state_errors.len() == STATE_ERRORS_TOLD_MAX {
            return;
        }
        self.state_errors.push((now, format!("bot {bot}: {error}")));
    }
}

pub(crate) struct Bot {
    index: usize,
    client: Client,
    behaviour: Box<dyn Behaviour>,
    rng: Xoshiro256PlusPlus,
    thoughts: SlowedThoughts,
    traffic: Traffic,
    /// Dropped when the client is disconnected, which also ends its place in epoll.
    socket: Option<UdpSocket>,
    was_in_world: bool,
    /// When it was sent in, and how long it took to a world, or has taken.
    sent_in_at: Nanos,
    login_took: Nanos,
    /// Why the client is disconnected, unless the swarm itself ended it.
    end: Option<DisconnectReason>,
}

impl Bot {
    pub fn new(
        index: usize,
        client: Client,
        behaviour: Box<dyn Behaviour>,
        rng: Xoshiro256PlusPlus,
        socket: UdpSocket,
        now: Nanos,
    ) -> Self {
        Self {
            index,
            client,
            behaviour,
            rng,
            thoughts: SlowedThoughts::default(),
            traffic: Traffic::default(),
            socket: Some(socket),
            was_in_world: false,
            sent_in_at: now,
            login_took: Nanos::ZERO,
            end: None,
        }
    }

    /// True while there is a connection, or one in the making.
    pub fn is_alive(&self) -> bool {
        self.socket.is_some()
    }

    /// Why it failed, if it never got into a world.
    pub fn connect_failure(&self) -> Option<DisconnectReason> {
        self.end.filter(|_| !self.was_in_world)
    }

    /// Takes what waits in the socket.
    pub fn receive(&mut self, now: Nanos, unix_s: u64, buffers: &mut Buffers, findings: &mut Findings) {
        let Some(socket) = &self.socket else { return };
        for _ in 0..DATAGRAMS_PER_VISIT_MAX {
            // An error here is about this moment's socket, as is a lost datagram; the timeout judges.
            let Ok(Some((len, _from))) = socket.recv_from(&mut buffers.receive) else {
                break;
            };
            self.traffic.packets_in += 1;
            self.traffic.bytes_in += len as u64;
            self.client.receive(now, &mut buffers.receive[..len]);
        }
        while let Some(sample) = self.client.next_input_to_update() {
            findings.latency.record(sample);
        }
        while let Some(error) = self.client.next_state_error() {
            findings.note(now, self.index, error);
        }
        if self.client.state() == ClientState::Connecting {
            // The next step of a handshake is not worth waiting a whole period for.
            self.send(now, unix_s, buffers);
        }
        self.follow_client(now);
    }

    /// Whether it was not let in and has rested: it wants a fresh token.
    pub fn wants_token(&self, now: Nanos) -> bool {
        self.is_alive() && self.client.wants_token(now)
    }

    /// The next attempt to come in.
    pub fn try_again(&mut self, token: ConnectToken, now: Nanos, seed: [u8; 32]) {
        self.client.try_again(token, now, seed);
    }

    /// Its turn: think, then send one packet with the input and whatever else is due.
    pub fn think(&mut self, now: Nanos, unix_s: u64, buffers: &mut Buffers) {
        if !self.is_alive() {
            return;
        }
        let is_connected = self.client.state() == ClientState::Connected;
        if is_connected && self.thoughts.take_turn(self.client.time_factor()) {
            self.behaviour.think(now, &mut self.client, &mut self.rng);
            self.client.clear_messages();
        }
        self.send(now, unix_s, buffers);
        self.follow_client(now);
    }

    /// Says goodbye. What was counted stays; it is no disconnect.
    pub fn close(&mut self, now: Nanos, buffers: &mut Buffers) {
        if let Some(socket) = self.socket.take() {
            let traffic = &mut self.traffic;
            self.client.close(now, &mut BotSink { socket: &socket, buffer: &mut buffers.send, traffic });
        }
    }

    /// Adds this bot to the sums.
    pub fn count_into(&self, tally: &mut Tally) {
        let stats = self.client.stats();
        match (self.end, self.was_in_world) {
            (None, true) => tally.playing += 1,
            (None, false) => {
                tally.joining += 1;
                match self.client.queue() {
                    Some(QueueState::InLine { .. }) => tally.queued += 1,
                    Some(QueueState::WorldBeingMade) => tally.awaiting_world += 1,
                    None => {}
                }
            }
            (Some(_), true) => tally.disconnects += 1,
            (Some(_), false) => tally.connect_failures += 1,
        }
        let login = self.client.login_stats();
        tally.login_retries += u64::from(login.attempts - 1);
        tally.login_timeouts += u64::from(login.timeouts);
        for (sum, denied) in tally.login_refusals.iter_mut().zip(login.denied) {
            *sum += u64::from(denied);
        }
        tally.login_took_max = tally.login_took_max.max(self.login_took);
        tally.state_checks += stats.state_checks;
        tally.state_errors += stats.state_errors;
        tally.state_error_bots += u64::from(stats.state_errors > 0);
        tally.state_checks_superseded += stats.state_checks_superseded;
        tally.protocol_errors += stats.protocol_errors;
        tally.travels_refused += stats.travels_refused;
        tally.inputs_unanswered += stats.inputs_unanswered;
        tally.entity_updates += stats.entity_updates;
        tally.traffic.add(&self.traffic);
        for (name, total) in self.behaviour.counters().iter() {
            tally.count(name, total);
        }
    }

    fn send(&mut self, now: Nanos, unix_s: u64, buffers: &mut Buffers) {
        let Some(socket) = &self.socket else { return };
        let mut sink = BotSink { socket, buffer: &mut buffers.send, traffic: &mut self.traffic };
        self.client.poll(now, unix_s, &mut sink);
    }

    fn follow_client(&mut self, now: Nanos) {
        if !self.was_in_world {
            self.login_took = now.saturating_sub(self.sent_in_at);
        }
        while let Some(event) = self.client.next_event() {
            match event {
                ClientEvent::EnteredWorld { .. } => self.was_in_world = true,
                ClientEvent::Disconnected(reason) => {
                    self.end = Some(reason);
                    self.socket = None;
                }
                ClientEvent::AttemptFailed(_) | ClientEvent::Connected | ClientEvent::OwnEntityChanged => {}
            }
        }
    }
}

/// Sends each packet at once, through the bot's own socket.
struct BotSink<'a> {
    socket: &'a UdpSocket,
    buffer: &'a mut [u8; SEND_BYTES_MAX],
    traffic: &'a mut Traffic,
}

impl PacketSink for BotSink<'_> {
    fn buffer(&mut self) -> &mut [u8] {
        self.buffer
    }

    fn commit(&mut self, to: SocketAddr, len: usize) {
        let outcome = self.socket.send_to(&self.buffer[..len], to);
        self.traffic.packets_out += outcome.sent as u64;
        self.traffic.bytes_out += (outcome.sent * len) as u64;
        self.traffic.packets_refused += outcome.dropped as u64;
    }
}
