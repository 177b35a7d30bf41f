//! What a game is to the toolbox: one value, from which an executable has every command with every flag.
//!
//! A game says how its worlds are made and how its bots play, which options and settings are its own, and what it was made
//! for. `throng_cli::main` makes the command line of that, the lab starts its processes by it, and neither knows the game.
//! So the type lies below both, and games need no library for command lines.
//!
//! ```
//! use rand_xoshiro::Xoshiro256PlusPlus;
//! use serde::Deserialize;
//! use throng::{prelude::*, settings::{Checks, Section}};
//! use throng_bots::Behaviour;
//! use throng_client::Client;
//! use throng_game::{Game, GameOption};
//! use throng_platform::time::Nanos;
//!
//! #[derive(Pack)]
//! struct Step(i8);
//!
//! impl ClientInput for Step {}
//!
//! /// `[game]` of the settings file.
//! #[derive(Deserialize)]
//! #[serde(default)]
//! struct MeadowSettings {
//!     /// Meadows to begin with [1 to 100]. Default 1.
//!     meadows: u32,
//! }
//!
//! impl Default for MeadowSettings {
//!     fn default() -> Self {
//!         Self { meadows: 1 }
//!     }
//! }
//!
//! impl Section for MeadowSettings {
//!     fn check(&self, checks: &mut Checks<'_>) {
//!         checks.range("meadows", self.meadows, 1..=100, "meadows");
//!     }
//! }
//!
//! struct Meadow {
//!     at_night: bool,
//! }
//!
//! impl WorldKind for Meadow {
//!     fn name(&self) -> &str {
//!         "meadow"
//!     }
//!     fn tick_rate(&self) -> Hertz {
//!         Hertz(if self.at_night { 5 } else { 20 })
//!     }
//!     fn protocol(&self) -> Protocol {
//!         protocol()
//!     }
//!     fn build(&self, _world: &mut WorldBuilder) {}
//! }
//!
//! struct Wanderer;
//!
//! impl Behaviour for Wanderer {
//!     fn think(&mut self, now: Nanos, client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {
//!         let _ = client.send_input(now, &Step(1));
//!     }
//! }
//!
//! /// What clients and meadows say to each other.
//! fn protocol() -> Protocol {
//!     Protocol::new().input::<Step>()
//! }
//!
//! fn my_game() -> Game {
//!     let schema = || protocol().schema();
//!     Game::with_settings("meadow", schema, |server, arguments, settings: &MeadowSettings| {
//!         let kind = server.add_kind(Meadow { at_night: arguments.options.has("at-night") })?;
//!         for seed in 0..settings.meadows {
//!             server.create_world(kind, seed.into())?;
//!         }
//!         Ok(())
//!     })
//!     .about("a meadow to walk about on")
//!     .version(env!("CARGO_PKG_VERSION"))
//!     .players(50, 1_000)
//!     .option(GameOption::switch("at-night", "Begin at night, when everything is slow"))
//!     .bots(|_options, _scenario| |_bot: usize| Wanderer)
//! }
//!
//! // The whole executable: fn main() -> ExitCode { throng_cli::main(my_game()) }
//! assert_eq!(my_game().name(), "meadow");
//! ```

mod arguments;
mod game;
mod option;
mod saved;

pub use arguments::{Arguments, Options};
pub use game::{BuildError, BuildWorlds, Game, MakeBehaviour, Size};
pub use option::GameOption;
pub use saved::{Items, Judged, SavedType};
