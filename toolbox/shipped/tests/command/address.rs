//! Who may connect: the key that all servers of these tests have, and tokens made with it.

use std::net::SocketAddr;

use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use throng::settings::{SecretKey, Settings};
use throng_net::protocol::{ClientId, ConnectToken, PrivateKey, ProtocolId, TokenRequest, user_data};
use throng_platform::{
    clock::{Clock, MonotonicClock},
    random,
};

/// The private key as the environment carries it.
pub const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// The time after which a silent connection ends: longer than any test takes to notice an end that was told.
pub const TIMEOUT_S: i32 = 10;

pub fn private_key() -> PrivateKey {
    SecretKey::from_hex(KEY).expect("64 digits").to_private_key()
}

pub fn protocol_id() -> ProtocolId {
    ProtocolId(Settings::default().server.protocol_id)
}

/// A token that is good now for one connection to `server`, and asks for audit samples.
pub fn token(server: SocketAddr, client_id: u64) -> ConnectToken {
    token_for(vec![server], client_id, TIMEOUT_S)
}

/// The same for one that is to try `addresses` in turns, and whose silence is borne for `timeout_s`.
pub fn token_for(addresses: Vec<SocketAddr>, client_id: u64, timeout_s: i32) -> ConnectToken {
    let now_unix_s = MonotonicClock::new().unix_seconds();
    let request = TokenRequest {
        protocol_id: protocol_id(),
        client_id: ClientId(client_id),
        server_addresses: addresses,
        created_unix_s: now_unix_s,
        expires_unix_s: now_unix_s + 60,
        timeout_s,
        user_data: user_data(&[], true).expect("nothing always fits"),
    };
    let mut random = ChaCha20Rng::from_seed(random::seed());
    ConnectToken::generate(&request, &private_key(), &mut random).expect("a request within its limits")
}
