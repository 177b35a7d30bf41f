//! Swarms of bots: simulated players on the real network path, thousands in one process.
//!
//! A bot is a [`throng_client::Client`] with a UDP socket of its own and a [`Behaviour`] that a game
//! writes. Each goes through the same handshake, the same ciphers and the same kernel as a player's
//! machine would, so a server cannot tell the difference, and what a bot measures a player feels:
//! `input_to_update`, wrong or missing values, disconnects.
//!
//! A thread drives hundreds of them. It sleeps in the kernel, wakes at most every 2 ms, reads the sockets
//! that have something, and lets those bots think whose turn it is; turns are spread evenly over the
//! thinking period. A large swarm has several such threads, which share nothing that changes but the run's course: a
//! bot is the same on whichever it is. Cost sketch per bot at 20 Hz, 20 packets a second each way: a send 5 µs, a
//! receive 1.5 µs, opening and applying a few µs, so 1,000 bots take 0.3 to 0.5 of a core. The report says how
//! much it was, and `thinks_skipped` says when it was too much.
//!
//! ```no_run
//! use throng_bots::{Behaviour, Swarm, SwarmSettings, TokenSigner, Tokens};
//! # use throng_client::Client;
//! # use throng_platform::{signals, time::Nanos};
//! # use throng_pack::Pack;
//! # use throng_replication::{ClientInput, SchemaBuilder};
//! # use rand_xoshiro::Xoshiro256PlusPlus;
//! # #[derive(Pack)]
//! # struct Walk { x: i8, z: i8 }
//! # impl ClientInput for Walk {}
//! struct Wanderer;
//!
//! impl Behaviour for Wanderer {
//!     fn think(&mut self, now: Nanos, client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {
//!         // Between two worlds inputs are refused; the next turn is soon.
//!         let _ = client.send_input(now, &Walk { x: 1, z: 0 });
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (schema, protocol_id, private_key) = (SchemaBuilder::new().input::<Walk>().build(), throng_net::protocol::ProtocolId(1), [0; 32].into());
//! let tokens = Tokens::Signed(TokenSigner { protocol_id, private_key, client_id_first: 1, timeout_s: 10, audited_one_in: 10 });
//! let settings = SwarmSettings { seconds: Some(60), ..SwarmSettings::new("127.0.0.1:40000".parse()?, 1_000, tokens) };
//! let report = Swarm::run(settings, schema, |_bot| Box::new(Wanderer), signals::install_stop(), &mut |_status| {})?;
//! println!("{} of {} players", report.players_connected, report.players_wanted);
//! # Ok(())
//! # }
//! ```

mod batch;
mod behaviour;
mod bot;
mod course;
mod driver;
mod error;
pub mod habits;
pub mod prelude;
mod report;
mod scenario;
mod settings;
mod slowed;
mod swarm;
mod tally;
mod tokens;
mod told;
mod turns;

pub use behaviour::{Behaviour, BehaviourCounters};
pub use error::SwarmError;
pub use report::{LatencyMs, SwarmReport, SwarmStatus};
pub use scenario::{Joins, Scenario, UnknownScenario};
pub use settings::SwarmSettings;
pub use slowed::SlowedThoughts;
pub use swarm::Swarm;
pub use tokens::{MakeToken, TokenSigner, Tokens};
