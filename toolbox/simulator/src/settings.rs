//! What a simulation is made of, and how all of its chance follows from one seed.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use throng::settings::Settings;
use throng_net::protocol::PrivateKey;
use throng_net::transport::Impairment;
use throng_replication::Schema;

/// Where the simulated server listens.
pub(crate) const SERVER_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 40_000);

/// A simulation before it begins. Two with the same settings, and the same calls at the same frames, are the same.
#[derive(Clone)]
pub struct SimulationSettings {
    /// The server's own settings; those about sockets and threads have no effect. Clients' tokens ask for audit samples.
    pub server: Settings,
    /// What the game replicates.
    pub schema: Arc<Schema>,
    /// By what the clients go, where that is not what the game replicates.
    pub client_schema: Option<Arc<Schema>>,
    /// Seeds the server's secrets, the network, the tokens and the behaviours. Worlds have seeds of their own, which
    /// whoever builds the server gives them.
    pub seed: u64,
    /// The server's worker threads (> 0). Changes how long a run takes and nothing else.
    pub workers_count: usize,
    /// How often each client thinks and sends an input (Hz, > 0).
    pub think_hz: u32,
    /// How long both sides bear silence, by the tokens; the server no longer than its settings say (s).
    pub token_timeout_s: u32,
    /// What the network does to datagrams at first.
    pub impairment: Impairment,
    /// Whether every tick of every world leaves a hash of the world's state.
    pub hash: bool,
    /// Whether what the server sends is kept, for [`Simulation::take_sent`](crate::Simulation::take_sent).
    pub tap: bool,
    /// Whether what the server receives is kept, for [`Simulation::take_received`](crate::Simulation::take_received).
    pub tap_received: bool,
}

impl SimulationSettings {
    /// One worker, 20 thoughts a second, audit samples allowed, a perfect network, neither hashed nor tapped.
    pub fn new(schema: Arc<Schema>, seed: u64) -> Self {
        let mut server = Settings::default();
        server.server.audit_samples = true;
        Self {
            server,
            schema,
            client_schema: None,
            seed,
            workers_count: 1,
            think_hz: 20,
            token_timeout_s: 10,
            impairment: Impairment::default(),
            hash: false,
            tap: false,
            tap_received: false,
        }
    }

    /// Random numbers for one purpose: two purposes never share any.
    pub(crate) fn rng(&self, purpose: Purpose) -> ChaCha20Rng {
        let mut rng = ChaCha20Rng::seed_from_u64(self.seed);
        rng.set_stream(purpose as u64);
        rng
    }

    pub(crate) fn private_key(&self) -> PrivateKey {
        let mut key = [0; 32];
        self.rng(Purpose::PrivateKey).fill_bytes(&mut key);
        PrivateKey::new(key)
    }
}

/// What random numbers are for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Server,
    PrivateKey,
    Network,
    Players,
}
