//! Scene: what a world reads and never changes.
//!
//! The level, the behaviour graph and the tables made from them exist once per process. A scene is one world's pointers
//! to them, and its rules. It is one resource and not seven: to find a resource that was last used a thousand worlds
//! ago costs some five cache misses.

use std::sync::Arc;

use throng_replication::table_resource;

use crate::{
    level::Level,
    npc::{
        Places,
        graph::{Graph, precinct_graph},
    },
    portals::{Destination, Portals, SharedWorlds},
    rules::Rules,
};

/// What all worlds of a process share. Read-only, except that the ids of the shared worlds are set once.
#[derive(Clone)]
pub struct Shared {
    pub level: Arc<Level>,
    pub graph: Arc<Graph>,
    pub places: Places,
    pub portals: Portals,
    pub worlds: SharedWorlds,
}

impl Shared {
    /// Works out what follows from a level. Cost: a few milliseconds, once per process.
    pub fn new(level: Arc<Level>) -> Self {
        Self {
            places: Places::of(&level),
            portals: Portals::of(&level),
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
