//! Arrivals and departures: how clients become entities of a world and stop being it.
//!
//! A client that comes through a portal gets an entity at the portal that leads back, with all that it carried. One
//! that has just connected stands up at a spawn point with a fresh [`Passport`] and the usual equipment, and the
//! hideout that the directory chose is its home. A hideout stays awake while its owner is connected, wherever the owner
//! is: the world in which the connection ends posts [`OwnerLeft`] to the hideout. One that was made again while its
//! owner was away sleeps until the owner comes.
//!
//! What a traveller carries is written down at the end of the tick, when all that happens to it in this world has
//! happened. Who is shot dead in the portal stays. Who goes to a world that has ended, such as a hideout that is being
//! made again, is turned back by the server, comes out where it went in, and is told to try again.
//!
//! Both are exclusive systems, and return at once when nobody comes or goes.

use bevy_ecs::prelude::*;
use rand::Rng;
use speech::SpeechAllowance;
use throng::prelude::*;
use throng_replication::ecs::Replicated;
use throng_rewind::ecs::Shoots;

use crate::{
    analytics::{PlayerJoined, PlayerLeft},
    arena::{Arena, Leaver, SentOff},
    components::{Action, Character, Faction, Pose, Slot, Standing, Vitals},
    gear::Bag,
    handling::{tell_bag, tell_stash},
    inventory::Inventory,
    lives::{LifeClock, near_spawn},
    movement::Controls,
    passport::{Passport, PlayerClient, PlayerName},
    players::tell_pockets,
    portals::PortalWatch,
    scene::Scene,
    social::{SAVES_AWAY, say_to},
    stash::Stash,
    travel::{Facing, HideoutMade, OwnerLeft, PLAYER_WEAPON, Passage, Traveller},
    weapons::{CarriedWeapon, Weapon},
};

/// Who says what to a player that was turned back.
pub const TURNED_BACK: (&str, &str) = ("Portal", "nobody gets through now, try again in a moment");

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
    for message in messages {
        if message.read::<OwnerLeft>().is_ok() {
            world.resource_mut::<MayBeDormant>().0 = true;
        } else if let Ok(HideoutMade { ordinal }) = message.read() {
            world.resource_mut::<Arena>().homes.set(ordinal, message.from);
        } else {
            throng::count!("world_messages_refused");
        }
    }
    for arrival in std::mem::take(&mut world.resource_mut::<Arrivals>().0) {
        arrive(world, arrival);
    }
    count_players(world);
}

/// Sends those off who went into a portal this tick.
pub fn leave(world: &mut World) {
    if world.resource::<Arena>().leavers.is_empty() {
        return;
    }
    world.resource_mut::<Arena>().sent_off.clear();
    for leaver in std::mem::take(&mut world.resource_mut::<Arena>().leavers) {
        let is_sent = send_off(world, leaver).is_some();
        throng::count!("travels", u64::from(is_sent));
    }
    count_players(world);
}

/// `None`: it stays.
fn send_off(world: &mut World, Leaver { client, player: entity, through, to }: Leaver) -> Option<()> {
    let TickInfo { tick, rate, .. } = *world.resource::<TickInfo>();
    let (scene, player) = (world.resource::<Scene>(), world.get_entity(entity).ok()?);
    let Vitals { health, alive: true } = *player.get::<Vitals>()? else { return None };
    let (yaw, pitch) = player.get::<Controls>()?.aim();
    let feet = player.get::<Standing>()?.0.position();
    let traveller = Traveller {
        health,
        passport: *player.get::<Passport>()?,
        passage: Some(Passage { left: scene.here, through }),
        facing: Facing::on_way(yaw, pitch, feet, scene.portals.to(through).middle),
        weapon: player.get::<Weapon>()?.carried(tick, rate.0),
        inventory: *player.get::<Inventory>()?,
        bag: *player.get::<Bag>()?,
    };
    // What a player has is within its limits; if it were not, it would keep it and stay.
    world.resource_mut::<Outbox>().travel(client, to, &traveller).ok()?;
    let passport = remove(world, entity)?;
    world.resource_mut::<Arena>().sent_off.push(SentOff { client, passport });
    Some(())
}

fn count_players(world: &mut World) {
    throng::gauge!("players", world.resource::<Arena>().actors.players().len());
}

