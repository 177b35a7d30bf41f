//! Names of things in one server process: small, cheap to copy.

use std::fmt;

use throng_pack::Pack;

/// One world of this process: a place among its worlds, and how many worlds have had that place before it. So a place
/// can be used again, and who still has the id of a world that is no more finds nobody. Told to clients on entering it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Pack)]
#[pack(name = "throng.world_id")]
pub struct WorldId {
    index: u32,
    generation: u32,
}

impl WorldId {
    /// The world that has the place `index` after `generation` others.
    pub const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    /// Its place among the worlds of the process: dense, used again.
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// How many worlds had its place before.
    pub const fn generation(self) -> u32 {
        self.generation
    }

    /// The next world in the same place.
    pub const fn successor(self) -> Self {
        Self { index: self.index, generation: self.generation.wrapping_add(1) }
    }

    /// One number for who has 32 bits for it (clients, crash reports): the place, and in the upper 12 bits the
    /// generation. Comes again after 4,096 worlds in one place; in captures, which keep 24 bits of it, after 16. So it is
    /// for people to read: what must not be confused is held against the id itself, or against a stay's epoch.
    pub const fn number(self) -> u32 {
        self.index | self.generation << 20
    }

    /// Its place and generation in one number; another one for each world of a process.
    pub const fn bits(self) -> u64 {
        self.index as u64 | (self.generation as u64) << 32
    }

    /// The world of that number, of the first 4,096 generations in its place.
    pub const fn from_number(number: u32) -> Self {
        Self { index: number & ((1 << 20) - 1), generation: number >> 20 }
    }
}

impl fmt::Display for WorldId {
    /// The place, and the generation if it is not the first: `7`, `7.2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.generation {
            0 => write!(f, "{}", self.index),
            generation => write!(f, "{}.{generation}", self.index),
        }
    }
}

/// One kind of world: the order in which kinds were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorldKindId(pub u16);

/// One connection for as long as it lives, in whichever world its player is. Keys count up and come again after 2^32
/// clients: a key in [`Departures`](crate::tick_resources::Departures) is never that of a newcomer, in whichever order a
/// system looks at arrivals and departures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Pack)]
#[pack(name = "throng.client_key")]
pub struct ClientKey(pub u32);
