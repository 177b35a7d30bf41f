//! Handshake: both ends of a client's connection, made in each process from the same seed.
//!
//! The two processes shake hands with themselves and keep one end each; the keys are equal. Not timed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use throng_net::connection::Connection;
use throng_net::protocol::{
    ClientHandshake, ClientHandshakeSettings, ClientId, ConnectToken, PrivateKey, ProtocolId, Reply, ServerHandshake,
    ServerHandshakeSettings, TokenRequest,
};
use throng_platform::time::Nanos;

/// Where clients believe the server to be.
pub const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 1000);
/// The date of every run.
pub const UNIX_S: u64 = 1000;
const TIMEOUT_S: i32 = 15;
/// Of small worlds' clients, some wait in line for a while.
const TOKEN_LIFE_S: u64 = 300;

/// What lets client `number` in.
pub fn token(number: u32, protocol_id: ProtocolId, rng: &mut ChaCha20Rng) -> ConnectToken {
    let request = TokenRequest {
        protocol_id,
        client_id: ClientId(number.into()),
        server_addresses: vec![SERVER],
        created_unix_s: UNIX_S,
        expires_unix_s: UNIX_S + TOKEN_LIFE_S,
        timeout_s: TIMEOUT_S,
        user_data: [0; 256],
    };
    ConnectToken::generate(&request, &private_key(), rng).expect("the request is in order")
}

/// Known to the server and to whoever makes tokens.
pub fn private_key() -> PrivateKey {
    PrivateKey::new([7; 32])
}

/// The client's and the server's connection of client `number`, whose datagrams go to `address`.
pub fn connect(number: u32, address: SocketAddr) -> (Connection, Connection) {
    let mut rng = ChaCha20Rng::seed_from_u64(number.into());
    let (protocol_id, client_id) = (ProtocolId(1), ClientId(number.into()));
    let token = token(number, protocol_id, &mut rng);
    let now = Nanos::ZERO;
    let mut seed = [1; 32];
    seed[..4].copy_from_slice(&number.to_le_bytes());
    let mut server_handshake =
        ServerHandshake::new(ServerHandshakeSettings::new(protocol_id, private_key(), vec![SERVER], 1), seed);
    server_handshake.begin_frame(now, UNIX_S);
    let mut client = ClientHandshake::new(token, ClientHandshakeSettings::default(), now, seed);
    let (mut datagram, mut reply) = ([0; 1400], Reply::new());
    // Each step is said at most every 200 ms.
    for step in 0.. {
        let Some((_, len)) = client.poll(Nanos::from_millis(200 * step), UNIX_S, &mut datagram) else { continue };
        let admitted = server_handshake.handle_and_admit(address, &mut datagram[..len], &mut reply);
        client.handle(now, &mut reply.bytes().to_vec());
        if let Some(admitted) = admitted {
            let server = Connection::new(admitted.link, address, client_id, now);
            return (Connection::new(client.into_link(), SERVER, client_id, now), server);
        }
    }
    unreachable!("a handshake on a perfect path succeeds")
}

/// Where the first client would be if there were a network; the others follow.
const FIRST_ADDRESS: u32 = 0x0A01_0000;

/// Where client `number` would be if there were a network.
pub fn made_up_address(number: u32) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from(FIRST_ADDRESS + number)), 2000)
}

/// The client at a made-up address.
pub fn client_at(address: SocketAddr) -> u32 {
    let IpAddr::V4(address) = address.ip() else { panic!("{address} is nobody's") };
    u32::from(address) - FIRST_ADDRESS
}
