//! The bazaar with every command of the toolbox.

use std::process::ExitCode;

fn main() -> ExitCode {
    throng_cli::main(bazaar::game())
}
