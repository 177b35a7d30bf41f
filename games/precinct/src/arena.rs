//! Arena: what a world keeps beside its entities and changes every tick.
//!
//! The columns, queues, lists and counts of all systems in one resource; each part is a type of its own module. Between
//! two ticks of a world a thousand others are ticked, so nearly everything that a tick touches comes from memory. One
//! resource is found with a few cache misses, ten resources with ten times as many. Measured with 1,000 worlds before
//! they were put together: 16 µs of a tick without any NPC, 2 µs when the same world was ticked over and over.
//!
//! The arena knows the types of its parts and nothing of the systems that work on them.
//!
//! Size: about 2 KB and 320 bytes per character, on the heap.

use bevy_ecs::entity::Entity;
use throng::prelude::{ClientKey, WorldId};
use throng_pack::{List, Pack};
use throng_replication::table_resource;
use throng_rewind::view_limits::ViewLimits;

use crate::{
    actors::{Actors, SavedActors},
    doors::{Doors, SavedDoors},
    ground::{Ground, SavedGround},
    homes::{Homes, SavedHomes},
    ledger::Ledger,
    loot::{Loot, SavedLoot},
    npc::{
        path_queue::{PathQueue, SavedQueue},
        senses::Sight,
    },
    passport::Passport,
    past::{Past, SavedPast},
    portals::Destination,
    shots::Shots,
    trades::{SavedTrades, Trades},
};

/// The changing state of one world, as its systems find it.
pub struct Arena(Box<ArenaParts>);

table_resource!(Arena);

/// The parts of an [`Arena`].
pub struct ArenaParts {
    /// Everybody's position and side, as columns.
    pub actors: Actors,
    /// Which doors are open.
    pub doors: Doors,
    /// Shots fired this tick.
    pub shots: Shots,
    /// Where everybody was in the last ticks.
    pub past: Past,
    /// Scratch memory of perception.
    pub sight: Sight,
    /// Paths that NPCs wait for.
    pub paths: PathQueue,
    /// What the fallen have left.
    pub loot: Loot,
    /// Gear that lies around.
    pub ground: Ground,
    /// What became of gear.
    pub ledger: Ledger,
    /// Gear that players have offered each other.
    pub trades: Trades,
    /// Where players go home to.
    pub homes: Homes,
    /// Players that go through a portal at the end of this tick, if they live to see it.
    pub leavers: Vec<Leaver>,
    /// Those who went through a portal when somebody last did: the connection of one may have ended in that very tick.
    pub sent_off: Vec<SentOff>,
}

/// A player that has gone through a portal.
#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "precinct.sent_off")]
pub struct SentOff {
    pub client: ClientKey,
    pub passport: Passport,
}

/// Players of a world at most.
const PLAYERS_MAX: usize = u16::MAX as usize;

/// An arena in a checkpoint: all that is neither a tick's own (shots, looks around, players in portals) nor follows from
/// components.
#[derive(Debug, Clone, Pack)]
#[pack(name = "precinct.arena")]
pub struct SavedArena {
    actors: SavedActors,
    doors: SavedDoors,
    past: SavedPast,
    paths: SavedQueue,
    loot: SavedLoot,
    ground: SavedGround,
    ledger: Ledger,
    trades: SavedTrades,
    homes: SavedHomes,
    sent_off: List<SentOff, PLAYERS_MAX>,
}

/// A player in a portal.
#[derive(Debug, Clone, Copy)]
pub struct Leaver {
    pub client: ClientKey,
    pub player: Entity,
    pub through: Destination,
    pub to: WorldId,
}

impl Arena {
    /// What is kept of it between two ticks.
    pub fn save(&self) -> SavedArena {
        debug_assert!(self.leavers.is_empty() && self.shots.count() == 0, "a tick ends with neither");
        SavedArena {
            actors: self.actors.save(),
            doors: self.doors.save(),
            past: self.past.save(),
            paths: self.paths.save(),
            loot: self.loot.save(),
            ground: self.ground.save(),
            ledger: self.ledger.clone(),
            trades: self.trades.save(),
            homes: self.homes.save(),
            sent_off: self.sent_off.clone().try_into().expect("no more players than slots"),
        }
    }

    /// Becomes the arena of another run of this world, but for what follows from components.
    pub fn load(&mut self, saved: SavedArena) {
        let parts = &mut *self.0;
        parts.actors.load(saved.actors);
        parts.doors.load(saved.doors);
        parts.past.load(saved.past);
        parts.paths.load(saved.paths);
        parts.loot.load(saved.loot);
        parts.ground.load(saved.ground);
        parts.ledger = saved.ledger;
        parts.trades.load(saved.trades);
        parts.homes.load(saved.homes);
        parts.sent_off = saved.sent_off.into_vec();
        parts.leavers.clear();
    }

    /// An empty arena of a world with so many ticks a second, for so many NPCs.
    pub fn new(ticks_per_s: u16, npc_count: usize, ledger: Ledger) -> Self {
        Self(Box::new(ArenaParts {
            actors: Actors::default(),
            doors: Doors::default(),
            shots: Shots::default(),
            // In a hideout there is one player.
            past: Past::new(ViewLimits::new(ticks_per_s), npc_count + 1),
            sight: Sight::default(),
            paths: PathQueue::new(npc_count),
            loot: Loot::default(),
            ground: Ground::default(),
            ledger,
            trades: Trades::default(),
            homes: Homes::default(),
            leavers: Vec::new(),
            sent_off: Vec::new(),
        }))
    }
}

impl std::ops::Deref for Arena {
    type Target = ArenaParts;

    fn deref(&self) -> &ArenaParts {
        &self.0
    }
}

impl std::ops::DerefMut for Arena {
    fn deref_mut(&mut self) -> &mut ArenaParts {
        &mut self.0
    }
}
