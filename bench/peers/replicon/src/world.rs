//! World: the server's side.

use std::net::SocketAddr;

use bevy::ecs::entity::EntityHashMap;
use bevy::prelude::*;
use bevy_replicon::prelude::*;
use bevy_replicon::server::visibility::client_visibility::ClientVisibility;
use bevy_replicon::server::visibility::filters_mask::FilterBit;
use bevy_replicon::server::visibility::registry::FilterRegistry;
use bevy_replicon::shared::replication::registry::ReplicationRegistry;
use peers_scenario::{Load, Outbox, Scene, Server, Sight, Terms};

use crate::protocol::{Health, MESSAGE_BYTES_MAX, Number, Pose, app};

pub struct RepliconServer {
    app: App,
    clients: Vec<Entity>,
    entities: Vec<Entity>,
    numbers: EntityHashMap<u32>,
    /// What a client does not see is hidden by this bit; none if everybody sees everything.
    bit: Option<FilterBit>,
}

impl Server for RepliconServer {
    fn new(terms: &Terms, scene: &Scene, _addresses: &[SocketAddr]) -> Self {
        let mut app = app();
        app.world_mut().resource_mut::<NextState<ServerState>>().set(ServerState::Running);
        let bit = (terms.load == Load::W1).then(|| {
            app.world_mut().resource_scope(|world, mut filters: Mut<FilterRegistry>| {
                world.resource_scope(|world, mut registry: Mut<ReplicationRegistry>| {
                    filters.register_scope::<Entity>(world, &mut registry, ScopeLifetime::WhileVisible)
                })
            })
        });
        app.update();
        let world = app.world_mut();
        let client = |_| world.spawn(ConnectedClient { max_size: MESSAGE_BYTES_MAX }).id();
        let clients: Vec<Entity> = (0..terms.clients).map(client).collect();
        let spawn = |number: u32| {
            let (pose, health) = (scene.poses[number as usize], scene.health[number as usize]);
            world.spawn((Replicated, Pose(pose), Health(health), Number(number))).id()
        };
        let entities: Vec<Entity> = (0..terms.entities).map(spawn).collect();
        if let Some(bit) = bit {
            for &client in &clients {
                let mut visibility = world.get_mut::<ClientVisibility>(client).expect("clients are authorized");
                entities.iter().for_each(|&entity| visibility.set(entity, bit, false));
            }
        }
        let numbers = clients.iter().enumerate().map(|(number, &client)| (client, number as u32)).collect();
        Self { app, clients, entities, numbers, bit }
    }

    fn deliver(&mut self, client: u32, packet: &[u8]) {
        let (channel, message) = packet.split_first().expect("a channel");
        let mut messages = self.app.world_mut().resource_mut::<ServerMessages>();
        messages.insert_received(self.clients[client as usize], usize::from(*channel), message.to_vec());
    }

    fn tick(&mut self, scene: &Scene, sight: &Sight) {
        let world = self.app.world_mut();
        for &number in &scene.moved {
            if let Some(mut pose) = world.get_mut::<Pose>(self.entities[number as usize]) {
                pose.0 = scene.poses[number as usize];
            }
        }
        for &number in &scene.hurt {
            if let Some(mut health) = world.get_mut::<Health>(self.entities[number as usize]) {
                health.0 = scene.health[number as usize];
            }
        }
        if let Some(bit) = self.bit {
            for (index, &client) in self.clients.iter().enumerate() {
                let (entered, left) = (&sight.entered[index], &sight.left[index]);
                if entered.is_empty() && left.is_empty() {
                    continue;
                }
                let mut visibility = world.get_mut::<ClientVisibility>(client).expect("clients are authorized");
                entered.iter().for_each(|&number| visibility.set(self.entities[number as usize], bit, true));
                left.iter().for_each(|&number| visibility.set(self.entities[number as usize], bit, false));
            }
        }
        self.app.update();
    }

    fn hand_over(&mut self, out: &mut Outbox) {
        let mut framed = Vec::new();
        for (client, channel, message) in self.app.world_mut().resource_mut::<ServerMessages>().drain_sent() {
            framed.clear();
            framed.push(channel as u8);
            framed.extend_from_slice(&message);
            out.push(self.numbers[&client], &framed);
        }
    }
}
