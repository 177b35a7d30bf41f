//! Scene: what a world reads and never changes.
//!
//! The level, the behaviour graph and the tables made from them exist once per process. A scene is one world's pointers
//! to them, and its rules. It is one resource and not seven: to find a resource that was last used a thousand worlds
//! ago costs some five cache misses.

use std::sync::Arc;

use throng_query::nav::NavPoint;
use throng_replication::table_resource;

use crate::{
    level::Level,
    npc::{
        Places,
        graph::{Graph, precinct_graph},
    },
    portals::{Destination, Portals, SharedWorlds},
    rules::Rules,
    stash,
};

/// What all worlds of a process share. Read-only, except that the ids of the shared worlds are set once.
#[derive(Clone)]
pub struct Shared {
    pub level: Arc<Level>,
    pub graph: Arc<Graph>,
    pub places: Places,
    pub portals: Portals,
    pub worlds: SharedWorlds,
    /// Where chests stand, in hideouts.
    pub chest: NavPoint,
    /// The run of this server, of which ids of gear are made.
    pub run: u64,
}

impl Shared {
    /// Works out what follows from a level. `run` is a number that no other run of a server has. Cost: a few
    /// milliseconds, once per process.
    pub fn new(level: Arc<Level>, run: u64) -> Self {
        let portals = Portals::of(&level);
        Self {
            run,
            places: Places::of(&level),
            chest: stash::place(&level, &portals),
            portals,
            graph: Arc::new(precinct_graph()),
            worlds: SharedWorlds::default(),
            level,
        }
    }
}

/// One world's view of it.
#[derive(Clone)]
pub struct Scene {
    pub shared: Shared,
    pub rules: Rules,
    /// Which kind of world this is.
    pub here: Destination,
    /// Which hideout this is, if it is one.
    pub hideout: Option<u16>,
}

table_resource!(Scene);

impl Scene {
    pub fn new(shared: &Shared, here: Destination) -> Self {
        Self { shared: shared.clone(), rules: here.rules(), here, hideout: None }
    }
}

impl std::ops::Deref for Scene {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}
