//! View: what each client may hold, what it is owed, and the bytes that it gets.
//!
//! Read in this order: `scene` (what all views read), `interest`, `grid` and `slot_set` (what is near a client),
//! `visibility_filter` (what of it the client may know), `client_view` and `entry` (what it holds and is owed),
//! `snapshot` and `message` (the bytes), `audit_sample` (exact values for a client to check its own against),
//! [`pacing`] (how many bytes its line takes), [`traffic`] (what the bytes were for).
//!
//! It changes nothing of what there is to tell: a view is one client's, and views are served by many threads at once.

pub(crate) mod audit_sample;
pub(crate) mod client_view;
mod entry;
pub(crate) mod grid;
pub(crate) mod interest;
mod message;
pub mod pacing;
pub(crate) mod scene;
mod slot_set;
mod snapshot;
pub mod traffic;
mod visibility_filter;
