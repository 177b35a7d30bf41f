//! A whole system in one process: the shipped server, its clients, and the network between them, on a clock that the
//! simulation moves.
//!
//! Nothing is replaced but what comes from outside: clock, transport and seeds (`throng::server::Environment`). The
//! server runs its own frames on its own worker threads; clients are the swarm's, with the swarm's behaviours. So what
//! happens here happens on a host, only that it happens again the same way, as fast as the machine can, and with losses
//! and delays that can be asked for.
//!
//! ```text
//!   frame n:  clock -> start of n | network delivers what is due | clients receive, think, send | server.frame(n)
//! ```
//!
//! | file | holds |
//! | --- | --- |
//! | `simulation` | the frame above, and what is asked of it while it runs |
//! | `player` | one client with its behaviour |
//! | `replay` | what a simulation's server recorded, and whether it comes again |
//! | `tap` | what the server sends, opened where it leaves, and what it receives |
//! | `workload` | what every subsystem takes of the real clock, step by step, for who compares two builds |
//! | `virtual_server` | a server whose clock somebody moves |
//! | `history` | the hashes of two runs, held against each other |
//! | `fingerprint` | one line for all that a run did, to compare two builds by |
//! | `mutation` | messages that are almost right |
//! | `many_seeds` | a thousand seeds of a game, in ten tests that are run on demand |
//!
//! Runs on the caller's thread, beside the server's workers; no socket is opened and no real clock is asked for
//! anything that a world or a client could see. Cost: what the server and the clients cost, and an allocation per
//! datagram.
//!
//! ```
//! use throng::{prelude::*, server::ServerError};
//! use throng_replication::SchemaBuilder;
//! use throng_simulator::{Simulation, SimulationSettings};
//!
//! struct Meadow;
//! impl WorldKind for Meadow {
//!     fn name(&self) -> &str {
//!         "meadow"
//!     }
//!     fn tick_rate(&self) -> Hertz {
//!         Hertz(20)
//!     }
//!     fn build(&self, _: &mut WorldBuilder) {}
//! }
//!
//! struct Listener;
//! impl throng_bots::Behaviour for Listener {
//!     fn think(
//!         &mut self,
//!         _: throng_platform::time::Nanos,
//!         _: &mut throng_client::Client,
//!         _: &mut rand_xoshiro::Xoshiro256PlusPlus,
//!     ) {
//!     }
//! }
//!
//! let settings = SimulationSettings::new(SchemaBuilder::new().build(), 1);
//! let (mut simulation, _) = Simulation::new(&settings, |server| {
//!     let meadow = server.add_kind(Meadow)?;
//!     Ok::<_, ServerError>(server.create_world(meadow, 1)?)
//! })?;
//! simulation.join(Box::new(Listener));
//! simulation.run_for(1.0);
//! assert_eq!(simulation.totals().playing, 1);
//! # Ok::<_, ServerError>(())
//! ```

mod fingerprint;
mod history;
mod many_seeds;
pub mod mutation;
mod player;
mod replay;
mod settings;
mod simulation;
mod tap;
mod totals;
mod virtual_server;
pub mod workload;

pub use fingerprint::Fingerprint;
pub use history::{Difference, first_difference};
pub use player::Player;
pub use replay::SimulationRecording;
pub use settings::SimulationSettings;
pub use simulation::Simulation;
pub use totals::Totals;
