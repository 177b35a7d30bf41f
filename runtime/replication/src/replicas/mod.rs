//! Replicas: the client's side, which holds what the server told it and finds out when that is wrong.
//!
//! Read in this order: `store` (what is held, and since when), `replica_column` (the values of one component type),
//! `apply` (a snapshot's records, put into the store), `held_samples` (exact values from the server, held against the
//! replicas).
//!
//! A server never needs this room, and this room trusts no byte: every read is bounded and refused with a typed error.

mod apply;
pub(crate) mod held_samples;
pub(crate) mod replica_column;
pub(crate) mod store;
