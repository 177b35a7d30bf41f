//! Seats: the ten players of a match, as entities and as who has them.
//!
//! All ten are there from the first tick to the last: who comes takes one, and who goes leaves one that nobody plays.
//! So a match spawns nothing, and a seat's number finds its entity, its client, its row in every column.

use bevy_ecs::prelude::*;
use glam::Vec3;
use throng::prelude::*;
use throng_replication::{EntityLink, table_resource};
use throng_rewind::view_limits::ShooterView;

use crate::{
    components::{Arms, Doing, Player, Pose, Vitals},
    controls::Controls,
    economy::Purse,
    movement::Motion,
    teams::{SEATS, TeamId},
    travel::Passport,
    weapons::{Weapon, WeaponKind},
};

/// Who has which seat.
pub struct Seats {
    /// By seat.
    pub entities: [Entity; SEATS],
    pub clients: [Option<ClientKey>; SEATS],
    pub passports: [Passport; SEATS],
}

table_resource!(Seats);

impl StateHash for Seats {
    fn hash_state(&self, hasher: &mut StateHasher) {
        // Entities are the same from the first tick on.
        let Self { entities: _, clients, passports } = self;
        for (client, Passport { matches, wins, kills, deaths }) in clients.iter().zip(passports) {
            hasher.write_u64(client.map_or(u64::MAX, |client| client.0.into()));
            hasher.write_u64(u64::from(*matches) << 16 | u64::from(*wins));
            hasher.write_u64(u64::from(*kills) << 32 | u64::from(*deaths));
        }
    }
}

/// What only the server knows of a player.
#[derive(Component, Pack, Debug, Clone, Copy, Default)]
#[pack(name = "duel.senses")]
pub struct Senses {
    /// No enemy is shown to it before this tick.
    pub blind_until_tick: u32,
    /// What it was shown last, for its shots.
    pub view: ShooterView,
    /// Counts its lives, from 1, so that nothing that was found out about one holds for the next.
    pub life: u32,
}

impl StateHash for Senses {
    fn hash_state(&self, hasher: &mut StateHasher) {
        let Self { blind_until_tick, view, life } = self;
        let (newest, acked_tick) = view.kept();
        hasher.write_u64(u64::from(*life) << 32 | u64::from(*blind_until_tick));
        hasher.write_u64(u64::from(newest.tick()) << 8 | u64::from(newest.part()));
        hasher.write_u64(acked_tick.into());
    }
}

/// What a client was told that its player owns and holds.
#[derive(Pack, Debug, Clone, Copy, PartialEq, Eq)]
#[pack(name = "duel.known_kit")]
pub struct KnownKit {
    pub purse: Purse,
    pub weapon: WeaponKind,
}

/// What a client was told last of what is its player's own affair.
#[derive(Component, Pack, Debug, Clone, Copy, Default, PartialEq, Eq)]
#[pack(name = "duel.known")]
pub struct Known {
    pub kit: Option<KnownKit>,
    /// Rounds loaded.
    pub rounds: u8,
    pub blind_until_tick: u32,
}

impl StateHash for Known {
    fn hash_state(&self, hasher: &mut StateHasher) {
        let Self { kit, rounds, blind_until_tick } = self;
        hasher.write_u64(u64::from(*rounds) << 32 | u64::from(*blind_until_tick));
        hasher.write_u64(kit.map_or(u64::MAX, |kit| kit.weapon as u64));
        if let Some(KnownKit { purse, .. }) = kit {
            purse.hash_state(hasher);
        }
    }
}

/// Seats as they are packed.
#[derive(Pack, Debug, Clone)]
#[pack(name = "duel.seats")]
pub struct SavedSeats {
    entities: [EntityLink; SEATS],
    clients: [Option<ClientKey>; SEATS],
    passports: [Passport; SEATS],
}

impl Seats {
    pub fn save(&self) -> SavedSeats {
        let Self { entities, clients, passports } = self;
        SavedSeats { entities: entities.map(EntityLink::to), clients: *clients, passports: *passports }
    }

    pub fn load(&mut self, saved: SavedSeats) {
        for (own, link) in self.entities.iter_mut().zip(&saved.entities) {
            *own = link.entity().unwrap_or(*own);
        }
        (self.clients, self.passports) = (saved.clients, saved.passports);
    }

    /// A seat whose player is not in the world any more gets another one, whom nobody plays.
    pub fn vacate(world: &mut World, client: ClientKey) {
        let Some(seat) = world.resource::<Self>().of_client(client) else { return };
        let entity = spawn_player(world, seat);
        let mut seats = world.resource_mut::<Self>();
        (seats.entities[usize::from(seat)], seats.clients[usize::from(seat)]) = (entity, None);
    }

    /// Spawns the players of all seats, whom nobody plays yet.
    pub fn spawn(world: &mut World) -> Self {
        let entities = std::array::from_fn(|seat| spawn_player(world, seat as u8));
        Self { entities, clients: [None; SEATS], passports: [Passport::default(); SEATS] }
    }

    pub fn entity(&self, seat: u8) -> Entity {
        self.entities[usize::from(seat)]
    }

    pub fn client(&self, seat: u8) -> Option<ClientKey> {
        self.clients[usize::from(seat)]
    }

    /// The seat of a client.
    pub fn of_client(&self, client: ClientKey) -> Option<u8> {
        self.clients.iter().position(|taken| *taken == Some(client)).map(|seat| seat as u8)
    }

    /// How many of a team are there.
    pub fn connected(&self, team: TeamId) -> usize {
        let of_team = (0..SEATS).filter(|seat| TeamId::of_seat(*seat as u8) == team);
        of_team.filter(|seat| self.clients[*seat].is_some()).count()
    }

    pub fn are_empty(&self) -> bool {
        self.clients.iter().all(Option::is_none)
    }

    /// Each client with its seat.
    pub fn iter(&self) -> impl Iterator<Item = (u8, ClientKey)> {
        self.clients.iter().enumerate().filter_map(|(seat, client)| Some((seat as u8, (*client)?)))
    }
}

fn spawn_player(world: &mut World, seat: u8) -> Entity {
    let weapon = Weapon::new(WeaponKind::Pistol);
    let replicated = (
        Replicated::default(),
        VisibilityFiltered,
        Pose::new(Vec3::ZERO, 0.0, 0),
        Player { seat, team: TeamId::of_seat(seat), is_connected: false },
        Vitals::DEAD,
        Arms { weapon: weapon.kind, doing: Doing::Nothing },
    );
    let own =
        (Motion::standing(Vec3::ZERO), Controls::default(), weapon, Purse::FIRST, Senses::default(), Known::default());
    world.spawn((replicated, own)).id()
}
