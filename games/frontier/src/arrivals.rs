//! Arrivals and departures: how clients become actors and stop being it.
//!
//! An exclusive system, which returns at once when nobody comes or goes.

use bevy_ecs::prelude::*;
use throng::prelude::*;
use throng_replication::Text;

use crate::{
    actors::Actors,
    changes::{embody, remove},
    characters::Character,
    components::{HEALTH_MAX, Kind, Look, Name},
    land::{Map, Sector},
    landscape::{Land, mix, within_edge},
    parties::Parties,
    protocol::Realm,
    roster::{Player, PlayerRow, Roster},
    talk::{SAVES_AWAY, notice},
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
    // One that cannot be read does not come so far (`accept_transfers`).
    let kept = arrival.transfer.and_then(|transfer| transfer.read::<Character>().ok());
    let hearth = kept.map_or(hearth, |kept| kept.hearth);
    let at_hearth = [hearth[0] + aside(32), hearth[1] + aside(40)].map(within_edge);
    let alive = kept.filter(|kept| kept.health > 0);
    let (place, heading) = alive.map_or((at_hearth, 0.0), |kept| (kept.place, kept.heading));
    let level = 1 + (mixed >> 48) as u8 % LEVEL_MAX;
    let look = Look { kind: Kind::Player, level, variety: (mixed >> 56) as u8 & 31 };
    let index = world.resource_mut::<Actors>().add(look, place, heading);
    if let Some(Character { health, .. }) = alive {
        wound(&mut world.resource_mut::<Actors>(), index, health);
    }
    let name = Text::new(&format!("Pioneer {}", arrival.client_id.0 % 1_000_000_000)).unwrap_or_default();
    let player = Player::new(arrival.client, index, name, hearth, tick);
    let player = player.of_account(arrival.client_id.0, kept.as_ref());
    let name = player.name();
    let row = world.resource_mut::<Roster>().add(player);
    world.resource_mut::<Actors>()[index].player = row;
    let entity = embody(world, index, false);
    world.entity_mut(entity).insert((Name { text: name }, PlayerRow(row)));
    let seed = world.resource::<Map>().seed();
    let mut outbox = world.resource_mut::<Outbox>();
    outbox.set_player(arrival.client, entity);
    outbox.send(arrival.client, &Realm { seed }).expect("it has no limits");
    // With one that has turned just now everybody is told.
    if let Some(SaveStore { is_away: true, has_turned: false }) = world.get_resource::<SaveStore>() {
        world.resource_mut::<Events>().send(&notice(SAVES_AWAY), Audience::Client(arrival.client), "chat.server");
    }
    let Some(purse) = kept.and_then(|_| world.resource::<Roster>().purse(row)) else { return };
    world.resource_mut::<Events>().send(&purse.1, Audience::Client(purse.0), "trade.purse");
}

/// Somebody comes as hurt as it went.
fn wound(actors: &mut Actors, index: u32, percent: u8) {
    let row = &mut actors[index];
    row.health = (row.health_max * i32::from(percent) / i32::from(HEALTH_MAX)).clamp(1, row.health_max);
    if row.health < row.health_max {
        actors.mending.insert(index);
    }
}

fn depart(world: &mut World, client: ClientKey) {
    let entity = world.resource::<Inbox>().players().entity(client);
    if let Some(&row) = entity.and_then(|entity| world.get::<PlayerRow>(entity)) {
        let_go(world, row);
    }
}

/// Takes a player out of all that knows of it, with its entity if there is one.
pub fn let_go(world: &mut World, row: PlayerRow) {
    let Some(player) = world.resource_mut::<Roster>().remove(row) else { return };
    let party = world.resource::<Actors>()[player.actor].party;
    world.resource_mut::<Parties>().leave(party, player.actor);
    let around = player.sector.into_iter().flat_map(Sector::around);
    let mut map = world.resource_mut::<Map>();
    around.for_each(|sector| map.leave(sector, row.0));
    remove(world, player.actor);
}
