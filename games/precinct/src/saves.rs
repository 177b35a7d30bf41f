//! Saves: what of players and worlds outlives the server.
//!
//! | saved under | what | when it is loaded |
//! |---|---|---|
//! | a player's client id | a [`Traveller`], the same that travels | at log-in, which is always at home |
//! | [`hideout_number`] | chest, ground | when the owner comes |
//! | [`HUB_NUMBER`], [`DARK_ZONE_NUMBER`]; in other processes on the same store [`shared_number`] | ground, doors | when the server starts |
//!
//! NPCs, offers and shots are not saved: a world that was not there begins anew with its own. The dead are saved as they
//! will stand up; what they had, and left where they fell, is the ground's. A trade is made in one call or not at all, and a
//! player in a portal is in the cut of the world that he leaves, with all that he carries: so no piece is ever in two
//! records, or in none.
//!
//! Numbers are for ever. Cost: some microseconds for each player and world that is saved; a player takes 100 to 300 bytes,
//! a hideout 20 to 1,000.

use bevy_ecs::prelude::*;
use glam::Vec3;
use throng::{net::protocol::ClientId, prelude::*};
use throng_pack::{List, Pack, envelope};

use crate::{
    arena::Arena,
    components::{Pose, Vitals},
    gear::{Bag, Gear},
    ground::{LYING_MAX, Lies},
    handling::lay,
    inventory::Inventory,
    loot::SavedLoot,
    movement::Controls,
    passport::Passport,
    stash::Stash,
    travel::{Facing, Traveller},
    weapons::{CarriedWeapon, Weapon},
};

/// The numbers that shared worlds are saved under.
pub const HUB_NUMBER: u64 = 1;
pub const DARK_ZONE_NUMBER: u64 = 2;
/// Smaller numbers are for worlds that nobody owns.
const HIDEOUTS_FROM: u64 = 16;
/// Larger ones are for the shared worlds of other processes than the first.
const HIDEOUTS_UNTIL: u64 = u64::MAX - 2 * PROCESSES_MAX;
/// Of those that share a store, by the settings.
const PROCESSES_MAX: u64 = 1_000_000_000;

/// The number that somebody's hideout is saved under, whichever of the hideouts it is in a run of the server. `None`: a
/// client id so large that there is none.
pub fn hideout_number(owner: ClientId) -> Option<u64> {
    owner.0.checked_add(HIDEOUTS_FROM).filter(|number| *number < HIDEOUTS_UNTIL)
}

/// The number of a world that nobody owns in this process of those that share a store: each has a hub and a dark zone of its
/// own. `number` is that of the first process.
pub fn shared_number(process: u32, number: u64) -> u64 {
    if process == 1 { number } else { u64::MAX - 2 * u64::from(process) + number }
}

/// Has players and their worlds saved.
pub struct SavedState;

impl WorldPlugin for SavedState {
    fn build(&self, world: &mut WorldBuilder) {
        world.save_players(saved_player).save_world(SavedParts);
    }
}

/// What a player has, as it would arrive anywhere. `None`: it is about to be given an entity.
pub(crate) fn saved_player(ecs: &mut World, player: PlayerToSave) -> Option<Traveller> {
    let TickInfo { tick, rate, .. } = *ecs.resource::<TickInfo>();
    let player = ecs.get_entity(player.entity?).ok()?;
    let (vitals, weapon) = (*player.get::<Vitals>()?, player.get::<Weapon>()?);
    let (yaw, pitch) = player.get::<Controls>()?.aim();
    // Who is dead stands up with full health and a full magazine, whatever happens first.
    let (health, weapon) = match vitals.alive {
        true => (vitals.health, weapon.carried(tick, rate.0)),
        false => (Vitals::FULL.health, CarriedWeapon::loaded(weapon.kind)),
    };
    Some(Traveller {
        health,
        passport: *player.get::<Passport>()?,
        passage: None,
        facing: Facing::standing(yaw, pitch),
        weapon,
        inventory: *player.get::<Inventory>()?,
        bag: *player.get::<Bag>()?,
    })
}

