//! World: the server's side.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use naia_server::{ConnectEvent, Server as Naia, ServerConfig, UserKey};
use naia_shared::{Instant, TestClock};
use peers_scenario::{Load, Outbox, Scene, Server, Sight, Terms, pack};

use crate::protocol::{Health, Number, Packed, Pose, TICK_MS, connection, protocol};
use crate::sockets::{Socket, address};
use crate::store::{Reading, Store, Writing};

pub struct NaiaServer {
    server: Naia<u32>,
    store: Store,
    socket: Socket,
    clients: u32,
    users: BTreeMap<SocketAddr, UserKey>,
    /// Users by client, when everybody is in.
    keys: Vec<UserKey>,
    entities: Vec<u32>,
    is_all_seen: bool,
}

impl Server for NaiaServer {
    fn new(terms: &Terms, scene: &Scene, _addresses: &[SocketAddr]) -> Self {
        TestClock::init(0);
        let config = ServerConfig { require_auth: false, connection: connection(), ..ServerConfig::default() };
        let mut server = Naia::new(config, protocol());
        let (socket, mut store) = (Socket::default(), Store::default());
        server.listen(socket.clone());
        let mut spawn = |number: u32| {
            let pose = Pose::new_complete(Packed { bytes: pack(&scene.poses[number as usize]) });
            let mut entity = server.spawn_entity(Writing(&mut store));
            entity
                .insert_component(pose)
                .insert_component(Health::new_complete(scene.health[number as usize]))
                .insert_component(Number::new_complete(number));
            entity.id()
        };
        let entities = (0..terms.entities).map(&mut spawn).collect();
        let is_all_seen = terms.load != Load::W1;
        let (users, keys) = (BTreeMap::new(), Vec::new());
        Self { server, store, socket, clients: terms.clients, users, keys, entities, is_all_seen }
    }

    fn connect(&mut self, out: &mut Outbox) -> bool {
        TestClock::advance(TICK_MS);
        self.take_packets();
        self.server.send_all_packets(Reading(&self.store));
        self.hand_over(out);
        if self.users.len() < self.clients as usize {
            return false;
        }
        self.keys = (0..self.clients).map(|client| self.users[&address(client)]).collect();
        let key = self.server.create_room().key();
        let mut room = self.server.room_mut(&key);
        for entity in &self.entities {
            room.add_entity(entity);
        }
        // Who is not in the room sees what its scope includes, of entities that are in some room.
        for user in self.keys.iter().filter(|_| self.is_all_seen) {
            room.add_user(user);
        }
        true
    }

    fn deliver(&mut self, client: u32, packet: &[u8]) {
        self.socket.arrive(client, packet);
    }

    fn tick(&mut self, scene: &Scene, sight: &Sight) {
        TestClock::advance(TICK_MS);
        self.take_packets();
        for &number in &scene.moved {
            if let Some(pose) = self.store.get_mut::<Pose>(self.entities[number as usize]) {
                *pose.packed = Packed { bytes: pack(&scene.poses[number as usize]) };
            }
        }
        for &number in &scene.hurt {
            if let Some(health) = self.store.get_mut::<Health>(self.entities[number as usize]) {
                *health.points = scene.health[number as usize];
            }
        }
        if !self.is_all_seen {
            for (client, user) in self.keys.iter().enumerate() {
                let mut scope = self.server.user_scope_mut(user);
                sight.entered[client].iter().for_each(|&number| {
                    scope.include(&self.entities[number as usize]);
                });
                sight.left[client].iter().for_each(|&number| {
                    scope.exclude(&self.entities[number as usize]);
                });
            }
        }
        self.server.send_all_packets(Reading(&self.store));
    }

    fn hand_over(&mut self, out: &mut Outbox) {
        let sent = std::mem::take(&mut self.socket.queues().sent);
        sent.iter().for_each(|(client, framed)| out.push(*client, framed));
    }
}

impl NaiaServer {
    fn take_packets(&mut self) {
        let now = Instant::now();
        self.server.receive_all_packets();
        self.server.process_all_packets(Writing(&mut self.store), &now);
        let mut events = self.server.take_world_events();
        for user in events.read::<ConnectEvent>() {
            if let Some(address) = self.server.user_address(&user) {
                self.users.insert(address, user);
            }
        }
        self.server.take_tick_events(&now);
    }
}
