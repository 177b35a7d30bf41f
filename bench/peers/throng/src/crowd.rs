//! Crowd: all clients: they open every packet, apply it and acknowledge as real ones do.

use peers_scenario::{Clients, Held, Outbox, Pose as ScenePose, Scene, Terms};
use throng_net::connection::{Connection, PacketSink, Received};
use throng_net::protocol::PACKET_BYTES_MAX;
use throng_platform::time::Nanos;
use throng_replication::{Replicas, SNAPSHOT_KIND};

use crate::components::{Health, Number, Pose, schema};
use crate::handshake::{connect, made_up_address};
use crate::world::TICK;

struct Client {
    connection: Connection,
    replicas: Replicas,
}

pub struct ThrongClients {
    clients: Vec<Client>,
    received: Received,
    now: Nanos,
}

/// Puts one client's packets into the outbox.
pub struct ToOutbox<'a> {
    pub buffer: &'a mut [u8; PACKET_BYTES_MAX],
    pub client: u32,
    pub out: &'a mut Outbox,
}

impl PacketSink for ToOutbox<'_> {
    fn buffer(&mut self) -> &mut [u8] {
        self.buffer
    }

    fn commit(&mut self, _to: std::net::SocketAddr, len: usize) {
        self.out.push(self.client, &self.buffer[..len]);
    }
}

impl Clients for ThrongClients {
    // Sets are rebuilt every few ticks and entities leave later than they enter: see `world::interest`.
    const BEYOND_M: f32 = 4.0;

    fn new(terms: &Terms, _scene: &Scene) -> Self {
        let client = |number| Client {
            connection: connect(number, made_up_address(number)).0,
            replicas: Replicas::new(schema()),
        };
        let clients = (0..terms.clients).map(client).collect();
        Self { clients, received: Received::default(), now: TICK }
    }

    fn receive(&mut self, client: u32, packet: &mut [u8]) {
        let Client { connection, replicas } = &mut self.clients[client as usize];
        self.received.clear();
        connection.receive(self.now, packet, &mut self.received).expect("the server's packets are in order");
        for (_, message) in self.received.messages() {
            if message[0] == SNAPSHOT_KIND {
                replicas.apply(message).expect("the server's snapshots are in order");
            }
        }
    }

    fn tick(&mut self, out: &mut Outbox) {
        let mut buffer = [0; PACKET_BYTES_MAX];
        for (number, client) in self.clients.iter_mut().enumerate() {
            self.received.clear();
            client.connection.update(self.now, &mut self.received);
            let mut sink = ToOutbox { buffer: &mut buffer, client: number as u32, out };
            while client.connection.wants_packet(self.now) {
                client.connection.send_packet(self.now, &[], &mut sink);
            }
        }
        self.now = self.now.saturating_add(TICK);
    }

    fn held(&mut self, client: u32, into: &mut Vec<Held>) {
        add_held(&self.clients[client as usize].replicas, into);
    }
}

/// Adds all copies that a client has.
pub fn add_held(replicas: &Replicas, into: &mut Vec<Held>) {
    for (id, number) in replicas.iter::<Number>() {
        let (Some(pose), Some(health)) = (replicas.get::<Pose>(id), replicas.get::<Health>(id)) else { continue };
        let pose = ScenePose { place: [pose.east, pose.up, pose.north], yaw: pose.yaw };
        into.push(Held { number: number.number, pose, health: health.points });
    }
}