/// A world without its players. Ticks are those of the run that it was saved in.
#[derive(Debug, Clone, Pack)]
#[pack(name = "precinct.saved_world")]
pub struct SavedWorld {
    /// When it was saved.
    pub tick: u32,
    pub stash: Stash,
    pub lying: List<SavedPiece, LYING_MAX>,
    pub loot: SavedLoot,
    pub open_doors: List<OpenDoor, { u8::MAX as usize + 1 }>,
}

/// A piece on the ground.
#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "precinct.saved_piece")]
pub struct SavedPiece {
    pub gear: Gear,
    #[pack(via = [f32; 3])]
    pub feet: Vec3,
    pub until_tick: u32,
}

#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "precinct.open_door")]
pub struct OpenDoor {
    pub door: u8,
    pub shuts_tick: u32,
}

pub(crate) struct SavedParts;

impl WorldState for SavedParts {
    fn save(&self, ecs: &mut World, _players: &[Entity]) -> Result<Vec<u8>, String> {
        let stash = ecs.query::<&Stash>().iter(ecs).next().copied().unwrap_or_default();
        let TickInfo { tick, .. } = *ecs.resource::<TickInfo>();
        let arena = ecs.resource::<Arena>();
        let piece = |(until_tick, entity)| {
            let (Lies { gear }, pose) = (ecs.get::<Lies>(entity)?, ecs.get::<Pose>(entity)?);
            Some(SavedPiece { gear: *gear, feet: pose.feet(), until_tick })
        };
        let mut saved =
            SavedWorld { tick, stash, lying: List::new(), loot: arena.loot.save(), open_doors: List::new() };
        let too_many = "more lies there, or stands open, than a world may have";
        for piece in arena.ground.lying().filter_map(piece) {
            saved.lying.push(piece).map_err(|_| too_many)?;
        }
        for (door, shuts_tick) in arena.doors.open_until() {
            saved.open_doors.push(OpenDoor { door: door as u8, shuts_tick }).map_err(|_| too_many)?;
        }
        let mut bytes = Vec::new();
        envelope::write(&saved, &mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    fn load(&self, ecs: &mut World, bytes: &[u8]) -> Result<(), String> {
        let saved: SavedWorld = envelope::read(bytes).map_err(|error| error.to_string())?;
        let SavedWorld { tick: then, stash, lying, loot, open_doors } = saved;
        let now = ecs.resource::<TickInfo>().tick;
        let of_now = |tick: u32| now.saturating_add(tick.saturating_sub(then));
        for SavedPiece { gear, feet, until_tick } in lying.iter().copied() {
            lay(ecs, gear, feet, of_now(until_tick));
        }
        for mut chest in ecs.query::<&mut Stash>().iter_mut(ecs) {
            *chest = stash;
        }
        let mut arena = ecs.resource_mut::<Arena>();
        arena.ledger.load(lying.len() + stash.gear.len());
        arena.loot.load(loot);
        arena.loot.move_in_time(then, now);
        for OpenDoor { door, shuts_tick } in open_doors.iter().copied() {
            arena.doors.reopen(door.into(), of_now(shuts_tick));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hideout_has_a_number_that_no_other_world_has() {
        assert_eq!(hideout_number(ClientId(0)), Some(HIDEOUTS_FROM));
        assert!(HUB_NUMBER.max(DARK_ZONE_NUMBER) < HIDEOUTS_FROM);
        assert_eq!([1, 2].map(|number| shared_number(1, number)), [HUB_NUMBER, DARK_ZONE_NUMBER]);
        let of_others = [2, 3, PROCESSES_MAX as u32].map(|process| [1, 2].map(|number| shared_number(process, number)));
        assert_eq!(of_others[..2], [[u64::MAX - 3, u64::MAX - 2], [u64::MAX - 5, u64::MAX - 4]]);
        let last = *of_others.as_flattened().iter().min().unwrap();
        assert_eq!(hideout_number(ClientId(last - HIDEOUTS_FROM)), None);
        assert_eq!(hideout_number(ClientId(last - HIDEOUTS_FROM - 2)), Some(last - 2));
        assert_eq!(hideout_number(ClientId(u64::MAX)), None);
    }
}
