//! Arrivals and departures: how clients become entities of a world and stop being it.
//!
//! A client that arrives gets an entity at a spawn point. If it came through a portal it keeps what it carried; if it
//! has just connected it gets a fresh [`Passport`], and the hideout that the directory chose is its home. A hideout
//! stays awake while its owner is connected, wherever the owner is: the world in which the connection ends posts
//! [`OwnerLeft`] to the hideout.
//!
//! Both are exclusive systems, and return at once when nobody comes or goes.

use bevy_ecs::prelude::*;
use speech::SpeechAllowance;
use throng::prelude::*;
use throng_replication::ecs::Replicated;

use crate::{
    arena::Arena,
    components::{Action, Character, Faction, Pose, Slot, Standing, Vitals},
    lives::{LifeClock, near_spawn},
    movement::Controls,
    passport::{Passport, PlayerName},
    portals::PortalWatch,
    roster::PlayerClient,
    scene::Scene,
    travel::{OwnerLeft, Traveller},
    weapons::{Weapon, WeaponKind},
};

/// What every player carries.
const PLAYER_WEAPON: WeaponKind = WeaponKind::Rifle;

/// Makes entities for those who arrived and takes away those of ended connections.
pub fn enter(world: &mut World) {
    let nothing_to_do = world.resource::<Arrivals>().0.is_empty()
        && world.resource::<Departures>().0.is_empty()
        && world.resource::<WorldMessages>().0.is_empty();
    if nothing_to_do {
        return;
    }
    for client in std::mem::take(&mut world.resource_mut::<Departures>().0) {
        depart(world, client);
    }
    let messages = std::mem::take(&mut world.resource_mut::<WorldMessages>().0);
    if messages.iter().any(|message| message.is::<OwnerLeft>()) {
        world.resource_mut::<MayBeDormant>().0 = true;
    }
    for arrival in std::mem::take(&mut world.resource_mut::<Arrivals>().0) {
        arrive(world, arrival);
    }
    count_players(world);
}

/// Takes away the entities of those who went through a portal this tick.
pub fn leave(world: &mut World) {
    if world.resource::<Arena>().leavers.is_empty() {
        return;
    }
    for client in std::mem::take(&mut world.resource_mut::<Arena>().leavers) {
        remove(world, client);
    }
    count_players(world);
}

fn count_players(world: &mut World) {
    let arena = world.resource::<Arena>();
    throng::gauge!("players", arena.roster.count());
}

fn arrive(world: &mut World, arrival: Arrival) {
    let TickInfo { tick, world: here, .. } = *world.resource::<TickInfo>();
    let carried = arrival.transfer.and_then(|transfer| transfer.read::<Traveller>().ok());
    let traveller = carried.unwrap_or_else(|| newcomer(here, arrival.client_id.0));
    if traveller.passport.home == here {
        world.resource_mut::<MayBeDormant>().0 = false;
    }

    let standing = world.resource_scope(|world, mut rng: Mut<WorldRng>| {
        let (scene, rng) = (world.resource::<Scene>(), &mut rng.0);
        near_spawn(&scene.level.navmesh, scene.places.any_spawn(rng), rng)
    });
    let slot = world.resource_mut::<Arena>().actors.add_player();
    let player = world
        .spawn((
            (
                Replicated::default(),
                Pose::new(standing.position(), 0.0),
                Vitals { health: traveller.health.max(1), alive: true },
                Character { npc: false, faction: Faction::Agents, weapon: PLAYER_WEAPON },
                Action::NONE,
            ),
            slot,
            PlayerClient(arrival.client),
            traveller.passport,
            Standing(standing),
            Controls::default(),
            Weapon::new(PLAYER_WEAPON),
            LifeClock::default(),
            PortalWatch::default(),
            SpeechAllowance::new(tick),
        ))
        .id();
    world.resource_mut::<Arena>().roster.add(arrival.client, player);
    world.resource_mut::<Outbox>().set_player(arrival.client, player);
}

fn newcomer(home: WorldId, client_id: u64) -> Traveller {
    let name = PlayerName::new(&format!("Agent {}", client_id % 1_000_000_000)).expect("15 bytes at most");
    Traveller { health: Vitals::FULL.health, passport: Passport { home, name, kills: 0, deaths: 0 } }
}

/// A connection has ended: the player goes, and its hideout need not wait for it any more.
fn depart(world: &mut World, client: ClientKey) {
    let Some(passport) = remove(world, client) else { return };
    if passport.home == world.resource::<TickInfo>().world {
        world.resource_mut::<MayBeDormant>().0 = true;
    } else {
        let here = world.resource::<TickInfo>().world;
        let posted = world.resource_mut::<Outbox>().post(here, passport.home, &OwnerLeft);
        posted.expect("it says nothing that has limits");
    }
}

fn remove(world: &mut World, client: ClientKey) -> Option<Passport> {
    let entity = world.resource_mut::<Arena>().roster.remove(client)?;
    let player = world.entity(entity);
    let (slot, passport) = (*player.get::<Slot>()?, *player.get::<Passport>()?);
    world.resource_mut::<Arena>().actors.remove_player(slot);
    world.despawn(entity);
    Some(passport)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::NAME_BYTES_MAX;

    #[test]
    fn a_newcomers_name_fits_whatever_its_number() {
        let traveller = newcomer(WorldId::new(1, 0), u64::MAX);
        assert!(traveller.passport.name.starts_with("Agent "));
        speech::accept_name(traveller.passport.name.as_bytes(), NAME_BYTES_MAX).unwrap();
    }
}
