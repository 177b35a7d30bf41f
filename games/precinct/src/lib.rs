//! Precinct: a thousand players in worlds of their own, a hub and a dark zone, 20,000 NPCs.
//!
//! The reference game, after The Division 2: everybody has a hideout, a world of its own with NPCs in it, and walks
//! through portals to the hub, where players meet unarmed, and to the dark zone, where they fight. All worlds share one
//! level. It is a game in order to be a load: everything a shooter does on its server is done here, at the cost that it
//! has.
//!
//! ```text
//!   server    hideouts  distribution           build(&mut Server): worlds, who owns which
//!   worlds                                     the kinds and their plugins, the order of a tick
//!   kept  saves                                what worlds go on from after a panic; what outlives the server
//!   arrivals  players  shooting  social        systems: what happens in a tick
//!   swinging  handling  npc
//!   lives                                      how a life ends and the next begins
//!   scene     arena                            state: what a world reads; what it changes
//!   portals  homes  actors  shots  past  loot  what scene and arena are made of
//!   ground   ledger  trades  stash
//!   travel   npc::{places graph senses path_queue}
//!   movement  passport  rules  doors  prices   rules of the game
//!   components  protocol  weapons  inventory  gear  level      what both sides agree on
//!   analytics                                  what is told of play
//! ```
//!
//! A module uses modules of lower lines, and neighbours, never in a circle. Beside them is `bot`, a player for the
//! swarm, and above all `game`, which is what the toolbox is given.
//!
//! [`district`] is another game on the same toolbox: two kilometres of ground that is streamed and blown up.
//!
//! Cost on a server: see [`npc`].

pub mod actors;
pub mod analytics;
pub mod arena;
pub mod arrivals;
pub mod bot;
mod budgets;
pub mod components;
pub mod distribution;
pub mod district;
pub mod doors;
mod game;
pub mod gear;
pub mod ground;
pub mod handling;
pub mod hideouts;
pub mod homes;
pub mod inventory;
mod kept;
pub mod ledger;
pub mod level;
pub mod lives;
pub mod loot;
pub mod movement;
pub mod npc;
pub mod passport;
pub mod past;
pub mod players;
pub mod portals;
mod prices;
pub mod protocol;
pub mod rules;
pub mod saves;
pub mod scene;
pub mod server;
pub mod shooting;
pub mod shots;
pub mod social;
pub mod stash;
pub mod swinging;
pub mod trades;
pub mod travel;
pub mod weapons;
pub mod worlds;

pub use bot::PrecinctBot;
pub use game::game;
pub use server::{FaultyHideout, PrecinctSettings, PrecinctWorlds, build};
pub use worlds::schema;

#[cfg(test)]
mod headless;
#[cfg(test)]
mod page;
