//! Parts: a world as a checkpoint sees it, and what a load hands back.

use bevy_ecs::world::World;
use throng_replication::{WorldReplication, ecs::Collector};
use throng_scheduler::Hertz;

use super::registry::Registry;
use crate::ids::ClientKey;

/// What becomes of the entities that clients play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlayerEntities {
    /// They are part of the world, and stay their clients': these are still here, or about to be.
    Stay,
    /// They are left out: who plays comes in later, with what its own record says. For a load out of a checkpoint that has
    /// them, the systems of [`after_load`](crate::world_builder::WorldBuilder::after_load) find their clients among the
    /// [`Departures`](crate::tick_resources::Departures).
    LeftOut,
}

/// A world as a checkpoint sees it.
pub(crate) struct Parts<'a> {
    pub name: &'a str,
    pub rate: Hertz,
    pub tick: u32,
    pub ecs: &'a mut World,
    pub registry: &'a Registry,
    pub collector: &'a mut Collector,
    pub replication: &'a mut WorldReplication,
}

/// What a load hands back to the world.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub tick: u32,
    /// How often the game had asked to be saved.
    pub save_requests: u32,
    /// Whether there are departures that the systems have not seen.
    pub has_departures: bool,
    /// Whose entities the checkpoint had and the world has not.
    pub left_out: Vec<ClientKey>,
}
