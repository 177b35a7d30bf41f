//! Promise: a steady connection does not allocate, a resting one is small, and `room` is exact.

use std::time::Instant;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_net::connection::{Channel, Channels, Connection, ROOM_MAX, Received, UNRELIABLE_BYTES_MAX};
use throng_platform::allocator::thread_counts;
use throng_platform::time::Nanos;

use crate::pair::{Outbox, connect};

const PAYLOAD_BYTES: usize = 1_200;
const TICK: Nanos = Nanos::from_millis(50);

/// A client and a server that talk as in a game, 20 times a second, on a path with losses.
struct Talk {
    client: Connection,
    server: Connection,
    now: Nanos,
    tick: u64,
    to_server: Outbox,
    to_client: Outbox,
    received: Received,
    rng: Xoshiro256PlusPlus,
    loss: f64,
}

impl Talk {
    fn new(loss: f64) -> Talk {
        let (client, server) = connect(1);
        Talk {
            client,
            server,
            now: Nanos::ZERO,
            tick: 0,
            to_server: Outbox::new(),
            to_client: Outbox::new(),
            received: Received::default(),
            rng: Xoshiro256PlusPlus::seed_from_u64(3),
            loss,
        }
    }

    fn tick(&mut self) {
        let Talk { client, server, now, tick, to_server, to_client, received, rng, loss } = self;
        *now += TICK;
        *tick += 1;
        client.send_unreliable(&[1; 40]).unwrap();
        client.send_packet(*now, &[], to_server);
        if tick.is_multiple_of(4) {
            server.send_reliable(&[2; 100]).unwrap();
        }
        server.send_packet(*now, &[3; 600], to_client);
        for (outbox, to) in [(to_server, server), (to_client, client)] {
            received.clear();
            outbox.drain(|datagram| {
                if !rng.random_bool(*loss) {
                    to.receive(*now, datagram, received).unwrap();
                }
            });
            to.update(*now, received);
        }
    }
}

#[test]
fn a_steady_connection_does_not_allocate() {
    for loss in [0.0, 0.05] {
        let mut talk = Talk::new(loss);
        (0..400).for_each(|_| talk.tick());
        let before = thread_counts();
        (0..2_000).for_each(|_| talk.tick());
        let counts = thread_counts() - before;
        assert_eq!((counts.allocations, counts.frees), (0, 0), "at {} % loss", loss * 100.0);
        assert_eq!(talk.server.ended(talk.now), None);
    }
}

#[test]
fn a_resting_connection_is_small_and_a_burst_is_given_back() {
    let mut talk = Talk::new(0.0);
    println!("a connection is {} B, and on the heap {} B", size_of::<Connection>(), talk.server.heap_bytes());
    assert_eq!(talk.server.heap_bytes(), 0);
    (0..100).for_each(|_| talk.tick());
    let steady = talk.server.heap_bytes();
    println!("at 20 Hz: {steady} B on the heap");
    assert!(size_of::<Connection>() + steady <= 8 * 1024);

    talk.server.send_reliable(&[1; 60_000]).unwrap();
    talk.tick();
    let burst = talk.server.heap_bytes();
    println!("with 60,000 B queued: {burst} B");
    assert!((60_000..80_000).contains(&burst));
    // The steady talk keeps a block in use now and then, so let it rest.
    for _ in 0..100 {
        talk.tick();
    }
    for _ in 0..800 {
        talk.now += TICK;
        talk.received.clear();
        let Talk { client, server, now, to_server, to_client, received, .. } = &mut talk;
        while server.wants_packet(*now) {
            server.send_packet(*now, &[], to_client);
        }
        while client.wants_packet(*now) {
            client.send_packet(*now, &[], to_server);
        }
        to_client.drain(|datagram| client.receive(*now, datagram, received).unwrap());
        to_server.drain(|datagram| server.receive(*now, datagram, received).unwrap());
        server.update(*now, received);
    }
    let rest = talk.server.heap_bytes();
    println!("40 s later: {rest} B");
    assert!(rest <= 4 * 1024);
}

/// `room` bytes fill the packet to the last byte, so one more would not fit; and all that was planned
/// arrives.
#[test]
fn room_is_exact() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    let mut received = Received::default();
    let (mut a, mut b) = (Channels::new(Nanos::ZERO), Channels::new(Nanos::ZERO));
    assert_eq!(a.room(), ROOM_MAX);
    let (mut full, mut none) = (0, 0);
    for number in 0..50_000u64 {
        let now = Nanos::from_millis(number);
        for _ in 0..rng.random_range(0..3) {
            let _ = a.send_reliable(&vec![1; rng.random_range(1..1_500)]);
        }
        for _ in 0..rng.random_range(0..3) {
            a.send_unreliable(&vec![2; rng.random_range(1..UNRELIABLE_BYTES_MAX)]).unwrap();
        }
        let room = a.room();
        let mut payload = [0; PAYLOAD_BYTES];
        let (_, len) = a.write(now, &vec![3; room], &mut payload);
        received.clear();
        b.read(now, &payload[..len], &mut received).unwrap();
        if room > 0 {
            assert_eq!(len, PAYLOAD_BYTES);
            let arrived = |(channel, message): (Channel, &[u8])| {
                channel == Channel::Unreliable && message.len() == room && message[0] == 3
            };
            assert!(received.messages().any(arrived));
            full += 1;
        } else {
            none += 1;
        }
        // The answer makes room for more, most of the time.
        if rng.random_bool(0.7) {
            let (_, len) = b.write(now, &[], &mut payload);
            a.read(now, &payload[..len], &mut received).unwrap();
        }
        a.update(now, now, &mut received);
        b.update(now, now, &mut received);
    }
    assert!(full > 10_000 && none > 100, "{full} {none}");
}

#[test]
#[should_panic(expected = "longer than its room")]
#[cfg(debug_assertions)]
fn a_message_longer_than_its_room_is_our_bug() {
    let mut channels = Channels::new(Nanos::ZERO);
    channels.write(Nanos::ZERO, &[0; ROOM_MAX + 1], &mut [0; PAYLOAD_BYTES]);
}

/// The cost of a packet each way above encryption; a figure to compare, not a promise.
#[test]
fn a_packet_costs_little() {
    let mut received = Received::default();
    let (mut a, mut b) = (Channels::new(Nanos::ZERO), Channels::new(Nanos::ZERO));
    let mut payload = [0; PAYLOAD_BYTES];
    const ROUNDS: u64 = 100_000;
    let start = Instant::now();
    for number in 0..ROUNDS {
        let now = Nanos::from_millis(number * 50);
        for (from, to, message) in [(0, 1, &[1u8; 600][..]), (1, 0, &[2; 40][..])] {
            let (from, to) = if from < to { (&mut a, &mut b) } else { (&mut b, &mut a) };
            let (_, len) = from.write(now, message, &mut payload);
            received.clear();
            to.read(now, &payload[..len], &mut received).unwrap();
            from.update(now, now, &mut received);
        }
    }
    println!("a packet written, read and acked: {} ns", start.elapsed().as_nanos() as u64 / (2 * ROUNDS));
}
