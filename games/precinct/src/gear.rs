//! Gear: single things, each with an id of its own, that players find, keep, trade and lose.
//!
//! What a player's [`Inventory`](crate::inventory::Inventory) holds is counted: a round is like any other. Of gear each
//! piece is one thing, in one place at a time: in a player's [`Bag`], in the chest of a hideout
//! ([`Stash`](crate::stash::Stash)), or on the ground ([`crate::ground`]). It comes into being where an NPC falls, moves
//! between these places, and ceases to be when it has lain for too long. [`crate::ledger`] counts both, so that what
//! there is can be held against it.
//!
//! An id is made of who drew it: a run of a server, a world of that run, and a number that the world counts up. A run is
//! a number from the server's own chance, [`throng::Server::draw_seed`], and no world's id comes twice in a run. So two worlds never
//! draw the same id, nor do two runs of a world; no clock and nothing shared is asked, and the same game draws the
//! same ids again. (Drawn by chance from the world's own generator, a hideout that is made a second time, from the same
//! seed, would draw what it drew the first time.)
//!
//! Plain data, in place: to look into a list or to change it allocates nothing. 32 bytes a piece, 16 or so packed.

use std::{error::Error, fmt};

use bevy_ecs::component::Component;
use throng::prelude::WorldId;
use throng_pack::{ArrayVec, Pack};
use throng_replication::Replicate;

/// Pieces that one player carries at most.
pub const BAG_MAX: usize = 8;

/// Names one piece of gear, for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Pack)]
#[pack(name = "precinct.gear_id")]
pub struct GearId {
    /// Which run of a server drew it.
    #[pack(fixed)]
    pub run: u64,
    /// Which world of that run.
    pub world: WorldId,
    /// How many that world had drawn before.
    pub number: u64,
}

/// What a piece is.
#[derive(Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[pack(name = "precinct.gear_kind")]
pub enum GearKind {
    Mask,
    Vest,
    Backpack,
    Gloves,
    Holster,
    Kneepads,
}

impl GearKind {
    pub const ALL: [Self; 6] = [Self::Mask, Self::Vest, Self::Backpack, Self::Gloves, Self::Holster, Self::Kneepads];

    /// How a store counts pieces of it ([`Outbox::items_created`](throng::prelude::Outbox::items_created)).
    pub fn item_kind(self) -> u32 {
        self as u32 + 1
    }

    /// One of them by any number.
    pub fn by_number(number: u64) -> Self {
        Self::ALL[(number % Self::ALL.len() as u64) as usize]
    }
}

/// One piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Pack)]
#[pack(name = "precinct.gear")]
pub struct Gear {
    pub id: GearId,
    pub kind: GearKind,
}

/// At most `N` pieces, none of them twice, in the order in which they were come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GearList<const N: usize> {
    /// The filled ones come first.
    places: [Option<Gear>; N],
}

impl<const N: usize> Default for GearList<N> {
    fn default() -> Self {
        Self { places: [None; N] }
    }
}

impl<const N: usize> GearList<N> {
    pub fn iter(&self) -> impl Iterator<Item = Gear> {
        self.places.iter().map_while(|place| *place)
    }

    pub fn len(&self) -> usize {
        self.places.iter().position(Option::is_none).unwrap_or(N)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn has_room(&self) -> bool {
        self.len() < N
    }

    pub fn get(&self, id: GearId) -> Option<Gear> {
        self.iter().find(|gear| gear.id == id)
    }

    /// Puts a piece in, or hands it back: there is no room, or it is there already.
    pub fn put(&mut self, gear: Gear) -> Result<(), Gear> {
        if self.get(gear.id).is_some() {
            return Err(gear);
        }
        let count = self.len();
        *self.places.get_mut(count).ok_or(gear)? = Some(gear);
        Ok(())
    }

    /// Takes a piece out; those behind it move up.
    pub fn take(&mut self, id: GearId) -> Option<Gear> {
        let index = self.iter().position(|gear| gear.id == id)?;
        let gear = self.places[index].take();
        self.places[index..].rotate_left(1);
        gear
    }

    /// Takes all out.
    pub fn take_all(&mut self) -> Self {
        std::mem::take(self)
    }
}

impl<const N: usize> From<GearList<N>> for ArrayVec<Gear, N> {
    fn from(list: GearList<N>) -> Self {
        list.iter().collect()
    }
}

/// A list that names one piece twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TwiceTheSame;

impl fmt::Display for TwiceTheSame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a piece of gear is in the list twice")
    }
}

