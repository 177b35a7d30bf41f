//! Two bare connections on real sockets with a relay between them, one of which says more than the line carries.

use std::{
    net::{SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use throng_lab::relay::{Impairment, Relay};
use throng_net::{
    connection::{Channel, Connection, PacketSink, Received, SendError},
    protocol::{
        ClientHandshake, ClientHandshakeSettings, ClientId, ConnectToken, PrivateKey, ProtocolId, Reply,
        ServerHandshake, ServerHandshakeSettings, TokenRequest,
    },
};
use throng_platform::{
    clock::{Clock, MonotonicClock},
    random,
    time::Nanos,
};

/// Messages of 3 KB: three packets each.
const MESSAGE_BYTES: usize = 3_000;
/// A server's frame, and how many of them a tick has.
const FRAME: Duration = Duration::from_micros(16_667);
const TICK_FRAMES: u64 = 3;
/// How long what is still owed may take when the line is good again, and what is owed to nobody is waited for.
const OWED_WITHIN: Duration = Duration::from_secs(5);
const UNOWED_WITHIN: Duration = Duration::from_millis(300);

/// What one end said and the other heard.
#[derive(Debug, Clone, Copy, Default)]
pub struct Said {
    /// Heard while the line was as it was asked to be.
    pub bytes: u64,
    pub messages: u64,
    /// Heard twice, too early, too late or with other bytes.
    pub disorders: u64,
    /// Never heard.
    pub missing: u64,
}

struct End {
    connection: Connection,
    socket: UdpSocket,
    received: Received,
}

impl End {
    fn receive(&mut self, now: Nanos) {
        self.received.clear();
        let mut datagram = [0; 2_048];
        while let Ok(len) = self.socket.recv(&mut datagram) {
            // What the line has turned over, or sent twice, is refused here.
            let _ = self.connection.receive(now, &mut datagram[..len], &mut self.received);
        }
        self.connection.update(now, &mut self.received);
        assert_eq!(self.connection.ended(now), None, "a line like this ends no connection");
    }

    fn send(&mut self, now: Nanos) {
        let mut wire = Wire { socket: &self.socket, buffer: [0; 1_400] };
        self.connection.send_packet(now, &[], &mut wire);
    }
}

struct Wire<'a> {
    socket: &'a UdpSocket,
    buffer: [u8; 1_400],
}

impl PacketSink for Wire<'_> {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    fn commit(&mut self, to: SocketAddr, len: usize) {
        // What the kernel does not take is lost.
        let _ = self.socket.send_to(&self.buffer[..len], to);
    }
}

/// Both ends, and the line between them.
pub struct Pair {
    clock: MonotonicClock,
    relay: Relay,
    line: Impairment,
    speaker: End,
    listener: End,
    /// Say everything on the channel that repeats nothing.
    is_trusting: bool,
    frames: u64,
    said: u64,
    next: u64,
    outcome: Said,
}

impl Pair {
    pub fn new(seed: u64, line: Impairment) -> Self {
        let socket = || {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
            socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket of ours");
            socket
        };
        let (speaker, listener) = (socket(), socket());
        let good = Impairment::default();
        let speaker_address = speaker.local_addr().expect("it has one");
        let loopback = "127.0.0.1:0".parse().expect("an address");
        // The listener is the relay's client, as a player is.
        let relay = Relay::start(loopback, speaker_address, seed, good, good).expect("sockets are left");
        listener.send_to(b"where am I", relay.address()).expect("loopback takes it");
        let (_, listener_address) = speaker.recv_from(&mut [0; 16]).expect("a good line");
        for socket in [&speaker, &listener] {
            socket.set_nonblocking(true).expect("a socket of ours");
        }
        let clock = MonotonicClock::new();
        let (to_speaker, to_listener) = connect(clock.now(), relay.address(), listener_address);
        let end = |connection, socket| End { connection, socket, received: Received::default() };
        relay.impair(line, line);
        Self {
            clock,
            relay,
            line,
            speaker: end(to_listener, speaker),
            listener: end(to_speaker, listener),
            is_trusting: false,
            frames: 0,
            said: 0,
            next: 0,
            outcome: Said::default(),
        }
    }

    /// From now on nothing is said again that was lost.
    pub fn trust_the_network(&mut self) {
        self.is_trusting = true;
    }

