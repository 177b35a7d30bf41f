//! Captures: what a recorder kept of a bad frame, as plain data, as a file, as a story and in other tools' formats.
//!
//! The recorder fills a [`Capture`]; [`mod@format`] writes it as about 5 bytes per scope and reads it back; [`story`]
//! says in text what happened; [`convert`] turns it into files for other viewers, some of them through a [`call_tree`];
//! [`redact`] takes out what must not leave the house. Nothing here knows a server, a clock or a thread: it reads on
//! the developer's machine what was written on another one. Any thread; allocates.

pub mod attribution;
pub mod call_tree;
pub mod convert;
pub mod format;
pub mod model;
pub mod redact;
pub mod story;

pub use model::Capture;

// So that the captures to test with are written once, for the tests in here and those in `tests/`.
#[cfg(test)]
extern crate self as throng_capture;
#[cfg(test)]
#[path = "../tests/sample/mod.rs"]
mod sample;
