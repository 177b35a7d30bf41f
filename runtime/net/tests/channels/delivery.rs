//! Promise: on any path, reliable messages arrive once and in order, unreliable ones at most once, and every
//! packet is acked or lost, once.

use std::collections::HashMap;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_net::connection::{
    Channel, Connection, HEAP_BYTES_MAX, MESSAGE_BYTES_MAX, PacketSequence, Received, SendError,
};
use throng_net::transport::{Impairment, MemoryEndpoint, MemoryNetwork};
use throng_platform::time::Nanos;

use crate::pair::{CLIENT, SERVER, connect};

/// One side, what it said, what it heard, and what became of its packets.
struct Side {
    connection: Connection,
    place: MemoryEndpoint,
    received: Received,
    rng: Xoshiro256PlusPlus,
    /// Lengths of reliable messages queued; a message's bytes follow from its number.
    sent: Vec<usize>,
    heard: usize,
    heard_bytes: usize,
    unreliable_sent: u64,
    unreliable_heard: HashMap<u64, u32>,
    /// Packets sent so far, and those whose fate is open.
    packets: u64,
    open: HashMap<u16, u64>,
    acked: u64,
}

impl Side {
    fn new(connection: Connection, place: MemoryEndpoint, seed: u64) -> Side {
        Side {
            connection,
            place,
            received: Received::default(),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            sent: Vec::new(),
            heard: 0,
            heard_bytes: 0,
            unreliable_sent: 0,
            unreliable_heard: HashMap::new(),
            packets: 0,
            open: HashMap::new(),
            acked: 0,
        }
    }

    fn say_reliable(&mut self, len: usize) -> bool {
        match self.connection.send_reliable(&message(self.sent.len(), len)) {
            Ok(()) => self.sent.push(len),
            Err(SendError::Full) => return false,
            Err(error) => panic!("{error}"),
        }
        true
    }

    fn say_something(&mut self) {
        for _ in 0..self.rng.random_range(0..3) {
            let len = match self.rng.random_range(0..20) {
                0 => self.rng.random_range(1..=MESSAGE_BYTES_MAX),
                1..5 => self.rng.random_range(1..3_000),
                _ => self.rng.random_range(1..200),
            };
            self.say_reliable(len);
        }
        let number = self.unreliable_sent.to_le_bytes();
        self.unreliable_sent += 1;
        self.connection.send_unreliable(&number).unwrap();
    }

    fn send(&mut self, now: Nanos, message: &[u8]) {
        let PacketSequence(number) = self.connection.send_packet(now, message, &mut self.place);
        assert_eq!(number, self.packets as u16, "packets are numbered in turn");
        assert_eq!(self.open.insert(number, self.packets), None, "{number} is still open");
        self.packets += 1;
    }

    /// Receives what has come, and checks it against what the other side said.
    fn hear(&mut self, now: Nanos, other_sent: &[usize], other_unreliable: u64) {
        self.received.clear();
        while let Some((_, mut datagram)) = self.place.receive() {
            // Corrupted and duplicated datagrams are refused here.
            let _ = self.connection.receive(now, &mut datagram, &mut self.received);
        }
        self.connection.update(now, &mut self.received);
        assert_eq!(self.connection.ended(now), None);
        for (channel, bytes) in self.received.messages() {
            match channel {
                Channel::Reliable => {
                    let len = other_sent[self.heard];
                    assert!(bytes == message(self.heard, len), "message {} as it was said", self.heard);
                    self.heard += 1;
                    self.heard_bytes += len;
                }
                Channel::Unreliable => {
                    if let Ok(number) = bytes.try_into().map(u64::from_le_bytes) {
                        assert!(number < other_unreliable);
                        *self.unreliable_heard.entry(number).or_default() += 1;
                    }
                }
            }
        }
        for fate in [&self.received.acked, &self.received.lost] {
            for sequence in fate {
                assert!(self.open.remove(&sequence.0).is_some(), "{sequence:?} was told twice, or never sent");
            }
        }
        self.acked += self.received.acked.len() as u64;
        assert!(self.connection.heap_bytes() <= HEAP_BYTES_MAX);
    }
}

/// The bytes of reliable message `number`.
fn message(number: usize, len: usize) -> Vec<u8> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(number as u64);
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes[..]);
    bytes
}

struct Path {
    network: MemoryNetwork,
    now: Nanos,
    sides: [Side; 2],
}

const FRAME: Nanos = Nanos::from_micros(16_667);
/// Frames per tick: 20 ticks/s.
const TICK_FRAMES: u64 = 3;

impl Path {
    fn new(seed: u64, impairment: Impairment) -> Path {
        let (client, server) = connect(seed);
        let network = MemoryNetwork::new(seed, impairment);
        let sides =
            [Side::new(client, network.endpoint(CLIENT), seed), Side::new(server, network.endpoint(SERVER), !seed)];
        Path { network, now: Nanos::ZERO, sides }
    }

