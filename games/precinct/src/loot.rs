//! Loot: what fallen NPCs leave behind, for players who come by.
//!
//! A fallen NPC leaves a magazine for its weapon, some credits and, every third of them, a medkit. It lies where the
//! body lies, which is what clients see of it, for [`LIES_MS`]; whoever walks over it picks up what it can carry. No
//! entity is made for it.
//!
//! At most [`PLACES_MAX`] in a world: what is left beyond that replaces the oldest. Allocates once, with the first that
//! falls. Cost: 16 distances for each living player and tick; 40 bytes a place.

use glam::Vec3;
use throng_pack::{ArrayVec, Pack};

use crate::{
    components::Slot,
    inventory::{Inventory, Item, Stacks},
    weapons::{WeaponKind, ticks_of},
};

/// How long it lies. (ms)
pub const LIES_MS: u32 = 20_000;
/// How near a player must come. (m)
pub const REACH_M: f32 = 2.0;
/// Places in a world where something lies.
const PLACES_MAX: usize = 16;
/// One in so many NPCs has a medkit.
const NPCS_PER_MEDKIT: u16 = 3;

#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "precinct.loot_place")]
struct Place {
    #[pack(via = [f32; 3])]
    feet: Vec3,
    until_tick: u32,
    /// Empty: nothing lies there any more.
    #[pack(via = Stacks)]
    left: Inventory,
}

/// Loot in a checkpoint.
#[derive(Debug, Clone, Pack)]
#[pack(name = "precinct.loot")]
pub struct SavedLoot {
    places: ArrayVec<Place, PLACES_MAX>,
    #[pack(max = PLACES_MAX as u8 - 1)]
    next: u8,
}

/// What lies around in a world.
#[derive(Default)]
pub struct Loot {
    places: Vec<Place>,
    /// Where the next goes when all places are taken: the oldest.
    next: usize,
}

impl Loot {
    pub fn save(&self) -> SavedLoot {
        SavedLoot { places: self.places.iter().copied().collect(), next: self.next as u8 }
    }

    pub fn load(&mut self, SavedLoot { places, next }: SavedLoot) {
        *self = Self::default();
        if !places.is_empty() {
            self.places.reserve_exact(PLACES_MAX);
            self.places.extend(places);
            self.next = next.into();
        }
    }

    /// Of another run of the world, whose tick was `then` and is `now` in this one: what lies there lies as long as it
    /// would have.
    pub fn move_in_time(&mut self, then: u32, now: u32) {
        for place in &mut self.places {
            place.until_tick = now.saturating_add(place.until_tick.saturating_sub(then));
        }
    }

    /// An NPC has fallen. What it leaves follows from who it was, so that no chance is drawn for it.
    pub fn leave(&mut self, feet: Vec3, slot: Slot, weapon: WeaponKind, tick: u32, tick_hz: u16) {
        let mut left = Inventory::default();
        if let Some(rounds) = Item::rounds_of(weapon) {
            left.add(rounds, weapon.traits().rounds.into());
        }
        left.add(Item::Medkit, u16::from(slot.0.is_multiple_of(NPCS_PER_MEDKIT)));
        left.add(Item::Credits, 5 + slot.0 % 10);
        let place = Place { feet, until_tick: tick + ticks_of(LIES_MS, tick_hz), left };
        if self.places.len() < PLACES_MAX {
            self.places.reserve_exact(PLACES_MAX - self.places.len());
            self.places.push(place);
        } else {
            self.places[self.next] = place;
            self.next = (self.next + 1) % PLACES_MAX;
        }
    }

    /// Gives a player what lies within its reach and finds room. Whether that was anything.
    pub fn pick_up(&mut self, feet: Vec3, tick: u32, into: &mut Inventory) -> bool {
        let mut is_any = false;
        for place in &mut self.places {
            let lies = tick < place.until_tick && !place.left.is_empty();
            if lies && place.feet.distance_squared(feet) <= REACH_M * REACH_M {
                is_any |= into.take_all(&mut place.left);
            }
        }
        is_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_there_is_picked_up_once_and_in_time() {
        let (mut loot, mut pockets) = (Loot::default(), Inventory::default());
        loot.leave(Vec3::ZERO, Slot(3), WeaponKind::Rifle, 100, 20);
        assert!(!loot.pick_up(Vec3::X * 3.0, 100, &mut pockets), "too far away");
        assert!(loot.pick_up(Vec3::X, 100, &mut pockets));
        let counts = [Item::RifleRounds, Item::Medkit, Item::Credits].map(|item| pockets.count(item));
        assert_eq!(counts, [30, 1, 8]);
        assert!(!loot.pick_up(Vec3::X, 101, &mut pockets));
        loot.leave(Vec3::ZERO, Slot(4), WeaponKind::Fists, 200, 20);
        assert!(!loot.pick_up(Vec3::ZERO, 600, &mut pockets), "too late");
        assert!(loot.pick_up(Vec3::ZERO, 599, &mut pockets));
    }

    #[test]
    fn the_oldest_makes_room_for_the_newest() {
        let mut loot = Loot::default();
        for number in 0..PLACES_MAX + 3 {
            loot.leave(Vec3::X * 10.0 * number as f32, Slot(1), WeaponKind::Pistol, 0, 20);
        }
        assert_eq!(loot.places.len(), PLACES_MAX);
        let there =
            |loot: &mut Loot, number: usize| loot.pick_up(Vec3::X * 10.0 * number as f32, 1, &mut Inventory::default());
        assert_eq!((0..3).filter(|number| there(&mut loot, *number)).count(), 0);
        assert_eq!((3..PLACES_MAX + 3).filter(|number| there(&mut loot, *number)).count(), PLACES_MAX);
    }
}
