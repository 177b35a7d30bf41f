//! Wire: what server and client must agree on before they understand each other.
//!
//! Read in this order: `ids` (how an entity is called), [`bytes`] and [`quantise`] (numbers to bits and back),
//! `replicate`, `event` and `field` (what a component, an event and a field of one must offer), `text`, `list` and `link`
//! (fields of more than a few bits), `packed` (what client and world say to each other), `seen` (what an input says that its
//! player was shown) and `unpacked` (what a world makes of what clients say), `schema` (which of them there are, in which
//! order), `shape` (what their fields are made of, for who was not compiled with them), `message_kinds` (by which byte a message is known), `time_factor` (how fast a world's time runs).
//!
//! It keeps no state of a world or of a client, and knows neither who hears of what nor when.

pub mod bytes;
pub(crate) mod event;
pub(crate) mod field;
pub(crate) mod ids;
pub(crate) mod link;
pub(crate) mod list;
pub(crate) mod message_kinds;
pub(crate) mod packed;
pub mod quantise;
pub(crate) mod replicate;
pub(crate) mod schema;
pub(crate) mod seen;
pub(crate) mod shape;
pub(crate) mod text;
pub(crate) mod time_factor;
pub(crate) mod unpacked;
