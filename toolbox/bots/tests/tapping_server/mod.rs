//! The smallest server that a swarm can play on: real sockets, real handshake, one empty world.
//!
//! Every client is told that it has entered the world, and every 50 ms gets a snapshot of nothing
//! that names its newest input. On request the server loses packets both ways, or turns clients out.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_net::connection::{Connection, PacketSink, Received};
use throng_net::control::{self, EnterWorld};
use throng_net::protocol::{PrivateKey, ProtocolId, Reply, ServerHandshake, ServerHandshakeSettings};
use throng_platform::clock::{Clock, MonotonicClock};
use throng_platform::random;
use throng_platform::time::Nanos;
use throng_platform::udp::{BindOptions, UdpSocket};

pub const PROTOCOL_ID: ProtocolId = ProtocolId(77);
pub const PRIVATE_KEY: [u8; 32] = [7; 32];

const TICK: Nanos = Nanos::from_millis(50);

/// What goes wrong on purpose.
#[derive(Clone, Copy, Default)]
pub struct Trouble {
    /// Share of datagrams lost once a client is in, in each direction [0 to 1].
    pub loss: f64,
    /// Clients with an odd id are turned out this long after they came.
    pub turn_out_odd_after: Option<Nanos>,
    /// Messages of a kind that no server sends, one per client.
    pub nonsense: bool,
}

/// What the server counted.
#[derive(Debug, Default)]
pub struct Seen {
    pub admitted: u64,
    pub inputs: u64,
    pub goodbyes: u64,
}

pub struct TappingServer {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl TappingServer {
    pub fn start(trouble: Trouble) -> Self {
        let (socket, _warnings) =
            UdpSocket::bind("127.0.0.1:0".parse().expect("an address"), &BindOptions::default()).expect("a free port");
        let address = socket.local_addr();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut server = Server::new(socket, trouble);
            loop {
                // One more frame after the request takes in what was sent before it.
                let is_last = stopped.load(Ordering::Relaxed);
                server.frame();
                if is_last {
                    return server.seen;
                }
            }
        });
        Self { address, stop, thread }
    }

    pub fn finish(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the server does not panic")
    }
}

struct Slot {
    connection: Connection,
    came: Nanos,
    newest_input: u16,
    next_snapshot: Nanos,
}

struct Server {
    clock: MonotonicClock,
    wire: Wire,
    trouble: Trouble,
    server_handshake: ServerHandshake,
    reply: Reply,
    slots: HashMap<SocketAddr, Slot>,
    received: Received,
    tick: u32,
    seen: Seen,
}

impl Server {
    fn new(socket: UdpSocket, trouble: Trouble) -> Self {
        let settings =
            ServerHandshakeSettings::new(PROTOCOL_ID, PrivateKey::new(PRIVATE_KEY), vec![socket.local_addr()], 64);
        Self {
            clock: MonotonicClock::new(),
            wire: Wire { socket, loss: trouble.loss, rng: Xoshiro256PlusPlus::seed_from_u64(5), buffer: [0; 1400] },
            trouble,
            server_handshake: ServerHandshake::new(settings, random::seed()),
            reply: Reply::new(),
            slots: HashMap::new(),
            received: Received::default(),
            tick: 0,
            seen: Seen::default(),
        }
    }

    fn frame(&mut self) {
        let now = self.clock.now();
        self.server_handshake.begin_frame(now, self.clock.unix_seconds());
        let mut datagram = [0; 2_048];
        while let Some((len, from)) = self.wire.socket.recv_from(&mut datagram).expect("a loopback socket") {
            self.take(now, from, &mut datagram[..len]);
        }
        self.tick = (now.0 / TICK.0) as u32;
        self.send(now);
        self.clock.sleep_until(now + Nanos::from_millis(2));
    }

    fn take(&mut self, now: Nanos, from: SocketAddr, datagram: &mut [u8]) {
        let Some(slot) = self.slots.get_mut(&from) else {
            self.handle_stranger(now, from, datagram);
            return;
        };
        if self.wire.loses_this() {
            return;
        }
        self.received.clear();
        let _ = slot.connection.receive(now, datagram, &mut self.received);
        for (_, message) in self.received.messages() {
            let [control::INPUT, 0, low, high, ..] = message else { panic!("an input of epoch 0: {message:?}") };
            slot.newest_input = slot.newest_input.max(u16::from_le_bytes([*low, *high]));
            self.seen.inputs += 1;
        }
        if self.received.disconnected {
            self.seen.goodbyes += 1;
            self.server_handshake.disconnected(from);
            self.slots.remove(&from);
        }
    }

    fn handle_stranger(&mut self, now: Nanos, from: SocketAddr, datagram: &mut [u8]) {
        let admitted = self.server_handshake.handle_and_admit(from, datagram, &mut self.reply);
        if !self.reply.is_empty() {
            self.wire.send(self.reply.bytes(), from);
        }
        let Some(admitted) = admitted else {
            return;
        };
        self.seen.admitted += 1;
        let mut connection = Connection::new(admitted.link, from, admitted.client_id, now);
        let entered = EnterWorld {
            epoch: 0,
            tick_hz: 20,
            tick: self.tick,
            world: 1,
            own_entity: None,
            has_returned: false,
            is_reactive: false,
            name: "tapping",
        };
        let mut message = [0; control::ENTER_WORLD_BYTES_MAX];
        let len = entered.encode(&mut message);
        connection.send_reliable(&message[..len]).expect("a new connection has room");
        if self.trouble.nonsense {
            connection.send_reliable(&[control::CONTROL, 200]).expect("a new connection has room");
        }
        self.slots.insert(from, Slot { connection, came: now, newest_input: 0, next_snapshot: now });
    }

    fn send(&mut self, now: Nanos) {
        let Self { slots, received, wire, server_handshake, trouble, tick, .. } = self;
        slots.retain(|address, slot| {
            let is_odd = slot.connection.client_id().0 % 2 == 1;
            if is_odd && trouble.turn_out_odd_after.is_some_and(|after| now >= slot.came + after) {
                slot.connection.close(now, wire);
                server_handshake.disconnected(*address);
                return false;
            }
            received.clear();
            slot.connection.update(now, received);
            if now >= slot.next_snapshot {
                let mut snapshot = vec![control::SNAPSHOT, 0];
                snapshot.extend(tick.to_le_bytes());
                snapshot.extend(slot.newest_input.to_le_bytes());
                slot.connection.send_packet(now, &snapshot, wire);
                slot.next_snapshot += TICK;
            }
            true
        });
    }
}

/// A socket that can lose some of what goes through it.
struct Wire {
    socket: UdpSocket,
    loss: f64,
    rng: Xoshiro256PlusPlus,
    buffer: [u8; 1400],
}

impl Wire {
    fn loses_this(&mut self) -> bool {
        self.rng.random_bool(self.loss)
    }

    fn send(&self, datagram: &[u8], to: SocketAddr) {
        assert_eq!(self.socket.send_to(datagram, to).sent, 1, "loopback takes it");
    }
}

impl PacketSink for Wire {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    fn commit(&mut self, to: SocketAddr, len: usize) {
        if !self.loses_this() {
            self.send(&self.buffer[..len], to);
        }
    }
}
