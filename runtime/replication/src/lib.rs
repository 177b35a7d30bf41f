//! Replication: who is told what, and when.
//!
//! A world pushes what changed; nobody is polled. A changed component is quantised and encoded once, whoever
//! hears of it, and a client's packet is a row of copies of such encoded values:
//!
//! ```text
//!  ECS world                one per world                     one per client               the client
//!  ---------      ecs       -------------        interest     --------------   snapshot    ----------
//!  components  ---------->  columns of bytes,  ------------>  what it holds,  ---------->  replicas,
//!              what changed changed-marks       who is near   what it is owed   lost: owed  newest tick
//!                                                                               again       wins
//! ```
//!
//! Rooms, each with its own table of contents, in the order to read them:
//!
//! | room | what is in it | which side |
//! | --- | --- | --- |
//! | `wire` | what both sides agree on: components, events, inputs and messages, the schema, numbers as bits | both |
//! | `source` | what there is to tell: entities, encoded values, [`rules`], the tick's shared updates | server |
//! | `view` | what each client may hold and is owed: interest, snapshots, [`pacing`], [`traffic`] | server |
//! | `world`, [`listeners`] | [`WorldReplication`], the server's side of one world; who is near a place | server |
//! | [`ecs`] | how a Bevy world feeds it | server |
//! | `replicas` | what a client holds, and how it finds out that something is wrong: [`Replicas`] | client |
//!
//! Each knows only those above it; `replicas` knows `wire` alone, and `wire` of `replicas` the columns that a schema
//! makes. The bytes are in `docs/spec/replication.md`.
//!
//! It is sans-IO: bytes in, bytes out; ticks and packet numbers come in as arguments. It promises that once packets get
//! through, a client holds exactly the quantised state of what is relevant to it, as far as the rules let it be told,
//! whatever was lost, doubled or late before; and that no byte about anything else is sent to it.
//!
//! Sketch of the cost for 1,000 clients with 50 moving entities each, 20 times a second: encode 1,000 x 25 ns, the same
//! for all 1,000 x 10 ns, grid 8 us, interest of the 250 that are due 250 x 0.4 us, packets 1,000 x 50 x 3-5 ns: about
//! 0.3 to 0.4 ms per tick without sealing, and 8.3 KB per client and second.

#[cfg(test)]
extern crate self as throng_replication;

mod compile_fail;
/// What derived code names.
#[doc(hidden)]
pub mod derived {
    pub use crate::wire::{
        bytes::{DecodeError, Reader, Writer},
        field::{ReplicateField, mix_names, most},
        link::EntityLink,
        list::{Count, ReplicateList},
        quantise,
        replicate::{Replicate, ReplicateBits, ReplicateInteger},
        shape::FieldShape,
    };
}
pub mod ecs;
pub mod listeners;
mod replicas;
mod source;
mod stats;
#[cfg(test)]
mod testing;
mod view;
mod wire;
mod world;

pub use arrayvec::ArrayVec;
pub use ecs::{
    Protocol,
    attributes::{Team, VisibilityFiltered, Weight},
    state_hash::{StateHash, StateHasher, StateParts},
};
pub use replicas::{
    held_samples::{StateError, Wrong},
    store::{REPLICAS_MAX, ReplicaCounts, Replicas, SnapshotHeader},
};
pub use source::{
    entities::EntitiesFull,
    event_throttle,
    fault::Fault,
    rules::{self, ReplicationRules, ResolvedRules},
};
pub use stats::ReplicationStats;
pub use throng_pack::{List, Text};
pub use throng_replication_derive::Replicate;
pub use view::{
    audit_sample::AUDIT_SAMPLE_BYTES_MAX,
    client_view::View,
    interest::InterestSettings,
    pacing::{self, Pacing},
    traffic::{self, Traffic},
};
pub use wire::{
    bytes::{self, DecodeError, Reader, Writer},
    event::{
        EVENT_BYTES_MAX, EVENT_HEADER_BYTES, EVENT_KIND, EventId, EventIn, EventKind, ReplicatedEvent, waits_for_ids,
        write_event,
    },
    field::ReplicateField,
    ids::{NetId, SLOTS_MAX},
    link::EntityLink,
    list::ReplicateList,
    message_kinds::{AUDIT_SAMPLE_KIND, SLOWED_SNAPSHOT_KIND, SNAPSHOT_HEADER_BYTES, SNAPSHOT_KIND},
    packed::{
        ClientInput, ClientMessage, ClientRequest, INPUT_BYTES_MAX, INPUT_REPEATS_MAX, MESSAGE_BYTES_MAX,
        MESSAGE_HEADER_BYTES, MESSAGE_KIND, PACKED_KINDS_MAX, PackedId, PackedKind, REQUEST_BYTES_MAX,
        REQUEST_HEADER_BYTES, REQUEST_KIND,
    },
    quantise,
    replicate::{Replicate, ReplicateBits, ReplicateInteger},
    schema::{ComponentIndex, ENTITY_BYTES_MAX, EVENTS_MAX, KINDS_MAX, Schema, SchemaBuilder},
    seen::{SEEN_BYTES, Seen},
    shape::FieldShape,
    time_factor::TimeFactor,
    unpacked::{Unpacked, UnpackedAt},
};
pub use world::{UpdateBuffers, ViewScratch, WorldReplication};
