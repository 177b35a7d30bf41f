//! Throng: authoritative multiplayer game servers that hold their tick.
//!
//! A process holds many worlds, each a `bevy_ecs::World` filled by plugins, Bevy's and ours. Workers tick the worlds that are
//! due in parallel, a frame at a time; what changed is replicated to the clients near enough to care, over encrypted
//! UDP. A game needs this one dependency: [`prelude`] has what its systems name, and the crates below are shown here. Read [`server::Server::frame`] first (`frame.rs`), then `game_world.rs` of the crate `throng-world`, which is
//! what a world is.
//!
//! ```no_run
//! use throng::{net::protocol::PrivateKey, platform::signals, prelude::*, server::Server, settings::Settings};
//!
//! #[derive(Component, Clone, Replicate)]
//! struct Position {
//!     #[replicate(min = -512.0, max = 512.0, step = 0.01)]
//!     x: f32,
//!     #[replicate(min = -512.0, max = 512.0, step = 0.01)]
//!     z: f32,
//! }
//!
//! impl Placed for Position {
//!     fn place(&self) -> [f32; 2] {
//!         [self.x, self.z]
//!     }
//! }
//!
//! fn welcome(arrivals: Res<Arrivals>, mut outbox: ResMut<Outbox>, mut commands: Commands) {
//!     for arrival in &arrivals.0 {
//!         let player = commands.spawn((Replicated::default(), Position { x: 0.0, z: 0.0 })).id();
//!         outbox.set_player(arrival.client, player);
//!     }
//! }
//!
//! struct Meadow;
//! impl WorldKind for Meadow {
//!     fn name(&self) -> &str {
//!         "meadow"
//!     }
//!     fn tick_rate(&self) -> Hertz {
//!         Hertz(20)
//!     }
//!     fn protocol(&self) -> Protocol {
//!         Protocol::new().component::<Position>()
//!     }
//!     fn build(&self, world: &mut WorldBuilder) {
//!         world.add_systems(Update, welcome).placed_by::<Position>();
//!     }
//! }
//!
//! fn serve() -> Result<(), Box<dyn std::error::Error>> {
//!     let schema = Meadow.protocol().schema();
//!     let mut server = Server::bind(&Settings::default(), schema, PrivateKey::new([7; 32]))?;
//!     let meadow = server.add_kind(Meadow)?;
//!     server.create_world(meadow, 1)?;
//!     let report = server.run(&signals::install_stop(), &mut |_| {})?;
//!     println!("{} ticks, {} missed", report.ticks, report.ticks_missed);
//!     Ok(())
//! }
//!
//! // An error that `main` returns is printed for programmers; what it says to an operator is its `Display`.
//! fn main() -> std::process::ExitCode {
//!     let Err(error) = serve() else { return std::process::ExitCode::SUCCESS };
//!     eprintln!("{error}");
//!     std::process::ExitCode::FAILURE
//! }
//! ```

mod accounts;
mod address_table;
pub mod analytics;
mod behind;
mod browser_counts;
pub mod client_report;
pub mod directory;
mod failover;
pub mod flight_recorder;
mod frame;
mod held;
mod host_rest;
mod host_watch;
mod hosted_world;
pub mod inspection;
mod latest;
pub mod lifecycle;
pub mod long_tasks;
mod longest_tick;
mod mailbox;
mod mailboxes;
mod measure;
pub mod metrics;
pub mod overload;
pub mod packet_report;
mod parked_worlds;
pub mod parking;
pub mod prelude;
pub mod questions;
mod recorder_start;
mod recorder_turns;
pub mod recording;
mod reload;
mod remake;
pub mod replay;
pub mod report;
pub mod rules;
pub mod saves;
mod seeds;
pub mod server;
mod server_loop;
pub mod settings;
mod stacks;
mod stranded;
mod suggested_budgets;
pub mod testing;
mod tick_budgets;
mod tick_time;
pub mod tick_trace;
mod timeline;
pub mod token_journal;
mod totals;
pub mod tuning;
mod turnover;
pub mod uploads;
pub mod watch;
pub mod watchdog;
mod watched_frames;
mod windows;
mod worker_post;
pub mod world_facts;
mod world_hash;
mod world_maker;
mod world_record;
mod world_row;
mod world_slot;
mod worlds;

pub use long_tasks::{drop_later, drop_later_sized};
pub use recorder_start::RecorderStartError;
pub use server::Server;
/// Analytics events in one line: see [`analytics`](mod@analytics).
pub use throng_analytics::analytics;
/// Game metrics in one line: see [`game_metrics`].
pub use throng_metrics::{count, counters, game as game_metrics, gauge, sample, text_table};

pub use throng_world::{
    console, events, ids, inbox, long_task, tick_resources, tunable, visibility, world_builder, world_kind,
};

/// The crates that a game may name, of the versions that Throng is built with. Derived code names them here, too.
#[doc(no_inline)]
pub use {
    bevy_ecs, rand, throng_net as net, throng_pack as pack, throng_persistence as persistence,
    throng_platform as platform, throng_profiler as profiler, throng_replication as replication, throng_world as world,
};
