//! Crowd: a client app for every client.

use bevy::prelude::*;
use lightyear::prelude::client::*;
use lightyear::prelude::*;
use peers_scenario::{Clients, Held, Outbox, Scene, Terms};

use crate::protocol::{Health, Number, Pose, TICK, address, app};

struct One {
    app: App,
    link: Entity,
}

pub struct LightyearClients {
    clients: Vec<One>,
}

impl Clients for LightyearClients {
    fn new(terms: &Terms, _scene: &Scene) -> Self {
        let client = |number: u32| {
            let mut app = app(|app| {
                app.add_plugins(ClientPlugins { tick_duration: TICK });
            });
            let own = address(number);
            let parts = (RawClient, Link::default(), LocalAddr(own), PeerAddr(own), ReplicationReceiver::default());
            let link = app.world_mut().spawn(parts).id();
            app.world_mut().entity_mut(link).insert(Linked);
            app.update();
            One { app, link }
        };
        Self { clients: (0..terms.clients).map(client).collect() }
    }

    fn receive(&mut self, client: u32, packet: &mut [u8]) {
        let One { app, link } = &mut self.clients[client as usize];
        if let Some(mut link) = app.world_mut().get_mut::<Link>(*link) {
            link.recv.push_raw((&*packet).into());
        }
    }

    fn tick(&mut self, out: &mut Outbox) {
        for (number, One { app, link }) in self.clients.iter_mut().enumerate() {
            app.update();
            if let Some(mut link) = app.world_mut().get_mut::<Link>(*link) {
                link.send.drain().for_each(|packet| out.push(number as u32, &packet));
            }
        }
    }

    fn held(&mut self, client: u32, into: &mut Vec<Held>) {
        let world = self.clients[client as usize].app.world_mut();
        let mut query = world.query::<(&Number, &Pose, &Health)>();
        let held = query.iter(world);
        into.extend(held.map(|(number, pose, health)| Held { number: number.0, pose: pose.0, health: health.0 }));
    }
}
