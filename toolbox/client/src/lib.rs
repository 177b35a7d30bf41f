//! A client without a screen: connects, acknowledges, applies. Bots and real clients use it.
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
//! second each way: opening, sealing and applying, about 5 µs per packet pair; memory 10 KB beside
//! the connection and the replicas.
//!
//! What it does not do: sockets, sleeping, interpolation, and judging whether the server is honest.

mod client;
mod event;
mod inbox;
mod input_latency;
mod login;
mod message;
pub mod prelude;
mod stats;
mod world_view;

pub use client::{Client, ClientState, DisconnectReason, INPUT_BYTES_MAX, SendInputError, SendMessageError};
pub use event::ClientEvent;
pub use login::{LoginStats, RetrySettings};
pub use message::Message;
pub use stats::ClientStats;
pub use world_view::CurrentWorld;

/// The crates that a client may name, of the versions that this one is built with. Derived code names them here, too.
#[doc(no_inline)]
pub use {throng_net as net, throng_platform as platform, throng_replication as replication};
