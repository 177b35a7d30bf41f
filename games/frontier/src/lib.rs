//! Frontier: one world for everybody. Thousands of players and ten thousand NPCs in a wide landscape.
//!
//! The reference game for what Precinct is not, after EverQuest: all players meet in one world. They gather, talk,
//! sneak, join parties and fight monsters, which notice them, call each other, heal each other and spread diseases. It
//! is a game in order to be a load: every question of who is near that such a server answers is asked here, each by a
//! system of its own.
//!
//! ```text
//!   server                                                   build(&mut Server): the world
//!   worlds                                                   the kind and its plugins, the order of a tick
//!   arrivals  players  talk  services  works                 systems: what players do
//!   npc::{wake think walk}                                   what NPCs do
//!   aggro  sight  assist  yell  signals                      who notices whom, who helps whom
//!   spells  area  buffs  beneficial  auras  things  spread   what spells do
//!   combat  rampage  blows  wear  lives                      blows, and what becomes of them
//!   publish  changes                                         what clients are told
//!   zone                                                     what systems work on, and what many of them do
//!   visibility                                               who sees whom
//!   aims                                             whom players aim at
//!   actors  npc::minds  roster  parties  mailboxes   state: who there is, what is on its mind,
//!   deeds  neighbours  index_set  land                       what is done this tick, who is near, changed land
//!   characters  saves  checkpoints                           what is kept of a player, of the land, after a panic
//!   spell_book  traits  prices                               the game's numbers
//!   schema  components  events  protocol  landscape          what both sides agree on
//!   analytics                                                what is told of the land
//! ```
//!
//! A module uses modules of lower lines, and neighbours, never in a circle. Beside them are `bot`, a player for the
//! swarm, and `settings`; above all is `game`, which is what the toolbox is given.
//!
//! A world of 10,000 NPCs and 2,000 players is one `bevy_ecs::World`. Its systems run on one worker; its clients are
//! read and written on all workers that are idle. Its state is rows of plain data, and sets say which rows a system has
//! to visit; entities hold only what is replicated. A steady tick allocates nothing. Cost of such a tick, all NPCs
//! awake and 3,400 fighting, without replication: 0.8 ms, 2.2 ms at most; 8.9 ms when every question is answered by
//! scanning everybody (2-core EPYC virtual machine, optimised build).

pub mod actors;
pub mod aggro;
pub mod aims;
pub mod analytics;
pub mod area;
pub mod arrivals;
pub mod assist;
pub mod auras;
pub mod beneficial;
pub mod blows;
pub mod bot;
mod budgets;
pub mod buffs;
pub mod changes;
pub mod characters;
pub mod checkpoints;
pub mod combat;
pub mod components;
pub mod deeds;
pub mod events;
mod game;
pub mod index_set;
pub mod land;
pub mod landscape;
pub mod lives;
pub mod mailboxes;
pub mod neighbours;
pub mod npc;
pub mod parties;
pub mod players;
mod prices;
pub mod protocol;
pub mod publish;
pub mod rampage;
pub mod roster;
pub mod saves;
pub mod schema;
pub mod server;
pub mod services;
pub mod settings;
pub mod sight;
pub mod signals;
pub mod spell_book;
pub mod spells;
pub mod spread;
pub mod talk;
pub mod things;
pub mod traits;
pub mod visibility;
pub mod wear;
pub mod works;
pub mod worlds;
pub mod yell;
pub mod zone;

pub use bot::FrontierBot;
pub use game::game;
pub use schema::schema;
pub use server::{FrontierWorld, build};
pub use settings::FrontierSettings;
pub use worlds::FRONTIER;

#[cfg(test)]
mod headless;
