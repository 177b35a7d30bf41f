//! Homes: in which world each hideout is, as far as this world has been told.
//!
//! A hideout's world can end while its owner is elsewhere, and another takes its place. So a player carries its
//! hideout's ordinal and no world's id, and each hideout says where it is in its first tick
//! ([`HideoutMade`](crate::travel::HideoutMade)). That is a message like any other, so a replay leads everybody home
//! to the same worlds.
//!
//! Cost: a list look-up. Memory: 12 bytes per hideout, in the hub and the dark zone.

use throng::prelude::WorldId;
use throng_pack::{List, Pack};

/// Homes in a checkpoint.
#[derive(Debug, Clone, Default, Pack)]
#[pack(name = "precinct.homes")]
pub struct SavedHomes {
    worlds: List<Option<WorldId>, { u16::MAX as usize + 1 }>,
}

/// The hideouts' worlds, by ordinal. One may have ended since: who is sent there is turned back.
#[derive(Default)]
pub struct Homes(Vec<Option<WorldId>>);

impl Homes {
    /// A hideout has said where it is.
    pub fn set(&mut self, ordinal: u16, world: WorldId) {
        let place = usize::from(ordinal);
        self.0.resize(self.0.len().max(place + 1), None);
        self.0[place] = Some(world);
    }

    pub fn save(&self) -> SavedHomes {
        SavedHomes { worlds: self.0.clone().try_into().expect("ordinals are 16 bits") }
    }

    pub fn load(&mut self, saved: SavedHomes) {
        self.0 = saved.worlds.into_vec();
    }

    /// Where this hideout is, if it is known.
    pub fn world(&self, ordinal: Option<u16>) -> Option<WorldId> {
        *self.0.get(usize::from(ordinal?))?
    }
}
