//! The `throng` command as it ships: with the games that are in this repository.
//!
//! This crate alone knows the commit, which `build.rs` asks git for; all others are handed it as a value.

use std::process::ExitCode;

use throng_cli::Executable;

const EXECUTABLE: Executable =
    Executable { name: "throng", version: env!("CARGO_PKG_VERSION"), commit: env!("THRONG_COMMIT") };

fn main() -> ExitCode {
    throng_cli::main_with(EXECUTABLE, vec![precinct::game(), frontier::game()])
}
