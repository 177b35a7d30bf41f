//! View: what each client may hold, what it is owed, and the bytes that it gets.
//!
//! Read in this order: `scene` (what all views read), `interest`, `grid` and `slot_set` (what is near a client),
//! `visibility_filter` (what of it the client may know), `client_view` (what it holds and is owed), `entry` and
//! `entry_list` (that, slot by slot), `relevant_set` (what comes and goes), `snapshot` and `message` (the bytes),
//! `own_news` (the own entity before all else), `flights` and `loss` (what became of them), `audit_sample` (exact values
//! for a client to check its own against), [`pacing`] (how many bytes its line takes), [`traffic`] (what the bytes were
//! for).
//!
//! It changes nothing of what there is to tell: a view is one client's, and views are served by many threads at once.

pub(crate) mod audit_sample;
pub(crate) mod client_view;
mod entry;
mod entry_list;
mod flights;
pub(crate) mod grid;
pub(crate) mod interest;
mod loss;
mod message;
mod own_news;
pub mod pacing;
mod relevant_set;
pub(crate) mod scene;
mod slot_set;
mod snapshot;
pub mod traffic;
mod visibility_filter;