fn arrive(world: &mut World, arrival: Arrival) {
    let TickInfo { tick, rate, .. } = *world.resource::<TickInfo>();
    let Scene { here, hideout, .. } = *world.resource::<Scene>();
    // Those that cannot be read do not come so far (`accept_transfers`).
    let carried = arrival.transfer.as_ref().and_then(|transfer| transfer.read::<Traveller>().ok());
    let traveller = match carried {
        // From the store, and not back from a world that did not take it.
        Some(saved) if arrival.from.is_none() && arrival.refused.is_none() => saved.logged_in(hideout),
        Some(traveller) => traveller,
        None => newcomer(hideout, arrival.client_id.0),
    };
    let Traveller { health, passport, passage, facing, weapon, inventory, bag } = traveller;
    if passport.home == hideout {
        world.resource_mut::<MayBeDormant>().0 = false;
    }

    let (standing, yaw) = world.resource_scope(|world, mut rng: Mut<WorldRng>| {
        let (scene, rng) = (world.resource::<Scene>(), &mut rng.0);
        let Some(passage) = passage else {
            return (near_spawn(&scene.level.navmesh, scene.places.any_spawn(rng), rng), facing.yaw);
        };
        let portal = scene.portals.to(passage.comes_out_at(here));
        let exit = portal.exit(rng.random_range(0..usize::from(u8::MAX)), &world.resource::<Arena>().actors);
        (exit, facing.yaw_on_way(portal.middle, exit.position()))
    });
    let slot = world.resource_mut::<Arena>().actors.add_player();
    let character = Character { npc: false, faction: Faction::Agents, weapon: weapon.kind };
    let player = world
        .spawn((
            (
                Replicated::default(),
                Pose::new(standing.position(), yaw),
                Vitals { health, alive: true },
                character,
                Action::NONE,
            ),
            slot,
            PlayerClient(arrival.client),
            passport,
            Standing(standing),
            (Controls::looking(yaw, facing.pitch), Shoots::default()),
            (Weapon::brought(weapon, tick, rate.0), inventory, bag),
            LifeClock::default(),
            PortalWatch::default(),
            SpeechAllowance::new(tick),
        ))
        .id();
    let mut arena = world.resource_mut::<Arena>();
    // Whoever comes next finds the place taken.
    arena.actors.place(slot, player, standing, (&character).into());
    arena.ledger.arrive(&bag.gear);
    if arrival.from.is_none() && arrival.refused.is_none() {
        let Passport { name, kills, deaths, .. } = passport;
        PlayerJoined { player: name, kills, deaths, gear: bag.gear.len() as u32 }.emit();
    }
    let mut outbox = world.resource_mut::<Outbox>();
    outbox.set_player(arrival.client, player);
    tell_pockets(&mut outbox, PlayerClient(arrival.client), &inventory);
    tell_bag(&mut outbox, PlayerClient(arrival.client), &bag);
    tell_chest(world, PlayerClient(arrival.client), passport.home);
    let mut outbox = world.resource_mut::<Outbox>();
    if passage.is_some_and(|passage| passage.left == here) {
        throng::count!("turned_back");
        say_to(&mut outbox, arrival.client, TURNED_BACK.0, TURNED_BACK.1);
    }
    // With one that has turned just now everybody is told.
    if let Some(SaveStore { is_away: true, has_turned: false }) = world.get_resource::<SaveStore>() {
        say_to(&mut world.resource_mut::<Outbox>(), arrival.client, SAVES_AWAY.0, SAVES_AWAY.1);
    }
}

/// Who comes home is told what is in its chest.
fn tell_chest(world: &mut World, client: PlayerClient, home: Option<u16>) {
    if home.is_none() || home != world.resource::<Scene>().hideout {
        return;
    }
    let mut chests = world.query::<&Stash>();
    let Ok(stash) = chests.single(world).copied() else { return };
    tell_stash(&mut world.resource_mut::<Outbox>(), client, &stash);
}

fn newcomer(home: Option<u16>, client_id: u64) -> Traveller {
    let name = PlayerName::new(&format!("Agent {}", client_id % 1_000_000_000)).expect("15 bytes at most");
    Traveller {
        health: Vitals::FULL.health,
        passport: Passport { home, name, kills: 0, deaths: 0 },
        passage: None,
        facing: Facing::default(),
        weapon: CarriedWeapon::loaded(PLAYER_WEAPON),
        inventory: Inventory::usual(PLAYER_WEAPON),
        bag: Bag::default(),
    }
}

/// A connection has ended: the player goes, and its hideout need not wait for it any more. Travel gives way to a
/// connection's end, so it may be one that was sent off in the last tick.
fn depart(world: &mut World, client: ClientKey) {
    let player = world.resource::<Inbox>().players().entity(client);
    let passport = player.and_then(|player| remove(world, player)).or_else(|| {
        let mut sent_off = world.resource::<Arena>().sent_off.iter();
        sent_off.find(|sent| sent.client == client).map(|sent| sent.passport)
    });
    let Some(Passport { home, name, kills, deaths }) = passport else { return };
    PlayerLeft { player: name, kills, deaths }.emit();
    if home == world.resource::<Scene>().hideout {
        world.resource_mut::<MayBeDormant>().0 = true;
    } else if let Some(home) = world.resource::<Arena>().homes.world(home) {
        let here = world.resource::<TickInfo>().world;
        let posted = world.resource_mut::<Outbox>().post(here, home, &OwnerLeft);
        posted.expect("it says nothing that has limits");
    }
}

/// `None`: it is gone already.
fn remove(world: &mut World, entity: Entity) -> Option<Passport> {
    let player = world.get_entity(entity).ok()?;
    let (slot, passport, bag) = (*player.get::<Slot>()?, *player.get::<Passport>()?, *player.get::<Bag>()?);
    let mut arena = world.resource_mut::<Arena>();
    arena.ledger.leave(&bag.gear);
    arena.trades.withdraw(entity);
    arena.actors.remove_player(slot);
    arena.past.forget(slot);
    world.despawn(entity);
    Some(passport)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::NAME_BYTES_MAX;

    #[test]
    fn a_newcomers_name_fits_whatever_its_number() {
        let traveller = newcomer(Some(1), u64::MAX);
        assert!(traveller.passport.name.starts_with("Agent "));
        speech::accept_name(traveller.passport.name.as_bytes(), NAME_BYTES_MAX).unwrap();
    }
}
