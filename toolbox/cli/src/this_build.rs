//! Which build this is: the same words in `throng --version`, captures, crash reports, metrics and reports of runs.
//!
//! `build.rs` finds the commit, and no other crate knows it: all are handed it as a value.

use throng::report::Build;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Twelve digits, with `-modified` behind them if it was built of something else, or `unknown`.
pub const COMMIT: &str = env!("THRONG_COMMIT");
/// What `throng --version` says.
pub const VERSION_AND_COMMIT: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("THRONG_COMMIT"), ")");

/// This executable, as captures and crash reports name it.
pub fn name() -> String {
    format!("throng {VERSION_AND_COMMIT}")
}

/// The same for a server.
pub fn build() -> Build {
    Build { version: VERSION.into(), commit: COMMIT.into() }
}
