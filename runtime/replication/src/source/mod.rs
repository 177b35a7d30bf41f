//! Source: what there is to tell in a tick, once for all clients.
//!
//! Read in this order: `entities` (slots, and what changed), `column` (each component's encoded values), [`rules`] (how
//! far and how often things are told), `rings` and `throttle` (how the rules are kept), [`event_throttle`] (the same
//! for events), `bulk` (the tick's updates, encoded once for everybody), `fault` (test switches).
//!
//! It never knows a client: who hears of what is `view`'s. Written by the world's own thread, then read by many.

pub(crate) mod bulk;
pub(crate) mod column;
pub(crate) mod entities;
pub mod event_throttle;
pub(crate) mod fault;
pub(crate) mod rings;
pub mod rules;
pub(crate) mod throttle;
