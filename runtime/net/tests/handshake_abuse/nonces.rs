//! Promise: no (key, nonce) pair is ever sealed twice, over restarts, crashes, retries and long sessions.
//!
//! The nonce is the packet's sequence, which travels in the clear: so the test reads it off the wire, as an
//! attacker would, and knows the key by its token and direction.

use std::collections::HashMap;
use std::net::SocketAddr;

use throng_net::protocol::{ConnectToken, HandshakeState, Opened, Reply, SealedLink, ServerHandshakeSettings};
use throng_platform::time::Nanos;

use crate::scene::*;

const NOW: Nanos = Nanos::from_secs(1);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Direction {
    ToServer,
    ToClient,
}

/// Every nonce seen, as runs of neighbours per key.
#[derive(Default)]
struct NonceRecord {
    runs: HashMap<(u64, Direction), Vec<(u64, u64)>>,
    sealed: u64,
    repeats: u64,
}

impl NonceRecord {
    fn saw(&mut self, token: u64, direction: Direction, datagram: &[u8]) {
        let (kind, sequence_bytes) = (datagram[0] & 0x0F, usize::from(datagram[0] >> 4));
        if !(1..=6).contains(&kind) && kind != 10 {
            return;
        }
        let mut sequence = [0; 8];
        sequence[..sequence_bytes].copy_from_slice(&datagram[1..][..sequence_bytes]);
        let sequence = u64::from_le_bytes(sequence);
        self.sealed += 1;
        let runs = self.runs.entry((token, direction)).or_default();
        self.repeats += u64::from(runs.iter().any(|&(first, last)| (first..=last).contains(&sequence)));
        match runs.iter_mut().rev().find(|(_, last)| sequence.checked_sub(1) == Some(*last)) {
            Some((_, last)) => *last = sequence,
            None => runs.push((sequence, sequence)),
        }
    }

    /// One run of a server, from its start to its crash: a handshake with repeats, then traffic.
    fn run(&mut self, token_number: u64, token: ConnectToken, from: SocketAddr, seed: u64, packets: u64) {
        let mut server_handshake = server_handshake(ServerHandshakeSettings { clients_max: 1, ..settings() }, seed);
        let mut walker = Walker::new(token, from, seed.is_multiple_of(2), NOW, seed);
        let mut reply = Reply::new();
        // It is told its place some times before it is let in.
        for step in 0..8 {
            let now = NOW + Nanos::from_millis(600 * step);
            let datagram = walker.says(now).expect("a step is due");
            self.saw(token_number, Direction::ToServer, &datagram);
            // The path duplicates everything; each copy is answered but those of a response.
            for _ in 0..2 {
                server_handshake.handle(from, &mut datagram.clone(), &mut reply);
                if !reply.is_empty() {
                    self.saw(token_number, Direction::ToClient, reply.bytes());
                    walker.hears(now, &reply);
                }
            }
        }
        // Plain clients, the odd ones, are told nothing.
        assert_eq!(server_handshake.stats().places_told > 0, seed.is_multiple_of(2));
        let server_link = server_handshake.admit_next(&mut reply).map(|admitted| admitted.link);
        self.saw(token_number, Direction::ToClient, reply.bytes());
        walker.hears(NOW, &reply);
        assert_eq!(walker.handshake.state(), HandshakeState::Connected);
        let mut client_link = walker.handshake.into_link();
        let mut server_link = server_link.expect("both sides are connected");
        for packet in 0..packets {
            self.send(token_number, Direction::ToServer, &mut client_link, &mut server_link, packet);
            self.send(token_number, Direction::ToClient, &mut server_link, &mut client_link, packet);
        }
    }

    fn send(&mut self, token: u64, direction: Direction, from: &mut SealedLink, to: &mut SealedLink, packet: u64) {
        let mut out = [0; 1400];
        let len = match packet % 4 {
            0 => from.seal_keep_alive(&mut out, NOW),
            1 => from.seal_disconnect(&mut out, NOW),
            _ => from.seal_payload(&packet.to_le_bytes(), &mut out, NOW),
        };
        self.saw(token, direction, &out[..len]);
        let opened = to.open(&mut out[..len], NOW).expect("a perfect path");
        match packet % 4 {
            0 => assert_eq!(opened, Opened::KeepAlive),
            1 => assert_eq!(opened, Opened::Disconnect),
            _ => assert_eq!(opened, Opened::Payload(&packet.to_le_bytes())),
        }
    }
}

/// The same token again after every crash, with its journal lost: the worst that can happen to a key.
#[test]
fn r06_a_thousand_crashes_with_the_same_token_repeat_no_nonce() {
    let mut record = NonceRecord::default();
    for crash in 0..1_000 {
        record.run(0, token(1, 1), client_address(0), crash, 20);
    }
    assert_eq!(record.repeats, 0, "of {} packets", record.sealed);
    assert!(record.sealed > 40_000);
}

#[test]
fn r06_ten_thousand_starts_and_stops_repeat_no_nonce() {
    let mut record = NonceRecord::default();
    for start in 0..10_000 {
        let token_number = start / 2;
        record.run(token_number, token(token_number, token_number), client_address(start), start, 4);
    }
    assert_eq!(record.repeats, 0, "of {} packets", record.sealed);
}

/// The control: were seeds not fresh, the record would tell.
#[test]
fn the_record_sees_a_repeat_when_a_seed_is_used_twice() {
    let mut record = NonceRecord::default();
    record.run(0, token(1, 1), client_address(0), 7, 20);
    assert_eq!(record.repeats, 0);
    record.run(0, token(1, 1), client_address(0), 7, 20);
    assert!(record.repeats > 40);
}

#[test]
#[ignore = "the full size: 1e8 packets"]
fn r06_a_hundred_million_packets_repeat_no_nonce() {
    let mut record = NonceRecord::default();
    record.run(0, token(1, 1), client_address(0), 1, 50_000_000);
    assert_eq!(record.repeats, 0, "of {} packets", record.sealed);
}
