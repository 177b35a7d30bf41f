//! Prelude: what a client names, so that `throng_client` is its one dependency.
//!
//! ```
//! use throng_client::prelude::*;
//!
//! /// As the server declares it.
//! #[derive(Clone, Replicate)]
//! struct Purse {
//!     coins: u16,
//!     owner: EntityLink,
//! }
//!
//! fn richest(client: &Client) -> Option<NetId> {
//!     let purses = client.replicas().iter::<Purse>();
//!     purses.max_by_key(|(_, purse)| purse.coins).and_then(|(_, purse)| purse.owner.id())
//! }
//! ```

#[doc(no_inline)]
pub use throng_net::protocol::ConnectToken;
#[doc(no_inline)]
pub use throng_pack::Pack;
#[doc(no_inline)]
pub use throng_replication::{
    ArrayVec, ClientInput, ClientMessage, ClientRequest, EntityLink, EventIn, List, NetId, Protocol, Replicas,
    Replicate, ReplicatedEvent, Schema, SchemaBuilder, StateError, Text,
};

#[doc(no_inline)]
pub use crate::{
    Client, ClientEvent, ClientState, CurrentWorld, DisconnectReason, OwnState, RetrySettings,
    udp::{UdpClient, UdpError},
};
