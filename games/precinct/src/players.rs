//! Players: how clients become entities of a world and stop being it, and how their messages reach them.
//!
//! A client that arrives gets an entity at a spawn point: with what it carries if it came through a gate, with a fresh
//! [`Passport`] if it has just connected, whose home is then the hideout that the directory has put it in. A hideout stays awake
//! for as long as its owner is connected, wherever the owner is: the world that sees the connection end posts [`OwnerLeft`]
//! home.
//!
//! Arrivals and departures are exclusive systems that return at once when nobody comes or goes. Messages are decoded
//! once a tick for all players; a message that makes no sense is dropped and counted.

use bevy_ecs::{prelude::*, query::QueryData};
use speech::SpeechAllowance;
use throng::prelude::*;
use throng_replication::ecs::Replicated;

use crate::{
    arena::Arena,
    components::{Action, Character, Faction, Pose, Slot, Standing, Vitals},
    gates::{GateWatch, Traveller, leads_away},
    lives::{LifeClock, begin_life, near_spawn},
    movement::{Controls, step},
    protocol::{ClientMessage, Input, NAME_BYTES_MAX},
    scene::Scene,
    shooting::pull_trigger,
    weapons::{Weapon, WeaponKind},
};

/// What every player carries.
const PLAYER_WEAPON: WeaponKind = WeaponKind::Rifle;

/// The client that an entity is the player of.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlayerClient(pub ClientKey);

/// Who a player is, in every world it visits.
#[derive(Component, Debug, Clone, Copy, PartialEq)]
pub struct Passport {
    /// Its own hideout.
    pub home: WorldId,
    pub name: PlayerName,
    pub kills: u32,
    pub deaths: u32,
}

/// A player's name, inside the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlayerName {
    bytes: [u8; NAME_BYTES_MAX],
    len: u8,
}

