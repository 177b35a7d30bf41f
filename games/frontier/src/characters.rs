//! Characters: what is kept of a player while it is away, and comes back with it: after a restart, too, since it is what a
//! player is saved as.
//!
//! The very value that a player would carry to another world, so it is read by what reads travellers, and refused by it if it
//! breaks a limit. Who was dead when it left stands up at its hearth. What a player has built is the land's, and stays
//! there ([`crate::land`]); that a plot is its own is known on both sides: here, and in the plot's corner.

use bevy_ecs::prelude::*;
use throng_pack::{Pack, Text};

use crate::{
    actors::Actors,
    components::{HEALTH_MAX, NAME_BYTES_MAX},
    land::Plot,
    landscape::EDGE_M,
    roster::{PlayerRow, Roster},
};

/// What players carry, bank and build with, as the store counts it: what trees, nodes and monsters give. A piece of a house
/// holds one until it is destroyed.
pub const GOODS: u32 = 1;

/// A player who is away.
#[derive(Debug, Clone, Copy, PartialEq, Pack)]
#[pack(name = "frontier.character")]
pub struct Character {
    #[pack(min = -EDGE_M, max = EDGE_M)]
    pub place: [f32; 2],
    /// (radians)
    #[pack(min = -7.0, max = 7.0)]
    pub heading: f32,
    /// Percent; 0 of who is dead.
    #[pack(max = HEALTH_MAX)]
    pub health: u8,
    pub name: Text<NAME_BYTES_MAX>,
    /// Where it stands up again.
    #[pack(min = -EDGE_M, max = EDGE_M)]
    pub hearth: [f32; 2],
    pub carried: u16,
    pub banked: u32,
    pub plot: Option<Plot>,
}

/// What is to be kept of the player that an entity is.
pub fn kept(world: &World, player: Entity) -> Option<Character> {
    let &PlayerRow(row) = world.get::<PlayerRow>(player)?;
    let roster = world.resource::<Roster>();
    let actor = roster.actor(PlayerRow(row))?;
    roster.kept(row, &world.resource::<Actors>()[actor])
}
