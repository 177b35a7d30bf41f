//! Door crowd: clients that come in through the shipped server's door. They are the headless clients that bots are, which
//! also hold their copies against the server's audit samples.

use peers_scenario::{Clients, Held, Outbox, Scene, Terms};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use throng_client::Client;
use throng_net::protocol::{PACKET_BYTES_MAX, ProtocolId};
use throng_platform::time::Nanos;

use crate::components::schema;
use crate::crowd::{ToOutbox, add_held};
use crate::handshake::{UNIX_S, token};
use crate::shipped_server::settings;
use crate::world::TICK;

pub struct DoorCrowd {
    clients: Vec<Client>,
    now: Nanos,
}

impl Clients for DoorCrowd {
    fn new(terms: &Terms, _scene: &Scene) -> Self {
        let protocol_id = ProtocolId(settings(terms).server.protocol_id);
        let client = |number: u32| {
            let token = token(number, protocol_id, &mut ChaCha20Rng::seed_from_u64(number.into()));
            let mut seed = [1; 32];
            seed[..4].copy_from_slice(&number.to_le_bytes());
            Client::new(token, schema(), Nanos::ZERO, seed)
        };
        Self { clients: (0..terms.clients).map(client).collect(), now: TICK }
    }

    fn connect(&mut self, out: &mut Outbox) {
        self.tick(out);
    }

    fn receive(&mut self, client: u32, packet: &mut [u8]) {
        self.clients[client as usize].receive(self.now, packet);
    }

    fn tick(&mut self, out: &mut Outbox) {
        let mut buffer = [0; PACKET_BYTES_MAX];
        for (number, client) in (0..).zip(&mut self.clients) {
            client.poll(self.now, UNIX_S, &mut ToOutbox { buffer: &mut buffer, client: number, out });
        }
        self.now = self.now.saturating_add(TICK);
    }

    fn held(&mut self, client: u32, into: &mut Vec<Held>) {
        let client = &self.clients[client as usize];
        assert_eq!(client.stats().state_errors, 0, "copies agree with audit samples");
        add_held(client.replicas(), into);
    }
}
