//! Analytics events: what a game tells about its play, for people who decide about the game.
//!
//! ```
//! throng_analytics::analytics!(pub PlayerDowned = "player.downed", 1 { player: u64, by_npc: bool, height_m: f32 });
//!
//! # let player = 7;
//! PlayerDowned { player, by_npc: true, height_m: 1.5 }.emit();
//! ```
//!
//! An event is declared in one line, with a version of its schema and typed fields, and emitted by a system in a tick:
//! some 70 ns, no allocation, no lock, no system call. The tick writes it into a page of its thread; the frame's end
//! hands pages over; threads of low priority make JSON lines of them and give these to sinks:
//!
//! ```text
//! emit -> page of the thread -- frame's end --> full pages --> exporter: JSON lines --> queue --> file sink: files that rotate
//!              ^                                                   |             |
//!              +----------------- empty pages ---------------------+             +--> queue --> post sink: HTTP, spool on disk
//! ```
//!
//! Nothing here makes a tick wait. What finds no room is dropped as a whole event and counted by its cause
//! ([`AnalyticsCounts`]), and the sequence numbers of a session have a gap there: so whoever reads them can see it, too.
//! Calls outside of a tick (bots, tools) and in a server without analytics do nothing. Nothing here is read by a game,
//! so events never change what it computes.
//!
//! Memory: [`PAGE_BYTES`] for each page of the queue and each worker, [`BATCHES_WAITING_MAX`] batches of
//! [`BATCH_BYTES`](lines::BATCH_BYTES) for each sink. For a thousand players with an event a second each: 0.1 MB/s of pages,
//! 0.2 MB/s of lines, 0.2 % of a core on the exporter's thread.

mod backlog;
mod counts;
mod error;
mod event;
mod exporter;
pub mod field;
pub mod file_sink;
pub mod lines;
mod log;
mod page;
mod pauses;
pub mod post_sink;
pub mod read;
pub mod tick;

pub use counts::{AnalyticsCounts, SharedCounts};
pub use error::StartError;
pub use event::{AnalyticsEvent, KINDS_MAX, Kind};
pub use exporter::{Exporter, FrameEvents, Sinks, start};
pub use lines::Identity;
pub use page::{PAGE_BYTES, Page};

/// Batches that may wait for one sink. What comes then is dropped and counted.
pub const BATCHES_WAITING_MAX: usize = 64;

/// The library of texts that a field may have.
pub use throng_pack::Text;
