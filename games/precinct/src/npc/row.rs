//! The row: all that an NPC is made of, for the one system that lets NPCs live.

use bevy_ecs::{prelude::*, query::QueryData};

use super::{Brain, Pace, PathFollow, Senses};
use crate::{
    components::{Action, Character, Pose, Slot, Standing, Vitals},
    lives::LifeClock,
    weapons::Weapon,
};

/// What stays the same about an NPC through all of its lives.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Npc {
    /// Which root of the graph it follows.
    pub archetype: u8,
    /// The spawn point where its lives begin.
    pub home: u16,
    /// The spawn point whose surroundings its faction fights for.
    pub post: u16,
}

/// An NPC's row.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct NpcRow {
    pub entity: Entity,
    pub slot: &'static Slot,
    pub npc: &'static Npc,
    pub character: &'static Character,
    pub life: &'static LifeClock,
    pub pace: &'static mut Pace,
    pub vitals: &'static mut Vitals,
    pub pose: &'static mut Pose,
    pub standing: &'static mut Standing,
    pub path: &'static mut PathFollow,
    pub weapon: &'static mut Weapon,
    pub senses: &'static mut Senses,
    pub brain: &'static mut Brain,
    pub action: &'static mut Action,
}
