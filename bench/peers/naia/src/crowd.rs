//! Crowd: a naia client for every client.

use naia_client::{Client as Naia, ClientConfig, JitterBufferType};
use naia_shared::{Instant, TestClock};
use peers_scenario::{Clients, Held, Outbox, Scene, Terms, unpack};

use crate::protocol::{Health, Number, Pose, TICK_MS, connection, protocol};
use crate::sockets::Socket;
use crate::store::{Reading, Store, Writing};

struct One {
    client: Naia<u32>,
    store: Store,
    socket: Socket,
}

pub struct NaiaClients {
    clients: Vec<One>,
}

impl NaiaClients {
    fn turn(&mut self, out: &mut Outbox) {
        TestClock::advance(TICK_MS);
        for (number, One { client, store, socket }) in self.clients.iter_mut().enumerate() {
            let now = Instant::now();
            client.receive_all_packets();
            client.process_all_packets(Writing(store), &now);
            // Read in this order; a packet that came is applied in the turn in which it came, not in the next.
            client.take_tick_events(&now);
            client.process_all_packets(Writing(store), &now);
            drop(client.take_world_events());
            client.send_all_packets(Reading(store));
            let sent = std::mem::take(&mut socket.queues().sent);
            sent.iter().for_each(|(_, framed)| out.push(number as u32, framed));
        }
    }
}

impl Clients for NaiaClients {
    // Entities and components come by a reliable channel, a tick or more after they came into sight.
    const BEHIND_TICKS_MAX: u32 = 4;

    fn new(terms: &Terms, _scene: &Scene) -> Self {
        TestClock::init(0);
        let config = ClientConfig {
            connection: connection(),
            jitter_buffer: JitterBufferType::Bypass,
            ..ClientConfig::default()
        };
        let one = |_| {
            let (mut client, socket) = (Naia::new(config.clone(), protocol()), Socket::default());
            client.connect(socket.clone());
            One { client, store: Store::default(), socket }
        };
        Self { clients: (0..terms.clients).map(one).collect() }
    }

    fn connect(&mut self, out: &mut Outbox) {
        self.turn(out);
    }

    fn receive(&mut self, client: u32, packet: &mut [u8]) {
        self.clients[client as usize].socket.arrive(client, packet);
    }

    fn tick(&mut self, out: &mut Outbox) {
        self.turn(out);
    }

    fn held(&mut self, client: u32, into: &mut Vec<Held>) {
        let store = &self.clients[client as usize].store;
        for entity in store.ids() {
            let parts = (store.get::<Number>(entity), store.get::<Pose>(entity), store.get::<Health>(entity));
            if let (Some(number), Some(pose), Some(health)) = parts {
                let pose = unpack(&pose.packed.bytes);
                into.push(Held { number: *number.number, pose, health: *health.points });
            }
        }
    }
}
