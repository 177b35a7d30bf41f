//! The `throng` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    throng_cli::main()
}
