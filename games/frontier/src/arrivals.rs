//! Arrivals and departures: how clients become actors and stop being it.
//!
//! An exclusive system, which returns at once when nobody comes or goes.

use bevy_ecs::prelude::*;
use throng::prelude::*;
use throng_replication::Text;

use crate::{
    actors::Actors,
    changes::{embody, remove},
    components::{Kind, Look, Name},
    landscape::{Land, mix},
    parties::Parties,
    roster::{Player, PlayerRow, Roster},
    traits::LEVEL_MAX,
};

/// Which hearths newcomers get, in turn.
#[derive(Resource, Debug, Clone, Copy)]
pub struct Welcome {
    pub hearths: usize,
}

/// Makes actors for those who arrived and takes away those of ended connections.
pub fn enter(world: &mut World) {
    if world.resource::<Arrivals>().0.is_empty() && world.resource::<Departures>().0.is_empty() {
        return;
    }
    for client in std::mem::take(&mut world.resource_mut::<Departures>().0) {
        depart(world, client);
    }
    for arrival in std::mem::take(&mut world.resource_mut::<Arrivals>().0) {
        arrive(world, arrival);
    }
    throng::gauge!("players", world.resource::<Roster>().count());
}

fn arrive(world: &mut World, arrival: Arrival) {
    let TickInfo { tick, .. } = *world.resource::<TickInfo>();
    let mixed = mix(arrival.client_id.0);
    let hearths = world.resource::<Welcome>().hearths;
    let hearth = world.resource::<Land>().0.hearths()[(mixed % hearths as u64) as usize];
    // A few metres aside, so that nobody stands in another.
    let aside = |bits: u64| ((mixed >> bits & 0xff) as f32 / 255.0 - 0.5) * 16.0;
    let place = [hearth[0] + aside(32), hearth[1] + aside(40)];
    let level = 1 + (mixed >> 48) as u8 % LEVEL_MAX;
    let look = Look { kind: Kind::Player, level, variety: (mixed >> 56) as u8 & 31 };
    let index = world.resource_mut::<Actors>().add(look, place, 0.0);
    let name = Text::new(&format!("Pioneer {}", arrival.client_id.0 % 1_000_000_000)).unwrap_or_default();
    let player = Player::new(arrival.client, index, name, hearth, tick);
    let row = world.resource_mut::<Roster>().add(player);
    world.resource_mut::<Actors>()[index].player = row;
    let entity = embody(world, index, false);
    world.entity_mut(entity).insert((Name { text: name }, PlayerRow(row)));
    world.resource_mut::<Outbox>().set_player(arrival.client, entity);
}

fn depart(world: &mut World, client: ClientKey) {
    let entity = world.resource::<Inbox>().players().entity(client);
    let Some(&row) = entity.and_then(|entity| world.get::<PlayerRow>(entity)) else { return };
    let Some(player) = world.resource_mut::<Roster>().remove(row) else { return };
    let party = world.resource::<Actors>()[player.actor].party;
    world.resource_mut::<Parties>().leave(party, player.actor);
    remove(world, player.actor);
}
