//! Replication: who is told what, and when.
//!
//! A world pushes what changed; nobody is polled. A changed component is quantised and encoded once, whoever
//! hears of it, and a client's packet is a row of copies of such pieces:
//!
//! ```text
//!  ECS world                one per world                     one per client               the client
//!  ---------      ecs       -------------        interest     --------------   snapshot    ----------
//!  components  ---------->  columns of bytes,  ------------>  what it holds,  ---------->  replicas,
//!              what changed changed-marks       who is near   what it is owed   lost: owed  newest tick
//!                                                                               again       wins
//! ```
//!
//! Read in this order: [`Replicate`] (what a component declares), `schema`, `entities` and `column` (what there
//! is to tell), `marks` (what a game says of it besides), `interest` (to whom), [`rules`] (how far and how often), `rings`
//! and `throttle` (how that is kept), `bulk` (what is the same for all), `view` (what each client is owed), `snapshot`
//! (the bytes), [`pacing`] (how many of them), [`traffic`] (what they were for), `share` (several threads), `event`,
//! `listeners` and [`event_throttle`] (what is told once, to whom, how often), [`Replicas`] (the client's side), `truth`
//! and `held_truth` (how a client finds out that a copy is wrong), [`ecs`] (Bevy). The bytes are in
//! `docs/spec/replication.md`.
//!
//! It is sans-IO: bytes in, bytes out; ticks and packet numbers come in as arguments. It promises that once
//! packets get through, a client holds exactly the quantised state of what is relevant to it, as far as the rules let it be told, whatever
//! was lost, doubled or late before; and that no byte about anything else is sent to it.
//!
//! Sketch of the cost for 1,000 clients with 50 moving entities each, 20 times a second: encode 1,000 x 25 ns,
//! the same for all 1,000 x 10 ns, grid 8 us, interest of the 250 that are due 250 x 0.4 us, packets 1,000 x 50 x 3-5 ns:
//! about 0.3 to 0.4 ms per tick without sealing, and 8.3 KB per client and second.

#[cfg(test)]
extern crate self as throng_replication;

mod apply;
mod bulk;
pub mod bytes;
mod column;
mod copies;
pub mod ecs;
mod entities;
mod entry;
mod event;
pub mod event_throttle;
mod grid;
mod held_truth;
mod interest;
mod listeners;
mod marks;
mod message;
pub mod pacing;
pub mod quantise;
mod replicas;
mod replicate;
mod rings;
pub mod rules;
mod scene;
mod schema;
mod share;
mod slot_set;
mod snapshot;
mod state_hash;
mod stats;
#[cfg(test)]
mod testing;
mod text;
mod throttle;
pub mod traffic;
#[cfg(test)]
mod trial;
mod truth;
mod view;
mod walkers;
mod world;

pub use bytes::{DecodeError, Reader, Writer};
pub use entities::{EntitiesFull, Fault, NetId};
pub use event::{EVENT_BYTES_MAX, EVENT_HEADER_BYTES, EVENT_KIND, Event, EventId, EventIn, EventKind, write_event};
pub use held_truth::{StateError, Wrong};
pub use interest::InterestSettings;
pub use marks::{Concealed, Team, Weight};
pub use pacing::Pacing;
pub use replicas::{REPLICAS_MAX, ReplicaCounts, Replicas, SnapshotHeader};
pub use replicate::{Replicate, ReplicateBits};
pub use rules::{ReplicationRules, ResolvedRules};
pub use schema::{ENTITY_BYTES_MAX, EVENTS_MAX, KINDS_MAX, KindId, Schema, SchemaBuilder};
pub use share::Share;
pub use snapshot::{SNAPSHOT_HEADER_BYTES, SNAPSHOT_KIND};
pub use state_hash::{StateHash, StateHasher};
pub use stats::ReplicationStats;
pub use text::Text;
pub use throng_replication_derive::Replicate;
pub use traffic::Traffic;
pub use truth::{TRUTH_BYTES_MAX, TRUTH_KIND};
pub use world::{SLOTS_MAX, ViewId, WorldReplication};
