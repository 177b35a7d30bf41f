//! Passport: who a player is, in every world it visits.

use bevy_ecs::component::Component;
use throng::prelude::WorldId;

use crate::protocol::NAME_BYTES_MAX;

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
    /// A name that [`throng::text::accept_name`] has accepted.
    pub fn new(name: &str) -> Self {
        let mut bytes = [0; NAME_BYTES_MAX];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Self { bytes, len: name.len() as u8 }
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}
