//! The scene of every handshake test: one server, its back end, and clients that walk in.

use std::net::SocketAddr;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use throng_net::protocol::{
    Admitted, ClientHandshake, ClientHandshakeSettings, ClientId, ConnectToken, HandshakeState, PrivateKey, ProtocolId,
    Reply, ServerHandshake, ServerHandshakeSettings, TokenRequest,
};
use throng_platform::time::Nanos;

pub const KEY: PrivateKey = PrivateKey::new(*b"a key that back end and server k");
pub const PROTOCOL: ProtocolId = ProtocolId(0x7468_726F_6E67);
pub const UNIX_S: u64 = 1_800_000_000;
pub const TOKEN_LIFE_S: u64 = 30;
pub const TIMEOUT_S: i32 = 10;

pub fn server_address() -> SocketAddr {
    SocketAddr::from(([203, 0, 113, 5], 40_000))
}

/// The address of the client with this number: all are different.
pub fn client_address(number: u64) -> SocketAddr {
    let [.., a, b, c, d] = (number + 1).to_be_bytes();
    SocketAddr::from(([10, b, c, d], 10_000 + u16::from(a)))
}

pub fn settings() -> ServerHandshakeSettings {
    ServerHandshakeSettings {
        plain_netcode: true,
        openings_per_frame_max: 1_000_000,
        admissions_per_frame_max: 1_000_000,
        ..ServerHandshakeSettings::new(PROTOCOL, KEY, vec![server_address()], 64)
    }
}

/// A handshake in its first frame.
pub fn server_handshake(settings: ServerHandshakeSettings, seed: u64) -> ServerHandshake {
    opened(ServerHandshake::new(settings, wide_seed(seed)))
}

pub fn opened(mut server_handshake: ServerHandshake) -> ServerHandshake {
    server_handshake.begin_frame(Nanos::from_secs(1), UNIX_S);
    server_handshake
}

pub fn wide_seed(seed: u64) -> [u8; 32] {
    let mut wide = [0x5A; 32];
    wide[..8].copy_from_slice(&seed.to_le_bytes());
    wide
}

pub fn token_request(client: u64) -> TokenRequest {
    TokenRequest {
        protocol_id: PROTOCOL,
        client_id: ClientId(client),
        server_addresses: vec![server_address()],
        created_unix_s: UNIX_S,
        expires_unix_s: UNIX_S + TOKEN_LIFE_S,
        timeout_s: TIMEOUT_S,
        user_data: [client as u8; 256],
    }
}

pub fn token(client: u64, seed: u64) -> ConnectToken {
    token_with(&token_request(client), &KEY, seed)
}

pub fn token_with(request: &TokenRequest, key: &PrivateKey, seed: u64) -> ConnectToken {
    ConnectToken::generate(request, key, &mut ChaCha20Rng::from_seed(wide_seed(seed))).expect("a sound request")
}

/// A client's handshake, begun now, and the datagrams it says.
pub struct Walker {
    pub handshake: ClientHandshake,
    pub address: SocketAddr,
}

impl Walker {
    pub fn new(token: ConnectToken, address: SocketAddr, cookie_first: bool, now: Nanos, seed: u64) -> Self {
        let settings = ClientHandshakeSettings { cookie_first };
        Self { handshake: ClientHandshake::new(token, settings, now, wide_seed(seed)), address }
    }

    /// What the client says next, if anything is due.
    pub fn says(&mut self, now: Nanos) -> Option<Vec<u8>> {
        let mut out = [0; 1400];
        let (_, len) = self.handshake.poll(now, UNIX_S, &mut out)?;
        Some(out[..len].to_vec())
    }

    pub fn hears(&mut self, now: Nanos, reply: &Reply) {
        self.handshake.handle(now, &mut reply.bytes().to_vec());
    }

    /// Walks to the end on a perfect path. `None` when the handshake never admits it.
    pub fn walk(&mut self, server_handshake: &mut ServerHandshake, now: Nanos) -> Option<Box<Admitted>> {
        let mut reply = Reply::new();
        let mut admitted = None;
        for _ in 0..4 {
            let Some(mut datagram) = self.says(now) else {
                break;
            };
            if let Some(client) = server_handshake.handle_and_admit(self.address, &mut datagram, &mut reply) {
                admitted = Some(client);
            }
            server_handshake.check();
            if reply.is_empty() {
                break;
            }
            self.hears(now, &reply);
        }
        assert_eq!(admitted.is_some(), self.handshake.state() == HandshakeState::Connected);
        admitted
    }
}

/// Walks a token in from an address; gives both ends.
pub fn connect(
    server_handshake: &mut ServerHandshake,
    token: ConnectToken,
    address: SocketAddr,
    seed: u64,
) -> Option<Box<Admitted>> {
    Walker::new(token, address, seed.is_multiple_of(2), Nanos::from_secs(1), seed)
        .walk(server_handshake, Nanos::from_secs(1))
}

/// The plain request that shows a token: 1,078 bytes.
pub fn plain_request(token: &ConnectToken) -> Vec<u8> {
    let now = Nanos::from_secs(1);
    Walker::new(token.clone(), client_address(0), false, now, 1).says(now).expect("the first request is due at once")
}