    /// One frame: both sides hear; on a tick they `speak` and send a packet; then what wants a packet gets
    /// one.
    fn frame(&mut self, number: u64, mut speak: impl FnMut(&mut Side)) {
        self.now += FRAME;
        self.network.advance(self.now);
        for side in 0..2 {
            let other = &self.sides[1 - side];
            let (sent, unreliable) = (other.sent.clone(), other.unreliable_sent);
            let this = &mut self.sides[side];
            this.hear(self.now, &sent, unreliable);
            if number.is_multiple_of(TICK_FRAMES) {
                speak(this);
                let snapshot = vec![1; this.connection.room(self.now).min(500)];
                this.send(self.now, &snapshot);
            }
            while this.connection.wants_packet(self.now) {
                this.send(self.now, &[]);
            }
        }
    }

    fn run(&mut self, frames: u64, mut speak: impl FnMut(&mut Side)) {
        (0..frames).for_each(|number| self.frame(number, &mut speak));
        self.sides.iter().for_each(|side| side.connection.check());
    }
}

fn random_path(rng: &mut Xoshiro256PlusPlus) -> Impairment {
    Impairment {
        loss: rng.random_range(0.0..0.3),
        duplication: rng.random_range(0.0..0.05),
        reordering: rng.random_range(0.0..0.3),
        reorder_delay: Nanos::from_millis(rng.random_range(1..200)),
        corruption: rng.random_range(0.0..0.01),
        delay: Nanos::from_millis(rng.random_range(0..200)),
        jitter: Nanos::from_millis(rng.random_range(0..50)),
        ..Impairment::NONE
    }
}

/// A path for 10 s with a blackout of 1 s in its middle, then a good one until all is said.
fn check(seed: u64) {
    let bad = random_path(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    let mut path = Path::new(seed, bad);
    path.run(300, Side::say_something);
    path.network.impair(Impairment { loss: 1.0, ..bad });
    path.run(60, Side::say_something);
    path.network.impair(bad);
    path.run(240, Side::say_something);
    path.network.impair(Impairment::default());
    path.run(600, |_| {});

    for (this, other) in [(0, 1), (1, 0)] {
        let [this, other] = [&path.sides[this], &path.sides[other]];
        assert_eq!(this.heard, other.sent.len(), "seed {seed}: everything reliable has arrived");
        assert!(this.unreliable_heard.values().all(|&times| times == 1), "seed {seed}");
        assert!(!this.unreliable_heard.is_empty());
        // The last packets are bare headers, which nobody has to acknowledge soon.
        assert!(this.open.len() < 200, "seed {seed}: {} packets without a fate", this.open.len());
        let stats = this.connection.stats();
        assert_eq!(stats.packets_sent, this.packets);
        assert_eq!(stats.packets_acked, this.acked);
        assert_eq!(stats.packets_acked + stats.packets_lost + this.open.len() as u64, this.packets);
        assert_eq!((stats.malformed, stats.acks_of_unsent, stats.oversize_dropped), (0, 0, 0));
    }
}

#[test]
fn reliable_is_exactly_once_in_order_on_200_bad_paths() {
    (0..200).for_each(check);
}

#[test]
#[ignore = "full form: takes minutes"]
fn r08_reliable_is_exactly_once_in_order_on_10_000_bad_paths() {
    (200..10_200).for_each(check);
}

#[test]
fn a_blackout_of_nine_seconds_is_survived() {
    let mut path = Path::new(1, Impairment { delay: Nanos::from_millis(50), ..Impairment::default() });
    path.run(120, Side::say_something);
    path.network.impair(Impairment { loss: 1.0, ..Impairment::default() });
    path.run(540, Side::say_something);
    path.network.impair(Impairment::default());
    path.run(900, |_| {});
    assert_eq!(path.sides[0].heard, path.sides[1].sent.len());
    assert_eq!(path.sides[1].heard, path.sides[0].sent.len());
}

#[test]
fn five_percent_loss_leaves_seventy_percent_of_the_goodput() {
    let goodput = |loss: f64| {
        let mut path = Path::new(2, Impairment { loss, delay: Nanos::from_millis(50), ..Impairment::default() });
        // Only the server talks, as fast as the channel takes it.
        path.run(1_800, |side| while side.place.local_addr() == SERVER && side.say_reliable(16_000) {});
        path.sides[0].heard_bytes / 30
    };
    let (good, bad) = (goodput(0.0), goodput(0.05));
    println!("reliable goodput at 100 ms: {good} B/s, at 5 % loss {bad} B/s");
    assert!(bad * 10 >= good * 7, "{bad} of {good} B/s");
}

#[test]
fn a_goodbye_ends_the_other_side_and_silence_ends_both() {
    let mut path = Path::new(3, Impairment::default());
    path.run(60, Side::say_something);
    let [client, server] = &mut path.sides;
    client.connection.close(path.now, &mut client.place);
    server.received.clear();
    while let Some((_, mut datagram)) = server.place.receive() {
        let _ = server.connection.receive(path.now, &mut datagram, &mut server.received);
    }
    assert!(server.received.disconnected);
    assert!(server.connection.ended(path.now).is_some());
    assert!(!server.connection.wants_packet(path.now + Nanos::from_secs(2)));

    let (lonely, _) = connect(4);
    assert!(!lonely.timed_out(crate::pair::TIMEOUT - Nanos(1)));
    assert!(lonely.timed_out(crate::pair::TIMEOUT));
}
