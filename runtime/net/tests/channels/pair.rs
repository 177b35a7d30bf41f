//! Two connected sides, through the real handshake.

use std::net::SocketAddr;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use throng_net::connection::{Connection, PacketSink};
use throng_net::protocol::{
    ClientHandshake, ClientHandshakeSettings, ClientId, ConnectToken, PrivateKey, ProtocolId, Reply, ServerHandshake,
    ServerHandshakeSettings, TokenRequest,
};
use throng_platform::time::Nanos;

pub const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)), 2_000);
pub const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), 1_000);
pub const TIMEOUT: Nanos = Nanos::from_secs(15);

const UNIX_S: u64 = 1_000;

/// The client's and the server's connection, as they are just after the handshake at time zero.
pub fn connect(seed: u64) -> (Connection, Connection) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let key = PrivateKey::new([7; 32]);
    let request = TokenRequest {
        protocol_id: ProtocolId(1),
        client_id: ClientId(5),
        server_addresses: vec![SERVER],
        created_unix_s: UNIX_S,
        expires_unix_s: UNIX_S + 60,
        timeout_s: TIMEOUT.as_secs_f64() as i32,
        user_data: [0; 256],
    };
    let token = ConnectToken::generate(&request, &key, &mut rng).unwrap();
    let now = Nanos::ZERO;
    let mut server_handshake =
        ServerHandshake::new(ServerHandshakeSettings::new(ProtocolId(1), key, vec![SERVER], 1), [1; 32]);
    server_handshake.begin_frame(now, UNIX_S);
    let mut client = ClientHandshake::new(token, ClientHandshakeSettings::default(), now, [2; 32]);
    let (mut datagram, mut reply) = ([0; 1400], Reply::new());
    // Each step is said at most every 200 ms.
    for step in 0u64.. {
        let Some((_, len)) = client.poll(Nanos::from_millis(200 * step), UNIX_S, &mut datagram) else {
            continue;
        };
        if let Some(admitted) = server_handshake.handle_and_admit(CLIENT, &mut datagram[..len], &mut reply) {
            client.handle(now, &mut reply.bytes().to_vec());
            let server = Connection::new(admitted.link, CLIENT, admitted.client_id, now);
            return (Connection::new(client.into_link(), SERVER, ClientId(5), now), server);
        }
        client.handle(now, &mut reply.bytes().to_vec());
    }
    unreachable!("a handshake on a perfect path succeeds")
}

/// Keeps what one side sends in memory that it took beforehand.
pub struct Outbox {
    buffer: [u8; 1_400],
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Outbox {
    pub fn new() -> Self {
        Outbox { buffer: [0; 1_400], bytes: Vec::with_capacity(64 * 1_400), ends: Vec::with_capacity(64) }
    }

    /// Hands over the datagrams in turn, and forgets them.
    pub fn drain(&mut self, mut each: impl FnMut(&mut [u8])) {
        let mut start = 0;
        for &end in &self.ends {
            each(&mut self.bytes[start..end]);
            start = end;
        }
        self.bytes.clear();
        self.ends.clear();
    }
}

impl PacketSink for Outbox {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    fn commit(&mut self, _to: SocketAddr, len: usize) {
        self.bytes.extend_from_slice(&self.buffer[..len]);
        self.ends.push(self.bytes.len());
    }
}
