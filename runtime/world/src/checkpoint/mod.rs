//! Checkpoint: all that a world's next tick reads, as bytes.
//!
//! A kind of world says once which of its components and resources are state
//! ([`WorldBuilder::checkpoint`](crate::world_builder::WorldBuilder::checkpoint)); what the engine keeps of a world is taken
//! along without being named. A world that is built anew from the same kind, id, seed and parameters, and is given the
//! bytes, goes on as the one that they were taken from: with the same entities under the same ids, those of one set of
//! components in the same order, and the same ids for those to come. Sets among each other may be visited in another order,
//! of which Bevy promises none: a system to which that matters sorts.
//!
//! ```text
//! heading | "throngcp" 8 | version u16 | flags u16 | length u32 | body crc u32 | crc u32 |
//! body    | world | types | resources | entities | free ids | replicated ids | players | departures |
//! ```
//!
//! The whole drawing is in `docs/spec/checkpoint.md`. Two uses: a world that panicked is built again around its players
//! ([`PlayerEntities::Stay`]), and a server that starts has the worlds that it had, into which players come by themselves
//! ([`PlayerEntities::LeftOut`]).
//!
//! What is not taken along: what no kind registers (a test finds it, [`TestWorld::forgotten`]), `Local`s and unread
//! messages of Bevy's between systems, marks of change (in the first tick after a load everything has changed, to whoever
//! asks), connections, and clients' copies of the world, which are made anew.
//!
//! Between two ticks, on whichever thread has the world. Cost of taking one: 50 to 100 ns for each component, and a copy of
//! its bytes; of loading one about 1 µs for each.
//!
//! [`TestWorld::forgotten`]: crate::testing::TestWorld::forgotten

pub(crate) mod engine_types;
mod entity_ids;
mod error;
mod heading;
mod layout;
mod load;
mod parts;
mod random;
pub(crate) mod registry;
mod save;

pub use error::{CheckpointError, LoadError};
pub use heading::{CHECKPOINT_BYTES_MAX, CheckpointHeading};
pub(crate) use load::load;
pub use parts::PlayerEntities;
pub(crate) use parts::{Loaded, Parts};
pub(crate) use registry::Registry;
pub(crate) use save::save;

#[cfg(test)]
mod tests;
