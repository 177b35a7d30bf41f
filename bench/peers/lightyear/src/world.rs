//! World: the server's side.

use std::net::SocketAddr;

use bevy::prelude::*;
use lightyear::prelude::server::*;
use lightyear::prelude::*;
use peers_scenario::{Load, Outbox, Scene, Server, Sight, Terms};

use crate::protocol::{Health, Number, Pose, TICK, address, app};

pub struct LightyearServer {
    app: App,
    links: Vec<Entity>,
    entities: Vec<Entity>,
    is_all_seen: bool,
}

impl Server for LightyearServer {
    fn new(terms: &Terms, scene: &Scene, _addresses: &[SocketAddr]) -> Self {
        let mut app = app(|app| {
            app.add_plugins(ServerPlugins { tick_duration: TICK });
        });
        let world = app.world_mut();
        let server = world.spawn(RawServer).id();
        world.entity_mut(server).insert(Linked);
        app.update();
        let world = app.world_mut();
        let link = |client: u32| {
            let parts = (LinkOf { endpoint: server }, Link::default(), PeerAddr(address(client)), ReplicationSender);
            let link = world.spawn(parts).id();
            world.entity_mut(link).insert(Linked);
            link
        };
        let links: Vec<Entity> = (0..terms.clients).map(link).collect();
        world.flush();
        let is_all_seen = terms.load != Load::W1;
        let spawn = |number: u32| {
            let (pose, health) = (scene.poses[number as usize], scene.health[number as usize]);
            let replicate = Replicate::to_clients(NetworkTarget::All);
            world.spawn((replicate, Pose(pose), Health(health), Number(number))).id()
        };
        let entities: Vec<Entity> = (0..terms.entities).map(spawn).collect();
        if !is_all_seen {
            for &link in &links {
                entities.iter().for_each(|&entity| world.lose_visibility(entity, link));
            }
        }
        Self { app, links, entities, is_all_seen }
    }

    fn deliver(&mut self, client: u32, packet: &[u8]) {
        if let Some(mut link) = self.app.world_mut().get_mut::<Link>(self.links[client as usize]) {
            link.recv.push_raw(packet.into());
        }
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
        if !self.is_all_seen {
            for (index, &link) in self.links.iter().enumerate() {
                for &number in &sight.entered[index] {
                    world.gain_visibility(self.entities[number as usize], link);
                }
                for &number in &sight.left[index] {
                    world.lose_visibility(self.entities[number as usize], link);
                }
            }
        }
        self.app.update();
    }

    fn hand_over(&mut self, out: &mut Outbox) {
        for (client, &link) in self.links.iter().enumerate() {
            if let Some(mut link) = self.app.world_mut().get_mut::<Link>(link) {
                link.send.drain().for_each(|packet| out.push(client as u32, &packet));
            }
        }
    }
}
