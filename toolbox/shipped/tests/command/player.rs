//! One player whose every datagram is in the test's hands.

use std::{
    net::{SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

use throng_client::{Client, ClientState};
use throng_net::{connection::PacketSink, protocol::ConnectToken};
use throng_platform::{
    clock::{Clock, MonotonicClock},
    random,
    time::Nanos,
};

use crate::game::Game;

/// A player's program sends its input so often.
const INPUT_PERIOD: Nanos = Nanos::from_millis(50);

pub struct Player {
    pub client: Client,
    clock: MonotonicClock,
    socket: UdpSocket,
    next_input: Nanos,
    /// What it sends as its input.
    idle_input: Vec<u8>,
    /// Every datagram that was sent, as it went over the wire, up to [`KEPT_MAX`].
    pub sent: Vec<Vec<u8>>,
}

/// Enough for a handshake and some seconds of play.
const KEPT_MAX: usize = 200;

impl Player {
    pub fn new(token: ConnectToken) -> Self {
        Self::of(Game::Precinct, token)
    }

    fn of(game: Game, token: ConnectToken) -> Self {
        let clock = MonotonicClock::new();
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket.set_nonblocking(true).expect("a socket of ours");
        let client = Client::new(token, game.schema(), clock.now(), random::seed());
        let idle_input = game.idle_input();
        Self { client, clock, socket, next_input: Nanos::ZERO, idle_input, sent: Vec::new() }
    }

    /// Connects and plays until it is in a world.
    pub fn enter(token: ConnectToken) -> Self {
        Self::enter_in(Game::Precinct, token)
    }

    /// The same where another game is played.
    pub fn enter_in(game: Game, token: ConnectToken) -> Self {
        let mut player = Self::of(game, token);
        let is_in = player.play_until(Duration::from_secs(30), |player| player.client.world().is_some());
        assert!(is_in, "never came into a world: {:?}", player.client.state());
        player
    }

    /// Stands still, sending its inputs, until `done` or for `within`; says whether it was done.
    pub fn play_until(&mut self, within: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let deadline = Instant::now() + within;
        while Instant::now() < deadline {
            self.receive();
            if self.clock.now() >= self.next_input {
                self.send_input();
                self.next_input = self.clock.now() + INPUT_PERIOD;
            }
            self.send();
            if done(self) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        false
    }

    /// Of its stay in its world.
    pub fn epoch(&self) -> u8 {
        self.client.world().expect("it is in a world").epoch
    }

    /// Takes what waits in the socket.
    pub fn receive(&mut self) {
        let mut datagram = [0; 2_048];
        // An error is an ICMP answer to an earlier send; the connection's own timeout judges.
        while let Ok(len) = self.socket.recv(&mut datagram) {
            self.client.receive(self.clock.now(), &mut datagram[..len]);
        }
        self.client.clear_messages();
    }

    /// Throws away what waits in the socket, as a kernel does whose buffer is full.
    pub fn lose_what_waits(&mut self) {
        while self.socket.recv(&mut [0; 2_048]).is_ok() {}
    }

    /// Sends one input now, in a packet of its own.
    pub fn send_input(&mut self) {
        // Before the first world inputs are refused.
        let _ = self.client.send_raw_input(self.clock.now(), &self.idle_input);
        self.send();
    }

    /// Sends any bytes as an input, in a packet of its own.
    pub fn send_as_input(&mut self, bytes: &[u8]) {
        self.client.send_raw_input(self.clock.now(), bytes).expect("it is in a world");
        self.send();
    }

    /// Sends so many inputs in as few packets as hold them.
    pub fn send_inputs_together(&mut self, count: usize) {
        for _ in 0..count {
            let _ = self.client.send_raw_input(self.clock.now(), &self.idle_input);
        }
        self.send();
    }

    fn send(&mut self) {
        let mut wire = Wire { socket: &self.socket, buffer: [0; 1_400], sent: &mut self.sent };
        self.client.poll(self.clock.now(), self.clock.unix_seconds(), &mut wire);
    }

    /// Where it sends from.
    pub fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("a bound socket has one")
    }

    pub fn is_connected(&self) -> bool {
        self.client.state() == ClientState::Connected
    }

    /// Says goodbye.
    pub fn leave(mut self) {
        let mut wire = Wire { socket: &self.socket, buffer: [0; 1_400], sent: &mut self.sent };
        self.client.close(self.clock.now(), &mut wire);
    }
}

struct Wire<'a> {
    socket: &'a UdpSocket,
    buffer: [u8; 1_400],
    sent: &'a mut Vec<Vec<u8>>,
}

impl PacketSink for Wire<'_> {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    fn commit(&mut self, to: SocketAddr, len: usize) {
        let datagram = &self.buffer[..len];
        // A datagram that the kernel does not take is a lost one.
        let _ = self.socket.send_to(datagram, to);
        if self.sent.len() < KEPT_MAX {
            self.sent.push(datagram.to_vec());
        }
    }
}
