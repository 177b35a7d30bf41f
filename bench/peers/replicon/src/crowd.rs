//! Crowd: a few real clients, and for the others what a server hears of a client: acknowledgements.

use bevy::prelude::*;
use bevy_replicon::prelude::*;
use bevy_replicon::shared::backend::channels::{ClientChannel, ServerChannel};
use peers_scenario::{Clients, Held, Outbox, Scene, Terms};

use crate::protocol::{Health, Number, Pose, app};

const REAL_MAX: u32 = 8;

enum Client {
    Real(Box<App>),
    /// Acknowledges every message of mutations, as a real client does with its next packet.
    Acknowledging(Vec<u8>),
}

pub struct RepliconClients {
    clients: Vec<Client>,
}

fn real_numbers(terms: &Terms) -> Vec<u32> {
    let count = terms.clients.min(REAL_MAX);
    (0..count).map(|index| index * terms.clients / count).collect()
}

impl Clients for RepliconClients {
    fn new(terms: &Terms, _scene: &Scene) -> Self {
        let real = real_numbers(terms);
        let client = |number: u32| {
            if !real.contains(&number) {
                return Client::Acknowledging(Vec::new());
            }
            let mut app = app();
            app.world_mut().resource_mut::<NextState<ClientState>>().set(ClientState::Connected);
            app.update();
            Client::Real(Box::new(app))
        };
        Self { clients: (0..terms.clients).map(client).collect() }
    }

    fn receive(&mut self, client: u32, packet: &mut [u8]) {
        let (channel, message) = packet.split_first().expect("a channel");
        let channel = usize::from(*channel);
        match &mut self.clients[client as usize] {
            Client::Real(app) => {
                app.world_mut().resource_mut::<ClientMessages>().insert_received(channel, message.to_vec());
            }
            // Flags, then the message's number in two bytes.
            Client::Acknowledging(acks) if channel == usize::from(ServerChannel::Mutations) => {
                acks.extend_from_slice(&message[1..3]);
            }
            Client::Acknowledging(_) => {}
        }
    }

    fn tick(&mut self, out: &mut Outbox) {
        let mut framed = Vec::new();
        for (number, client) in self.clients.iter_mut().enumerate() {
            match client {
                Client::Real(app) => {
                    app.update();
                    for (channel, message) in app.world_mut().resource_mut::<ClientMessages>().drain_sent() {
                        framed.clear();
                        framed.push(channel as u8);
                        framed.extend_from_slice(&message);
                        out.push(number as u32, &framed);
                    }
                }
                Client::Acknowledging(acks) if !acks.is_empty() => {
                    framed.clear();
                    framed.push(usize::from(ClientChannel::MutationAcks) as u8);
                    framed.append(acks);
                    out.push(number as u32, &framed);
                }
                Client::Acknowledging(_) => {}
            }
        }
    }

    fn sampled(&self, terms: &Terms) -> Vec<u32> {
        real_numbers(terms)
    }

    fn held(&mut self, client: u32, into: &mut Vec<Held>) {
        let Client::Real(app) = &mut self.clients[client as usize] else { return };
        let mut query = app.world_mut().query::<(&Number, &Pose, &Health)>();
        let held = query.iter(app.world());
        into.extend(held.map(|(number, pose, health)| Held { number: number.0, pose: pose.0, health: health.0 }));
    }
}
