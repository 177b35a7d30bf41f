//! Precinct: a thousand players in worlds of their own, a hub and a dark zone, 20,000 NPCs.
//!
//! The reference game, after The Division 2: everybody has a hideout, a world of its own with NPCs in it, and walks through
//! gates to the hub, where players meet unarmed, and to the dark zone, where they fight. All worlds share one level.
//! It is a game in order to be a load: everything a shooter does on its server is done here, at the cost that it has.
//!
//! ```text
//!   server     build(&mut Server): worlds, who owns which      bot        PrecinctBot: a player for the swarm
//!   worlds     the kinds and their plugins, the order of a tick
//!   ├─ players  gates  social  movement  shooting  lives         what players do
//!   ├─ npc      perception, behaviour graph, paths, load levels  what NPCs do
//!   ├─ scene  arena                                              what a world reads; what it changes
//!   └─ components  protocol  rules  weapons  level         what both sides agree on
//! ```
//!
//! Cost on a server: see [`npc`].

pub mod actors;
pub mod arena;
pub mod bot;
pub mod components;
pub mod distribution;
pub mod gates;
pub mod hideouts;
pub mod level;
pub mod lives;
pub mod movement;
pub mod npc;
pub mod players;
pub mod protocol;
pub mod rules;
pub mod scene;
pub mod server;
pub mod shooting;
pub mod social;
pub mod tally;
pub mod weapons;
pub mod worlds;

pub use bot::PrecinctBot;
pub use components::schema;
pub use server::{FaultyHideout, PrecinctSettings, PrecinctWorlds, build};

#[cfg(test)]
mod headless;
