//! Inventory: what a player carries beside the weapon in its hands.
//!
//! A few stacks in place, one for each kind of item, none of them empty, in the order in which they were come by. It is
//! part of a player's row: to look into it or to change it allocates nothing. It travels as a list of stacks, so that a
//! later version may know more items and more slots without bytes of today losing their meaning.
//!
//! What it is for: a reload takes rounds out of it ([`Inventory::load`]), a medkit heals, and what the fallen leave
//! ([`crate::loot`]) goes in. Who begins a life, or reloads at home with too few rounds, is given the usual equipment
//! ([`Inventory::equip`]), so nobody is without ammunition for good.

use bevy_ecs::component::Component;
use throng_pack::{ArrayVec, Pack};

use crate::weapons::WeaponKind;

/// Kinds of items that one player carries at most.
pub const SLOTS: usize = 6;
/// Medkits of the usual equipment.
const MEDKITS_USUAL: u16 = 1;

/// What can be carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.item")]
pub enum Item {
    PistolRounds,
    RifleRounds,
    BeltRounds,
    Medkit,
    Credits,
}

impl Item {
    pub const ALL: [Self; 5] = [Self::PistolRounds, Self::RifleRounds, Self::BeltRounds, Self::Medkit, Self::Credits];

    /// How many one player carries at most.
    pub const fn count_max(self) -> u16 {
        match self {
            // Eight magazines: a minute of fire without a pause.
            Self::PistolRounds | Self::RifleRounds => 240,
            Self::BeltRounds => 400,
            Self::Medkit => 4,
            Self::Credits => 9_999,
        }
    }

    /// What a weapon is loaded with; bare hands need nothing.
    pub const fn rounds_of(weapon: WeaponKind) -> Option<Self> {
        match weapon {
            WeaponKind::Fists => None,
            WeaponKind::Pistol | WeaponKind::Submachine => Some(Self::PistolRounds),
            WeaponKind::Rifle | WeaponKind::Marksman => Some(Self::RifleRounds),
            WeaponKind::MachineGun => Some(Self::BeltRounds),
        }
    }
}

/// Some of one kind of item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.stack")]
pub struct Stack {
    pub item: Item,
    #[pack(min = 1)]
    pub count: u16,
}

/// What somebody carries.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inventory {
    /// The filled ones come first.
    slots: [Option<Stack>; SLOTS],
}

impl Inventory {
    /// What a player begins with.
    pub fn usual(weapon: WeaponKind) -> Self {
        let mut inventory = Self::default();
        inventory.equip(weapon);
        inventory
    }

    pub fn stacks(&self) -> impl Iterator<Item = Stack> {
        self.slots.iter().map_while(|slot| *slot)
    }

    pub fn is_empty(&self) -> bool {
        self.slots[0].is_none()
    }

    pub fn count(&self, item: Item) -> u16 {
        self.stacks().find(|stack| stack.item == item).map_or(0, |stack| stack.count)
    }

    /// Puts in as many as can be carried, and says how many those are.
    pub fn add(&mut self, item: Item, count: u16) -> u16 {
        let taken = count.min(item.count_max().saturating_sub(self.count(item)));
        if taken == 0 {
            return 0;
        }
        let slot = self.slots.iter_mut().find(|slot| slot.is_none_or(|stack| stack.item == item));
        let Some(slot) = slot else { return 0 };
        let held = slot.map_or(0, |stack| stack.count);
        *slot = Some(Stack { item, count: held + taken });
        taken
    }

    /// Takes out as many as there are, and says how many those are.
    pub fn take(&mut self, item: Item, count: u16) -> u16 {
        let Some(index) = self.stacks().position(|stack| stack.item == item) else { return 0 };
        let Some(stack) = &mut self.slots[index] else { return 0 };
        let taken = count.min(stack.count);
        stack.count -= taken;
        if stack.count == 0 {
            self.slots[index] = None;
            self.slots[index..].rotate_left(1);
        }
        taken
    }

    /// Takes from another all that can be carried. Whether that was anything.
    pub fn take_all(&mut self, from: &mut Self) -> bool {
        let mut is_any = false;
        for stack in from.slots.into_iter().flatten() {
            let taken = self.add(stack.item, stack.count);
            from.take(stack.item, taken);
            is_any |= taken > 0;
        }
        is_any
    }

