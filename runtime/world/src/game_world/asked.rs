//! Asked: what a world tells somebody outside of itself, between two ticks.
//!
//! Runs on the world's thread, when a question has come; costs nothing otherwise. Allocates.

use std::collections::BTreeMap;

use bevy_ecs::{archetype::Archetype, component::ComponentId, prelude::*, resource::IsResource};
use throng_replication::{Pacing, ecs::Replicated};

use super::GameWorld;
use crate::{
    client::Client,
    console::{AskedWorld, ClientLine, EntitySort, PlayerRow},
};

/// Components of the engine and of Bevy say nothing of a game's entities.
const OF_THE_ENGINE: [&str; 3] = ["bevy_", "throng", "std::"];

impl AskedWorld for GameWorld {
    fn ecs_mut(&mut self) -> &mut World {
        &mut self.ecs
    }

    fn player_rows(&self) -> Vec<PlayerRow> {
        let clients = self.clients.as_slice().iter();
        let place_m = |client: &Client| self.replication.place_of_view(client.view.as_ref()?);
        clients.map(|client| PlayerRow { client_id: client.client_id(), place_m: place_m(client) }).collect()
    }

    fn client_lines(&self) -> Vec<ClientLine> {
        self.clients.as_slice().iter().map(|client| line_of(client)).collect()
    }

    fn entity_sorts(&self) -> Vec<EntitySort> {
        let is_resource = self.ecs.components().component_id::<IsResource>();
        let is_replicated = self.ecs.components().component_id::<Replicated>();
        let known: BTreeMap<ComponentId, &'static str> = self.collector.replicated().collect();
        let mut sorts: Vec<EntitySort> = Vec::new();
        for archetype in self.ecs.archetypes().iter().filter(|archetype| !archetype.is_empty()) {
            if is_resource.is_some_and(|id| archetype.contains(id)) {
                continue;
            }
            let told = is_replicated.is_some_and(|id| archetype.contains(id));
            let sort = self.sort_of(archetype, if told { Some(&known) } else { None });
            match sorts.iter_mut().find(|other| (&other.replicated, &other.others) == (&sort.replicated, &sort.others))
            {
                Some(other) => other.count += sort.count,
                None => sorts.push(sort),
            }
        }
        sorts.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.replicated.cmp(&b.replicated)));
        sorts
    }

    fn ticks_done(&self) -> u32 {
        self.tick
    }
}

impl GameWorld {
    /// `known`: the components that clients hear of, if they hear of these entities at all.
    fn sort_of(&self, archetype: &Archetype, known: Option<&BTreeMap<ComponentId, &'static str>>) -> EntitySort {
        let (mut replicated, mut others) = (Vec::new(), Vec::new());
        for id in archetype.components() {
            if let Some(name) = known.and_then(|known| known.get(id)) {
                replicated.push(*name);
                continue;
            }
            let Some(name) = self.ecs.components().get_name(*id) else { continue };
            if !OF_THE_ENGINE.iter().any(|path| name.as_string().starts_with(path)) {
                others.push(name.shortname().to_string());
            }
        }
        replicated.sort_unstable();
        others.sort_unstable();
        EntitySort { count: archetype.len() as usize, replicated, others }
    }
}

fn line_of(client: &Client) -> ClientLine {
    let stats = client.connection.stats();
    ClientLine {
        client_id: client.client_id(),
        round_trip: client.connection.rtt(),
        packets_sent: stats.packets_sent,
        packets_acked: stats.packets_acked,
        packets_lost: stats.packets_lost,
        bytes_sent: stats.bytes_sent,
        bytes_received: stats.bytes_received,
        budget_bytes_per_s: client.pacing.as_ref().map(Pacing::rate_bytes_per_s),
        usual_loss: client.pacing.as_ref().map_or(0.0, Pacing::usual_loss),
    }
}