    /// Talks for so long on all of them, a frame of each in turns, so that what delays one delays the others.
    pub fn talk(pairs: &mut [Pair], length: Duration) {
        let begin = Instant::now();
        for frame in 1.. {
            pairs.iter_mut().for_each(|pair| pair.frame(true));
            if begin.elapsed() >= length {
                break;
            }
            std::thread::sleep((begin + FRAME * frame).saturating_duration_since(Instant::now()));
        }
        pairs.iter_mut().for_each(|pair| pair.outcome.bytes = pair.outcome.messages * MESSAGE_BYTES as u64);
    }

    /// Lets what is still owed arrive on a good line.
    pub fn finish(mut self) -> Said {
        let good = Impairment { delay: self.line.delay, ..Impairment::default() };
        self.relay.impair(good, good);
        let deadline = Instant::now() + if self.is_trusting { UNOWED_WITHIN } else { OWED_WITHIN };
        while self.next < self.said && Instant::now() < deadline {
            self.frame(false);
            std::thread::sleep(FRAME);
        }
        self.outcome.missing = self.said - self.outcome.messages.min(self.said);
        self.outcome
    }

    fn frame(&mut self, speak: bool) {
        let now = self.clock.now();
        self.speaker.receive(now);
        self.listener.receive(now);
        self.hear();
        if speak {
            self.speak();
        }
        let is_tick = self.frames.is_multiple_of(TICK_FRAMES);
        self.frames += 1;
        for end in [&mut self.speaker, &mut self.listener] {
            if is_tick {
                end.send(now);
            }
            while end.connection.wants_packet(now) {
                end.send(now);
            }
        }
    }

    fn speak(&mut self) {
        if self.is_trusting {
            self.speaker.connection.send_unreliable(&message(self.said)[..100]).expect("it fits");
            self.said += 1;
            return self.speaker.send(self.clock.now());
        }
        loop {
            match self.speaker.connection.send_reliable(&message(self.said)) {
                Ok(()) => self.said += 1,
                Err(SendError::Full) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn hear(&mut self) {
        for (channel, bytes) in self.listener.received.messages() {
            if (channel == Channel::Reliable) == self.is_trusting {
                continue;
            }
            let expected = message(self.next);
            if bytes == &expected[..bytes.len().min(expected.len())] && !bytes.is_empty() {
                self.outcome.messages += 1;
                self.next += 1;
            } else {
                self.outcome.disorders += 1;
            }
        }
    }
}

/// The bytes of a message, which follow from its number.
fn message(number: u64) -> Vec<u8> {
    number.to_le_bytes().into_iter().cycle().take(MESSAGE_BYTES).collect()
}

/// Both sides as they are after the handshake: the client's, and the server's.
fn connect(now: Nanos, relay: SocketAddr, client: SocketAddr) -> (Connection, Connection) {
    const UNIX_S: u64 = 1_000;
    let mut rng = ChaCha20Rng::from_seed(random::seed());
    let key = PrivateKey::new([7; 32]);
    let request = TokenRequest {
        protocol_id: ProtocolId(1),
        client_id: ClientId(5),
        server_addresses: vec![relay],
        created_unix_s: UNIX_S,
        expires_unix_s: UNIX_S + 60,
        timeout_s: 10,
        user_data: [0; 256],
    };
    let token = ConnectToken::generate(&request, &key, &mut rng).expect("a request within its limits");
    let mut server_handshake =
        ServerHandshake::new(ServerHandshakeSettings::new(ProtocolId(1), key, vec![relay], 1), random::seed());
    server_handshake.begin_frame(now, UNIX_S);
    let mut handshake = ClientHandshake::new(token, ClientHandshakeSettings::default(), now, random::seed());
    let (mut datagram, mut reply) = ([0; 1_400], Reply::new());
    // Each step is said at most every 200 ms.
    for step in 0_u64.. {
        let Some((_, len)) = handshake.poll(now + Nanos::from_millis(200 * step), UNIX_S, &mut datagram) else {
            continue;
        };
        let admitted = server_handshake.handle_and_admit(client, &mut datagram[..len], &mut reply);
        handshake.handle(now, &mut reply.bytes().to_vec());
        if let Some(admitted) = admitted {
            let server = Connection::new(admitted.link, client, admitted.client_id, now);
            return (Connection::new(handshake.into_link(), relay, ClientId(5), now), server);
        }
    }
    unreachable!("a handshake on a perfect path succeeds")
}
