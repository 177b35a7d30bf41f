//! The promises of the relay: what a line is asked to do it does, the same again for the same seed.

use std::time::{Duration, Instant};

use super::*;

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const GOOD: Impairment = Impairment::NONE;

/// Two ends with a relay between them.
struct Scene {
    client: std::net::UdpSocket,
    server: std::net::UdpSocket,
    relay: Relay,
}

impl Scene {
    fn new(seed: u64, to_server: Impairment, to_client: Impairment) -> Self {
        let end = || {
            let socket = std::net::UdpSocket::bind(LOOPBACK).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            socket
        };
        let (client, server) = (end(), end());
        let relay = Relay::start(LOOPBACK, server.local_addr().unwrap(), seed, to_server, to_client).unwrap();
        Self { client, server, relay }
    }

    /// Sends datagrams with numbers in turn, and returns what the server hears until it is silent.
    fn numbers_heard(&self, count: u32) -> Vec<(u32, SocketAddr)> {
        let mut heard = Vec::new();
        let mut hear = || {
            let mut bytes = [0; 4];
            while let Ok((4, from)) = self.server.recv_from(&mut bytes) {
                heard.push((u32::from_le_bytes(bytes), from));
            }
        };
        self.server.set_nonblocking(true).unwrap();
        for number in 0..count {
            self.client.send_to(&number.to_le_bytes(), self.relay.address()).unwrap();
            // A burst would be for the kernel's small buffers to lose, not for the relay.
            if number % 32 == 31 {
                std::thread::sleep(Duration::from_millis(1));
                hear();
            }
        }
        self.server.set_nonblocking(false).unwrap();
        hear();
        heard
    }
}

#[test]
fn a_good_relay_passes_everything_in_order_both_ways() {
    let scene = Scene::new(1, GOOD, GOOD);
    let heard = scene.numbers_heard(1_000);
    assert!(heard.iter().map(|(number, _)| *number).eq(0..1_000));
    let (_, back) = heard[0];
    assert!(heard.iter().all(|(_, from)| *from == back), "one client has one address at the server");

    scene.server.send_to(b"answer", back).unwrap();
    let mut answer = [0; 16];
    let (len, from) = scene.client.recv_from(&mut answer).unwrap();
    assert_eq!((&answer[..len], from), (&b"answer"[..], scene.relay.address()));
    // Its own count is told a moment after the datagram itself.
    let deadline = Instant::now() + Duration::from_secs(10);
    while scene.relay.counts().carried < 1_001 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    let RelayCounts { taken, carried, refused, .. } = scene.relay.counts();
    assert_eq!((taken, carried, refused), (1_001, 1_001, 0));
}

#[test]
fn the_same_seed_loses_and_doubles_the_same_ones() {
    let bad = Impairment { loss: 0.3, duplication: 0.1, ..GOOD };
    let heard = |seed| {
        let mut heard: Vec<u32> = Scene::new(seed, bad, GOOD).numbers_heard(500).iter().map(|it| it.0).collect();
        heard.sort_unstable();
        heard
    };
    let first = heard(5);
    assert_eq!(first, heard(5));
    assert_ne!(first, heard(6));
    assert!((300..450).contains(&first.len()), "{} of 500", first.len());
}

#[test]
fn held_back_datagrams_are_overtaken_and_turned_bits_arrive() {
    let bad = Impairment { reordering: 0.3, reorder_delay: Nanos::from_millis(20), corruption: 0.2, ..GOOD };
    let scene = Scene::new(1, bad, GOOD);
    let heard = scene.numbers_heard(500);
    assert_eq!(heard.len(), 500);
    assert!(!heard.is_sorted(), "some were overtaken");
    let counts = scene.relay.counts();
    assert!((100..200).contains(&counts.held_back) && (60..140).contains(&counts.corrupted), "{counts:?}");
}

#[test]
fn a_delay_is_kept_and_can_be_changed() {
    let scene = Scene::new(1, Impairment { delay: Nanos::from_millis(100), ..GOOD }, GOOD);
    let begin = Instant::now();
    assert_eq!(scene.numbers_heard(1).len(), 1);
    assert!(begin.elapsed() >= Duration::from_millis(100));
    scene.relay.impair(Impairment { loss: 1.0, ..GOOD }, GOOD);
    assert_eq!(scene.numbers_heard(10).len(), 0);
    assert_eq!(scene.relay.counts().lost, 10);
}

#[test]
fn two_clients_are_two_addresses_at_the_server() {
    let scene = Scene::new(1, GOOD, GOOD);
    let other = std::net::UdpSocket::bind(LOOPBACK).unwrap();
    other.send_to(&7_u32.to_le_bytes(), scene.relay.address()).unwrap();
    let heard = scene.numbers_heard(1);
    let addresses: std::collections::HashSet<_> = heard.iter().map(|(_, from)| *from).collect();
    assert_eq!((heard.len(), addresses.len()), (2, 2));
}
