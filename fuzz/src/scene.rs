//! Scene: one server, its back end, and an honest client whose datagrams are known by heart.
//!
//! All secrets come from fixed seeds, so a handshake made here takes the recorded datagrams as if it had been there.

use std::net::SocketAddr;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use throng_net::protocol::{
    ClientHandshake, ClientHandshakeSettings, ClientId, ConnectToken, PrivateKey, ProtocolId, Reply, ServerHandshake,
    ServerHandshakeSettings, TokenRequest,
};
use throng_platform::time::Nanos;

pub const KEY: PrivateKey = PrivateKey::new(*b"a key that back end and server k");
pub const PROTOCOL: ProtocolId = ProtocolId(0x7468_726F_6E67);
pub const UNIX_S: u64 = 1_800_000_000;
pub const TOKEN_LIFE_S: u64 = 30;
pub const START: Nanos = Nanos::from_secs(1);
pub const CLIENTS_MAX: usize = 2;

pub fn server_address() -> SocketAddr {
    SocketAddr::from(([203, 0, 113, 5], 40_000))
}

/// One of four addresses that knock; the honest client has the first.
pub fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number % 4], 10_000))
}

/// A handshake in its first frame.
pub fn server_handshake() -> ServerHandshake {
    let settings = ServerHandshakeSettings {
        plain_netcode: true,
        ..ServerHandshakeSettings::new(PROTOCOL, KEY, vec![server_address()], CLIENTS_MAX)
    };
    let mut server_handshake = ServerHandshake::new(settings, [0x5A; 32]);
    server_handshake.begin_frame(START, UNIX_S);
    server_handshake
}

pub fn token() -> ConnectToken {
    let request = TokenRequest {
        protocol_id: PROTOCOL,
        client_id: ClientId(7),
        server_addresses: vec![server_address()],
        created_unix_s: UNIX_S,
        expires_unix_s: UNIX_S + TOKEN_LIFE_S,
        timeout_s: 10,
        user_data: [3; 256],
    };
    ConnectToken::generate(&request, &KEY, &mut ChaCha20Rng::from_seed([1; 32])).expect("a sound request")
}

pub fn handshake(cookie_first: bool) -> ClientHandshake {
    ClientHandshake::new(token(), ClientHandshakeSettings { cookie_first }, START, [2; 32])
}

/// What the honest client says on its way in: hello, request, response; or without a cookie, request and response.
pub fn honest_datagrams(cookie_first: bool) -> Vec<Vec<u8>> {
    let (mut server_handshake, mut client, mut reply) = (server_handshake(), handshake(cookie_first), Reply::new());
    let (mut said, mut out) = (Vec::new(), [0; 1400]);
    while let Some((_, len)) = client.poll(START, UNIX_S, &mut out) {
        said.push(out[..len].to_vec());
        let admitted = server_handshake.handle_and_admit(address(0), &mut out[..len], &mut reply);
        client.handle(START, &mut reply.bytes().to_vec());
        if admitted.is_some() {
            break;
        }
    }
    said
}
