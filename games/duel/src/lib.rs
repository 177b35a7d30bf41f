//! Duel: five against five in rounds, at 128 Hz, with as many matches on a core as fit.
//!
//! The game of precise shots, after VALORANT: attackers bring a spike to one of two sites, defenders keep it from
//! exploding. A round begins with a phase in which everybody buys, and ends in one of five ways; the first team with 13
//! rounds has the match, and sides change at half. It is a game in order to be a load: everything a tactical shooter
//! does on its server is done here, at the cost that it has. Shots are judged by what their shooter saw, limb by limb
//! (`throng_rewind`), and nobody is told of an enemy whom it cannot see (`throng_query::occlusion`).
//!
//! ```text
//!   game                                      what the toolbox is given
//!   server    budgets   settings   scenarios  build(&mut Server): the lobby, and how it makes matches
//!   lobby     worlds                          the two kinds of worlds, the order of a tick
//!   arrivals  players   throwing   shooting   systems: what happens in a tick
//!   spike     flow      lives      telling
//!   meter     activity   analytics            what is told of all that
//!   sight     past      smoke                 who may see whom; what a shot hits
//!   rounds    seats     scene      chance     state of a match
//!   pace
//!   movement  controls  weapons   economy     rules of the game, pure
//!   components  protocol  schema  travel  map  teams  seat_set   what both sides agree on
//!   prediction                                what a client makes of that: its own body, at once
//! ```
//!
//! Beside them is `bot`, a player for the swarm, which is a client as any other: it predicts, and sees others as they are
//! interpolated. Ten players have ten seats, whose numbers find everything else of
//! them; a match spawns nothing and, once everybody is there, allocates nothing.
//!
//! Cost on a server: [`budgets`] says what is aimed at, 117 µs for a tick of a match.

pub mod activity;
pub mod analytics;
pub mod arrivals;
pub mod bot;
pub mod budgets;
pub mod chance;
pub mod components;
pub mod controls;
pub mod economy;
pub mod flow;
mod game;
pub mod lives;
pub mod lobby;
pub mod map;
pub mod meter;
pub mod movement;
pub mod pace;
pub mod past;
pub mod players;
pub mod prediction;
pub mod protocol;
pub mod rounds;
pub mod scenarios;
pub mod scene;
pub mod schema;
pub mod seat_set;
pub mod seats;
pub mod server;
pub mod settings;
pub mod shooting;
pub mod sight;
pub mod smoke;
pub mod spike;
pub mod teams;
pub mod telling;
pub mod throwing;
pub mod travel;
pub mod weapons;
pub mod worlds;

pub use bot::{BotGuide, DuelBot};
pub use game::game;
pub use schema::schema;
pub use server::{DuelWorlds, build};
pub use settings::DuelSettings;

#[cfg(test)]
mod headless;
