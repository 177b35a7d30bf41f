//! Pages: what browsers show of Throng, built from the TypeScript in `web/` and carried here, so that nobody who builds
//! a server needs Node.
//!
//! [`CONSOLE`] shows a running server, which serves it on its admin port. [`VIEWER`] shows captures. It is one file, speaks to no network (its Content-Security-Policy forbids it), and opens
//! what is dropped into it. [`write_viewer`] puts a capture inside, so that a bad frame can be mailed and looked at by
//! somebody who has nothing installed.
//!
//! ```text
//!   web/*.ts  --cargo xtask web-->  built/viewer.html  --include_str!-->  VIEWER
//!                                                                         + story (JSON) + capture (gzip, base64)
//! ```
//!
//! `PLAY_*` play a game; a server carries them and speaks to nobody else. [`CLIENT`] is for games whose page is built of
//! nothing (`games/meadow`). The cipher in them is that of `@noble/ciphers` (MIT, Paul Miller); all else is ours.
//!
//! `cargo xtask tidy` says when the built file is older than its sources, and CI builds it again and compares. Any
//! thread; cost of writing: that of gzip, some 50 MB/s, and no more memory than its window.

/// The console of a running server. It asks the port that it came from, and nobody else.
pub const CONSOLE: &str = include_str!("../built/console.html");

mod play;
mod viewer;

pub use play::{CLIENT, PLAY_DUEL, PLAY_FRONTIER, PLAY_PRECINCT};
pub use viewer::{Story, VIEWER, write_viewer};