    /// Fills up rounds and medkits to what is usual. Whether anything was missing.
    pub fn equip(&mut self, weapon: WeaponKind) -> bool {
        let rounds = Item::rounds_of(weapon).map_or(0, |item| self.add(item, item.count_max()));
        let medkits = self.add(Item::Medkit, MEDKITS_USUAL.saturating_sub(self.count(Item::Medkit)));
        rounds + medkits > 0
    }

    /// Rounds for a weapon, as many of those that it wants as there are.
    pub fn load(&mut self, weapon: WeaponKind, wanted: u8) -> u8 {
        let Some(item) = Item::rounds_of(weapon) else { return wanted };
        self.take(item, wanted.into()) as u8
    }

    /// Asserts what must hold at all times.
    pub fn check(&self) {
        let filled = self.stacks().count();
        assert!(self.slots[filled..].iter().all(Option::is_none), "an empty slot before a filled one: {self:?}");
        for (index, stack) in self.stacks().enumerate() {
            assert!((1..=stack.item.count_max()).contains(&stack.count), "{self:?}");
            assert!(self.stacks().skip(index + 1).all(|other| other.item != stack.item), "two stacks: {self:?}");
        }
    }
}

/// An inventory on its way: to another world, or to the client.
pub type Stacks = ArrayVec<Stack, SLOTS>;

impl From<Inventory> for Stacks {
    fn from(inventory: Inventory) -> Self {
        inventory.stacks().collect()
    }
}

/// Stacks that no inventory holds: twice the same, or more than anybody carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoInventory;

impl TryFrom<Stacks> for Inventory {
    type Error = NoInventory;

    fn try_from(stacks: Stacks) -> Result<Self, NoInventory> {
        let mut inventory = Self::default();
        for Stack { item, count } in stacks {
            if inventory.count(item) > 0 || inventory.add(item, count) < count {
                return Err(NoInventory);
            }
        }
        Ok(inventory)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// Against a map of counts, by chance: what goes in and comes out agrees, and nothing is made or lost.
    #[test]
    fn an_inventory_agrees_with_a_map_of_counts() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(21);
        let (mut inventory, mut counts) = (Inventory::default(), BTreeMap::<u8, u16>::new());
        let mut full = 0;
        for _ in 0..20_000 {
            let item = Item::ALL[rng.random_range(0..Item::ALL.len())];
            let held = counts.entry(item as u8).or_default();
            let count = rng.random_range(0..=item.count_max());
            if rng.random_bool(0.6) {
                let room = item.count_max() - *held;
                assert_eq!(inventory.add(item, count), count.min(room));
                *held += count.min(room);
                full += u32::from(count > room);
            } else {
                let taken = count.min(*held);
                assert_eq!(inventory.take(item, count), taken);
                *held -= taken;
            }
            assert_eq!(inventory.count(item), *held);
            inventory.check();
            assert_eq!(Inventory::try_from(Stacks::from(inventory)), Ok(inventory));
        }
        assert!(full > 1_000, "{full}");
    }

    #[test]
    fn what_does_not_fit_stays_where_it_was() {
        let mut pockets = Inventory::default();
        pockets.add(Item::Medkit, 3);
        let mut body = Inventory::default();
        body.add(Item::Medkit, 2);
        body.add(Item::Credits, 7);
        assert!(pockets.take_all(&mut body));
        assert_eq!((pockets.count(Item::Medkit), pockets.count(Item::Credits)), (4, 7));
        assert_eq!(body.stacks().collect::<Vec<_>>(), [Stack { item: Item::Medkit, count: 1 }]);
        assert!(!pockets.take_all(&mut body));
        body.check();
    }

    #[test]
    fn stacks_that_nobody_carries_are_no_inventory() {
        let check = |stacks: &[(Item, u16)]| {
            let stacks: Stacks = stacks.iter().map(|&(item, count)| Stack { item, count }).collect();
            assert_eq!(Inventory::try_from(stacks), Err(NoInventory));
        };
        check(&[(Item::Medkit, 5)]);
        check(&[(Item::Credits, 1), (Item::Medkit, 1), (Item::Credits, 1)]);
        check(&[(Item::RifleRounds, u16::MAX)]);
    }
}
