//! Scene: what a match reads and never changes, and what of this tick several systems ask.

use std::sync::Arc;

use throng::prelude::*;
use throng_replication::table_resource;

use crate::{map::Map, rounds::Change};

/// What a match reads and never changes.
#[derive(Clone)]
pub struct Scene {
    pub map: Arc<Map>,
    /// Where players go when the match is over.
    pub lobby: WorldId,
}

/// What time and deeds have brought about in this tick.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RoundChange(pub Option<Change>);

table_resource!(Scene, RoundChange);
