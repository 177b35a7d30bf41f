//! A client without a screen: connects, acknowledges, applies. Bots and real clients use it.
//!
//! A whole player, with a socket ([`udp`]), and with what the server declares, declared again. `examples/walk.rs` is the
//! same for a game that exists.
//!
//! ```no_run
//! use throng_client::{platform::time::Nanos, prelude::*};
//!
//! /// What the server shows of everybody.
//! #[derive(Clone, Replicate)]
//! struct Player {
//!     name: Text<16>,
//!     #[replicate(min = -100.0, max = 100.0, step = 0.01)]
//!     x: f32,
//! }
//!
//! /// What happens once, and is told to those who are near.
//! #[derive(Clone, Replicate)]
//! struct Waved {
//!     who: EntityLink,
//! }
//! impl ReplicatedEvent for Waved {
//!     const RELIABLE: bool = true;
//!     const RANGE_M: Option<f32> = Some(30.0);
//! }
//!
//! /// What we want in this moment.
//! #[derive(Pack)]
//! struct Walk(i8);
//! impl ClientInput for Walk {}
//!
//! /// What we ask for once.
//! #[derive(Pack)]
//! struct Wave;
//! impl ClientRequest for Wave {}
//!
//! /// What the world tells us alone.
//! #[derive(Pack)]
//! struct Purse {
//!     coins: u32,
//! }
//! impl ClientMessage for Purse {}
//!
//! /// `token` comes from the game's login service; in development, from the command `token`.
//! fn play(token: ConnectToken) -> Result<DisconnectReason, Box<dyn std::error::Error>> {
//!     let schema = SchemaBuilder::new().component::<Player>().event::<Waved>();
//!     let schema = schema.input::<Walk>().request::<Wave>().message::<Purse>().build();
//!     let mut player = UdpClient::connect(token, schema)?;
//!     loop {
//!         // Sleeps, receives, sends; a program with frames of its own calls `update` in each.
//!         player.run_for(Nanos::from_millis(50))?;
//!         while let Some(event) = player.client.next_event() {
//!             match event {
//!                 ClientEvent::EnteredWorld { .. } => player.client.request(&Wave)?,
//!                 ClientEvent::Disconnected(reason) => return Ok(reason),
//!                 _ => {}
//!             }
//!         }
//!         // Who is who: an entity is one `NetId` to all clients, and ours is named by the server.
//!         let (own, everybody) = (player.client.own_entity(), player.client.replicas());
//!         for (id, Player { name, x }) in everybody.iter::<Player>() {
//!             println!("{}{name} at {x:.1} m", if Some(id) == own { "I am " } else { "" });
//!         }
//!         for Waved { who } in player.client.events_of::<Waved>() {
//!             let who = who.id().and_then(|id| everybody.get::<Player>(id));
//!             println!("{} waves", who.map_or("somebody", |them| &*them.name));
//!         }
//!         for message in player.client.messages() {
//!             if let Some(Purse { coins }) = message.read() {
//!                 println!("{coins} coins");
//!             }
//!         }
//!         player.client.clear_messages();
//!         // Refused between two worlds, and before the first: the next one is soon.
//!         let _ = player.send_input(&Walk(127));
//!     }
//! }
//! ```
//!
//! [`Client`] is sans-IO: datagrams and a time go in, datagrams come out. It leads a connect token through the
//! handshake, waits in the server's line ([`Client::queue`]), tries again with a fresh token where that may help
//! ([`Client::with_retries`]), keeps the connection alive, and shows the game three things: in which world it is
//! ([`Client::world`], and which entity is its own: [`Client::own_entity`]), what the server shows it of that world
//! ([`Client::replicas`], [`Client::events`]), and what the world tells it alone ([`Client::messages`]). The game answers
//! with numbered inputs ([`Client::send_input`]) and reliable requests ([`Client::request`]). When it is over,
//! [`DisconnectReason`] says why, in words for a player too: a token that was used, a server that is full, a server that
//! was built from another version of the game.
//!
//! ```text
//!   datagram -> receive -> handshake | connection -> control -> world, own entity
//!                                                    snapshot -> replicas, input_to_update
//!                                                    audit    -> checks of the replicas
//!                                                    event    -> events
//!                                                    message  -> messages
//!   send_input, request -> poll -> datagram
//! ```
//!
//! Owned by one thread. Bytes from the network are counted and dropped when they are wrong, never a
//! panic. After the first busy seconds nothing is allocated here. Cost per client at 20 packets a
//! second each way: opening, sealing and applying, about 5 µs per packet pair; memory 16 KB beside
//! the connection and the replicas.
//!
//! What a player is shown is made of parts, each of which is used alone or with the others:
//!
//! | part | what it gives |
//! | --- | --- |
//! | [`Client::seen`] | the moment of the world that is to be drawn, an even walk behind the newest snapshot |
//! | [`interpolation`] | where others are at that moment, between the values that came |
//! | [`Client::due_inputs`] | how many inputs are due, by the server's ticks |
//! | [`Client::input_tick`], [`Client::input_lead`] | in which tick an input is taken that is sent now |
//! | [`ClientInput::REPEATS`](throng_replication::ClientInput::REPEATS) | lost inputs come with the next packets |
//! | [`Client::own_state`], [`prediction`] | what one's own player does, at once; corrected where the server says otherwise |
//! | [`peekers_advantage`] | what all of this and the line come to between two players |
//!
//! In a Bevy app they are a plugin: `throng-bevy`.
//!
//! What [`Client`] does not do: sockets and sleeping, which [`udp`] does for one player; drawing; and judging whether the
//! server is honest.

mod answers;
mod client;
mod event;
mod inbox;
mod input_buffer;
mod input_clock;
mod input_latency;
mod input_number;
pub mod interpolation;
mod login;
mod message;
mod own_state;
pub mod peekers_advantage;
pub mod prediction;
pub mod prelude;
mod server_clock;
mod stats;
pub mod udp;
mod view_clock;
mod world_view;

pub use client::{Client, ClientState, DisconnectReason, INPUT_BYTES_MAX, SendInputError, SendMessageError};
pub use event::ClientEvent;
pub use login::{LoginStats, RetrySettings};
pub use message::Message;
pub use own_state::OwnState;
pub use stats::ClientStats;
pub use world_view::CurrentWorld;

/// The crates that a client may name, of the versions that this one is built with. Derived code names them here, too.
#[doc(no_inline)]
pub use throng_replication::TimeFactor;
pub use {throng_net as net, throng_platform as platform, throng_replication as replication};
