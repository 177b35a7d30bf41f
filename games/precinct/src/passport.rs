//! Passport: the components that say who a player is: in every world it visits, and whose.

use bevy_ecs::component::Component;
use throng::prelude::ClientKey;
use throng_pack::{Pack, Text};

use crate::protocol::NAME_BYTES_MAX;

/// Who a player is, in every world it visits.
#[derive(Component, Debug, Clone, Copy, PartialEq, Pack)]
#[pack(name = "precinct.passport")]
pub struct Passport {
    /// Its own hideout, by ordinal: that stays, worlds come and go. `None` if it connected elsewhere.
    pub home: Option<u16>,
    pub name: PlayerName,
    pub kills: u32,
    pub deaths: u32,
}

/// The client that an entity is the player of.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.player_client")]
pub struct PlayerClient(pub ClientKey);

/// A player's name, inside the row: one that [`speech::accept_name`] has accepted.
pub type PlayerName = Text<NAME_BYTES_MAX>;
