//! Actors: everybody in a world, as columns.
//!
//! Perception and shots ask about all characters at once, so their positions lie side by side here instead of being
//! looked up entity by entity. A character has a slot for its whole life. NPCs have the first slots, since their number
//! never changes; players have the rest. So an NPC can remember its target as a slot number of two bytes.
//!
//! A character that moves writes its position here ([`Actors::place`]) before anybody looks or shoots in the tick. The
//! position of somebody dead or absent is NaN: queries skip such points anyway, so no reader needs a second column.
//! Cost: about 5 ns per character and tick; 70 bytes per slot.

use bevy_ecs::entity::Entity;
use glam::Vec3;
use throng_pack::{List, Pack};
use throng_query::{casts::Capsules, nav::NavPoint};

use crate::{
    components::{BODY_HEIGHT_M, BODY_RADIUS_M, Faction, Slot},
    rules::Side,
};

const NOBODY: Side = Side { npc: true, faction: Faction::Agents };

/// Most characters of a world.
const SLOTS_MAX: usize = u16::MAX as usize;

/// Actors in a checkpoint: who has which slot. Where everybody stands follows from the components of those who are there.
#[derive(Debug, Clone, Default, Pack)]
#[pack(name = "precinct.actors")]
pub struct SavedActors {
    slots: u16,
    free: List<Slot, SLOTS_MAX>,
    players: List<Slot, SLOTS_MAX>,
}

/// The columns. Index = slot.
#[derive(Default)]
pub struct Actors {
    entity: Vec<Entity>,
    feet: Vec<Vec3>,
    x_m: Vec<f32>,
    z_m: Vec<f32>,
    radius_m: Vec<f32>,
    height_m: Vec<f32>,
    side: Vec<Side>,
    standing: Vec<Option<NavPoint>>,
    /// Slots that players have left.
    free: Vec<Slot>,
    /// Slots of all players that are in the world, dead or alive.
    players: Vec<Slot>,
}

impl Actors {
    /// Gives an NPC its slot. All NPCs come before the first player.
    pub fn add_npc(&mut self) -> Slot {
        assert!(self.players.is_empty() && self.free.is_empty());
        self.add_slot()
    }

    /// Gives a player a slot for as long as it is in this world.
    pub fn add_player(&mut self) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| self.add_slot());
        self.players.push(slot);
        slot
    }

    pub fn remove_player(&mut self, slot: Slot) {
        self.players.retain(|&player| player != slot);
        self.free.push(slot);
        self.take_away(slot);
    }

    fn add_slot(&mut self) -> Slot {
        let index = self.entity.len();
        assert!(index < SLOTS_MAX, "a world holds at most 65,535 characters");
        self.entity.push(Entity::PLACEHOLDER);
        self.feet.push(Vec3::NAN);
        self.x_m.push(f32::NAN);
        self.z_m.push(f32::NAN);
        self.radius_m.push(BODY_RADIUS_M);
        self.height_m.push(BODY_HEIGHT_M);
        self.side.push(NOBODY);
        self.standing.push(None);
        Slot(index as u16)
    }

    pub fn save(&self) -> SavedActors {
        let list = |slots: &Vec<Slot>| slots.clone().try_into().expect("no more slots are given");
        SavedActors { slots: self.entity.len() as u16, free: list(&self.free), players: list(&self.players) }
    }

    /// As it was saved, with nobody anywhere: [`Actors::place`] says who is where.
    pub fn load(&mut self, saved: SavedActors) {
        *self = Self::default();
        (0..saved.slots).for_each(|_| _ = self.add_slot());
        self.free = saved.free.into_vec();
        self.players = saved.players.into_vec();
    }

    /// How many slots there are, taken or not.
    pub fn slots(&self) -> usize {
        self.entity.len()
    }

    /// Whether each slot that is listed is one: of lists that come out of bytes.
    pub fn is_sound(&self) -> bool {
        let mut listed: Vec<Slot> = self.free.iter().chain(&self.players).copied().collect();
        listed.sort_unstable();
        listed.windows(2).all(|pair| pair[0] != pair[1]) && listed.last().is_none_or(|last| last.index() < self.slots())
    }

    /// Marks a slot as dead or empty at once, so that nothing later in the tick sees or hits it.
    pub fn take_away(&mut self, slot: Slot) {
        let index = slot.index();
        self.feet[index] = Vec3::NAN;
        self.x_m[index] = f32::NAN;
        self.z_m[index] = f32::NAN;
    }

    /// Writes where a living character stands now, and which entity and side it is.
    pub fn place(&mut self, slot: Slot, entity: Entity, standing: NavPoint, side: Side) {
        let (index, feet) = (slot.index(), standing.position());
        self.entity[index] = entity;
        self.feet[index] = feet;
        self.x_m[index] = feet.x;
        self.z_m[index] = feet.z;
        self.side[index] = side;
        self.standing[index] = Some(standing);
    }

    pub fn entity(&self, slot: Slot) -> Entity {
        self.entity[slot.index()]
    }

    /// Where a living character stands.
    pub fn feet(&self, slot: Slot) -> Option<Vec3> {
        Some(self.feet[slot.index()]).filter(|feet| feet.is_finite())
    }

    /// Where a living character stands on the nav mesh.
    pub fn standing(&self, slot: Slot) -> Option<NavPoint> {
        self.feet(slot).and(self.standing[slot.index()])
    }

    pub fn side(&self, slot: Slot) -> Side {
        self.side[slot.index()]
    }

    pub fn players(&self) -> &[Slot] {
        &self.players
    }

    /// Positions in the ground plane, for neighbour lists.
    pub fn places(&self) -> (&[f32], &[f32]) {
        (&self.x_m, &self.z_m)
    }

    /// Bodies, for shots.
    pub fn capsules(&self) -> Capsules<'_> {
        Capsules { feet: &self.feet, radius_m: &self.radius_m, height_m: &self.height_m }
    }

    /// Squared distance to whoever is nearest of the living. (m²)
    pub fn nearest_m2(&self, feet: Vec3) -> f32 {
        self.feet.iter().map(|other| other.distance_squared(feet)).fold(f32::INFINITY, f32::min)
    }

    /// Squared distance to the nearest living player. (m²)
    pub fn nearest_player_m2(&self, feet: Vec3) -> f32 {
        let living = self.players.iter().map(|slot| self.feet[slot.index()]);
        // `min` passes over the dead, whose distance is not a number.
        living.map(|player| player.distance_squared(feet)).fold(f32::INFINITY, f32::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused_and_absent_ones_are_nowhere() {
        let mut actors = Actors::default();
        assert_eq!(actors.add_npc(), Slot(0));
        let (one, two) = (actors.add_player(), actors.add_player());
        assert_eq!((one, two), (Slot(1), Slot(2)));
        actors.feet[1] = Vec3::ONE;
        assert_eq!(actors.nearest_player_m2(Vec3::ZERO), 3.0);
        actors.remove_player(one);
        assert_eq!(actors.feet(one), None);
        assert_eq!(actors.nearest_player_m2(Vec3::ZERO), f32::INFINITY);
        assert_eq!(actors.add_player(), one);
        assert_eq!(actors.players(), [two, one]);
    }
}
