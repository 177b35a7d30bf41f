//! Identity: what stays the same about an NPC through all of its lives.

use bevy_ecs::component::Component;
use throng_pack::Pack;

/// Who an NPC is. Only NPCs have it.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.npc")]
pub struct Npc {
    /// Which root of the graph it follows.
    pub archetype: u8,
    /// The spawn point where its lives begin.
    pub home: u16,
    /// The spawn point whose surroundings its faction fights for.
    pub post: u16,
}