impl PlayerName {
    /// A name that [`speech::accept_name`] has accepted.
    pub fn new(name: &str) -> Self {
        let mut bytes = [0; NAME_BYTES_MAX];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Self { bytes, len: name.len() as u8 }
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

/// Told to a hideout when its owner's connection has ended somewhere else.
#[derive(Debug, Clone, Copy)]
pub struct OwnerLeft;

/// The players of this world, sorted by client.
#[derive(Default)]
pub struct Roster(Vec<(ClientKey, Entity)>);

impl Roster {
    pub fn entity(&self, client: ClientKey) -> Option<Entity> {
        let index = self.0.binary_search_by_key(&client, |entry| entry.0).ok()?;
        Some(self.0[index].1)
    }

    fn add(&mut self, client: ClientKey, entity: Entity) {
        let index = self.0.partition_point(|entry| entry.0 < client);
        self.0.insert(index, (client, entity));
    }

    fn remove(&mut self, client: ClientKey) -> Option<Entity> {
        let index = self.0.binary_search_by_key(&client, |entry| entry.0).ok()?;
        Some(self.0.remove(index).1)
    }
}

/// Makes entities for those who arrived and takes away those of ended connections.
pub fn seat(world: &mut World) {
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

/// Takes away the entities of those who went through a gate this tick.
pub fn unseat(world: &mut World) {
    if world.resource::<Arena>().leavers.is_empty() {
        return;
    }
    for client in std::mem::take(&mut world.resource_mut::<Arena>().leavers) {
        remove(world, client);
    }
    count_players(world);
}

fn count_players(world: &mut World) {
    let mut arena = world.resource_mut::<Arena>();
    arena.tally.players = arena.roster.0.len() as i64;
}

fn arrive(world: &mut World, arrival: Arrival) {
    let TickInfo { tick, world: here, .. } = *world.resource::<TickInfo>();
    let luggage = arrival.luggage.and_then(|luggage| luggage.downcast::<Traveller>().ok());
    let traveller = luggage.map_or_else(|| newcomer(here, arrival.client_id.0), |traveller| *traveller);
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
            GateWatch::default(),
            SpeechAllowance::new(tick),
        ))
        .id();
    world.resource_mut::<Arena>().roster.add(arrival.client, player);
    world.resource_mut::<Outbox>().set_player(arrival.client, player);
}

fn newcomer(home: WorldId, client_id: u64) -> Traveller {
    let name = PlayerName::new(&format!("Agent {}", client_id % 1_000_000_000));
    Traveller { health: Vitals::FULL.health, passport: Passport { home, name, kills: 0, deaths: 0 } }
}

/// A connection has ended: the player goes, and its hideout need not wait for it any more.
fn depart(world: &mut World, client: ClientKey) {
    let Some(passport) = remove(world, client) else { return };
    if passport.home == world.resource::<TickInfo>().world {
        world.resource_mut::<MayBeDormant>().0 = true;
    } else {
        world.resource_mut::<Outbox>().post(passport.home, Box::new(OwnerLeft));
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

/// A player's row, as its own system sees it.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct PlayerRow {
    entity: Entity,
    pub slot: &'static Slot,
    pub client: &'static PlayerClient,
    pub passport: &'static Passport,
    pub character: &'static Character,
    pub life: &'static LifeClock,
    pub controls: &'static mut Controls,
    pub pose: &'static mut Pose,
    pub standing: &'static mut Standing,
    pub vitals: &'static mut Vitals,
    pub weapon: &'static mut Weapon,
    pub action: &'static mut Action,
    pub gate_watch: &'static mut GateWatch,
}

/// What all players of a world do in a tick, player by player: stand up, walk, leave through a gate or fire.
pub fn play(
    tick: Res<TickInfo>,
    scene: Res<Scene>,
    inbox: Res<Inbox>,
    mut arena: ResMut<Arena>,
    mut rng: ResMut<WorldRng>,
    mut outbox: ResMut<Outbox>,
    mut players: Query<PlayerRow>,
) {
    let (arena, rng) = (&mut *arena, &mut rng.0);
    read_messages(&inbox, arena, &mut players);
    for mut player in &mut players {
        let velocity = player.controls.settle(tick.dt_s);
        if !player.vitals.alive {
            if !player.life.is_over(tick.tick) {
                continue;
            }
            let PlayerRowItem { vitals, pose, standing, weapon, .. } = &mut player;
            begin_life(scene.places.any_spawn(rng), &scene, rng, vitals, pose, standing, weapon);
        }
        let (yaw, _) = player.controls.aim();
        step(velocity, yaw, tick.dt_s, &scene.level.navmesh, &mut player.pose, &mut player.standing);
        let standing = player.standing.0;
        arena.actors.place(*player.slot, player.entity, standing, player.character.into());

        let home = player.passport.home;
        if let Some(world) = leads_away(&scene, standing.position(), home, &mut player.gate_watch) {
            let traveller = Traveller { health: player.vitals.health, passport: *player.passport };
            outbox.travel(player.client.0, world, Box::new(traveller));
            arena.leavers.push(player.client.0);
            arena.tally.travels += 1;
        } else if player.controls.fire() && !scene.rules.players_are_safe {
            pull_trigger(&tick, &mut player, &mut arena.shots, rng);
        }
    }
}

/// Decodes what clients sent: inputs to their controls, words to [`crate::social::Sayings`].
fn read_messages(inbox: &Inbox, arena: &mut Arena, players: &mut Query<PlayerRow>) {
    let Arena { roster, sayings, tally, .. } = arena;
    for message in inbox.iter() {
        // Messages of a client that left in an earlier tick have no addressee.
        let Some(player) = roster.entity(message.client) else { continue };
        match message.kind {
            MessageKind::Input { .. } => {
                let Ok(input) = Input::decode(message.bytes) else {
                    tally.inputs_refused += 1;
                    continue;
                };
                let taken = players.get_mut(player).is_ok_and(|mut player| player.controls.take(&input));
                tally.inputs += u64::from(taken);
                tally.inputs_excess += u64::from(!taken);
            }
            MessageKind::Reliable => match ClientMessage::decode(message.bytes) {
                Ok(said) => sayings.hear(player, &said),
                Err(_) => tally.messages_refused += 1,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roster_finds_everybody_and_forgets_who_left() {
        let mut roster = Roster::default();
        let entity = |number: u32| Entity::from_raw_u32(number).unwrap();
        for number in [5, 1, 9, 3] {
            roster.add(ClientKey(number), entity(number));
        }
        assert_eq!(roster.entity(ClientKey(9)), Some(entity(9)));
        assert_eq!(roster.remove(ClientKey(1)), Some(entity(1)));
        assert_eq!(roster.remove(ClientKey(1)), None);
        assert_eq!(roster.entity(ClientKey(1)), None);
        assert_eq!(roster.entity(ClientKey(3)), Some(entity(3)));
    }

    #[test]
    fn a_newcomers_name_fits_whatever_its_number() {
        let traveller = newcomer(WorldId(1), u64::MAX);
        assert!(traveller.passport.name.as_str().starts_with("Agent "));
        speech::accept_name(traveller.passport.name.as_str().as_bytes(), NAME_BYTES_MAX).unwrap();
    }
}
