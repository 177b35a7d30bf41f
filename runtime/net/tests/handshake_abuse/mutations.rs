//! Promise: whatever bytes come, nothing panics, nothing false is believed, and no reply of the handshake is
//! longer than what asked for it.

use rand::{Rng, RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_net::protocol::{
    ClientHandshake, ConnectToken, HandshakeState, Reply, SealedLink, ServerHandshake, ServerHandshakeOutcome,
    ServerHandshakeSettings, TOKEN_BYTES,
};
use throng_platform::time::Nanos;

use crate::scene::*;

const NOW: Nanos = Nanos::from_secs(1);
const MUTANTS: usize = 200_000;

/// A copy that is certainly not the original: random, bit-flipped, truncated, extended, or spliced.
fn mutant(original: &[u8], rng: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let mut bytes = original.to_vec();
    match rng.random_range(0..6) {
        0 => {
            bytes = vec![0; rng.random_range(0..1_500)];
            rng.fill_bytes(&mut bytes);
        }
        1 => {
            for _ in 0..rng.random_range(1..4) {
                let bit = rng.random_range(0..bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
        2 => bytes.truncate(rng.random_range(0..bytes.len())),
        3 => bytes.extend((0..rng.random_range(1..300)).map(|i| i as u8)),
        4 => {
            let at = rng.random_range(0..bytes.len());
            let end = (at + rng.random_range(1..16)).min(bytes.len());
            rng.fill_bytes(&mut bytes[at..end]);
        }
        // Only the first byte, where the kind and the length of the sequence are.
        _ => bytes[0] = rng.random(),
    }
    if bytes == original {
        bytes.push(0);
    }
    bytes
}

/// Everything that is said in one good handshake: what the client says, and what the server says.
struct Exchange {
    to_server: Vec<Vec<u8>>,
    to_client: Vec<Vec<u8>>,
    server_link: SealedLink,
    client_link: SealedLink,
}

fn exchange(cookie_first: bool) -> Exchange {
    let mut server_handshake = server_handshake(settings(), 1);
    let mut walker = Walker::new(token(1, 1), client_address(0), cookie_first, NOW, 1);
    let mut reply = Reply::new();
    let (mut to_server, mut to_client, mut server_link) = (Vec::new(), Vec::new(), None);
    while let Some(datagram) = walker.says(NOW) {
        to_server.push(datagram.clone());
        if let Some(admitted) = server_handshake.handle_and_admit(client_address(0), &mut datagram.clone(), &mut reply)
        {
            server_link = Some(admitted.link);
        }
        to_client.push(reply.bytes().to_vec());
        walker.hears(NOW, &reply);
    }
    let client_link = walker.handshake.into_link();
    Exchange { to_server, to_client, server_link: server_link.expect("admitted"), client_link }
}

#[test]
fn the_handshake_survives_mutants_and_never_says_more_than_it_was_asked() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let seeds: Vec<Vec<u8>> = [true, false].into_iter().flat_map(|cookie| exchange(cookie).to_server).collect();
    assert_eq!(seeds.len(), 5);
    // The same handshake, with the client's challenge pending: the mutants of its response meet open ears.
    let mut server_handshake =
        server_handshake(ServerHandshakeSettings { proven_openings_per_frame_max: 1_000_000, ..settings() }, 1);
    let mut reply = Reply::new();
    let (mut bytes_in, mut bytes_out) = (0, 0);
    for i in 0..MUTANTS {
        if i % 1_000 == 0 {
            server_handshake.begin_frame(Nanos::from_millis(1_000 + i as u64 / 100), UNIX_S);
            server_handshake.handle(client_address(0), &mut seeds[3].clone(), &mut reply);
        }
        let mut datagram = mutant(&seeds[i % seeds.len()], &mut rng);
        let from = client_address(rng.random_range(0..2));
        let asked = datagram.len();
        let outcome = server_handshake.handle(from, &mut datagram, &mut reply);
        assert!(reply.len() <= asked, "{} bytes for {asked}", reply.len());
        match outcome {
            ServerHandshakeOutcome::Nothing(_) => assert!(reply.is_empty()),
            ServerHandshakeOutcome::Replied => assert!(!reply.is_empty()),
            ServerHandshakeOutcome::Refused { .. } => panic!("mutant {i} is told a reason"),
            ServerHandshakeOutcome::Queued => panic!("mutant {i} stands in line"),
        }
        bytes_in += asked;
        bytes_out += reply.len();
    }
    assert!(bytes_out < bytes_in);
    assert!(server_handshake.pending_count() <= 1, "no mutant opened a token");
}

#[test]
fn a_link_opens_no_mutant() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    let Exchange { mut server_link, mut client_link, .. } = exchange(true);
    let mut out = [0; 1400];
    for i in 0..MUTANTS {
        let (from, to) =
            if i % 2 == 0 { (&mut server_link, &mut client_link) } else { (&mut client_link, &mut server_link) };
        let len = match i % 5 {
            0 => from.seal_keep_alive(&mut out, NOW),
            1 => from.seal_disconnect(&mut out, NOW),
            _ => from.seal_payload(&[i as u8; 1200][..rng.random_range(1..=1200)], &mut out, NOW),
        };
        let mut changed = mutant(&out[..len], &mut rng);
        assert!(to.open(&mut changed, NOW).is_err(), "mutant {i}");
        assert!(to.open(&mut out[..len], NOW).is_ok(), "the original {i} after its mutant");
        assert!(to.open(&mut out[..len].to_vec(), NOW).is_err(), "the original {i} again");
    }
}

#[test]
fn a_clients_handshake_believes_no_mutant() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    for cookie_first in [true, false] {
        let Exchange { to_client, .. } = exchange(cookie_first);
        for step in 0..to_client.len() {
            let mut mutants = 0;
            while mutants < MUTANTS / 5 {
                let mut handshake = at_step(cookie_first, &to_client[..step]);
                for _ in 0..1_000 {
                    let mut datagram = mutant(&to_client[step], &mut rng);
                    handshake.handle(NOW, &mut datagram);
                    assert_eq!(handshake.state(), HandshakeState::Connecting);
                    mutants += 1;
                }
            }
        }
    }
}

/// A handshake that has heard these answers.
fn at_step(cookie_first: bool, heard: &[Vec<u8>]) -> ClientHandshake {
    let mut walker = Walker::new(token(1, 1), client_address(0), cookie_first, NOW, 1);
    for answer in heard {
        walker.handshake.handle(NOW, &mut answer.clone());
    }
    walker.handshake
}

#[test]
fn a_mutated_token_is_read_or_refused() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    let original = token(1, 1).to_bytes();
    let mut read = 0;
    for _ in 0..MUTANTS {
        let mut bytes = [0; TOKEN_BYTES];
        let changed = mutant(&original, &mut rng);
        let len = changed.len().min(TOKEN_BYTES);
        bytes[..len].copy_from_slice(&changed[..len]);
        if let Ok(token) = ConnectToken::from_bytes(&bytes) {
            assert!((1..=32).contains(&token.server_addresses().len()));
            read += 1;
            if read % 100 == 0 {
                refuse_or_challenge(token);
            }
        }
    }
    assert!(read > MUTANTS / 10, "most flips hit parts that only a server can judge: {read}");
}

/// A client that was given a broken token may try it, and the handshake may not fall over it.
fn refuse_or_challenge(token: ConnectToken) {
    let mut server_handshake: ServerHandshake = server_handshake(settings(), 1);
    let mut reply = Reply::new();
    server_handshake.handle(client_address(0), &mut plain_request_anywhere(token), &mut reply);
}

fn plain_request_anywhere(token: ConnectToken) -> Vec<u8> {
    let settings = throng_net::protocol::ClientHandshakeSettings { cookie_first: false };
    let mut out = [0; 1400];
    let mut handshake = ClientHandshake::new(token, settings, NOW, wide_seed(1));
    let len = handshake.poll(NOW, UNIX_S, &mut out).map_or(0, |(_, len)| len);
    out[..len].to_vec()
}
