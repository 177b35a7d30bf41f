//! Promise: our two ends speak netcode 1.02 with an independent implementation, renetcode, both ways.

#[path = "handshake_abuse/scene.rs"]
#[allow(dead_code)]
mod scene;

use std::time::Duration;

use renetcode::{ClientAuthentication, NetcodeClient, NetcodeServer, ServerAuthentication, ServerConfig, ServerResult};
use scene::*;
use throng_net::protocol::{
    ConnectToken, DenialReason, HandshakeFailure, HandshakeState, Opened, Reply, SealedLink, ServerHandshake,
    ServerHandshakeOutcome, ServerHandshakeSettings, TOKEN_BYTES,
};
use throng_platform::time::Nanos;

const NOW: Nanos = Nanos::from_secs(1);
const STEP: Duration = Duration::from_millis(300);

/// Their token has the client's id in front and no padding behind; the rest is the standard's layout.
fn to_theirs(token: &ConnectToken, client: u64) -> renetcode::ConnectToken {
    let bytes = [&client.to_le_bytes()[..], &token.to_bytes()].concat();
    renetcode::ConnectToken::read(&mut bytes.as_slice()).expect("they read our token")
}

fn to_ours(token: &renetcode::ConnectToken) -> ConnectToken {
    let mut bytes = Vec::new();
    token.write(&mut bytes).expect("into memory");
    let mut padded = [0; TOKEN_BYTES];
    padded[..bytes.len() - 8].copy_from_slice(&bytes[8..]);
    ConnectToken::from_bytes(&padded).expect("we read their token")
}

fn their_token(client: u64) -> renetcode::ConnectToken {
    renetcode::ConnectToken::generate(
        Duration::from_secs(UNIX_S),
        PROTOCOL.0,
        TOKEN_LIFE_S,
        client,
        TIMEOUT_S,
        vec![server_address()],
        Some(&[client as u8; 256]),
        b"a key that back end and server k",
    )
    .expect("a sound request")
}

fn their_client(token: renetcode::ConnectToken) -> NetcodeClient {
    let authentication = ClientAuthentication::Secure { connect_token: token };
    NetcodeClient::new(Duration::from_secs(UNIX_S), authentication).expect("a sound token")
}

fn their_server(clients_max: usize) -> NetcodeServer {
    NetcodeServer::new(ServerConfig {
        current_time: Duration::from_secs(UNIX_S),
        max_clients: clients_max,
        protocol_id: PROTOCOL.0,
        public_addresses: vec![server_address()],
        authentication: ServerAuthentication::Secure { private_key: *b"a key that back end and server k" },
    })
}

/// Their client walks through our handshake; gives our end.
fn let_theirs_in(
    server_handshake: &mut ServerHandshake,
    client: &mut NetcodeClient,
    number: u64,
) -> Option<SealedLink> {
    let mut reply = Reply::new();
    let mut link = None;
    for _ in 0..4 {
        let Some((packet, to)) = client.update(STEP) else {
            break;
        };
        assert_eq!(to, server_address());
        match server_handshake.handle(client_address(number), &mut packet.to_vec(), &mut reply) {
            ServerHandshakeOutcome::Queued => {
                assert!(reply.is_empty(), "the standard knows no line");
                let admitted = server_handshake.admit_next(&mut reply).expect("nobody is before it");
                assert_eq!((admitted.client_id.0, admitted.user_data), (number, [number as u8; 256]));
                link = Some(admitted.link);
            }
            ServerHandshakeOutcome::Replied => {}
            ServerHandshakeOutcome::Refused { reason, .. } => {
                panic!("told a reason, which the standard has not: {reason}")
            }
            ServerHandshakeOutcome::Nothing(reason) => panic!("refused: {reason:?}"),
        }
        assert_eq!(client.process_packet(&mut reply.bytes().to_vec()), None);
        if link.is_some() {
            break;
        }
    }
    link
}

fn check_their_client_at_our_handshake(token: renetcode::ConnectToken) {
    let number = token.client_id;
    let mut server_handshake = server_handshake(settings(), 1);
    let mut client = their_client(token);
    let mut link = let_theirs_in(&mut server_handshake, &mut client, number).expect("admitted");
    assert!(client.is_connected());
    assert!(!link.confirmed());
    assert_eq!(link.timeout(), Nanos::from_secs(TIMEOUT_S as u64));

    let mut out = [0; 1400];
    for round in 0..600u64 {
        let payload = vec![round as u8; 1 + (round as usize * 37) % 1200];
        let (_, packet) = client.generate_payload_packet(&payload).expect("connected");
        let packet = packet.to_vec();
        assert_eq!(link.open(&mut packet.clone(), NOW), Ok(Opened::Payload(&payload)), "round {round}");
        assert!(link.open(&mut packet.clone(), NOW).is_err(), "a replay");
        let len = link.seal_payload(&payload, &mut out, NOW);
        assert_eq!(client.process_packet(&mut out[..len].to_vec()), Some(&payload[..]), "round {round}");
        assert_eq!(client.process_packet(&mut out[..len]), None, "a replay");
    }
    assert!(link.confirmed());
    let (keep_alive, _) = client.update(STEP).expect("a keep-alive is due");
    assert_eq!(link.open(&mut keep_alive.to_vec(), NOW), Ok(Opened::KeepAlive));
    let len = link.seal_keep_alive(&mut out, NOW);
    assert_eq!(client.process_packet(&mut out[..len]), None);
    assert_eq!(client.time_since_last_received_packet(), Duration::ZERO);

    if number.is_multiple_of(2) {
        let len = link.seal_disconnect(&mut out, NOW);
        client.process_packet(&mut out[..len]);
        assert_eq!(client.disconnect_reason(), Some(renetcode::DisconnectReason::DisconnectedByServer));
    } else {
        let (_, goodbye) = client.disconnect().expect("connected");
        assert_eq!(link.open(&mut goodbye.to_vec(), NOW), Ok(Opened::Disconnect));
    }
}

