//! NPCs: they perceive, choose, path and fight, cheaply enough for twenty thousand of them.
//!
//! Each line is a system, in this order, and a scope of the subsystem `ai`:
//!
//! ```text
//!   population  rise          the dead whose time has come begin their next lives
//!   paths       follow_paths  who is on its way goes on
//!   roll_call   call_roll     where everybody is; whose turn it is to look; who is in the middle of a burst
//!   perception  perceive      neighbours and lines of sight, for all lookers in one batch
//!   body        think         a step in the shared graph for each of them (brain), within a node budget
//!   paths       search_paths  the queue of searches, within a node budget
//!   combat      fire          bursts go on
//!   census      count         twice a second
//! ```
//!
//! What they work on is in [`identity`], [`senses`] and [`path_queue`]. An NPC looks and thinks a few times a second,
//! each in other ticks than its neighbours.
//!
//! Large data is shared: the behaviour graph, the level, the tables of places. Each NPC has one row of small
//! components, made once: an NPC that dies keeps its row and starts its next life in it. Its load level
//! ([`load_level`]) says how often it walks and thinks, by the distance of the nearest player; at every level it
//! perceives at least four times a second.
//!
//! Cost: what NPCs take of a tick is subsystem `ai` in the report of `throng load`. Memory per NPC: about 400 bytes.

pub mod body;
pub mod brain;
pub mod census;
pub mod combat;
pub mod graph;
pub mod identity;
pub mod load_level;
pub mod path_queue;
pub mod paths;
pub mod perception;
pub mod places;
pub mod population;
pub mod roll_call;
pub mod senses;

pub use brain::Brain;
pub use identity::Npc;
pub use load_level::{LoadLevel, Pace};
pub use path_queue::PathFollow;
pub use places::Places;
pub use senses::{Moment, Senses};