impl Error for TwiceTheSame {}

impl<const N: usize> TryFrom<ArrayVec<Gear, N>> for GearList<N> {
    type Error = TwiceTheSame;

    fn try_from(pieces: ArrayVec<Gear, N>) -> Result<Self, TwiceTheSame> {
        let mut list = Self::default();
        for gear in pieces {
            list.put(gear).map_err(|_| TwiceTheSame)?;
        }
        Ok(list)
    }
}

/// What a player carries of gear, wherever it goes.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq, Default, Pack)]
#[pack(name = "precinct.bag")]
pub struct Bag {
    #[pack(via = ArrayVec<Gear, BAG_MAX>)]
    pub gear: GearList<BAG_MAX>,
}

/// Draws the ids of one world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.gear_ids")]
pub struct GearIds {
    next: GearId,
}

impl GearIds {
    /// `run`: of the server, which no other run has.
    pub fn new(run: u64, world: WorldId) -> Self {
        Self { next: GearId { run, world, number: 0 } }
    }

    /// An id that nobody has drawn before.
    pub fn draw(&mut self) -> GearId {
        let drawn = self.next;
        self.next.number += 1;
        drawn
    }
}

#[cfg(test)]
pub(crate) fn piece(number: u64) -> Gear {
    Gear { id: GearId { run: 7, world: WorldId::new(3, 1), number }, kind: GearKind::by_number(number) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use throng_pack::{pack_body, unpack_body};

    use super::*;

    /// Against a plain list, by chance: what goes in comes out, once, and in order.
    #[test]
    fn a_list_agrees_with_a_plain_one() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let (mut bag, mut model) = (Bag::default(), Vec::<Gear>::new());
        let (mut full, mut twice) = (0, 0);
        for _ in 0..20_000 {
            let gear = piece(rng.random_range(0..12));
            let held = model.iter().position(|other| other.id == gear.id);
            if rng.random_bool(0.6) {
                let fits = held.is_none() && model.len() < BAG_MAX;
                assert_eq!(bag.gear.put(gear).is_ok(), fits);
                (full, twice) = (full + u32::from(model.len() == BAG_MAX), twice + u32::from(held.is_some()));
                if fits {
                    model.push(gear);
                }
            } else {
                assert_eq!(bag.gear.take(gear.id), held.map(|index| model.remove(index)));
            }
            assert_eq!(bag.gear.iter().collect::<Vec<_>>(), model);
            assert_eq!((bag.gear.len(), bag.gear.has_room()), (model.len(), model.len() < BAG_MAX));
            let mut bytes = Vec::new();
            pack_body(&bag, &mut bytes).unwrap();
            assert_eq!(unpack_body::<Bag>(&bytes), Ok(bag));
        }
        assert!(full > 1_000 && twice > 1_000, "{full} {twice}");
    }

    #[test]
    fn a_bag_with_one_piece_twice_is_refused() {
        let mut bytes = Vec::new();
        let pieces: ArrayVec<Gear, BAG_MAX> = [piece(1), piece(2), piece(1)].into_iter().collect();
        pack_body(&pieces, &mut bytes).unwrap();
        assert!(unpack_body::<Bag>(&bytes).is_err());
    }

    /// Promise: neither two worlds, nor two worlds in one place, nor two runs of a world draw the same.
    #[test]
    fn no_id_is_drawn_twice() {
        let worlds =
            [(1, WorldId::new(2, 0)), (1, WorldId::new(2, 1)), (1, WorldId::new(3, 0)), (2, WorldId::new(2, 0))];
        let mut drawn = BTreeSet::new();
        for (run, world) in worlds {
            let mut ids = GearIds::new(run, world);
            assert!((0..100).all(|_| drawn.insert(ids.draw())));
        }
        assert_eq!(drawn.len(), 400);
    }
}