#[test]
fn their_client_plays_at_our_handshake_with_our_token() {
    check_their_client_at_our_handshake(to_theirs(&token(4, 1), 4));
    check_their_client_at_our_handshake(to_theirs(&token(5, 2), 5));
}

#[test]
fn their_client_plays_at_our_handshake_with_their_token() {
    check_their_client_at_our_handshake(their_token(6));
    check_their_client_at_our_handshake(their_token(7));
}

#[test]
fn our_handshake_denies_their_client_when_full() {
    let mut server_handshake = server_handshake(ServerHandshakeSettings { clients_max: 1, ..settings() }, 1);
    assert!(let_theirs_in(&mut server_handshake, &mut their_client(their_token(1)), 1).is_some());
    let mut second = their_client(their_token(2));
    assert!(let_theirs_in(&mut server_handshake, &mut second, 2).is_none());
    assert_eq!(second.disconnect_reason(), Some(renetcode::DisconnectReason::ConnectionDenied));
}

/// Our client walks into their server.
fn walk_into_theirs(server: &mut NetcodeServer, walker: &mut Walker) -> bool {
    let mut connected = false;
    for _ in 0..4 {
        let Some(mut datagram) = walker.says(NOW) else {
            break;
        };
        let answer = match server.process_packet(walker.address, &mut datagram) {
            ServerResult::PacketToSend { payload, .. } => payload.to_vec(),
            ServerResult::ClientConnected { payload, .. } => {
                connected = true;
                payload.to_vec()
            }
            other => panic!("their server: {other:?}"),
        };
        walker.handshake.handle(NOW, &mut answer.clone());
    }
    connected
}

fn check_our_client_at_their_server(token: ConnectToken, client: u64) {
    let mut server = their_server(4);
    let mut walker = Walker::new(token, client_address(client), false, NOW, client);
    assert!(walk_into_theirs(&mut server, &mut walker));
    assert_eq!(walker.handshake.state(), HandshakeState::Connected);
    assert_eq!(server.user_data(client), Some([client as u8; 256]));
    let from = walker.address;
    let mut link = walker.handshake.into_link();

    let mut out = [0; 1400];
    for round in 0..600u64 {
        let payload = vec![round as u8; 1 + (round as usize * 41) % 1200];
        let len = link.seal_payload(&payload, &mut out, NOW);
        let expect = ServerResult::Payload { client_id: client, payload: &payload };
        assert_eq!(server.process_packet(from, &mut out[..len].to_vec()), expect, "round {round}");
        assert_eq!(server.process_packet(from, &mut out[..len]), ServerResult::None, "a replay");
        let (to, packet) = server.generate_payload_packet(client, &payload).expect("connected");
        assert_eq!(to, from);
        assert_eq!(link.open(packet, NOW), Ok(Opened::Payload(&payload)), "round {round}");
    }
    let len = link.seal_keep_alive(&mut out, NOW);
    assert_eq!(server.process_packet(from, &mut out[..len]), ServerResult::None);
    assert_eq!(server.time_since_last_received_packet(client), Some(Duration::ZERO));
    server.update(STEP);
    match server.update_client(client) {
        ServerResult::PacketToSend { payload, .. } => {
            assert_eq!(link.open(payload, NOW), Ok(Opened::KeepAlive))
        }
        other => panic!("a keep-alive is due: {other:?}"),
    }

    if client.is_multiple_of(2) {
        match server.disconnect(client) {
            ServerResult::ClientDisconnected { payload: Some(goodbye), .. } => {
                assert_eq!(link.open(goodbye, NOW), Ok(Opened::Disconnect));
            }
            other => panic!("a goodbye is sent: {other:?}"),
        }
    } else {
        let len = link.seal_disconnect(&mut out, NOW);
        let gone = server.process_packet(from, &mut out[..len]);
        assert!(matches!(gone, ServerResult::ClientDisconnected { client_id, .. } if client_id == client));
    }
    assert!(!server.is_client_connected(client));
}

#[test]
fn our_client_plays_at_their_server_with_our_token() {
    check_our_client_at_their_server(token(4, 1), 4);
    check_our_client_at_their_server(token(5, 2), 5);
}

#[test]
fn our_client_plays_at_their_server_with_their_token() {
    check_our_client_at_their_server(to_ours(&their_token(6)), 6);
    check_our_client_at_their_server(to_ours(&their_token(7)), 7);
}

#[test]
fn their_full_server_denies_our_client() {
    let mut server = their_server(1);
    assert!(walk_into_theirs(&mut server, &mut Walker::new(token(1, 1), client_address(1), false, NOW, 1)));
    let mut second = Walker::new(token(2, 2), client_address(2), false, NOW, 2);
    assert!(!walk_into_theirs(&mut server, &mut second));
    assert_eq!(second.handshake.state(), HandshakeState::Failed(HandshakeFailure::Denied(DenialReason::Unsaid)));
}
