//! World: one world of a game server, built from a kind and a seed and run by one call.
//!
//! A [`GameWorld`] is a `bevy_ecs::World` filled by plugins, ours and Bevy's, with everything that belongs to it: the order
//! of its systems, its clients with their connections, what is replicated to them. It is sans-IO: mail and time come in, packets go to a sink, and a report says what the host has to do. So the same world
//! runs in a server, in a test of a game and in a bench.
//!
//! ```text
//!   kind + seed --> world                              world_kind  world_builder
//!   |- its systems, by label, in order                 system_list  system_order  world_systems  failures
//!   |- Bevy's plugins, its time and its messages       plugin_host  tick_time  update_messages
//!   tick(now, mail, worker, helpers) --> report        game_world  mail  worker  report
//!   |- clients in batches: open ... tell               client  clients  client_batch  allowance  client_cost
//!   |- what clients may say, what they were shown      declared  seen_moment
//!   |- when it ticks, if that depends on what comes     reactive
//!   |- what systems see and say                        tick_resources  inbox  said  players  events  unwritten
//!   |- who hears an event                              deliver
//!   '- what was sent, by kind and cause                sent
//! what an operator asks of it, and changes in it     console  tunable
//! what entered a world, tick by tick, as bytes       input_log
//! what of a world and its players is kept            saving
//! all that its next tick reads, as bytes             checkpoint  kept_state
//! a world in a game's test                            testing
//! ```
//!
//! Read `game_world.rs` first: one tick, top to bottom. It never reads a clock or a random device, opens no socket, and
//! knows no other world. A world ticks on one thread; batches of its clients on any. Allocates nothing in a steady
//! tick. Cost: 3 µs per tick for a world with one client in which little happens, beside replication and the line.
//!
//! A game's headless test ticks the world that ships, with scripted players ([`testing`]):
//!
//! ```
//! use bevy_ecs::prelude::*;
//! use throng_pack::Pack;
//! use throng_world::{prelude::*, testing::TestWorld};
//!
//! #[derive(Pack)]
//! struct Lap;
//! impl ClientRequest for Lap {}
//!
//! #[derive(Resource, Default)]
//! struct Laps(u32);
//!
//! struct Track;
//! impl WorldKind for Track {
//!     fn name(&self) -> &str { "track" }
//!     fn tick_rate(&self) -> Hertz { Hertz(30) }
//!     fn protocol(&self) -> Protocol { Protocol::new().request::<Lap>() }
//!     fn build(&self, world: &mut WorldBuilder) {
//!         world.init_resource::<Laps>().add_systems(Update, |asked: Requests<Lap>, mut laps: ResMut<Laps>| {
//!             laps.0 += asked.read().count() as u32;
//!         });
//!     }
//! }
//!
//! let mut world = TestWorld::new(Track, &Track.protocol().schema(), 1);
//! world.arrive(ClientKey(7));
//! world.request(ClientKey(7), &Lap);
//! world.ticks(3);
//! assert_eq!(world.ecs().resource::<Laps>().0, 1);
//! ```

#![expect(
    clippy::vec_box,
    reason = "clients move between lists, batches and worlds: a pointer each, not half a kilobyte"
)]

pub mod allowance;
mod bucket;
pub mod checkpoint;
pub mod client;
pub mod client_batch;
pub mod client_cost;
mod clients;
pub mod console;
mod declared;
mod deliver;
pub mod events;
pub mod failures;
pub mod game_world;
pub mod ids;
pub mod inbox;
pub mod input_log;
mod input_window;
mod kept_state;
pub mod long_task;
pub mod mail;
mod nowhere;
mod opened;
pub mod players;
mod plugin_host;
pub mod reactive;
pub mod report;
pub mod said;
pub mod saving;
mod scratch;
pub mod seen_moment;
mod sent;
mod system_list;
pub mod system_order;
pub mod testing;
pub mod tick_resources;
mod tick_time;
pub mod transfer;
pub mod tunable;
mod unwritten;
mod update_messages;
pub mod visibility;
pub mod worker;
pub mod world_builder;
pub mod world_kind;
mod world_systems;

/// What worlds have of Bevy beside its ECS, in the version that they are built with.
pub use {bevy_app, bevy_state, bevy_time};

pub use client::Client;
pub use client_batch::{ClientBatch, InTick};
pub use game_world::GameWorld;
pub use mail::{Mail, MailItem};
pub use report::{Leaving, TickReport, TickStats};
pub use worker::{Alone, ForkJoin, Worker};

/// What a game's plugins use.
pub mod prelude {
    pub use bevy_app::{
        First, FixedFirst, FixedLast, FixedPostUpdate, FixedPreUpdate, FixedUpdate, Last, PostStartup, PostUpdate,
        PreStartup, PreUpdate, Startup, Update,
    };
    pub use bevy_state::{
        condition::in_state,
        state::{NextState, OnEnter, OnExit, OnTransition, State},
    };
    pub use bevy_time::{Time, Timer, TimerMode, common_conditions::on_timer};

    pub use crate::{
        console::{CommandResult, WorldConsole},
        events::{Audience, Events},
        ids::{ClientKey, WorldId, WorldKindId},
        inbox::{Inbox, InboxMessage, MessageKind},
        long_task::{LongTaskLoss, LongTaskLost, LongTaskNumber, LongTaskTerms},
        players::Players,
        said::{Inputs, Requests, Sender},
        saving::{CellToSave, PlayerToSave, SaveAnswer, SaveAnswers, SaveRequest, SaveStore, WorldState},
        seen_moment::SeenMoment,
        tick_resources::{
            Arrival, Arrivals, Departures, MayBeDormant, Outbox, RefusedTravel, ScanRange, TickInfo, TravelRefusal,
            WorldMessages, WorldRng,
        },
        transfer::{Transfer, WorldMessage},
        tunable::{Tunable, Tuned},
        visibility::{MaySee, Viewer},
        world_builder::WorldBuilder,
        world_kind::{Hertz, Pace, WorldKind, WorldPlugin},
    };
    pub use throng_replication::{ClientInput, ClientMessage, ClientRequest, Protocol};
}
