//! Frontier: one world for everybody. Thousands of players and ten thousand NPCs in a wide landscape.
//!
//! The reference game for what Precinct is not: no worlds of one's own, but one in which all meet, after EverQuest. Players gather, talk,
//! sneak, join parties and fight monsters that notice them, call each other, heal each other and spread diseases. It is a game in order to
//! be a load: everything that such a server asks about who is near is asked here, by a system of its own.
//!
//! ```text
//!   server     build(&mut Server): the world                   bot        FrontierBot: a player for the swarm
//!   worlds     the kind and its plugins, the order of a tick
//!   ├─ players  talk  services  parties                        what players do
//!   ├─ npc      think, walk, presence, population              what NPCs do
//!   ├─ aggro  sight  assist  yell  signals                     who notices whom, who helps whom
//!   ├─ spells  area  buffs  beneficial  auras  things  spread  what spells do
//!   ├─ combat  rampage  blows  wear  lives  traits             blows, and what becomes of them
//!   ├─ close                                                   who is near: all questions, one set of close lists
//!   ├─ actors  deeds  zone  index_set                          rows, this tick's deeds, what systems work on
//!   ├─ publish  changes  concealment                           what clients are told, and who may not be
//!   └─ components  events  protocol  landscape                 what both sides agree on
//! ```
//!
//! A world of 10,000 NPCs and 2,000 players is one `bevy_ecs::World`; its systems run on one worker, and its clients are opened and told
//! on all that are idle. Its state is rows of plain data that systems walk by
//! sets of who is busy; entities hold only what is replicated. A steady tick allocates nothing. Cost of such a tick, all NPCs awake and
//! 3,400 fighting, without replication: 0.8 ms, 2.2 ms at most; with every question answered by scanning everybody 8.9 ms (2-core EPYC
//! virtual machine, optimised build).

pub mod actors;
pub mod aggro;
pub mod area;
pub mod assist;
pub mod auras;
pub mod beneficial;
pub mod blows;
pub mod bot;
pub mod buffs;
pub mod changes;
pub mod close;
pub mod combat;
pub mod components;
pub mod concealment;
pub mod deeds;
pub mod events;
pub mod index_set;
pub mod landscape;
pub mod lives;
pub mod npc;
pub mod parties;
pub mod players;
pub mod protocol;
pub mod publish;
pub mod rampage;
pub mod server;
pub mod services;
pub mod sight;
pub mod signals;
pub mod spells;
pub mod spread;
pub mod talk;
pub mod things;
pub mod traits;
pub mod wear;
pub mod worlds;
pub mod yell;
pub mod zone;

pub use bot::FrontierBot;
pub use components::schema;
pub use server::{FrontierSettings, FrontierWorld, build};
pub use worlds::FRONTIER;

#[cfg(test)]
mod headless;
