//! Deeds: what was done this tick and takes effect later in it.
//!
//! Blows and mendings are gathered and land together ([`crate::blows`]); spells that are done wait for the system of
//! their kind; whoever was struck waits for guards; marks, new things and those that go wait for the end of the tick,
//! when entities may change ([`crate::changes`]). Each list has a maximum; what comes beyond it is dropped and counted.
//!
//! Allocates nothing once the lists have grown.

use bevy_ecs::{entity::Entity, resource::Resource};
use throng_pack::{List, Pack};

use crate::{
    actors::{Side, Who},
    components::Kind,
    events::Means,
    protocol::Ability,
};

/// Blows of one tick at most.
pub const BLOWS_MAX: usize = 16_384;
/// Traps and totems that stand at the same time.
pub const THINGS_MAX: usize = 1_024;

/// Takes points of health, or gives them ([`Means::Heal`], [`Means::Totem`]).
#[derive(Debug, Clone, Copy)]
pub struct Blow {
    pub target: Who,
    pub source: Option<Who>,
    pub amount: i32,
    pub means: Means,
    pub critical: bool,
}

/// A spell that is done.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    pub caster: u32,
    pub ability: Ability,
    pub target: Option<Who>,
}

/// A trap or totem to be.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub kind: Kind,
    pub owner: Who,
    pub side: Side,
    pub place: [f32; 2],
    pub level: u8,
    pub expires_tick: u32,
}

/// A change of what is said about an entity beside its values.
#[derive(Debug, Clone, Copy)]
pub enum Mark {
    Filtered(Entity, bool),
    Team(Entity, u16),
    Weight(Entity, f32),
}

/// This tick's.
#[derive(Resource, Default)]
pub struct Deeds {
    pub blows: Vec<Blow>,
    pub done: Vec<Done>,
    /// Victim and attacker of last tick's blows by monsters.
    pub struck: Vec<(Who, Who)>,
    pub plans: Vec<Plan>,
    /// Traps and totems that go.
    pub gone: Vec<u32>,
    pub marks: Vec<Mark>,
}

/// What of a tick's deeds the next one reads: who was struck, and by whom.
#[derive(Debug, Clone, Pack)]
#[pack(name = "frontier.deeds")]
pub struct SavedDeeds {
    struck: List<Struck, BLOWS_MAX>,
}

#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "frontier.struck")]
struct Struck {
    victim: Who,
    attacker: Who,
}

impl Deeds {
    pub fn save(&self) -> SavedDeeds {
        let struck: Vec<_> = self.struck.iter().map(|&(victim, attacker)| Struck { victim, attacker }).collect();
        SavedDeeds { struck: struck.try_into().expect("no more blows land in a tick") }
    }

    pub fn load(&mut self, saved: SavedDeeds) {
        self.struck.clear();
        self.struck.extend(saved.struck.iter().map(|struck| (struck.victim, struck.attacker)));
    }

    /// False if there are too many already.
    pub fn strike(&mut self, blow: Blow) -> bool {
        let room = self.blows.len() < BLOWS_MAX;
        if room {
            self.blows.push(blow);
        }
        room
    }

    pub fn set_filtered(&mut self, entity: Entity, filtered: bool) {
        self.marks.push(Mark::Filtered(entity, filtered));
    }

    /// The spells of some kinds that are done.
    pub fn done_of(&self, index: usize, abilities: &[Ability]) -> Option<(usize, Done)> {
        let rest = self.done.get(index..)?;
        let at = rest.iter().position(|done| abilities.contains(&done.ability))?;
        Some((index + at + 1, rest[at]))
    }
}
